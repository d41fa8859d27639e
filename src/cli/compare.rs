//! Desired against observed, as the server reports them of one object.

use schema::ids::Timestamp;
use serde_json::Value;

use super::output::cell::{at, plain, text};
use super::output::time::{moment, relative};

/// The types of conditions, each with the status that it has when nothing is wrong.
const FINE: [(&str, &str); 5] = [
    ("Ready", "True"),
    ("Stalled", "False"),
    ("Paused", "False"),
    ("WithinQuota", "True"),
    ("HostRestricted", "True"),
];

/// The conditions that are not as they should be.
pub fn troubled(object: &Value) -> impl Iterator<Item = &Value> {
    FINE.iter().filter_map(|(of_type, fine)| {
        let found = at(object, &format!("conditions.{of_type}"));
        (!found.is_null() && found["status"] != *fine).then_some(found)
    })
}

/// A condition in a line.
pub fn summary(condition: &Value) -> String {
    let [of_type, status, reason, message] =
        ["type", "status", "reason", "message"].map(|key| text(condition, key));
    let line = format!("{of_type}={status} {reason}: {message}");
    line.trim_end_matches([':', ' ']).to_owned()
}

/// Whether the newest generation was not observed yet.
pub fn is_behind(object: &Value) -> bool {
    object["observed_generation"].as_i64() < object["generation"].as_i64()
}

/// One desired field, and what was observed of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// What it is.
    pub field: String,
    /// The desired value.
    pub desired: String,
    /// The observed value; `None` when nothing is known to compare with.
    pub observed: Option<String>,
    /// Whether they are known to differ.
    pub differs: bool,
}

impl Pair {
    fn new(field: &str, desired: &str, observed: &str) -> Self {
        Self {
            field: field.to_owned(),
            desired: desired.to_owned(),
            observed: Some(observed.to_owned()),
            differs: desired != observed,
        }
    }
}

/// A number is the same however it is written.
fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => plain(a) == plain(b),
    }
}

/// Things that have fields themselves are shown in a table of their own.
fn is_table(value: &Value) -> bool {
    let items = value.as_array();
    items.is_some_and(|items| items.iter().any(Value::is_object))
}

/// The desired fields of an object beside the observed ones, the comparable first.
pub fn pairs(object: &Value) -> Vec<Pair> {
    let mut pairs = vec![Pair::new(
        "generation",
        &text(object, "generation"),
        &text(object, "observed_generation"),
    )];
    if !at(object, "deleted_at").is_null() {
        pairs.push(Pair::new("existence", "gone", "being removed"));
    }
    let ready = match text(object, "conditions.Ready.status").as_str() {
        "" => "not observed yet".to_owned(),
        "True" => "True".to_owned(),
        status => format!("{status} ({})", text(object, "conditions.Ready.reason")),
    };
    pairs.push(Pair::new("ready", "True", &ready));
    let observed = at(object, "observed");
    let stopped = at(object, "desired.running") == false;
    for (key, value) in at(object, "desired").as_object().into_iter().flatten() {
        if is_table(value) {
            continue;
        }
        let found = match key.as_str() {
            // A stopped container has no image; what is remembered is that of the last one.
            "image" if stopped => &Value::Null,
            "image" if observed["image"].is_null() => &observed["image_ref"],
            key => &observed[key],
        };
        let found = Some(found).filter(|found| !found.is_null());
        pairs.push(Pair {
            field: key.clone(),
            desired: plain(value),
            observed: found.map(plain),
            // Where nothing in particular is desired, anything will do.
            differs: !value.is_null() && found.is_some_and(|found| !same(value, found)),
        });
    }
    pairs
}

/// What was observed, as it is reported.
pub fn facts(object: &Value) -> Vec<(String, String)> {
    let facts = at(object, "observed").as_object().into_iter().flatten();
    facts
        .filter(|(_, value)| !is_table(value))
        .map(|(key, value)| (key.clone(), plain(value)))
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

/// What the next reconciliation would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextPass {
    /// These steps.
    Steps(Vec<String>),
    /// It is not known, for this reason.
    Unknown(String),
}

impl NextPass {
    /// As the server's dry run says.
    pub fn of(object: &Value) -> Self {
        if let Some(error) = at(object, "plan.error").as_str() {
            return Self::Unknown(error.to_owned());
        }
        let actions = at(object, "plan.actions").as_array();
        Self::Steps(actions.into_iter().flatten().map(plain).collect())
    }

    /// That nothing would be done now. Where a failure waits, that does not mean that nothing will be.
    pub fn idle(object: &Value, now: Timestamp) -> String {
        match moment(object, "next_attempt_at") {
            Some(at) => format!("no steps before the next attempt, {}", relative(now, at)),
            None => "no steps".to_owned(),
        }
    }

    /// Whether there is nothing to do, for sure.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Steps(steps) if steps.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_is_not_a_difference_and_not_nothing_to_do() {
        let object = json!({
            "generation": 3, "observed_generation": 3,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Running"}],
            "desired": {"image": "a:2", "running": true, "cpu": 1, "memory": null},
            "observed": {"image_ref": "a:1", "running": null, "cpu": 1.0, "memory": 5},
            "plan": {"error": "the engine is away"},
        });
        let differing = |object: &Value| -> Vec<String> {
            let pairs = pairs(object).into_iter().filter(|pair| pair.differs);
            pairs.map(|pair| pair.field).collect()
        };
        assert_eq!(differing(&object), ["image"]);
        let mut stopped = object.clone();
        stopped["desired"]["running"] = json!(false);
        assert_eq!(differing(&stopped), [""; 0]);
        assert!(!NextPass::of(&object).is_empty());
        assert!(NextPass::of(&json!({"plan": null})).is_empty());
        assert!(!NextPass::of(&json!({"plan": {"actions": ["Start"]}})).is_empty());
    }
}
