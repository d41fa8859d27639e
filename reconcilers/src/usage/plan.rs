//! Decides which directories are measured, and what the quota says of them. Pure.

use schema::condition::{Condition, Reason};
use schema::ids::Timestamp;
use schema::usage::{Due, Failing, Judgement, RETRY};

use super::store::UsageRow;
use crate::runtime::Plan;

/// Knowledge of users' directories.
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
    /// Saves what the quota says of these directories, in one transaction.
    Judge(Vec<Judgement>),
    /// Measures these directories one after the other, and remembers the results in one transaction.
    Measure(Vec<Due>),
}

/// The plan for all directories.
pub fn plan(snapshot: &Snapshot, now: Timestamp) -> Plan<Action> {
    let UsageRow {
        due,
        failing,
        judgements,
        ..
    } = &snapshot.row;
    let mut actions = Vec::new();
    // Before measuring, which takes long.
    if !judgements.is_empty() {
        actions.push(Action::Judge(judgements.clone()));
    }
    if !due.is_empty() {
        actions.push(Action::Measure(due.clone()));
    }
    if !actions.is_empty() {
        // The same words in each of the passes that follow each other: a status is saved at their begin and end only.
        let condition = Condition::not_ready(Reason::Progressing, "measuring directories");
        return Plan::act(actions, condition);
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
        1 => format!("the directory of {name} cannot be measured: {problem}"),
        count => format!("{count} directories cannot be measured; that of {name}: {problem}"),
    }
}
