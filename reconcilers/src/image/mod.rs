//! The image reconciler: images that an administrator wants on the engine are pulled, those wanted
//! off it are removed.
//!
//! Owns: the `image_facts` rows, and pulls that an administrator asked for ([`pulls`](crate::shared::pulls);
//! containers and rollouts share them). Who else writes: the API the `images` rows; people with their hands on the
//! engine, whose images are left alone unless somebody names them.
//!
//! Invariants:
//! - each request is answered by one successful pull or ended by the first that fails, and a registry is not asked
//!   again without a new one; what was pulled and is gone from the engine is pulled until it is there;
//! - an image that a user has, by reference or by id, or may yet get from a rollout, is never removed, and
//!   nothing is by force;
//! - cancelling a pull removes nothing;
//! - credentials go to no registry but their own.
//!
//! Layout: [`observe`] reads, [`plan`] decides, `apply` does.

mod apply;
pub mod observe;
pub mod plan;
#[cfg(test)]
mod plan_tests;
mod store;

use std::sync::Arc;
use std::time::Duration;

use schema::config::query::engine_uid;
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::image::ImageRow;

use crate::runtime::{Controllers, Plan, Purpose, Reconciler};
use crate::shared::Shared;
use crate::stores::{Desired, Rows};

pub use apply::ImageError;
pub use plan::Action;
pub use store::ImageStore;

/// Starts the reconciler of images.
pub fn register(
    store: Arc<dyn ImageStore>,
    shared: &Arc<Shared>,
    controllers: &mut Controllers<'_>,
) {
    let reconciler = ImageReconciler::new(store, Arc::clone(shared));
    controllers.add(reconciler);
}

/// Reconciles the images that administrators asked for or want removed.
pub struct ImageReconciler {
    store: Arc<dyn ImageStore>,
    shared: Arc<Shared>,
    desired: Desired<ImageRow>,
}

impl std::fmt::Debug for ImageReconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageReconciler").finish_non_exhaustive()
    }
}

impl ImageReconciler {
    /// A reconciler that has read nothing yet.
    pub fn new(store: Arc<dyn ImageStore>, shared: Arc<Shared>) -> Self {
        let rows: Arc<dyn Rows<ImageRow>> = store.clone();
        Self {
            store,
            desired: Desired::new(rows),
            shared,
        }
    }
}

impl Reconciler for ImageReconciler {
    const NAME: &'static str = "image";
    const KIND: Kind = Kind::Image;
    const RESYNC: Duration = Duration::from_secs(60);
    type Key = Uid;
    type Snapshot = observe::Snapshot;
    type Action = Action;
    type Error = ImageError;

    async fn keys(&self) -> Result<Vec<Uid>, ImageError> {
        Ok(self.desired.keys().await?)
    }

    async fn observe(
        &self,
        key: &Uid,
        _purpose: Purpose,
    ) -> Result<Option<observe::Snapshot>, ImageError> {
        self.observe_one(key).await
    }

    fn leads(&self) {
        self.desired.distrust();
    }

    fn generation(snapshot: &observe::Snapshot) -> Generation {
        snapshot.row.generation
    }

    fn name(snapshot: &observe::Snapshot) -> Option<&str> {
        Some(&snapshot.row.reference)
    }

    fn plan(snapshot: &observe::Snapshot, now: Timestamp) -> Plan<Action> {
        let mut plan = plan::plan(snapshot, now);
        // Whether the engine can be reached is part of what is said of every image.
        plan.waits_for.push((Kind::Engine, engine_uid()));
        plan
    }

    fn changed(&self, key: &Uid) {
        self.desired.mark(key);
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
