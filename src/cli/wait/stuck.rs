//! Why an object is not as it was waited for.

use schema::condition::Reason;
use serde_json::Value;

use super::goal::TYPES;
use crate::cli::kinds::condition;
use crate::cli::output::clean::clean;

/// Why an object is not ready.
pub struct Stuck {
    /// Its state, in a line.
    pub state: String,
    remedy: String,
    /// It goes on only when somebody does something.
    pub needs_action: bool,
}

impl Stuck {
    /// What an object's conditions say, the worst of them.
    pub fn of(object: &Value) -> Self {
        let text = |condition: &Value, key: &str| {
            condition
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let troubles = TYPES.iter().filter_map(|of_type| {
            let found = condition(object, of_type)?;
            let fine = if *of_type == "Ready" { "True" } else { "False" };
            (text(found, "status") != fine).then_some(found)
        });
        let mut worst: Option<&Value> = None;
        let needs_action = |found: &Value| {
            let reason: Option<Reason> = text(found, "reason").parse().ok();
            reason.is_some_and(Reason::needs_action)
        };
        for trouble in troubles {
            if worst.is_none_or(|worst| !needs_action(worst) && needs_action(trouble)) {
                worst = Some(trouble);
            }
        }
        let Some(worst) = worst else {
            return Self {
                state: "was not observed yet in this generation".to_owned(),
                remedy: String::new(),
                needs_action: false,
            };
        };
        Self {
            state: format!(
                "is {}={} ({}): {}",
                text(worst, "type"),
                text(worst, "status"),
                text(worst, "reason"),
                text(worst, "message")
            ),
            remedy: text(worst, "remedy"),
            needs_action: needs_action(worst),
        }
    }

    /// What to say when it does not just take its time.
    pub fn note(&self, address: &str) -> Option<String> {
        if self.remedy.is_empty() || self.remedy.starts_with("Wait") {
            return None;
        }
        let who = if self.needs_action {
            "needs a person"
        } else {
            "waits"
        };
        Some(format!(
            "{address} {who}: it {}\n  {}",
            clean(&self.state),
            clean(&self.remedy)
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_needs_action_is_said_with_its_remedy() {
        let missing = json!({"conditions": [
            {"type": "Ready", "status": "False", "reason": "ImageMissing",
             "message": "no\x1b image", "remedy": "Pull it."}]});
        let stuck = Stuck::of(&missing);
        assert!(stuck.needs_action);
        let note = stuck.note("container/a").unwrap();
        assert_eq!(
            note,
            "container/a needs a person: it is Ready=False (ImageMissing): no\\u{1b} image\n  Pull it."
        );
        let starting = json!({"conditions": [
            {"type": "Ready", "status": "False", "reason": "Progressing",
             "message": "x", "remedy": "Wait; the next pass continues by itself."}]});
        assert!(Stuck::of(&starting).note("container/a").is_none());
    }
}
