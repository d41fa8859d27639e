//! Ties a reconciler to its queue, its store, its leadership and the tasks that wake and work.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use futures::{FutureExt, Stream};
use schema::ids::{Epoch, Timestamp};
use schema::live::{LiveNumbers, NextReconciliation, Trigger};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::backoff::{Jitter, Policy};
use super::clock::SharedClock;
use super::leader::Leadership;
use super::pass;
use super::pulse::{Patience, Pulse};
use super::queue::{NextRun, Queue, Verdict, Wake};
use super::status::{self, Memories};
use super::summary::{DryRun, DryRunError, ReconcilerHandle, StatusTick, Summary};
use super::supervise::{Supervisor, TaskError};
use super::waits::{Waits, Waker};
use super::{Classify, PauseState, Plan, Purpose, Reconciler, Requeue, StatusStore};
use schema::bell::Bell;

/// How a controller behaves. [`Settings::default`] is what production uses.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Passes at the same time.
    pub workers: usize,
    /// Time between full passes; `None`: the reconciler's own. Jittered by ±10 %.
    pub resync: Option<Duration>,
    /// How often the database is asked for changes although no bell rang.
    pub poll: Duration,
    /// How long observing one object may take.
    pub observe_timeout: Duration,
    /// How long a whole pass may take; longer than any sum of actions that is not a defect.
    pub pass_deadline: Duration,
    /// How long listing all keys may take.
    pub keys_timeout: Duration,
    /// How long one call to the status store may take.
    pub store_timeout: Duration,
    /// How the delays between failed passes grow.
    pub backoff: Policy,
    /// Fixes all randomness, for tests.
    pub seed: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            workers: 4,
            resync: None,
            poll: Duration::from_secs(2),
            observe_timeout: Duration::from_secs(60),
            pass_deadline: Duration::from_secs(900),
            keys_timeout: Duration::from_secs(60),
            store_timeout: Duration::from_secs(30),
            backoff: Policy::default(),
            seed: None,
        }
    }
}

impl Settings {
    pub(super) fn jitter(&self) -> Jitter {
        self.seed.map_or_else(Jitter::random, Jitter::seeded)
    }
}

/// So many intervals may pass without a sign of life before a reconciler counts as stuck.
const PATIENCE: u32 = 3;

/// Something that happened outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorldEvent<K> {
    /// To this object.
    Key(K),
    /// Another reconciler has done its part for this object: a hint, which says nothing of the connection.
    Hint(K),
    /// To something that many objects share: queue all keys.
    Shared,
    /// The connection broke, or is not believed any more: events may be missing.
    Lost,
    /// Events arrive again: some are missing.
    Reconnected,
}

/// The events of the world. A stream that ends is not opened again; one that can be must say
/// [`WorldEvent::Lost`] and [`WorldEvent::Reconnected`] instead of ending.
pub type WorldEvents<K> = Pin<Box<dyn Stream<Item = WorldEvent<K>> + Send>>;

/// What every controller of the process shares.
#[derive(Clone)]
pub struct Context {
    /// Whether this process may act.
    pub leadership: Leadership,
    /// Wall-clock time.
    pub clock: SharedClock,
    /// Called with every status save.
    pub tick: StatusTick,
    /// Who waits for what.
    pub waits: Waits,
    /// Cancelled when the process is to end; the supervisor's.
    pub shutdown: CancellationToken,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Resync {
    pub last_at: Option<Timestamp>,
    pub last_ms: Option<u64>,
    pub next_at: Option<Timestamp>,
    pub error: Option<String>,
}

/// What the tasks of one controller share.
pub(super) struct Core<R: Reconciler> {
    pub reconciler: R,
    pub store: Arc<dyn StatusStore<R::Key>>,
    pub leadership: Leadership,
    pub clock: SharedClock,
    pub tick: StatusTick,
    pub settings: Settings,
    pub waits: Waits,
    pub shutdown: CancellationToken,
    pub queue: Queue<R::Key>,
    pub memories: Memories<R::Key>,
    pub pauses: watch::Sender<PauseState<R::Key>>,
    /// The epoch under which memories and pauses were loaded.
    pub primed: watch::Sender<Option<Epoch>>,
    pub wake_resync: Notify,
    pub wake_look: Notify,
    pub resync: Mutex<Resync>,
    pub store_error: Mutex<Option<String>>,
    pub bell_closed: AtomicBool,
    pub events_closed: AtomicBool,
    pub events_lost: AtomicBool,
    pub pulse: Pulse,
    passes: AtomicU64,
}

/// Runs one reconciler.
pub struct Controller<R: Reconciler> {
    core: Arc<Core<R>>,
    bell: Bell,
    events: WorldEvents<R::Key>,
}

impl<R: Reconciler> fmt::Debug for Controller<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("name", &R::NAME)
            .finish_non_exhaustive()
    }
}

impl<R: Reconciler> Controller<R> {
    /// A controller that does nothing until [`spawn`](Self::spawn). The bell rings when desired state has changed; a
    /// reconciler without world events gives a stream that never ends ([`futures::stream::pending`]).
    pub fn new(
        reconciler: R,
        store: Arc<dyn StatusStore<R::Key>>,
        (bell, events): (Bell, WorldEvents<R::Key>),
        context: Context,
        settings: Settings,
    ) -> Self {
        let queue = Queue::new(settings.backoff, settings.jitter()).with_workers(settings.workers);
        let core = Core {
            reconciler,
            store,
            leadership: context.leadership,
            clock: context.clock,
            tick: context.tick,
            settings,
            waits: context.waits,
            shutdown: context.shutdown,
            queue,
            memories: Memories::new(),
            pauses: watch::Sender::new(PauseState::default()),
            primed: watch::Sender::new(None),
            wake_resync: Notify::new(),
            wake_look: Notify::new(),
            resync: Mutex::default(),
            store_error: Mutex::default(),
            bell_closed: AtomicBool::new(false),
            events_closed: AtomicBool::new(false),
            events_lost: AtomicBool::new(false),
            pulse: Pulse::new(),
            passes: AtomicU64::new(0),
        };
        Self {
            core: Arc::new(core),
            bell,
            events,
        }
    }

    /// The operator's side of this controller.
    pub fn handle(&self) -> Arc<dyn ReconcilerHandle> {
        self.core.clone()
    }

    /// Starts the tasks of this controller: its sources and its workers.
    pub fn spawn(self, supervisor: &mut Supervisor) {
        let Self { core, bell, events } = self;
        let waker: Weak<Core<R>> = Arc::downgrade(&core);
        core.waits.serve(R::NAME, waker);
        let shutdown = core.shutdown.clone();
        let name = |task: &str| format!("{}.{task}", R::NAME);
        supervisor.spawn(
            name("resync"),
            until(shutdown.clone(), core.clone().resync_loop()),
        );
        supervisor.spawn(
            name("bell"),
            until(shutdown.clone(), core.clone().bell_loop(bell)),
        );
        supervisor.spawn(
            name("events"),
            until(shutdown.clone(), core.clone().events_loop(events)),
        );
        for number in 1..=core.settings.workers.max(1) {
            supervisor.spawn(name(&format!("worker-{number}")), core.clone().work());
        }
    }
}

/// A loop that never ends by itself, until it is asked to.
async fn until(
    shutdown: CancellationToken,
    forever: impl Future<Output = ()>,
) -> Result<(), TaskError> {
    let _ = shutdown.run_until_cancelled(forever).await;
    Ok(())
}

/// What a key waits for has changed.
impl<R: Reconciler> Waker for Core<R> {
    fn wake(&self, key: &str, bulk: bool) {
        // The end of a pull may outlast a leadership; a standby's queue stays empty.
        if !self.leadership.is_leader() {
            return;
        }
        let key = R::Key::from(key.to_owned());
        self.reconciler.changed(&key);
        self.queue.add(&key, Wake::Awaited { bulk });
    }
}

impl<R: Reconciler> Core<R> {
    /// A worker: passes one after the other. The pass under way at a shutdown ends at its next step.
    async fn work(self: Arc<Self>) -> Result<(), TaskError> {
        loop {
            let next = async {
                self.runnable().await;
                self.pulse.free();
                self.queue.take().await
            };
            let job = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return Ok(()),
                job = next => job,
            };
            if !self.may_run() {
                self.queue.done(&job.key, Verdict::Again, None);
                continue;
            }
            let pass_id = self.passes.fetch_add(1, Ordering::Relaxed);
            let span = tracing::info_span!("pass", reconciler = R::NAME, key = %job.key,
                object = tracing::field::Empty, generation = tracing::field::Empty, pass_id);
            self.pulse.begins(pass_id);
            self.run(job).instrument(span).await;
            self.pulse.ended(pass_id);
        }
    }

    /// Waits until passes may run: this process leads, its memory is filled, and nobody has paused
    /// the reconciler.
    async fn runnable(&self) {
        let (mut primed, mut pauses) = (self.primed.subscribe(), self.pauses.subscribe());
        loop {
            let epoch = self.leadership.acquired().await;
            // Both senders live as long as this core.
            tokio::select! {
                biased;
                _ = primed.wait_for(|primed| *primed == Some(epoch)) => {}
                // A term may be over before its memory is filled.
                () = self.leadership.lost(epoch) => continue,
            }
            let _ = pauses.wait_for(|pauses| !pauses.all).await;
            if self.may_run() {
                return;
            }
        }
    }

    fn may_run(&self) -> bool {
        let epoch = self.leadership.epoch();
        epoch.is_some() && *self.primed.borrow() == epoch && !self.pauses.borrow().all
    }

    /// Since when this reconciler gets nowhere, and how that shows. A standby and a paused reconciler
    /// have nothing to do.
    fn gets_nowhere(&self) -> Option<(Timestamp, String)> {
        if !self.leadership.is_leader() {
            return None;
        }
        let paused = self.pauses.borrow().all;
        let waiting = self.queue.waiting_since().filter(|_| !paused);
        let interval = self.settings.resync.unwrap_or(R::RESYNC).max(R::RESYNC);
        let patience = Patience {
            listing: interval * PATIENCE + self.settings.keys_timeout,
            work: R::RESYNC * PATIENCE,
            // After its deadline a pass still saves what it says.
            pass: self.settings.pass_deadline + self.settings.store_timeout * 4,
        };
        let (since, why) = self.pulse.stuck(waiting, patience)?;
        Some((self.clock.now().minus(since.elapsed()), why))
    }

    pub(super) fn is_paused(&self, key: &R::Key) -> bool {
        self.pauses.borrow().keys.contains(key)
    }
}

#[async_trait]
impl<R: Reconciler> ReconcilerHandle for Core<R> {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn summary(&self) -> Summary {
        let counts = self.memories.counts();
        let (depth, oldest_wait) = (self.queue.depth(), self.queue.oldest_wait());
        let resync = self
            .resync
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let store_error = self
            .store_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let (panics, last_panic_at) = self.pulse.panics();
        let (stuck_since, stuck) = self.gets_nowhere().unzip();
        let pauses = self.pauses.borrow();
        let live = LiveNumbers {
            leader: self.leadership.is_leader(),
            queue_depth: depth.ready,
            oldest_wait_ms: oldest_wait.and_then(|wait| u64::try_from(wait.as_millis()).ok()),
            delayed: depth.delayed,
            in_flight: depth.in_flight,
            last_resync_at: resync.last_at,
            last_resync_ms: resync.last_ms,
            next_resync_at: resync.next_at,
            resync_error: resync.error,
            store_error,
            paused_objects: pauses.keys.len(),
            bell_closed: self.bell_closed.load(Ordering::Relaxed),
            events_closed: self.events_closed.load(Ordering::Relaxed),
            events_lost: self.events_lost.load(Ordering::Relaxed),
            panicked: counts.panicked,
            panics,
            last_panic_at,
            stuck_since,
            stuck,
        };
        Summary {
            name: R::NAME,
            objects: counts.objects,
            ready: counts.ready,
            not_ready: counts.objects - counts.ready,
            failing: counts.failing,
            paused: pauses.all,
            live,
        }
    }

    fn stuck(&self) -> Option<(Timestamp, String)> {
        self.gets_nowhere()
    }

    async fn dry_run(&self, key: &str) -> Result<Option<DryRun>, DryRunError> {
        let key = R::Key::from(key.to_owned());
        let look = std::panic::AssertUnwindSafe(async {
            let observed = self.reconciler.observe(&key, Purpose::DryRun);
            let snapshot = match observed.await {
                Ok(Some(snapshot)) => snapshot,
                Ok(None) => return Ok(None),
                Err(error) => {
                    return Err(DryRunError {
                        reason: error.reason(),
                        message: error.to_string(),
                    });
                }
            };
            let (plan, snapshot) = pass::planned::<R>(snapshot, self.clock.now()).await;
            let steps = plan.steps_before_ready();
            let Plan {
                actions,
                conditions,
                requeue,
                ..
            } = plan;
            let (conditions, _) = status::complete(conditions, steps);
            Ok(Some(DryRun {
                generation: R::generation(&snapshot),
                actions: actions.iter().map(|action| R::describe(action)).collect(),
                conditions: conditions.into_iter().map(Into::into).collect(),
                requeue_after_ms: match requeue {
                    Requeue::AtResync => None,
                    Requeue::After(delay) => u64::try_from(delay.as_millis()).ok(),
                },
            }))
        });
        let limit = self.settings.observe_timeout;
        let failure = match timeout(limit, look.catch_unwind()).await {
            Ok(Ok(result)) => return result,
            Ok(Err(panic)) => pass::panicked("a dry run", panic.as_ref()),
            Err(_) => pass::too_long("observing", limit),
        };
        Err(DryRunError {
            reason: failure.reason,
            message: failure.message,
        })
    }

    fn retry(&self, key: &str) {
        if self.leadership.is_leader() {
            let key = R::Key::from(key.to_owned());
            self.reconciler.refresh(&key);
            self.queue.add(&key, Wake::Operator);
        }
    }

    fn retry_all(&self) {
        if self.leadership.is_leader() {
            self.reconciler.refresh_all();
            self.queue.hurry();
            ReconcilerHandle::wake(self);
        }
    }

    fn next_attempt(&self, key: &str) -> Option<Timestamp> {
        self.queue.next_attempt_at(&R::Key::from(key.to_owned()))
    }

    fn next_reconciliation(&self, key: &str) -> Option<NextReconciliation> {
        if !self.leadership.is_leader() {
            return None;
        }
        let key = R::Key::from(key.to_owned());
        let (by, at) = if self.pauses.borrow().all || self.is_paused(&key) {
            (Trigger::Resume, None)
        } else {
            let now = self.clock.now();
            match self.queue.next_run(&key) {
                NextRun::Now => (Trigger::Now, Some(now)),
                NextRun::At(at) => {
                    let left = at.saturating_duration_since(Instant::now());
                    (Trigger::Timer, Some(now.plus(left)))
                }
                NextRun::Unplanned => {
                    let resync = self.resync.lock().unwrap_or_else(PoisonError::into_inner);
                    (Trigger::Resync, resync.next_at)
                }
            }
        };
        Some(NextReconciliation { by, at })
    }

    fn wake(&self) {
        self.wake_look.notify_one();
        self.wake_resync.notify_one();
    }
}
