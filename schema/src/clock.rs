//! The only place that reads the wall clock.
//!
//! Everything else takes a [`Timestamp`] or a [`Clock`], so that planners stay pure and tests own time.
//!
//! The wall clock may be set, by any step in any direction (L73). It says what time it is. How long something
//! lasts, and what is to be forgotten for its age, is for [`Clock::steady`] and [`Cautious`].

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::ids::Timestamp;

/// A source of wall-clock time.
pub trait Clock: Send + Sync + 'static {
    /// The present moment, in milliseconds since the Unix epoch.
    fn now(&self) -> Timestamp;

    /// The time since some moment that stays the same while the process lives. Nobody sets it, and it goes on
    /// while the machine is suspended.
    fn steady(&self) -> Duration;
}

/// A clock that can be shared between tasks.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods)]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }

    fn steady(&self) -> Duration {
        let since_boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::try_from(since_boot).unwrap_or_default()
    }
}

/// What time it is at least, for whoever forgets or removes what is old: a clock that is set forward makes
/// nothing older than it has become while this process lives.
pub struct Cautious {
    clock: SharedClock,
    /// When this began, by either clock.
    begun: (Timestamp, Duration),
}

impl Cautious {
    /// From now on.
    pub fn new(clock: SharedClock) -> Self {
        let begun = (clock.now(), clock.steady());
        Self { clock, begun }
    }

    /// The earlier of what the clock says and what it would say had nobody set it.
    pub fn now(&self) -> Timestamp {
        let (wall, steady) = self.begun;
        let passed = self.clock.steady().saturating_sub(steady);
        self.clock.now().min(wall.plus(passed))
    }
}

impl std::fmt::Debug for Cautious {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cautious").finish_non_exhaustive()
    }
}

/// A clock that stands still until a test moves it.
#[derive(Debug, Default)]
pub struct ManualClock {
    wall: AtomicI64,
    steady: AtomicI64,
}

impl ManualClock {
    /// A clock that shows `now`.
    pub fn new(now: Timestamp) -> Self {
        Self {
            wall: AtomicI64::new(now.as_millis()),
            steady: AtomicI64::default(),
        }
    }

    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.wall.fetch_add(millis, Ordering::SeqCst);
        self.steady.fetch_add(millis, Ordering::SeqCst);
    }

    /// Sets the clock to another moment, as people and time servers do.
    pub fn set(&self, now: Timestamp) {
        self.wall.store(now.as_millis(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.wall.load(Ordering::SeqCst))
    }

    fn steady(&self) -> Duration {
        let millis = self.steady.load(Ordering::SeqCst);
        Duration::from_millis(u64::try_from(millis).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);

    #[test]
    fn l73_nothing_grows_old_by_setting_the_clock() {
        let clock = Arc::new(ManualClock::new(NOW));
        let cautious = Cautious::new(clock.clone());
        clock.set(NOW.plus(3 * DAY));
        assert_eq!(cautious.now(), NOW);
        clock.advance(DAY);
        assert_eq!(cautious.now(), NOW.plus(DAY));
        clock.set(NOW.minus(3 * DAY));
        assert_eq!(cautious.now(), NOW.minus(3 * DAY));
        clock.set(NOW.plus(DAY));
        clock.advance(DAY);
        assert_eq!(cautious.now(), NOW.plus(2 * DAY), "as any other clock");
    }

    #[test]
    fn the_machines_steady_clock_goes_on() {
        let before = SystemClock.steady();
        std::thread::sleep(Duration::from_millis(5));
        assert!(SystemClock.steady() >= before + Duration::from_millis(5));
    }
}
