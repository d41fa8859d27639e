//! A rate that one owner may keep up, with a burst.

use std::time::Duration;

use tokio::time::Instant;

/// A token bucket: `each_second` may be taken for ever, and `burst` at once.
#[derive(Debug)]
pub(crate) struct Rate {
    each_second: f64,
    burst: f64,
    left: f64,
    at: Instant,
}

impl Rate {
    /// Makes a full bucket.
    pub(crate) fn new(each_second: u32, burst: u32) -> Self {
        Self {
            each_second: f64::from(each_second),
            burst: f64::from(burst),
            left: f64::from(burst),
            at: Instant::now(),
        }
    }

    /// Takes so many, and returns the time to wait before the next are taken.
    pub(crate) fn take(&mut self, number: usize) -> Duration {
        let now = Instant::now();
        let gained = now.duration_since(self.at).as_secs_f64() * self.each_second;
        self.at = now;
        self.left = (self.left + gained).min(self.burst) - number as f64;
        match self.left < 0.0 {
            true => Duration::from_secs_f64(-self.left / self.each_second),
            false => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn taker_waits_after_the_burst() {
        let mut rate = Rate::new(10, 20);
        for _ in 0..20 {
            assert_eq!(rate.take(1), Duration::ZERO);
        }
        assert_eq!(rate.take(1).as_millis(), 100);
        tokio::time::advance(Duration::from_secs(60)).await;
        // What was not taken for long is no more than the burst.
        assert_eq!(rate.take(30).as_millis(), 1000);
    }
}
