//! How often one user's agents may call the tools of a service, in sliding windows: a call that is refused counts for nothing.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use tokio::time::{Instant, sleep_until};

use crate::executors::Key;
use crate::limits::MCP_RATES;

/// Most messages in a second, of whatever kind.
const MESSAGES: usize = 100;
/// Most calls in a second.
const CALLS: usize = 10;
/// Longest time that a call over the rate waits for its place.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Most calls in a minute that change something.
const ACTING: usize = 120;
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// The counters.
#[derive(Debug)]
pub(super) struct Limits {
    messages: Windows,
    calls: Windows,
    acting: Windows,
    /// Refusals that are recorded: all of them would let agents fill the audit trail.
    recorded: Windows,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            messages: Windows::new(MESSAGES, SECOND),
            calls: Windows::new(CALLS, SECOND),
            acting: Windows::new(ACTING, MINUTE),
            recorded: Windows::new(1, SECOND),
        }
    }
}

impl Limits {
    /// Counts a message, or says after what time there may be one.
    pub(super) fn message(&self, key: &Key) -> Result<(), Duration> {
        self.messages.take(key)
    }

    /// Counts a call, which waits until it has a place.
    ///
    /// # Errors
    /// When there is none until then.
    pub(in crate::mcp) async fn call(&self, key: &Key, until: Instant) -> Result<(), String> {
        while let Err(after) = self.calls.take(key) {
            let next = Instant::now() + after;
            if next > until {
                let after = after.as_millis().max(1);
                return Err(format!(
                    "more than {CALLS} calls in a second; nothing was done, try again in {after} ms"
                ));
            }
            sleep_until(next).await;
        }
        Ok(())
    }

    /// Counts a call that changes something.
    pub(super) fn act(&self, key: &Key) -> Result<(), String> {
        self.acting.take(key).map_err(|after| {
            let after = after.as_secs() + 1;
            format!(
                "more than {ACTING} calls in a minute that change something; nothing was done, try again in {after} s"
            )
        })
    }

    /// Whether a refusal by [`Self::call`] is recorded.
    pub(super) fn is_recorded(&self, key: &Key) -> bool {
        self.recorded.take(key).is_ok()
    }
}

/// When the latest calls were, oldest first.
type Moments = Arc<Mutex<VecDeque<Instant>>>;

#[derive(Debug)]
struct Windows {
    most: usize,
    time: Duration,
    moments: Cache<Key, Moments>,
}

impl Windows {
    fn new(most: usize, time: Duration) -> Self {
        Self {
            most,
            time,
            moments: MCP_RATES
                .cache()
                // By its own clock, which has to forget nothing that counts.
                .time_to_idle(time * 2)
                .eviction_policy(EvictionPolicy::lru())
                .build(),
        }
    }

    /// One more, or after what time there may be.
    fn take(&self, key: &Key) -> Result<(), Duration> {
        let moments = self.moments.get_with_by_ref(key, Moments::default);
        let mut moments = moments.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        while moments
            .front()
            .is_some_and(|oldest| now.duration_since(*oldest) >= self.time)
        {
            moments.pop_front();
        }
        match moments.front().filter(|_| moments.len() >= self.most) {
            Some(oldest) => Err((*oldest + self.time).duration_since(now)),
            None => {
                moments.push_back(now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executors::Service;

    fn key(user: &str, service: Service) -> Key {
        let user = user.to_owned().into();
        Key { user, service }
    }

    #[tokio::test(start_paused = true)]
    async fn call_over_the_rate_waits_a_second_at_most() {
        let limits = Limits::default();
        let alice = key("alice", Service::Browser);
        let now = Instant::now;
        for _ in 0..CALLS {
            assert_eq!(limits.call(&alice, now()).await, Ok(()));
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        let said = limits.call(&alice, now()).await.unwrap_err();
        assert!(said.ends_with("try again in 900 ms"), "{said}");
        let others = [
            key("alice", Service::Computer),
            key("bob", Service::Browser),
        ];
        for other in &others {
            assert_eq!(limits.call(other, now()).await, Ok(()));
        }
        let begun = now();
        assert_eq!(limits.call(&alice, begun + LONGEST_WAIT).await, Ok(()));
        assert_eq!(begun.elapsed().as_millis().div_ceil(10), 90);
        assert!(limits.call(&alice, now()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_change_something_are_counted_for_a_minute() {
        let limits = Limits::default();
        let alice = key("alice", Service::Browser);
        for _ in 0..ACTING {
            assert_eq!(limits.act(&alice), Ok(()));
        }
        tokio::time::advance(Duration::from_secs(59)).await;
        let said = limits.act(&alice).unwrap_err();
        assert!(said.ends_with("try again in 2 s"), "{said}");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(limits.act(&alice), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn one_refusal_a_second_is_recorded() {
        let limits = Limits::default();
        let alice = key("alice", Service::Browser);
        assert!(limits.is_recorded(&alice) && !limits.is_recorded(&alice));
        tokio::time::advance(SECOND).await;
        assert!(limits.is_recorded(&alice));
    }
}
