//! The places of executors: which replica has those of a user and service.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moka::sync::Cache;
use schema::error::{DbError, chain};
use schema::replica::{Notice, Owner, PlaceKey};
use tokio::sync::broadcast;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::{Inner, Replicas};
use crate::deps::Deps;
use crate::executors::{Close, Hub, Key};
use crate::limits::EXECUTOR_PLACES;

/// Time between two heartbeats.
const BEAT: Duration = Duration::from_secs(5);
/// Time for which a replica is taken to have a place.
const KNOWN: Duration = Duration::from_secs(5);
/// A place without executors is given back after this time: longer than calls wait for a reconnect, and as long as displacements count.
const IDLE: Duration = Duration::from_secs(30);
/// Longest time to say goodbye to the database.
const GOODBYE: Duration = Duration::from_secs(2);

/// The places that this replica has, and the known owners of other places.
#[derive(Debug)]
pub(super) struct Places {
    held: Mutex<(u64, HashMap<Key, Held>)>,
    known: Cache<Key, Owner>,
    notices: Mutex<Option<broadcast::Receiver<Notice>>>,
}

#[derive(Debug)]
struct Held {
    /// The number of its taking: a place may be lost and come back.
    number: u64,
    epoch: i64,
    executors: usize,
    /// Beginning of the time without an executor, while there is none.
    idle: Instant,
}

/// The replica at which an executor has to be.
#[derive(Debug)]
pub(crate) enum Entered {
    /// This one; `None` when it is alone.
    Here(Option<Place>),
    /// Another one.
    At(Owner),
}

/// An executor's part in a place of this replica; given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    replicas: Replicas,
    key: Key,
    number: u64,
}

impl Place {
    /// Tells other replicas that the executor is there.
    pub(crate) fn announce_executors(&self) {
        self.replicas.announce_executors(&self.key);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(inner) = &self.replicas.0
            && let Some(held) = inner.places.held().1.get_mut(&self.key)
            && held.number == self.number
        {
            held.executors = held.executors.saturating_sub(1);
            held.idle = Instant::now();
        }
        self.replicas.announce_executors(&self.key);
    }
}

impl From<&Key> for PlaceKey {
    fn from(key: &Key) -> Self {
        Self {
            user: key.user.clone(),
            service: key.service.to_string(),
        }
    }
}

fn key_of(place: &PlaceKey) -> Option<Key> {
    Some(Key {
        user: place.user.clone(),
        service: place.service.parse().ok()?,
    })
}

impl Places {
    pub(super) fn new(notices: broadcast::Receiver<Notice>) -> Self {
        Self {
            held: Mutex::default(),
            known: EXECUTOR_PLACES.cache().time_to_live(KNOWN).build(),
            notices: Mutex::new(Some(notices)),
        }
    }

    fn held(&self) -> MutexGuard<'_, (u64, HashMap<Key, Held>)> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn epoch_of(&self, key: &Key) -> Option<i64> {
        self.held().1.get(key).map(|held| held.epoch)
    }

    /// Notes that a place was taken.
    fn note_taken(&self, key: &Key, epoch: i64) {
        let mut held = self.held();
        held.0 += 1;
        let number = held.0;
        let entry = held.1.entry(key.clone()).or_insert_with(|| Held {
            number,
            epoch,
            executors: 0,
            idle: Instant::now(),
        });
        // Of two takings at once the later one counts.
        entry.epoch = entry.epoch.max(epoch);
        drop(held);
        self.known.invalidate(key);
    }

    /// One more executor of a place that is here.
    fn add_executor(&self, key: &Key) -> Option<u64> {
        let mut held = self.held();
        let entry = held.1.get_mut(key)?;
        entry.executors += 1;
        Some(entry.number)
    }

    /// Takes the places out that have been without executors for long.
    fn take_idle(&self) -> Vec<(Key, i64)> {
        let mut held = self.held();
        let is_idle = |held: &mut Held| held.executors == 0 && held.idle.elapsed() >= IDLE;
        let idle = held.1.extract_if(|_, held| is_idle(held));
        idle.map(|(key, held)| (key, held.epoch)).collect()
    }
}

impl Replicas {
    /// The other replica that has the executors of a user and service; `None` when they are here, or nowhere. `connected`: some are
    /// connected here, without which this replica may have lost their place and not know it yet.
    pub(crate) async fn owner(&self, key: &Key, connected: bool) -> Option<Owner> {
        let inner = self.0.as_ref()?;
        if connected && inner.places.epoch_of(key).is_some() {
            return None;
        }
        if let Some(owner) = inner.places.known.get(key) {
            return Some(owner);
        }
        match inner.table.owner(&key.into()).await {
            Ok(owner) => {
                let owner = owner.filter(|owner| owner.replica.id != inner.me.id)?;
                inner.places.known.insert(key.clone(), owner.clone());
                Some(owner)
            }
            Err(error) => {
                let error = chain(&error);
                tracing::warn!(error, "the place of executors cannot be read");
                None
            }
        }
    }

    /// Forgets the replica that was taken to have a place.
    pub(crate) fn forget_owner(&self, key: &Key) {
        if let Some(inner) = &self.0 {
            inner.places.known.invalidate(key);
        }
    }

    /// Returns true when a place is here since this epoch.
    pub(crate) fn has_place(&self, key: &Key, epoch: i64) -> bool {
        let inner = self.0.as_ref();
        inner.is_some_and(|inner| {
            !inner.shutdown.is_cancelled() && inner.places.epoch_of(key) == Some(epoch)
        })
    }

    /// One more executor of a place that is here since this epoch.
    pub(crate) fn enter_place_here(&self, key: &Key, epoch: i64) -> Option<Place> {
        let inner = self.0.as_ref().filter(|_| self.has_place(key, epoch))?;
        let number = inner.places.add_executor(key)?;
        Some(Place {
            replicas: self.clone(),
            key: key.clone(),
            number,
        })
    }

    /// Finds the replica for an executor that connects, which is this one unless another has its place.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) async fn enter_place(&self, key: &Key) -> Result<Entered, DbError> {
        let Some(inner) = &self.0 else {
            return Ok(Entered::Here(None));
        };
        loop {
            if let Some(number) = inner.places.add_executor(key) {
                return Ok(Entered::Here(Some(Place {
                    replicas: self.clone(),
                    key: key.clone(),
                    number,
                })));
            }
            let place = key.into();
            if let Some(epoch) = inner.table.claim(&place, &inner.me.id, None).await? {
                inner.places.note_taken(key, epoch);
            } else if let Some(owner) = inner.table.owner(&place).await?
                && owner.replica.id != inner.me.id
            {
                return Ok(Entered::At(owner));
            }
        }
    }

    /// Takes a place from a replica that does not answer, or says that it does not have it, unless the place has moved meanwhile.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) async fn take_over_place(&self, key: &Key, from: &Owner) -> Result<(), DbError> {
        let Some(inner) = &self.0 else {
            return Ok(());
        };
        let place = key.into();
        let claimed = inner.table.claim(&place, &inner.me.id, Some(from)).await?;
        if let Some(epoch) = claimed {
            let (user, number) = (&key.user, from.replica.number);
            tracing::info!(%user, number, "the place of a user's executors was taken from another replica");
            inner.places.note_taken(key, epoch);
            self.announce_executors(key);
        }
        Ok(())
    }

    /// Tells other replicas that executors have come or gone.
    fn announce_executors(&self, key: &Key) {
        let Some(inner) = self.0.as_ref().filter(|it| !it.shutdown.is_cancelled()) else {
            return;
        };
        let (teller, place) = (Arc::clone(inner), PlaceKey::from(key));
        inner.tasks.spawn(async move {
            if let Err(error) = teller.table.tell(&place, &teller.me.id).await {
                let error = chain(&error);
                tracing::debug!(error, "other replicas are not told of an executor");
            }
        });
    }
}

/// Keeps the heartbeat and the places of this replica until the service stops.
pub async fn run(deps: Deps) {
    let (shutdown, hub) = (&deps.shutdown, &deps.mcp.hub);
    let Some(inner) = &deps.replicas.0 else {
        return shutdown.cancelled().await;
    };
    let notices = inner.places.notices.lock();
    let notices = notices.unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut notices) = notices else {
        return;
    };
    let mut beat = interval(BEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            _ = beat.tick() => inner.record_heartbeat(hub).await,
            notice = notices.recv() => inner.handle_notice(notice.unwrap_or(Notice::All), hub).await,
        }
    }
    // Executors that are sent away find another replica at once.
    let _ = timeout(GOODBYE, inner.table.leave(&inner.me.id)).await;
}

impl Inner {
    async fn record_heartbeat(&self, hub: &Hub) {
        match self.table.beat(&self.me).await {
            Ok(false) => {}
            Ok(true) => {
                tracing::warn!("other replicas took this one for dead; its places are looked at");
                self.judge_places(hub).await;
            }
            Err(error) => {
                let error = chain(&error);
                tracing::debug!(error, "the heartbeat cannot be recorded");
            }
        }
        for (key, epoch) in self.places.take_idle() {
            let place = PlaceKey::from(&key);
            if let Err(error) = self.table.release(&place, &self.me.id, epoch).await {
                let error = chain(&error);
                tracing::debug!(error, "a place of executors cannot be given back");
            }
        }
    }

    async fn handle_notice(&self, notice: Notice, hub: &Hub) {
        match notice {
            Notice::Of { replica, place } if replica != self.me.id => {
                if let Some(key) = key_of(&place) {
                    self.places.known.invalidate(&key);
                    hub.say_changed(Some(&key));
                    self.judge_place(&key, hub).await;
                }
            }
            Notice::Of { .. } => {}
            Notice::All => {
                self.places.known.invalidate_all();
                hub.say_changed(None);
                self.judge_places(hub).await;
            }
        }
    }

    async fn judge_places(&self, hub: &Hub) {
        let keys: Vec<Key> = self.places.held().1.keys().cloned().collect();
        for key in keys {
            self.judge_place(&key, hub).await;
        }
    }

    /// Sends executors away whose place another replica has taken.
    async fn judge_place(&self, key: &Key, hub: &Hub) {
        if self.places.epoch_of(key).is_none() {
            return;
        }
        let kept = async {
            let place = key.into();
            match self.table.epoch(&place, &self.me.id).await? {
                Some(epoch) => Ok(Some(epoch)),
                None => self.table.claim(&place, &self.me.id, None).await,
            }
        };
        match kept.await {
            Ok(Some(epoch)) => {
                if let Some(held) = self.places.held().1.get_mut(key) {
                    held.epoch = held.epoch.max(epoch);
                }
            }
            Ok(None) => {
                self.places.held().1.remove(key);
                let user = &key.user;
                tracing::info!(%user, "the place of a user's executors was taken by another replica");
                for executor in hub.of_key(key) {
                    hub.dismiss(executor.connection, Close::Replaced);
                }
            }
            Err::<_, DbError>(error) => {
                let error = chain(&error);
                tracing::warn!(error, "a place of executors cannot be read");
            }
        }
    }
}
