//! Whether a reconciler is alive: signs of life, and what has panicked.
//!
//! A task that ends takes the process with it, so a dead reconciler is one whose tasks live and get
//! nowhere. Nobody has to notice that at the time: whoever asks compares the last signs with the clock.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schema::ids::Timestamp;
use tokio::time::Instant;

/// How long what may be slow for a good reason may stay without a sign of life.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Between two listings of all keys.
    pub listing: Duration,
    /// Between two signs of any worker while keys wait.
    pub work: Duration,
    /// For one pass.
    pub pass: Duration,
}

#[derive(Debug)]
struct State {
    /// A worker was free, or began or ended a pass.
    worked: Instant,
    /// All keys were listed; `None` before this process leads for the first time.
    listed: Option<Instant>,
    /// Passes under way, by number.
    passes: HashMap<u64, Instant>,
    panics: u64,
    last_panic_at: Option<Timestamp>,
}

/// The signs of life of one reconciler.
#[derive(Debug)]
pub(super) struct Pulse(Mutex<State>);

impl Pulse {
    pub fn new() -> Self {
        Self(Mutex::new(State {
            worked: Instant::now(),
            listed: None,
            passes: HashMap::new(),
            panics: 0,
            last_panic_at: None,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This process leads since now, so listings are to be expected.
    pub fn leads(&self) {
        self.state().listed = Some(Instant::now());
    }

    /// The store does not answer: nobody can get anywhere, which is not the reconciler's fault. Once
    /// the store is back, everything has its whole time again.
    pub fn excused(&self) {
        let mut state = self.state();
        let now = Instant::now();
        state.worked = now;
        state.listed = state.listed.map(|_| now);
    }

    /// All keys were listed.
    pub fn listed(&self) {
        self.state().listed = Some(Instant::now());
    }

    /// A worker is free.
    pub fn free(&self) {
        self.state().worked = Instant::now();
    }

    /// A pass begins.
    pub fn begins(&self, pass: u64) {
        let mut state = self.state();
        state.worked = Instant::now();
        state.passes.insert(pass, Instant::now());
    }

    /// A pass has ended, however.
    pub fn ended(&self, pass: u64) {
        let mut state = self.state();
        state.worked = Instant::now();
        state.passes.remove(&pass);
    }

    /// A panic was caught.
    pub fn panicked(&self, now: Timestamp) {
        let mut state = self.state();
        state.panics += 1;
        state.last_panic_at = Some(now);
    }

    /// How many panics were caught since the start, and when the last.
    pub fn panics(&self) -> (u64, Option<Timestamp>) {
        let state = self.state();
        (state.panics, state.last_panic_at)
    }

    /// Since when the reconciler gets nowhere, and how that shows. `waiting`: since when keys wait that
    /// could run.
    pub fn stuck(&self, waiting: Option<Instant>, patience: Patience) -> Option<(Instant, String)> {
        let state = self.state();
        let oldest = state.passes.values().min().copied();
        if let Some(began) = oldest.filter(|began| began.elapsed() > patience.pass) {
            let limit = patience.pass.as_secs();
            return Some((began, format!("a pass has not ended within {limit} s")));
        }
        if let Some(waiting) = waiting {
            let since = waiting.max(state.worked);
            if since.elapsed() > patience.work {
                let limit = patience.work.as_secs();
                return Some((
                    since,
                    format!("keys wait, and no pass has begun or ended for {limit} s"),
                ));
            }
        }
        let listed = state.listed?;
        (listed.elapsed() > patience.listing).then(|| {
            let limit = patience.listing.as_secs();
            (
                listed,
                format!("the keys have not been listed for {limit} s"),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        listing: Duration::from_secs(180),
        work: Duration::from_secs(100),
        pass: Duration::from_secs(1000),
    };

    async fn pass_time(seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn l55_keys_that_wait_while_nobody_works_are_a_stuck_reconciler() {
        let pulse = Pulse::new();
        pass_time(500).await;
        assert_eq!(pulse.stuck(None, PATIENCE), None, "idle is not stuck");
        let waiting = Instant::now();
        assert_eq!(pulse.stuck(Some(waiting), PATIENCE), None);
        pass_time(101).await;
        let (since, why) = pulse.stuck(Some(waiting), PATIENCE).unwrap();
        assert_eq!(since, waiting);
        assert!(why.contains("keys wait"), "{why}");
        pulse.begins(1);
        assert_eq!(pulse.stuck(Some(waiting), PATIENCE), None);
    }

    #[tokio::test(start_paused = true)]
    async fn l55_a_pass_beyond_its_deadline_is_a_stuck_reconciler_though_others_work() {
        let pulse = Pulse::new();
        pulse.begins(1);
        let began = Instant::now();
        pass_time(1001).await;
        pulse.begins(2);
        pulse.ended(2);
        assert_eq!(pulse.stuck(None, PATIENCE).unwrap().0, began);
        pulse.ended(1);
        assert_eq!(pulse.stuck(None, PATIENCE), None);
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_leader_has_to_list() {
        let pulse = Pulse::new();
        pass_time(500).await;
        assert_eq!(pulse.stuck(None, PATIENCE), None);
        pulse.leads();
        pass_time(181).await;
        assert!(pulse.stuck(None, PATIENCE).unwrap().1.contains("listed"));
        pulse.listed();
        assert_eq!(pulse.stuck(None, PATIENCE), None);
        // Somebody else led meanwhile.
        pass_time(181).await;
        pulse.leads();
        assert_eq!(pulse.stuck(None, PATIENCE), None);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_stuck_for_want_of_the_store_but_afterwards_for_want_of_work() {
        let pulse = Pulse::new();
        pulse.leads();
        let waiting = Instant::now();
        for _ in 0..10 {
            pass_time(60).await;
            pulse.excused();
            assert_eq!(pulse.stuck(Some(waiting), PATIENCE), None);
        }
        pass_time(101).await;
        assert!(pulse.stuck(Some(waiting), PATIENCE).is_some());
        pass_time(80).await;
        assert!(pulse.stuck(None, PATIENCE).unwrap().1.contains("listed"));
    }
}
