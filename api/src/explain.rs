//! Conditions as answers show them: with what a person can do about each.

use schema::condition::{Condition, Reason};
use schema::event::Event;
use serde::Serialize;
use utoipa::ToSchema;

/// A condition with its remedy.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ExplainedCondition)]
pub struct Explained {
    /// The condition.
    #[serde(flatten)]
    condition: Condition,
    /// How to fix it; empty when there is nothing to do.
    remedy: String,
}

/// The same for conditions that nobody else needs.
pub fn explained_owned(object: &str, conditions: Vec<Condition>) -> Vec<Explained> {
    conditions
        .into_iter()
        .map(|condition| Explained {
            remedy: condition.reason.remedy_for(object),
            condition,
        })
        .collect()
}

/// An event with the remedy of its reason.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ExplainedEvent {
    /// The event.
    #[serde(flatten)]
    event: Event,
    /// How to fix it; empty when there is nothing to do.
    remedy: String,
}

/// Adds the remedies.
pub fn explained_events(events: Vec<Event>) -> Vec<ExplainedEvent> {
    events
        .into_iter()
        .map(|event| ExplainedEvent {
            remedy: event
                .reason
                .parse()
                .map(|reason: Reason| reason.remedy_for(&event.object))
                .unwrap_or_default(),
            event,
        })
        .collect()
}

/// Adds the remedies to conditions of `object`, which is `kind/name`.
pub fn explained(object: &str, conditions: &[Condition]) -> Vec<Explained> {
    explained_owned(object, conditions.to_vec())
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
        let shown = serde_json::to_value(explained("container/alice", &conditions)).unwrap();
        assert_eq!(shown[0]["type"], "Ready");
        assert_eq!(shown[0]["reason"], "NeedsRoot");
        assert_eq!(shown[0]["remedy"], Reason::NeedsRoot.remedy());
    }
}
