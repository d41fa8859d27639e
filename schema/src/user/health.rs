//! The health of a user, which is that of the worst of what belongs to the user, and why a container is not to run. Computed when it is
//! read; pure.

use std::time::Duration;

use serde::Serialize;

use super::model::{Source, UserListing};
use crate::condition::{self, Condition, ConditionStatus, ConditionType, Reason};
use crate::container::Desired;
use crate::ids::{Generation, Kind, ObjectRef, Timestamp};
use crate::object::StatusRow;

/// The health of a user: `Ready` of the worst of container, configuration, skills and directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = UserHealth)]
pub struct Health {
    /// True if all of it is ready.
    pub status: ConditionStatus,
    /// Reason.
    pub reason: Reason,
    /// Reason, for operators.
    pub message: String,
    /// Remedy; empty when there is nothing to do.
    pub remedy: &'static str,
    /// Since when it is so; null if that is not known.
    #[schema(required = true)]
    pub since: Option<Timestamp>,
    /// The object that is worst.
    #[schema(value_type = String, example = "agent-config/alice")]
    pub object: ObjectRef,
}

/// Reason for which a container is not to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::Display, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StandstillReason {
    /// An administrator has disabled the account.
    Disabled,
    /// The directory does not have the user any more, so the account is disabled.
    Missing,
    /// The container was stopped, or not started yet.
    Stopped,
}

/// Reason, time and author of the decision that a user's container does not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = UserStandstill)]
pub struct Standstill {
    /// Reason.
    pub reason: StandstillReason,
    /// Since when; null if that is not known: it was not started yet, or an earlier release stopped it.
    #[schema(required = true)]
    pub since: Option<Timestamp>,
    /// Author of the decision, as the audit trail names it; null if that is not known.
    #[schema(required = true, example = "root")]
    pub by: Option<String>,
    /// After this time the next synchronisation removes the account; null if none does.
    #[schema(required = true)]
    pub removed_after: Option<Timestamp>,
    /// All of it in a sentence.
    pub message: String,
}

impl Standstill {
    /// Returns why the container of this user is not to run, if it is not. `grace`: how long users may be missing from the directory.
    pub fn of(user: &UserListing, grace: Option<Duration>) -> Option<Self> {
        let missing = user.disabled.then_some(user.missing_since).flatten();
        let goes = |since: Timestamp| {
            let is_synchronised = user.source == Source::Ldap.to_string();
            Some(since.plus(grace.unwrap_or_default())).filter(|_| is_synchronised)
        };
        let removed_after = missing.and_then(goes);
        let (reason, since, by) = if user.disabled_here {
            let by = user
                .disabled_by
                .clone()
                .filter(|_| user.disabled_at.is_some());
            (StandstillReason::Disabled, user.disabled_at, by)
        } else if user.disabled {
            (
                StandstillReason::Missing,
                missing,
                Some("the directory".to_owned()),
            )
        } else {
            match user.desired? {
                Desired::Running => return None,
                Desired::Stopped => {
                    let by = user
                        .stopped_by
                        .clone()
                        .filter(|_| user.stopped_at.is_some());
                    (StandstillReason::Stopped, user.stopped_at, by)
                }
            }
        };
        let mut message = match reason {
            StandstillReason::Disabled => "the account is disabled".to_owned(),
            StandstillReason::Missing => {
                "the account is disabled: the directory does not have the user".to_owned()
            }
            StandstillReason::Stopped => "the container is stopped".to_owned(),
        };
        if let Some(by) = by.as_ref().filter(|_| reason != StandstillReason::Missing) {
            message += &format!(" by {by}");
        }
        if let Some(since) = since {
            message += &format!(", since {}", since.to_rfc3339());
        }
        if let (StandstillReason::Disabled, Some(since)) = (reason, missing) {
            message += &format!(
                "; the directory does not have the user since {}",
                since.to_rfc3339()
            );
        }
        if let Some(after) = removed_after {
            message += &format!(
                "; the first synchronisation after {} removes the account (ldap.removal_grace)",
                after.to_rfc3339()
            );
        }
        Some(Self {
            reason,
            since,
            by,
            removed_after,
            message,
        })
    }

    fn is_disabled(&self) -> bool {
        matches!(
            self.reason,
            StandstillReason::Disabled | StandstillReason::Missing
        )
    }
}

/// Severity, from what is as desired to what needs manual action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Ready,
    Behind,
    NotObserved,
    UnderWay,
    Unknown,
    NeedsAction,
}

/// An object of the user.
struct Part {
    kind: Kind,
    ready: Option<Condition>,
    is_behind: bool,
}

impl Part {
    fn new(kind: Kind, is_behind: bool, mut conditions: Vec<Condition>, paused: &[String]) -> Self {
        if paused
            .iter()
            .any(|name| name == "*" || name == kind.as_str())
        {
            condition::not_observed(&mut conditions);
        }
        Self {
            kind,
            ready: condition::find(&conditions, ConditionType::Ready).cloned(),
            is_behind,
        }
    }

    fn severity(&self) -> Severity {
        match &self.ready {
            None => Severity::NotObserved,
            Some(ready) => match ready.status {
                ConditionStatus::True if self.is_behind => Severity::Behind,
                ConditionStatus::True => Severity::Ready,
                ConditionStatus::False if ready.needs_action() => Severity::NeedsAction,
                ConditionStatus::False => Severity::UnderWay,
                ConditionStatus::Unknown => Severity::Unknown,
            },
        }
    }

    fn health(self, name: &str) -> Health {
        let object = ObjectRef {
            kind: self.kind,
            name: name.to_owned(),
        };
        let pending = |message: &str| {
            (
                ConditionStatus::Unknown,
                Reason::Pending,
                message.to_owned(),
                None,
            )
        };
        let (status, reason, message, since) = match self.ready {
            None => pending("not reconciled yet"),
            Some(ready) if ready.status == ConditionStatus::True && self.is_behind => {
                pending("the newest change was not observed yet")
            }
            Some(ready) => (
                ready.status,
                ready.reason,
                ready.message,
                Some(ready.last_transition_at),
            ),
        };
        Health {
            status,
            reason,
            message,
            remedy: reason.remedy(),
            since,
            object,
        }
    }
}

impl Health {
    /// Returns the health of this user; `paused`: names of paused reconcilers. Of equally bad objects the one counts that others wait for.
    pub fn of(user: &UserListing, standstill: Option<&Standstill>, paused: &[String]) -> Self {
        let mut worst = container(user, paused);
        let parts = &user.parts;
        for (kind, stored, is_behind) in [
            (
                Kind::SkillSet,
                &parts.skill_set_part,
                parts.skill_set_part_behind,
            ),
            (
                Kind::AgentConfig,
                &parts.agent_config_part,
                parts.agent_config_part_behind,
            ),
            (Kind::User, &parts.user_part, parts.user_part_behind),
        ] {
            let Some(stored) = stored else { continue };
            // What cannot be read says nothing of the object.
            let conditions = serde_json::from_str(stored).unwrap_or_default();
            let part = Part::new(kind, is_behind, conditions, paused);
            if part.severity() >= worst.severity() {
                worst = part;
            }
        }
        let is_ready = worst.severity() == Severity::Ready;
        let mut health = worst.health(&user.name);
        if let Some(standstill) = standstill.filter(|_| is_ready) {
            health.message.clone_from(&standstill.message);
            health.since = standstill.since;
            if standstill.is_disabled() {
                health.reason = Reason::Disabled;
                health.remedy = Reason::Disabled.remedy();
            }
        }
        health
    }
}

/// The container, or the user itself once it is gone.
fn container(user: &UserListing, paused: &[String]) -> Part {
    let StatusRow {
        observed_generation,
        conditions,
        ..
    } = &user.status;
    if user.generation == Generation::default() {
        let gone = Condition::not_ready(Reason::Terminating, "the container is removed");
        return Part::new(Kind::User, false, vec![gone], &[]);
    }
    let is_behind = *observed_generation < user.generation;
    Part::new(Kind::Container, is_behind, conditions.clone(), paused)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp::from_secs(1_778_500_000);

    fn user(said: Condition) -> UserListing {
        UserListing {
            uid: "u".to_owned().into(),
            name: "alice".to_owned(),
            source: "local".to_owned(),
            disabled: false,
            disabled_here: false,
            disabled_at: None,
            disabled_by: None,
            missing_since: None,
            stopped_at: None,
            stopped_by: None,
            parts: super::super::model::UserParts::default(),
            created_at: AT,
            last_login_at: None,
            deleted_at: None,
            desired: Some(Desired::Running),
            debug: false,
            image_ref: String::new(),
            generation: Generation(2),
            status: StatusRow {
                observed_generation: Generation(2),
                conditions: vec![said],
                ..StatusRow::default()
            },
            image_id: None,
            observed_image: None,
            observed_image_id: None,
            ip: None,
            used_bytes: None,
            used_complete: true,
        }
    }

    fn running() -> UserListing {
        user(Condition::ready(Reason::Running, "running and ready"))
    }

    fn stored(condition: Condition) -> Option<String> {
        Some(serde_json::to_string(&[condition]).unwrap())
    }

    #[test]
    fn user_is_as_well_as_the_worst_part() {
        let broken = || Condition::not_ready(Reason::InvalidUserConfig, "not JSON");
        let waiting = || user(Condition::not_ready(Reason::ConfigPending, "is written"));
        let crashing = || user(Condition::not_ready(Reason::CrashLoop, "ends"));
        let away = || Condition::unknown(Reason::Retrying, "the disk is away");
        let with = |mut user: UserListing, agent_config, skill_set| {
            user.parts.agent_config_part = agent_config;
            user.parts.skill_set_part = skill_set;
            user
        };
        let mut behind = running();
        behind.generation = Generation(3);
        let nobody_knows = with(running(), Some("[]".to_owned()), None);
        for (user, status, reason, object) in [
            (running(), "True", Reason::Running, "container/alice"),
            (behind, "Unknown", Reason::Pending, "container/alice"),
            (
                nobody_knows,
                "Unknown",
                Reason::Pending,
                "agent-config/alice",
            ),
            (
                with(running(), stored(broken()), None),
                "False",
                Reason::InvalidUserConfig,
                "agent-config/alice",
            ),
            (
                with(waiting(), stored(broken()), stored(away())),
                "False",
                Reason::InvalidUserConfig,
                "agent-config/alice",
            ),
            (
                with(waiting(), None, stored(away())),
                "Unknown",
                Reason::Retrying,
                "skill-set/alice",
            ),
            (
                with(crashing(), None, stored(away())),
                "False",
                Reason::CrashLoop,
                "container/alice",
            ),
            (
                with(crashing(), stored(broken()), None),
                "False",
                Reason::InvalidUserConfig,
                "agent-config/alice",
            ),
        ] {
            let health = Health::of(&user, None, &[]);
            let said = (
                health.status.to_string(),
                health.reason,
                health.object.to_string(),
            );
            assert_eq!(said, (status.to_owned(), reason, object.to_owned()));
            assert_eq!(health.remedy, reason.remedy());
        }
        let paused = Health::of(&running(), None, &["container".to_owned()]);
        assert_eq!(paused.reason, Reason::PausedByOperator);
    }

    #[test]
    fn standstill_says_why_since_when_and_by_whom() {
        let (at, later) = (
            AT.to_rfc3339(),
            AT.plus(Duration::from_secs(3600)).to_rfc3339(),
        );
        let stands = |change: &dyn Fn(&mut UserListing)| {
            let mut user = user(Condition::ready(Reason::Stopped, "stopped as asked"));
            user.desired = Some(Desired::Stopped);
            change(&mut user);
            let standstill = Standstill::of(&user, Some(Duration::from_secs(3600)));
            let health = Health::of(&user, standstill.as_ref(), &[]);
            let said = standstill.map(|standstill| {
                assert_eq!(health.message, standstill.message);
                (standstill.reason.to_string(), standstill.message)
            });
            (said, health.reason)
        };
        let said = |reason: &str, message: String| Some((reason.to_owned(), message));
        assert_eq!(
            stands(&|user| user.desired = Some(Desired::Running)),
            (None, Reason::Stopped)
        );
        assert_eq!(
            stands(&|_| {}),
            (
                said("stopped", "the container is stopped".to_owned()),
                Reason::Stopped
            )
        );
        assert_eq!(
            stands(&|user| {
                user.stopped_at = Some(AT);
                user.stopped_by = Some("root".to_owned());
            }),
            (
                said(
                    "stopped",
                    format!("the container is stopped by root, since {at}")
                ),
                Reason::Stopped
            )
        );
        let disable = |user: &mut UserListing| {
            user.disabled = true;
            user.disabled_here = true;
            user.disabled_at = Some(AT);
            user.disabled_by = Some("root".to_owned());
        };
        let by_root = format!("the account is disabled by root, since {at}");
        assert_eq!(
            stands(&disable),
            (said("disabled", by_root.clone()), Reason::Disabled)
        );
        let going = format!(
            "; the first synchronisation after {later} removes the account (ldap.removal_grace)"
        );
        assert_eq!(
            stands(&|user| {
                disable(user);
                user.source = "ldap".to_owned();
                user.missing_since = Some(AT);
            }),
            (
                said(
                    "disabled",
                    format!("{by_root}; the directory does not have the user since {at}{going}")
                ),
                Reason::Disabled
            )
        );
        assert_eq!(
            stands(&|user| {
                user.disabled = true;
                user.source = "ldap".to_owned();
                user.missing_since = Some(AT);
            }),
            (
                said(
                    "missing",
                    format!(
                        "the account is disabled: the directory does not have the user, since {at}{going}"
                    )
                ),
                Reason::Disabled
            )
        );
    }
}
