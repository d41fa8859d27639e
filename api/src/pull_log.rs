//! What viewers are told of pulls: one numbered log for each pull somebody looks at.
//!
//! One task writes a log, whoever wants reads it, each at its own pace. A viewer that comes back goes
//! on after the last event it had; one that is too slow misses the oldest, never the end.

use std::collections::VecDeque;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{Stream, stream};
use moka::ops::compute::Op;
use moka::sync::Cache;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::sleep;
use uuid::Uuid;

use crate::error::ApiError;
use crate::reply::Event;

/// Most events of one log.
const KEPT: usize = 500;
/// Most logs.
const LOGS: u64 = 64;
/// How long a log stays that nobody asks for.
const IDLE: Duration = Duration::from_secs(120);
/// How often the writer of a log asks whether anybody still reads it.
const RECHECK: Duration = Duration::from_secs(60);

/// The logs of this process, by the image and the request they are about. Clones share them.
#[derive(Debug, Clone)]
pub struct PullLogs {
    known: Cache<String, Arc<PullLog>>,
    recheck: Duration,
}

impl Default for PullLogs {
    fn default() -> Self {
        Self::new(IDLE, RECHECK)
    }
}

fn key(reference: &str, request: &str) -> String {
    format!("{reference} {request}")
}

impl PullLogs {
    /// `recheck` is the shorter one: with each, a log that is read is kept for `idle` more.
    fn new(idle: Duration, recheck: Duration) -> Self {
        let cache = Cache::builder().max_capacity(LOGS).time_to_idle(idle);
        Self {
            known: cache.build(),
            recheck,
        }
    }

    /// The log of a request. `begin` starts its writer, when there is none yet.
    pub(crate) fn of(
        &self,
        reference: &str,
        request: &str,
        begin: impl FnOnce(Arc<PullLog>),
    ) -> Arc<PullLog> {
        self.known.get_with(key(reference, request), || {
            let log = Arc::new(PullLog::new(request));
            begin(log.clone());
            log
        })
    }

    /// The log of a request, if there is one.
    pub(crate) fn find(&self, reference: &str, request: &str) -> Option<Arc<PullLog>> {
        self.known.get(&key(reference, request))
    }

    /// How many look on at pulls of an image. Writers of logs do not count.
    pub(crate) fn viewers(&self, reference: &str) -> usize {
        let logs = self.known.iter();
        let of_image = logs.filter(|(key, _)| key.split(' ').next() == Some(reference));
        of_image.map(|(_, log)| log.news.receiver_count()).sum()
    }

    /// Drops a log that has not come to its end: whoever comes next begins a new one.
    pub(crate) fn forget(&self, reference: &str, log: &Arc<PullLog>) {
        let key = key(reference, &log.request);
        self.known.entry(key).and_compute_with(|known| match known {
            Some(known) if Arc::ptr_eq(known.value(), log) => Op::Remove,
            // Another one took its place.
            Some(_) | None => Op::Nop,
        });
    }

    /// Waits until nobody has been reading a log for a while, and keeps it known until then.
    pub(crate) async fn abandoned(&self, reference: &str, log: &PullLog) {
        loop {
            sleep(self.recheck).await;
            if log.news.receiver_count() == 0 {
                return;
            }
            // To be looked for is what keeps it.
            self.find(reference, &log.request);
        }
    }
}

/// The id of an event, as a viewer that comes back says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LastEvent {
    request: String,
    log: String,
    n: u64,
}

impl LastEvent {
    /// The request whose pull was looked on at.
    pub(crate) fn request(&self) -> &str {
        &self.request
    }
}

impl FromStr for LastEvent {
    type Err = ApiError;

    fn from_str(text: &str) -> Result<Self, ApiError> {
        let parse = || {
            // A request may hold dashes itself.
            let (rest, n) = text.rsplit_once('-')?;
            let (request, log) = rest.rsplit_once('-')?;
            let (request, log) = (request.to_owned(), log.to_owned());
            let n = n.parse().ok()?;
            Some(Self { request, log, n })
        };
        parse().ok_or_else(|| {
            let rule = "Last-Event-ID is an id as this server has sent it";
            ApiError::invalid("last_event_id", rule)
        })
    }
}

/// The log of one pull.
#[derive(Debug)]
pub(crate) struct PullLog {
    /// What it is about.
    request: String,
    /// Tells its events from those of other logs of the same request.
    id: String,
    told: Mutex<Told>,
    /// Changes with each event.
    news: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Told {
    /// The newest events' payloads.
    events: VecDeque<String>,
    /// How many there were before them.
    dropped: u64,
    /// Nothing more comes.
    closed: bool,
}

impl PullLog {
    pub(crate) fn new(request: &str) -> Self {
        let mut id = Uuid::new_v4().simple().to_string();
        id.truncate(12);
        Self {
            request: request.to_owned(),
            id,
            told: Mutex::default(),
            news: watch::Sender::new(()),
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event.
    pub(crate) fn push(&self, said: &impl Serialize) {
        let data = match Event::json(said) {
            Ok(event) => event.data,
            Err(error) => return error.log(),
        };
        let mut told = self.told();
        if told.events.len() >= KEPT {
            told.events.pop_front();
            told.dropped += 1;
        }
        told.events.push_back(data);
        drop(told);
        self.news.send_replace(());
    }

    /// Nothing more comes.
    pub(crate) fn close(&self) {
        self.told().closed = true;
        self.news.send_replace(());
    }

    /// How many of this log's events a viewer has had.
    pub(crate) fn position(&self, last: &LastEvent) -> u64 {
        if last.log == self.id { last.n } else { 0 }
    }

    /// Every event after the first `had`, as far as they are kept, to the end.
    pub(crate) fn events(self: Arc<Self>, had: u64) -> impl Stream<Item = Event> + Send {
        let news = self.news.subscribe();
        stream::unfold((self, news, had), |(log, mut news, had)| async move {
            loop {
                news.borrow_and_update();
                match log.look(had) {
                    Look::Event(n, event) => return Some((event, (log, news, n))),
                    Look::End => return None,
                    Look::Wait => news.changed().await.ok()?,
                }
            }
        })
    }

    /// The event after the first `had`, or the oldest that is kept, with its number.
    fn look(&self, had: u64) -> Look {
        let told = self.told();
        let at = had.saturating_sub(told.dropped);
        let data = usize::try_from(at).ok().and_then(|at| told.events.get(at));
        let Some(data) = data.cloned() else {
            return if told.closed { Look::End } else { Look::Wait };
        };
        let n = told.dropped + at + 1;
        let id = Some(format!("{}-{}-{n}", self.request, self.id));
        let name = None;
        Look::Event(n, Event { name, id, data })
    }
}

/// What a log has for a viewer.
enum Look {
    /// An event, with its number.
    Event(u64, Event),
    /// Nothing yet.
    Wait,
    /// Nothing any more.
    End,
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;

    async fn all(log: &Arc<PullLog>, had: u64) -> Vec<String> {
        let events = log.clone().events(had);
        events.map(|event| event.data).collect().await
    }

    #[tokio::test]
    async fn every_viewer_hears_everything_at_its_own_pace() {
        let logs = PullLogs::default();
        let log = logs.of("image", "re-quest", |_| ());
        let again = logs.of("image", "re-quest", |_| panic!("it has begun"));
        log.push(&1);
        let mut viewer = Box::pin(again.clone().events(0));
        let first = viewer.next().await.unwrap();
        assert_eq!(first.data, "1");
        log.push(&2);
        log.close();
        assert_eq!(viewer.next().await.unwrap().data, "2");
        assert_eq!(viewer.next().await, None);
        assert_eq!(all(&again, 0).await, ["1", "2"]);
        let last: LastEvent = first.id.unwrap().parse().unwrap();
        assert_eq!(last.request(), "re-quest");
        let had = log.position(&last);
        assert_eq!(all(&log, had).await, ["2"], "it goes on where it was");
        logs.forget("image", &log);
        let other = logs.of("image", "re-quest", |log| log.close());
        assert_eq!(other.position(&last), 0, "another log");
        logs.forget("image", &log);
        let kept = logs.find("image", "re-quest").unwrap();
        assert!(Arc::ptr_eq(&kept, &other), "it forgets none but itself");
        for bad in ["", "x", "a-", "a-b", "a-1", "a-b-", "a-b--c"] {
            assert!(bad.parse::<LastEvent>().is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_log_is_bounded_and_keeps_its_end() {
        let log = Arc::new(PullLog::new("request"));
        for n in 0..KEPT + 10 {
            log.push(&n);
        }
        log.close();
        let told = all(&log, 3).await;
        assert_eq!(told.len(), KEPT);
        assert_eq!((&*told[0], &*told[KEPT - 1]), ("10", "509"));
        assert_eq!(all(&log, 1_000_000).await, [""; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_without_viewers_is_abandoned() {
        let (logs, log) = (PullLogs::default(), Arc::new(PullLog::new("request")));
        let viewer = log.clone().events(0);
        let long = RECHECK * 5;
        let waited = tokio::time::timeout(long, logs.abandoned("image", &log)).await;
        assert!(waited.is_err(), "somebody is there");
        drop(viewer);
        logs.abandoned("image", &log).await;
    }

    #[tokio::test]
    async fn viewers_are_counted_by_image_and_the_writer_is_none_of_them() {
        let logs = PullLogs::default();
        let log = logs.of("a:1", "first", |_| ());
        let _others = logs.of("a:10", "other", |_| ()).events(0);
        assert_eq!(logs.viewers("a:1"), 0);
        let viewers = [log.clone().events(0), log.clone().events(0)];
        let _newer = logs.of("a:1", "second", |_| ()).events(0);
        assert_eq!(logs.viewers("a:1"), 3);
        drop(viewers);
        assert_eq!(logs.viewers("a:1"), 1);
    }

    #[tokio::test]
    async fn a_log_that_is_read_stays_known_however_long_it_takes() {
        let (idle, recheck) = (Duration::from_millis(400), Duration::from_millis(20));
        let logs = PullLogs::new(idle, recheck);
        let log = logs.of("image", "read", |_| ());
        logs.of("image", "unread", |_| ());
        let _viewer = log.clone().events(0);
        let waited = tokio::time::timeout(idle * 3, logs.abandoned("image", &log)).await;
        assert!(waited.is_err(), "somebody is there");
        let known = logs.find("image", "read").unwrap();
        assert!(Arc::ptr_eq(&known, &log));
        assert!(logs.find("image", "unread").is_none());
    }
}
