//! Per-key counters that cap how many of something one owner has.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts by key; a key without any is not in it.
type Counts<K> = Mutex<HashMap<K, usize>>;

/// Counters of places, one for each key. Clones share them.
#[derive(Debug)]
pub(crate) struct Tally<K: Eq + Hash>(Arc<Counts<K>>);

impl<K: Eq + Hash> Default for Tally<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash> Clone for Tally<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// A place; given back when dropped.
#[derive(Debug)]
pub(crate) struct Place<K: Eq + Hash> {
    key: K,
    counts: Arc<Counts<K>>,
}

impl<K: Clone + Eq + Hash> Tally<K> {
    /// Takes a place for this key; `None` when it has `most` already.
    pub(crate) fn enter(&self, key: &K, most: usize) -> Option<Place<K>> {
        let mut counts = lock(&self.0);
        let held = counts.get(key).copied().unwrap_or_default();
        if held >= most {
            return None;
        }
        counts.insert(key.clone(), held + 1);
        Some(Place {
            key: key.clone(),
            counts: self.0.clone(),
        })
    }

    /// Returns true if no place is taken.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }
}

impl<K: Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts);
        match counts.get_mut(&self.key) {
            Some(held) if *held > 1 => *held -= 1,
            _ => {
                counts.remove(&self.key);
            }
        }
    }
}

fn lock<K>(counts: &Counts<K>) -> MutexGuard<'_, HashMap<K, usize>> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}
