//! Reports changes to watchers: one read of the database for all of them.
//!
//! While somebody watches, one task reads what has changed since its last look, writes each change
//! down once, and hands it to all watchers, who share the bytes. It looks when a commit of this
//! process says so, and every second for those of other replicas. Nothing is kept for a watcher but
//! the newest [`Bounds::backlog`] batches, which all of them share: one that falls behind further is dropped,
//! comes back with the last position it has seen, and reads the present state of everything that
//! changed meanwhile from the database.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use schema::change::{self, Change, Filter, News, Position};
use schema::ids::Uid;
use schema::reader::Reader;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::error::{ApiError, Result, chain};
use crate::limits::{KeyedCounter, OWN_WATCHERS, Place, WATCH_BATCHES, WATCHERS};
use crate::reply::Event;

/// When whoever was turned away may try again.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// Other replicas' commits ring no bell here: look this often all the same.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a newcomer waits for the first look.
const JOIN: Duration = Duration::from_secs(5);

/// What watching may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Most watchers at once.
    pub watchers: usize,
    /// Most watchers at once of own objects, beside those.
    pub own_watchers: usize,
    /// Most of these that one account has.
    pub own_per_account: usize,
    /// Most changes of one batch, and of one read of a watcher that comes back.
    pub page: u16,
    /// Most batches that a watcher may be behind.
    pub backlog: usize,
    /// However much changes, read no more often than this: what changes twice meanwhile is reported once.
    pub gap: Duration,
    /// How often an idle stream says that it is there, and how far it is.
    pub keep_alive: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            watchers: 2000,
            own_watchers: 2000,
            own_per_account: 8,
            page: 256,
            backlog: WATCH_BATCHES.all(),
            gap: Duration::from_millis(100),
            keep_alive: Duration::from_secs(15),
        }
    }
}

/// What was seen in one look. Never empty.
pub(crate) type Batch = Arc<[Report]>;

/// A change as it is reported, ready to be sent.
#[derive(Debug)]
pub(crate) struct Report {
    /// The position of whoever has received this.
    pub(crate) at: Position,
    /// What changed; `None`: nobody knows, everything must be listed again.
    change: Option<Change>,
    /// The event as it is sent.
    pub(crate) frame: Bytes,
}

impl Report {
    /// The news of one look, ready to be sent.
    pub(crate) fn all(at: &Position, news: News) -> Result<(Vec<Self>, Position, bool)> {
        match news {
            News::Resync(present) => {
                let reports = Self {
                    at: present.clone(),
                    change: None,
                    frame: position_event("resync", &present)?.to_frame(),
                };
                Ok((vec![reports], present, false))
            }
            News::Changes {
                changes,
                through,
                more,
            } => {
                let reports = changes
                    .into_iter()
                    .map(|change| Self::change(at.at(change.version), change));
                Ok((reports.collect::<Result<_, _>>()?, at.at(through), more))
            }
        }
    }

    fn change(at: Position, change: Change) -> Result<Self> {
        let event = Event {
            id: Some(at.to_string()),
            ..Event::json(&change)?
        };
        Ok(Self {
            at,
            change: Some(change),
            frame: event.to_frame(),
        })
    }

    /// Whether everything must be listed again.
    pub(crate) fn is_resync(&self) -> bool {
        self.change.is_none()
    }

    /// Whose object has changed.
    pub(crate) fn uid(&self) -> Option<&Uid> {
        self.change.as_ref().map(|change| &change.uid)
    }

    /// Whether it concerns somebody who watches these objects.
    pub(crate) fn concerns(&self, filter: &Filter) -> bool {
        self.change
            .as_ref()
            .is_none_or(|change| filter.takes(change))
    }
}

/// An event that has a position: `open` or `resync`.
pub(crate) fn position_event(name: &str, at: &Position) -> Result<Event> {
    Ok(Event {
        name: Some(name.to_owned()),
        id: Some(at.to_string()),
        ..Event::json(&serde_json::json!({ "watch_id": at }))?
    })
}

/// Who watches, and from where on changes are reported.
#[derive(Debug, Default)]
struct State {
    watchers: usize,
    /// Everything after this is reported. `None` until the first read after nobody watched.
    from: Option<Position>,
}

#[derive(Debug)]
struct Inner {
    bounds: Bounds,
    permits: Arc<Semaphore>,
    own_permits: Arc<Semaphore>,
    own_of_accounts: KeyedCounter<Uid>,
    state: watch::Sender<State>,
    batches: broadcast::Sender<Batch>,
    looks: AtomicU64,
    dropped: AtomicU64,
}

/// Where changes are reported to watchers. Clones share it.
#[derive(Debug, Clone)]
pub struct WatchHub(Arc<Inner>);

impl Default for WatchHub {
    fn default() -> Self {
        Self::new(Bounds::default())
    }
}

/// Numbers of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Who watches now.
    pub watchers: usize,
    /// How often the database was asked for all of them.
    pub looks: u64,
    /// How many were dropped because they fell behind.
    pub dropped: u64,
}

impl WatchHub {
    /// A hub that keeps to these bounds.
    pub fn new(bounds: Bounds) -> Self {
        Self(Arc::new(Inner {
            bounds,
            permits: WATCHERS.semaphore_of(bounds.watchers),
            own_permits: OWN_WATCHERS.semaphore_of(bounds.own_watchers),
            own_of_accounts: KeyedCounter::with_most(&OWN_WATCHERS, bounds.own_per_account),
            state: watch::Sender::default(),
            batches: WATCH_BATCHES.broadcast_of(bounds.backlog),
            looks: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }))
    }

    /// What watching may cost.
    pub fn bounds(&self) -> Bounds {
        self.0.bounds
    }

    /// Reports changes to watchers, until `shutdown`.
    pub async fn run(self, db: Reader, shutdown: CancellationToken) {
        let _ = shutdown.run_until_cancelled(self.serve(&db)).await;
    }

    /// Numbers of this process.
    pub fn numbers(&self) -> Numbers {
        Numbers {
            watchers: self.0.state.borrow().watchers,
            looks: self.0.looks.load(Ordering::Relaxed),
            dropped: self.0.dropped.load(Ordering::Relaxed),
        }
    }

    /// Begins to watch: everything that happens after the return is reported.
    ///
    /// # Errors
    /// 503 with `Retry-After` when [`Bounds::watchers`] watch already, or when the database cannot be read.
    pub(crate) async fn join(&self) -> Result<Watching> {
        let bounds = self.0.bounds;
        self.join_by(&self.0.permits, bounds.watchers, None).await
    }

    /// The same for the objects of one account, which do not keep administrators from watching.
    ///
    /// # Errors
    /// As [`Self::join`]; 429 when the account has [`Bounds::own_per_account`] watchers.
    pub(crate) async fn join_own(&self, account: &Uid) -> Result<Watching> {
        let bounds = self.0.bounds;
        let most = bounds.own_per_account;
        let place = self.0.own_of_accounts.enter(account);
        let place = place.ok_or(ApiError::TooManyStreams {
            most,
            retry_after: RETRY_AFTER,
        })?;
        let own = &self.0.own_permits;
        self.join_by(own, bounds.own_watchers, Some(place)).await
    }

    async fn join_by(
        &self,
        permits: &Arc<Semaphore>,
        most: usize,
        place: Option<Place<Uid>>,
    ) -> Result<Watching> {
        let permit = Arc::clone(permits).try_acquire_owned();
        let permit = permit.map_err(|_| ApiError::TooManyWatchers {
            most,
            retry_after: RETRY_AFTER,
        })?;
        self.0.state.send_modify(|state| state.watchers += 1);
        let watching = Watching {
            // Before the state is read: what is sent from now on is received.
            batches: self.0.batches.subscribe(),
            hub: self.clone(),
            _permit: permit,
            _place: place,
        };
        let mut states = self.0.state.subscribe();
        let begun = timeout(JOIN, states.wait_for(|state| state.from.is_some())).await;
        match begun {
            Ok(Ok(_)) => Ok(watching),
            Ok(Err(_)) | Err(_) => Err(ApiError::Busy {
                retry_after: RETRY_AFTER,
            }),
        }
    }

    async fn serve(&self, db: &Reader) {
        let mut states = self.0.state.subscribe();
        let mut bell = db.changes();
        loop {
            if states.wait_for(|state| state.watchers > 0).await.is_err() {
                return;
            }
            bell.listen();
            let mut at = match newest(db).await {
                Ok(at) => at,
                Err(error) => {
                    unreadable(&error);
                    sleep(LOOK_EVERY).await;
                    continue;
                }
            };
            self.goes_on_from(&at);
            while !self.nobody_watches() {
                bell.listen();
                let gap = Instant::now() + self.0.bounds.gap;
                if let Err(error) = self.look(db, &mut at).await {
                    unreadable(&error);
                }
                // A bell without ringer is silent; the clock still ticks.
                if let Ok(Err(_)) = timeout(LOOK_EVERY, bell.rung()).await {
                    sleep(LOOK_EVERY).await;
                }
                sleep_until(gap).await;
            }
        }
    }

    /// Reports everything that has happened since `at`, page by page.
    async fn look(&self, db: &Reader, at: &mut Position) -> Result<()> {
        let page = self.0.bounds.page;
        loop {
            let mut connection = db.snapshot().await?;
            let news = change::after(&mut connection, at, &Filter::default(), page).await?;
            drop(connection);
            self.0.looks.fetch_add(1, Ordering::Relaxed);
            let (reports, through, more) = Report::all(at, news)?;
            *at = through;
            // Before it is sent: whoever joins in between finds it in the database.
            self.goes_on_from(at);
            if !reports.is_empty() {
                // Nobody receives it if the last watcher has just left.
                let _ = self.0.batches.send(reports.into());
            }
            if !more {
                return Ok(());
            }
        }
    }

    fn goes_on_from(&self, at: &Position) {
        self.0.state.send_if_modified(|state| {
            let moved = state.from.as_ref() != Some(at);
            state.from = Some(at.clone());
            moved
        });
    }

    /// Whether nobody is left; whoever comes then waits for the next first look.
    fn nobody_watches(&self) -> bool {
        self.0.state.send_if_modified(|state| {
            let nobody = state.watchers == 0;
            if nobody {
                state.from = None;
            }
            nobody
        })
    }
}

async fn newest(db: &Reader) -> Result<Position> {
    let mut connection = db.read().await?;
    Ok(change::position(&mut connection).await?)
}

/// What cannot be read now is read at the next look.
fn unreadable(error: &ApiError) {
    let error = chain(error);
    tracing::warn!(%error, "cannot see what has changed; looking again");
}

/// A watcher's place; given back when dropped.
#[derive(Debug)]
pub(crate) struct Watching {
    batches: broadcast::Receiver<Batch>,
    hub: WatchHub,
    _permit: OwnedSemaphorePermit,
    _place: Option<Place<Uid>>,
}

impl Watching {
    /// What was seen next; `None` when this watcher is too far behind to receive everything.
    pub(crate) async fn next(&mut self) -> Option<Batch> {
        match self.batches.recv().await {
            Ok(batch) => Some(batch),
            Err(broadcast::error::RecvError::Lagged(batches)) => {
                tracing::info!(batches, "a watcher fell behind and was dropped");
                self.hub.0.dropped.fetch_add(1, Ordering::Relaxed);
                None
            }
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.hub
            .0
            .state
            .send_modify(|state| state.watchers = state.watchers.saturating_sub(1));
    }
}
