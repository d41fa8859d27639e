//! What handlers ask of the world while a request waits: live reads that no table can answer.
//!
//! The binary implements these traits on the drivers and on the runtime. Handlers never see a
//! driver, and never write through a port.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use schema::condition::Reason;
use schema::config::{Config, HostAccess, LanAccess};
use schema::directory::SyncScope;
use schema::ids::{Timestamp, Uid};
use schema::image::{ImageReference, PullLog, RunningPull};
pub use schema::live::{
    CheckStep, CheckedGroup, ContainerDetails, ContainerState, DirectoryCheck, DirectoryListing,
    DirectoryPerson, DirectoryUser, DryRun, ExecSettings, LiveNumbers, LoadPoint, LocalImage,
    LogOptions, ModelHost, ModelQuestion, ModelVerdict, Network, NextReconciliation, PendingSignIn,
    ProvidedIdentity, ProviderFailure, RegistryCredentials, SyncPlan, SyncRename, Trigger, Usage,
};
use secrecy::SecretString;
use serde::Serialize;
use tokio::io::AsyncWrite;
use url::Url;
use utoipa::ToSchema;

use crate::error::{ApiError, Cause};

/// Why a live read failed.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The engine can't be reached, as the cause says itself.
    #[error(transparent)]
    EngineUnavailable(Cause),
    /// The engine does not do this, as the sentence says.
    #[error("{0}")]
    Unsupported(&'static str),
    /// Anything else.
    #[error("a live read failed")]
    Failed(#[source] Cause),
}

impl From<PortError> for ApiError {
    fn from(error: PortError) -> Self {
        match error {
            PortError::EngineUnavailable(_) => Self::EngineUnavailable,
            PortError::Unsupported(sentence) => Self::conflict("not_supported", sentence),
            PortError::Failed(_) => Self::internal(error),
        }
    }
}

/// A stream of log pieces, oldest first: bytes as the agent wrote them, each line prefixed with its
/// time, in bounded pieces.
pub type LogStream = BoxStream<'static, Result<Bytes, PortError>>;

/// Reads the logs of users' containers.
#[async_trait]
pub trait ContainerLogs: Send + Sync + 'static {
    /// The log of a user's container; `None` when the user has no container now.
    ///
    /// # Errors
    /// When the engine can't be asked.
    async fn logs(&self, user: &Uid, query: LogOptions) -> Result<Option<LogStream>, PortError>;
}

/// Reads what the engine knows of users' containers.
#[async_trait]
pub trait ContainerInspect: Send + Sync + 'static {
    /// The engine's facts; `None` when the user has no container now.
    ///
    /// # Errors
    /// When the engine can't be asked.
    async fn inspect(&self, user: &Uid) -> Result<Option<ContainerDetails>, PortError>;
}

/// Output of a program: pieces of at most 64 KiB, and whether each is of standard error.
pub type ExecOutput = BoxStream<'static, Result<(bool, Bytes), PortError>>;

/// A program that runs in a user's container.
pub struct Execution {
    /// Its input; shutting it down is the end of it.
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
    /// Its output; ends with it.
    pub output: ExecOutput,
    /// Resizes its terminal, reports its exit code, and ends it.
    pub control: Arc<dyn ExecControl>,
}

/// Acts on a program that runs in a user's container.
#[async_trait]
pub trait ExecControl: Send + Sync + 'static {
    /// Gives its terminal another size, if it has one.
    async fn resize(&self, columns: u16, rows: u16);
    /// The code with which it has ended.
    ///
    /// # Errors
    /// When the engine can't be asked, or reports that it still runs.
    async fn exit_code(&self) -> Result<i64, PortError>;
    /// Ends it, and what it has started. Returns whether the engine reports that it has ended.
    async fn end(&self) -> bool;
}

/// Runs programs in users' containers.
#[async_trait]
pub trait ContainerExec: Send + Sync + 'static {
    /// Returns whether the user's container runs.
    ///
    /// # Errors
    /// When the engine can't be asked.
    async fn is_running(&self, user: &Uid) -> Result<bool, PortError>;
    /// Starts a program; `None` when the user's container does not run.
    ///
    /// # Errors
    /// When the engine can't be asked, or refuses.
    async fn start(
        &self,
        user: &Uid,
        settings: &ExecSettings,
    ) -> Result<Option<Execution>, PortError>;
}

/// Samples the resource use of users' containers.
#[async_trait]
pub trait ContainerStats: Send + Sync + 'static {
    /// One sample; `None` when the user's container does not run.
    ///
    /// # Errors
    /// When the engine can't be asked.
    async fn stats(&self, user: &Uid) -> Result<Option<Usage>, PortError>;
}

/// A fault of a part of the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Fault {
    /// Since when.
    pub since: Timestamp,
    /// Why, stable for programs.
    pub reason: Reason,
    /// What is wrong; public: no names of users, no addresses, no paths.
    pub message: String,
    /// Whether the service should get no requests meanwhile.
    pub fatal: bool,
}

/// A part of the service, and what is wrong with it, if anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PartHealth {
    /// The part, as `/readyz` names it.
    pub part: String,
    /// What is wrong with it.
    pub fault: Option<Fault>,
}

/// The space of a file system, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = DiskSpace)]
pub struct Space {
    /// Space that the service may still use.
    pub free: u64,
    /// All of it.
    pub total: u64,
}

/// Scheduled backups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct BackupState {
    /// Start of the newest complete backup; null when there is none.
    pub last_success: Option<Timestamp>,
    /// Time of the last failure; null when no backup has failed since the newest complete one.
    pub last_failure: Option<Timestamp>,
    /// Reason of that failure; empty without one.
    pub why: String,
}

/// Knows how the parts of the service are, besides database, engine and leadership.
pub trait Health: Send + Sync + 'static {
    /// All parts, in a fixed order.
    fn parts(&self) -> Vec<PartHealth>;
    /// The space of the data directory's file system, as last measured; `None` before that, and when it cannot be.
    fn disk(&self) -> Option<Space>;
    /// Scheduled backups, as last seen; `None` while there is no schedule.
    fn backup(&self) -> Option<BackupState> {
        None
    }
    /// Warning about the directory of scheduled backups, with its remedy.
    fn backup_warning(&self) -> Option<String> {
        None
    }
    /// Warnings of certificates that end soon, each with its remedy.
    fn certificate_warnings(&self) -> Vec<String> {
        Vec::new()
    }
    /// Decides by flags of the server whether backups may be kept in a directory.
    ///
    /// # Errors
    /// The rule and the remedy.
    fn permit_backups(&self, _directory: &Path) -> Result<(), String> {
        Ok(())
    }
    /// Checks that backups can be kept in a directory now. Asks the file system, so it blocks.
    ///
    /// # Errors
    /// The rule and the remedy.
    fn check_backups(&self, _directory: &Path) -> Result<(), String> {
        Ok(())
    }
}

/// Whether the engine was reachable at the last attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct EngineState {
    /// It was reachable.
    pub available: bool,
    /// Its version, or why it was not reachable.
    pub message: String,
}

/// Knows the state of the engine without asking it.
pub trait EngineHealth: Send + Sync + 'static {
    /// The latest known state.
    fn engine(&self) -> EngineState;
    /// The number of processors of its host; `None` before it was reachable.
    fn cpus(&self) -> Option<u32>;
    /// The agents' network as last seen; `None` when there is none.
    fn network(&self) -> Option<Network>;
    /// The access that agents have to the host and to the networks behind it where these are configured.
    fn effective_access(&self, host: HostAccess, lan: LanAccess) -> (HostAccess, LanAccess) {
        (host, lan)
    }
    /// Processors and memory of all agents over the last hour, the oldest first.
    fn load(&self) -> Vec<LoadPoint>;
}

/// Who runs the reconcilers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct LeaderState {
    /// Whether it is this process.
    pub leading: bool,
    /// The name of the leader, when known.
    pub holder: Option<String>,
}

/// Knows who runs the reconcilers.
pub trait Leadership: Send + Sync + 'static {
    /// The latest known state.
    fn leader(&self) -> LeaderState;
}

/// What an operator sees of the reconcilers of this process, and may ask of them.
#[async_trait]
pub trait Reconcilers: Send + Sync + 'static {
    /// Live numbers of each reconciler, by name.
    fn summaries(&self) -> Vec<(&'static str, LiveNumbers)>;
    /// What the next pass over an object would do.
    /// `None`: there is no such reconciler, or nothing is desired and nothing is there.
    ///
    /// # Errors
    /// A sentence that says why the object cannot be observed now.
    async fn dry_run(&self, reconciler: &str, key: &str) -> Result<Option<DryRun>, String>;
    /// When an object is reconciled next; `None` on a standby, which does not know.
    fn next_reconciliation(&self, reconciler: &str, key: &str) -> Option<NextReconciliation>;
    /// Asks for a pass over one object at once, back-off or not.
    fn retry(&self, reconciler: &str, key: &str);
    /// Asks one reconciler, or all, to reconcile everything at once.
    fn wake(&self, reconciler: Option<&str>);
}

/// Limits of what an engine does with images, as sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImageLimits {
    /// Images that its list leaves out; `None`: none.
    pub inventory: Option<&'static str>,
    /// Says how images are removed, where the engine does not remove them on request.
    pub removal: Option<&'static str>,
}

/// Reads which images the engine has.
#[async_trait]
pub trait Images: Send + Sync + 'static {
    /// Limits of the engine; by default there are none.
    fn limits(&self) -> ImageLimits {
        ImageLimits::default()
    }

    /// All of them, in one question.
    ///
    /// # Errors
    /// When the engine can't be asked.
    async fn list(&self) -> Result<Vec<LocalImage>, PortError>;
}

/// Knows the pulls of this process.
pub trait Pulls: Send + Sync + 'static {
    /// The log of the pull of a full reference; `None` when there is none here, now or within the last
    /// minute.
    fn log(&self, reference: &str) -> Option<Arc<PullLog>>;
    /// Pulls that wait or run, by reference.
    fn running(&self) -> Vec<RunningPull>;
}

/// Why a registry did not list its tags: a sentence that names the registry and says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RegistryError(pub String);

/// Asks registries which tags there are.
#[async_trait]
pub trait RegistryTags: Send + Sync + 'static {
    /// All tags of the repository of `image`, in any order.
    ///
    /// # Errors
    /// When the registry can't be asked, refuses, or answers with something else.
    async fn tags(
        &self,
        image: &ImageReference,
        credentials: Option<RegistryCredentials>,
        plain_http: bool,
    ) -> Result<Vec<String>, RegistryError>;
}

/// Why the directory gave no answer: a sentence for administrators that says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DirectoryFailure(pub String);

/// Users and groups that a test of a directory looks for; by default all.
#[derive(Debug, Clone, Default)]
pub struct DirectoryWanted {
    /// Only this user.
    pub user: Option<String>,
    /// Only this group.
    pub group: Option<String>,
    /// A few of them are enough: a directory may have more than can be listed while the caller waits.
    pub few: bool,
}

/// Asks the directory that users come from.
#[async_trait]
pub trait Directory: Send + Sync + 'static {
    /// Whoever has this name and password; `None` for every reason for which somebody is not let in. Answers within five
    /// seconds.
    ///
    /// # Errors
    /// When the directory can't be asked.
    async fn sign_in(
        &self,
        name: &str,
        password: &SecretString,
    ) -> Result<Option<DirectoryPerson>, DirectoryFailure>;

    /// All users, now, and the entries of users that are left out.
    ///
    /// # Errors
    /// When the directory can't be asked, or the answer is not complete.
    async fn users(&self) -> Result<DirectoryListing, DirectoryFailure>;

    /// Tests the settings of a configuration, step by step.
    ///
    /// # Errors
    /// When a setting is missing.
    async fn check(
        &self,
        config: &Config,
        wanted: DirectoryWanted,
    ) -> Result<DirectoryCheck, DirectoryFailure>;

    /// What a synchronisation would do.
    ///
    /// # Errors
    /// As [`Self::users`].
    async fn plan(&self, scope: SyncScope) -> Result<SyncPlan, DirectoryFailure>;
}

/// Asks providers of models.
#[async_trait]
pub trait Models: Send + Sync + 'static {
    /// Returns the outcome of asking a model for one token, within 15 seconds.
    async fn try_model(&self, question: &ModelQuestion) -> ModelVerdict;

    /// Returns the addresses of a provider's host; none for a name that is not resolved within two seconds.
    async fn locate(&self, address: &Url) -> Vec<ModelHost>;
}

/// Asks the identity provider through which users sign in.
#[async_trait]
pub trait IdentityProvider: Send + Sync + 'static {
    /// A new sign-in, and the address to which the browser goes for it; `again`: the provider asks even whoever is signed in
    /// there.
    ///
    /// # Errors
    /// When the provider can't be asked.
    async fn begin(&self, again: bool) -> Result<(String, PendingSignIn), ProviderFailure>;

    /// Who has signed in, by the code that the browser has brought back, and who has issued that, if it says so.
    ///
    /// # Errors
    /// When the provider can't be asked, or what it sends proves nothing.
    async fn finish(
        &self,
        pending: &PendingSignIn,
        code: SecretString,
        issuer: Option<String>,
    ) -> Result<ProvidedIdentity, ProviderFailure>;

    /// Whether the settings of a configuration work, step by step.
    ///
    /// # Errors
    /// The key that is not set.
    async fn check(&self, config: &Config) -> Result<Vec<CheckStep>, &'static str>;
}
