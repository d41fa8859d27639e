//! Counts starts that the engine has failed, so that a container which can never start again is replaced.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use schema::ids::Uid;

/// Failed starts in a row after which a container is replaced.
const ATTEMPTS: u32 = 3;
/// Most doublings of that number while replacements fail, too.
const DOUBLINGS: u32 = 6;

#[derive(Debug, Default)]
struct Failed {
    container: String,
    starts: u32,
    /// Containers before it that were replaced for this.
    replaced: u32,
}

impl Failed {
    fn limit(&self) -> u32 {
        ATTEMPTS << self.replaced.min(DOUBLINGS)
    }
}

/// Failed starts of the newest container of each user whose starts fail; in memory only.
#[derive(Debug, Default)]
pub(super) struct FailedStarts {
    users: Mutex<HashMap<Uid, Failed>>,
}

impl FailedStarts {
    fn users(&self) -> MutexGuard<'_, HashMap<Uid, Failed>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a failed start.
    pub(super) fn count(&self, uid: &Uid, container: &str) {
        let mut users = self.users();
        let failed = users.entry(uid.clone()).or_default();
        if failed.container != container {
            let was_replaced = failed.starts >= failed.limit();
            container.clone_into(&mut failed.container);
            failed.starts = 0;
            failed.replaced += u32::from(was_replaced);
        }
        failed.starts += 1;
    }

    /// Number of failed starts of this container, when it is to be replaced.
    pub(super) fn too_many(&self, uid: &Uid, container: &str) -> Option<u32> {
        let users = self.users();
        let failed = users.get(uid)?;
        (failed.container == container && failed.starts >= failed.limit()).then_some(failed.starts)
    }

    /// Forgets a user, whose container was started or is gone.
    pub(super) fn forget(&self, uid: &Uid) {
        self.users().remove(uid);
    }

    /// Forgets all users.
    pub(super) fn forget_all(&self) {
        self.users().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacement_that_fails_is_tried_twice_as_often() {
        let starts = FailedStarts::default();
        let uid = Uid::random();
        let mut needed = Vec::new();
        for container in ["a", "b", "c"] {
            let mut times = 0;
            while starts.too_many(&uid, container).is_none() {
                starts.count(&uid, container);
                times += 1;
            }
            needed.push(times);
        }
        assert_eq!(needed, [3, 6, 12]);
        starts.forget(&uid);
        starts.count(&uid, "d");
        assert_eq!(starts.too_many(&uid, "d"), None);
    }
}
