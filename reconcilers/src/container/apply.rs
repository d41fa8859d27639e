//! Does one step. Every step may be repeated and may be cancelled at any await.

use std::time::Duration;

use engine::{ContainerSettings, EngineError, FirewallError, ForeignOwner};
use schema::condition::Reason;
use schema::error::DbError;
use schema::home::HomeError;
use schema::ids::Uid;

use super::ContainerReconciler;
use super::names::Names;
use super::plan::Action;
use super::settings;
use crate::runtime::{Classify, ErrorClass};
use crate::shared::probe::ProbeError;

/// How long an agent may take to end by itself before it is killed.
pub const STOP_GRACE: Duration = Duration::from_secs(10);

/// What observing or changing a user's container can fail with.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    /// The database failed.
    #[error("desired state cannot be read or written")]
    Db(#[from] DbError),
    /// The engine failed.
    #[error("{0}")]
    Engine(#[source] EngineError),
    /// A container that was listed a moment ago is gone.
    #[error("the container vanished while it was observed")]
    Vanished,
    /// Configuration or adapter changed.
    #[error("the configuration changed while the container was observed")]
    Reconfigured,
    /// A replacement could not be started; the previous container waits to be put back.
    #[error("the replacement cannot be started: {0}")]
    ReplacementRefused(String),
    /// The engine failed to start a container.
    #[error("the engine cannot start the container: {0}")]
    StartFailed(String),
    /// A container of that name exists that is not ours.
    #[error("{}", .owner.describe("container", .name))]
    NameConflict {
        /// The name.
        name: String,
        /// Its owner.
        owner: ForeignOwner,
    },
    /// The user's directory cannot be observed.
    #[error("the user's directory cannot be read")]
    Home(#[from] HomeError),
    /// The proof that engine and service see the same data directory failed.
    #[error(transparent)]
    DataDir(#[from] ProbeError),
    /// The packet filter of the host.
    #[error(transparent)]
    Firewall(#[from] FirewallError),
    /// The host cannot be restricted, and no container may be started without.
    #[error("{0}")]
    HostOpen(String),
}

impl From<EngineError> for ContainerError {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl Classify for ContainerError {
    fn classify(&self) -> (ErrorClass, Reason) {
        match self {
            Self::Db(error) => error.classify(),
            Self::Home(error) => error.classify(),
            Self::Engine(error) => error.classify(),
            Self::DataDir(error) => error.classify(),
            Self::Firewall(error) => error.classify(),
            Self::Vanished | Self::Reconfigured => (ErrorClass::Conflict, Reason::Retrying),
            // The next pass says it, and starts nothing.
            Self::HostOpen(_) => (ErrorClass::Conflict, Reason::HostOpen),
            Self::ReplacementRefused(_) => (ErrorClass::Conflict, Reason::ReplacementFailed),
            Self::StartFailed(_) => (ErrorClass::Transient, Reason::StartFailed),
            Self::NameConflict { .. } => (ErrorClass::Terminal, Reason::NameConflict),
        }
    }
}

impl ContainerReconciler {
    pub(super) async fn apply_one(&self, uid: &Uid, action: &Action) -> Result<(), ContainerError> {
        let result = self.perform(uid, action).await;
        // Whatever happened, what was known of this user is no longer trusted.
        match action {
            Action::AddFinalizer
            | Action::ReleaseFinalizer
            | Action::ReleaseName(_)
            | Action::SaveFacts(_)
            | Action::NoteEnd { .. } => {
                self.desired.mark(uid);
            }
            Action::NoteReplacedHome
            | Action::StartPull { .. }
            | Action::VerifyDataDir { .. }
            | Action::RestrictHost { .. } => {}
            Action::SeedHome { .. }
            | Action::Create { .. }
            | Action::Start { .. }
            | Action::Stop { .. }
            | Action::Remove { .. }
            | Action::Rename { .. } => self.shared.view.mark_stale(uid),
        }
        if let Err(ContainerError::Engine(error)) = &result {
            self.shared.view.note_error(error);
        }
        result
    }

    async fn perform(&self, uid: &Uid, action: &Action) -> Result<(), ContainerError> {
        let engine = &self.shared.compute.containers;
        match action {
            Action::AddFinalizer => Ok(self.store.add_container_finalizer(uid).await?),
            Action::ReleaseFinalizer => Ok(self.store.purge_container(uid).await?),
            Action::ReleaseName(name) => Ok(self.store.release_previous_name(uid, name).await?),
            Action::SaveFacts(facts) => Ok(self.store.save_container_facts(uid, facts).await?),
            Action::NoteEnd { facts, end } => {
                Ok(self.store.note_container_end(uid, facts, end).await?)
            }
            // The event is all there is to it.
            Action::NoteReplacedHome => Ok(()),
            Action::StartPull { reference } => Ok(self.shared.start_pull(reference, "").await?),
            Action::VerifyDataDir { image } => Ok(self.shared.probe.run(image).await?),
            Action::RestrictHost { rules } => {
                self.shared.host_access.restrict(rules).await?;
                let refusal = self.shared.host_access.refusal(rules);
                refusal.map_or(Ok(()), |why| Err(ContainerError::HostOpen(why)))
            }
            Action::SeedHome { seed } => self.seed(uid, seed).await,
            Action::Create { name, settings } => self.create(uid, name, settings).await,
            Action::Start { container } => self.start(uid, container).await,
            Action::Stop { container } => Ok(engine.stop(container, STOP_GRACE).await?),
            Action::Remove { container } => Ok(engine.remove(container).await?),
            Action::Rename { container, name } => match engine.rename(container, name).await {
                Err(EngineError::NameTaken(_)) => self.name_taken(uid, name).await,
                other => Ok(other?),
            },
        }
    }

    async fn create(
        &self,
        uid: &Uid,
        name: &str,
        settings: &ContainerSettings,
    ) -> Result<(), ContainerError> {
        match self.shared.compute.containers.create(name, settings).await {
            Ok(_) => Ok(()),
            Err(EngineError::NameTaken(_)) => self.name_taken(uid, name).await,
            Err(error) => Err(error.into()),
        }
    }

    /// A name is in use: by a container of this user that the last listing did not show yet, which is
    /// observed again, or by a foreign one, which is left alone.
    pub(super) async fn name_taken(&self, uid: &Uid, name: &str) -> Result<(), ContainerError> {
        match self.shared.compute.containers.inspect(name).await? {
            None => Err(ContainerError::Vanished),
            Some(details)
                if settings::owned_by(&details.container.labels, self.shared.view.owner(), uid) =>
            {
                Err(ContainerError::Vanished)
            }
            Some(details) => Err(ContainerError::NameConflict {
                name: name.to_owned(),
                owner: ForeignOwner::of(&details.container.labels, self.shared.view.owner()),
            }),
        }
    }

    async fn start(&self, uid: &Uid, container: &str) -> Result<(), ContainerError> {
        let engine = &self.shared.compute.containers;
        // One that was made just before is known by its name, which may be somebody else's by now; an
        // id is never used again.
        let found = engine
            .inspect(container)
            .await?
            .map(|found| found.container);
        let id = match found {
            None => return Err(ContainerError::Vanished),
            Some(found) if !settings::owned_by(&found.labels, self.shared.view.owner(), uid) => {
                return Err(ContainerError::NameConflict {
                    name: container.to_owned(),
                    owner: ForeignOwner::of(&found.labels, self.shared.view.owner()),
                });
            }
            Some(found) => found.id,
        };
        let started = engine.start(&id).await;
        match &started {
            Ok(()) => self.failed_starts.forget(uid),
            Err(EngineError::Internal(_)) => self.failed_starts.count(uid, &id),
            Err(_) => {}
        }
        match started {
            // Something it was made with is gone, such as the network: it can only be recreated.
            Err(EngineError::NotFound(what)) => {
                engine.remove(&id).await?;
                self.shared.view.refresh_network().await?;
                Err(EngineError::NotFound(what).into())
            }
            // With the previous container aside, the next pass must not wait: it puts that one back.
            Err(EngineError::Refused(why)) if self.previous_waits(uid).await => {
                Err(ContainerError::ReplacementRefused(why))
            }
            Err(EngineError::Internal(why)) => Err(ContainerError::StartFailed(why)),
            other => Ok(other?),
        }
    }

    async fn previous_waits(&self, uid: &Uid) -> bool {
        match self
            .shared
            .compute
            .containers
            .list(self.shared.view.owner(), Some(uid.as_str()))
            .await
        {
            Ok(containers) => containers.iter().any(|c| Names::is_previous(&c.name)),
            Err(_) => false,
        }
    }
}
