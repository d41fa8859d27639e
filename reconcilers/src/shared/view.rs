//! What is known of the engine: one listing, kept fresh by its events.
//!
//! All reconcilers of containers share this view, so that a no-op pass over ten thousand users costs
//! one listing and no call per user:
//!
//! - [`EngineView::refresh`] lists everything we own (at connect, and at each resync);
//! - an event, or an action of our own, marks one user stale; the next observation lists that user only;
//! - when the connection is lost nothing is known, and all keys are woken to report it;
//! - when only the events are lost, or silent (`monitor`), that is reported, and the resync finds what they would have
//!   reported.
//!
//! Unknown is not empty: [`EngineView::observe`] answers [`Observed::Unavailable`], never an empty list, when the engine
//! could not be read.

mod following;
mod monitor;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::{
    Compute, Container, ContainerState, EngineError, LABEL_UID, Limits, NETWORK, Network,
};
use futures::StreamExt;
use futures::stream::BoxStream;
use schema::clock::SharedClock;
use schema::condition::{Condition, Reason};
use schema::error::chain;
use schema::ids::{Timestamp, Uid};
use tokio::sync::{Notify, watch};
use tracing::{info, warn};

use self::following::Following;
use self::monitor::Monitor;
use crate::runtime::WorldEvent;
use crate::stores::{Cache, Marks};

/// Whether the engine can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// Cannot be reached, or lost: what is known is not to be trusted.
    Unavailable(String),
    /// Reached, but of no use; `Pending` until the first try has ended.
    Unusable(Reason, String),
    /// Reached and listed.
    Up,
}

/// State of an object that needs the engine while that cannot be asked, or not be used.
pub fn describe_absence(reason: Reason, why: &str) -> Condition {
    match reason {
        Reason::EngineUnavailable | Reason::Pending => Condition::unknown(reason, why),
        _ => Condition::not_ready(reason, why),
    }
}

/// What is observed of a user's containers.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed {
    /// The engine cannot be asked, or not be used: why, for programs and for people.
    Unavailable(Reason, String),
    /// All containers that carry the user's uid.
    Containers {
        /// The containers, by name.
        containers: Vec<Container>,
        /// Something happened to one of them since the last observation, so details are worth a question.
        changed: bool,
    },
}

/// An outage of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// Time at which it was noticed.
    pub since: Timestamp,
    /// Cause.
    pub why: String,
    /// Time at which the engine was listed again; `None` while it is away.
    pub until: Option<Timestamp>,
}

/// Time between an outage and its notice, and between clocks of two machines.
const OUTAGE_MARGIN: Duration = Duration::from_secs(15);

impl Outage {
    /// Reports that a container which ran before it ended in it.
    fn spans(&self, started_at: Timestamp, ended_at: Timestamp) -> bool {
        let is_before = |until: Timestamp| ended_at <= until.plus(OUTAGE_MARGIN);
        started_at <= self.since
            && ended_at >= self.since.minus(OUTAGE_MARGIN)
            && self.until.is_none_or(is_before)
    }
}

/// Whether events of the engine arrive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Watching {
    /// They do not: changes are found by the resync only.
    pub lost: bool,
    /// Why it was lost the last time; empty when it never was.
    pub why: String,
    /// How often it was lost.
    pub losses: u64,
}

#[derive(Debug)]
struct State {
    connection: Connection,
    /// The newest outage.
    outage: Option<Outage>,
    network: Option<Network>,
    limits: Limits,
    /// Processors of its host; 0 before they are known.
    cpus: u32,
    root_dir: Option<PathBuf>,
    version: String,
    watching: Watching,
}

/// The shared view of one engine.
pub struct EngineView {
    compute: Compute,
    owner: String,
    clock: SharedClock,
    state: Mutex<State>,
    monitor: Mutex<Monitor>,
    containers: Cache<Vec<Container>>,
    connection: watch::Sender<Connection>,
    /// Somebody found the engine unavailable: whoever follows the events tries it again.
    trouble: Notify,
    /// A listing has shown what no event reported.
    doubt: Notify,
    /// Somebody cannot wait for the next try to connect.
    hurry: Notify,
    /// The agents' network is another one than before.
    network_changed: watch::Sender<()>,
    /// Only one full listing at a time.
    listing: tokio::sync::Mutex<()>,
}

impl std::fmt::Debug for EngineView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineView")
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

impl EngineView {
    /// A view of the objects that `owner` (an instance id) owns on an engine.
    pub fn new(compute: Compute, owner: impl Into<String>, clock: SharedClock) -> Self {
        let why = "the container engine is not connected yet".to_owned();
        let connection = Connection::Unusable(Reason::Pending, why);
        Self {
            compute,
            owner: owner.into(),
            clock,
            state: Mutex::new(State {
                connection: connection.clone(),
                outage: None,
                network: None,
                limits: Limits::ALL,
                cpus: 0,
                root_dir: None,
                version: String::new(),
                watching: Watching::default(),
            }),
            monitor: Mutex::default(),
            containers: Cache::default(),
            connection: watch::Sender::new(connection),
            trouble: Notify::new(),
            doubt: Notify::new(),
            hurry: Notify::new(),
            network_changed: watch::Sender::new(()),
            listing: tokio::sync::Mutex::new(()),
        }
    }

    /// The engine itself.
    pub fn compute(&self) -> &Compute {
        &self.compute
    }

    /// The instance id that marks what we own.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Whether the engine can be used, now.
    pub fn connection(&self) -> Connection {
        self.state().connection.clone()
    }

    /// Follows whether the engine can be used.
    pub fn watch_connection(&self) -> watch::Receiver<Connection> {
        self.connection.subscribe()
    }

    /// Returns the newest outage of the engine.
    pub fn outage(&self) -> Option<Outage> {
        self.state().outage.clone()
    }

    /// Reports that a container ended because its engine stopped.
    pub fn has_stopped(&self, started_at: Timestamp, ended_at: Timestamp) -> bool {
        let state = self.state();
        let outage = state.outage.as_ref().filter(|_| !self.compute.outlived);
        outage.is_some_and(|outage| outage.spans(started_at, ended_at))
    }

    /// Whether events arrive, now.
    pub fn watching(&self) -> Watching {
        self.state().watching.clone()
    }

    fn set_network(&self, network: Option<Network>) {
        let changed = {
            let mut state = self.state();
            let id = |network: &Option<Network>| network.as_ref().map(|network| network.id.clone());
            let up = state.connection == Connection::Up;
            let changed = up && id(&state.network) != id(&network);
            state.network = network;
            changed
        };
        if changed {
            self.network_changed.send_replace(());
        }
    }

    /// Tries at once to connect to an engine that cannot be reached, if it is not being tried.
    pub fn hurry(&self) {
        self.hurry.notify_one();
    }

    /// The number of processors of the engine's host, as last reported; `None` when that is not known.
    pub fn cpus(&self) -> Option<u32> {
        Some(self.state().cpus).filter(|cpus| *cpus > 0)
    }

    /// Directory of the engine's host in which it keeps files of containers; `None` when it does not say, or not yet.
    pub fn root_dir(&self) -> Option<PathBuf> {
        self.state().root_dir.clone()
    }

    /// Returns true once the engine has answered: what it does not say then, it never says.
    pub fn has_answered(&self) -> bool {
        !self.state().version.is_empty()
    }

    /// Which limits the engine's host can enforce, as last reported.
    pub fn limits(&self) -> Limits {
        self.state().limits
    }

    /// The engine's version, as last reported; empty before the first contact.
    pub fn version(&self) -> String {
        self.state().version.clone()
    }

    /// The agents' network as last seen.
    pub fn network(&self) -> Option<Network> {
        self.state().network.clone()
    }

    /// Uids of all users who own a container, as last listed.
    pub fn uids(&self) -> Vec<Uid> {
        self.containers.uids()
    }

    /// Number of owned containers, as last listed.
    pub fn container_count(&self) -> usize {
        self.containers.sum(Vec::len)
    }

    /// Owned containers that run, as last listed: their ids, and when they were created.
    pub fn running(&self) -> Vec<(String, Timestamp)> {
        let running = |container: &&Container| container.state == ContainerState::Running;
        let of_user = |containers: &Vec<Container>| {
            let running = containers.iter().filter(running);
            Some(
                running
                    .map(|container| (container.id.clone(), container.created_at))
                    .collect::<Vec<_>>(),
            )
        };
        self.containers.collect(of_user).concat()
    }

    /// The next observation of this user asks the engine.
    pub fn mark_stale(&self, uid: &Uid) {
        self.containers.mark(uid);
    }

    /// What is known may be stale: until the next full listing, each user is listed.
    pub fn distrust(&self) {
        self.containers.distrust();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn monitor(&self) -> MutexGuard<'_, Monitor> {
        self.monitor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_lost(&self, why: &str) {
        warn!(why, "the engine's event stream is degraded");
        let mut state = self.state();
        let losses = state.watching.losses + 1;
        state.watching = Watching {
            lost: true,
            why: why.to_owned(),
            losses,
        };
    }

    fn set_restored(&self) {
        info!("the engine's event stream works again");
        self.state().watching.lost = false;
    }

    /// Compares what a listing has shown with the events.
    fn compare(&self, with: impl FnOnce(&mut Monitor)) {
        let mut monitor = self.monitor();
        let before = monitor.silent_at();
        with(&mut monitor);
        if monitor.silent_at() != before {
            self.doubt.notify_one();
        }
    }

    fn set_connection(&self, connection: Connection) {
        let changed = {
            let mut state = self.state();
            let changed = state.connection != connection;
            state.connection = connection.clone();
            let now = self.clock.now();
            let open = state.outage.as_mut().filter(|it| it.until.is_none());
            match (&connection, open) {
                (Connection::Unavailable(why), None) => {
                    state.outage = Some(Outage {
                        since: now,
                        why: why.clone(),
                        until: None,
                    });
                }
                (Connection::Up | Connection::Unusable(..), Some(outage)) => {
                    outage.until = Some(now);
                }
                _ => {}
            }
            changed
        };
        if changed {
            match &connection {
                Connection::Up => info!("the container engine is reachable"),
                Connection::Unavailable(why) => warn!(why, "the container engine is unavailable"),
                Connection::Unusable(_, why) => warn!(why, "the container engine cannot be used"),
            }
            self.connection.send_replace(connection);
        }
    }

    /// Notes what an error says about the connection as such.
    pub fn note_error(&self, error: &EngineError) {
        if matches!(error, EngineError::Unavailable(_)) {
            self.set_connection(Connection::Unavailable(chain(error)));
            self.trouble.notify_one();
        }
    }

    /// Lists everything we own, and the network: three engine calls, however many users there are.
    ///
    /// # Errors
    /// Whatever the engine answers; the connection is then no longer trusted.
    pub async fn refresh(&self) -> Result<(), EngineError> {
        let _turn = self.listing.lock().await;
        self.list_all().await
    }

    async fn list_all(&self) -> Result<(), EngineError> {
        let ticket = self.containers.begin();
        let turn = self.monitor().begin();
        match self.read_everything().await {
            Ok((containers, network)) => {
                let mut by_uid: HashMap<Uid, Vec<Container>> = HashMap::new();
                for container in containers {
                    if let Some(uid) = container.labels.get(LABEL_UID) {
                        let uid = Uid::from(uid.clone());
                        by_uid.entry(uid).or_default().push(container);
                    }
                }
                self.compare(|monitor| monitor.listed_all(turn, &by_uid));
                // A mark asks for details too, which a listing does not show.
                self.containers.replace(ticket, Marks::Keep, by_uid);
                self.set_network(network);
                self.set_connection(Connection::Up);
                Ok(())
            }
            Err(Failure::Engine(error)) => {
                // One failed answer of an engine that is there is no outage.
                if matches!(error, EngineError::Unavailable(_) | EngineError::Timeout(_)) {
                    self.set_connection(Connection::Unavailable(chain(&error)));
                    self.trouble.notify_one();
                }
                Err(error)
            }
            Err(Failure::TooOld(why)) => {
                self.set_connection(Connection::Unusable(Reason::EngineTooOld, why));
                Ok(())
            }
        }
    }

    async fn read_everything(&self) -> Result<(Vec<Container>, Option<Network>), Failure> {
        let engine = &self.compute.containers;
        let info = engine.info().await.map_err(Failure::Engine)?;
        {
            let mut state = self.state();
            state.limits = info.limits;
            state.cpus = info.cpus;
            state.root_dir = info.root_dir;
            state.version = info.version;
        }
        if let Some(why) = info.too_old {
            return Err(Failure::TooOld(why));
        }
        let containers = engine
            .list(&self.owner, None)
            .await
            .map_err(Failure::Engine)?;
        let network = self.compute.network.network(NETWORK).await;
        Ok((containers, network.map_err(Failure::Engine)?))
    }

    /// Reads the network again: one engine call.
    ///
    /// # Errors
    /// Whatever the engine answers.
    pub async fn refresh_network(&self) -> Result<Option<Network>, EngineError> {
        let network = self
            .compute
            .network
            .network(NETWORK)
            .await
            .inspect_err(|error| self.note_error(error))?;
        self.set_network(network.clone());
        Ok(network)
    }

    /// A user's containers: from memory, or with one small listing when something happened to them.
    ///
    /// # Errors
    /// An engine error other than being unavailable.
    pub async fn observe(&self, uid: &Uid) -> Result<Observed, EngineError> {
        match self.connection() {
            Connection::Up => {}
            Connection::Unavailable(why) => {
                return Ok(Observed::Unavailable(Reason::EngineUnavailable, why));
            }
            Connection::Unusable(reason, why) => return Ok(Observed::Unavailable(reason, why)),
        }
        if let Some(known) = self.containers.get(uid) {
            let containers = known.map(|known| (*known).clone()).unwrap_or_default();
            return Ok(sorted(containers, false));
        }
        let ticket = self.containers.begin();
        let turn = self.monitor().begin();
        let listed = self
            .compute
            .containers
            .list(&self.owner, Some(uid.as_str()));
        match listed.await {
            Ok(containers) => {
                self.compare(|monitor| monitor.listed(turn, uid, &containers));
                let found = (!containers.is_empty()).then(|| Arc::new(containers.clone()));
                self.containers.put(uid, ticket, found);
                Ok(sorted(containers, true))
            }
            Err(error) => {
                self.note_error(&error);
                match error {
                    EngineError::Unavailable(_) => Ok(Observed::Unavailable(
                        Reason::EngineUnavailable,
                        chain(&error),
                    )),
                    other => Err(other),
                }
            }
        }
    }

    /// The same without consequences: what the next pass would have inspected, it still will.
    ///
    /// # Errors
    /// An engine error other than being unavailable.
    pub async fn peek(&self, uid: &Uid) -> Result<Observed, EngineError> {
        let observed = self.observe(uid).await?;
        if matches!(observed, Observed::Containers { changed: true, .. }) {
            self.mark_stale(uid);
        }
        Ok(observed)
    }

    /// Wakes `key` whenever the engine became usable or unusable, or the agents' network is another one or gone.
    pub fn engine_events(&self, key: Uid) -> BoxStream<'static, WorldEvent<Uid>> {
        let watched = (
            self.connection.subscribe(),
            self.network_changed.subscribe(),
        );
        futures::stream::unfold((watched, key), |(mut watched, key)| async move {
            let (connection, network) = (&mut watched.0, &mut watched.1);
            let changed = tokio::select! {
                biased;
                changed = connection.changed() => changed,
                changed = network.changed() => changed,
            };
            // The senders live as long as the view; once they are gone nothing changes any more.
            if changed.is_err() {
                std::future::pending::<()>().await;
            }
            Some((WorldEvent::Key(key.clone()), (watched, key)))
        })
        .boxed()
    }

    /// Connects, lists, and then follows the engine's events for ever: each marks its user stale and
    /// wakes the user's key; a lost or silent stream is reported ([`watching`](Self::watching)), and after
    /// each reconnect everything is listed before anything is trusted.
    pub fn events(self: Arc<Self>) -> BoxStream<'static, WorldEvent<Uid>> {
        let start = Following::new(self);
        futures::stream::unfold(start, |mut following| async move {
            let event = following.next().await;
            Some((event, following))
        })
        .boxed()
    }
}

enum Failure {
    Engine(EngineError),
    TooOld(String),
}

fn sorted(mut containers: Vec<Container>, changed: bool) -> Observed {
    containers.sort_by(|a, b| a.name.cmp(&b.name));
    Observed::Containers {
        containers,
        changed,
    }
}
