//! What is known of the engine: one listing, kept fresh by its events.
//!
//! All reconcilers of containers share this view, so that a no-op pass over ten thousand users costs
//! one listing and no call per user:
//!
//! - [`EngineView::refresh`] lists everything we own (at connect, and at each resync);
//! - an event, or an action of our own, marks one user stale; the next look lists that user only;
//! - when the connection is lost nothing is known, and everyone is told so without being asked.
//!
//! Unknown is not empty: [`EngineView::look`] answers [`Sight::Unavailable`], never an empty list, when
//! the engine could not be read.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use schema::condition::Reason;
use schema::ids::Uid;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::container::observe::Limits;
use crate::drivers::docker::{Container, ContainerEngine, EngineError, LABEL_UID, Network};
use crate::runtime::WorldEvent;

/// Name of the agents' network.
pub const NETWORK: &str = "agentyard";
/// The oldest API version understood.
pub const OLDEST_API: (u32, u32) = (1, 41);

const RECONNECT_FIRST: Duration = Duration::from_millis(500);
const RECONNECT_MOST: Duration = Duration::from_secs(5);

/// Whether the engine can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// Not tried yet, or lost: what is known is not to be trusted.
    Unavailable(String),
    /// Reached, but of no use.
    Unusable(Reason, String),
    /// Reached and listed.
    Up,
}

/// What one look at a user's containers gives.
#[derive(Debug, Clone, PartialEq)]
pub enum Sight {
    /// The engine cannot be asked, or not be used: why, for programs and for people.
    Unavailable(Reason, String),
    /// All containers that carry the user's uid.
    Containers {
        /// The containers, by name.
        containers: Vec<Container>,
        /// Something happened to one of them since the last look, so details are worth a question.
        changed: bool,
    },
}

#[derive(Debug)]
struct State {
    connection: Connection,
    by_uid: HashMap<String, Vec<Container>>,
    stale: HashSet<String>,
    network: Option<Network>,
    limits: Limits,
    version: String,
}

/// The shared view of one engine.
pub struct EngineView {
    engine: Arc<dyn ContainerEngine>,
    owner: String,
    state: Mutex<State>,
    connection: watch::Sender<Connection>,
    /// Only one listing at a time: whoever comes second takes the first one's result.
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
    /// A view of the objects that `owner` (an instance id) owns on `engine`.
    pub fn new(engine: Arc<dyn ContainerEngine>, owner: impl Into<String>) -> Self {
        let connection = Connection::Unavailable("not connected yet".to_owned());
        Self {
            engine,
            owner: owner.into(),
            state: Mutex::new(State {
                connection: connection.clone(),
                by_uid: HashMap::new(),
                stale: HashSet::new(),
                network: None,
                limits: Limits {
                    memory: true,
                    cpu: true,
                    pids: true,
                },
                version: String::new(),
            }),
            connection: watch::Sender::new(connection),
            listing: tokio::sync::Mutex::new(()),
        }
    }

    /// The engine itself.
    pub fn engine(&self) -> &Arc<dyn ContainerEngine> {
        &self.engine
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

    /// Which limits the engine's host can enforce, as last told.
    pub fn limits(&self) -> Limits {
        self.state().limits
    }

    /// The engine's version, as last told; empty before the first contact.
    pub fn version(&self) -> String {
        self.state().version.clone()
    }

    /// The agents' network as last seen.
    pub fn network(&self) -> Option<Network> {
        self.state().network.clone()
    }

    /// Uids of all users who own a container, as last listed.
    pub fn uids(&self) -> Vec<Uid> {
        self.state()
            .by_uid
            .keys()
            .map(|uid| Uid::from(uid.clone()))
            .collect()
    }

    /// Number of owned containers, as last listed.
    pub fn container_count(&self) -> usize {
        self.state().by_uid.values().map(Vec::len).sum()
    }

    /// The next look at this user asks the engine.
    pub fn mark_stale(&self, uid: &Uid) {
        self.state().stale.insert(uid.as_str().to_owned());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_connection(&self, connection: Connection) {
        let changed = {
            let mut state = self.state();
            let changed = state.connection != connection;
            state.connection = connection.clone();
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
            self.set_connection(Connection::Unavailable(describe(error)));
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
        // What is marked while the listing is under way stays marked: it may be newer.
        let marked: Vec<String> = self.state().stale.iter().cloned().collect();
        let result = self.read_everything().await;
        match result {
            Ok((containers, network)) => {
                let mut by_uid: HashMap<String, Vec<Container>> = HashMap::new();
                for container in containers {
                    if let Some(uid) = container.labels.get(LABEL_UID) {
                        by_uid.entry(uid.clone()).or_default().push(container);
                    }
                }
                let mut state = self.state();
                state.by_uid = by_uid;
                state.network = network;
                // Marks made before stay too where they ask for details; the listing is fresh, so
                // they cost one small listing each at most.
                let known: Vec<String> = marked
                    .into_iter()
                    .filter(|uid| !state.by_uid.contains_key(uid))
                    .collect();
                for uid in known {
                    state.stale.remove(&uid);
                }
                drop(state);
                self.set_connection(Connection::Up);
                Ok(())
            }
            Err(Failure::Engine(error)) => {
                let said = describe(&error);
                self.set_connection(Connection::Unavailable(said));
                Err(error)
            }
            Err(Failure::TooOld(version)) => {
                let message = format!(
                    "the engine speaks API {}.{}; {}.{} or newer is needed",
                    version.0, version.1, OLDEST_API.0, OLDEST_API.1
                );
                self.set_connection(Connection::Unusable(Reason::EngineTooOld, message));
                Ok(())
            }
        }
    }

    async fn read_everything(&self) -> Result<(Vec<Container>, Option<Network>), Failure> {
        let info = self.engine.info().await.map_err(Failure::Engine)?;
        if info.api_version < OLDEST_API {
            return Err(Failure::TooOld(info.api_version));
        }
        {
            let mut state = self.state();
            state.limits = Limits {
                memory: info.limits_memory,
                cpu: info.limits_cpu,
                pids: info.limits_pids,
            };
            state.version = info.version;
        }
        let containers = self
            .engine
            .list(&self.owner, None)
            .await
            .map_err(Failure::Engine)?;
        let network = self
            .engine
            .network(NETWORK)
            .await
            .map_err(Failure::Engine)?;
        Ok((containers, network))
    }

    /// Reads the network anew: one engine call.
    ///
    /// # Errors
    /// Whatever the engine answers.
    pub async fn refresh_network(&self) -> Result<Option<Network>, EngineError> {
        let network = self
            .engine
            .network(NETWORK)
            .await
            .inspect_err(|error| self.note_error(error))?;
        self.state().network.clone_from(&network);
        Ok(network)
    }

    /// A user's containers: from memory, or with one small listing when something happened to them.
    ///
    /// # Errors
    /// An engine error other than being unavailable.
    pub async fn look(&self, uid: &Uid) -> Result<Sight, EngineError> {
        let stale = {
            let state = self.state();
            match &state.connection {
                Connection::Up => {}
                Connection::Unavailable(why) => {
                    return Ok(Sight::Unavailable(Reason::EngineUnavailable, why.clone()));
                }
                Connection::Unusable(reason, why) => {
                    return Ok(Sight::Unavailable(*reason, why.clone()));
                }
            }
            state.stale.contains(uid.as_str())
        };
        if stale {
            // Taken off before asking: a mark that comes meanwhile asks again.
            self.state().stale.remove(uid.as_str());
            match self.engine.list(&self.owner, Some(uid.as_str())).await {
                Ok(containers) => {
                    let mut state = self.state();
                    if containers.is_empty() {
                        state.by_uid.remove(uid.as_str());
                    } else {
                        state
                            .by_uid
                            .insert(uid.as_str().to_owned(), containers.clone());
                    }
                    drop(state);
                    return Ok(sorted(containers, true));
                }
                Err(error) => {
                    self.mark_stale(uid);
                    self.note_error(&error);
                    return match error {
                        EngineError::Unavailable(_) => Ok(Sight::Unavailable(
                            Reason::EngineUnavailable,
                            describe(&error),
                        )),
                        other => Err(other),
                    };
                }
            }
        }
        let containers = self
            .state()
            .by_uid
            .get(uid.as_str())
            .cloned()
            .unwrap_or_default();
        Ok(sorted(containers, false))
    }

    /// Wakes `key` whenever the engine became usable or unusable.
    pub fn connection_events(&self, key: Uid) -> BoxStream<'static, WorldEvent<Uid>> {
        let connection = self.connection.subscribe();
        futures::stream::unfold((connection, key), |(mut connection, key)| async move {
            // The sender lives as long as the view; once it is gone nothing changes any more.
            if connection.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            Some((WorldEvent::Key(key.clone()), (connection, key)))
        })
        .boxed()
    }

    /// Connects, lists, and then follows the engine's events for ever: each marks its user stale and
    /// wakes the user's key; a lost connection is told, and after each reconnect everything is listed
    /// before anything is trusted.
    pub fn events(self: Arc<Self>) -> BoxStream<'static, WorldEvent<Uid>> {
        let start = Following {
            view: self,
            stream: None,
            delay: RECONNECT_FIRST,
            lost: false,
        };
        futures::stream::unfold(start, |mut following| async move {
            let event = following.next().await;
            Some((event, following))
        })
        .boxed()
    }
}

enum Failure {
    Engine(EngineError),
    TooOld((u32, u32)),
}

struct Following {
    view: Arc<EngineView>,
    stream: Option<crate::drivers::docker::EngineStream<crate::drivers::docker::EngineEvent>>,
    delay: Duration,
    lost: bool,
}

impl Following {
    async fn next(&mut self) -> WorldEvent<Uid> {
        loop {
            if let Some(stream) = &mut self.stream {
                match stream.next().await {
                    Some(Ok(event)) => {
                        let uid = Uid::from(event.uid);
                        self.view.mark_stale(&uid);
                        return WorldEvent::Key(uid);
                    }
                    Some(Err(error)) => {
                        warn!(error = describe(&error), "the engine's event stream broke");
                    }
                    None => warn!("the engine's event stream ended"),
                }
                self.stream = None;
                // Nothing that happens from now on is heard: say so, unless a listing still works.
                if self.view.refresh().await.is_err() {
                    self.lost = true;
                    return WorldEvent::Lost;
                }
            }
            match self.connect().await {
                Ok(()) => {
                    self.delay = RECONNECT_FIRST;
                    self.lost = false;
                    return WorldEvent::Reconnected;
                }
                Err(error) => {
                    let was_lost = std::mem::replace(&mut self.lost, true);
                    self.view
                        .set_connection(Connection::Unavailable(describe(&error)));
                    if !was_lost {
                        return WorldEvent::Lost;
                    }
                    tokio::time::sleep(self.delay).await;
                    self.delay = (self.delay * 2).min(RECONNECT_MOST);
                }
            }
        }
    }

    /// Subscribes first and lists afterwards, so that nothing falls between.
    async fn connect(&mut self) -> Result<(), EngineError> {
        let stream = self.view.engine.events(&self.view.owner).await?;
        self.view.refresh().await?;
        self.stream = Some(stream);
        Ok(())
    }
}

fn sorted(mut containers: Vec<Container>, changed: bool) -> Sight {
    containers.sort_by(|a, b| a.name.cmp(&b.name));
    Sight::Containers {
        containers,
        changed,
    }
}

/// An error with its causes in one line.
pub(crate) fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
