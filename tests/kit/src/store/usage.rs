//! What workspaces take, in memory.

use std::time::Duration;

use async_trait::async_trait;
use reconcilers::usage::{UsageRow, UsageStore};
use schema::container::Desired;
use schema::error::DbError;
use schema::home::Measured;
use schema::ids::{Kind, Timestamp, Uid, UserName};
use schema::usage::{
    AFTER_CHANGE, Attempt, Due, Failing, Held, Judgement, MOST_UNCHANGED, OTHERWISE, Quota, RETRY,
    Verdict, WHILE_RUNNING, WITH_QUOTA, object_uid,
};

use super::MemoryStore;
use super::tables::Tables;

/// A row of `workspace_usage`.
#[derive(Debug, Clone, Default)]
pub(super) struct Workspace {
    measured: Option<Measured>,
    attempted_at: Option<Timestamp>,
    problem: Option<String>,
    changes: i64,
    measured_changes: i64,
    /// Bytes and entries that the quota judges.
    held: (u64, u64),
    unchanged: i64,
    verdict: Verdict,
}

impl Workspace {
    fn measured(&mut self, measured: Measured) {
        let counts = |it: Measured| (it.bytes, it.files, it.entries);
        let same = self.measured.map(counts) == Some(counts(measured));
        self.unchanged = match same {
            true => (self.unchanged + 1).min(MOST_UNCHANGED),
            false => 0,
        };
        let (bytes, entries) = self.held;
        self.held = match measured.is_complete() {
            true => (measured.bytes, measured.entries),
            false => (bytes.max(measured.bytes), entries.max(measured.entries)),
        };
        self.measured = Some(measured);
    }
}

impl Tables {
    /// Bytes that a user's directory takes, as last measured.
    pub(super) fn used_bytes(&self, uid: &Uid) -> Option<u64> {
        let measured = self.workspaces.get(uid)?.measured.as_ref()?;
        Some(measured.bytes)
    }

    /// Names of users who are not leaving.
    fn present(&self) -> impl Iterator<Item = (&Uid, &UserName)> {
        let accounts = self.accounts.iter().filter(|(uid, _)| {
            let object = self.object(Kind::User, uid);
            object.is_some_and(|object| object.deleted_at.is_none())
        });
        accounts.map(|(uid, account)| (uid, &account.name))
    }

    fn is_seen(&self, uid: &Uid) -> bool {
        let status = self.statuses.get(&(Kind::User, uid.clone()));
        status.is_some_and(|(status, _)| status.observed_generation.0 > 0)
    }

    /// Since when a workspace is to be measured, or when it will be.
    fn due_at(&self, uid: &Uid, row: &Workspace, quota: &Quota) -> Timestamp {
        let Some(attempted_at) = row.attempted_at else {
            return Timestamp::from_millis(0);
        };
        let entries = row.measured.map_or(0, |measured| measured.entries);
        let runs = self
            .container_row(uid)
            .is_some_and(|container| container.desired == Desired::Running && !container.disabled);
        attempted_at.plus(match () {
            () if row.problem.is_some() => RETRY,
            () if row.changes != row.measured_changes => {
                AFTER_CHANGE + Duration::from_millis(entries)
            }
            () if runs && quota.is_set() => {
                WITH_QUOTA * (1 + u32::try_from(row.unchanged).unwrap_or(0))
                    + Duration::from_millis(entries)
            }
            () if runs => WHILE_RUNNING + Duration::from_millis(entries),
            () => OTHERWISE,
        })
    }

    fn due(&self, now: Timestamp, quota: &Quota) -> Vec<Due> {
        let seen = self.present().filter(|(uid, _)| self.is_seen(uid));
        let mut due: Vec<_> = seen
            .filter_map(|(uid, name)| {
                let row = self.workspaces.get(uid).cloned().unwrap_or_default();
                let at = self.due_at(uid, &row, quota);
                let from_later = row.attempted_at.is_some_and(|at| at > now);
                let due = Due {
                    uid: uid.clone(),
                    name: name.clone(),
                    changes: row.changes,
                };
                (at <= now || from_later).then_some((at, due))
            })
            .collect();
        due.sort_by(|(one, a), (other, b)| (one, &a.uid).cmp(&(other, &b.uid)));
        due.into_iter().map(|(_, due)| due).collect()
    }

    /// Judgement of a user's directory by the quota.
    pub(super) fn verdict(&self, uid: &Uid) -> Verdict {
        let row = self.workspaces.get(uid);
        row.map(|row| row.verdict.clone()).unwrap_or_default()
    }

    fn judgements(&self, quota: &Quota) -> Vec<Judgement> {
        let held = self.present().filter_map(|(uid, name)| {
            let row = self.workspaces.get(uid)?;
            Some(Held {
                uid: uid.clone(),
                name: name.clone(),
                bytes: row.held.0,
                entries: row.held.1,
                complete: row.measured.is_some_and(|measured| measured.is_complete()),
                verdict: row.verdict.clone(),
            })
        });
        held.filter_map(|held| quota.judge(held)).collect()
    }

    fn failing(&self) -> Option<Failing> {
        let failing = self.present().filter_map(|(uid, name)| {
            let row = self.workspaces.get(uid)?;
            Some((name, row.problem.clone()?, row.attempted_at?))
        });
        let failing: Vec<_> = failing.collect();
        let oldest = failing.iter().map(|(_, _, at)| *at).min()?;
        let first = failing.iter().min_by_key(|(name, ..)| name.key())?;
        Some(Failing {
            count: i64::try_from(failing.len()).unwrap_or(i64::MAX),
            oldest,
            name: first.0.clone(),
            problem: first.1.clone(),
        })
    }
}

#[async_trait]
impl UsageStore for MemoryStore {
    async fn usage_row(
        &self,
        now: Timestamp,
        most: usize,
        quota: &Quota,
    ) -> Result<Option<UsageRow>, DbError> {
        self.transaction(|tables| {
            let Some(object) = tables.object(Kind::Usage, &object_uid()) else {
                return Ok(None);
            };
            let mut due = tables.due(now, quota);
            due.truncate(most);
            Ok(Some(UsageRow {
                generation: object.generation,
                due,
                failing: tables.failing(),
                judgements: tables.judgements(quota),
            }))
        })
        .await
    }

    async fn save_usage(&self, attempts: &[Attempt], now: Timestamp) -> Result<(), DbError> {
        self.transaction(|tables| {
            for attempt in attempts {
                if !tables.accounts.contains_key(&attempt.uid) {
                    continue;
                }
                let row = tables.workspaces.entry(attempt.uid.clone()).or_default();
                row.attempted_at = Some(now);
                match &attempt.outcome {
                    Ok(measured) => {
                        row.measured(*measured);
                        row.measured_changes = attempt.changes;
                        row.problem = None;
                    }
                    Err(problem) => row.problem = Some(problem.clone()),
                }
            }
            Ok(())
        })
        .await
    }

    async fn save_judgements(
        &self,
        judgements: &[Judgement],
        _now: Timestamp,
    ) -> Result<(), DbError> {
        self.transaction(|tables| {
            for judgement in judgements {
                let Judgement {
                    uid,
                    before,
                    verdict,
                    ..
                } = judgement;
                let Some(row) = tables.workspaces.get_mut(uid) else {
                    continue;
                };
                row.verdict = verdict.clone();
                let mut raise = |kind| {
                    let object = tables.object(kind, uid);
                    if object.is_some_and(|object| object.deleted_at.is_none()) {
                        tables.raise(&(kind, uid.clone()))?;
                    }
                    Ok::<_, DbError>(())
                };
                if verdict.state != before.state {
                    raise(Kind::User)?;
                }
                if verdict.stops != before.stops {
                    raise(Kind::Container)?;
                }
            }
            Ok(())
        })
        .await
    }
}

impl MemoryStore {
    /// A request has changed a user's workspace.
    ///
    /// # Errors
    /// When there is no such user.
    pub fn workspace_changed(&self, uid: &Uid) -> Result<(), DbError> {
        self.write(|tables| {
            if !tables.accounts.contains_key(uid) {
                return Err(DbError::NotFound("user"));
            }
            tables.workspaces.entry(uid.clone()).or_default().changes += 1;
            Ok(())
        })
    }

    /// What is known of a user's workspace, at once.
    pub fn peek_usage(&self, uid: &Uid) -> Option<Measured> {
        self.tables().workspaces.get(uid)?.measured
    }
}
