//! When bytes last came and went: a long message is a sign of life long before it is whole. And how many of it came.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::limits::Incoming;

/// The times of one connection. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Traffic(Arc<[Mutex<Instant>; 2]>);

impl Traffic {
    pub(super) fn new() -> Self {
        Self(Arc::new([(); 2].map(|()| Mutex::new(Instant::now()))))
    }

    /// When bytes came.
    pub(super) fn received(&self) -> Instant {
        Self::read(&self.0[0])
    }

    /// When bytes went.
    pub(super) fn sent(&self) -> Instant {
        Self::read(&self.0[1])
    }

    fn read(time: &Mutex<Instant>) -> Instant {
        *time.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(time: &Mutex<Instant>) {
        *time.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// A connection whose times are noted.
#[derive(Debug)]
pub(super) struct Watched<S> {
    io: S,
    traffic: Traffic,
    unfinished: Incoming,
}

impl<S> Watched<S> {
    pub(super) fn new(io: S, traffic: Traffic, unfinished: Incoming) -> Self {
        Self {
            io,
            traffic,
            unfinished,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.unfinished.poll_room(context));
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(context, buffer);
        let bytes = buffer.filled().len() - before;
        if bytes > 0 {
            Traffic::note(&self.traffic.0[0]);
            self.unfinished.read(bytes);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(context, bytes);
        if matches!(polled, Poll::Ready(Ok(1..))) {
            Traffic::note(&self.traffic.0[1]);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
