//! When each user's files were last looked at, and what was said of them then.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schema::ids::{Timestamp, Uid};
use tokio::time::Instant;

/// What is said of files that this run of the service has not looked at yet.
const NEVER: &str = "nothing has changed since the files were last looked at";

#[derive(Debug)]
struct Look {
    due: Instant,
    said: Arc<str>,
}

/// When each user's files have to be looked at again although nothing has changed: at the start of the
/// service, then evenly spread over the period.
#[derive(Debug)]
pub(super) struct Looks {
    every: Duration,
    /// Another one in each run of the service.
    salt: Timestamp,
    by_uid: Mutex<HashMap<Uid, Look>>,
}

impl Looks {
    pub(super) fn new(every: Duration, salt: Timestamp) -> Self {
        Self {
            every,
            salt,
            by_uid: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uid, Look>> {
        self.by_uid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was said at the last look; `None` when the files have to be looked at.
    pub(super) fn said(&self, uid: &Uid) -> Option<Arc<str>> {
        let looks = self.lock();
        let look = looks.get(uid)?;
        (look.due > Instant::now()).then(|| Arc::clone(&look.said))
    }

    /// What was said last, however long ago.
    pub(super) fn last_said(&self, uid: &Uid) -> Arc<str> {
        let looks = self.lock();
        looks
            .get(uid)
            .map_or_else(|| Arc::from(NEVER), |look| Arc::clone(&look.said))
    }

    /// The files were looked at, and nothing was to be done.
    pub(super) fn done(&self, uid: &Uid, said: &str) {
        let now = Instant::now();
        let mut looks = self.lock();
        let pause = match looks.get(uid) {
            Some(_) => self.every,
            None => self.share_of(uid),
        };
        let look = Look {
            due: now + pause,
            said: Arc::from(said),
        };
        looks.insert(uid.clone(), look);
    }

    /// What was seen is not to be trusted any more.
    pub(super) fn again(&self, uid: &Uid) {
        self.lock().remove(uid);
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
