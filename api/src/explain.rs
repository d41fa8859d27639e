//! Conditions as answers show them: with what a person can do about each.

use schema::condition::Condition;
use serde::Serialize;
use utoipa::ToSchema;

/// A condition with its remedy.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ExplainedCondition)]
pub struct Explained {
    /// The condition.
    #[serde(flatten)]
    condition: Condition,
    /// One line for a person; empty when there is nothing to do.
    remedy: &'static str,
}

/// Adds the remedies.
pub fn explained(conditions: &[Condition]) -> Vec<Explained> {
    conditions
        .iter()
        .map(|condition| Explained {
            condition: condition.clone(),
            remedy: condition.reason.remedy(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use schema::condition::Reason;

    use super::*;

    #[test]
    fn a_condition_says_what_to_do() {
        let conditions = [Condition::not_ready(
            Reason::NeedsRoot,
            "the agent needs root",
        )];
        let shown = serde_json::to_value(explained(&conditions)).unwrap();
        assert_eq!(shown[0]["type"], "Ready");
        assert_eq!(shown[0]["reason"], "NeedsRoot");
        assert_eq!(shown[0]["remedy"], Reason::NeedsRoot.remedy());
    }
}
