//! How much space is left where the service writes.
//!
//! A warning comes before the space has run out, and stays until there is clearly more again, so that it
//! does not come and go with every write.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use api::ports::Space;
use rustix::fs::{StatVfs, statvfs};

const MB: u64 = 1_000_000;

/// Less than this share, in percent, or this many bytes are free.
fn is_below(space: Space, percent: u64, bytes: u64) -> bool {
    space.free < bytes || space.free < space.total / 100 * percent
}

/// Watches the file systems of some places.
#[derive(Debug)]
pub struct Gauge {
    places: Vec<PathBuf>,
    /// What is low, in words.
    low: Mutex<Option<String>>,
    /// The space of the first place.
    first: Mutex<Option<Space>>,
}

impl Gauge {
    /// Nothing is known yet.
    pub fn new(places: Vec<PathBuf>) -> Self {
        Self {
            places,
            low: Mutex::default(),
            first: Mutex::default(),
        }
    }

    fn low(&self) -> MutexGuard<'_, Option<String>> {
        self.low.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads how much is free. A place that cannot be asked is not said to be low.
    pub fn read(&self) {
        let spaces = self.places.iter().map(|place| {
            let found = statvfs(place).ok()?;
            Some(Space {
                total: usable_blocks(&found).saturating_mul(found.f_frsize),
                free: found.f_bavail.saturating_mul(found.f_frsize),
            })
        });
        let spaces: Vec<Option<Space>> = spaces.collect();
        *self.first.lock().unwrap_or_else(PoisonError::into_inner) =
            spaces.first().copied().flatten();
        let mut low = self.low();
        *low = next(low.is_some(), spaces.into_iter().flatten());
    }

    /// The space of the first place, as last read.
    pub fn first(&self) -> Option<Space> {
        *self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is low, in words; public: without paths.
    pub fn shortage(&self) -> Option<String> {
        self.low().clone()
    }
}

/// Blocks that are in use or free for this process: reserved ones do not count, as in `df`.
fn usable_blocks(found: &StatVfs) -> u64 {
    let reserved = found.f_bfree.saturating_sub(found.f_bavail);
    found.f_blocks.saturating_sub(reserved)
}

/// Low below 5 % or 200 MB; not any more from 6 % and 240 MB on.
fn next(was_low: bool, spaces: impl IntoIterator<Item = Space>) -> Option<String> {
    let (percent, bytes) = if was_low {
        (6, 240 * MB)
    } else {
        (5, 200 * MB)
    };
    let spaces = spaces.into_iter();
    let below = spaces.filter(|space| is_below(*space, percent, bytes));
    below.min_by_key(|space| space.free).map(|space| {
        format!(
            "{} of {} MB free: free space before changes are refused",
            space.free / MB,
            space.total / MB
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_low_below_five_percent_or_200_mb_and_does_not_flap() {
        let low = |was, total, free| {
            let (total, free) = (total * MB, free * MB);
            next(was, [Space { total, free }]).is_some()
        };
        assert!(!low(false, 1_000, 200));
        assert!(low(false, 1_000, 199));
        assert!(low(true, 1_000, 239));
        assert!(!low(true, 1_000, 240));
        assert!(!low(false, 100_000, 5_000));
        assert!(low(false, 100_000, 4_999));
        assert!(low(true, 100_000, 5_999));
        assert!(!low(true, 100_000, 6_000));
        assert_eq!(next(true, []), None, "what cannot be asked is not low");
        // One that has more free than another may be the one that is low.
        let large = Space {
            total: 1_000_000 * MB,
            free: 10_000 * MB,
        };
        let small = Space {
            total: 2_000 * MB,
            free: 1_000 * MB,
        };
        assert!(next(false, [large, small]).is_some());
    }

    #[test]
    fn the_scarcest_of_all_places_is_told() {
        let gauge = Gauge::new(vec!["/proc".into(), "/nowhere".into()]);
        assert_eq!(gauge.shortage(), None);
        gauge.read();
        let told = gauge.shortage().unwrap();
        assert!(told.starts_with("0 of 0 MB free"), "{told}");
    }
}
