//! Folds calls of tools: beyond so many of one kind, user and day, one entry stands for all further ones.
//!
//! That entry is a link of the chain like any other. How many calls it stands for is in a row of its own, the only one of
//! the trail that changes; it is authenticated with the number and time of its entry, and [`verify`](super::verify()) finds one
//! that was changed or removed. That it was set back to an earlier state is not found.

use std::collections::HashMap;

use sqlx::FromRow;

use super::chain::{BROKEN, ChainKey};
use super::model::{About, Author, Entry};
use super::query;
use super::writer::Writer;
use crate::db::Tx;
use crate::error::DbError;
use crate::ids::Timestamp;

/// The action of an entry that records a call of a tool.
pub const CALL: &str = "mcp_call";
/// Calls of one kind, user and day that have an entry each.
pub const LISTED_A_DAY: i64 = 10_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Begins the detail of an entry that stands for several calls. That of others begins with `outcome=`.
const FOLDED: &str = "folded ";

/// The calls that are folded into one entry: of one user, one tool and one outcome, on one day (UTC).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CallKind {
    day: i64,
    actor: String,
    object: String,
    /// The first word of the detail, which tells more outcomes apart than the entry's own.
    outcome: String,
}

impl CallKind {
    fn of(entry: &Entry) -> Self {
        let outcome = entry.detail.split(' ').next().unwrap_or_default();
        Self {
            day: entry.at.as_millis().div_euclid(DAY_MS),
            actor: entry.actor.clone(),
            object: entry.object.clone(),
            outcome: outcome.to_owned(),
        }
    }

    /// The detail of the entry that stands for further calls.
    fn folded_detail(&self) -> String {
        let outcome = &self.outcome;
        format!("{FOLDED}{outcome}; further calls of this kind on this day are counted, not listed")
    }

    /// The trail's part of it.
    async fn load(&self, tx: &mut Tx) -> Result<Progress, DbError> {
        let begin = Timestamp::from_millis(self.day * DAY_MS);
        let end = Timestamp::from_millis((self.day + 1) * DAY_MS);
        let (actor, object) = (&self.actor, &self.object);
        let (listed, folded) = (format!("{} %", self.outcome), self.folded_detail());
        let (listed, entry) =
            query::calls(tx, (actor, object), (begin, end), (&listed, &folded)).await?;
        Ok(Progress { listed, entry })
    }
}

/// Progress of a kind.
#[derive(Debug, Clone, Copy)]
struct Progress {
    /// Calls with an entry of their own.
    listed: i64,
    /// The number of the entry that stands for the others.
    entry: Option<i64>,
}

/// The numbers of calls by kind, as far as they were needed: each kind is read from the trail once, and counted in memory
/// from then on.
#[derive(Debug)]
pub struct Calls {
    most: i64,
    kinds: HashMap<CallKind, Progress>,
}

impl Calls {
    /// Nothing is counted yet; `most` calls of each kind get an entry of their own, see [`LISTED_A_DAY`].
    pub fn new(most: i64) -> Self {
        Self {
            most,
            kinds: HashMap::new(),
        }
    }
}

/// Number of calls that an entry stands for, as stored.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub(super) struct Fold {
    pub(super) seq: i64,
    pub(super) calls: i64,
    pub(super) last_at: Timestamp,
    pub(super) mac: String,
}

impl Fold {
    fn new(key: &ChainKey, seq: i64, calls: i64, last_at: Timestamp) -> Self {
        Self {
            seq,
            calls,
            last_at,
            mac: key.fold(seq, calls, last_at),
        }
    }

    /// The same with more calls. One that was tampered with stays to be found.
    fn with_more(self, key: &ChainKey, calls: i64, last_at: Timestamp) -> Self {
        let is_authentic = self.mac == key.fold(self.seq, self.calls, self.last_at);
        let last_at = last_at.max(self.last_at);
        let calls = self.calls.saturating_add(calls);
        let more = Self::new(key, self.seq, calls, last_at);
        match is_authentic {
            true => more,
            false => Self {
                mac: BROKEN.to_owned(),
                ..more
            },
        }
    }
}

impl Entry {
    /// True if it stands for several calls.
    pub(super) fn is_fold(&self) -> bool {
        self.action == CALL && self.detail.starts_with(FOLDED)
    }
}

/// The calls of a kind in one batch.
struct Batch<'a> {
    progress: Progress,
    /// Calls beyond those with an entry of their own, and the newest of them.
    more: i64,
    newest: &'a Entry,
}

impl Writer {
    /// Records calls of tools, all or none of them: each with an entry of its own until there are too many of its kind.
    ///
    /// # Errors
    /// Those of the database; then nothing is counted, either.
    pub async fn record_calls(&self, calls: &mut Calls, entries: &[Entry]) -> Result<(), DbError> {
        let Some(newest) = entries.iter().map(|entry| CallKind::of(entry).day).max() else {
            return Ok(());
        };
        let mut tx = self.db.begin().await?;
        let mut listed: Vec<Entry> = Vec::with_capacity(entries.len());
        let mut batches: HashMap<CallKind, Batch<'_>> = HashMap::new();
        for entry in entries {
            let kind = CallKind::of(entry);
            if !batches.contains_key(&kind) {
                let progress = match calls.kinds.get(&kind) {
                    Some(progress) => *progress,
                    None => kind.load(&mut tx).await?,
                };
                let batch = Batch {
                    progress,
                    more: 0,
                    newest: entry,
                };
                batches.insert(kind.clone(), batch);
            }
            let Some(batch) = batches.get_mut(&kind) else {
                continue;
            };
            if batch.progress.listed < calls.most {
                batch.progress.listed += 1;
                listed.push(entry.clone());
            } else {
                batch.more += 1;
                batch.newest = entry;
            }
        }
        self.append_batches(&mut tx, listed, &mut batches).await?;
        tx.commit().await?;
        calls.kinds.retain(|kind, _| kind.day + 1 >= newest);
        let counted = batches.into_iter();
        calls
            .kinds
            .extend(counted.map(|(kind, batch)| (kind, batch.progress)));
        Ok(())
    }

    async fn append_batches(
        &self,
        tx: &mut Tx,
        mut entries: Vec<Entry>,
        batches: &mut HashMap<CallKind, Batch<'_>>,
    ) -> Result<(), DbError> {
        // Other writers of the trail wait from here on, those of the same counters, too.
        let next = query::take_head(tx, &self.key).await?;
        let mut folds = Vec::new();
        for (kind, batch) in batches.iter_mut().filter(|(_, batch)| batch.more > 0) {
            let stored = match batch.progress.entry {
                Some(seq) => query::fold(tx, seq).await?,
                None => None,
            };
            let at = batch.newest.at;
            let fold = match stored {
                Some(fold) => fold.with_more(&self.key, batch.more, at),
                None => {
                    let seq = next.seq + i64::try_from(entries.len()).unwrap_or(i64::MAX);
                    entries.push(folding_entry(kind, batch.newest));
                    batch.progress.entry = Some(seq);
                    Fold::new(&self.key, seq, batch.more, at)
                }
            };
            folds.push(fold);
        }
        next.append(tx, &self.key, &entries).await?;
        for fold in &folds {
            query::save_fold(tx, fold).await?;
        }
        Ok(())
    }
}

/// The entry that stands for further calls of a kind.
fn folding_entry(kind: &CallKind, call: &Entry) -> Entry {
    let author = Author {
        actor: kind.actor.clone(),
        address: String::new(),
        action: CALL.to_owned(),
        request_id: String::new(),
    };
    let about = About::whole(&kind.object).detail(kind.folded_detail());
    Entry {
        outcome: call.outcome.clone(),
        ..Entry::new(author, about, super::Outcome::Ok, call.at)
    }
}
