//! What is wrong with an object, since when, what is tried next and when, and how to force it.

use schema::ids::Timestamp;
use serde_json::Value;

use crate::cli::kinds::condition;
use crate::cli::output::cell::plain;
use crate::cli::output::time::moment;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// In a line.
    pub what: String,
    /// Since when, if that is known.
    pub since: Option<Timestamp>,
    /// What a person can do about it; empty when there is nothing to do.
    pub remedy: String,
}

/// Who paused an object's passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paused {
    /// The object itself.
    Object,
    /// Its reconciler.
    Reconciler,
    /// Everything.
    All,
}

/// Whether passes are switched off, and how widely.
pub fn paused(object: &Value, overview: &Value) -> Option<Paused> {
    let is_set = |value: &Value| value.get("paused").and_then(Value::as_bool) == Some(true);
    let kind = object.get("kind");
    let reconcilers = overview.get("reconcilers").and_then(Value::as_array);
    let mut own = reconcilers
        .into_iter()
        .flatten()
        .filter(|r| r.get("name") == kind);
    // The widest first: what it hides must be resumed after it.
    if is_set(overview) {
        Some(Paused::All)
    } else if own.any(is_set) {
        Some(Paused::Reconciler)
    } else {
        is_set(object).then_some(Paused::Object)
    }
}

/// Everything that is not as it should be.
pub fn troubles(object: &Value, overview: &Value) -> Vec<Trouble> {
    let mut troubles = Vec::new();
    for (of_type, fine) in [("Ready", "True"), ("Stalled", "False"), ("Paused", "False")] {
        let Some(found) = condition(object, of_type) else {
            continue;
        };
        let text = |key: &str| plain(found.get(key).unwrap_or(&Value::Null));
        if text("status") != fine {
            let what = format!(
                "{of_type}={} {}: {}",
                text("status"),
                text("reason"),
                text("message")
            );
            troubles.push(Trouble {
                what: what.trim_end_matches([':', ' ']).to_owned(),
                since: moment(found, "last_transition_at"),
                remedy: text("remedy"),
            });
        }
    }
    let plain_trouble = |what: String, since| Trouble {
        what,
        since,
        remedy: String::new(),
    };
    if condition(object, "Ready").is_none() {
        let created = moment(object, "created_at");
        troubles.push(plain_trouble(
            "no pass has looked at it yet".to_owned(),
            created,
        ));
    } else {
        let number = |key: &str| object.get(key).and_then(Value::as_i64).unwrap_or(0);
        let (wanted, seen) = (number("generation"), number("observed_generation"));
        if seen < wanted {
            let what = format!(
                "what is said here is of generation {seen}; generation {wanted} is wanted and was not observed yet"
            );
            troubles.push(plain_trouble(what, None));
        }
    }
    if let Some(since) = moment(object, "deleted_at") {
        let finalizers = plain(object.get("finalizers").unwrap_or(&Value::Null));
        let what = match finalizers.as_str() {
            "" => "it is being removed".to_owned(),
            names => format!("it is being removed; still to clean up: {names}"),
        };
        troubles.push(plain_trouble(what, Some(since)));
    }
    let said = condition(object, "Paused").is_some();
    if let (false, Some(by)) = (said, paused(object, overview)) {
        let what = match by {
            Paused::Object => "its passes are paused",
            Paused::Reconciler => "the passes of its whole reconciler are paused",
            Paused::All => "all passes are paused",
        };
        troubles.push(plain_trouble(what.to_owned(), None));
    }
    troubles
}

/// What the server says of how it goes on; absent when the object is as desired.
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
    /// As the server says; `command`: how a command line must begin to reach it.
    pub fn of(object: &Value, command: &str) -> Option<Self> {
        let next = object.get("next")?.as_str()?;
        let force = object.pointer("/force/command")?.as_str()?;
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
    fn the_widest_pause_is_the_one_that_is_told() {
        let object = json!({"kind": "container", "paused": true});
        let overview = |all: bool, own: bool| {
            json!({"paused": all, "reconcilers": [
                {"name": "user", "paused": true}, {"name": "container", "paused": own}]})
        };
        let by = |all, own| paused(&object, &overview(all, own));
        assert_eq!(by(true, true), Some(Paused::All));
        assert_eq!(by(false, true), Some(Paused::Reconciler));
        assert_eq!(by(false, false), Some(Paused::Object));
    }

    #[test]
    fn the_server_says_how_it_goes_on_and_the_command_reaches_it() {
        let object = json!({
            "next": "it is looked at", "next_look_at": NOW.to_rfc3339(),
            "force": {"command": "agentyard retry container/a"}});
        let outlook = Outlook {
            next: "it is looked at".to_owned(),
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
    fn what_is_not_said_by_conditions_is_said_all_the_same() {
        let whats = |object: Value| -> Vec<String> {
            let troubles = troubles(&object, &json!({}));
            troubles.into_iter().map(|trouble| trouble.what).collect()
        };
        assert_eq!(
            whats(json!({"conditions": []})),
            ["no pass has looked at it yet"]
        );
        let ready = json!([{"type": "Ready", "status": "True", "reason": "Running"}]);
        assert_eq!(whats(json!({"conditions": ready})), [""; 0]);
        let behind = whats(json!({"conditions": ready, "generation": 3, "observed_generation": 2}));
        assert!(behind[0].contains("generation 3 is wanted"), "{behind:?}");
        let going =
            json!({"conditions": ready, "deleted_at": NOW.to_rfc3339(), "finalizers": ["user"]});
        assert_eq!(
            whats(going),
            ["it is being removed; still to clean up: user"]
        );
    }
}
