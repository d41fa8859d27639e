//! Reads everything the files of one user follow from, and the files.
//!
//! In a no-op pass that is the cached row alone: the files are looked at when something has changed, at the
//! start of the service, when an operator asks for it, and once in a while.

use std::sync::{Arc, OnceLock};

use schema::adapter::Adapter;
use schema::agent_config::{AgentConfigRow, KeptFiles, UserValues};
use schema::condition::{self, ConditionType, Reason};
use schema::config::Config;
use schema::home::{FoundFile, HomeError, HomeState};
use schema::ids::Uid;
use secrecy::SecretString;

use super::{Action, AgentConfigReconciler, ConfigError, plan};
use crate::engine::plan::NetworkState;
use crate::engine::view::Connection;
use crate::runtime::{self, Plan};
use crate::stores::Marks;

/// The longest file that is read. What the renderer takes is a little less, and it says so.
pub const LIMIT: u64 = 5 << 20;

/// Desired and observed state of one user's files. It holds secrets, so it cannot be printed.
pub struct Snapshot {
    /// What is desired.
    pub row: Arc<AgentConfigRow>,
    /// What is there.
    pub world: World,
    /// What follows from both, once somebody has asked: rendering is most of the work of a pass.
    plan: OnceLock<Plan<Action>>,
}

impl Snapshot {
    /// What is desired, and what is there.
    pub fn new(row: Arc<AgentConfigRow>, world: World) -> Self {
        Self {
            row,
            world,
            plan: OnceLock::new(),
        }
    }

    /// The plan for it, which is made once.
    pub fn plan(&self) -> &Plan<Action> {
        self.plan.get_or_init(|| plan::plan(self))
    }
}

/// What is there.
pub enum World {
    /// The user is going: nothing is asked.
    Going,
    /// Not looked at: nothing has changed since the last look, of which this was said.
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
    /// Where agents reach the service, as a URL.
    pub base_url: String,
    /// The configuration file, as it is.
    pub config_file: Option<FoundFile>,
    /// The security file, as it is.
    pub security_file: Option<FoundFile>,
    /// The files of before the last migration; read only where the image reads another version than they are of.
    pub kept: Option<KeptFiles>,
}

impl AgentConfigReconciler {
    /// One scan of the database.
    pub(super) async fn observe_keys(&self) -> Result<Vec<Uid>, ConfigError> {
        let ticket = self.desired.begin();
        let rows = self.store.agent_configs().await?;
        let keys = rows.iter().map(|row| row.uid.clone()).collect();
        let rows = rows.into_iter().map(|row| (row.uid.clone(), row));
        self.desired.replace(ticket, Marks::Answered, rows);
        Ok(keys)
    }

    async fn row(&self, uid: &Uid) -> Result<Option<Arc<AgentConfigRow>>, ConfigError> {
        if let Some(row) = self.desired.get(uid) {
            return Ok(row);
        }
        let ticket = self.desired.begin();
        let row = self.store.agent_config(uid).await?.map(Arc::new);
        self.desired.put(uid, ticket, row.clone());
        Ok(row)
    }

    pub(super) async fn observe_one(&self, uid: &Uid) -> Result<Option<Snapshot>, ConfigError> {
        let Some(row) = self.row(uid).await? else {
            self.looks.again(uid);
            return Ok(None);
        };
        if let Some(said) = self.looks.said(uid)
            && !has_news(&row)
        {
            let world = World::Unchanged(said);
            return Ok(Some(Snapshot::new(row, world)));
        }
        let world = self.look(&row).await?;
        let snapshot = Snapshot::new(row, world);
        self.note(uid, &snapshot);
        Ok(Some(snapshot))
    }

    /// A look counts once it has found nothing to do; a dry run is none.
    fn note(&self, uid: &Uid, snapshot: &Snapshot) {
        if runtime::is_dry_run() {
            return;
        }
        if matches!(snapshot.world, World::Unchanged(_)) {
            return;
        }
        let looked = matches!(snapshot.world, World::Seen(_) | World::Unreadable(_));
        let plan = snapshot.plan();
        let ready = condition::find(&plan.conditions, ConditionType::Ready);
        match ready {
            Some(ready) if looked && plan.actions.is_empty() => {
                self.looks.done(uid, &ready.message);
            }
            _ => self.looks.again(uid),
        }
    }

    async fn look(&self, row: &AgentConfigRow) -> Result<World, ConfigError> {
        if row.deleted_at.is_some() || row.image_ref.is_none() {
            return Ok(World::Going);
        }
        let config = self.config.at(row.config_generation).await?;
        let base_url = match self.base_url(&config) {
            Ok(base_url) => base_url,
            // That is told of the engine already, and for these files nothing follows from it.
            Err(_) if !has_news(row) => {
                return Ok(World::Unchanged(self.looks.last_said(&row.uid)));
            }
            Err(unknown) => return Ok(World::NoAddress(unknown)),
        };
        let adapter = self.adapters.at(row.adapter_generation).await?;
        let agent = &adapter.index.agent;
        let owner = agent.home_owner(self.options.service_user);
        match self.data_dir.state(&row.name, &row.uid, owner).await? {
            HomeState::Ready => {}
            other => return Ok(World::NoHome(other)),
        }
        let paths = [agent.config_file.as_str(), agent.security_file.as_str()];
        let found = self
            .data_dir
            .read_agent_files(&row.name, &row.uid, paths, LIMIT)
            .await;
        let [config_file, security_file] = match found {
            Ok(found) => found,
            Err(error) if is_unreadable(&error) => return Ok(World::Unreadable(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        let values = self.store.agent_values(&row.uid).await?;
        let mut seen = Seen {
            token: self.store.mcp_token(row),
            adapter,
            config,
            values,
            base_url,
            config_file,
            security_file,
            kept: None,
        };
        if seen.needs_migration(row) {
            seen.kept = self.store.kept_files(&row.uid).await?;
        }
        Ok(World::Seen(Box::new(seen)))
    }

    /// Where agents reach the service.
    fn base_url(&self, config: &Config) -> Result<String, NoAddress> {
        if let Some(url) = config.service_url() {
            return Ok(url);
        }
        let network = self.view.network();
        let subnet = config.text("container.network_subnet");
        let state = NetworkState::of(network.as_ref(), self.view.owner(), &subnet);
        let gateway = network.and_then(|network| network.gateway);
        match (state, gateway) {
            (NetworkState::AsWanted, Some(gateway)) => {
                Ok(format!("http://{gateway}:{}", self.options.agent_port))
            }
            (_, _) if self.view.connection() != Connection::Up => Err(NoAddress::EngineUnavailable),
            (NetworkState::AsWanted, None) => Err(NoAddress::Network(NetworkState::Missing)),
            (state, _) => Err(NoAddress::Network(state)),
        }
    }
}

/// Whether there is a reason to look now.
fn has_news(row: &AgentConfigRow) -> bool {
    let facts = &row.facts;
    facts.generation < row.generation
        || row.deleted_at.is_some()
        || row.image_ref.is_none()
        // Nobody tells when a file has been mended.
        || facts.refused == Some(Reason::InvalidUserConfig)
}

/// Whether it is for the user to mend.
pub(super) fn is_unreadable(error: &HomeError) -> bool {
    matches!(
        error,
        HomeError::NotRegular { .. }
            | HomeError::TooLarge { .. }
            | HomeError::UnsafePath { .. }
            | HomeError::Forbidden { .. }
    )
}
