//! What is wrong with an object, since when, what is tried next and when, and how to force it.

use std::time::Duration;

use schema::condition::Reason;
use schema::ids::Timestamp;
use serde_json::Value;

use crate::cli::compare::NextPass;
use crate::cli::kinds::condition;
use crate::cli::output::cell::plain;
use crate::cli::output::time::{moment, relative, short};

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

/// When it is looked at next.
pub fn next_look(object: &Value, overview: &Value, now: Timestamp) -> String {
    if paused(object, overview).is_some() {
        return "not before it is resumed".to_owned();
    }
    let known = moment(object, "next_look_at").or_else(|| moment(object, "next_attempt_at"));
    if let Some(at) = known {
        if at <= now {
            return "now".to_owned();
        }
        return relative(now, at);
    }
    let reason = condition(object, "Ready").and_then(|ready| ready.get("reason")?.as_str());
    let reason: Option<Reason> = reason.and_then(|reason| reason.parse().ok());
    if reason == Some(Reason::EngineUnavailable) {
        return "as soon as the engine is back, by itself".to_owned();
    }
    let after = object
        .get("plan")
        .and_then(|plan| plan.get("requeue_after_ms")?.as_u64());
    match after {
        Some(0) => "at once".to_owned(),
        Some(millis) => format!("within {}", short(Duration::from_millis(millis.max(1000)))),
        None => "with the next full pass (every minute), and at once after a change".to_owned(),
    }
}

/// What is tried next.
pub fn next_step(object: &Value, overview: &Value) -> String {
    if paused(object, overview).is_some() {
        return "nothing, while it is paused".to_owned();
    }
    if let Some(next) = object.get("next").and_then(Value::as_str) {
        return next.to_owned();
    }
    match NextPass::of(object) {
        NextPass::Unknown(why) => format!("the same again; it fails now with: {why}"),
        NextPass::Steps(steps) if steps.is_empty() => {
            "looking again; no step can or need be taken now".to_owned()
        }
        NextPass::Steps(steps) => steps.join(", then "),
    }
}

/// The command that makes it go on.
pub fn force(object: &Value, overview: &Value, command: &str) -> String {
    let field = |key: &str| plain(object.get(key).unwrap_or(&Value::Null));
    let ready = condition(object, "Ready").and_then(|ready| ready.get("reason")?.as_str());
    match paused(object, overview) {
        // A replacement that failed is not made again by looking: only a restart makes a fresh one.
        None if ready == Some("ReplacementFailed") => {
            format!("{command} restart {}", field("object"))
        }
        None => format!("{command} retry {}", field("object")),
        Some(Paused::Object) => format!("{command} resume {}", field("object")),
        Some(Paused::Reconciler) => format!("{command} resume --reconciler {}", field("kind")),
        Some(Paused::All) => format!("{command} resume --all"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);

    #[test]
    fn the_widest_pause_is_the_one_to_lift_first() {
        let object = json!({"object": "container/a", "kind": "container", "paused": true});
        let overview = |all: bool, own: bool| {
            json!({"paused": all, "reconcilers": [
                {"name": "user", "paused": true}, {"name": "container", "paused": own}]})
        };
        let force = |overview| force(&object, &overview, "agentyard");
        assert_eq!(force(overview(true, true)), "agentyard resume --all");
        assert_eq!(
            force(overview(false, true)),
            "agentyard resume --reconciler container"
        );
        assert_eq!(
            force(overview(false, false)),
            "agentyard resume container/a"
        );
        assert_eq!(
            next_look(&object, &overview(false, false), NOW),
            "not before it is resumed"
        );
    }

    #[test]
    fn a_failed_replacement_is_forced_by_a_restart() {
        let ready = json!([{"type": "Ready", "status": "True", "reason": "ReplacementFailed"}]);
        let object = json!({"object": "container/a", "conditions": ready});
        assert_eq!(
            force(&object, &json!({}), "agentyard"),
            "agentyard restart container/a"
        );
    }

    #[test]
    fn the_next_look_is_known_in_every_state() {
        let none = json!({});
        let look = |object: Value| next_look(&object, &none, NOW);
        let ready = |reason: &str| json!([{"type": "Ready", "reason": reason}]);
        let later = NOW.plus(Duration::from_secs(30)).to_rfc3339();
        assert_eq!(
            look(json!({"next_attempt_at": later})),
            "in 30s (2026-05-11T11:47:10Z)"
        );
        assert_eq!(look(json!({"next_attempt_at": NOW.to_rfc3339()})), "now");
        assert!(look(json!({"conditions": ready("EngineUnavailable")})).contains("engine is back"));
        assert_eq!(
            look(json!({"plan": {"requeue_after_ms": 4000}})),
            "within 4s"
        );
        assert!(look(json!({"conditions": ready("ImageMissing")})).contains("next full pass"));
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
