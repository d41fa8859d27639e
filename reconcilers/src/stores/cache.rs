//! A cache of what is known of many objects, so that a pass over ten thousand is one read.
//!
//! One scan fills it; a mark says that one entry may have changed and must be read by itself. Scans
//! and single reads run beside each other and may end in any order: each takes a ticket when it
//! begins and one when it ends. What began after another had ended is the newer knowledge. Of two that
//! ran beside each other nobody can say which looked later, neither by their beginnings nor by their
//! ends: where they differ, the object is marked, and the next observation reads it again. So nobody who has
//! seen an object is ever shown an older state of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schema::ids::Uid;

/// When a read began or ended, in the order of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// What to do with marks that were made before a scan began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// The scan answers them.
    Answered,
    /// They ask for more than a scan shows.
    Keep,
}

#[derive(Debug)]
struct Entry<T> {
    found: Option<Arc<T>>,
    begun: Ticket,
    /// When the last read that has shown this ended.
    ended: Ticket,
}

// Not derived, which would ask the same of what is shared.
impl<T> Clone for Entry<T> {
    fn clone(&self) -> Self {
        Self {
            found: self.found.clone(),
            begun: self.begun,
            ended: self.ended,
        }
    }
}

#[derive(Debug)]
struct State<T> {
    entries: HashMap<Uid, Entry<T>>,
    marks: HashMap<Uid, Ticket>,
    issued: u64,
    /// When the last scan began and ended. What it did not find is known to be absent.
    scanned: Option<(Ticket, Ticket)>,
}

impl<T> State<T> {
    fn issue(&mut self) -> Ticket {
        self.issued += 1;
        Ticket(self.issued)
    }

    fn mark(&mut self, uid: &Uid) {
        let ticket = self.issue();
        self.marks.insert(uid.clone(), ticket);
    }

    fn known(&self, uid: &Uid) -> Option<Entry<T>> {
        let absent = self.scanned.map(|(begun, ended)| Entry {
            found: None,
            begun,
            ended,
        });
        self.entries.get(uid).cloned().or(absent)
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
            scanned: None,
        }))
    }
}

impl<T> Cache<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known may be older than it should be: until the next scan has ended, each object is read.
    pub fn distrust(&self) {
        self.state().scanned = None;
    }

    /// The next observe this object must read it.
    pub fn mark(&self, uid: &Uid) {
        self.state().mark(uid);
    }

    /// What is known: `None` when it must be read; else the object, or that there is none.
    pub fn get(&self, uid: &Uid) -> Option<Option<Arc<T>>> {
        let state = self.state();
        if state.scanned.is_none() || state.marks.contains_key(uid) {
            return None;
        }
        Some(state.entries.get(uid).and_then(|entry| entry.found.clone()))
    }

    /// A read is about to begin.
    pub fn begin(&self) -> Ticket {
        self.state().issue()
    }

    /// Keeps what a read of one object found, and takes the mark off that it answers. A mark that was
    /// made after the read began stays. What a read or a scan beside this one has found stays if that
    /// one began later, and is asked again if it differs.
    pub fn put(&self, uid: &Uid, ticket: Ticket, found: Option<Arc<T>>)
    where
        T: PartialEq,
    {
        let mut state = self.state();
        let ended = state.issue();
        if state.marks.get(uid).is_some_and(|mark| *mark <= ticket) {
            state.marks.remove(uid);
        }
        let mut entry = Entry {
            found,
            begun: ticket,
            ended,
        };
        if let Some(beside) = state.known(uid).filter(|known| known.ended > ticket) {
            if beside.found != entry.found {
                state.mark(uid);
            }
            if beside.begun > ticket {
                entry = Entry { ended, ..beside };
            }
        }
        state.entries.insert(uid.clone(), entry);
    }

    /// Keeps what a scan found, except where a read beside it has begun later; where such a read has
    /// found something else, it is asked again. Only one scan runs at a time.
    pub fn replace(&self, ticket: Ticket, marks: Marks, found: impl IntoIterator<Item = (Uid, T)>)
    where
        T: PartialEq,
    {
        let found: HashMap<Uid, Arc<T>> = found
            .into_iter()
            .map(|(uid, entry)| (uid, Arc::new(entry)))
            .collect();
        let mut state = self.state();
        let ended = state.issue();
        if marks == Marks::Answered {
            state.marks.retain(|_, mark| *mark > ticket);
        }
        let mut beside = std::mem::take(&mut state.entries);
        beside.retain(|_, entry| entry.ended > ticket);
        for (uid, entry) in &beside {
            if found.get(uid) != entry.found.as_ref() {
                state.mark(uid);
            }
        }
        state.entries = found
            .into_iter()
            .map(|(uid, found)| {
                let entry = Entry {
                    found: Some(found),
                    begun: ticket,
                    ended,
                };
                (uid, entry)
            })
            .collect();
        let later = beside.into_iter().filter(|(_, e)| e.begun > ticket);
        let later = later.map(|(uid, entry)| (uid, Entry { ended, ..entry }));
        state.entries.extend(later);
        state.scanned = Some((ticket, ended));
    }

    /// Uids of all objects that are known to exist.
    pub fn uids(&self) -> Vec<Uid> {
        let state = self.state();
        let present = state
            .entries
            .iter()
            .filter(|(_, entry)| entry.found.is_some());
        present.map(|(uid, _)| uid.clone()).collect()
    }

    /// Collects something of all objects that are known to exist.
    pub fn collect<B>(&self, mut each: impl FnMut(&T) -> Option<B>) -> Vec<B> {
        let state = self.state();
        let present = state
            .entries
            .values()
            .filter_map(|entry| entry.found.as_deref());
        present.filter_map(&mut each).collect()
    }

    /// Sums something up over all objects that are known to exist.
    pub fn sum(&self, of: impl Fn(&T) -> usize) -> usize {
        let state = self.state();
        let present = state
            .entries
            .values()
            .filter_map(|entry| entry.found.as_deref());
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
    fn what_is_distrusted_is_read_until_the_next_scan_and_still_counted() {
        let cache = Cache::default();
        let [a, b] = ["a", "b"].map(|u| Uid::from(u.to_owned()));
        let first = cache.begin();
        cache.replace(first, Marks::Answered, [(a.clone(), 1), (b.clone(), 1)]);
        cache.distrust();
        assert_eq!(known(&cache, &a), None);
        let read = cache.begin();
        cache.put(&a, read, Some(Arc::new(2)));
        assert_eq!(known(&cache, &a), None, "others are not known to be absent");
        assert_eq!(cache.sum(|_| 1), 2, "unknown is not empty");
        cache.replace(cache.begin(), Marks::Answered, [(a.clone(), 3)]);
        assert_eq!(known(&cache, &a), Some(Some(3)));
        assert_eq!(known(&cache, &b), Some(None));
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
        assert_eq!(known(&cache, &a), None, "asked again");
        assert_eq!(known(&cache, &b), None, "asked again");
        assert_eq!(
            cache.uids(),
            std::slice::from_ref(&a),
            "what is gone stays gone"
        );
        cache.put(&a, cache.begin(), Some(Arc::new(2)));
        assert_eq!(known(&cache, &a), Some(Some(2)));
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
        assert_eq!(known(&cache, &a), None, "asked again");
        assert_eq!(known(&cache, &b), None, "asked again");
        assert_eq!(cache.uids(), [a], "what is gone stays gone");
    }

    /// A read and a scan begin in one order, look in the other, and end in either: the read has seen
    /// the second state, the scan the first.
    #[test]
    fn l32_nobody_who_has_seen_an_object_is_shown_an_older_state_of_it() {
        let a = Uid::from("a".to_owned());
        let listed = |state: Option<i32>| state.map(|state| (a.clone(), state));
        for (first, second) in [(Some(1), Some(2)), (Some(1), None), (None, Some(2))] {
            for read_ends_first in [true, false] {
                let cache = Cache::default();
                cache.replace(cache.begin(), Marks::Answered, listed(first));
                let read = cache.begin();
                let scan = cache.begin();
                let put = || cache.put(&a, read, second.map(Arc::new));
                if read_ends_first {
                    put();
                }
                cache.replace(scan, Marks::Answered, listed(first));
                if !read_ends_first {
                    put();
                }
                let shown = known(&cache, &a);
                assert_eq!(shown, None, "{first:?}, then {second:?}: asked again");
                cache.put(&a, cache.begin(), second.map(Arc::new));
                assert_eq!(known(&cache, &a), Some(second));
            }
        }
    }

    #[test]
    fn reads_beside_each_other_that_agree_are_believed() {
        let cache = Cache::default();
        let a = Uid::from("a".to_owned());
        let (scan, slow, fast) = (cache.begin(), cache.begin(), cache.begin());
        cache.put(&a, fast, Some(Arc::new(1)));
        cache.put(&a, slow, Some(Arc::new(1)));
        cache.replace(scan, Marks::Answered, [(a.clone(), 1)]);
        assert_eq!(known(&cache, &a), Some(Some(1)));
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
        assert_eq!(known(&cache, &a), None, "asked again");
        assert_eq!(cache.sum(|n| usize::try_from(*n).unwrap()), 2);
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
