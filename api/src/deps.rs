//! Everything handlers need from outside, handed to each of them.

use std::sync::Arc;

use schema::adapter::store::ActiveAdapter;
use schema::audit;
use schema::clock::SharedClock;
use schema::reader::Reader;
use schema::secrets::MasterKey;
use schema::skill_repository::Checkouts;
use schema::skill_store::SkillStore;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::api_token::ApiTokens;
use crate::auth::login_limit::LoginLimit;
use crate::auth::password::PasswordPool;
use crate::auth::session_ends::SessionEnds;
use crate::auth::unknown_proxy::UnknownProxies;
use crate::auth::{Authenticator, Signer};
use crate::chat::Chats;
use crate::console::Console;
use crate::files::Files;
use crate::follows::FollowLimit;
use crate::limits::TURN;
use crate::mcp::Mcp;
use crate::plans::Plans;
use crate::ports::{
    ContainerExec, ContainerInspect, ContainerLogs, ContainerStats, Directory, EngineHealth,
    Health, IdentityProvider, Images, Leadership, Models, Pulls, Reconcilers, RegistryTags,
};
use crate::quota::Arrivals;
use crate::replica::{Processes, Replicas};
use crate::settings::WebSettings;
use crate::tag_cache::TagCache;
use crate::watch::WatchHub;

/// The service's version, as the health check reports it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Rights to work that one caller at a time may do.
#[derive(Debug)]
pub struct Turns {
    /// The right to verify the audit trail, all of which is read.
    pub(crate) audit_check: Arc<Semaphore>,
    /// The right to read an uploaded adapter package, which takes many times its size.
    pub(crate) adapter_check: Arc<Semaphore>,
    /// The right to take a skill into the store, which keeps a disk busy.
    pub(crate) skill_import: Arc<Semaphore>,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            audit_check: TURN.semaphore(),
            adapter_check: TURN.semaphore(),
            skill_import: TURN.semaphore(),
        }
    }
}

/// What handlers and the dispatcher need from outside.
pub struct Dependencies {
    /// Wall-clock time.
    pub clock: SharedClock,
    /// The database, to read from.
    pub db: Reader,
    /// Writes to it, with an entry in the audit trail of what was asked (see
    /// [`crate::input::Meta::begin`]). There is no other way for a handler to write.
    pub writer: audit::Writer,
    /// Work that one caller at a time may do.
    pub turns: Turns,
    /// The right to plan the next reconciliation of a user's container for that user: a few at a time, since that asks the engine.
    pub plans: Plans,
    /// The store of skills.
    pub skills: Arc<SkillStore>,
    /// The files of repositories.
    pub checkouts: Arc<Checkouts>,
    /// The files of users' workspaces.
    pub files: Files,
    /// What has arrived in workspaces since they were measured.
    pub arrivals: Arrivals,
    /// Seals and opens secrets at rest.
    pub master_key: Arc<MasterKey>,
    /// The adapter in effect.
    pub adapter: ActiveAdapter,
    /// Changes whenever this process has saved a status: whoever waits for an object looks again.
    pub status_ticks: watch::Receiver<u64>,
    /// The latest snapshot of the settings the HTTP layer obeys.
    pub settings: watch::Receiver<Arc<WebSettings>>,
    /// Takes new settings at once when they are saved here (see [`crate::settings::publish`]).
    pub settings_sender: watch::Sender<Arc<WebSettings>>,
    /// The environment variable that decides what is logged in place of `log.level`, if one does.
    pub log_override: Option<&'static str>,
    /// Whether the service's own listener speaks TLS.
    pub tls: bool,
    /// Signs sessions and CSRF tokens.
    pub signer: Signer,
    /// Looks up sessions.
    pub authenticator: Arc<dyn Authenticator>,
    /// Hashes passwords.
    pub passwords: PasswordPool,
    /// The proxy, if one is not configured.
    pub unknown_proxies: UnknownProxies,
    /// Limits sign-in attempts.
    pub login_limit: LoginLimit,
    /// Limits wrong API tokens, and remembers the uses that were recorded.
    pub api_tokens: ApiTokens,
    /// The console; `None` when the program was built without it.
    pub console: Option<Arc<Console>>,
    /// News of accounts whose sessions have ended.
    pub session_ends: SessionEnds,
    /// Bounds how many logs are followed at once.
    pub follows: FollowLimit,
    /// Reports changes to watchers.
    pub watch: WatchHub,
    /// The MCP endpoint, and the executors that are connected.
    pub mcp: Arc<Mcp>,
    /// This replica, and calls to the other replicas.
    pub replicas: Replicas,
    /// The processes that serve the installation.
    pub processes: Processes,
    /// Conversations with agents that are in use.
    pub chats: Chats,
    /// Container logs.
    pub logs: Arc<dyn ContainerLogs>,
    /// Programs in containers.
    pub exec: Arc<dyn ContainerExec>,
    /// Container facts.
    pub inspect: Arc<dyn ContainerInspect>,
    /// Container resource use.
    pub stats: Arc<dyn ContainerStats>,
    /// Images on the engine.
    pub images: Arc<dyn Images>,
    /// Pulls of this process.
    pub pulls: Arc<dyn Pulls>,
    /// Bounds how many pulls and rollouts are viewed at once.
    pub viewers: FollowLimit,
    /// Tags of registries.
    pub registry: Arc<dyn RegistryTags>,
    /// What registries have said lately.
    pub tags: TagCache,
    /// The directory that users come from.
    pub directory: Arc<dyn Directory>,
    /// The identity provider through which users sign in.
    pub provider: Arc<dyn IdentityProvider>,
    /// Providers of models.
    pub models: Arc<dyn Models>,
    /// The engine's state.
    pub engine: Arc<dyn EngineHealth>,
    /// The reconcilers of this process.
    pub reconcilers: Arc<dyn Reconcilers>,
    /// The leader.
    pub leadership: Arc<dyn Leadership>,
    /// How the parts of the service are.
    pub health: Arc<dyn Health>,
    /// Tasks that outlive a request; the service waits for them when it stops.
    pub tasks: TaskTracker,
    /// Cancelled when the service stops. Event streams end by it.
    pub shutdown: CancellationToken,
}

impl Dependencies {
    /// The present settings.
    pub fn settings(&self) -> Arc<WebSettings> {
        self.settings.borrow().clone()
    }
}

/// [`Dependencies`], shared.
pub type Deps = Arc<Dependencies>;
