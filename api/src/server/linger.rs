//! Closing a connection on which a body is still being sent.
//!
//! Who closes a socket that has unread bytes, or gets more, sends a reset, which takes the answer away from
//! a client that has not read it yet. So after an answer that did not wait for its request's body, what
//! comes is read and thrown away for a while.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Longest time for it.
const WHOLE: Duration = Duration::from_secs(5);
/// Longest time without a byte.
const QUIET: Duration = Duration::from_secs(1);
/// Most bytes that are thrown away: one upload.
const MOST: usize = 32 * 1024 * 1024;

/// Whether a body was left unread on a connection. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Unread(Arc<AtomicBool>);

/// A request's body, which notes when it is dropped before its end.
#[derive(Debug)]
pub(super) struct Received {
    inner: Incoming,
    ended: bool,
    unread: Unread,
}

impl Received {
    pub(super) fn new(inner: Incoming, unread: Unread) -> Self {
        Self {
            ended: false,
            inner,
            unread,
        }
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        if !self.ended && !self.inner.is_end_stream() {
            self.unread.0.store(true, Ordering::Relaxed);
        }
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        self.ended = !matches!(frame, Some(Ok(_)));
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// A connection that is closed with care.
pub(super) struct Linger<S> {
    inner: S,
    unread: Unread,
    /// Since our half is closed: when all ends, what was thrown away, and when it has been quiet for long.
    closing: Option<Closing>,
}

struct Closing {
    deadline: Instant,
    bytes: usize,
    timer: Pin<Box<Sleep>>,
}

impl<S> Linger<S> {
    pub(super) fn new(inner: S, unread: Unread) -> Self {
        Self {
            inner,
            unread,
            closing: None,
        }
    }
}

impl<S: AsyncRead + Unpin> Linger<S> {
    /// Throws away what comes, until nothing comes any more or it is enough.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let closing = self.closing.get_or_insert_with(|| Closing {
            deadline: Instant::now() + WHOLE,
            bytes: 0,
            timer: Box::pin(sleep(QUIET)),
        });
        let mut piece = [0; 8192];
        loop {
            if closing.bytes > MOST || closing.timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            let mut piece = ReadBuf::new(&mut piece);
            match ready!(Pin::new(&mut self.inner).poll_read(cx, &mut piece)) {
                Ok(()) if !piece.filled().is_empty() => closing.bytes += piece.filled().len(),
                Ok(()) | Err(_) => return Poll::Ready(()),
            }
            let quiet = Instant::now() + QUIET;
            closing.timer.as_mut().reset(quiet.min(closing.deadline));
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Linger<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Linger<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closing.is_none() {
            ready!(Pin::new(&mut self.inner).poll_shutdown(cx))?;
        }
        if self.unread.0.load(Ordering::Relaxed) {
            ready!(self.poll_drain(cx));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;

    fn unread() -> Unread {
        Unread(Arc::new(AtomicBool::new(true)))
    }

    #[tokio::test(start_paused = true)]
    async fn l63_what_is_thrown_away_is_bounded_in_time_and_size() {
        let begun = Instant::now();
        let (near, _far) = duplex(10);
        Linger::new(near, unread()).shutdown().await.unwrap();
        assert_eq!(begun.elapsed(), QUIET, "nothing came");

        let begun = Instant::now();
        let (near, mut far) = duplex(10);
        let mut near = Linger::new(near, unread());
        let drip = async {
            loop {
                sleep(QUIET / 2).await;
                far.write_all(b"x").await.unwrap();
            }
        };
        tokio::select! {
            closed = near.shutdown() => closed.unwrap(),
            () = drip => {}
        }
        assert_eq!(begun.elapsed(), WHOLE, "it came slowly");

        let begun = Instant::now();
        let (near, mut far) = duplex(64 * 1024);
        let mut near = Linger::new(near, unread());
        let flood = async { while far.write_all(&[0; 64 * 1024]).await.is_ok() {} };
        tokio::select! {
            closed = near.shutdown() => closed.unwrap(),
            () = flood => {}
        }
        assert!(begun.elapsed().is_zero(), "it was too much");

        let (near, far) = duplex(10);
        drop(far);
        Linger::new(near, unread()).shutdown().await.unwrap();
        let (near, _far) = duplex(10);
        Linger::new(near, Unread::default())
            .shutdown()
            .await
            .unwrap();
        assert!(begun.elapsed().is_zero(), "nobody is waited for");
    }
}
