//! Decides which workspaces are measured. Pure.

use schema::condition::{Condition, Reason};
use schema::ids::Timestamp;
use schema::usage::{Due, Failing, RETRY};

use super::store::UsageRow;
use crate::runtime::Plan;

/// What is known of workspaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// What the database says.
    pub row: UsageRow,
    /// How often this process has measured some.
    pub rounds: u64,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Measures these workspaces one after the other, and remembers the results in one transaction.
    Measure(Vec<Due>),
}

/// The plan for all workspaces.
pub fn plan(snapshot: &Snapshot, now: Timestamp) -> Plan<Action> {
    let UsageRow { due, failing, .. } = &snapshot.row;
    if !due.is_empty() {
        // The same words in each of the passes that follow each other: a status is saved at their begin and end only.
        let condition = Condition::not_ready(Reason::Progressing, "measuring workspaces");
        return Plan::act(vec![Action::Measure(due.clone())], condition);
    }
    match failing {
        None => Plan::say(Condition::ready(Reason::Converged, "")),
        Some(failing) => {
            let again = failing.oldest.plus(RETRY).since(now);
            Plan::say(Condition::not_ready(Reason::Retrying, said(failing))).after(again)
        }
    }
}

fn said(failing: &Failing) -> String {
    let Failing { name, problem, .. } = failing;
    match failing.count {
        1 => format!("the workspace of {name} cannot be measured: {problem}"),
        count => format!("{count} workspaces cannot be measured; that of {name}: {problem}"),
    }
}
