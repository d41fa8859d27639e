//! Memory of messages that peers of WebSockets send: each message takes its share of a budget while it is read, piece by piece, and
//! keeps it until its content is used.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use schema::ids::Uid;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep};
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::PollSemaphore;

use super::Memory;

/// Bytes of a permit.
const PERMIT: usize = 1024;
/// Bytes of each message that are free: most are shorter.
pub(crate) const FREE: usize = 64 * 1024;
/// Permits that a message takes at a time.
const PIECE: u32 = 256;
/// Longest time for a message to come whole: longer than any call of a tool waits for it. What is not whole holds memory that others
/// wait for, so it is this connection that ends, and not theirs.
const UNFINISHED: Duration = Duration::from_secs(140);
/// Time between two looks at the age of a message.
const LOOK: Duration = Duration::from_secs(5);

/// Memory of messages that were received; given back when dropped.
#[derive(Debug, Default)]
pub struct Received(Vec<OwnedSemaphorePermit>);

impl Received {
    /// Waits for room for a message of so many bytes that comes whole.
    pub(crate) async fn reserve(memory: &Memory<Uid>, user: &Uid, bytes: usize) -> Self {
        let permits = bytes.saturating_sub(FREE).div_ceil(PERMIT);
        let permits = u32::try_from(permits.min(memory.each_kib())).unwrap_or(u32::MAX);
        let mut received = Self::default();
        for part in memory.semaphores(user) {
            // Neither of them is ever closed.
            received
                .0
                .extend(part.acquire_many_owned(permits).await.ok());
        }
        received
    }

    /// Adds the memory of another message.
    pub fn join(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// Returns the same bytes, which keep the memory until they are sent.
    pub fn held_by(self, bytes: Bytes) -> Bytes {
        struct Holding {
            bytes: Bytes,
            _share: Received,
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

    /// Returns true if it holds no memory.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Debug, Default)]
struct State {
    /// Bytes that were read, and for how many more than the free ones there is room.
    read: usize,
    room: usize,
    share: Received,
    /// A piece of the user's part that waits for one of what all have.
    of_user: Option<OwnedSemaphorePermit>,
    begun: Option<Instant>,
    starved: Option<Instant>,
}

/// The message that is being read from one connection. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Incoming {
    state: Arc<Mutex<State>>,
    /// Of the user's part, then of what all have.
    budgets: [PollSemaphore; 2],
}

impl Incoming {
    /// Begins with the first message of a connection.
    pub(crate) fn new(memory: &Memory<Uid>, user: &Uid) -> Self {
        Self {
            state: Arc::default(),
            budgets: memory.semaphores(user).map(PollSemaphore::new),
        }
    }

    /// Waits until more of it may be read.
    pub(crate) fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<()> {
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

    /// Counts bytes of it that were read.
    pub(crate) fn read(&self, bytes: usize) {
        let mut state = lock(&self.state);
        state.read += bytes;
        state.begun.get_or_insert_with(Instant::now);
    }

    fn without(&self, bytes: usize) {
        let mut state = lock(&self.state);
        state.read = state.read.saturating_sub(bytes);
        if state.read == 0 {
            state.begun = None;
        }
    }

    /// Ends what was read last and returns its memory. A ping or pong, whose head has so many bytes, may have come between the fragments
    /// of a message, which goes on. `None`: it was no message.
    pub(crate) fn take_memory(&self, message: Option<&Message>, head: usize) -> Received {
        match message {
            Some(Message::Ping(bytes) | Message::Pong(bytes)) => {
                self.without(bytes.len() + head);
                Received::default()
            }
            _ => self.whole(),
        }
    }

    fn whole(&self) -> Received {
        let mut state = lock(&self.state);
        (state.read, state.room, state.begun) = (0, 0, None);
        std::mem::take(&mut state.share)
    }

    /// Returns true if it has not come whole for too long.
    pub(crate) fn is_overdue(&self) -> bool {
        let begun = lock(&self.state).begun;
        begun.is_some_and(|begun| begun.elapsed() > UNFINISHED)
    }

    /// Waits until a message has not come whole for too long.
    pub(crate) async fn wait_until_overdue(&self) {
        while !self.is_overdue() {
            sleep(LOOK).await;
        }
    }

    /// Returns the time since which it has no room for more.
    pub(crate) fn starved(&self) -> Option<Instant> {
        lock(&self.state).starved
    }
}

/// A connection that is read only as far as its message has room.
#[derive(Debug)]
pub(crate) struct Metered<S> {
    io: S,
    incoming: Incoming,
}

impl<S> Metered<S> {
    /// Meters what is read from `io`.
    pub(crate) fn new(io: S, incoming: Incoming) -> Self {
        Self { io, incoming }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.incoming.poll_room(context));
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(context, buffer);
        let bytes = buffer.filled().len() - before;
        if bytes > 0 {
            self.incoming.read(bytes);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::time::timeout;

    use super::*;
    use crate::limits::EXECUTOR_ANSWERS;

    fn memory() -> Memory<Uid> {
        Memory::new(&EXECUTOR_ANSWERS)
    }

    async fn room(unfinished: &mut Incoming) -> bool {
        let room = poll_fn(|context| unfinished.poll_room(context));
        timeout(Duration::from_millis(10), room).await.is_ok()
    }

    /// Reads until there is no room for more.
    async fn fill(budget: &Memory<Uid>, user: &Uid) -> (Incoming, usize) {
        let (mut long, mut read) = (Incoming::new(budget, user), 0);
        while room(&mut long).await {
            long.read(PIECE as usize * PERMIT);
            read += PIECE as usize * PERMIT;
        }
        (long, read)
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_waits_for_what_others_give_back() {
        let budget = memory();
        let all: Vec<_> = (0..EXECUTOR_ANSWERS.all() / EXECUTOR_ANSWERS.each())
            .map(|_| Uid::random())
            .collect();
        let mut filled = Vec::new();
        for user in &all {
            let (long, read) = fill(&budget, user).await;
            assert!(long.starved().is_some() && read >= EXECUTOR_ANSWERS.each());
            filled.push(long);
        }
        // Short ones are free.
        let stranger = Uid::random();
        let mut short = Incoming::new(&budget, &stranger);
        short.read(FREE - 1);
        assert!(room(&mut short).await);
        let mut other = Incoming::new(&budget, &stranger);
        other.read(FREE);
        assert!(!room(&mut other).await);
        let share = filled[0].whole();
        assert!(!room(&mut other).await && !share.is_empty());
        drop(share);
        assert!(room(&mut other).await && other.starved().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn one_user_takes_no_more_than_a_part_and_is_forgotten() {
        let budget = memory();
        let (alice, bob) = (Uid::random(), Uid::random());
        let (long, _) = fill(&budget, &alice).await;
        let mut more = Incoming::new(&budget, &alice);
        more.read(FREE);
        assert!(!room(&mut more).await);
        let mut others = Incoming::new(&budget, &bob);
        others.read(32 * 1024 * 1024);
        assert!(room(&mut others).await);
        // What was read is still to be sent: the part is the same for a new connection.
        let share = long.whole();
        drop((long, more));
        let mut again = Incoming::new(&budget, &alice);
        again.read(FREE);
        assert!(!room(&mut again).await);
        drop(share);
        assert!(room(&mut again).await);
        drop((again, others));
        for _ in 0..1000 {
            budget.share(&Uid::random());
        }
        assert!(budget.remembered() <= 64);
    }
}
