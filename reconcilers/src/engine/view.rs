//! What is known of the engine: one listing, kept fresh by its events.
//!
//! All reconcilers of containers share this view, so that a no-op pass over ten thousand users costs
//! one listing and no call per user:
//!
//! - [`EngineView::refresh`] lists everything we own (at connect, and at each resync);
//! - an event, or an action of our own, marks one user stale; the next look lists that user only;
//! - when the connection is lost nothing is known, and everyone is told so without being asked;
//! - when only the events are lost, or silent (`hearing`), that is told, and the resync finds what
//!   they would have told.
//!
//! Unknown is not empty: [`EngineView::look`] answers [`Sight::Unavailable`], never an empty list, when
//! the engine could not be read.

mod following;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::stream::BoxStream;
use schema::condition::Reason;
use schema::ids::Uid;
use tokio::sync::{Notify, watch};
use tracing::{info, warn};

use self::following::Following;
use super::hearing::Hearing;
use crate::container::observe::Limits;
use crate::drivers::docker::{Container, ContainerEngine, EngineError, LABEL_UID, Network};
use crate::runtime::WorldEvent;
use crate::stores::{Cache, Marks};

/// Name of the agents' network.
pub const NETWORK: &str = "agentyard";
/// The oldest API version understood.
pub const OLDEST_API: (u32, u32) = (1, 41);

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

/// Whether what happens on the engine is heard of as it happens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Watching {
    /// It is not: changes are found by the resync only.
    pub lost: bool,
    /// Why it was lost the last time; empty when it never was.
    pub why: String,
    /// How often it was lost.
    pub losses: u64,
}

#[derive(Debug)]
struct State {
    connection: Connection,
    network: Option<Network>,
    limits: Limits,
    version: String,
    watching: Watching,
}

/// The shared view of one engine.
pub struct EngineView {
    engine: Arc<dyn ContainerEngine>,
    owner: String,
    state: Mutex<State>,
    hearing: Mutex<Hearing>,
    containers: Cache<Vec<Container>>,
    connection: watch::Sender<Connection>,
    /// Somebody found the engine unavailable: whoever follows the events tries it again.
    trouble: Notify,
    /// A listing has shown what no event told.
    doubt: Notify,
    /// Somebody cannot wait for the next try to connect.
    hurry: Notify,
    /// The agents' network is another one than before.
    network_changed: Notify,
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
    /// A view of the objects that `owner` (an instance id) owns on `engine`.
    pub fn new(engine: Arc<dyn ContainerEngine>, owner: impl Into<String>) -> Self {
        let connection = Connection::Unavailable("not connected yet".to_owned());
        Self {
            engine,
            owner: owner.into(),
            state: Mutex::new(State {
                connection: connection.clone(),
                network: None,
                limits: Limits {
                    memory: true,
                    cpu: true,
                    pids: true,
                },
                version: String::new(),
                watching: Watching::default(),
            }),
            hearing: Mutex::default(),
            containers: Cache::default(),
            connection: watch::Sender::new(connection),
            trouble: Notify::new(),
            doubt: Notify::new(),
            hurry: Notify::new(),
            network_changed: Notify::new(),
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

    /// Whether events are heard, now.
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
            self.network_changed.notify_one();
        }
    }

    /// Tries at once to connect to an engine that cannot be reached, if it is not being tried.
    pub fn hurry(&self) {
        self.hurry.notify_one();
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
        self.containers.uids()
    }

    /// Number of owned containers, as last listed.
    pub fn container_count(&self) -> usize {
        self.containers.sum(Vec::len)
    }

    /// The next look at this user asks the engine.
    pub fn mark_stale(&self, uid: &Uid) {
        self.containers.mark(uid);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hearing(&self) -> MutexGuard<'_, Hearing> {
        self.hearing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_lost(&self, why: &str) {
        warn!(why, "the engine's events are no longer heard");
        let mut state = self.state();
        let losses = state.watching.losses + 1;
        state.watching = Watching {
            lost: true,
            why: why.to_owned(),
            losses,
        };
    }

    fn set_heard(&self) {
        info!("the engine's events are heard again");
        self.state().watching.lost = false;
    }

    /// Compares what a listing has shown with what was heard.
    fn compare(&self, with: impl FnOnce(&mut Hearing)) {
        let mut hearing = self.hearing();
        let before = hearing.silent_at();
        with(&mut hearing);
        if hearing.silent_at() != before {
            self.doubt.notify_one();
        }
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
        let turn = self.hearing().begin();
        match self.read_everything().await {
            Ok((containers, network)) => {
                let mut by_uid: HashMap<Uid, Vec<Container>> = HashMap::new();
                for container in containers {
                    if let Some(uid) = container.labels.get(LABEL_UID) {
                        let uid = Uid::from(uid.clone());
                        by_uid.entry(uid).or_default().push(container);
                    }
                }
                self.compare(|hearing| hearing.listed_all(turn, &by_uid));
                // A mark asks for details too, which a listing does not tell.
                self.containers.replace(ticket, Marks::Keep, by_uid);
                self.set_network(network);
                self.set_connection(Connection::Up);
                Ok(())
            }
            Err(Failure::Engine(error)) => {
                // One failed answer of an engine that is there is no outage.
                if matches!(error, EngineError::Unavailable(_) | EngineError::Timeout(_)) {
                    self.set_connection(Connection::Unavailable(describe(&error)));
                    self.trouble.notify_one();
                }
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
        self.set_network(network.clone());
        Ok(network)
    }

    /// A user's containers: from memory, or with one small listing when something happened to them.
    ///
    /// # Errors
    /// An engine error other than being unavailable.
    pub async fn look(&self, uid: &Uid) -> Result<Sight, EngineError> {
        match self.connection() {
            Connection::Up => {}
            Connection::Unavailable(why) => {
                return Ok(Sight::Unavailable(Reason::EngineUnavailable, why));
            }
            Connection::Unusable(reason, why) => return Ok(Sight::Unavailable(reason, why)),
        }
        if let Some(known) = self.containers.get(uid) {
            let containers = known.map(|known| (*known).clone()).unwrap_or_default();
            return Ok(sorted(containers, false));
        }
        let ticket = self.containers.begin();
        let turn = self.hearing().begin();
        match self.engine.list(&self.owner, Some(uid.as_str())).await {
            Ok(containers) => {
                self.compare(|hearing| hearing.listed(turn, uid, &containers));
                let found = (!containers.is_empty()).then(|| Arc::new(containers.clone()));
                self.containers.put(uid, ticket, found);
                Ok(sorted(containers, true))
            }
            Err(error) => {
                self.note_error(&error);
                match error {
                    EngineError::Unavailable(_) => Ok(Sight::Unavailable(
                        Reason::EngineUnavailable,
                        describe(&error),
                    )),
                    other => Err(other),
                }
            }
        }
    }

    /// The same for somebody who only wants to know: what was to be looked at closely by the
    /// reconciler still is.
    ///
    /// # Errors
    /// An engine error other than being unavailable.
    pub async fn peek(&self, uid: &Uid) -> Result<Sight, EngineError> {
        let sight = self.look(uid).await?;
        if matches!(sight, Sight::Containers { changed: true, .. }) {
            self.mark_stale(uid);
        }
        Ok(sight)
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
    /// wakes the user's key; a lost or silent stream is told ([`watching`](Self::watching)), and after
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
    TooOld((u32, u32)),
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
