//! How many logs may be followed at once.
//!
//! A followed log lasts as long as its reader wants, and costs a connection here and one to the
//! engine. So there is a bound for each account, and one for all of them together.

use std::sync::Arc;
use std::time::Duration;

use schema::ids::Uid;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{ApiError, Result};
use crate::limits::{FOLLOWS, KeyedCounter, Place};

/// Most logs that one account may follow at once.
pub const PER_ACCOUNT: usize = FOLLOWS.each();
/// Most logs that are followed at once.
pub const IN_ALL: usize = FOLLOWS.all();
/// When whoever was turned away may try again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The bounds. Clones share them.
#[derive(Debug, Clone)]
pub struct FollowLimit {
    all: Arc<Semaphore>,
    by_account: KeyedCounter<Uid>,
}

impl Default for FollowLimit {
    fn default() -> Self {
        Self {
            all: FOLLOWS.semaphore(),
            by_account: KeyedCounter::new(&FOLLOWS),
        }
    }
}

/// The right to follow one log; given back when dropped.
#[derive(Debug)]
pub struct Following {
    _permit: OwnedSemaphorePermit,
    _place: Option<Place<Uid>>,
}

impl FollowLimit {
    /// Begins to follow a log. The admin socket has no account, and only the bound for all.
    ///
    /// # Errors
    /// 429 when the account follows [`PER_ACCOUNT`] logs already, 503 when [`IN_ALL`] are followed;
    /// both with `Retry-After`.
    pub fn begin(&self, account: Option<&Uid>) -> Result<Following> {
        let permit = self.all.clone().try_acquire_owned();
        let permit = permit.map_err(|_| ApiError::Busy {
            retry_after: RETRY_AFTER,
        })?;
        let place = account.map(|account| {
            let place = self.by_account.enter(account);
            place.ok_or(ApiError::TooManyStreams {
                most: PER_ACCOUNT,
                retry_after: RETRY_AFTER,
            })
        });
        Ok(Following {
            _permit: permit,
            _place: place.transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(result: &Result<Following>) -> u16 {
        result
            .as_ref()
            .map_or_else(|e| e.status().as_u16(), |_| 200)
    }

    #[test]
    fn l63_an_account_follows_4_logs_and_all_of_them_200() {
        let limit = FollowLimit::default();
        let uid = |n: usize| Uid::from(format!("user{n}"));
        let mut held: Vec<_> = (0..PER_ACCOUNT)
            .map(|_| limit.begin(Some(&uid(0))).unwrap())
            .collect();
        assert_eq!(status(&limit.begin(Some(&uid(0)))), 429);
        held.extend((PER_ACCOUNT..IN_ALL).map(|n| limit.begin(Some(&uid(n))).unwrap()));
        assert_eq!(status(&limit.begin(Some(&uid(1)))), 503);
        assert_eq!(status(&limit.begin(None)), 503);
        held.pop();
        // Whoever was refused holds nothing.
        assert_eq!(status(&limit.begin(Some(&uid(0)))), 429);
        assert_eq!(status(&limit.begin(None)), 200);
        drop(held);
        assert_eq!(limit.all.available_permits(), IN_ALL);
        assert!(limit.by_account.is_empty());
    }
}
