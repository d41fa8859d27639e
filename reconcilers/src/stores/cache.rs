//! A cache of what is known of many objects, so that a pass over ten thousand is one read.
//!
//! One scan fills it; a mark says that one entry may have changed and must be read by itself. Scans
//! and single reads run beside each other and may end in any order: each takes a ticket when it
//! begins, and nothing that was learnt by a later ticket is ever replaced by an earlier one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schema::ids::Uid;

/// When a read began, in the order of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// What to do with marks that were made before a scan began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// The scan answers them.
    Answered,
    /// They ask for more than a scan tells.
    Keep,
}

#[derive(Debug)]
struct State<T> {
    entries: HashMap<Uid, (Option<Arc<T>>, Ticket)>,
    marks: HashMap<Uid, Ticket>,
    issued: u64,
    loaded: bool,
}

impl<T> State<T> {
    fn issue(&mut self) -> Ticket {
        self.issued += 1;
        Ticket(self.issued)
    }
}

/// What is known of objects, by uid.
#[derive(Debug)]
pub struct Cache<T>(Mutex<State<T>>);

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self(Mutex::new(State {
            entries: HashMap::new(),
            marks: HashMap::new(),
            issued: 0,
            loaded: false,
        }))
    }
}

impl<T> Cache<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next look at this object must read it.
    pub fn mark(&self, uid: &Uid) {
        let mut state = self.state();
        let ticket = state.issue();
        state.marks.insert(uid.clone(), ticket);
    }

    /// What is known: `None` when it must be read; else the object, or that there is none.
    pub fn get(&self, uid: &Uid) -> Option<Option<Arc<T>>> {
        let state = self.state();
        if !state.loaded || state.marks.contains_key(uid) {
            return None;
        }
        Some(state.entries.get(uid).and_then(|(entry, _)| entry.clone()))
    }

    /// A read is about to begin.
    pub fn begin(&self) -> Ticket {
        self.state().issue()
    }

    /// Keeps what a read of one object found, and takes the mark off that it answers. A mark that was
    /// made after the read began stays, and so does what a later read has found.
    pub fn put(&self, uid: &Uid, ticket: Ticket, found: Option<Arc<T>>) {
        let mut state = self.state();
        if state.marks.get(uid).is_some_and(|mark| *mark <= ticket) {
            state.marks.remove(uid);
        }
        let newer = state.entries.get(uid).is_some_and(|(_, at)| *at > ticket);
        if !newer {
            state.entries.insert(uid.clone(), (found, ticket));
        }
    }

    /// Keeps what a scan found, except where a later read knows better.
    pub fn replace(&self, ticket: Ticket, marks: Marks, found: impl IntoIterator<Item = (Uid, T)>) {
        let mut entries: HashMap<Uid, (Option<Arc<T>>, Ticket)> = found
            .into_iter()
            .map(|(uid, entry)| (uid, (Some(Arc::new(entry)), ticket)))
            .collect();
        let mut state = self.state();
        if state.entries.values().any(|(_, at)| *at > ticket) {
            let later = state.entries.drain().filter(|(_, (_, at))| *at > ticket);
            entries.extend(later);
        }
        state.entries = entries;
        state.loaded = true;
        if marks == Marks::Answered {
            state.marks.retain(|_, mark| *mark > ticket);
        }
    }

    /// Uids of all objects that are known to exist.
    pub fn uids(&self) -> Vec<Uid> {
        let state = self.state();
        let present = state
            .entries
            .iter()
            .filter(|(_, (entry, _))| entry.is_some());
        present.map(|(uid, _)| uid.clone()).collect()
    }

    /// Sums something up over all objects that are known to exist.
    pub fn sum(&self, of: impl Fn(&T) -> usize) -> usize {
        let state = self.state();
        let present = state
            .entries
            .values()
            .filter_map(|(entry, _)| entry.as_deref());
        present.map(of).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(cache: &Cache<i32>, uid: &Uid) -> Option<Option<i32>> {
        cache.get(uid).map(|entry| entry.map(|entry| *entry))
    }

    #[test]
    fn a_mark_made_during_a_scan_survives_it() {
        let cache = Cache::default();
        let [a, b] = ["a", "b"].map(|u| Uid::from(u.to_owned()));
        assert_eq!(
            known(&cache, &a),
            None,
            "nothing is known before the first scan"
        );
        cache.mark(&a);
        let scan = cache.begin();
        cache.mark(&b);
        cache.replace(scan, Marks::Answered, [(a.clone(), 1), (b.clone(), 2)]);
        assert_eq!(known(&cache, &a), Some(Some(1)));
        assert_eq!(known(&cache, &b), None);
    }

    #[test]
    fn l32_a_slow_scan_does_not_bring_back_what_a_later_read_has_replaced() {
        let cache = Cache::default();
        let [a, b] = ["a", "b"].map(|u| Uid::from(u.to_owned()));
        let first = cache.begin();
        cache.replace(first, Marks::Answered, [(a.clone(), 1), (b.clone(), 1)]);
        let scan = cache.begin();
        cache.mark(&a);
        let read = cache.begin();
        cache.put(&a, read, Some(Arc::new(2)));
        let read = cache.begin();
        cache.put(&b, read, None);
        cache.replace(scan, Marks::Answered, [(a.clone(), 1), (b.clone(), 1)]);
        assert_eq!(known(&cache, &a), Some(Some(2)));
        assert_eq!(known(&cache, &b), Some(None), "what is gone stays gone");
        let next = cache.begin();
        cache.replace(next, Marks::Answered, [(a.clone(), 3)]);
        assert_eq!(known(&cache, &a), Some(Some(3)));
        assert_eq!(cache.uids(), [a]);
    }

    #[test]
    fn l13_not_even_the_first_scan_brings_back_what_a_later_read_has_replaced() {
        let cache = Cache::default();
        let [a, b] = ["a", "b"].map(|u| Uid::from(u.to_owned()));
        let first = cache.begin();
        cache.put(&a, cache.begin(), Some(Arc::new(2)));
        cache.put(&b, cache.begin(), None);
        cache.replace(first, Marks::Answered, [(a.clone(), 1), (b.clone(), 1)]);
        assert_eq!(known(&cache, &a), Some(Some(2)));
        assert_eq!(known(&cache, &b), Some(None), "what is gone stays gone");
    }

    #[test]
    fn a_slow_read_neither_answers_a_later_mark_nor_replaces_a_later_read() {
        let cache = Cache::default();
        let a = Uid::from("a".to_owned());
        cache.replace(cache.begin(), Marks::Answered, []);
        cache.mark(&a);
        let slow = cache.begin();
        let fast = cache.begin();
        cache.put(&a, fast, Some(Arc::new(2)));
        cache.put(&a, slow, Some(Arc::new(1)));
        assert_eq!(known(&cache, &a), Some(Some(2)));
        let slow = cache.begin();
        cache.mark(&a);
        cache.put(&a, slow, Some(Arc::new(3)));
        assert_eq!(known(&cache, &a), None);
    }

    #[test]
    fn marks_may_outlive_a_scan() {
        let cache = Cache::default();
        let a = Uid::from("a".to_owned());
        cache.mark(&a);
        cache.replace(cache.begin(), Marks::Keep, [(a.clone(), 1)]);
        assert_eq!(known(&cache, &a), None);
        assert_eq!(cache.sum(|n| usize::try_from(*n).unwrap()), 1);
    }
}
