//! The log of one pull: written where the pull runs, read by each viewer at its own pace.
//!
//! Events are numbered from 1. Of each layer only the newest event is kept, so a log is bounded, and
//! whoever comes late reads the past in short. A viewer that is too slow misses events that newer ones
//! have replaced, never the end; the pull waits for nobody.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use uuid::Uuid;

use crate::ids::Timestamp;

/// Most events of one log; images have at most 127 layers.
const KEPT: usize = 600;

/// A report of an engine about a pull. Progress is read from the statuses below, of a layer or of a machine that pulls for itself;
/// any other says nothing of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PullEvent {
    /// One of the statuses below, or other words of the engine.
    pub status: String,
    /// The layer they are about; for `Pulling from …` the tag.
    pub id: Option<String>,
    /// How much of this step is done, mostly in bytes.
    pub current: Option<u64>,
    /// Of how much.
    pub total: Option<u64>,
}

impl PullEvent {
    /// It arrives.
    pub const DOWNLOADING: &str = "Downloading";
    /// It has arrived.
    pub const DOWNLOADED: &str = "Download complete";
    /// It is being unpacked.
    pub const EXTRACTING: &str = "Extracting";
    /// It is there.
    pub const COMPLETE: &str = "Pull complete";
    /// It was there before.
    pub const PRESENT: &str = "Already exists";
}

/// How far a pull is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PullSum {
    /// From 0 to 100.
    pub percent: u8,
    /// Bytes downloaded.
    pub bytes: u64,
    /// Of how many, as far as is known.
    pub bytes_total: u64,
    /// Machines that have the image, where each pulls for itself.
    pub nodes: u64,
    /// Of how many; 0 where only one engine pulls.
    pub nodes_total: u64,
}

/// A pull that waits or runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningPull {
    /// The full reference.
    pub reference: String,
    /// How far it is.
    pub sum: PullSum,
    /// When it was requested.
    pub started_at: Timestamp,
    /// How many viewers it has.
    pub viewers: usize,
}

/// One event of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullUpdate {
    /// It goes on.
    Progress {
        /// What the engine reported.
        event: PullEvent,
        /// How far the whole pull is.
        sum: PullSum,
    },
    /// It succeeded.
    Done {
        /// The image (`sha256:…`).
        image_id: String,
        /// Its repository digest (`name@sha256:…`), if it has one.
        digest: Option<String>,
    },
    /// It failed, or was cancelled.
    Failed {
        /// Why, in the registry's or engine's words.
        message: String,
    },
}

impl PullUpdate {
    /// Whether nothing follows it.
    pub fn is_last(&self) -> bool {
        match self {
            Self::Done { .. } | Self::Failed { .. } => true,
            Self::Progress { .. } => false,
        }
    }

    /// What it is about: a newer event replaces an older one about the same.
    fn about(&self) -> Option<&str> {
        match self {
            Self::Progress { event, .. } => Some(event.id.as_deref().unwrap_or_default()),
            Self::Done { .. } | Self::Failed { .. } => None,
        }
    }
}

/// The log of one pull.
#[derive(Debug)]
pub struct PullLog {
    id: String,
    events: Mutex<Events>,
    /// Changes with each event.
    news: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Events {
    kept: VecDeque<(u64, PullUpdate)>,
    newest: u64,
    sum: PullSum,
    ended: bool,
}

impl Events {
    fn add(&mut self, update: PullUpdate) {
        let about = update.about();
        let same = |(_, older): &(u64, PullUpdate)| older.about() == about;
        if let Some(at) = self.kept.iter().position(same) {
            self.kept.remove(at);
        } else if self.kept.len() >= KEPT {
            self.kept.pop_front();
        }
        self.newest += 1;
        self.kept.push_back((self.newest, update));
    }
}

impl Default for PullLog {
    fn default() -> Self {
        let mut id = Uuid::new_v4().simple().to_string();
        id.truncate(12);
        Self {
            id,
            events: Mutex::default(),
            news: watch::Sender::new(()),
        }
    }
}

impl PullLog {
    fn events(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Distinguishes its events from those of other logs.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Adds what the engine reported, and how far the whole pull is by now. Nothing follows the end.
    pub fn push(&self, event: PullEvent, sum: PullSum) {
        let mut events = self.events();
        if events.ended {
            return;
        }
        let percent = sum.percent.clamp(events.sum.percent, 99);
        let sum = PullSum { percent, ..sum };
        events.sum = sum;
        events.add(PullUpdate::Progress { event, sum });
        drop(events);
        self.news.send_replace(());
    }

    /// Adds the end, unless there is one. Success is 100 %.
    pub fn end(&self, last: PullUpdate) {
        let mut events = self.events();
        if events.ended {
            return;
        }
        if matches!(last, PullUpdate::Done { .. }) {
            let event = PullEvent {
                status: PullEvent::COMPLETE.to_owned(),
                ..PullEvent::default()
            };
            let sum = PullSum {
                percent: 100,
                bytes: events.sum.bytes_total,
                ..events.sum
            };
            events.add(PullUpdate::Progress { event, sum });
        }
        events.add(last);
        events.ended = true;
        drop(events);
        self.news.send_replace(());
    }

    /// How far the pull is.
    pub fn sum(&self) -> PullSum {
        self.events().sum
    }

    /// How many read it.
    pub fn viewers(&self) -> usize {
        self.news.receiver_count()
    }

    /// One more viewer, who has had the events up to number `had`.
    pub fn read(self: &Arc<Self>, had: u64) -> PullReader {
        PullReader {
            had: had.min(self.events().newest),
            news: self.news.subscribe(),
            log: Arc::clone(self),
        }
    }
}

/// A viewer of a log.
#[derive(Debug)]
pub struct PullReader {
    log: Arc<PullLog>,
    news: watch::Receiver<()>,
    had: u64,
}

impl PullReader {
    /// The log that it reads.
    pub fn log(&self) -> &PullLog {
        &self.log
    }

    /// The next event with its number; `None` after the end. What is read late says how far the pull is
    /// by now, so the percentage never falls.
    pub async fn next(&mut self) -> Option<(u64, PullUpdate)> {
        loop {
            self.news.borrow_and_update();
            {
                let events = self.log.events();
                let at = events.kept.partition_point(|(n, _)| *n <= self.had);
                if let Some((n, update)) = events.kept.get(at) {
                    self.had = *n;
                    let mut update = update.clone();
                    if let PullUpdate::Progress { sum, .. } = &mut update
                        && sum.percent < events.sum.percent
                    {
                        *sum = events.sum;
                    }
                    return Some((*n, update));
                }
                if events.ended {
                    return None;
                }
            }
            self.news.changed().await.ok()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(layer: &str, status: &str) -> PullEvent {
        PullEvent {
            status: status.to_owned(),
            id: Some(layer.to_owned()),
            ..PullEvent::default()
        }
    }

    fn percent(percent: u8) -> PullSum {
        PullSum {
            percent,
            ..PullSum::default()
        }
    }

    fn failed() -> PullUpdate {
        PullUpdate::Failed {
            message: "no such tag".to_owned(),
        }
    }

    /// Number, layer or end, and percentage of each event.
    async fn all(log: &Arc<PullLog>, had: u64) -> Vec<(u64, String, u8)> {
        let mut reader = log.read(had);
        let mut all = Vec::new();
        while let Some((n, update)) = reader.next().await {
            all.push(match update {
                PullUpdate::Progress { event, sum } => {
                    (n, event.id.unwrap_or(event.status), sum.percent)
                }
                last => (n, format!("{last:?}"), 0),
            });
        }
        all
    }

    #[tokio::test]
    async fn every_viewer_reads_everything_at_its_own_pace() {
        let log = Arc::new(PullLog::default());
        log.push(event("a", "Downloading"), percent(10));
        let mut viewer = log.read(0);
        assert_eq!(viewer.next().await.unwrap().0, 1);
        // The viewer waits first.
        let (next, ()) = tokio::join!(viewer.next(), async {
            log.push(event("b", "Downloading"), percent(5));
        });
        assert_eq!(next.unwrap().0, 2);
        log.end(failed());
        log.end(failed());
        log.push(event("c", "Downloading"), percent(50));
        let end = format!("{:?}", failed());
        let (a, b) = ((1, "a".to_owned(), 10), (2, "b".to_owned(), 10));
        let last = (3, end, 0);
        assert_eq!(all(&log, 0).await, [a, b.clone(), last.clone()]);
        assert_eq!(all(&log, 1).await, [b, last]);
        assert_eq!(all(&log, 3).await, []);
        assert_eq!(all(&log, 1_000_000).await, []);
    }

    #[tokio::test]
    async fn the_past_is_the_newest_of_each_layer_and_says_how_far_it_is_now() {
        let log = Arc::new(PullLog::default());
        for (layer, percent_now) in [("latest", 0), ("a", 0), ("b", 10), ("a", 20)] {
            log.push(event(layer, "x"), percent(percent_now));
        }
        log.end(PullUpdate::Done {
            image_id: "i".to_owned(),
            digest: None,
        });
        let read: Vec<_> = all(&log, 0).await;
        let short: Vec<_> = read.iter().map(|(n, what, p)| (*n, &**what, *p)).collect();
        assert_eq!(
            short[..4],
            [
                (1, "latest", 20),
                (3, "b", 20),
                (4, "a", 20),
                (5, "Pull complete", 100)
            ]
        );
        assert_eq!(short.len(), 5);
    }

    #[tokio::test]
    async fn l37_a_log_is_bounded_and_keeps_its_end() {
        let log = Arc::new(PullLog::default());
        for n in 0..10_000_u32 {
            log.push(event(&format!("layer{}", n % 2_000), "x"), percent(1));
        }
        log.end(failed());
        let read = all(&log, 3).await;
        assert_eq!(read.len(), KEPT);
        assert_eq!(read.last().unwrap().0, 10_001);
    }

    #[test]
    fn viewers_are_counted_while_they_read() {
        let log = Arc::new(PullLog::default());
        assert_eq!(log.viewers(), 0);
        let viewers = [log.read(0), log.read(0)];
        assert_eq!(log.viewers(), 2);
        drop(viewers);
        assert_eq!(log.viewers(), 0);
    }
}
