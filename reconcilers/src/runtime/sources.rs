//! What wakes keys: the bell with its poll, the events of the world, and the resync.
//!
//! Each is a task that never ends by itself. They run on the leader only; a standby's queue stays
//! empty, and taking over begins with a full pass, so nothing that happened before can be missed.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use schema::ids::Epoch;
use tokio::time::{Instant, sleep, timeout};

use super::backoff::{Backoff, Policy};
use super::controller::{Core, WorldEvent, WorldEvents};
use super::queue::Wake;
use super::status::Failure;
use super::supervise::chain;
use super::{PauseState, Reconciler, StoreError, pass};
use schema::bell::Bell;

/// The share of the resync interval by which it varies, so that the passes of several reconcilers
/// and replicas do not fall together.
const RESYNC_JITTER: f64 = 0.1;
/// The longest wait between tries to list the keys.
const LISTING_CAP: Duration = Duration::from_secs(60);
/// After so many failed listings in a row the known keys are observed one by one, so that their
/// conditions say what is wrong instead of what was once right.
const LISTINGS_BEFORE_DOUBT: u32 = 2;

impl<R: Reconciler> Core<R> {
    /// Fills the memory when a leadership begins, then queues all keys again and again.
    pub(super) async fn resync_loop(self: Arc<Self>) {
        let interval = self.settings.resync.unwrap_or(R::RESYNC);
        let mut jitter = self.settings.jitter();
        let policy = Policy {
            cap: LISTING_CAP.min(interval),
            ..self.settings.backoff
        };
        let mut failing: Option<Backoff> = None;
        loop {
            let epoch = self.leadership.acquired().await;
            if *self.primed.borrow() != Some(epoch) {
                self.pulse.leads();
                let result = self.prime(epoch).await;
                self.note_store(&result);
                if result.is_err() {
                    sleep(self.settings.poll).await;
                    continue;
                }
            }
            let wait = match self.list().await {
                Ok(()) => {
                    failing = None;
                    jitter.around(interval, RESYNC_JITTER)
                }
                Err(failure) => {
                    let backoff = failing.get_or_insert_with(|| Backoff::new(policy));
                    let delay = backoff.fail(&mut jitter);
                    tracing::warn!(reconciler = R::NAME, error = %failure.chain, ?delay,
                        "could not list the keys");
                    lock(&self.resync).error = Some(failure.message);
                    if backoff.failures() == LISTINGS_BEFORE_DOUBT {
                        for key in self.memories.keys() {
                            self.queue.add(&key, Wake::Resync);
                        }
                    }
                    delay
                }
            };
            lock(&self.resync).next_at = Some(self.clock.now().plus(wait));
            tokio::select! {
                biased;
                () = sleep(wait) => {}
                () = self.wake_resync.notified() => {}
                // The next term begins at once with what this one knows nothing of.
                () = self.leadership.lost(epoch) => {}
            }
        }
    }

    /// Loads what the store knows, in bulk; passes run from then on.
    async fn prime(&self, epoch: Epoch) -> Result<(), StoreError> {
        // Others may have led since this process did.
        self.queue.forget();
        self.reconciler.leads();
        let statuses = self.in_store(self.store.load_all()).await?;
        let pauses = self.in_store(self.store.paused()).await?;
        tracing::info!(
            reconciler = R::NAME,
            epoch = epoch.0,
            objects = statuses.len(),
            "begins to reconcile"
        );
        self.memories.fill(statuses);
        self.pauses.send_replace(pauses);
        self.primed.send_replace(Some(epoch));
        // The waiters of a watch are woken in random order. Workers are all alike, the bell is not:
        // it is woken by itself, so that a simulation can be repeated.
        self.wake_look.notify_one();
        Ok(())
    }

    /// Queues every key: the desired ones, the owned ones in the world, and those that are remembered
    /// but neither, so that a pass finds them gone.
    async fn list(&self) -> Result<(), Failure> {
        let started = Instant::now();
        let limit = self.settings.keys_timeout;
        let listed = AssertUnwindSafe(self.reconciler.keys()).catch_unwind();
        let keys = match timeout(limit, listed).await {
            Ok(Ok(Ok(keys))) => keys,
            Ok(Ok(Err(error))) => return Err(pass::classified(&error)),
            Ok(Err(panic)) => {
                self.pulse.panicked(self.clock.now());
                return Err(pass::panicked("listing keys", panic.as_ref()));
            }
            Err(_) => return Err(pass::too_long("listing keys", limit)),
        };
        for key in &keys {
            self.queue.add(key, Wake::Resync);
        }
        let listed: HashSet<R::Key> = keys.into_iter().collect();
        for key in self.memories.missing_from(&listed) {
            self.queue.add(&key, Wake::Resync);
        }
        self.pulse.listed();
        let mut resync = lock(&self.resync);
        resync.error = None;
        resync.last_at = Some(self.clock.now());
        resync.last_ms = u64::try_from(started.elapsed().as_millis()).ok();
        Ok(())
    }

    /// Asks the store what has changed: at each ring, and every few seconds in case one was lost.
    pub(super) async fn bell_loop(self: Arc<Self>, mut bell: Bell) {
        // How far this leadership has seen.
        let mut seen: Option<(Epoch, i64)> = None;
        loop {
            let epoch = self.leadership.acquired().await;
            if *self.primed.borrow() != Some(epoch) {
                self.wake_look.notified().await;
                continue;
            }
            if bell.listen() {
                // Whatever interrupted it may have put the history back, too.
                seen = None;
                tracing::info!(
                    reconciler = R::NAME,
                    "the bell was interrupted; queueing all keys"
                );
                self.wake_resync.notify_one();
            }
            let since = seen.filter(|(by, _)| *by == epoch);
            let result = self.queue_dirty(since.map(|(_, version)| version)).await;
            self.note_store(&result);
            if let Ok(through) = result {
                seen = Some((epoch, through));
            }
            let closed = self.bell_closed.load(Ordering::Relaxed);
            tokio::select! {
                biased;
                rung = bell.rung(), if !closed => {
                    if rung.is_err() {
                        self.bell_closed.store(true, Ordering::Relaxed);
                        tracing::warn!(reconciler = R::NAME, "the bell is gone; changes are found by polling");
                    }
                }
                () = self.wake_look.notified() => {}
                () = sleep(self.settings.poll) => {}
            }
        }
    }

    /// Queues what is dirty of what has changed since; returns how far it has read.
    async fn queue_dirty(&self, since: Option<i64>) -> Result<i64, StoreError> {
        let pauses = self.in_store(self.store.paused()).await?;
        self.change_pauses(pauses);
        let found = self.in_store(self.store.dirty(since)).await?;
        for dirty in found.dirty {
            let wake = Wake::Generation {
                generation: dirty.generation,
                bulk: dirty.bulk,
            };
            self.reconciler.changed(&dirty.key);
            self.queue.add(&dirty.key, wake);
        }
        Ok(found.through)
    }

    /// Takes over what is paused; an object that was paused or resumed is observed, and so is
    /// everything when the whole reconciler is resumed.
    fn change_pauses(&self, new: PauseState<R::Key>) {
        let old = self.pauses.borrow().clone();
        if old == new {
            return;
        }
        let mut changed: Vec<R::Key> = old.keys.symmetric_difference(&new.keys).cloned().collect();
        changed.sort();
        tracing::info!(
            reconciler = R::NAME,
            all = new.all,
            objects = new.keys.len(),
            "pauses changed"
        );
        let resumed = old.all && !new.all;
        self.pauses.send_replace(new);
        for key in changed {
            self.queue.add(&key, Wake::Operator);
        }
        if resumed {
            self.wake_resync.notify_one();
        }
    }

    /// Follows the events of the world. After any gap everything is observed.
    pub(super) async fn events_loop(self: Arc<Self>, mut events: WorldEvents<R::Key>) {
        while let Some(event) = events.next().await {
            if !matches!(event, WorldEvent::Shared | WorldEvent::Hint(_)) {
                let lost = matches!(event, WorldEvent::Lost);
                self.events_lost.store(lost, Ordering::Relaxed);
            }
            if !self.leadership.is_leader() {
                continue;
            }
            match event {
                WorldEvent::Key(key) | WorldEvent::Hint(key) => {
                    self.queue.add(&key, Wake::Event);
                }
                WorldEvent::Shared => self.wake_resync.notify_one(),
                WorldEvent::Lost | WorldEvent::Reconnected => {
                    tracing::info!(
                        reconciler = R::NAME,
                        ?event,
                        "events may be missing; queueing all keys"
                    );
                    self.wake_resync.notify_one();
                }
            }
        }
        tracing::warn!(
            reconciler = R::NAME,
            "the events of the world have ended; changes are found by the resync"
        );
        self.events_closed.store(true, Ordering::Relaxed);
        self.wake_resync.notify_one();
        std::future::pending().await
    }

    fn note_store<T>(&self, result: &Result<T, StoreError>) {
        let error = result.as_ref().err().map(|error| chain(error));
        if error.is_some() {
            self.pulse.excused();
        }
        let mut noted = lock(&self.store_error);
        if let (Some(error), None) = (&error, &*noted) {
            tracing::warn!(reconciler = R::NAME, %error, "the status store cannot be read; trying again");
        }
        *noted = error;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
