//! Everything at rest in memory, for simulations: the same contract as the database and the file
//! system (`tests/store_contract.rs` proves it), with a script for what goes wrong.
//!
//! Nothing here reads a clock, draws a random number or depends on the order of a hash table, so
//! that a simulation repeats exactly. What the API does to the database is in [`MemoryStore`]'s own
//! methods: each is one accepted write.

mod adapters;
mod archive;
mod configs;
mod directories;
mod held;
mod images;
mod rollouts;
mod skills;
mod statuses;
mod tables;
mod usage;
mod writes;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use schema::adapter::Adapter;
use schema::adapter::Applied;
use schema::adapter::store::{Activation, AdapterFacts, Installed};
use schema::agent_config::{AgentConfigFacts, AgentConfigRow, KeptFiles, UserValues};
use schema::bell::{Bell, Ringer, bell};
use schema::config::query::{Values, engine_uid};
use schema::container::{ContainerEnd, ContainerFacts, ContainerRow, Desired};
use schema::error::DbError;
use schema::ids::{Generation, Kind, Timestamp, Uid, UserName};
use schema::image::{DesiredImage, ImageFacts, ImageRow, ImageUse};
use schema::rollout::{
    ImageChoice, ReadinessPolicy, RolloutFacts, RolloutRow, RolloutTarget, TargetState,
};
use schema::user::UserRow;
use secrecy::SecretString;

use crate::script::{Script, delayed};
use crate::{Change, Pace};
use reconcilers::adapter::{AdapterRow, AdapterStore};
use reconcilers::agent_config::AgentConfigStore;
use reconcilers::container::ContainerStore;
use reconcilers::engine::{EngineRow, EngineStore};
use reconcilers::image::ImageStore;
use reconcilers::rollout::{RolloutStep, RolloutStore};
use reconcilers::runtime::{Objects, StatusStore};
use reconcilers::stores::{ConfigStore, PackageStore, Rows};
use reconcilers::user::UserStore;
use tables::Tables;

/// The database in memory. Clones are handles to the same one.
#[derive(Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    tables: Mutex<Tables>,
    script: Mutex<Script>,
    ringers: Mutex<Vec<Ringer>>,
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

/// What the database says when the script lets it fail.
fn away() -> DbError {
    DbError::Unavailable("the simulated database is away".to_owned())
}

impl MemoryStore {
    /// Decides how long each call takes, and whether it fails.
    pub fn on_call(&self, hook: impl Fn() -> Pace + Send + Sync + 'static) {
        self.script().pace = Some(Arc::new(hook));
    }

    /// Called with everything that reconcilers write, at the moment it takes effect. It must not call the
    /// store.
    pub fn on_change(&self, hook: impl Fn(&Change) + Send + Sync + 'static) {
        self.script().told = Some(Arc::new(hook));
    }

    /// Forgets all listeners, as the end of their process does.
    pub fn forget_bells(&self) {
        let mut ringers = self
            .shared
            .ringers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        ringers.clear();
    }

    fn ring(&self) {
        let ringers = self
            .shared
            .ringers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for ringer in ringers.iter() {
            ringer.ring();
        }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.shared
            .tables
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.shared
            .script
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn pace(&self) -> Pace {
        let hook = self.script().pace.clone();
        hook.map(|hook| hook()).unwrap_or_default()
    }

    fn tell(&self, change: &Change) {
        let hook = self.script().told.clone();
        if let Some(hook) = hook {
            hook(change);
        }
    }

    async fn add_finalizer(&self, kind: Kind, uid: &Uid, name: &str) -> Result<(), DbError> {
        self.transaction(|tables| {
            tables.add_finalizer(kind, uid, name);
            self.tell(&Change::FinalizerAdded {
                kind,
                uid: uid.clone(),
            });
            Ok(())
        })
        .await
    }

    /// One transaction that gives containers another image.
    async fn moved(
        &self,
        work: impl FnOnce(&mut Tables) -> Result<Vec<(Uid, Generation)>, DbError> + Send,
    ) -> Result<(), DbError> {
        self.transaction(|tables| {
            for (uid, generation) in work(tables)? {
                self.tell(&Change::Moved { uid, generation });
            }
            self.ring();
            Ok(())
        })
        .await
    }

    /// One transaction of a reconciler, at the pace of the script.
    async fn transaction<T>(
        &self,
        work: impl FnOnce(&mut Tables) -> Result<T, DbError> + Send,
    ) -> Result<T, DbError> {
        delayed(self.pace(), || work(&mut self.tables()), away).await
    }
}

fn keyed<T>(rows: Vec<T>, uid: impl Fn(&T) -> &Uid) -> Vec<(Uid, T)> {
    rows.into_iter()
        .map(|row| (uid(&row).clone(), row))
        .collect()
}

#[async_trait]
impl Rows<UserRow> for MemoryStore {
    async fn rows(&self) -> Result<Vec<(Uid, UserRow)>, DbError> {
        self.transaction(|tables| Ok(keyed(tables.user_rows(), |row| &row.uid)))
            .await
    }

    async fn row(&self, uid: &Uid) -> Result<Option<UserRow>, DbError> {
        self.transaction(|tables| Ok(tables.user_row(uid))).await
    }
}

#[async_trait]
impl UserStore for MemoryStore {
    async fn is_container_gone(&self, uid: &Uid) -> Result<bool, DbError> {
        self.transaction(|tables| Ok(tables.object(Kind::Container, uid).is_none()))
            .await
    }

    async fn applied(&self, uid: &Uid) -> Result<Option<Applied>, DbError> {
        self.transaction(|tables| Ok(tables.applied(uid))).await
    }

    async fn end_rename(&self, uid: &Uid, previous: &UserName) -> Result<(), DbError> {
        self.transaction(|tables| {
            let account = tables.accounts.get_mut(uid);
            if let Some(account) = account.filter(|it| it.previous_name.as_ref() == Some(previous))
            {
                account.previous_name = None;
                account.previous_released = false;
            }
            Ok(())
        })
        .await
    }

    async fn used_bytes(&self, uid: &Uid) -> Result<Option<u64>, DbError> {
        self.transaction(|tables| Ok(tables.used_bytes(uid))).await
    }

    async fn add_user_finalizer(&self, uid: &Uid) -> Result<(), DbError> {
        self.add_finalizer(Kind::User, uid, "user").await
    }

    async fn purge_user(&self, uid: &Uid) -> Result<(), DbError> {
        self.transaction(|tables| {
            let purged = tables.purge_user(uid, "user")?;
            if purged {
                self.tell(&Change::Purged {
                    kind: Kind::User,
                    uid: uid.clone(),
                });
            }
            Ok(())
        })
        .await
    }
}

#[async_trait]
impl Rows<ContainerRow> for MemoryStore {
    async fn rows(&self) -> Result<Vec<(Uid, ContainerRow)>, DbError> {
        self.transaction(|tables| Ok(keyed(tables.container_rows(), |row| &row.uid)))
            .await
    }

    async fn row(&self, uid: &Uid) -> Result<Option<ContainerRow>, DbError> {
        self.transaction(|tables| Ok(tables.container_row(uid)))
            .await
    }
}

#[async_trait]
impl ContainerStore for MemoryStore {
    async fn settings_applied(&self, uid: &Uid) -> Result<Option<Applied>, DbError> {
        self.transaction(|tables| Ok(tables.applied(uid))).await
    }

    async fn release_previous_name(&self, uid: &Uid, name: &UserName) -> Result<(), DbError> {
        let released = self
            .transaction(|tables| {
                let account = tables.accounts.get_mut(uid);
                let account = account.filter(|it| it.previous_name.as_ref() == Some(name));
                if let Some(account) = account {
                    account.previous_released = true;
                    let _ = tables.bump_in_bulk(Kind::User, uid);
                }
                Ok(())
            })
            .await;
        self.ring();
        released
    }

    async fn add_container_finalizer(&self, uid: &Uid) -> Result<(), DbError> {
        self.add_finalizer(Kind::Container, uid, "container").await
    }

    async fn purge_container(&self, uid: &Uid) -> Result<(), DbError> {
        self.transaction(|tables| {
            let purged = tables.purge_container(uid, "container");
            if purged {
                self.tell(&Change::Purged {
                    kind: Kind::Container,
                    uid: uid.clone(),
                });
                self.ring();
            }
            Ok(())
        })
        .await
    }

    async fn save_container_facts(&self, uid: &Uid, facts: &ContainerFacts) -> Result<(), DbError> {
        self.save_facts(uid, facts, None).await
    }

    async fn note_container_end(
        &self,
        uid: &Uid,
        facts: &ContainerFacts,
        end: &ContainerEnd,
    ) -> Result<(), DbError> {
        self.save_facts(uid, facts, Some(end)).await
    }
}

impl MemoryStore {
    /// The ends of a container that are kept, newest first.
    pub fn peek_ends(&self, uid: &Uid) -> Vec<ContainerEnd> {
        self.tables().ends.get(uid).cloned().unwrap_or_default()
    }

    async fn save_facts(
        &self,
        uid: &Uid,
        facts: &ContainerFacts,
        end: Option<&ContainerEnd>,
    ) -> Result<(), DbError> {
        self.transaction(|tables| {
            if tables.save_facts(uid, facts) {
                if let Some(end) = end {
                    tables.note_end(uid, end);
                }
                self.tell(&Change::Facts {
                    uid: uid.clone(),
                    facts: facts.clone(),
                });
            }
            Ok(())
        })
        .await
    }
}

#[async_trait]
impl EngineStore for MemoryStore {
    async fn engine(&self) -> Result<Option<EngineRow>, DbError> {
        self.transaction(|tables| {
            let in_use = tables.container_rows().iter().any(|row| {
                let wanted = row.desired == Desired::Running && !row.disabled;
                row.facts.engine_id.is_some() || (wanted && row.deleted_at.is_none())
            });
            let engine = tables.object(Kind::Engine, &engine_uid());
            Ok(engine.map(|object| EngineRow {
                generation: object.generation,
                in_use,
            }))
        })
        .await
    }
}

#[async_trait]
impl Rows<AgentConfigRow> for MemoryStore {
    async fn rows(&self) -> Result<Vec<(Uid, AgentConfigRow)>, DbError> {
        self.transaction(|tables| Ok(keyed(tables.config_rows(), |row| &row.uid)))
            .await
    }

    async fn row(&self, uid: &Uid) -> Result<Option<AgentConfigRow>, DbError> {
        self.transaction(|tables| Ok(tables.config_row(uid))).await
    }
}

#[async_trait]
impl AgentConfigStore for MemoryStore {
    async fn user_values(&self, uid: &Uid) -> Result<UserValues, DbError> {
        self.transaction(|tables| Ok(tables.user_values(uid))).await
    }

    fn mcp_token(&self, row: &AgentConfigRow) -> SecretString {
        // Nobody checks it, but another version must be another token.
        let version = row.mcp_token_version;
        SecretString::from(format!("{}:{}{version:08x}", row.name, row.uid))
    }

    fn chat_token(&self, row: &AgentConfigRow) -> SecretString {
        let version = row.mcp_token_version;
        SecretString::from(format!("chat-{}{version:08x}", row.uid))
    }

    async fn keep_files(&self, uid: &Uid, files: &KeptFiles) -> Result<(), DbError> {
        self.transaction(|tables| {
            tables.keep_files(uid, files);
            Ok(())
        })
        .await
    }

    async fn kept_files(&self, uid: &Uid) -> Result<Option<KeptFiles>, DbError> {
        self.transaction(|tables| Ok(tables.kept_files(uid))).await
    }

    async fn save_agent_config_facts(
        &self,
        uid: &Uid,
        facts: &AgentConfigFacts,
    ) -> Result<(), DbError> {
        let save = |tables: &mut Tables| {
            let bumped = tables.save_config_facts(uid, facts)?;
            self.tell(&Change::AgentConfigFacts {
                uid: uid.clone(),
                facts: facts.clone(),
                bumped,
            });
            if bumped.is_some() {
                self.ring();
            }
            Ok(())
        };
        self.transaction(save).await
    }
}

#[async_trait]
impl ConfigStore for MemoryStore {
    async fn config(&self) -> Result<(Values, i64), DbError> {
        self.transaction(|tables| Ok((tables.config.clone(), tables.config_generation())))
            .await
    }

    async fn config_generation(&self) -> Result<i64, DbError> {
        self.transaction(|tables| Ok(tables.config_generation()))
            .await
    }
}

#[async_trait]
impl PackageStore for MemoryStore {
    async fn adapter(&self) -> Result<(i64, Arc<Adapter>), DbError> {
        self.transaction(|tables| tables.active_adapter()).await
    }

    async fn adapter_generation(&self) -> Result<i64, DbError> {
        self.transaction(|tables| Ok(tables.adapter_generation()))
            .await
    }
}

impl Objects for MemoryStore {
    fn statuses(&self, kind: Kind, reconciler: &'static str) -> Arc<dyn StatusStore<Uid>> {
        Arc::new(statuses::MemoryStatuses {
            store: self.clone(),
            kind,
            reconciler,
        })
    }

    /// A bell of its own for each listener, so that their order is always the same.
    fn bell(&self) -> Bell {
        let (ringer, bell) = bell();
        let mut ringers = self
            .shared
            .ringers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        ringers.push(ringer);
        bell
    }
}

#[async_trait]
impl Rows<ImageRow> for MemoryStore {
    async fn rows(&self) -> Result<Vec<(Uid, ImageRow)>, DbError> {
        self.transaction(|tables| Ok(keyed(tables.image_rows(), |row| &row.uid)))
            .await
    }

    async fn row(&self, uid: &Uid) -> Result<Option<ImageRow>, DbError> {
        self.transaction(|tables| Ok(tables.image_row(uid))).await
    }
}

#[async_trait]
impl ImageStore for MemoryStore {
    async fn image_uses(&self) -> Result<Vec<ImageUse>, DbError> {
        self.transaction(|tables| Ok(tables.image_uses())).await
    }

    async fn save_image_facts(&self, uid: &Uid, facts: &ImageFacts) -> Result<(), DbError> {
        self.transaction(|tables| {
            tables.save_image_facts(uid, facts);
            Ok(())
        })
        .await
    }

    async fn purge_image(&self, uid: &Uid, desired: DesiredImage) -> Result<(), DbError> {
        self.purge_image_row(uid, desired).await
    }
}

#[async_trait]
impl RolloutStore for MemoryStore {
    async fn rollouts(&self) -> Result<Vec<Uid>, DbError> {
        self.transaction(|tables| Ok(tables.unsettled_rollouts()))
            .await
    }

    async fn rollout(
        &self,
        uid: &Uid,
    ) -> Result<Option<(RolloutRow, Vec<RolloutTarget>)>, DbError> {
        self.transaction(|tables| Ok(tables.rollout(uid))).await
    }

    async fn save_rollout_facts(
        &self,
        step: RolloutStep<'_>,
        facts: &RolloutFacts,
    ) -> Result<(), DbError> {
        self.transaction(|tables| {
            tables.rollout_step(step)?.row.facts = facts.clone();
            if facts.finished_at.is_some() {
                tables.release_all(step.rollout);
            }
            Ok(())
        })
        .await
    }

    async fn move_targets(
        &self,
        step: RolloutStep<'_>,
        users: &[Uid],
        image: &ImageChoice,
        policy: ReadinessPolicy,
    ) -> Result<(), DbError> {
        let work = |tables: &mut Tables| tables.move_targets(step, users, image, policy);
        self.moved(work).await?;
        Ok(())
    }

    async fn release_targets(&self, step: RolloutStep<'_>, users: &[Uid]) -> Result<(), DbError> {
        self.moved(|tables| tables.release_targets(step, users))
            .await
    }

    async fn put_back_target(
        &self,
        step: RolloutStep<'_>,
        user: &Uid,
        state: TargetState,
        message: &str,
    ) -> Result<(), DbError> {
        self.moved(|tables| tables.put_back_target(step, user, state, message))
            .await?;
        Ok(())
    }

    async fn finish_targets(
        &self,
        step: RolloutStep<'_>,
        users: &[Uid],
        state: TargetState,
        message: &str,
    ) -> Result<(), DbError> {
        self.transaction(|tables| tables.finish_targets(step, users, state, message))
            .await
    }

    async fn finish_target(
        &self,
        step: RolloutStep<'_>,
        user: &Uid,
        state: TargetState,
        message: &str,
    ) -> Result<(), DbError> {
        self.transaction(|tables| tables.finish_target(step, user, state, message))
            .await
    }
}

#[async_trait]
impl AdapterStore for MemoryStore {
    async fn adapter_row(&self, _uid: &Uid) -> Result<Option<AdapterRow>, DbError> {
        self.transaction(|tables| Ok(tables.adapter_row())).await
    }

    async fn save_adapter_facts(&self, facts: &AdapterFacts) -> Result<(), DbError> {
        self.transaction(|tables| {
            tables.packages.facts = facts.clone();
            Ok(())
        })
        .await
    }

    async fn install_adapter(
        &self,
        adapter: &Adapter,
        facts: &AdapterFacts,
        activation: Activation,
        now: Timestamp,
    ) -> Result<Installed, DbError> {
        self.transaction(|tables| {
            let (installed, changed) = tables.install(adapter, facts, activation, now);
            if installed == Installed::Newer {
                let version = adapter.index.adapter_version.to_string();
                self.tell(&Change::AdapterInstalled { version });
            }
            for (uid, generation) in changed {
                self.tell(&Change::Moved { uid, generation });
            }
            self.ring();
            Ok(installed)
        })
        .await
    }
}
