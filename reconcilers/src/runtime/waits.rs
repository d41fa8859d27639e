//! Who waits for what: a key whose plan names an object is woken when that object changes.
//!
//! A plan names what it waits for as data ([`Plan::waits_for`](super::Plan::waits_for)); the runtime registers that
//! with the end of the pass, and each saved status (and the end of each pull) wakes whoever is registered. Nothing
//! falls between the observation and the registration: what has changed since the pass began wakes at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use schema::ids::{Kind, Uid};

/// What is waited for. An image may be named by its reference in place of a uid: then its pull wakes.
pub type Awaited = (Kind, Uid);

/// Wakes keys of one reconciler.
pub(super) trait Waker: Send + Sync {
    /// What this key waits for has changed; `bulk`: in the course of a change of many.
    fn wake(&self, key: &str, bulk: bool);
}

/// A waiting key: reconciler and key. Ordered, so that runs can be repeated exactly.
type Waiter = (&'static str, String);

#[derive(Default)]
struct State {
    wakers: BTreeMap<&'static str, Weak<dyn Waker>>,
    waiting: BTreeMap<Waiter, Vec<Awaited>>,
    waiters: BTreeMap<Awaited, BTreeSet<Waiter>>,
    /// Raised by each change.
    version: u64,
    /// Passes under way, by the version at which they began.
    passes: BTreeMap<u64, usize>,
    /// What has changed since the oldest of them began.
    changes: BTreeMap<u64, Awaited>,
}

impl State {
    fn set(&mut self, waiter: &Waiter, awaited: Vec<Awaited>) {
        for old in self.waiting.remove(waiter).unwrap_or_default() {
            if let Some(waiters) = self.waiters.get_mut(&old) {
                waiters.remove(waiter);
                if waiters.is_empty() {
                    self.waiters.remove(&old);
                }
            }
        }
        for one in &awaited {
            let waiters = self.waiters.entry(one.clone()).or_default();
            waiters.insert(waiter.clone());
        }
        if !awaited.is_empty() {
            self.waiting.insert(waiter.clone(), awaited);
        }
    }
}

/// What keys of all reconcilers of this process wait for. Clones share it.
#[derive(Clone, Default)]
pub struct Waits(Arc<Mutex<State>>);

impl fmt::Debug for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waits").finish_non_exhaustive()
    }
}

/// A pass under way.
pub(super) struct Pass {
    waits: Waits,
    began: u64,
}

impl Waits {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who wakes the keys of a reconciler.
    pub(super) fn serve(&self, reconciler: &'static str, waker: Weak<dyn Waker>) {
        self.state().wakers.insert(reconciler, waker);
    }

    /// A pass begins, before anything is observed.
    pub(super) fn begin(&self) -> Pass {
        let mut state = self.state();
        let began = state.version;
        *state.passes.entry(began).or_default() += 1;
        drop(state);
        Pass {
            waits: self.clone(),
            began,
        }
    }

    /// An object has changed, `bulk`: in the course of a change of many. Wakes whoever waits for it.
    pub fn changed(&self, kind: Kind, uid: &Uid, bulk: bool) {
        let awaited = (kind, uid.clone());
        let wakes: Vec<_> = {
            let mut state = self.state();
            state.version += 1;
            let version = state.version;
            if !state.passes.is_empty() {
                state.changes.insert(version, awaited.clone());
            }
            let waiters = state.waiters.get(&awaited);
            let wakes = waiters.into_iter().flatten().filter_map(|(name, key)| {
                let waker = state.wakers.get(name)?.upgrade()?;
                Some((waker, key.clone()))
            });
            wakes.collect()
        };
        for (waker, key) in wakes {
            waker.wake(&key, bulk);
        }
    }
}

impl Pass {
    /// What a key waits for from now on; nothing when the list is empty. Tells whether any of it has changed since the
    /// pass began.
    pub fn register(&self, reconciler: &'static str, key: &str, awaited: Vec<Awaited>) -> bool {
        let mut state = self.waits.state();
        let mut since = state.changes.range(self.began + 1..);
        let changed = since.any(|(_, one)| awaited.contains(one));
        state.set(&(reconciler, key.to_owned()), awaited);
        changed
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut state = self.waits.state();
        if let Some(count) = state.passes.get_mut(&self.began) {
            *count -= 1;
            if *count == 0 {
                state.passes.remove(&self.began);
            }
        }
        // What changed before the oldest pass began has been observed by all.
        let oldest = state.passes.keys().next().copied();
        match oldest {
            Some(oldest) => state.changes = state.changes.split_off(&(oldest + 1)),
            None => state.changes.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Woken(Mutex<Vec<String>>);

    impl Waker for Woken {
        fn wake(&self, key: &str, _bulk: bool) {
            self.0.lock().unwrap().push(key.to_owned());
        }
    }

    fn object(name: &str) -> Awaited {
        (Kind::User, Uid::from(name.to_owned()))
    }

    fn waits() -> (Waits, Arc<Woken>) {
        let (waits, woken) = (Waits::default(), Arc::new(Woken::default()));
        let waker: Weak<Woken> = Arc::downgrade(&woken);
        waits.serve("mock", waker);
        (waits, woken)
    }

    fn woken(woken: &Woken) -> Vec<String> {
        std::mem::take(&mut woken.0.lock().unwrap())
    }

    #[test]
    fn whoever_waits_for_an_object_is_woken_by_its_change() {
        let (waits, log) = waits();
        let [a, b] = ["a", "b"].map(object);
        let pass = waits.begin();
        assert!(!pass.register("mock", "x", vec![a.clone(), b.clone()]));
        assert!(!pass.register("mock", "y", vec![a.clone()]));
        waits.changed(a.0, &a.1, false);
        assert_eq!(woken(&log), ["x", "y"]);
        waits.changed(b.0, &b.1, false);
        assert_eq!(woken(&log), ["x"]);
        pass.register("mock", "x", vec![a.clone()]);
        waits.changed(b.0, &b.1, false);
        assert!(woken(&log).is_empty(), "it waits for something else by now");
        pass.register("mock", "y", Vec::new());
        waits.changed(a.0, &a.1, false);
        assert_eq!(woken(&log), ["x"]);
    }

    #[test]
    fn nothing_falls_between_the_observation_and_the_registration() {
        let (waits, log) = waits();
        let [a, b] = ["a", "b"].map(object);
        waits.changed(a.0, &a.1, false);
        let first = waits.begin();
        let second = waits.begin();
        waits.changed(a.0, &a.1, false);
        drop(second);
        assert!(first.register("mock", "x", vec![a.clone()]));
        assert!(!first.register("mock", "x", vec![b.clone()]));
        let third = waits.begin();
        assert!(!third.register("mock", "y", vec![a]), "it changed before");
        assert!(woken(&log).is_empty());
    }

    #[test]
    fn changes_are_kept_no_longer_than_the_oldest_pass_needs_them() {
        let (waits, _) = waits();
        let a = object("a");
        waits.changed(a.0, &a.1, false);
        assert!(waits.state().changes.is_empty(), "no pass is under way");
        let old = waits.begin();
        waits.changed(a.0, &a.1, false);
        let young = waits.begin();
        waits.changed(a.0, &a.1, false);
        drop(old);
        assert_eq!(waits.state().changes.len(), 1);
        drop(young);
        let state = waits.state();
        assert!(state.changes.is_empty() && state.passes.is_empty());
    }
}
