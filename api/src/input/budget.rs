//! The memory that request bodies may take, all of them together.
//!
//! Each body has its own limit, but a client can open as many requests as it likes and stall each
//! just below it. What all of them hold at once is therefore bounded, too: separately for requests
//! of anybody, of agents and of sessions, so that strangers cannot keep users from sending theirs, nor agents administrators.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{ApiError, Result};

/// Most memory for bodies of requests that anybody may send, in KiB.
const OF_ANYBODY: usize = 64 * 1024;
/// Most memory for bodies of requests that a session was found for, in KiB; and as much for those with an MCP token.
const OF_SESSIONS: usize = 192 * 1024;
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

    /// For requests with an MCP token.
    pub(crate) fn of_agents() -> Self {
        Self::new(OF_SESSIONS)
    }

    /// A budget of so many KiB.
    pub(crate) fn new(kib: usize) -> Self {
        Self(Arc::new(Semaphore::new(kib)))
    }

    /// A share without any memory yet.
    pub(crate) fn share(&self) -> Share {
        Share {
            budget: self.0.clone(),
            permit: None,
        }
    }
}

/// What one request holds of the budget; given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
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
        let held = self.permit.as_ref().map_or(0, |p| p.num_permits());
        let missing = bytes.div_ceil(1024).saturating_sub(held);
        if missing == 0 {
            return Ok(());
        }
        let missing = u32::try_from(missing).map_err(|_| BUSY)?;
        let more = self.budget.clone().try_acquire_many_owned(missing);
        let more = more.map_err(|_| BUSY)?;
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
        Ok(())
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
}
