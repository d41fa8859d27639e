//! Reads everything the files of one user follow from, and the files.
//!
//! In a no-op pass that is the cached row, and whether the files are still there and in the same directory: they are read
//! when something has changed, at the start of the service, when an operator asks for it, and once in a while.

use std::net::SocketAddr;
use std::sync::Arc;

use engine::{NetworkState, Reach};
use schema::adapter::Adapter;
use schema::agent_config::{AgentConfigRow, KeptFiles, UserValues};
use schema::condition::Reason;
use schema::config::{Config, keys};
use schema::error::DbError;
use schema::home::{FoundFile, HomeError, HomeId, HomeLook, HomeState, Note};
use schema::ids::Uid;
use secrecy::SecretString;

use super::{AgentConfigReconciler, ConfigError};
use crate::runtime::{Purpose, blocking};
use crate::shared::view::Connection;

/// From how many bytes on files are parsed on a thread of their own kind.
const LONG: usize = 2 << 10;

/// Whether parsing files may take long. What a YAML alias stands for may be much, however short the file is.
pub(crate) fn are_long(files: [&Option<FoundFile>; 2]) -> bool {
    let mut found = files.into_iter().flatten();
    found.any(|file| file.bytes.len() > LONG || file.bytes.contains(&b'*'))
}

/// Parses files with a note of each that may take long: one at which the process dies twice is set aside.
pub(crate) fn parse_noted<T>(files: [&Option<FoundFile>; 2], parse: impl FnOnce() -> T) -> T {
    let notes: Vec<Note> = notes_of(files);
    let parsed = parse();
    notes.into_iter().for_each(Note::finish);
    parsed
}

/// Notes that files are being parsed.
pub(crate) fn notes_of(files: [&Option<FoundFile>; 2]) -> Vec<Note> {
    let found = files.into_iter().flatten();
    found.map(|file| file.notes.note()).collect()
}

/// The longest file that is read. What the renderer takes is a little less, and it says so.
pub const LIMIT: u64 = 2 << 20;

/// Desired and observed state of one user's files. It holds secrets, so it cannot be printed.
pub struct Snapshot {
    /// What is desired.
    pub row: Arc<AgentConfigRow>,
    /// The user's directory, before anything else was asked; `None` when it is not there.
    pub home: Option<HomeLook>,
    /// What is there.
    pub world: World,
}

/// What is there.
pub enum World {
    /// The user is going: nothing is asked.
    Going,
    /// Not read: the files stay as they are until their user's turn in this rollout comes.
    Held(Uid),
    /// Not read: nothing has changed since the last reading, of which this was said.
    Unchanged(Arc<str>),
    /// Where agents reach the service is not known.
    NoAddress(NoAddress),
    /// The user's directory cannot be used (yet).
    NoHome(HomeState),
    /// A file cannot be read and is left as it is.
    Unreadable(String),
    /// Everything was read.
    Seen(Box<Seen>),
}

/// Why it is not known where agents reach the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAddress {
    /// No try to connect to the engine has ended yet.
    NotConnected,
    /// The engine cannot be asked, and was not before.
    EngineUnavailable,
    /// The agents' network is not as it should be.
    Network(NetworkState),
}

/// Everything the files follow from, and the files.
pub struct Seen {
    /// How agents are configured.
    pub adapter: Arc<Adapter>,
    /// Effective configuration.
    pub config: Arc<Config>,
    /// What the user has set.
    pub values: UserValues,
    /// The user's MCP token.
    pub token: SecretString,
    /// The token of the user's chat.
    pub chat_token: SecretString,
    /// Where agents reach the service, as a URL; `None`: nowhere.
    pub base_url: Option<String>,
    /// The directory that they are in.
    pub home: HomeId,
    /// The configuration file, as it is.
    pub config_file: Option<FoundFile>,
    /// The security file, as it is.
    pub security_file: Option<FoundFile>,
    /// The files of before the last migration; read only where the image reads another version than they are of.
    pub kept: Option<KeptFiles>,
}

impl Seen {
    /// Whether parsing the files may take long.
    pub(super) fn is_long(&self) -> bool {
        let found = [&self.config_file, &self.security_file];
        let kept = self
            .kept
            .iter()
            .flat_map(|kept| [&kept.config, &kept.security]);
        are_long(found) || kept.flatten().any(|bytes| bytes.len() > LONG)
    }
}

impl AgentConfigReconciler {
    pub(super) async fn observe_one(
        &self,
        uid: &Uid,
        purpose: Purpose,
    ) -> Result<Option<Snapshot>, ConfigError> {
        let Some(row) = self.read_row(uid).await? else {
            if purpose == Purpose::Pass {
                self.verified.forget(uid);
            }
            return Ok(None);
        };
        if row.deleted_at.is_some() || row.image_ref.is_none() {
            let (home, world) = (None, World::Going);
            return Ok(Some(Snapshot { row, home, world }));
        }
        let home = self.look(&row).await?;
        let world = match (self.verified.said(uid, &home), &row.held_by) {
            (_, Some(rollout)) if !has_news(&row) && self.is_unmoved(&row, home.as_ref()) => {
                World::Held(rollout.clone())
            }
            (Some(said), _) if !has_news(&row) => World::Unchanged(said),
            _ => self.read(&row, home.as_ref()).await?,
        };
        if self.is_behind(&row).await {
            return Err(ConfigError::Reconfigured);
        }
        Ok(Some(Snapshot { row, home, world }))
    }

    /// The row, which is no older than the configuration that the files follow from.
    async fn read_row(&self, uid: &Uid) -> Result<Option<Arc<AgentConfigRow>>, ConfigError> {
        match self.desired.row(uid).await? {
            Some(row) if self.is_behind(&row).await => Ok(self.desired.read(uid).await?),
            row => Ok(row),
        }
    }

    async fn is_behind(&self, row: &AgentConfigRow) -> bool {
        let (config, adapter) = (row.config_generation, row.adapter_generation);
        self.shared.is_newer(config, adapter).await
    }

    /// The user's directory, and which of the two files are in it.
    async fn look(&self, row: &AgentConfigRow) -> Result<Option<HomeLook>, ConfigError> {
        let agent = self.shared.adapters.agent(row.adapter_generation).await?;
        let files = [agent.config_file.as_str(), agent.security_file.as_str()];
        let data_dir = &self.shared.data_dir;
        match data_dir.look(&row.name, &row.uid, &files).await {
            Ok(home) => Ok(home),
            // Something else lies there: what it is, the reading says.
            Err(HomeError::Conflict(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn read(
        &self,
        row: &Arc<AgentConfigRow>,
        home: Option<&HomeLook>,
    ) -> Result<World, ConfigError> {
        let config = self.shared.config.at(row.config_generation).await?;
        let base_url = match self.base_url(&config).await? {
            Ok(base_url) => base_url,
            // That is said of the engine already, and for these files nothing follows from it.
            Err(_) if !has_news(row) && self.is_unmoved(row, home) => {
                let last = self.verified.last(&row.uid);
                // Nothing by this run of the service, which leaves it as it was said before.
                let said = last.map(|(said, _)| said).unwrap_or_default();
                return Ok(World::Unchanged(said));
            }
            Err(unknown) => return Ok(World::NoAddress(unknown)),
        };
        let adapter = self.shared.adapters.at(row.adapter_generation).await?;
        let agent = &adapter.index.agent;
        let owner = agent.home_owner(self.shared.options.service_user);
        match self
            .shared
            .data_dir
            .state(&row.name, &row.uid, owner)
            .await?
        {
            HomeState::Ready => {}
            other => return Ok(World::NoHome(other)),
        }
        // Made between the two questions.
        let Some(home) = home.map(|home| home.id.clone()) else {
            return Ok(World::NoHome(HomeState::Missing));
        };
        let paths = [agent.config_file.as_str(), agent.security_file.as_str()];
        let found = self
            .shared
            .data_dir
            .read_agent_files(&row.name, &row.uid, paths, LIMIT)
            .await;
        let [config_file, security_file] = match found {
            Ok(found) => found,
            Err(error) if is_unreadable(&error) => return Ok(World::Unreadable(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        let values = self.store.user_values(&row.uid).await?;
        let seen = Seen {
            token: self.store.mcp_token(row),
            chat_token: self.store.chat_token(row),
            adapter,
            config,
            values,
            base_url,
            home,
            config_file,
            security_file,
            kept: None,
        };
        let (migrates, mut seen) = if seen.is_long() {
            let row = Arc::clone(row);
            blocking(move || {
                let files = [&seen.config_file, &seen.security_file];
                (parse_noted(files, || seen.needs_migration(&row)), seen)
            })
            .await
        } else {
            (seen.needs_migration(row), seen)
        };
        if migrates {
            seen.kept = self.store.kept_files(&row.uid).await?;
        }
        Ok(World::Seen(Box::new(seen)))
    }

    /// Whether the files are where they were at the last reading; before the first one, where they were written.
    fn is_unmoved(&self, row: &AgentConfigRow, home: Option<&HomeLook>) -> bool {
        match self.verified.last(&row.uid) {
            Some((_, last)) => last.as_ref() == home,
            None => home.is_some_and(|home| {
                let written = row.facts.home.as_ref();
                // The other file is there only when something is secret.
                home.files.first() == Some(&true) && written.is_none_or(|id| *id == home.id)
            }),
        }
    }

    /// Where agents reach the service; `None`: nowhere.
    async fn base_url(
        &self,
        config: &Config,
    ) -> Result<Result<Option<String>, NoAddress>, DbError> {
        if let Some(url) = config.get(&keys::container::SERVICE_URL) {
            return Ok(Ok(Some(url)));
        }
        let Some(agents) = self.shared.options.agents else {
            return Ok(Ok(None));
        };
        let at = |ip| Ok(Some(format!("http://{}", SocketAddr::new(ip, agents.port))));
        if let Some(ip) = agents.ip {
            return Ok(at(ip));
        }
        let network = self.shared.view.network();
        let wanted = self.shared.wanted_network(config).await?;
        let state = self.shared.network_state(network.as_ref(), &wanted);
        let engine = &self.shared.compute.network;
        let reach = network.and_then(|network| engine.agents_reach_us(&network));
        Ok(match (state, reach) {
            (NetworkState::AsDesired, Some(Reach::Gateway(ip))) => at(ip),
            (NetworkState::AsDesired | NetworkState::Drifted, Some(Reach::Url(url))) => {
                Ok(Some(url))
            }
            (state, _) => Err(match (self.shared.view.connection(), state) {
                (Connection::Unusable(Reason::Pending, _), _) => NoAddress::NotConnected,
                (Connection::Unavailable(_) | Connection::Unusable(..), _) => {
                    NoAddress::EngineUnavailable
                }
                (Connection::Up, NetworkState::AsDesired) => {
                    NoAddress::Network(NetworkState::Missing)
                }
                (Connection::Up, state) => NoAddress::Network(state),
            }),
        })
    }
}

/// Whether there is a reason to read the files now.
fn has_news(row: &AgentConfigRow) -> bool {
    let facts = &row.facts;
    facts.generation < row.generation
        || row.deleted_at.is_some()
        || row.image_ref.is_none()
        // Nothing reports when a file has been mended.
        || facts.refused == Some(Reason::InvalidUserConfig)
}

/// Whether it is for the user to mend.
pub(crate) fn is_unreadable(error: &HomeError) -> bool {
    matches!(
        error,
        HomeError::NotRegular { .. }
            | HomeError::TooLarge { .. }
            | HomeError::UnsafePath { .. }
            | HomeError::Forbidden { .. }
    )
}
