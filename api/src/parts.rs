//! A user's part of what all users share: one alone must not take all of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use schema::ids::Uid;
use tokio::sync::Semaphore;

/// The parts of the users who have something of theirs in use, of so many permits each. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    permits: usize,
    users: Arc<Mutex<Users>>,
}

#[derive(Debug, Default)]
struct Users {
    parts: HashMap<Uid, Weak<Semaphore>>,
    /// So many entries are there before those are removed that nobody has any more.
    most: usize,
}

impl Parts {
    pub(crate) fn new(permits: usize) -> Self {
        Self {
            permits,
            users: Arc::default(),
        }
    }

    /// The part of a user: the same for all who have it at once.
    pub(crate) fn of(&self, user: &Uid) -> Arc<Semaphore> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = users.parts.get(user).and_then(Weak::upgrade) {
            return part;
        }
        if users.parts.len() >= users.most {
            users.parts.retain(|_, part| part.strong_count() > 0);
            users.most = 2 * users.parts.len() + 64;
        }
        let part = Arc::new(Semaphore::new(self.permits));
        users.parts.insert(user.clone(), Arc::downgrade(&part));
        part
    }

    #[cfg(test)]
    pub(crate) fn remembered(&self) -> usize {
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.parts.len()
    }
}
