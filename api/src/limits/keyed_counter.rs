//! Per-key counters that cap how many of something one owner has.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Bound;

/// Counts by key; a key without any is not in it.
type Counts<K> = Mutex<HashMap<K, usize>>;

/// Counters of places, one for each key. Clones share them.
#[derive(Debug)]
pub(crate) struct KeyedCounter<K: Eq + Hash> {
    counts: Arc<Counts<K>>,
    most: usize,
}

impl<K: Eq + Hash> Clone for KeyedCounter<K> {
    fn clone(&self) -> Self {
        Self {
            counts: Arc::clone(&self.counts),
            most: self.most,
        }
    }
}

/// A place; given back when dropped.
#[derive(Debug)]
pub(crate) struct Place<K: Eq + Hash> {
    key: K,
    counts: Arc<Counts<K>>,
}

impl<K: Clone + Eq + Hash> KeyedCounter<K> {
    /// Makes counters that allow each key its part of a bound.
    pub(crate) fn new(bound: &Bound) -> Self {
        Self::with_most(bound, bound.each())
    }

    /// Makes counters that allow each key another number than the part of the bound, as tests and settings say.
    pub(crate) fn with_most(_: &Bound, most: usize) -> Self {
        Self {
            counts: Arc::default(),
            most,
        }
    }

    /// Takes a place for this key; `None` when it has its part already.
    pub(crate) fn enter(&self, key: &K) -> Option<Place<K>> {
        let mut counts = lock(&self.counts);
        let held = counts.get(key).copied().unwrap_or_default();
        if held >= self.most {
            return None;
        }
        counts.insert(key.clone(), held + 1);
        Some(Place {
            key: key.clone(),
            counts: Arc::clone(&self.counts),
        })
    }

    /// Returns true if no place is taken.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.counts).is_empty()
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
