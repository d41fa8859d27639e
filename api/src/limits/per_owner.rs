//! Semaphores of single owners, such as users or addresses, each with a part of what all share.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Semaphore;

/// Semaphores that are in use, one for each owner. Clones share them.
#[derive(Debug)]
pub(crate) struct PerOwner<K> {
    permits: usize,
    owners: Arc<Mutex<Owners<K>>>,
}

#[derive(Debug)]
struct Owners<K> {
    parts: HashMap<K, Weak<Semaphore>>,
    /// The number of entries at which unused ones are removed.
    most: usize,
}

impl<K> Clone for PerOwner<K> {
    fn clone(&self) -> Self {
        Self {
            permits: self.permits,
            owners: Arc::clone(&self.owners),
        }
    }
}

impl<K: Clone + Eq + Hash> PerOwner<K> {
    /// Semaphores of so many permits each.
    pub(crate) fn new(permits: usize) -> Self {
        let (parts, most) = (HashMap::new(), 0);
        Self {
            permits,
            owners: Arc::new(Mutex::new(Owners { parts, most })),
        }
    }

    /// Returns the permits of each owner.
    pub(super) fn permits(&self) -> usize {
        self.permits
    }

    /// Returns the semaphore of an owner: the same for all that hold it at once.
    pub(crate) fn part_of(&self, owner: &K) -> Arc<Semaphore> {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = owners.parts.get(owner).and_then(Weak::upgrade) {
            return part;
        }
        if owners.parts.len() >= owners.most {
            owners.parts.retain(|_, part| part.strong_count() > 0);
            owners.most = 2 * owners.parts.len() + 64;
        }
        #[allow(clippy::disallowed_methods)]
        let part = Arc::new(Semaphore::new(self.permits));
        owners.parts.insert(owner.clone(), Arc::downgrade(&part));
        part
    }

    /// Returns the number of owners that are kept.
    #[cfg(test)]
    pub(crate) fn remembered(&self) -> usize {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.parts.len()
    }
}
