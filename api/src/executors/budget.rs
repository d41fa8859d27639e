//! How much of executors' messages is in memory at once: all of them together have one budget, and each user a part of it.
//!
//! A message takes its share while it is read, piece by piece, and keeps it until what became of it is sent to whoever has asked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use schema::ids::Uid;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::PollSemaphore;

use crate::parts::Parts;

/// Bytes of a permit.
const PERMIT: usize = 1024;
/// Permits of all messages together: 256 MiB.
const ALL: usize = 256 * 1024;
/// Permits of one user's messages: two of the longest. Clients of one user that take nothing hold up no other user.
const OF_USER: usize = 64 * 1024;
/// Bytes of each message that are free: most are shorter.
const FREE: usize = 64 * 1024;
/// Permits that a message takes at a time.
const PIECE: u32 = 256;

/// The budget. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    all: Arc<Semaphore>,
    users: Parts<Uid>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(ALL)),
            users: Parts::new(OF_USER),
        }
    }
}

impl Budget {
    /// Waits for room for a message of so many bytes that comes whole.
    pub(super) async fn reserve(&self, user: &Uid, bytes: usize) -> Share {
        let permits = bytes.saturating_sub(FREE).div_ceil(PERMIT).min(OF_USER);
        let permits = u32::try_from(permits).unwrap_or(u32::MAX);
        let mut share = Share::default();
        for part in [self.users.part_of(user), Arc::clone(&self.all)] {
            // Neither of them is ever closed.
            share.0.extend(part.acquire_many_owned(permits).await.ok());
        }
        share
    }
}

/// What messages have of the budget; it is given back when this is dropped.
#[derive(Debug, Default)]
pub struct Share(Vec<OwnedSemaphorePermit>);

impl Share {
    /// Both together.
    pub fn join(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// The same bytes, which keep it until they are sent.
    pub fn held_by(self, bytes: Bytes) -> Bytes {
        struct Holding {
            bytes: Bytes,
            _share: Share,
        }
        impl AsRef<[u8]> for Holding {
            fn as_ref(&self) -> &[u8] {
                &self.bytes
            }
        }
        match self.is_empty() {
            true => bytes,
            false => Bytes::from_owner(Holding {
                bytes,
                _share: self,
            }),
        }
    }

    /// Whether there is nothing to give back.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Debug, Default)]
struct State {
    /// Bytes that were read, and for how many more than the free ones there is room.
    read: usize,
    room: usize,
    share: Share,
    /// A piece of the user's part that waits for one of what all have.
    of_user: Option<OwnedSemaphorePermit>,
    begun: Option<Instant>,
    starved: Option<Instant>,
}

/// The message that is being read from one connection. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Unfinished {
    state: Arc<Mutex<State>>,
    /// Of the user's part, then of what all have.
    budgets: [PollSemaphore; 2],
}

impl Unfinished {
    pub(super) fn new(budget: &Budget, user: &Uid) -> Self {
        Self {
            state: Arc::default(),
            budgets: [budget.users.part_of(user), Arc::clone(&budget.all)].map(PollSemaphore::new),
        }
    }

    /// Waits until more of it may be read.
    pub(super) fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            {
                let mut state = lock(&self.state);
                if state.read < FREE + state.room {
                    state.starved = None;
                    return Poll::Ready(());
                }
                state.starved.get_or_insert_with(Instant::now);
            }
            // Neither of them is ever closed.
            let [of_user, of_all] = &mut self.budgets;
            if lock(&self.state).of_user.is_none() {
                let permit = ready!(of_user.poll_acquire_many(context, PIECE));
                lock(&self.state).of_user = permit;
            }
            let permit = ready!(of_all.poll_acquire_many(context, PIECE));
            let mut state = lock(&self.state);
            let both = state.of_user.take().into_iter().chain(permit);
            state.share.0.extend(both);
            state.room += PIECE as usize * PERMIT;
        }
    }

    /// So much more of it was read.
    pub(super) fn read(&self, bytes: usize) {
        let mut state = lock(&self.state);
        state.read += bytes;
        state.begun.get_or_insert_with(Instant::now);
    }

    /// So much of what was read is not of it.
    pub(super) fn without(&self, bytes: usize) {
        let mut state = lock(&self.state);
        state.read = state.read.saturating_sub(bytes);
        if state.read == 0 {
            state.begun = None;
        }
    }

    /// It is whole; what is read from now on is another one.
    pub(super) fn whole(&self) -> Share {
        let mut state = lock(&self.state);
        (state.read, state.room, state.begun) = (0, 0, None);
        std::mem::take(&mut state.share)
    }

    /// Since when it has been read, when a part of it was.
    pub(super) fn begun(&self) -> Option<Instant> {
        lock(&self.state).begun
    }

    /// Since when there has been no room for more of it.
    pub(super) fn starved(&self) -> Option<Instant> {
        lock(&self.state).starved
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
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

    /// Reads until there is no room for more.
    async fn fill(budget: &Budget, user: &Uid) -> (Unfinished, usize) {
        let (mut long, mut read) = (Unfinished::new(budget, user), 0);
        while room(&mut long).await {
            long.read(PIECE as usize * PERMIT);
            read += PIECE as usize * PERMIT;
        }
        (long, read)
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_waits_for_what_others_give_back() {
        let budget = Budget::default();
        let all: Vec<_> = (0..ALL / OF_USER).map(|_| Uid::random()).collect();
        let mut filled = Vec::new();
        for user in &all {
            let (long, read) = fill(&budget, user).await;
            assert!(long.starved().is_some() && read >= OF_USER * PERMIT);
            filled.push(long);
        }
        // Short ones are free.
        let stranger = Uid::random();
        let mut short = Unfinished::new(&budget, &stranger);
        short.read(FREE - 1);
        assert!(room(&mut short).await);
        let mut other = Unfinished::new(&budget, &stranger);
        other.read(FREE);
        assert!(!room(&mut other).await);
        let share = filled[0].whole();
        assert!(!room(&mut other).await && !share.is_empty());
        drop(share);
        assert!(room(&mut other).await && other.starved().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn one_user_takes_no_more_than_a_part_and_is_forgotten() {
        let budget = Budget::default();
        let (alice, bob) = (Uid::random(), Uid::random());
        let (long, _) = fill(&budget, &alice).await;
        let mut more = Unfinished::new(&budget, &alice);
        more.read(FREE);
        assert!(!room(&mut more).await);
        let mut others = Unfinished::new(&budget, &bob);
        others.read(32 * 1024 * 1024);
        assert!(room(&mut others).await);
        // What was read is still to be sent: the part is the same for a new connection.
        let share = long.whole();
        drop((long, more));
        let mut again = Unfinished::new(&budget, &alice);
        again.read(FREE);
        assert!(!room(&mut again).await);
        drop(share);
        assert!(room(&mut again).await);
        drop((again, others));
        for _ in 0..1000 {
            budget.users.part_of(&Uid::random());
        }
        assert!(budget.users.remembered() <= 64);
    }
}
