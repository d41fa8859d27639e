//! Growing delays between attempts: the only module that knows the crate `backoff`.
//!
//! The crate computes the intervals; the jitter is ours, because a test must be able to fix it. Full
//! jitter (anything from nothing to the whole interval) keeps many keys that failed together, say
//! because the engine went away, from coming back together.

use std::fmt;
use std::time::Duration;

use backoff::backoff::Backoff as _;
use backoff::{ExponentialBackoff, ExponentialBackoffBuilder};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// How delays grow: `initial` × 2ⁿ, at most `cap`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The interval after the first failure.
    pub initial: Duration,
    /// The longest interval.
    pub cap: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            cap: Duration::from_secs(300),
        }
    }
}

/// A source of numbers from 0 to 1.
pub struct Jitter(Box<dyn FnMut() -> f64 + Send>);

impl fmt::Debug for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Jitter")
    }
}

impl Jitter {
    /// Random numbers, different in each process.
    pub fn random() -> Self {
        Self::from_rng(rand::make_rng())
    }

    /// Random numbers that repeat for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self::from_rng(StdRng::seed_from_u64(seed))
    }

    /// Always the same number.
    pub fn fixed(fraction: f64) -> Self {
        Self(Box::new(move || fraction))
    }

    fn from_rng(mut rng: StdRng) -> Self {
        Self(Box::new(move || rng.random::<f64>()))
    }

    /// Something from nothing to the whole interval.
    pub fn full(&mut self, interval: Duration) -> Duration {
        interval.mul_f64((self.0)().clamp(0.0, 1.0))
    }

    /// Something within `share` (0 to 1) around the interval.
    pub fn around(&mut self, interval: Duration, share: f64) -> Duration {
        let share = share.clamp(0.0, 1.0);
        interval.mul_f64(1.0 - share + 2.0 * share * (self.0)().clamp(0.0, 1.0))
    }
}

/// The delays of one thing that keeps failing. A success is reported by dropping it.
#[derive(Debug)]
pub struct Backoff {
    intervals: ExponentialBackoff,
    cap: Duration,
    failures: u32,
}

impl Backoff {
    /// Nothing has failed yet.
    pub fn new(policy: Policy) -> Self {
        Self {
            intervals: ExponentialBackoffBuilder::new()
                .with_initial_interval(policy.initial)
                .with_multiplier(2.0)
                .with_max_interval(policy.cap)
                .with_randomization_factor(0.0)
                .with_max_elapsed_time(None)
                .build(),
            cap: policy.cap,
            failures: 0,
        }
    }

    /// Failures so far.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Counts one more failure and says how long to wait.
    pub fn fail(&mut self, jitter: &mut Jitter) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let interval = self.intervals.next_backoff().unwrap_or(self.cap);
        jitter.full(interval.min(self.cap))
    }
}

/// A delay that doubles with each failure in a row: for planners, which wait without the queue's help.
pub fn doubled(first: Duration, most: Duration, failures: u32) -> Duration {
    first
        .saturating_mul(1_u32 << failures.saturating_sub(1).min(16))
        .min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(delay: Duration) -> u64 {
        (delay.as_secs_f64() + 0.001) as u64
    }

    #[test]
    fn delays_double_up_to_the_cap() {
        let mut backoff = Backoff::new(Policy::default());
        let mut widest = Jitter::fixed(1.0);
        let delays: Vec<u64> = (0..11)
            .map(|_| seconds(backoff.fail(&mut widest)))
            .collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(backoff.failures(), 11);
    }

    #[test]
    fn jitter_spreads_over_the_whole_interval() {
        let mut jitter = Jitter::seeded(7);
        let delays: Vec<Duration> = (0..1000)
            .map(|_| jitter.full(Duration::from_secs(8)))
            .collect();
        assert!(delays.iter().all(|d| *d <= Duration::from_secs(8)));
        assert!(delays.iter().any(|d| *d < Duration::from_secs(1)));
        assert!(delays.iter().any(|d| *d > Duration::from_secs(7)));
    }

    #[test]
    fn the_same_seed_gives_the_same_delays() {
        let delays = |seed| {
            let (mut backoff, mut jitter) = (Backoff::new(Policy::default()), Jitter::seeded(seed));
            (0..8)
                .map(|_| backoff.fail(&mut jitter))
                .collect::<Vec<_>>()
        };
        assert_eq!(delays(1), delays(1));
        assert_ne!(delays(1), delays(2));
    }

    #[test]
    fn around_stays_within_its_share() {
        let minute = Duration::from_secs(60);
        assert_eq!(
            Jitter::fixed(0.0).around(minute, 0.1).as_secs_f64().round(),
            54.0
        );
        assert_eq!(
            Jitter::fixed(1.0).around(minute, 0.1).as_secs_f64().round(),
            66.0
        );
    }
}
