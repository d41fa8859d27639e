//! The sign-in limit: at most 10 attempts in 5 minutes, in a sliding window.
//!
//! Counted are every attempt per (address, user name), and attempts that did not succeed per
//! address. An attempt that is refused here counts for nothing, so whoever waits as long as
//! `Retry-After` says gets in. The counters live in memory, bounded in number, and belong to this
//! process: several replicas have one limit each.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use schema::clock::SharedClock;
use sha2::{Digest, Sha256};

use super::client_address::Network;
use crate::error::{ApiError, Result};
use crate::limits::SIGN_IN_COUNTERS;

/// Attempts in one window.
pub const ATTEMPTS: usize = 10;
/// Failures in one window of an address that many people share: that of a proxy which is not configured.
pub const FAILURES_OF_UNKNOWN_PROXY: usize = 200;
/// The window.
pub const WINDOW: Duration = Duration::from_secs(300);

/// A moment, by the clock that nobody sets.
type Moment = Duration;
/// The moments that count, oldest first.
type Window = Arc<Mutex<VecDeque<Moment>>>;

/// The counters.
pub struct LoginLimit {
    clock: SharedClock,
    by_name: Cache<(Network, [u8; 32]), Window>,
    failed: Cache<Network, Window>,
}

/// The client whose attempts are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sender {
    /// Its address.
    pub address: IpAddr,
    /// Its address is that of a proxy which `web.trusted_proxies` does not name.
    pub behind_unknown_proxy: bool,
}

impl Sender {
    fn most_failures(self) -> usize {
        match self.behind_unknown_proxy {
            true => FAILURES_OF_UNKNOWN_PROXY,
            false => ATTEMPTS,
        }
    }
}

/// An attempt that may go on to the hashing of its password.
#[derive(Debug)]
pub struct Attempt {
    sender: Sender,
}

/// An attempt that counts as failed until it is marked as succeeded. Counting it before the
/// outcome is known keeps parallel attempts from all passing on the same count.
#[derive(Debug)]
pub struct Charged {
    window: Window,
    moment: Moment,
}

impl Charged {
    /// Takes the failure back.
    pub fn succeeded(self) {
        let mut moments = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = moments.iter().rposition(|moment| *moment == self.moment) {
            moments.remove(at);
        }
    }
}

impl LoginLimit {
    /// Empty counters.
    pub fn new(clock: SharedClock) -> Self {
        // The caches run on their own clock; they only forget counters that can't matter any more.
        let idle = WINDOW * 2;
        Self {
            clock,
            by_name: counters(SIGN_IN_COUNTERS.all() as u64, idle),
            failed: counters(SIGN_IN_COUNTERS.all() as u64, idle),
        }
    }

    /// Begins an attempt, before any work is done for it. `name` is what the client sent.
    ///
    /// # Errors
    /// 429 with the exact time until the next attempt is accepted.
    pub fn begin_attempt(&self, sender: Sender, name: &str) -> Result<Attempt> {
        let network = Network::from(sender.address);
        let now = self.clock.steady();
        self.check(sender)?;
        // Hashed: the client chooses the name's length. Directories take names for the same that differ in case or in spaces.
        let plain: String = name.to_lowercase().split_whitespace().collect();
        let key = (network, Sha256::digest(plain).into());
        let window = self.by_name.get_with(key, Window::default);
        let mut moments = window.lock().unwrap_or_else(PoisonError::into_inner);
        limit(&mut moments, now, ATTEMPTS)?;
        moments.push_back(now);
        Ok(Attempt { sender })
    }

    /// Whether an attempt that has no name may go on: whoever comes back from an identity provider. Nothing is counted
    /// before it has [failed](Self::failed), since nothing can be guessed by many at once.
    ///
    /// # Errors
    /// 429 as for [`Self::begin_attempt`].
    pub fn check(&self, sender: Sender) -> Result<()> {
        match self.failed.get(&Network::from(sender.address)) {
            Some(failed) => limit(
                &mut failed.lock().unwrap_or_else(PoisonError::into_inner),
                self.clock.steady(),
                sender.most_failures(),
            ),
            None => Ok(()),
        }
    }

    /// Counts a failure of such an attempt.
    pub fn failed(&self, sender: Sender) {
        // What is over the limit changes nothing any more.
        let _ = self.charge(Attempt { sender });
    }

    /// Counts the attempt as failed for its address, if there is room. To be called once a core is
    /// free, right before the password is hashed.
    ///
    /// # Errors
    /// 429 as for [`Self::begin_attempt`].
    pub fn charge(&self, attempt: Attempt) -> Result<Charged> {
        let network = Network::from(attempt.sender.address);
        let window = self.failed.get_with(network, Window::default);
        let moment = self.clock.steady();
        {
            let mut moments = window.lock().unwrap_or_else(PoisonError::into_inner);
            limit(&mut moments, moment, attempt.sender.most_failures())?;
            moments.push_back(moment);
        }
        Ok(Charged { window, moment })
    }
}

/// Counters for at most `capacity` keys. The policy matters: one that prefers keys used often would
/// not take up new ones while it is full, and whoever fills it would turn the limit off.
fn counters<K>(capacity: u64, idle: Duration) -> Cache<K, Window>
where
    K: std::hash::Hash + Eq + Send + Sync + 'static,
{
    SIGN_IN_COUNTERS
        .cache()
        .max_capacity(capacity)
        .time_to_idle(idle)
        .eviction_policy(EvictionPolicy::lru())
        .build()
}

/// Forgets what left the window; an error when the rest fills it.
fn limit(moments: &mut VecDeque<Moment>, now: Moment, most: usize) -> Result<()> {
    while moments
        .front()
        .is_some_and(|oldest| now.saturating_sub(*oldest) >= WINDOW)
    {
        moments.pop_front();
    }
    // The moment at which one less than `most` is left.
    let frees = moments.len().checked_sub(most);
    match frees.and_then(|index| moments.get(index)) {
        Some(oldest) => {
            let left = WINDOW.saturating_sub(now.saturating_sub(*oldest));
            // Whole seconds, rounded up: an answer that is too early would be refused again.
            let seconds = left.as_millis().div_ceil(1000);
            Err(ApiError::TooManyAttempts {
                retry_after: Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX)),
            })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use schema::clock::ManualClock;
    use schema::ids::Timestamp;

    use super::*;

    fn limiter() -> (LoginLimit, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new(Timestamp::from_secs(1_778_500_000)));
        (LoginLimit::new(clock.clone()), clock)
    }

    fn retry_after(result: Result<Attempt>) -> Option<u64> {
        match result {
            Ok(_) => None,
            Err(ApiError::TooManyAttempts { retry_after }) => Some(retry_after.as_secs()),
            Err(error) => panic!("{error}"),
        }
    }

    fn ip(text: &str) -> Sender {
        Sender {
            address: text.parse().unwrap(),
            behind_unknown_proxy: false,
        }
    }

    #[test]
    fn l19_the_eleventh_attempt_waits_exactly_until_the_first_leaves_the_window() {
        let (limit, clock) = limiter();
        for _ in 0..10 {
            assert_eq!(
                retry_after(limit.begin_attempt(ip("10.0.0.1"), "alice")),
                None
            );
            clock.advance(Duration::from_millis(1500));
        }
        assert_eq!(
            retry_after(limit.begin_attempt(ip("10.0.0.1"), "ALICE")),
            Some(285)
        );
        assert_eq!(
            retry_after(limit.begin_attempt(ip("10.0.0.1"), "bob")),
            None
        );
        assert_eq!(
            retry_after(limit.begin_attempt(ip("10.0.0.2"), "alice")),
            None
        );
        clock.advance(Duration::from_millis(284_999));
        assert_eq!(
            retry_after(limit.begin_attempt(ip("10.0.0.1"), "alice")),
            Some(1)
        );
        clock.advance(Duration::from_millis(1));
        assert_eq!(
            retry_after(limit.begin_attempt(ip("10.0.0.1"), "alice")),
            None
        );
        assert_eq!(
            retry_after(limit.begin_attempt(ip("10.0.0.1"), "alice")),
            Some(2)
        );
    }

    #[test]
    fn l73_setting_the_clock_neither_locks_anybody_out_nor_lets_anybody_in() {
        const DAYS: Duration = Duration::from_secs(3 * 24 * 60 * 60);
        let (limit, clock) = limiter();
        let start = Timestamp::from_secs(1_778_500_000);
        for _ in 0..10 {
            assert_eq!(
                retry_after(limit.begin_attempt(ip("10.0.0.1"), "alice")),
                None
            );
        }
        for set in [start.plus(DAYS), start.minus(DAYS)] {
            clock.set(set);
            assert_eq!(
                retry_after(limit.begin_attempt(ip("10.0.0.1"), "alice")),
                Some(300)
            );
        }
        clock.advance(WINDOW);
        assert_eq!(
            retry_after(limit.begin_attempt(ip("10.0.0.1"), "alice")),
            None
        );
    }

    #[test]
    fn l19_failures_count_per_address_whatever_the_name() {
        let (limit, clock) = limiter();
        for n in 0..10 {
            let attempt = limit
                .begin_attempt(ip("10.0.0.1"), &format!("user{n}"))
                .unwrap();
            limit.charge(attempt).unwrap();
        }
        assert_eq!(
            retry_after(limit.begin_attempt(ip("10.0.0.1"), "alice")),
            Some(300)
        );
        assert_eq!(
            retry_after(limit.begin_attempt(ip("10.0.0.2"), "alice")),
            None
        );
        clock.advance(WINDOW);
        assert_eq!(
            retry_after(limit.begin_attempt(ip("10.0.0.1"), "alice")),
            None
        );
    }

    #[test]
    fn l19_attempts_that_waited_together_do_not_all_pass() {
        let (limit, _) = limiter();
        let waiting: Vec<_> = (0..50)
            .map(|n| {
                limit
                    .begin_attempt(ip("10.0.0.1"), &format!("user{n}"))
                    .unwrap()
            })
            .collect();
        let charged: Vec<_> = waiting
            .into_iter()
            .filter_map(|attempt| limit.charge(attempt).ok())
            .collect();
        assert_eq!(charged.len(), 10);
        assert!(limit.begin_attempt(ip("10.0.0.1"), "late").is_err());
        charged.into_iter().for_each(Charged::succeeded);
        assert!(limit.begin_attempt(ip("10.0.0.1"), "late").is_ok());
    }

    #[test]
    fn l19_unknown_proxy_has_more_failures_and_names_have_not() {
        let (limit, _) = limiter();
        let proxy = Sender {
            behind_unknown_proxy: true,
            ..ip("10.0.0.1")
        };
        for n in 0..FAILURES_OF_UNKNOWN_PROXY {
            let attempt = limit.begin_attempt(proxy, &format!("user{n}")).unwrap();
            limit.charge(attempt).unwrap();
            // Without the headers of a proxy the address has as many as any other.
            let direct = limit.begin_attempt(ip("10.0.0.1"), &format!("direct{n}"));
            assert_eq!(direct.is_ok(), n + 1 < ATTEMPTS, "{n}");
        }
        assert_eq!(retry_after(limit.begin_attempt(proxy, "alice")), Some(300));
        let other = Sender {
            behind_unknown_proxy: true,
            ..ip("10.0.0.2")
        };
        let tried = (0..20).filter(|_| limit.begin_attempt(other, "alice").is_ok());
        assert_eq!(tried.count(), ATTEMPTS);
    }

    #[test]
    fn many_people_behind_one_address_can_sign_in() {
        let (limit, _) = limiter();
        for n in 0..100 {
            let attempt = limit
                .begin_attempt(ip("10.0.0.1"), &format!("user{n}"))
                .unwrap();
            limit.charge(attempt).unwrap().succeeded();
        }
    }

    #[test]
    fn l19_an_ipv6_network_is_one_client() {
        let (limit, _) = limiter();
        for n in 0..10 {
            let attempt = limit.begin_attempt(ip(&format!("2001:db8::{n}")), "alice");
            assert!(attempt.is_ok());
        }
        assert!(
            limit
                .begin_attempt(ip("2001:db8::ffff:1"), "alice")
                .is_err()
        );
        assert!(limit.begin_attempt(ip("2001:db8:0:1::1"), "alice").is_ok());
        assert_eq!(
            Network::from(ip("::ffff:10.0.0.1").address),
            Network::from(ip("10.0.0.1").address)
        );
    }

    #[test]
    fn l19_the_number_of_counters_is_bounded() {
        let clock = Arc::new(ManualClock::default());
        let mut limit = LoginLimit::new(clock);
        limit.by_name = counters(100, WINDOW);
        for n in 0..10_000 {
            let _ = limit.begin_attempt(ip("10.0.0.1"), &format!("{n}"));
        }
        limit.by_name.run_pending_tasks();
        assert!(limit.by_name.entry_count() <= 100);
    }

    #[test]
    fn l19_a_new_key_is_counted_when_the_counters_are_full() {
        let clock = Arc::new(ManualClock::default());
        let mut limit = LoginLimit::new(clock);
        limit.by_name = counters(100, WINDOW);
        for _ in 0..ATTEMPTS {
            for n in 0..200 {
                let _ = limit.begin_attempt(ip("10.0.0.1"), &format!("{n}"));
            }
            limit.by_name.run_pending_tasks();
        }
        for _ in 0..ATTEMPTS {
            assert_eq!(
                retry_after(limit.begin_attempt(ip("10.0.0.2"), "alice")),
                None
            );
            limit.by_name.run_pending_tasks();
        }
        assert!(limit.begin_attempt(ip("10.0.0.2"), "alice").is_err());
    }
}
