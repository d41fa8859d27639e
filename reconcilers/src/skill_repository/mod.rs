//! The skill-repository reconciler: the files of each repository's branch or tag are in the data directory.
//!
//! Owns: `skill-repositories/<uid>/`; the `skill_repository_facts` rows. Who else writes: nobody. Installations read from
//! there.
//!
//! Invariants:
//! - each request is answered by one fetch that succeeds, or ended by the first that fails for good; nothing is fetched
//!   without a request but what was fetched and is gone;
//! - the files of a commit are there completely or not at all, and those of before stay until then;
//! - what is there of a repository that has no row, such as what a fetch wrote while it was removed, is removed;
//! - a host that showed a key is trusted with no other until somebody says so.
//!
//! Layout: [`plan`] decides; fetches run in [`clones`](crate::shared::clones).

pub mod plan;
#[cfg(test)]
mod plan_tests;
mod store;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use schema::condition::Reason;
use schema::config::keys;
use schema::error::{DbError, chain};
use schema::home::HomeError;
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::skill_repository::{Credential, LISTING, RepositoryRow};

use crate::drivers::git::{Credentials, Remote};
use crate::runtime::{Classify, Controllers, ErrorClass, Plan, Purpose, Reconciler};
use crate::shared::Shared;
use crate::shared::clones::Fetch;
use crate::stores::{Desired, Rows};

pub use plan::{Action, Repository, Snapshot};
pub use store::RepositoryStore;

/// Starts the reconciler of repositories.
pub fn register(
    store: Arc<dyn RepositoryStore>,
    shared: &Arc<Shared>,
    controllers: &mut Controllers<'_>,
) {
    controllers.add(RepositoryReconciler::new(store, Arc::clone(shared)));
}

/// Reconciles the files of repositories.
pub struct RepositoryReconciler {
    store: Arc<dyn RepositoryStore>,
    shared: Arc<Shared>,
    desired: Desired<RepositoryRow>,
}

impl std::fmt::Debug for RepositoryReconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RepositoryReconciler")
            .finish_non_exhaustive()
    }
}

/// What observing a repository's files or removing them can fail with.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// The database failed.
    #[error("desired state cannot be read or written")]
    Db(#[from] DbError),
    /// The files failed.
    #[error("{}", chain(.0))]
    Files(#[from] HomeError),
}

impl Classify for RepositoryError {
    fn classify(&self) -> (ErrorClass, Reason) {
        match self {
            Self::Db(error) => error.classify(),
            Self::Files(error) => error.classify(),
        }
    }
}

impl RepositoryReconciler {
    /// A reconciler that has read nothing yet.
    pub fn new(store: Arc<dyn RepositoryStore>, shared: Arc<Shared>) -> Self {
        let rows: Arc<dyn Rows<RepositoryRow>> = store.clone();
        Self {
            store,
            shared,
            desired: Desired::new(rows),
        }
    }

    async fn start(&self, uid: &Uid, row: &RepositoryRow) -> Result<(), RepositoryError> {
        let config = self.shared.config.newest().await?;
        let remote = |credentials| Remote {
            url: row.url.clone(),
            reference: row.reference.clone(),
            ref_type: row.ref_type,
            credentials,
            known_hosts: row.trusted_hosts().map(str::to_owned),
            allow_private: config.get(&keys::skills::ALLOW_PRIVATE_HOSTS),
        };
        let remotes = match row.public {
            true => vec![remote(None)],
            false => {
                let credentials = self.store.credentials(uid).await?;
                credentials
                    .into_iter()
                    .map(|it| remote(Some(sent(it))))
                    .collect()
            }
        };
        let here = match &row.facts.commit_id {
            Some(commit) => {
                let there = self.shared.data_dir.has_checkout(uid, commit).await?;
                there.then(|| commit.clone())
            }
            None => None,
        };
        self.shared.clones.start(Fetch {
            uid: uid.clone(),
            name: row.name.to_string(),
            token: row.pull_token.clone(),
            remotes,
            here,
            relist: row.facts.listing != LISTING,
        });
        Ok(())
    }
}

fn sent(credential: Credential) -> Credentials {
    let username = match credential.username.is_empty() {
        true => credential.provider.default_username().to_owned(),
        false => credential.username,
    };
    Credentials {
        username,
        secret: credential.secret,
    }
}

impl Reconciler for RepositoryReconciler {
    const NAME: &'static str = "skill-repository";
    const KIND: Kind = Kind::SkillRepository;
    const RESYNC: Duration = Duration::from_secs(60);
    type Key = Uid;
    type Snapshot = Snapshot;
    type Action = Action;
    type Error = RepositoryError;

    async fn keys(&self) -> Result<Vec<Uid>, RepositoryError> {
        // Before the rows: a repository has a row before it has files.
        let there = self.shared.data_dir.checkouts().await?;
        let mut keys = BTreeSet::from_iter(self.desired.keys().await?);
        keys.extend(there);
        Ok(keys.into_iter().collect())
    }

    async fn observe(&self, key: &Uid, _: Purpose) -> Result<Option<Snapshot>, RepositoryError> {
        let data_dir = &self.shared.data_dir;
        let Some(row) = self.desired.row(key).await? else {
            let is_orphan = data_dir.checkouts().await?.contains(key);
            return Ok(is_orphan.then_some(Snapshot::Orphan));
        };
        let report = self.shared.clones.report(key);
        let here = match &row.facts.commit_id {
            Some(commit) => data_dir.has_checkout(key, commit).await?,
            None => false,
        };
        let repository = Repository { row, report, here };
        Ok(Some(Snapshot::Repository(Box::new(repository))))
    }

    fn leads(&self) {
        self.shared.clones.forget_all();
        self.desired.distrust();
    }

    fn generation(snapshot: &Snapshot) -> Generation {
        match snapshot {
            Snapshot::Orphan => Generation(0),
            Snapshot::Repository(repository) => repository.row.generation,
        }
    }

    fn name(snapshot: &Snapshot) -> Option<&str> {
        match snapshot {
            Snapshot::Orphan => None,
            Snapshot::Repository(repository) => Some(repository.row.name.as_str()),
        }
    }

    fn plan(snapshot: &Snapshot, now: Timestamp) -> Plan<Action> {
        plan::plan(snapshot, now)
    }

    fn describe(action: &Action) -> String {
        action.to_string()
    }

    fn is_event(action: &Action) -> bool {
        matches!(action, Action::Start { .. } | Action::Cancel)
    }

    fn changed(&self, key: &Uid) {
        self.desired.mark(key);
    }

    async fn apply(&self, key: &Uid, action: &Action) -> Result<(), RepositoryError> {
        match action {
            Action::Start { row } => self.start(key, row).await,
            Action::Cancel => {
                self.shared.clones.forget(key);
                Ok(())
            }
            Action::SaveFacts(facts) => {
                let saved = self.store.save_repository_facts(key, facts).await;
                self.desired.mark(key);
                Ok(saved?)
            }
            Action::RemoveFiles => {
                self.shared.clones.forget(key);
                Ok(self.shared.data_dir.remove_checkouts(key).await?)
            }
            Action::Purge => Ok(self.store.purge_repository(key).await?),
        }
    }
}
