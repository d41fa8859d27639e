//! What is wrong with an object, since when, what is tried next and when, and how to force it.

use schema::ids::Timestamp;
use serde_json::Value;

use crate::cli::compare::{is_behind, summary, troubled};
use crate::cli::output::cell::{at, text};
use crate::cli::output::time::moment;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// In a line.
    pub what: String,
    /// Since when, if that is known.
    pub since: Option<Timestamp>,
    /// What can be done about it; empty when there is nothing to do.
    pub remedy: String,
}

/// Who suspended an object's reconciliation; the widest, since what that hides must be resumed after it.
fn paused(object: &Value, overview: &Value) -> Option<&'static str> {
    let reconcilers = at(overview, "reconcilers").as_array();
    let mut reconcilers = reconcilers.into_iter().flatten();
    if at(overview, "paused") == true {
        Some("all reconciliation is paused")
    } else if reconcilers.any(|one| one["name"] == object["kind"] && one["paused"] == true) {
        Some("the whole reconciler is paused")
    } else {
        (at(object, "paused") == true).then_some("the object is paused")
    }
}

/// The worst of what belongs to the object, if that is another one which is not ready.
fn of_part(object: &Value) -> Option<Trouble> {
    let health = at(object, "health");
    let part = text(health, "object");
    let is_other = health.is_object() && part != text(object, "object");
    (is_other && health["status"] != "True").then(|| Trouble {
        what: format!(
            "{part}: {}: {}",
            text(health, "reason"),
            text(health, "message")
        ),
        since: moment(health, "since"),
        remedy: text(health, "remedy"),
    })
}

/// Everything that is not as it should be.
pub fn troubles(object: &Value, overview: &Value) -> Vec<Trouble> {
    let conditions = troubled(object).map(|found| Trouble {
        what: summary(found),
        since: moment(found, "last_transition_at"),
        remedy: text(found, "remedy"),
    });
    let mut troubles: Vec<Trouble> = conditions.collect();
    troubles.extend(of_part(object));
    let mut add = |what: String, since| {
        troubles.push(Trouble {
            what,
            since,
            remedy: String::new(),
        });
    };
    if at(object, "conditions.Ready").is_null() {
        add("not observed yet".to_owned(), moment(object, "created_at"));
    } else if is_behind(object) {
        let what = format!(
            "the status is of generation {}; generation {} was not observed yet",
            text(object, "observed_generation"),
            text(object, "generation")
        );
        add(what, None);
    }
    if let Some(since) = moment(object, "deleted_at") {
        let what = match text(object, "finalizers").as_str() {
            "" => "being removed".to_owned(),
            names => format!("being removed; still to clean up: {names}"),
        };
        add(what, Some(since));
    }
    if at(object, "conditions.Paused").is_null()
        && let Some(what) = paused(object, overview)
    {
        add(what.to_owned(), None);
    }
    troubles
}

/// What the server tries next; absent when the object is as desired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// What is tried next.
    pub next: String,
    /// When, if that moment is known.
    pub at: Option<Timestamp>,
    /// The command that makes it happen now.
    pub force: String,
}

impl Outlook {
    /// As the server reports it; `command`: how a command line must begin to reach it.
    pub fn of(object: &Value, command: &str) -> Option<Self> {
        let next = at(object, "next").as_str()?;
        let force = at(object, "force.command").as_str()?;
        let arguments = force.strip_prefix("agentyard").unwrap_or(force);
        Some(Self {
            next: next.to_owned(),
            at: moment(object, "next_look_at"),
            force: format!("{command}{arguments}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);

    #[test]
    fn the_widest_pause_is_reported() {
        let object = json!({"kind": "container", "paused": true});
        let overview = |all: bool, own: bool| {
            json!({"paused": all, "reconcilers": [
                {"name": "user", "paused": true}, {"name": "container", "paused": own}]})
        };
        let by = |all, own| paused(&object, &overview(all, own));
        assert_eq!(by(true, true), Some("all reconciliation is paused"));
        assert_eq!(by(false, true), Some("the whole reconciler is paused"));
        assert_eq!(by(false, false), Some("the object is paused"));
    }

    #[test]
    fn the_next_step_comes_with_a_command_that_reaches_the_server() {
        let object = json!({
            "next": "it is observed", "next_look_at": NOW.to_rfc3339(),
            "force": {"command": "agentyard retry container/a"}});
        let outlook = Outlook {
            next: "it is observed".to_owned(),
            at: Some(NOW),
            force: "agentyard --admin-socket /s retry container/a".to_owned(),
        };
        assert_eq!(
            Outlook::of(&object, "agentyard --admin-socket /s"),
            Some(outlook)
        );
        let fine = json!({"next": null, "next_look_at": null, "force": null});
        assert_eq!(Outlook::of(&fine, "agentyard"), None);
    }

    #[test]
    fn what_conditions_do_not_say_is_reported_too() {
        let whats = |object: Value| -> Vec<String> {
            let troubles = troubles(&object, &json!({}));
            troubles.into_iter().map(|trouble| trouble.what).collect()
        };
        assert_eq!(whats(json!({"conditions": []})), ["not observed yet"]);
        let ready = json!([{"type": "Ready", "status": "True", "reason": "Running"}]);
        assert_eq!(whats(json!({"conditions": ready})), [""; 0]);
        let open = json!([
            {"type": "Ready", "status": "True", "reason": "Converged"},
            {"type": "HostRestricted", "status": "False", "reason": "HostOpen", "message": "no rights"},
        ]);
        assert_eq!(
            whats(json!({"conditions": open})),
            ["HostRestricted=False HostOpen: no rights"]
        );
        let of = |object: &str, status: &str| {
            let health = json!({"status": status, "reason": "CrashLoop", "message": "ends", "object": object});
            whats(json!({"object": "user/alice", "conditions": ready, "health": health}))
        };
        assert_eq!(
            of("container/alice", "False"),
            ["container/alice: CrashLoop: ends"]
        );
        assert_eq!(of("container/alice", "True"), [""; 0]);
        assert_eq!(
            of("user/alice", "False"),
            [""; 0],
            "its own conditions say it"
        );
        let behind = whats(json!({"conditions": ready, "generation": 3, "observed_generation": 2}));
        assert!(
            behind[0].contains("generation 3 was not observed"),
            "{behind:?}"
        );
        let going =
            json!({"conditions": ready, "deleted_at": NOW.to_rfc3339(), "finalizers": ["user"]});
        assert_eq!(whats(going), ["being removed; still to clean up: user"]);
    }
}
