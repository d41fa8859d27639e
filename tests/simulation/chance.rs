//! Random numbers that a seed decides.
//!
//! A generator of our own (SplitMix64), because a seed that once found a defect must mean the same
//! for ever, which no library promises of its generators.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A stream of random numbers; clones draw from the same stream.
#[derive(Clone)]
pub struct Chance(Arc<Mutex<u64>>);

impl Chance {
    /// The stream `name` of a seed. Each part of the simulation has its own, so that one more draw in
    /// one part changes nothing in another.
    pub fn new(seed: u64, name: &str) -> Self {
        let start = name.bytes().fold(seed, |state, byte| {
            mix(state.wrapping_add(u64::from(byte)).wrapping_add(GOLDEN))
        });
        Self(Arc::new(Mutex::new(start)))
    }

    pub fn next(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(GOLDEN);
        mix(*state)
    }

    /// From 0 to `end` - 1.
    pub fn below(&self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// From `first` to `last`, both included.
    pub fn between(&self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    /// True in so many of a thousand cases.
    pub fn per_mille(&self, share: u64) -> bool {
        self.below(1000) < share
    }

    pub fn pick<'a, T>(&self, among: &'a [T]) -> Option<&'a T> {
        let count = u64::try_from(among.len()).unwrap_or(0);
        let index = usize::try_from(self.below(count)).unwrap_or(0);
        among.get(index)
    }

    /// Milliseconds from `first` to `last`.
    pub fn millis(&self, first: u64, last: u64) -> Duration {
        Duration::from_millis(self.between(first, last))
    }

    /// A time of a random order of magnitude, from nothing to `last` milliseconds.
    pub fn some_time(&self, last: u64) -> Duration {
        let bits = 64 - last.leading_zeros();
        let most = (1_u64 << self.below(u64::from(bits) + 1)).min(last);
        self.millis(0, most)
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
