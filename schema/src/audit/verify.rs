//! Whether the trail is whole, and where it is not.

use serde::Serialize;

use super::chain::{ChainKey, End, Walk, Which};
use super::model::Record;
use super::query;
use crate::connection::Connection;
use crate::error::DbError;

/// Entries read at once: enough to be fast, few enough to be small.
const PAGE: i64 = 500;

/// Where the trail was tampered with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = AuditProblem)]
pub struct Problem {
    /// The number of the entry.
    pub seq: i64,
    /// What is wrong with it.
    pub message: String,
}

impl Problem {
    pub(super) fn new(seq: i64, what: &str) -> Self {
        Self {
            seq,
            message: format!("entry {seq} {what}"),
        }
    }

    pub(super) fn missing(first: i64, last: i64) -> Self {
        let message = match first == last {
            true => format!("entry {first} is missing"),
            false => format!("entries {first} to {last} are missing"),
        };
        Self {
            seq: first,
            message,
        }
    }

    fn end(which: Which, seq: i64) -> Self {
        let message = match which {
            Which::Head => {
                "the record of where the trail ends was changed: entries may be missing there"
            }
            Which::Anchor => {
                "the record of where the trail begins was changed: entries may be missing there"
            }
        };
        Self {
            seq,
            message: message.to_owned(),
        }
    }
}

/// What a verification has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Number of intact entries, up to the first problem.
    pub entries: u64,
    /// The oldest entry there is.
    pub first_seq: Option<i64>,
    /// The newest entry there is.
    pub last_seq: Option<i64>,
    /// The first problem.
    pub problem: Option<Problem>,
}

/// Goes along the whole trail. Give it a snapshot, so that what is written or pruned meanwhile does
/// not appear as tampering. Memory stays small whatever the length.
pub async fn verify(connection: &mut Connection, key: &ChainKey) -> Result<Verdict, DbError> {
    let (first_seq, last_seq) = query::bounds(connection).await?;
    let mut verdict = Verdict {
        entries: 0,
        first_seq,
        last_seq,
        problem: None,
    };
    verdict.problem = find_problem(connection, key, &mut verdict).await?;
    Ok(verdict)
}

async fn find_problem(
    connection: &mut Connection,
    key: &ChainKey,
    verdict: &mut Verdict,
) -> Result<Option<Problem>, DbError> {
    let (head, anchor) = query::ends(connection).await?;
    let first = verdict.first_seq.unwrap_or_default();
    let Some(anchor) = anchor.filter(|anchor| anchor.is_authentic(key)) else {
        return Ok(Some(Problem::end(Which::Anchor, first)));
    };
    let mut walk = Walk::from(&anchor, key);
    let mut pages = Pages::from(i64::MIN);
    loop {
        let page = match pages.next(connection).await? {
            Page::Records(page) if page.is_empty() => break,
            Page::Records(page) => page,
            Page::Unreadable => {
                let message = "was changed: it cannot even be read";
                return Ok(Some(Problem::new(walk.seq + 1, message)));
            }
        };
        for record in &page {
            if let Err(problem) = walk.step(record) {
                return Ok(Some(problem));
            }
            verdict.entries += 1;
        }
    }
    Ok(end_problem(head.as_ref(), &walk, key))
}

/// What is wrong at the end of a chain that is whole up to there.
fn end_problem(head: Option<&End>, walk: &Walk<'_>, key: &ChainKey) -> Option<Problem> {
    let Some(head) = head.filter(|head| head.is_authentic(key)) else {
        return Some(Problem::end(Which::Head, walk.seq));
    };
    if walk.seq < head.seq {
        return Some(Problem::missing(walk.seq + 1, head.seq));
    }
    // Only an earlier head that was put back can record less than there is.
    let same = walk.seq == head.seq && walk.hash == head.hash;
    (!same).then(|| Problem::end(Which::Head, head.seq))
}

/// Reads along the trail.
pub(super) struct Pages {
    after: i64,
    size: i64,
}

/// What was read.
pub(super) enum Page {
    /// The next entries; none at the end.
    Records(Vec<Record>),
    /// The next entry has values of another type than were written.
    Unreadable,
}

impl Pages {
    pub(super) fn from(after: i64) -> Self {
        Self { after, size: PAGE }
    }

    pub(super) async fn next(&mut self, connection: &mut Connection) -> Result<Page, DbError> {
        loop {
            match query::following(connection, self.after, self.size).await {
                Ok(records) => {
                    if let Some(last) = records.last() {
                        self.after = last.seq;
                    }
                    return Ok(Page::Records(records));
                }
                Err(DbError::Corrupt(_)) => {
                    if self.size == 1 {
                        return Ok(Page::Unreadable);
                    }
                    // One by one from here on, to find out which one it is.
                    self.size = 1;
                }
                Err(error) => return Err(error),
            }
        }
    }
}
