//! Faults of objects, grouped by kind and reason in the database.

use std::time::Duration;

use sqlx::FromRow;

use crate::column::JsonList;
use crate::condition::{self, Condition, ConditionType, Reason};
use crate::connection::Connection;
use crate::error::DbError;
use crate::ids::{Kind, Timestamp};
use crate::statement::{fetch_all, statements};

/// Most names of one problem.
pub const NAMED: usize = 5;
/// Objects on their way for longer than this are a problem.
const PATIENCE: Duration = Duration::from_secs(5 * 60);

/// Reasons of objects that are on their way.
macro_rules! steps {
    () => {
        "'Pending', 'Progressing', 'NotReady', 'NetworkMissing', 'ImagePulling', 'ConfigPending', 'Cloning', 'HomeMissing', 'Terminating'"
    };
}

statements! {
    /// Objects that are not ready for a reason that is no ordinary step, or that have been on their way since before `$1` and wait
    /// for no other object. Pulls and rollouts take their time; of rollouts that have failed only the newest counts. Of each kind and
    /// reason: number, oldest time, the first names, and the object that was the last.
    PROBLEMS = concat!(
        "WITH wrong AS (SELECT o.kind, o.name, s.reason, s.conditions, coalesce(s.ready_since, 0) AS since \
         FROM object_status s JOIN objects o ON o.kind = s.kind AND o.uid = s.uid \
         WHERE s.ready <> 'True' AND s.reason <> '' AND (s.reason NOT IN (", steps!(), ") \
         OR (o.kind NOT IN ('image', 'rollout') AND coalesce(s.ready_since, 0) < $1 AND s.conditions NOT LIKE '%\"waits_for\":%')) \
         AND (s.reason <> 'RolloutFailed' OR NOT EXISTS (SELECT 1 FROM objects later WHERE later.kind = o.kind AND later.created_at > o.created_at))) \
         SELECT kind, reason, n, oldest, name, conditions, by_name, by_time FROM (SELECT kind, reason, name, conditions, \
         count(*) OVER (PARTITION BY kind, reason) AS n, min(since) OVER (PARTITION BY kind, reason) AS oldest, \
         row_number() OVER (PARTITION BY kind, reason ORDER BY lower(name), name) AS by_name, \
         row_number() OVER (PARTITION BY kind, reason ORDER BY since DESC, lower(name), name) AS by_time FROM wrong) ranked \
         WHERE by_name <= 5 OR by_time = 1 ORDER BY kind, reason, by_name"
    );
}

/// Objects of one kind that are not as desired for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Kind of the objects.
    pub kind: Kind,
    /// Reason of `Ready`.
    pub reason: Reason,
    /// Number of objects.
    pub count: i64,
    /// Names of the first, at most [`NAMED`].
    pub names: Vec<String>,
    /// Since when the first of them is not ready.
    pub since: Timestamp,
    /// Message of the object that was the last.
    pub message: String,
}

#[derive(FromRow)]
struct Row {
    kind: Kind,
    reason: Reason,
    n: i64,
    oldest: Timestamp,
    name: String,
    #[sqlx(try_from = "JsonList<Condition>")]
    conditions: Vec<Condition>,
    by_name: i64,
    by_time: i64,
}

/// Lists what is wrong with objects, in one statement: largest first.
///
/// # Errors
/// Only when the database fails.
pub async fn problems(
    connection: &mut Connection,
    now: Timestamp,
) -> Result<Vec<Problem>, DbError> {
    let rows: Vec<Row> = fetch_all!(connection, PROBLEMS, now.minus(PATIENCE))?;
    let mut problems: Vec<Problem> = Vec::new();
    for row in rows {
        let is_same = |last: &&mut Problem| last.kind == row.kind && last.reason == row.reason;
        let new = || Problem {
            kind: row.kind,
            reason: row.reason,
            count: row.n,
            names: Vec::new(),
            since: row.oldest,
            message: String::new(),
        };
        if problems.last_mut().filter(is_same).is_none() {
            problems.push(new());
        }
        let Some(problem) = problems.last_mut() else {
            continue;
        };
        if row.by_time == 1
            && let Some(ready) = condition::find(&row.conditions, ConditionType::Ready)
        {
            problem.message.clone_from(&ready.message);
        }
        if usize::try_from(row.by_name).is_ok_and(|place| place <= NAMED) {
            problem.names.push(row.name);
        }
    }
    problems.sort_by_key(|problem| std::cmp::Reverse(problem.count));
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_steps_are_reasons_that_need_no_action() {
        for step in steps!().split(", ") {
            let reason: Reason = step.trim_matches('\'').parse().unwrap();
            assert!(!reason.needs_action(), "{reason}");
        }
    }
}
