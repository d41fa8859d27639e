//! Why an object is not as it was waited for.

use schema::condition::Reason;
use serde_json::Value;

use crate::cli::compare::{summary, troubled};
use crate::cli::output::cell::{at, number, text};
use crate::cli::output::clean::clean;

/// Why an object is not ready.
pub struct Stuck {
    /// Its state, in a line.
    pub state: String,
    /// What to do about it.
    pub remedy: String,
    /// It goes on only after somebody has acted.
    pub needs_action: bool,
}

impl Stuck {
    /// What an object's conditions say, the worst of them.
    pub fn of(object: &Value) -> Self {
        let needs_action = |found: &Value| {
            let reason: Option<Reason> = text(found, "reason").parse().ok();
            reason.is_some_and(Reason::needs_action)
        };
        // Once it is resumed, that it was paused is over.
        let resumed = !text(object, "force.request").ends_with("/resume");
        let is_over = |found: &Value| resumed && text(found, "reason") == "PausedByOperator";
        let troubles = || troubled(object).filter(|found| !is_over(found));
        let worst = troubles().find(|found| needs_action(found));
        let Some(worst) = worst.or_else(|| troubles().next()) else {
            let is_behind = number(object, "observed_generation") < number(object, "generation");
            let state = match is_behind {
                _ if !at(object, "deleted_at").is_null() => "it is being removed",
                true => "its newest generation was not observed yet",
                false => "it is as desired, and it is not being removed",
            };
            return Self {
                state: state.to_owned(),
                remedy: String::new(),
                needs_action: false,
            };
        };
        Self {
            state: summary(worst),
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
            "needs manual action"
        } else {
            "waits"
        };
        Some(format!(
            "{address} {who}: {}\n  {}",
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
    fn object_without_trouble_says_what_it_is() {
        for (object, says) in [
            (
                json!({"generation": 2, "observed_generation": 1}),
                "not observed yet",
            ),
            (
                json!({"generation": 2, "observed_generation": 2}),
                "not being removed",
            ),
            (
                json!({"generation": 2, "deleted_at": "2026-05-11T11:46:40Z"}),
                "is being removed",
            ),
        ] {
            let state = Stuck::of(&object).state;
            assert!(state.contains(says), "{state}");
        }
    }

    #[test]
    fn manual_action_is_shown_with_its_remedy() {
        let missing = json!({"conditions": [
            {"type": "Ready", "status": "False", "reason": "ImageMissing",
             "message": "no\x1b image", "remedy": "Pull it."}]});
        let stuck = Stuck::of(&missing);
        assert!(stuck.needs_action);
        let note = stuck.note("container/a").unwrap();
        assert_eq!(
            note,
            "container/a needs manual action: Ready=False ImageMissing: no\\u{1b} image\n  Pull it."
        );
        let starting = json!({"conditions": [
            {"type": "Ready", "status": "False", "reason": "Progressing",
             "message": "x", "remedy": "Wait; the next pass continues by itself."}]});
        assert!(Stuck::of(&starting).note("container/a").is_none());
        let mut paused = json!({"conditions": [
            {"type": "Ready", "status": "Unknown", "reason": "PausedByOperator", "remedy": "Resume it."},
            {"type": "Paused", "status": "True", "reason": "PausedByOperator", "remedy": "Resume it."}],
            "force": {"request": "POST /api/admin/reconcile/resume"}});
        assert!(Stuck::of(&paused).needs_action);
        paused["force"]["request"] = json!("POST /api/admin/reconcile/retry");
        let stuck = Stuck::of(&paused);
        assert!(!stuck.needs_action && stuck.note("container/a").is_none());
    }
}
