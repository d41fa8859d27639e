//! The image reconciler: images that an administrator wants on the engine are pulled, those wanted
//! off it are removed.
//!
//! Owns: the `image_facts` rows, and pulls that an administrator asked for ([`pulls`]; containers and
//! rollouts share them). Who else writes: the API the `images` rows; people with their hands on the
//! engine, whose images are left alone unless somebody names them.
//!
//! Invariants:
//! - each request is answered by one successful pull, and a registry is not asked again without one;
//! - an image that a user has, by reference or by id, or may yet get from a rollout, is never removed, and
//!   nothing is by force;
//! - calling a pull off removes nothing;
//! - credentials go to no registry but their own.
//!
//! Layout: [`observe`] reads, [`plan`] decides, `apply` does; [`pulls`] are the pulls themselves,
//! `progress` reckons how far they are, `feed` tells it.

mod apply;
pub mod observe;
pub mod plan;
mod progress;
pub mod pulls;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use schema::clock::SharedClock;
use schema::error::DbError;
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::image::{ImageReference, ImageRow};

use self::pulls::Pulls;
use crate::drivers::docker::RegistryCredentials;
use crate::engine::view::EngineView;
use crate::runtime::{Plan, Reconciler, StatusStore, WorldEvent, WorldEvents};
use crate::stores::{Cache, ConfigSource, Store};

pub use apply::ImageError;
pub use plan::Action;

/// Reconciles the images that administrators asked for or want removed.
pub struct ImageReconciler {
    store: Arc<dyn Store>,
    view: Arc<EngineView>,
    config: Arc<ConfigSource>,
    pulls: Arc<Pulls>,
    clock: SharedClock,
    desired: Arc<Cache<ImageRow>>,
}

impl std::fmt::Debug for ImageReconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageReconciler")
            .field("view", &self.view)
            .finish_non_exhaustive()
    }
}

/// What the registry of `reference` is told about us; `None` = nothing.
///
/// # Errors
/// When the configuration cannot be read.
pub async fn credentials(
    config: &ConfigSource,
    reference: &str,
) -> Result<Option<RegistryCredentials>, DbError> {
    let Ok(image) = reference.parse::<ImageReference>() else {
        return Ok(None);
    };
    let config = config.newest().await?;
    let credentials = config.registry_credentials_for(&image);
    Ok(credentials.map(|(username, password)| RegistryCredentials { username, password }))
}

impl ImageReconciler {
    /// Puts the parts together.
    pub fn new(
        store: Arc<dyn Store>,
        view: Arc<EngineView>,
        config: Arc<ConfigSource>,
        pulls: Arc<Pulls>,
        clock: SharedClock,
    ) -> Self {
        Self {
            store,
            view,
            config,
            pulls,
            clock,
            desired: Arc::default(),
        }
    }

    /// The status store of images; it tells this reconciler which rows to read anew.
    pub fn status_store(&self) -> Arc<dyn StatusStore<Uid>> {
        self.store.statuses(
            Kind::Image,
            Self::NAME,
            Arc::clone(&self.clock),
            Arc::<Cache<_>>::clone(&self.desired),
        )
    }

    /// Wakes all images whenever the engine became usable or unusable.
    pub fn events(&self) -> WorldEvents<Uid> {
        let connection = self.view.watch_connection();
        futures::stream::unfold(connection, |mut connection| async move {
            // The sender lives as long as the view; once it is gone nothing changes any more.
            if connection.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            Some((WorldEvent::Shared, connection))
        })
        .boxed()
    }

    /// What the bell does: the next pass reads the row anew.
    #[cfg(test)]
    pub(crate) fn mark_dirty(&self, uid: &Uid) {
        self.desired.mark(uid);
    }
}

impl Reconciler for ImageReconciler {
    const NAME: &'static str = "image";
    const RESYNC: Duration = Duration::from_secs(60);
    type Key = Uid;
    type Snapshot = observe::Snapshot;
    type Action = Action;
    type Error = ImageError;

    async fn keys(&self) -> Result<Vec<Uid>, ImageError> {
        self.observe_keys().await
    }

    async fn observe(&self, key: &Uid) -> Result<Option<observe::Snapshot>, ImageError> {
        self.observe_one(key).await
    }

    fn generation(snapshot: &observe::Snapshot) -> Generation {
        snapshot.row.generation
    }

    fn plan(snapshot: &observe::Snapshot, now: Timestamp) -> Plan<Action> {
        plan::plan(snapshot, now)
    }

    fn describe(action: &Action) -> String {
        action.to_string()
    }

    fn is_event(action: &Action) -> bool {
        !matches!(action, Action::SaveFacts(_) | Action::Purge { .. })
    }

    async fn apply(&self, key: &Uid, action: &Action) -> Result<(), ImageError> {
        self.apply_one(key, action).await
    }
}
