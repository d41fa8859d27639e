//! When each user's files were last read, and what was said of them then.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schema::agent_config::AgentConfigRow;
use schema::home::HomeLook;
use schema::ids::{Timestamp, Uid};
use tokio::time::Instant;

#[derive(Debug)]
struct Reading {
    due: Instant,
    said: Arc<str>,
    /// The user's directory then.
    home: Option<HomeLook>,
}

/// When each user's files have to be read again although nothing has changed: at the start of the service, then
/// evenly spread over the period.
#[derive(Debug)]
pub(super) struct Verified {
    every: Duration,
    /// Another one in each run of the service.
    salt: Timestamp,
    by_uid: Mutex<HashMap<Uid, Reading>>,
}

impl Verified {
    pub(super) fn new(every: Duration, salt: Timestamp) -> Self {
        Self {
            every,
            salt,
            by_uid: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uid, Reading>> {
        self.by_uid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was said at the last reading; `None` when the files have to be read. Files that were there and are missing,
    /// or are in another directory by now, have to be.
    pub(super) fn said(&self, uid: &Uid, home: Option<&HomeLook>) -> Option<Arc<str>> {
        let readings = self.lock();
        let last = readings.get(uid)?;
        let same = last.home.as_ref() == home;
        (same && last.due > Instant::now()).then(|| Arc::clone(&last.said))
    }

    /// Whether the files are where they were at the last reading; before the first one, where they were written.
    pub(super) fn is_unmoved(&self, row: &AgentConfigRow, home: Option<&HomeLook>) -> bool {
        let readings = self.lock();
        match readings.get(&row.uid) {
            Some(last) => last.home.as_ref() == home,
            None => home.is_some_and(|home| {
                let written = row.facts.home.as_ref();
                // The other file is there only when something is secret.
                home.files.first() == Some(&true) && written.is_none_or(|id| *id == home.id)
            }),
        }
    }

    /// What was said last, however long ago; nothing by this run of the service, which leaves it as it was said before.
    pub(super) fn last_said(&self, uid: &Uid) -> Arc<str> {
        let readings = self.lock();
        let last = readings.get(uid);
        last.map(|last| Arc::clone(&last.said)).unwrap_or_default()
    }

    /// The files were read, and nothing was to be done.
    pub(super) fn done(&self, uid: &Uid, said: &str, home: Option<HomeLook>) {
        let now = Instant::now();
        let mut readings = self.lock();
        let pause = match readings.get(uid) {
            Some(_) => self.every,
            None => self.share_of(uid),
        };
        let reading = Reading {
            due: now + pause,
            said: Arc::from(said),
            home,
        };
        readings.insert(uid.clone(), reading);
    }

    /// What was read is not to be trusted any more.
    pub(super) fn forget(&self, uid: &Uid) {
        self.lock().remove(uid);
    }

    /// All files have to be read.
    pub(super) fn forget_all(&self) {
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
