//! The pace at which bodies have to arrive: a client that drips bytes must not hold memory or places for long.

use std::time::Duration;

use tokio::time::Instant;

/// Longest pause between two pieces, and the time in which nothing has to arrive.
pub(super) const IDLE: Duration = Duration::from_secs(30);
/// Bytes that have to arrive in each second after that.
const RATE: u64 = 4 * 1024;

/// The arrival of one body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    begun: Instant,
    longest: Duration,
}

impl Pace {
    /// A body that begins now and may take so long altogether.
    pub(super) fn begin_body(longest: Duration) -> Self {
        Self {
            begun: Instant::now(),
            longest,
        }
    }

    /// The time at which the next piece is too late, after so many bytes.
    pub(super) fn deadline(&self, received: u64) -> Instant {
        let earned = IDLE + Duration::from_secs(received / RATE);
        let next = Instant::now() + IDLE;
        next.min(self.begun + earned.min(self.longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn bytes_that_arrive_earn_time_up_to_the_limit() {
        let begun = Instant::now();
        let pace = Pace::begin_body(Duration::from_secs(60));
        tokio::time::advance(Duration::from_secs(25)).await;
        let after = |seconds| begun + Duration::from_secs(seconds);
        assert_eq!(pace.deadline(0), after(30));
        assert_eq!(pace.deadline(20 * RATE), after(50));
        // A pause is no longer than before, however much has arrived.
        assert_eq!(pace.deadline(100 * RATE), after(55));
        tokio::time::advance(Duration::from_secs(15)).await;
        assert_eq!(pace.deadline(100 * RATE), after(60));
    }
}
