//! Leadership: who may change the world.
//!
//! Every pass and every action asks [`Leadership::epoch`], which observes the clock, not only at the
//! last news: a process that was stopped for a minute finds its lease expired when it wakes up, before
//! it does anything. Two clocks are asked, because each has a blind spot: the monotonic one does not
//! count the time that a machine was suspended, the wall clock can be set back.
//!
//! Two kinds exist: the lock on the data directory ([`file_lock`](super::file_lock)) and the lease row
//! ([`lease`]), which expires unless it is renewed. Losing a held lease is a step down: no pass and no action
//! goes on under the old epoch, whatever was half done is somebody else's now, and when the passes under way
//! have ended, the process takes part again as a standby. A new leadership begins as that of a new process
//! does: nothing that an earlier one remembered is believed.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schema::ids::{Epoch, Timestamp};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::StoreError;
use super::clock::SharedClock;
use super::supervise::chain;

/// The row that at most one process holds at a time.
///
/// Each replica's wall clock may differ; a store that has a clock of its own (a database server)
/// should use that one in place of `now`.
#[async_trait]
pub trait LeaseStore: Send + Sync + 'static {
    /// Takes the lease when it is free, expired, or already held by `holder`: raises the epoch, sets
    /// the expiry to `now` + `ttl`, and returns the epoch. `None` when somebody else holds it.
    async fn try_acquire(
        &self,
        holder: &str,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<Option<Epoch>, StoreError>;
    /// Moves the expiry to `now` + `ttl`. False when the row no longer names this holder and epoch.
    async fn renew(
        &self,
        holder: &str,
        epoch: Epoch,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<bool, StoreError>;
    /// Frees the lease at once if it still names this holder and epoch.
    async fn release(&self, holder: &str, epoch: Epoch) -> Result<(), StoreError>;
}

/// Times of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTiming {
    /// How long a lease lasts without renewal.
    pub ttl: Duration,
    /// How often it is renewed, and how often a standby tries to get it.
    pub renew_every: Duration,
    /// The wait after a failed renewal.
    pub retry: Duration,
    /// How long the answer to one renewal is waited for.
    pub answer: Duration,
}

impl Default for LeaseTiming {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(15),
            renew_every: Duration::from_secs(5),
            retry: Duration::from_secs(1),
            answer: Duration::from_secs(3),
        }
    }
}

/// How a term ended.
enum End {
    /// The process is to end, and its passes have.
    Shutdown(Epoch),
    /// The row names somebody else.
    TakenOver,
    /// It could not be renewed in time.
    Expired,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Term {
    epoch: Epoch,
    /// When it ends by both clocks; `None`: with the process.
    until: Option<(Instant, Duration)>,
}

/// What must live as long as a leadership that nobody renews.
struct Held {
    _lock: Option<OwnedFd>,
    term: watch::Sender<Option<Term>>,
}

/// Whether this process leads. Cheap to clone; all clones say the same.
#[derive(Clone)]
pub struct Leadership {
    term: watch::Receiver<Option<Term>>,
    clock: SharedClock,
    passes: TaskTracker,
    held: Option<Arc<Held>>,
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership")
            .field("term", &*self.term.borrow())
            .finish_non_exhaustive()
    }
}

/// A pass under way. The lease is not given back while one exists.
#[derive(Debug)]
pub struct PassGuard {
    /// The epoch under which the pass began.
    pub epoch: Epoch,
    _token: TaskTrackerToken,
}

impl Leadership {
    /// Leads for as long as `lock` is held.
    pub(super) fn permanent(epoch: Epoch, clock: SharedClock, lock: OwnedFd) -> Self {
        let (sender, term) = watch::channel(Some(Term { epoch, until: None }));
        Self {
            term,
            clock,
            passes: TaskTracker::new(),
            held: Some(Arc::new(Held {
                _lock: Some(lock),
                term: sender,
            })),
        }
    }

    /// Leads from now on, until `until` by either clock if that is given; nobody renews it. For
    /// simulations, which have one process at a time or know when the next one takes over.
    pub fn for_term(epoch: Epoch, until: Option<(Instant, Duration)>, clock: SharedClock) -> Self {
        let (sender, term) = watch::channel(Some(Term { epoch, until }));
        Self {
            term,
            clock,
            passes: TaskTracker::new(),
            held: Some(Arc::new(Held {
                _lock: None,
                term: sender,
            })),
        }
    }

    /// Leads again, under a later epoch. For simulations, as [`for_term`](Self::for_term).
    pub fn again(&self, epoch: Epoch, until: Option<(Instant, Duration)>) {
        if let Some(held) = &self.held {
            held.term.send_replace(Some(Term { epoch, until }));
        }
    }

    /// The epoch, if this process leads at this very moment.
    pub fn epoch(&self) -> Option<Epoch> {
        let term = (*self.term.borrow())?;
        match term.until {
            // The second stands still in no suspended machine; neither is ever set.
            Some((instant, steady))
                if Instant::now() >= instant || self.clock.steady() >= steady =>
            {
                None
            }
            _ => Some(term.epoch),
        }
    }

    /// Whether this process leads at this very moment.
    pub fn is_leader(&self) -> bool {
        self.epoch().is_some()
    }

    /// Waits until this process leads.
    pub async fn acquired(&self) -> Epoch {
        let mut term = self.term.clone();
        loop {
            term.borrow_and_update();
            if let Some(epoch) = self.epoch() {
                return epoch;
            }
            if term.changed().await.is_err() {
                // Nobody is left who could become leader.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until this process no longer leads under `epoch`. Safe to cancel.
    pub async fn lost(&self, epoch: Epoch) {
        let mut term = self.term.clone();
        while self.epoch() == Some(epoch) {
            let until = term.borrow_and_update().and_then(|term| term.until);
            match until {
                Some((instant, _)) => {
                    if let Ok(Err(_)) = timeout_at(instant, term.changed()).await {
                        // Nobody renews any more: it ends at its time.
                        sleep_until(instant).await;
                    }
                }
                None => {
                    if term.changed().await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Begins a pass; `None` when this process does not lead.
    pub fn begin(&self) -> Option<PassGuard> {
        let token = self.passes.token();
        self.epoch().map(|epoch| PassGuard {
            epoch,
            _token: token,
        })
    }
}

/// Gets, keeps and gives back a lease. Must run as a supervised task.
pub struct LeaseKeeper {
    store: Arc<dyn LeaseStore>,
    holder: String,
    timing: LeaseTiming,
    clock: SharedClock,
    term: watch::Sender<Option<Term>>,
    passes: TaskTracker,
}

impl fmt::Debug for LeaseKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseKeeper")
            .field("holder", &self.holder)
            .field("timing", &self.timing)
            .finish_non_exhaustive()
    }
}

/// Leadership by a lease row. `holder` must be unique to this process.
pub fn lease(
    store: Arc<dyn LeaseStore>,
    holder: String,
    timing: LeaseTiming,
    clock: SharedClock,
) -> (Leadership, LeaseKeeper) {
    let (sender, term) = watch::channel(None);
    let passes = TaskTracker::new();
    let leadership = Leadership {
        term,
        clock: clock.clone(),
        passes: passes.clone(),
        held: None,
    };
    let keeper = LeaseKeeper {
        store,
        holder,
        timing,
        clock,
        term: sender,
        passes,
    };
    (leadership, keeper)
}

impl LeaseKeeper {
    /// Waits for the lease as a standby, keeps it, and is a standby again when it is lost, until `shutdown`;
    /// gives it back when the passes under way have ended, so that a successor starts at once and never
    /// beside us.
    pub async fn run(self, shutdown: CancellationToken) {
        loop {
            let end = tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                term = self.wait_for_lease() => self.keep(term, &shutdown).await,
            };
            self.term.send_replace(None);
            match end {
                End::Shutdown(epoch) => return self.give_back(epoch).await,
                End::TakenOver => {
                    tracing::error!(
                        "the leader lease was taken over by another process; standing by"
                    );
                }
                End::Expired => {
                    tracing::error!(
                        "the leader lease expired because it could not be renewed; standing by"
                    );
                }
            }
            // Nothing of the old term runs beside the next.
            let over = async {
                self.passes.close();
                self.passes.wait().await;
                self.passes.reopen();
            };
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                () = over => {}
            }
        }
    }

    async fn give_back(&self, epoch: Epoch) {
        let released = self.store.release(&self.holder, epoch);
        match timeout(self.timing.renew_every, released).await {
            Ok(Ok(())) => tracing::info!(epoch = epoch.0, "gave back the leader lease"),
            Ok(Err(error)) => {
                tracing::warn!(error = %chain(&error), "could not give back the leader lease; it expires by itself");
            }
            Err(_) => {
                tracing::warn!("giving back the leader lease took too long; it expires by itself");
            }
        }
    }

    /// The times are taken before the question is sent, so that ours end before the row's.
    fn deadline(&self) -> (Instant, Duration) {
        (
            Instant::now() + self.timing.ttl,
            self.clock.steady() + self.timing.ttl,
        )
    }

    async fn wait_for_lease(&self) -> Term {
        loop {
            let until = self.deadline();
            let asked = self
                .store
                .try_acquire(&self.holder, self.timing.ttl, self.clock.now());
            match timeout(self.timing.renew_every, asked).await {
                Ok(Ok(Some(epoch))) => {
                    let term = Term {
                        epoch,
                        until: Some(until),
                    };
                    self.term.send_replace(Some(term));
                    tracing::info!(epoch = epoch.0, "became the leader");
                    return term;
                }
                Ok(Ok(None)) => tracing::debug!("standby: another process leads"),
                Ok(Err(error)) => {
                    tracing::warn!(error = %chain(&error), "could not ask for the leader lease");
                }
                Err(_) => tracing::warn!("asking for the leader lease took too long"),
            }
            sleep(self.timing.renew_every).await;
        }
    }

    async fn keep(&self, mut term: Term, shutdown: &CancellationToken) -> End {
        let drained = async {
            shutdown.cancelled().await;
            self.passes.close();
            self.passes.wait().await;
        };
        tokio::pin!(drained);
        let mut renew_at = Instant::now() + self.timing.renew_every;
        loop {
            let Some((expiry, _)) = term.until else {
                return End::Shutdown(term.epoch);
            };
            tokio::select! {
                biased;
                () = &mut drained => return End::Shutdown(term.epoch),
                () = sleep_until(renew_at.min(expiry)) => {}
            }
            let until = self.deadline();
            let renewed =
                self.store
                    .renew(&self.holder, term.epoch, self.timing.ttl, self.clock.now());
            // One try that gets no answer leaves time for another.
            let given_up = expiry.min(Instant::now() + self.timing.answer);
            match timeout_at(given_up, renewed).await {
                Ok(Ok(true)) => {
                    term.until = Some(until);
                    self.term.send_replace(Some(term));
                    renew_at = Instant::now() + self.timing.renew_every;
                }
                Ok(Ok(false)) => return End::TakenOver,
                Ok(Err(error)) => {
                    tracing::warn!(error = %chain(&error), "could not renew the leader lease");
                    if Instant::now() >= expiry {
                        return End::Expired;
                    }
                    renew_at = Instant::now() + self.timing.retry;
                }
                Err(_) if Instant::now() >= expiry => return End::Expired,
                Err(_) => renew_at = Instant::now() + self.timing.retry,
            }
        }
    }
}
