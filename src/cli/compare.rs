//! Desired against observed, as the server tells them of one object.

use serde_json::Value;

use super::kinds::condition;
use super::output::cell::plain;

/// One thing that is wanted, and what was seen of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// What it is.
    pub field: String,
    /// As it shall be.
    pub desired: String,
    /// As it was seen; `None` when nothing is known to compare with.
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

/// What an object's answer says of wanted and seen, the comparable first.
pub fn pairs(object: &Value) -> Vec<Pair> {
    let field = |key: &str| plain(object.get(key).unwrap_or(&Value::Null));
    let ready = condition(object, "Ready").unwrap_or(&Value::Null);
    let of_ready = |key: &str| ready.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut pairs = vec![Pair::new(
        "generation",
        &field("generation"),
        &field("observed_generation"),
    )];
    if object.get("deleted_at").is_some_and(|at| !at.is_null()) {
        pairs.push(Pair::new("existence", "gone", "being removed"));
    }
    let seen = match of_ready("status") {
        "" => "not observed yet".to_owned(),
        "True" => "True".to_owned(),
        status => format!("{status} ({})", of_ready("reason")),
    };
    pairs.push(Pair::new("ready", "True", &seen));
    let desired = object.get("desired").and_then(Value::as_object);
    let observed = object.get("observed").unwrap_or(&Value::Null);
    let stands = object.pointer("/desired/running") == Some(&Value::Bool(false));
    for (key, value) in desired.into_iter().flatten() {
        let seen = match key.as_str() {
            // A stopped container has no image; what is remembered is of the last one.
            "image" if stands => None,
            "image" => observed.get("image").or_else(|| observed.get("image_ref")),
            key => observed.get(key),
        };
        let seen = seen.filter(|seen| !seen.is_null());
        pairs.push(Pair {
            field: key.clone(),
            desired: plain(value),
            observed: seen.map(plain),
            // What is not wanted in particular may be anything.
            differs: !value.is_null() && seen.is_some_and(|seen| !same(value, seen)),
        });
    }
    pairs
}

/// What was seen and has no wanted counterpart.
pub fn facts(object: &Value) -> Vec<(String, String)> {
    let observed = object.get("observed").and_then(Value::as_object);
    let facts = observed.into_iter().flatten();
    facts
        .map(|(key, value)| (key.clone(), plain(value)))
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

/// What the next pass would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextPass {
    /// These steps.
    Steps(Vec<String>),
    /// It cannot be said, for this reason.
    Unknown(String),
}

impl NextPass {
    /// As the server's dry run says.
    pub fn of(object: &Value) -> Self {
        let plan = object.get("plan").unwrap_or(&Value::Null);
        if let Some(error) = plan.get("error").and_then(Value::as_str) {
            return Self::Unknown(error.to_owned());
        }
        let actions = plan.get("actions").and_then(Value::as_array);
        Self::Steps(actions.into_iter().flatten().map(plain).collect())
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
