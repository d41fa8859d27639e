//! A cache of desired rows, so that a pass over ten thousand objects is one scan.
//!
//! `keys()` of a reconciler fills it in one statement; a bell marks the keys that are dirty, and an
//! action that changes a row marks that one; only marked keys are read one by one.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schema::ids::Uid;

#[derive(Debug)]
struct State<T> {
    rows: HashMap<Uid, Arc<T>>,
    stale: HashSet<Uid>,
    loaded: bool,
}

/// Rows by uid, with marks on those that may have changed.
#[derive(Debug)]
pub struct Desired<T>(Mutex<State<T>>);

impl<T> Default for Desired<T> {
    fn default() -> Self {
        Self(Mutex::new(State {
            rows: HashMap::new(),
            stale: HashSet::new(),
            loaded: false,
        }))
    }
}

impl<T> Desired<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next look at this key reads its row.
    pub fn mark_stale(&self, uid: &Uid) {
        self.state().stale.insert(uid.clone());
    }

    /// The row as cached; `None` when it must be read.
    pub fn get(&self, uid: &Uid) -> Option<Option<Arc<T>>> {
        let state = self.state();
        if !state.loaded || state.stale.contains(uid) {
            return None;
        }
        Some(state.rows.get(uid).cloned())
    }

    /// Takes the mark off before the row is read: a change that comes meanwhile marks it again.
    pub fn about_to_read(&self, uid: &Uid) {
        self.state().stale.remove(uid);
    }

    /// Keeps a row that was read, or that it is gone.
    pub fn put(&self, uid: &Uid, row: Option<Arc<T>>) {
        let mut state = self.state();
        match row {
            Some(row) => {
                state.rows.insert(uid.clone(), row);
            }
            None => {
                state.rows.remove(uid);
            }
        }
    }

    /// Marks that stand before a scan begins; give them back to [`Desired::replace`].
    pub fn marks(&self) -> Vec<Uid> {
        self.state().stale.iter().cloned().collect()
    }

    /// Keeps the result of a scan, and takes off the marks that stood before it began.
    pub fn replace(&self, marks: &[Uid], rows: impl IntoIterator<Item = (Uid, T)>) {
        let rows = rows
            .into_iter()
            .map(|(uid, row)| (uid, Arc::new(row)))
            .collect();
        let mut state = self.state();
        for uid in marks {
            state.stale.remove(uid);
        }
        state.rows = rows;
        state.loaded = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_made_during_a_scan_survives_it() {
        let cache = Desired::default();
        let [a, b] = ["a", "b"].map(|u| Uid::from(u.to_owned()));
        assert_eq!(
            cache.get(&a),
            None,
            "nothing is known before the first scan"
        );
        cache.mark_stale(&a);
        let marks = cache.marks();
        cache.mark_stale(&b);
        cache.replace(&marks, [(a.clone(), 1), (b.clone(), 2)]);
        assert_eq!(cache.get(&a), Some(Some(Arc::new(1))));
        assert_eq!(cache.get(&b), None);
        cache.about_to_read(&b);
        cache.put(&b, None);
        assert_eq!(cache.get(&b), Some(None));
    }
}
