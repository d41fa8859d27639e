//! Budgets of memory: a part for each owner, and one for all.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Bound, PerOwner};
use crate::error::{ApiError, Result};

/// Bytes of a permit.
const KIB: usize = 1024;
/// `Retry-After` of requests that find no memory.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A budget of memory. Clones share it.
#[derive(Debug)]
pub(crate) struct Memory<K> {
    all: Arc<Semaphore>,
    parts: PerOwner<K>,
}

impl<K> Clone for Memory<K> {
    fn clone(&self) -> Self {
        Self {
            all: Arc::clone(&self.all),
            parts: self.parts.clone(),
        }
    }
}

impl<K: Clone + Eq + Hash> Memory<K> {
    /// Makes the budget of this bound, whose unit is the byte.
    pub(crate) fn new(bound: &Bound) -> Self {
        Self::of_kib(bound.all() / KIB, bound.each() / KIB)
    }

    /// Makes a budget of so many KiB, of which one owner has at most `each`.
    #[allow(clippy::disallowed_methods)]
    pub(crate) fn of_kib(all: usize, each: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            parts: PerOwner::new(each),
        }
    }

    /// Returns an owner's share without any memory yet.
    pub(crate) fn share(&self, owner: &K) -> Share {
        // The owner's part first: an owner whose part is used up takes nothing of what others may have.
        let budgets = [self.parts.part_of(owner), Arc::clone(&self.all)];
        Share {
            held: budgets.map(Held::nothing).into(),
        }
    }

    /// Returns the semaphores of an owner and of all, whose permits are KiB.
    pub(super) fn semaphores(&self, owner: &K) -> [Arc<Semaphore>; 2] {
        [self.parts.part_of(owner), Arc::clone(&self.all)]
    }

    /// Returns the KiB that one owner may have.
    pub(super) fn each_kib(&self) -> usize {
        self.parts.permits()
    }

    /// Returns the KiB that are left for all.
    #[cfg(test)]
    pub(crate) fn left_kib(&self) -> usize {
        self.all.available_permits()
    }

    /// Returns the number of owners that are kept.
    #[cfg(test)]
    pub(crate) fn remembered(&self) -> usize {
        self.parts.remembered()
    }
}

/// Memory that is held in the owner's part and in the whole budget; given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    held: Vec<Held>,
}

#[derive(Debug)]
struct Held {
    budget: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Held {
    fn nothing(budget: Arc<Semaphore>) -> Self {
        Self {
            budget,
            permit: None,
        }
    }

    fn kib(&self) -> usize {
        self.permit.as_ref().map_or(0, |held| held.num_permits())
    }

    fn add(&mut self, more: OwnedSemaphorePermit) {
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
    }

    fn cover(&mut self, kib: usize) -> Option<()> {
        let missing = kib.saturating_sub(self.kib());
        if missing == 0 {
            return Some(());
        }
        let missing = u32::try_from(missing).ok()?;
        let more = self.budget.clone().try_acquire_many_owned(missing).ok()?;
        self.add(more);
        Some(())
    }

    fn give_back(&mut self, kib: usize) {
        let more = self.kib().saturating_sub(kib);
        if let Some(permit) = &mut self.permit {
            drop(permit.split(more));
        }
    }
}

impl Share {
    /// Adds the part of another owner who is charged for the same memory.
    pub(crate) fn charge_also<K: Clone + Eq + Hash>(&mut self, parts: &PerOwner<K>, owner: &K) {
        self.held.insert(1, Held::nothing(parts.part_of(owner)));
    }

    /// Grows the share until it covers `bytes` altogether.
    ///
    /// # Errors
    /// 503 with `Retry-After` when that much is not left. A request does not wait for memory: those that hold it may be stalled.
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<()> {
        const BUSY: ApiError = ApiError::Busy {
            retry_after: RETRY_AFTER,
        };
        let kib = bytes.div_ceil(KIB);
        let mut held = self.held.iter_mut();
        held.try_for_each(|held| held.cover(kib)).ok_or(BUSY)
    }

    /// Grows or shrinks the share to `bytes`.
    ///
    /// # Errors
    /// As [`Share::cover`]; the share keeps what it has.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<()> {
        let before = self.bytes();
        let covered = self.cover(bytes);
        let wanted = if covered.is_ok() { bytes } else { before };
        for held in &mut self.held {
            held.give_back(wanted.div_ceil(KIB));
        }
        covered
    }

    /// Waits until the share covers `bytes`, at most the owner's part.
    pub(crate) async fn wait_for(&mut self, bytes: usize) {
        let kib = bytes.div_ceil(KIB);
        for held in &mut self.held {
            let missing = u32::try_from(kib.saturating_sub(held.kib())).unwrap_or(u32::MAX);
            // No budget is ever closed.
            if let Ok(more) = Arc::clone(&held.budget).acquire_many_owned(missing).await {
                held.add(more);
            }
        }
    }

    /// Returns the bytes that the share covers.
    pub(crate) fn bytes(&self) -> usize {
        self.held.iter().map(Held::kib).min().unwrap_or_default() * KIB
    }
}

#[cfg(test)]
mod tests {
    use schema::ids::Uid;

    use super::*;

    #[test]
    fn share_grows_until_the_budget_is_spent() {
        let budget = Memory::of_kib(3, 3);
        let (mut one, mut other) = (budget.share(&()), budget.share(&()));
        one.cover(1).unwrap();
        one.cover(1024).unwrap();
        assert_eq!(budget.left_kib(), 2);
        one.cover(1025).unwrap();
        other.cover(1024).unwrap();
        let error = other.cover(1025).unwrap_err();
        assert_eq!((error.status().as_u16(), error.code()), (503, "busy"));
        drop(one);
        other.cover(3 * 1024).unwrap();
        drop(other);
        assert_eq!(budget.left_kib(), 3);
    }

    #[test]
    fn resized_share_gives_back_what_it_no_longer_covers() {
        let budget = Memory::of_kib(4, 3);
        let (mut one, mut other) = (budget.share(&1), budget.share(&2));
        assert!(one.resize(3 * 1024).is_ok() && other.resize(1024).is_ok());
        assert!(other.resize(2 * 1024).is_err() && one.resize(4 * 1024).is_err());
        assert_eq!((one.bytes(), other.bytes()), (3 * 1024, 1024));
        assert!(one.resize(1).is_ok() && other.resize(3 * 1024).is_ok());
        assert_eq!(budget.left_kib(), 0);
        drop((one, other));
        assert_eq!(budget.left_kib(), 4);
    }

    #[test]
    fn owner_with_a_full_part_keeps_no_other_out() {
        let budget = Memory::of_kib(64, 16);
        let (greedy, other) = (Uid::random(), Uid::random());
        let mut held = budget.share(&greedy);
        held.cover(16 * 1024).unwrap();
        assert!(budget.share(&greedy).cover(1).is_err());
        budget.share(&other).cover(16 * 1024).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_share_gets_what_others_give_back() {
        let budget = Memory::of_kib(2, 2);
        let mut first = budget.share(&1);
        first.cover(2 * 1024).unwrap();
        let mut second = budget.share(&2);
        let waited = tokio::time::timeout(Duration::from_secs(1), second.wait_for(1024));
        assert!(waited.await.is_err());
        drop(first);
        second.wait_for(2 * 1024).await;
        assert_eq!((second.bytes(), budget.left_kib()), (2 * 1024, 0));
    }
}
