//! The body of an answer on its way: its memory counts as used until the peer's socket has taken it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::task::AtomicWaker;
use http::header::CONTENT_TYPE;
use http::{Response, Version};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use schema::metric::{self, Held};

use super::layers::{Body, BodyError};
use super::streams::{note_wait_for_peer, note_wait_for_producer};
use crate::budget::AnswerMemory;

/// Most bytes that HTTP/2 is given at once: what does not fit into the peer's window is kept in memory.
const SLICE: usize = 16 * 1024;
/// Type of answers that end with their reader.
const EVENT_STREAM: &[u8] = b"text/event-stream";

/// Makes the answer's memory count until it is sent, and its end known to the timer of its stream.
pub(super) fn count_until_sent(mut response: Response<Body>, version: Version) -> Response<Body> {
    let memory = response.extensions_mut().remove::<AnswerMemory>();
    let content_type = response.headers().get(CONTENT_TYPE);
    let is_stream = content_type.is_some_and(|found| found.as_bytes().starts_with(EVENT_STREAM));
    let stream = is_stream.then(|| metric::HTTP_STREAMS.hold(&["events"]));
    response.map(|inner| {
        let outgoing = Outgoing {
            inner: Some(inner),
            rest: Bytes::new(),
            streamed: version == Version::HTTP_2,
            given: 0,
            sent: Arc::new(Sent {
                _memory: memory,
                _stream: stream,
                in_flight: AtomicUsize::new(0),
                waker: AtomicWaker::new(),
            }),
        };
        outgoing.boxed_unsync()
    })
}

struct Outgoing {
    /// Its producer, until that has ended.
    inner: Option<Body>,
    /// Data that came from `inner` and is not given yet.
    rest: Bytes,
    /// It goes over one of several streams of a connection.
    streamed: bool,
    /// Slices given so far.
    given: u64,
    sent: Arc<Sent>,
}

/// Slices of one answer that are given and not sent yet, and the memory that they are part of.
struct Sent {
    _memory: Option<AnswerMemory>,
    _stream: Option<Held>,
    in_flight: AtomicUsize,
    waker: AtomicWaker,
}

/// Bytes that note when they are sent.
struct Slice {
    bytes: Bytes,
    sent: Arc<Sent>,
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        if self.sent.in_flight.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.sent.waker.wake();
        }
    }
}

impl Outgoing {
    fn give_slice(&mut self) -> Bytes {
        let most = if self.streamed { SLICE } else { usize::MAX };
        let bytes = self.rest.split_to(self.rest.len().min(most));
        self.sent.in_flight.fetch_add(1, Ordering::AcqRel);
        self.given += 1;
        note_wait_for_peer(self.given);
        let sent = Arc::clone(&self.sent);
        Bytes::from_owner(Slice { bytes, sent })
    }

    fn is_sent(&self) -> bool {
        !self.streamed || self.sent.in_flight.load(Ordering::Acquire) == 0
    }

    /// Waits until all is sent: a stream whose end was given can no longer be reset.
    fn poll_sent(&self, cx: &Context<'_>) -> Poll<()> {
        self.sent.waker.register(cx.waker());
        if self.is_sent() {
            return Poll::Ready(());
        }
        let left = self.sent.in_flight.load(Ordering::Acquire) as u64;
        note_wait_for_peer(2 * self.given - left);
        Poll::Pending
    }
}

impl hyper::body::Body for Outgoing {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            if !self.rest.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(self.give_slice()))));
            }
            let Some(inner) = &mut self.inner else {
                ready!(self.poll_sent(cx));
                return Poll::Ready(None);
            };
            let Poll::Ready(frame) = Pin::new(inner).poll_frame(cx) else {
                note_wait_for_producer();
                return Poll::Pending;
            };
            match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => self.inner = None,
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let has_ended = self.inner.as_ref().is_none_or(Body::is_end_stream);
        self.rest.is_empty() && has_ended && self.is_sent()
    }

    fn size_hint(&self) -> SizeHint {
        let exact = SizeHint::with_exact(0);
        let mut hint = self.inner.as_ref().map_or(exact, Body::size_hint);
        let rest = self.rest.len() as u64;
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}
