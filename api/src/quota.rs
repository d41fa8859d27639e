//! How much more a user may upload.
//!
//! What a workspace takes is measured now and then, and never in a request. What has arrived since then is counted here, so that
//! nobody gets past the quota between two measurements.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schema::ids::{Timestamp, Uid};
use schema::usage;

use crate::deps::Dependencies;
use crate::error::{ApiError, Result};

const MIB: u64 = 1024 * 1024;

/// Numbers requests.
static NUMBER: AtomicU64 = AtomicU64::new(1);

/// What has arrived since each workspace was measured. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Arrivals(Arc<Mutex<HashMap<Uid, Arrived>>>);

#[derive(Debug, Default)]
struct Arrived {
    /// What requests under way have taken, in bytes.
    under_way: u64,
    /// What is there to stay since the newest measurement, in bytes.
    settled: u64,
    /// The measurement that does not count it, and which request has first seen that.
    since: Option<Timestamp>,
    seen_by: u64,
}

impl Arrivals {
    fn lock(&self) -> MutexGuard<'_, HashMap<Uid, Arrived>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The space that is left for one request.
#[derive(Debug)]
pub struct Room {
    arrivals: Arrivals,
    uid: Uid,
    quota_mb: u64,
    /// What was there at the newest measurement, in bytes, and when that was; nothing before the first.
    used: u64,
    since: Option<Timestamp>,
    /// Later requests have greater ones.
    number: u64,
    /// What this request has taken so far.
    taken: u64,
    kept: bool,
}

impl Room {
    /// The space that a user has left; `None`: there is no quota.
    ///
    /// # Errors
    /// Those of the database.
    pub(crate) async fn of(deps: &Dependencies, uid: &Uid) -> Result<Option<Self>> {
        let quota_mb = deps.settings().files_quota_mb;
        if quota_mb == 0 {
            return Ok(None);
        }
        let mut connection = deps.db.read().await?;
        let measured = usage::get(&mut connection, uid).await?;
        Ok(Some(Self {
            arrivals: deps.arrivals.clone(),
            uid: uid.clone(),
            quota_mb,
            used: measured.as_ref().map_or(0, |usage| usage.used_bytes),
            since: measured.map(|usage| usage.measured_at),
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            taken: 0,
            kept: false,
        }))
    }

    /// Takes so many bytes more.
    ///
    /// # Errors
    /// 507 `quota_exceeded` when there is not so much left.
    pub(crate) fn take(&mut self, bytes: u64) -> Result<()> {
        let quota = self.quota_mb.saturating_mul(MIB);
        let mut all = self.arrivals.lock();
        let arrived = all.entry(self.uid.clone()).or_default();
        // Another measurement has counted it. Not compared as times: a clock may be set back.
        if arrived.since != self.since && arrived.seen_by < self.number {
            arrived.settled = 0;
            arrived.since = self.since;
            arrived.seen_by = self.number;
        }
        let used = [arrived.under_way, arrived.settled, bytes];
        let used = used.into_iter().fold(self.used, u64::saturating_add);
        if used > quota {
            return Err(ApiError::QuotaExceeded {
                quota_mb: self.quota_mb,
            });
        }
        arrived.under_way += bytes;
        self.taken += bytes;
        Ok(())
    }

    /// What was taken is there to stay.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut all = self.arrivals.lock();
        let Some(arrived) = all.get_mut(&self.uid) else {
            return;
        };
        arrived.under_way = arrived.under_way.saturating_sub(self.taken);
        if self.kept {
            arrived.settled = arrived.settled.saturating_add(self.taken);
        }
        if arrived.under_way == 0 && arrived.settled == 0 {
            all.remove(&self.uid);
        }
    }
}
