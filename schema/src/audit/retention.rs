//! Forgetting the oldest entries.

use super::chain::{Walk, Which};
use super::model::{About, Author, Entry, Outcome};
use super::query;
use super::verify::{Page, Pages};
use super::writer::Writer;
use crate::error::DbError;
use crate::ids::Timestamp;

/// Most entries forgotten in one transaction: every writer of the trail waits for it.
const BATCH: i64 = 10_000;

impl Writer {
    /// Forgets the oldest entries, up to the first that is not older than `oldest`; returns how many.
    /// What is forgotten is verified before, and its last hash kept, so that the rest still verifies.
    /// That it was forgotten is an entry, too.
    ///
    /// # Errors
    /// [`DbError::Corrupt`] when the entries are not as they were written: evidence is not thrown away.
    pub async fn prune(&self, oldest: Timestamp) -> Result<u64, DbError> {
        let mut pruned = 0;
        loop {
            let batch = self.prune_batch(oldest).await?;
            if batch == 0 {
                return Ok(pruned);
            }
            pruned += batch;
        }
    }

    async fn prune_batch(&self, oldest: Timestamp) -> Result<u64, DbError> {
        if !self.has_older(oldest).await? {
            return Ok(0);
        }
        let mut tx = self.db.begin().await?;
        // Another replica that does the same waits here.
        let next = query::take_head(&mut tx, &self.key).await?;
        let corrupt = |message: &str| DbError::Corrupt(format!("the audit trail: {message}"));
        let (_, anchor) = query::ends(&mut tx).await?;
        let anchor = anchor
            .filter(|anchor| anchor.is_authentic(&self.key))
            .ok_or_else(|| corrupt("its anchor was tampered with"))?;
        let kept = query::first_since(&mut tx, oldest).await?;
        let last = kept.unwrap_or(next.seq).min(anchor.seq + BATCH + 1) - 1;
        let last = last.min(next.seq - 1);
        if last <= anchor.seq {
            return Ok(0);
        }
        let mut walk = Walk::from(&anchor, &self.key);
        let mut pages = Pages::from(i64::MIN);
        while walk.seq < last {
            let Page::Records(page) = pages.next(&mut tx).await? else {
                return Err(corrupt("an entry cannot be read"));
            };
            if page.is_empty() {
                return Err(corrupt("its last entries are missing"));
            }
            for record in page.iter().take_while(|record| record.seq <= last) {
                walk.step(record)
                    .map_err(|problem| corrupt(&problem.message))?;
            }
        }
        let pruned = query::prune(&mut tx, last).await?;
        query::move_end(&mut tx, &self.key, Which::Anchor, last, &walk.hash).await?;
        let entry = Entry::new(
            Author::system("housekeeping", "audit_prune"),
            About::whole("audit").detail(format!("entries {} to {last}", anchor.seq + 1)),
            Outcome::Ok,
            self.clock.now(),
        );
        next.append(&mut tx, &self.key, &[entry]).await?;
        tx.commit().await?;
        Ok(pruned)
    }

    /// Whether the oldest entry is older; asked without stopping any writer.
    async fn has_older(&self, oldest: Timestamp) -> Result<bool, DbError> {
        let mut connection = self.db.read().await?;
        let first = query::following(&mut connection, i64::MIN, 1).await?;
        Ok(first.first().is_some_and(|record| record.entry.at < oldest))
    }
}
