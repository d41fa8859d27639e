//! When files of each user were last read although nothing had changed, and what was said of them then.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schema::ids::{Timestamp, Uid};
use tokio::time::Instant;

#[derive(Debug)]
struct Reading<L> {
    due: Instant,
    said: Arc<str>,
    /// What the look before it has shown.
    look: L,
}

/// When each user's files have to be read again although nothing has changed: at the start of the service, then
/// evenly spread over the period. Until then a cheap look tells whether they are what was read.
#[derive(Debug)]
pub struct Verified<L> {
    every: Duration,
    /// Another one in each run of the service.
    salt: Timestamp,
    by_uid: Mutex<HashMap<Uid, Reading<L>>>,
}

impl<L: Clone + PartialEq> Verified<L> {
    /// Nothing was read yet.
    pub fn new(every: Duration, salt: Timestamp) -> Self {
        Self {
            every,
            salt,
            by_uid: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uid, Reading<L>>> {
        self.by_uid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was said at the last reading; `None` when the files have to be read, because it is time or they look
    /// different by now.
    pub fn said(&self, uid: &Uid, look: &L) -> Option<Arc<str>> {
        let readings = self.lock();
        let last = readings.get(uid)?;
        (last.look == *look && last.due > Instant::now()).then(|| Arc::clone(&last.said))
    }

    /// What was said and seen at the last reading, however long ago; `None` before the first one of this run.
    pub fn last(&self, uid: &Uid) -> Option<(Arc<str>, L)> {
        let readings = self.lock();
        let last = readings.get(uid)?;
        Some((Arc::clone(&last.said), last.look.clone()))
    }

    /// Whether the files have to be read in full, however they look.
    pub fn is_due(&self, uid: &Uid) -> bool {
        let readings = self.lock();
        let last = readings.get(uid);
        last.is_some_and(|last| last.due <= Instant::now())
    }

    /// The files were read, and nothing was to be done.
    pub fn done(&self, uid: &Uid, said: &str, look: L) {
        let now = Instant::now();
        let mut readings = self.lock();
        let pause = match readings.get(uid) {
            Some(_) => self.every,
            None => self.share_of(uid),
        };
        let reading = Reading {
            due: now + pause,
            said: Arc::from(said),
            look,
        };
        readings.insert(uid.clone(), reading);
    }

    /// The files have to be read in full next time.
    pub fn expire(&self, uid: &Uid) {
        if let Some(reading) = self.lock().get_mut(uid) {
            reading.due = Instant::now();
        }
    }

    /// The files of everybody have to.
    pub fn expire_all(&self) {
        let now = Instant::now();
        self.lock()
            .values_mut()
            .for_each(|reading| reading.due = now);
    }

    /// What was read is not to be trusted any more.
    pub fn forget(&self, uid: &Uid) {
        self.lock().remove(uid);
    }

    /// All files have to be read.
    pub fn forget_all(&self) {
        self.lock().clear();
    }

    /// A moment of the period, another one for each user.
    fn share_of(&self, uid: &Uid) -> Duration {
        let mut hasher = DefaultHasher::new();
        hasher.write_i64(self.salt.as_millis());
        hasher.write(uid.as_str().as_bytes());
        let period = u64::try_from(self.every.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(hasher.finish() % period.max(1))
    }
}
