//! HTTP/2 streams whose peer does not read their answer are reset, whatever else the peer does on its connection.
//!
//! The task of a stream is wrapped in a timer. The body that the task sends notes in [`Reading`] when it waits for the peer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::Executor;
use hyper_util::rt::TokioExecutor;
use tokio::time::{Instant, Sleep, sleep};

tokio::task_local! {
    static STREAM: Arc<Reading>;
}

/// Progress of an answer that waits for its peer; 0 while it waits for its producer.
#[derive(Debug, Default)]
struct Reading(AtomicU64);

/// Notes that the answer of this task's stream waits for its peer to take what it was given. Another `progress` than before begins
/// the time anew.
pub(super) fn note_wait_for_peer(progress: u64) {
    note(progress + 1);
}

/// Notes that the answer of this task's stream waits for its producer, for as long as that takes.
pub(super) fn note_wait_for_producer() {
    note(0);
}

fn note(progress: u64) {
    // HTTP/1 has no streams: its connections have a timer of their own.
    let _ = STREAM.try_with(|reading| reading.0.store(progress, Ordering::Relaxed));
}

/// Runs the streams of HTTP/2 connections as tasks.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamExecutor {
    /// Longest time for a peer to take nothing of an answer.
    pub(super) stall: Duration,
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
{
    fn execute(&self, future: F) {
        TokioExecutor::new().execute(TimedStream {
            future: Box::pin(future),
            reading: Arc::default(),
            seen: 0,
            timer: None,
            stall: self.stall,
        });
    }
}

/// A stream that ends, and thereby is reset, when its peer has taken nothing for too long.
struct TimedStream<F> {
    future: Pin<Box<F>>,
    reading: Arc<Reading>,
    seen: u64,
    timer: Option<Pin<Box<Sleep>>>,
    stall: Duration,
}

impl<F: Future> Future for TimedStream<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let me = &mut *self;
        let future = &mut me.future;
        let polled = STREAM.sync_scope(Arc::clone(&me.reading), || future.as_mut().poll(cx));
        if polled.is_ready() {
            return Poll::Ready(());
        }
        let progress = me.reading.0.load(Ordering::Relaxed);
        if progress == 0 {
            me.seen = 0;
            return Poll::Pending;
        }
        let stall = me.stall;
        let timer = me.timer.get_or_insert_with(|| Box::pin(sleep(stall)));
        if progress != me.seen {
            me.seen = progress;
            timer.as_mut().reset(Instant::now() + stall);
        }
        let expired = timer.as_mut().poll(cx);
        if expired.is_ready() {
            tracing::debug!("a stream was reset: its peer took nothing of the answer for too long");
        }
        expired
    }
}
