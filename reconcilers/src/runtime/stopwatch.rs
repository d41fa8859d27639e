//! How long something has been so, whatever the wall clock is set to meanwhile.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schema::ids::Timestamp;

use super::clock::SharedClock;

/// A watch for each key, in memory only.
pub struct Stopwatch<K> {
    clock: SharedClock,
    /// Since when it has been so by the wall clock, which names the state, and by the steady one.
    begun: Mutex<HashMap<K, (Timestamp, Duration)>>,
}

impl<K> std::fmt::Debug for Stopwatch<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stopwatch").finish_non_exhaustive()
    }
}

impl<K: Eq + Hash> Stopwatch<K> {
    /// Nothing is timed yet.
    pub fn new(clock: SharedClock) -> Self {
        Self {
            clock,
            begun: Mutex::default(),
        }
    }

    fn begun(&self) -> MutexGuard<'_, HashMap<K, (Timestamp, Duration)>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long `key` has been in the state that began at `at`. What went on before the first look is taken
    /// from the wall clock; one that shows an earlier time than `at` was set back, and says nothing.
    pub fn since(&self, key: K, at: Timestamp) -> Duration {
        let steady = self.clock.steady();
        let before = || steady.saturating_sub(self.clock.now().since(at));
        let mut begun = self.begun();
        let entry = begun.entry(key).or_insert_with(|| (at, before()));
        if entry.0 != at {
            *entry = (at, before());
        }
        steady.saturating_sub(entry.1)
    }

    /// Forgets a key.
    pub fn forget(&self, key: &K) {
        self.begun().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use schema::clock::{Clock, ManualClock};

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);
    const DAYS: Duration = Duration::from_secs(3 * 24 * 60 * 60);
    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn l73_setting_the_clock_neither_shortens_nor_lengthens_what_is_timed() {
        let clock = Arc::new(ManualClock::new(NOW.plus(DAYS)));
        clock.advance(DAYS * 2);
        let watch = Stopwatch::new(clock.clone());
        let began = clock.now().minus(MINUTE);
        assert_eq!(watch.since("a", began), MINUTE);
        for set in [NOW, NOW.plus(DAYS * 9)] {
            clock.set(set);
            assert_eq!(watch.since("a", began), MINUTE);
        }
        clock.advance(MINUTE);
        assert_eq!(watch.since("a", began), 2 * MINUTE);
        // Another state, which began just now.
        assert_eq!(watch.since("a", clock.now()), Duration::ZERO);
        clock.set(NOW);
        assert_eq!(watch.since("b", NOW.plus(DAYS)), Duration::ZERO);
        clock.advance(MINUTE);
        assert_eq!(watch.since("b", NOW.plus(DAYS)), MINUTE);
        watch.forget(&"b");
        assert_eq!(watch.since("b", NOW), MINUTE);
    }
}
