//! What viewers of a pull are told.
//!
//! Each viewer first gets the past in short, then what happens, then one last word. A viewer that
//! reads too slowly misses some of it and gets the newest state instead, so that its memory is
//! bounded; the pull waits for nobody.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::progress::{Progress, Sum};
use crate::drivers::docker::PullEvent;

/// Events that a viewer may be behind.
const BEHIND: usize = 64;

/// One thing told of a pull.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// It goes on.
    Progress {
        /// What the engine told.
        event: PullEvent,
        /// How far the whole pull is.
        sum: Sum,
    },
    /// It succeeded.
    Done {
        /// The image (`sha256:…`).
        image_id: String,
        /// Its repository digest (`name@sha256:…`), if it has one.
        digest: Option<String>,
    },
    /// It failed, or was called off.
    Failed {
        /// Why, in the registry's or engine's words.
        message: String,
    },
}

impl Update {
    /// Whether nothing follows it.
    pub fn is_last(&self) -> bool {
        match self {
            Self::Done { .. } | Self::Failed { .. } => true,
            Self::Progress { .. } => false,
        }
    }
}

#[derive(Debug, Default)]
struct State {
    progress: Progress,
    end: Option<Update>,
}

/// The news of one pull.
#[derive(Debug)]
pub(super) struct Feed {
    state: Mutex<State>,
    live: broadcast::Sender<Update>,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            live: broadcast::Sender::new(BEHIND),
        }
    }
}

impl Feed {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all viewers what the engine told.
    pub(super) fn tell(&self, event: PullEvent) {
        let mut state = self.state();
        if state.end.is_some() {
            return;
        }
        state.progress.take(event.clone());
        let sum = state.progress.sum();
        // Without a viewer nobody is told. Sent under the lock, so that nobody who joins misses it
        // or gets it twice.
        let _ = self.live.send(Update::Progress { event, sum });
    }

    /// The last word, unless one was said before. Success is 100 %.
    pub(super) fn end(&self, update: Update) {
        let mut state = self.state();
        if state.end.is_some() {
            return;
        }
        if matches!(update, Update::Done { .. }) {
            let event = PullEvent {
                status: "Pull complete".to_owned(),
                ..PullEvent::default()
            };
            let sum = state.progress.sum();
            let sum = Sum {
                percent: 100,
                bytes: sum.bytes_total,
                ..sum
            };
            let _ = self.live.send(Update::Progress { event, sum });
        }
        state.end = Some(update.clone());
        state.progress = Progress::default();
        let _ = self.live.send(update);
    }

    /// How far the pull is.
    pub(super) fn sum(&self) -> Sum {
        self.state().progress.sum()
    }

    /// The digest that the registry gave.
    pub(super) fn digest(&self) -> Option<String> {
        self.state().progress.digest().map(str::to_owned)
    }

    /// How many watch.
    pub(super) fn viewers(&self) -> usize {
        self.live.receiver_count()
    }

    /// The past in short, and what follows; nothing follows the last word.
    fn join(&self) -> (VecDeque<Update>, Option<broadcast::Receiver<Update>>) {
        let state = self.state();
        if let Some(end) = &state.end {
            return (VecDeque::from([end.clone()]), None);
        }
        let sum = state.progress.sum();
        let past = state.progress.history().map(|event| Update::Progress {
            event: event.clone(),
            sum,
        });
        (past.collect(), Some(self.live.subscribe()))
    }

    /// What one more viewer sees.
    pub(super) fn watch(self: Arc<Self>) -> BoxStream<'static, Update> {
        let (past, live) = self.join();
        let viewer = Viewer {
            feed: self,
            past,
            live,
        };
        futures::stream::unfold(viewer, |mut viewer| async move {
            let update = viewer.next().await?;
            Some((update, viewer))
        })
        .boxed()
    }
}

struct Viewer {
    feed: Arc<Feed>,
    past: VecDeque<Update>,
    live: Option<broadcast::Receiver<Update>>,
}

impl Viewer {
    async fn next(&mut self) -> Option<Update> {
        loop {
            if let Some(update) = self.past.pop_front() {
                return Some(update);
            }
            match self.live.as_mut()?.recv().await {
                Ok(update) => {
                    if update.is_last() {
                        self.live = None;
                    }
                    return Some(update);
                }
                Err(RecvError::Lagged(_)) => (self.past, self.live) = self.feed.join(),
                // The feed outlives its viewers, and says a last word.
                Err(RecvError::Closed) => self.live = None,
            }
        }
    }
}
