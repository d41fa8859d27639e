//! Bounds for plans of users' own containers, each of which asks the engine.

use std::sync::Arc;

use schema::ids::Uid;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::limits::{KeyedCounter, PLANS, Place};

/// Turns for plans: a few at once, and one for each user.
pub struct Plans {
    turns: Arc<Semaphore>,
    of_users: KeyedCounter<Uid>,
}

/// The right to make one plan; given back when dropped.
pub(crate) struct PlanTurn<'a> {
    _turn: SemaphorePermit<'a>,
    _place: Place<Uid>,
}

impl Default for Plans {
    fn default() -> Self {
        Self::new(PLANS.all())
    }
}

impl Plans {
    /// Makes turns for so many plans at once.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            turns: PLANS.semaphore_of(most),
            of_users: KeyedCounter::new(&PLANS),
        }
    }

    /// Takes a turn for a user; `None` when the user has one, or all are taken.
    pub(crate) fn take_turn(&self, user: &Uid) -> Option<PlanTurn<'_>> {
        let place = self.of_users.enter(user)?;
        let turn = self.turns.try_acquire().ok()?;
        Some(PlanTurn {
            _turn: turn,
            _place: place,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_has_one_turn_and_all_have_few() {
        let plans = Plans::new(2);
        let [ada, bob, eve] = ["a", "b", "c"].map(|letter| Uid::from(letter.repeat(32)));
        let first = plans.take_turn(&ada);
        assert!(first.is_some() && plans.take_turn(&ada).is_none());
        let second = plans.take_turn(&bob);
        assert!(second.is_some() && plans.take_turn(&eve).is_none());
        drop(first);
        assert!(plans.take_turn(&eve).is_some());
    }
}
