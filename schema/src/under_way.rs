//! The registry of work that is under way in this process, for the report of the watchdog.
//!
//! It holds kinds, patterns of routes, names of reconcilers and keys: no text of a user, no path, no parameter.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, SystemClock};

/// Most entries; work beyond them is counted only.
pub const MOST: usize = SHARDS * PER_SHARD;
const SHARDS: usize = 16;
const PER_SHARD: usize = 256;

static REGISTRY: Registry = Registry::new();

/// Kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// A request, until the head of its answer is made.
    Request,
    /// A reconciliation of one object.
    Reconciliation,
    /// A call that blocks its thread, on files mostly.
    Call,
}

/// An entry as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Kind.
    pub work: Work,
    /// Method, reconciler, or kind of call.
    pub name: &'static str,
    /// Pattern of the route; empty before it is found, and for other work.
    pub route: &'static str,
    /// Kind of caller of a request, state of a call.
    pub state: &'static str,
    /// Key of a reconciliation.
    pub key: Box<str>,
    /// Step of a reconciliation.
    pub step: Box<str>,
    /// Time since it began.
    pub age: Duration,
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.work {
            Work::Request => {
                let route = if self.route.is_empty() {
                    "-"
                } else {
                    self.route
                };
                write!(f, "request {} {route} ({})", self.name, self.state)
            }
            Work::Reconciliation => {
                write!(
                    f,
                    "reconciliation {}/{} ({})",
                    self.name, self.key, self.step
                )
            }
            Work::Call => write!(f, "call {} ({})", self.name, self.state),
        }
    }
}

struct Item {
    listed: Listed,
    begun: Duration,
}

struct Shard {
    items: Vec<Option<Item>>,
    free: Vec<usize>,
}

/// Slots in shards, so that threads rarely wait for each other.
struct Registry {
    shards: [Mutex<Shard>; SHARDS],
    next: AtomicUsize,
    omitted: AtomicUsize,
}

impl Registry {
    const fn new() -> Self {
        Self {
            shards: [const {
                Mutex::new(Shard {
                    items: Vec::new(),
                    free: Vec::new(),
                })
            }; SHARDS],
            next: AtomicUsize::new(0),
            omitted: AtomicUsize::new(0),
        }
    }

    /// Held for the change of one slot, never across other work.
    fn shard(&self, number: usize) -> MutexGuard<'_, Shard> {
        self.shards[number % SHARDS]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&'static self, work: Work, name: &'static str, key: Box<str>) -> Entry {
        let number = self.next.fetch_add(1, Ordering::Relaxed) % SHARDS;
        let listed = Listed {
            work,
            name,
            route: "",
            state: "-",
            key,
            step: Box::default(),
            age: Duration::ZERO,
        };
        let begun = SystemClock.steady();
        let item = Some(Item { listed, begun });
        let mut shard = self.shard(number);
        let slot = match shard.free.pop() {
            Some(slot) => {
                shard.items[slot] = item;
                Some(slot)
            }
            None if shard.items.len() < PER_SHARD => {
                shard.items.push(item);
                Some(shard.items.len() - 1)
            }
            None => None,
        };
        drop(shard);
        if slot.is_none() {
            self.omitted.fetch_add(1, Ordering::Relaxed);
        }
        Entry {
            registry: self,
            place: slot.map(|slot| (number, slot)),
        }
    }

    fn list(&self) -> (Vec<Listed>, usize) {
        let now = SystemClock.steady();
        let mut all = Vec::new();
        for number in 0..SHARDS {
            let shard = self.shard(number);
            all.extend(shard.items.iter().flatten().map(|item| Listed {
                age: now.saturating_sub(item.begun),
                ..item.listed.clone()
            }));
        }
        all.sort_by_key(|listed| std::cmp::Reverse(listed.age));
        (all, self.omitted.load(Ordering::Relaxed))
    }
}

/// Work that is under way until this is dropped.
pub struct Entry {
    registry: &'static Registry,
    /// Shard and slot; `None` when there was none.
    place: Option<(usize, usize)>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("place", &self.place).finish()
    }
}

impl Entry {
    fn change(&self, change: impl FnOnce(&mut Listed)) {
        let Some((number, slot)) = self.place else {
            return;
        };
        if let Some(Some(item)) = self.registry.shard(number).items.get_mut(slot) {
            change(&mut item.listed);
        }
    }

    /// Sets the pattern of a request's route.
    pub fn set_route(&self, route: &'static str) {
        self.change(|listed| listed.route = route);
    }

    /// Sets the kind of a request's caller, or the state of a call.
    pub fn set_state(&self, state: &'static str) {
        self.change(|listed| listed.state = state);
    }

    /// Sets the step of a reconciliation.
    pub fn set_step(&self, step: &str) {
        let step = Box::from(step);
        self.change(|listed| listed.step = step);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let Some((number, slot)) = self.place else {
            self.registry.omitted.fetch_sub(1, Ordering::Relaxed);
            return;
        };
        let mut shard = self.registry.shard(number);
        if let Some(item) = shard.items.get_mut(slot) {
            *item = None;
            shard.free.push(slot);
        }
    }
}

/// Registers a request. `method`: one of the known ones.
pub fn begin_request(method: &'static str) -> Entry {
    REGISTRY.add(Work::Request, method, Box::default())
}

/// Registers the reconciliation of an object.
pub fn begin_reconciliation(reconciler: &'static str, key: String) -> Entry {
    REGISTRY.add(Work::Reconciliation, reconciler, key.into())
}

/// Registers a call of this kind from now on, also while it waits for a thread.
pub fn track_call<T>(kind: &'static str, work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let entry = REGISTRY.add(Work::Call, kind, Box::default());
    entry.set_state("queued");
    move || {
        entry.set_state("running");
        let done = work();
        drop(entry);
        done
    }
}

/// Lists all entries, oldest first, and the number of those without one.
pub fn list() -> (Vec<Listed>, usize) {
    REGISTRY.list()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry() -> &'static Registry {
        Box::leak(Box::new(Registry::new()))
    }

    #[test]
    fn work_is_listed_while_it_is_under_way() {
        let registry = registry();
        let request = registry.add(Work::Request, "POST", Box::default());
        let pass = registry.add(Work::Reconciliation, "user", "u1".into());
        pass.set_step("EnsureHome");
        let texts = || {
            let (all, omitted) = registry.list();
            assert_eq!(omitted, 0);
            let mut texts: Vec<_> = all.iter().map(ToString::to_string).collect();
            texts.sort();
            texts
        };
        assert_eq!(
            texts(),
            ["reconciliation user/u1 (EnsureHome)", "request POST - (-)"]
        );
        request.set_route("/api/users/{name}");
        request.set_state("session");
        drop(pass);
        assert_eq!(texts(), ["request POST /api/users/{name} (session)"]);
        drop(request);
        assert!(texts().is_empty());
    }

    #[test]
    fn work_beyond_the_bound_is_counted() {
        let registry = registry();
        let mut held: Vec<_> = (0..MOST + 3)
            .map(|_| registry.add(Work::Call, "files", Box::default()))
            .collect();
        let count = || {
            let (all, omitted) = registry.list();
            (all.len(), omitted)
        };
        assert_eq!(count(), (MOST, 3));
        held.truncate(10);
        assert_eq!(count(), (10, 0));
        held.extend((0..20).map(|_| registry.add(Work::Call, "files", Box::default())));
        assert_eq!(count(), (30, 0), "slots are used again");
    }

    #[test]
    fn call_is_tracked_from_its_request_to_its_end() {
        let is_listed = |state: &str| {
            let (all, _) = list();
            let mut calls = all.iter().filter(|listed| listed.name == "a test");
            calls.any(|listed| listed.state == state)
        };
        let call = track_call("a test", || assert!(is_listed("running")));
        assert!(is_listed("queued"));
        call();
        assert!(!is_listed("queued") && !is_listed("running"));
    }
}
