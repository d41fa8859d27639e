//! How much more a user may upload.
//!
//! The size of a user's directory is measured now and then, and never in a request. The bytes that have arrived since then are counted here,
//! so that uploads do not get past the quota between two measurements.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schema::config::keys;
use schema::ids::Uid;
use schema::usage;

use crate::deps::Dependencies;
use crate::error::{ApiError, Result};

const MIB: u64 = 1024 * 1024;
const MEGABYTES: &str = keys::files::QUOTA_MB.row.key;
const FILES: &str = keys::files::QUOTA_FILES.row.key;
/// Of so many changes of each user it is remembered what each has brought.
const MOST_SETTLED: usize = 1000;

/// Numbers requests.
static NUMBER: AtomicU64 = AtomicU64::new(1);

/// Bytes that have arrived since each directory was measured: a small entry for each user who has uploaded something. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Arrivals(Arc<Mutex<HashMap<Uid, Arrived>>>);

#[derive(Debug, Default)]
struct Arrived {
    /// What requests under way have taken, in bytes.
    under_way: u64,
    /// What is there to stay and is not measured yet: the number of each change, and its bytes.
    settled: VecDeque<(i64, u64)>,
    /// What was there at the newest measurement that a request has seen, in bytes; the last change that it has counted; and which request
    /// that is.
    measured: u64,
    counted: i64,
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
    /// Bytes that the directory may take.
    limit: u64,
    /// What was there at the newest measurement, in bytes, and the last change that it has counted; nothing before the first.
    measured: u64,
    counted: i64,
    /// Later requests have greater ones.
    number: u64,
    /// What this request has taken so far.
    taken: u64,
    /// The number of the change, once what was taken is there to stay.
    settled: Option<i64>,
}

impl Room {
    /// The space that a user has left; `None`: there is no quota of space.
    ///
    /// # Errors
    /// Those of the database; 507 `quota_exceeded` when there are as many files as there may be.
    pub(crate) async fn of(deps: &Dependencies, uid: &Uid) -> Result<Option<Self>> {
        let quota = deps.settings().quota;
        if !quota.is_set() {
            return Ok(None);
        }
        let mut connection = deps.db.read().await?;
        let usage = usage::get(&mut connection, uid).await?;
        let entries = usage.as_ref().map_or(0, |usage| usage.entries);
        if quota.files > 0 && entries >= quota.files {
            return Err(ApiError::QuotaExceeded {
                used: format!("{entries} files and directories"),
                limit: quota.files.to_string(),
                key: FILES,
            });
        }
        if quota.megabytes == 0 {
            return Ok(None);
        }
        let (measured, counted) =
            usage.map_or((0, 0), |usage| (usage.used_bytes, usage.measured_changes));
        Ok(Some(Self {
            arrivals: deps.arrivals.clone(),
            uid: uid.clone(),
            limit: quota.megabytes.saturating_mul(MIB),
            measured,
            counted,
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            taken: 0,
            settled: None,
        }))
    }

    /// Takes so many bytes more.
    ///
    /// # Errors
    /// 507 `quota_exceeded` when there is not so much left.
    pub(crate) fn take(&mut self, bytes: u64) -> Result<()> {
        let mut all = self.arrivals.lock();
        let arrived = all.entry(self.uid.clone()).or_default();
        let view = (self.counted, self.number);
        if (arrived.counted, arrived.seen_by) < view {
            (arrived.counted, arrived.seen_by) = view;
            arrived.measured = self.measured;
            arrived.settled.retain(|(change, _)| *change > self.counted);
        }
        let settled = arrived.settled.iter().map(|(_, bytes)| *bytes);
        let used = settled.chain([arrived.under_way]);
        let used = used.fold(arrived.measured, u64::saturating_add);
        if used.saturating_add(bytes) > self.limit {
            let before = used.saturating_sub(self.taken) as f64 / MIB as f64;
            return Err(ApiError::QuotaExceeded {
                used: format!("{before:.1} MiB"),
                limit: format!("{} MiB", self.limit / MIB),
                key: MEGABYTES,
            });
        }
        arrived.under_way += bytes;
        self.taken += bytes;
        Ok(())
    }

    /// What was taken is there to stay: by the change of this number, or one whose number is not known.
    pub(crate) fn keep(mut self, change: Option<i64>) {
        self.settled = Some(change.unwrap_or(self.counted.saturating_add(1)));
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut all = self.arrivals.lock();
        let Some(arrived) = all.get_mut(&self.uid) else {
            return;
        };
        arrived.under_way = arrived.under_way.saturating_sub(self.taken);
        if let Some(change) = self.settled.filter(|_| self.taken > 0) {
            let is_full = arrived.settled.len() >= MOST_SETTLED;
            match arrived.settled.back_mut().filter(|_| is_full) {
                // Both wait for the measurement that counts the later one.
                Some(last) => {
                    last.0 = last.0.max(change);
                    last.1 = last.1.saturating_add(self.taken);
                }
                None => arrived.settled.push_back((change, self.taken)),
            }
        }
    }
}
