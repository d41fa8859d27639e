//! What a person wants to know of an object that is not as desired: what is wrong, since when, what is
//! tried next and when, and how to force it.

use schema::condition::{self, Condition, ConditionStatus, ConditionType, Reason};
use schema::ids::Timestamp;
use schema::object::ObjectRow;
use serde::Serialize;
use utoipa::ToSchema;

use crate::ports::{NextReconciliation, Trigger};

/// What to know of an object that is not as desired; all absent when it is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, ToSchema)]
pub struct Guidance {
    /// What is wrong.
    problem: Option<String>,
    /// Since when the object is not ready, or is paused; null when it was ready until a newer change was
    /// requested.
    since: Option<Timestamp>,
    /// What is tried next automatically, and when.
    next: Option<String>,
    /// When that is, if it is known.
    next_look_at: Option<Timestamp>,
    /// How to reconcile it now.
    force: Option<Force>,
}

/// What keeps an object from being reconciled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paused {
    /// It is paused by itself.
    Object,
    /// Its reconciler is.
    Reconciler,
    /// All reconcilers are.
    All,
}

/// How to reconcile it now.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
struct Force {
    /// The command on the server.
    command: String,
    /// The method and path of the request.
    request: &'static str,
    /// The form of the request.
    body: String,
}

impl Guidance {
    /// For one object; `look`: when this process reconciles it next, if it is the leader.
    pub(super) fn of(
        row: &ObjectRow,
        paused: Option<Paused>,
        look: Option<NextReconciliation>,
    ) -> Self {
        let ready = condition::find(&row.status.conditions, ConditionType::Ready);
        let current = row.status.observed_generation >= row.generation;
        if ready.is_some_and(|ready| ready.status == ConditionStatus::True)
            && current
            && paused.is_none()
        {
            return Self::default();
        }
        let look = if paused.is_some() {
            Some(NextReconciliation {
                by: Trigger::Resume,
                at: None,
            })
        } else {
            look
        };
        let at = look.map_or(row.status.next_attempt_at, |look| look.at);
        // It is the engine that is waited for, and that is called all the time.
        let at = at.filter(|_| ready.is_none_or(|r| r.reason != Reason::EngineUnavailable));
        Self {
            problem: Some(problem(ready, current, paused.is_some())),
            since: since(row, ready),
            next: Some(next(row, ready, look, at)),
            next_look_at: at,
            force: Some(force(row, ready, paused)),
        }
    }
}

/// Since when the object is not as desired. `None`: it was, until something newer was asked for.
fn since(row: &ObjectRow, ready: Option<&Condition>) -> Option<Timestamp> {
    let paused = condition::find(&row.status.conditions, ConditionType::Paused);
    match ready {
        None => Some(row.created_at),
        Some(ready) if ready.status != ConditionStatus::True => Some(ready.last_transition_at),
        Some(_) => paused
            .filter(|paused| paused.status == ConditionStatus::True)
            .map(|paused| paused.last_transition_at),
    }
}

fn problem(ready: Option<&Condition>, current: bool, paused: bool) -> String {
    let said = match ready {
        None => "not reconciled yet".to_owned(),
        Some(ready) if ready.message.is_empty() => ready.reason.to_string(),
        Some(ready) => format!("{}: {}", ready.reason, ready.message),
    };
    let by_pause = ready.is_some_and(|ready| ready.reason == Reason::PausedByOperator);
    match (paused, current) {
        (true, _) if by_pause => said,
        (false, _) if by_pause => "resumed, and not observed yet".to_owned(),
        (true, _) => format!("reconciliation is paused; before that: {said}"),
        (false, false) => format!("the newest change was not observed yet; before that: {said}"),
        (false, true) => said,
    }
}

fn next(
    row: &ObjectRow,
    ready: Option<&Condition>,
    look: Option<NextReconciliation>,
    at: Option<Timestamp>,
) -> String {
    let reason = ready.map_or(Reason::Pending, |ready| ready.reason);
    // That is over, or said by the trigger.
    let reason = match reason {
        Reason::PausedByOperator => Reason::Pending,
        reason => reason,
    };
    let tried = match reason.next_try() {
        "" => "the object is reconciled",
        tried => tried,
    };
    let failures = match row.status.failures {
        0 => String::new(),
        1 => " (1 failed attempt)".to_owned(),
        n => format!(" ({n} failed attempts)"),
    };
    let at = at.map(|at| at.to_rfc3339());
    match (look.map(|look| look.by), at) {
        (Some(Trigger::Resume), _) => Reason::PausedByOperator.next_try().to_owned(),
        // The engine is not asked object by object.
        _ if reason == Reason::EngineUnavailable => {
            "the engine is called again every few seconds; once it answers, everything is reconciled"
                .to_owned()
        }
        (Some(Trigger::Now), _) => format!("now, {tried}{failures}"),
        (Some(Trigger::Resync), Some(at)) => {
            format!("at the next resync, {at}, {tried}{failures}")
        }
        (_, Some(at)) => format!("at {at}, {tried}{failures}"),
        (_, None) => format!("at the leader's next resync, {tried}{failures}"),
    }
}

fn force(row: &ObjectRow, ready: Option<&Condition>, paused: Option<Paused>) -> Force {
    let object = format!("{}/{}", row.kind, row.name);
    // Only what was paused can be resumed.
    let (argument, body) = match paused {
        None | Some(Paused::Object) => (object.clone(), format!("object={object}")),
        Some(Paused::Reconciler) => (
            format!("--reconciler {}", row.kind),
            format!("reconciler={}", row.kind),
        ),
        Some(Paused::All) => ("--all".to_owned(), "all=true".to_owned()),
    };
    let reason = ready.map(|ready| ready.reason);
    // A failed replacement was put back: only a restart makes another one without waiting.
    let put_back = reason == Some(Reason::ReplacementFailed);
    match paused {
        Some(_) => Force {
            command: format!("agentyard resume {argument}"),
            request: "POST /api/admin/reconcile/resume",
            body,
        },
        None if put_back => Force {
            command: format!("agentyard restart {object}"),
            request: "POST /api/admin/container/restart",
            body: format!("username={}", row.name),
        },
        // No look moves anybody, until somebody decides.
        None if reason == Some(Reason::RolloutPaused) => Force {
            command: format!("agentyard rollout resume {}", row.name),
            request: "POST /api/admin/images/rollouts/resume",
            body: format!("id={}", row.name),
        },
        None => Force {
            command: format!("agentyard retry {argument}"),
            request: "POST /api/admin/reconcile/retry",
            body,
        },
    }
}

#[cfg(test)]
mod tests {
    use schema::ids::{Generation, Uid};
    use schema::object::StatusRow;
    use serde_json::json;

    use super::*;
    use crate::testing::NOW;

    fn row(said: Option<Condition>) -> ObjectRow {
        ObjectRow {
            kind: "container".to_owned(),
            uid: Uid::from("u".to_owned()),
            name: "alice".to_owned(),
            generation: Generation(2),
            paused: false,
            created_at: NOW,
            deleted_at: None,
            status: StatusRow {
                observed_generation: Generation(2),
                conditions: said.into_iter().collect(),
                failures: 3,
                next_attempt_at: Some(NOW),
            },
        }
    }

    fn told(
        row: &ObjectRow,
        paused: Option<Paused>,
        look: Option<NextReconciliation>,
    ) -> serde_json::Value {
        serde_json::to_value(Guidance::of(row, paused, look)).unwrap()
    }

    #[test]
    fn a_rollout_that_waits_for_a_person_goes_on_when_it_is_resumed() {
        let paused = ObjectRow {
            kind: "rollout".to_owned(),
            name: "r1".to_owned(),
            ..row(Some(Condition::not_ready(
                Reason::RolloutPaused,
                "u7 failed",
            )))
        };
        let told = told(&paused, None, None);
        assert_eq!(
            told["force"],
            json!({
                "command": "agentyard rollout resume r1",
                "request": "POST /api/admin/images/rollouts/resume",
                "body": "id=r1",
            })
        );
    }

    #[test]
    fn what_is_as_desired_needs_no_guidance() {
        let ready = row(Some(Condition::ready(Reason::Running, "")));
        assert_eq!(Guidance::of(&ready, None, None), Guidance::default());
        let newer = ObjectRow {
            generation: Generation(3),
            ..ready
        };
        let told = told(&newer, None, None);
        assert!(told["since"].is_null(), "it was ready until then: {told}");
        assert!(told["problem"].as_str().unwrap().contains("newest change"));
    }

    #[test]
    fn a_broken_object_says_what_since_when_what_next_and_how_to_force_it() {
        let full = row(Some(Condition::not_ready(Reason::StorageFull, "no space")));
        let look = NextReconciliation {
            by: Trigger::Timer,
            at: Some(NOW),
        };
        assert_eq!(
            told(&full, None, Some(look)),
            json!({
                "problem": "StorageFull: no space",
                "since": Timestamp::default(),
                "next": format!("at {}, the step that found no space is retried (3 failed attempts)", NOW.to_rfc3339()),
                "next_look_at": NOW,
                "force": {
                    "command": "agentyard retry container/alice",
                    "request": "POST /api/admin/reconcile/retry",
                    "body": "object=container/alice",
                },
            })
        );
    }

    #[test]
    fn a_standby_says_what_the_database_knows() {
        let mut full = row(Some(Condition::not_ready(Reason::StorageFull, "no space")));
        assert!(
            told(&full, None, None)["next"]
                .as_str()
                .unwrap()
                .starts_with("at ")
        );
        full.status.next_attempt_at = None;
        let next = told(&full, None, None)["next"].clone();
        assert!(next.as_str().unwrap().contains("leader"), "{next}");
    }

    #[test]
    fn a_paused_object_is_resumed_not_retried() {
        let command = |paused| told(&row(None), Some(paused), None)["force"]["command"].clone();
        assert_eq!(
            command(Paused::Reconciler),
            "agentyard resume --reconciler container"
        );
        assert_eq!(command(Paused::All), "agentyard resume --all");
        let told = told(&row(None), Some(Paused::Object), None);
        assert_eq!(told["force"]["command"], "agentyard resume container/alice");
        assert_eq!(told["next"], "nothing is tried until it is resumed");
        assert!(told["problem"].as_str().unwrap().contains("paused"));
    }
}
