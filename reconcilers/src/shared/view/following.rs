//! Follows the engine's events: opens the stream, leaves it when it breaks or is silent, and opens it
//! again; reports when events may be missing, and when they arrive again.

use std::sync::Arc;
use std::time::Duration;

use engine::{Containers, EngineError, EngineEvent, EngineStream, PING_LIMIT};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use schema::error::chain;
use schema::ids::Uid;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Connection, EngineView};
use crate::runtime::WorldEvent;

const RECONNECT_FIRST: Duration = Duration::from_millis(500);
const RECONNECT_MOST: Duration = Duration::from_secs(5);
/// Time between two questions whether the engine answers.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// A stream that has lasted this long did not break because of how it was opened.
const STEADY: Duration = Duration::from_secs(5);

/// A stream is believed after this time without a sign that it is silent, although no event came:
/// where nothing happens, nothing can be.
const QUIET_FIRST: Duration = Duration::from_secs(2 * 60);
/// Each time that this was a mistake, it takes twice as long, up to this.
const QUIET_MOST: Duration = Duration::from_secs(60 * 60);

/// When a newly opened stream is believed to report everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// As soon as it is open.
    Open,
    /// Once it has lasted: the one before broke right after its opening.
    Steady,
    /// Once an event came, or none was missed until then: the one before was open and silent.
    Silent {
        /// Not before this time without an event.
        until: Instant,
    },
}

/// The one who follows, between two events.
pub(super) struct Following {
    view: Arc<EngineView>,
    stream: Option<EngineStream<EngineEvent>>,
    network_changed: watch::Receiver<()>,
    opened_at: Instant,
    trust: Trust,
    delay: Duration,
    /// How long the next silent stream has to be without a contradiction.
    quiet: Duration,
    /// Not before this time is a stream opened again that broke right after its opening.
    reopen_at: Option<Instant>,
    /// It was reported that events may be missing, and not yet that they arrive again.
    lost: bool,
    /// An event that is to be reported next.
    next_key: Option<Uid>,
    /// When to try an engine again that a call has found unavailable.
    retry_at: Option<Instant>,
    /// The next question whether the engine answers.
    heartbeat: BoxFuture<'static, Result<(), EngineError>>,
}

/// Asks after a while.
fn heartbeat(engine: &Arc<dyn Containers>) -> BoxFuture<'static, Result<(), EngineError>> {
    let engine = Arc::clone(engine);
    async move {
        tokio::time::sleep(HEARTBEAT).await;
        engine.ping().await
    }
    .boxed()
}

/// Waits until then; without a time, for ever.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

impl Following {
    pub(super) fn new(view: Arc<EngineView>) -> Self {
        Self {
            heartbeat: heartbeat(&view.compute.containers),
            network_changed: view.network_changed.subscribe(),
            view,
            stream: None,
            opened_at: Instant::now(),
            trust: Trust::Open,
            delay: RECONNECT_FIRST,
            quiet: QUIET_FIRST,
            reopen_at: None,
            lost: false,
            next_key: None,
            retry_at: None,
        }
    }

    /// The next event; never ends.
    pub(super) async fn next(&mut self) -> WorldEvent<Uid> {
        if let Some(key) = self.next_key.take() {
            return WorldEvent::Key(key);
        }
        loop {
            let news = if self.stream.is_some() {
                self.listen().await
            } else {
                if let Some(time) = self.reopen_at.take() {
                    tokio::time::sleep_until(time).await;
                }
                self.open().await
            };
            if let Some(news) = news {
                return news;
            }
        }
    }

    /// Waits for what the open stream says, or for what must be done beside it.
    async fn listen(&mut self) -> Option<WorldEvent<Uid>> {
        let retry_at = self.retry_at;
        let silent_at = self.view.monitor().silent_at();
        let believed_at = self.believed_at(silent_at);
        let stream = self.stream.as_mut()?;
        tokio::select! {
            // First, because reading is what opens the stream.
            biased;
            event = stream.next() => self.received(event),
            answer = &mut self.heartbeat => {
                self.heartbeat = heartbeat(&self.view.compute.containers);
                let known = self.view.connection() != Connection::Up;
                self.view.note_error(&answer.err()?);
                // Everybody says so.
                let lost = self.view.connection() != Connection::Up;
                (lost && !known).then_some(WorldEvent::Lost)
            }
            () = at(retry_at) => {
                self.retry().await;
                // A stream that is not believed stays so, whatever a call says.
                let again = if self.lost { WorldEvent::Lost } else { WorldEvent::Reconnected };
                self.retry_at.is_none().then_some(again)
            }
            // The stream may live on although a call has found nobody.
            () = self.view.trouble.notified(), if retry_at.is_none() => {
                self.retry_at = Some(Instant::now() + self.delay);
                None
            }
            // Whoever waits for the network can go on.
            Ok(()) = self.network_changed.changed() => Some(WorldEvent::Shared),
            () = at(believed_at) => Some(self.restored()),
            () = at(silent_at) => {
                self.leave();
                self.trust = Trust::Silent { until: Instant::now() + self.quiet };
                self.quiet = (self.quiet * 2).min(QUIET_MOST);
                self.lose("a change was observed that the event stream did not report")
            }
            // A listing has shown something: how long to wait for its event?
            () = self.view.doubt.notified() => None,
        }
    }

    /// When the open stream is believed without an event.
    fn believed_at(&self, silent_at: Option<Instant>) -> Option<Instant> {
        match self.trust {
            Trust::Steady if self.lost => Some(self.opened_at + STEADY),
            // What is owed comes, or the stream is silent.
            Trust::Silent { until } if silent_at.is_none() => {
                Some(until.max(self.opened_at + STEADY))
            }
            Trust::Open | Trust::Steady | Trust::Silent { .. } => None,
        }
    }

    fn received(
        &mut self,
        event: Option<Result<EngineEvent, EngineError>>,
    ) -> Option<WorldEvent<Uid>> {
        let lasted = self.opened_at.elapsed() >= STEADY;
        let (why, ended) = match event {
            Some(Ok(event)) => {
                let uid = Uid::from(event.uid);
                self.view.monitor().received(&uid);
                self.quiet = QUIET_FIRST;
                self.view.mark_stale(&uid);
                if !self.lost {
                    return Some(WorldEvent::Key(uid));
                }
                self.next_key = Some(uid);
                return Some(self.restored());
            }
            Some(Err(error)) => (format!("the event stream broke: {}", chain(&error)), false),
            None => ("the event stream ended".to_owned(), true),
        };
        self.leave();
        // One that was silent before is still not believed just because it lasts.
        if !lasted && !matches!(self.trust, Trust::Silent { .. }) {
            self.trust = Trust::Steady;
        }
        if !lasted {
            self.reopen_at = Some(self.later());
        }
        // The end of a stream's age is no loss, as long as the next one opens.
        if ended && lasted {
            None
        } else {
            self.lose(&why)
        }
    }

    /// Opens a stream and lists everything. Says nothing when that changes nothing.
    async fn open(&mut self) -> Option<WorldEvent<Uid>> {
        let began = Instant::now();
        match self.connect().await {
            Ok(()) if self.trust == Trust::Open => Some(self.restored()),
            Ok(()) => None,
            Err(error) => {
                let why = chain(&error);
                self.view
                    .set_connection(Connection::Unavailable(why.clone()));
                self.trust = Trust::Open;
                let news = self.lose(&why);
                // One that was waited for is asked again at once: so its return is noticed at once.
                if news.is_none() && began.elapsed() < PING_LIMIT {
                    tokio::time::sleep(RECONNECT_FIRST).await;
                    let until = self.later();
                    let hurry = self.view.hurry.notified();
                    let _ = tokio::time::timeout_at(until - RECONNECT_FIRST, hurry).await;
                }
                news
            }
        }
    }

    fn leave(&mut self) {
        self.stream = None;
        self.view.monitor().closed();
    }

    /// From now on events may be missing. `None` when that was reported before.
    fn lose(&mut self, why: &str) -> Option<WorldEvent<Uid>> {
        if std::mem::replace(&mut self.lost, true) {
            return None;
        }
        self.view.set_lost(why);
        Some(WorldEvent::Lost)
    }

    /// From now on no event is missing.
    fn restored(&mut self) -> WorldEvent<Uid> {
        self.trust = Trust::Open;
        self.delay = RECONNECT_FIRST;
        if std::mem::take(&mut self.lost) {
            self.view.set_restored();
        }
        WorldEvent::Reconnected
    }

    /// The end of the present delay; the next one is longer.
    fn later(&mut self) -> Instant {
        let until = Instant::now() + self.delay;
        self.delay = (self.delay * 2).min(RECONNECT_MOST);
        until
    }

    /// Tries an engine again that a call has found unavailable, and sets the time of the next try if it
    /// still is.
    async fn retry(&mut self) {
        let began = Instant::now();
        let up = self.view.connection() == Connection::Up;
        if up
            || (self.view.compute.containers.ping().await.is_ok()
                && self.view.refresh().await.is_ok())
        {
            self.delay = RECONNECT_FIRST;
            self.retry_at = None;
        } else if began.elapsed() < PING_LIMIT {
            self.delay = (self.delay * 2).min(RECONNECT_MOST);
            self.retry_at = Some(Instant::now() + self.delay);
        } else {
            self.retry_at = Some(Instant::now());
        }
        self.heartbeat = heartbeat(&self.view.compute.containers);
    }

    /// Subscribes first and lists afterwards, so that nothing falls between.
    async fn connect(&mut self) -> Result<(), EngineError> {
        self.view.compute.containers.ping().await?;
        let stream = self
            .view
            .compute
            .containers
            .events(&self.view.owner)
            .await?;
        self.view.monitor().opened();
        if let Err(error) = self.view.refresh().await {
            self.view.monitor().closed();
            return Err(error);
        }
        self.stream = Some(stream);
        self.opened_at = Instant::now();
        self.retry_at = None;
        Ok(())
    }
}
