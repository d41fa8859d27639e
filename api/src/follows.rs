//! How many logs may be followed at once.
//!
//! A followed log lasts as long as its reader wants, and costs a connection here and one to the
//! engine. So there is a bound for each account, and one for all of them together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schema::ids::Uid;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// Most logs that one account may follow at once.
pub const PER_ACCOUNT: usize = 4;
/// Most logs that are followed at once.
pub const IN_ALL: usize = 200;
/// When whoever was turned away may try again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// How many logs each account follows; accounts that follow none are not in it.
type Counts = Mutex<HashMap<Uid, usize>>;

/// The bounds. Clones share them.
#[derive(Debug, Clone)]
pub struct FollowLimit {
    all: Arc<Semaphore>,
    by_account: Arc<Counts>,
}

impl Default for FollowLimit {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(IN_ALL)),
            by_account: Arc::default(),
        }
    }
}

/// The right to follow one log; given back when dropped.
#[derive(Debug)]
pub struct Following {
    _permit: OwnedSemaphorePermit,
    account: Option<(Uid, Arc<Counts>)>,
}

impl FollowLimit {
    /// Begins to follow a log. The admin socket has no account, and only the bound for all.
    ///
    /// # Errors
    /// 429 when the account follows [`PER_ACCOUNT`] logs already, 503 when [`IN_ALL`] are followed;
    /// both with `Retry-After`.
    pub fn begin(&self, account: Option<&Uid>) -> Result<Following, ApiError> {
        let permit = self.all.clone().try_acquire_owned();
        let permit = permit.map_err(|_| ApiError::Busy {
            retry_after: RETRY_AFTER,
        })?;
        if let Some(account) = account {
            let mut counts = lock(&self.by_account);
            let count = counts.get(account).copied().unwrap_or_default();
            if count >= PER_ACCOUNT {
                return Err(ApiError::TooManyStreams {
                    most: PER_ACCOUNT,
                    retry_after: RETRY_AFTER,
                });
            }
            counts.insert(account.clone(), count + 1);
        }
        Ok(Following {
            _permit: permit,
            account: account.map(|account| (account.clone(), self.by_account.clone())),
        })
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        if let Some((account, counts)) = &self.account {
            let mut counts = lock(counts);
            match counts.get_mut(account) {
                Some(count) if *count > 1 => *count -= 1,
                _ => {
                    counts.remove(account);
                }
            }
        }
    }
}

fn lock(counts: &Counts) -> MutexGuard<'_, HashMap<Uid, usize>> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(result: &Result<Following, ApiError>) -> u16 {
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
        assert!(lock(&limit.by_account).is_empty());
    }
}
