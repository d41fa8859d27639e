//! The memory that request bodies may take, all of them together.
//!
//! Each body has its own limit, but a client can open as many requests as it likes and stall each
//! just below it. What all of them hold at once is therefore bounded, too: separately for requests
//! of anybody, of agents and of sessions, so that strangers cannot keep users from sending theirs, nor agents administrators. What
//! agents may hold has a part for each user: an agent may do what it likes with its token.

use std::sync::Arc;
use std::time::Duration;

use schema::ids::Uid;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{ApiError, Result};
use crate::parts::Parts;

/// Most memory for bodies of requests that anybody may send, in KiB.
const OF_ANYBODY: usize = 64 * 1024;
/// Most memory for bodies of requests that a session was found for, in KiB; and as much for those with an MCP token.
const OF_SESSIONS: usize = 192 * 1024;
/// Most of that for one user's token, in KiB: as much as all calls that may be under way can have.
const OF_USER: usize = 32 * 1024;
/// `Retry-After` of requests that are turned away.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Memory for request bodies, in KiB. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct BodyBudget(Arc<Semaphore>);

impl BodyBudget {
    /// For requests that anybody may send.
    pub(crate) fn of_anybody() -> Self {
        Self::new(OF_ANYBODY)
    }

    /// For requests that a session was found for.
    pub(crate) fn of_sessions() -> Self {
        Self::new(OF_SESSIONS)
    }

    /// A budget of so many KiB.
    pub(crate) fn new(kib: usize) -> Self {
        Self(Arc::new(Semaphore::new(kib)))
    }

    /// A share without any memory yet.
    pub(crate) fn share(&self) -> Share {
        Share {
            held: vec![Held::nothing(self.0.clone())],
        }
    }
}

/// The same for requests with an MCP token.
#[derive(Debug, Clone)]
pub(crate) struct AgentsBudget {
    all: BodyBudget,
    users: Parts,
}

impl Default for AgentsBudget {
    fn default() -> Self {
        Self {
            all: BodyBudget::new(OF_SESSIONS),
            users: Parts::new(OF_USER),
        }
    }
}

impl AgentsBudget {
    /// A share of a user's without any memory yet.
    pub(crate) fn share(&self, user: &Uid) -> Share {
        let mut share = self.all.share();
        // The user's own part first: whoever has none left takes nothing of what others may have.
        share.held.insert(0, Held::nothing(self.users.of(user)));
        share
    }
}

/// What one request holds of the budgets that it has to do with; given back when dropped.
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

    fn cover(&mut self, kib: usize) -> Option<()> {
        let held = self.permit.as_ref().map_or(0, |p| p.num_permits());
        let missing = kib.saturating_sub(held);
        if missing == 0 {
            return Some(());
        }
        let missing = u32::try_from(missing).ok()?;
        let more = self.budget.clone().try_acquire_many_owned(missing).ok()?;
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
        Some(())
    }
}

impl Share {
    /// Sees to it that the share covers `bytes` altogether.
    ///
    /// # Errors
    /// 503 with `Retry-After` when that much is not left. Nobody waits for memory: whoever would be
    /// waited for may be stalling.
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<()> {
        const BUSY: ApiError = ApiError::Busy {
            retry_after: RETRY_AFTER,
        };
        let kib = bytes.div_ceil(1024);
        let mut held = self.held.iter_mut();
        held.try_for_each(|held| held.cover(kib)).ok_or(BUSY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_grows_until_the_budget_is_spent_and_gives_all_back() {
        let budget = BodyBudget::new(3);
        let (mut one, mut other) = (budget.share(), budget.share());
        one.cover(1).unwrap();
        one.cover(1024).unwrap();
        assert_eq!(budget.0.available_permits(), 2);
        one.cover(1025).unwrap();
        other.cover(1024).unwrap();
        let error = other.cover(1025).unwrap_err();
        assert_eq!((error.status().as_u16(), error.code()), (503, "busy"));
        drop(one);
        other.cover(3 * 1024).unwrap();
        drop(other);
        assert_eq!(budget.0.available_permits(), 3);
    }

    #[test]
    fn an_agent_that_holds_all_it_may_keeps_no_other_from_sending() {
        let agents = AgentsBudget::default();
        let (greedy, other) = (Uid::random(), Uid::random());
        let bytes = 4 * 1024 * 1024;
        let mut held = Vec::new();
        loop {
            let mut share = agents.share(&greedy);
            if share.cover(bytes).is_err() {
                break;
            }
            held.push(share);
        }
        assert_eq!(held.len() * bytes, OF_USER * 1024);
        agents.share(&other).cover(bytes).unwrap();
        held.pop();
        agents.share(&greedy).cover(bytes).unwrap();
    }
}
