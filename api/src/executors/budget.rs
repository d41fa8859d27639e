//! How much of executors' messages is in memory at once: all of them together have one budget.
//!
//! A message takes its share while it is read, piece by piece, and keeps it until what became of it is sent to whoever has asked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::PollSemaphore;

/// Bytes of a permit.
const PERMIT: usize = 1024;
/// Permits of all messages together: 256 MiB.
const ALL: usize = 256 * 1024;
/// Bytes of each message that are free: most are shorter.
const FREE: usize = 64 * 1024;
/// Permits that a message takes at a time.
const PIECE: u32 = 256;

/// The budget. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Budget(Arc<Semaphore>);

impl Default for Budget {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ALL)))
    }
}

/// What a message has of the budget; it is given back when this is dropped.
#[derive(Debug, Default)]
pub struct Share(Option<OwnedSemaphorePermit>);

impl Share {
    /// Both together.
    pub fn join(&mut self, other: Self) {
        match (&mut self.0, other.0) {
            (Some(own), Some(other)) => own.merge(other),
            (own @ None, other) => *own = other,
            (Some(_), None) => {}
        }
    }

    /// Whether there is nothing to give back.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

#[derive(Debug, Default)]
struct State {
    read: usize,
    share: Share,
    starved: Option<Instant>,
}

/// The message that is being read from one connection. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Unfinished {
    state: Arc<Mutex<State>>,
    budget: PollSemaphore,
}

impl Unfinished {
    pub(super) fn new(budget: &Budget) -> Self {
        Self {
            state: Arc::default(),
            budget: PollSemaphore::new(Arc::clone(&budget.0)),
        }
    }

    /// Waits until more of it may be read.
    pub(super) fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            {
                let mut state = lock(&self.state);
                let held = state
                    .share
                    .0
                    .as_ref()
                    .map_or(0, OwnedSemaphorePermit::num_permits);
                if state.read < FREE + held * PERMIT {
                    state.starved = None;
                    return Poll::Ready(());
                }
                state.starved.get_or_insert_with(Instant::now);
            }
            // It is never closed.
            if let Some(permit) = ready!(self.budget.poll_acquire_many(context, PIECE)) {
                lock(&self.state).share.join(Share(Some(permit)));
            }
        }
    }

    /// So much more of it was read.
    pub(super) fn read(&self, bytes: usize) {
        lock(&self.state).read += bytes;
    }

    /// So much of what was read is not of it.
    pub(super) fn without(&self, bytes: usize) {
        let mut state = lock(&self.state);
        state.read = state.read.saturating_sub(bytes);
    }

    /// It is whole; what is read from now on is another one.
    pub(super) fn whole(&self) -> Share {
        let mut state = lock(&self.state);
        state.read = 0;
        std::mem::take(&mut state.share)
    }

    /// Since when there has been no room for more of it.
    pub(super) fn starved(&self) -> Option<Instant> {
        lock(&self.state).starved
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    async fn room(unfinished: &mut Unfinished) -> bool {
        let room = poll_fn(|context| unfinished.poll_room(context));
        timeout(Duration::from_millis(10), room).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_waits_for_what_others_give_back() {
        let budget = Budget::default();
        let mut long = Unfinished::new(&budget);
        while room(&mut long).await {
            long.read(PIECE as usize * PERMIT);
        }
        assert!(long.starved().is_some());
        // Short ones are free.
        let mut short = Unfinished::new(&budget);
        short.read(FREE - 1);
        assert!(room(&mut short).await);
        let mut other = Unfinished::new(&budget);
        other.read(FREE);
        assert!(!room(&mut other).await);
        let share = long.whole();
        assert!(!room(&mut other).await && !share.is_empty());
        drop(share);
        assert!(room(&mut other).await && other.starved().is_none());
    }
}
