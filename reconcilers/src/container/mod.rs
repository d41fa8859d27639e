//! The container reconciler: every ordinary user has exactly one agent container, or none when it is
//! stopped.
//!
//! Owns: containers that carry our owner label and a user's uid, and the `container_facts` rows.
//! Who else writes: nobody; people with their hands on the engine are repaired.
//!
//! Invariants:
//! - at most one container of a user runs at any moment, replacement included;
//! - a container without our owner label and the user's uid is never touched, whatever its name;
//! - a user who shall not run has no container; only the directory stays;
//! - a replacement that is not ready in time, or ends within `min_ready` of that, puts the old container back;
//! - why a container ended is kept before it is started again or goes;
//! - what the engine did not report is not assumed: no listing, no action.
//!
//! Layout: [`settings`] says what a container is made of, [`observe`] reads, [`plan`] decides,
//! `apply` does, `evidence` says why a container ended, `liveness` asks agents that were ready, `fixing` finds the image of who is stopped, [`pulls`](crate::shared::pulls) watch what takes time.

mod apply;
mod count;
mod evidence;
mod fixing;
mod liveness;
mod names;
pub mod observe;
pub mod plan;
pub mod seed;
pub mod settings;
mod starts;
mod store;

use std::sync::Arc;
use std::time::Duration;

use schema::condition::{Condition, Reason};
use schema::container::ContainerRow;
use schema::ids::{Generation, Kind, Timestamp, Uid};

use crate::runtime::backoff::Jitter;
use crate::runtime::stopwatch::Stopwatch;
use crate::runtime::{Controllers, Plan, Purpose, Reconciler};
use crate::shared::Shared;
use crate::stores::{Desired, Rows};

pub use apply::ContainerError;
pub use evidence::Evidence;
pub use plan::Action;
pub use store::ContainerStore;

/// Starts the reconciler of containers.
pub fn register(
    store: Arc<dyn ContainerStore>,
    shared: &Arc<Shared>,
    controllers: &mut Controllers<'_>,
) {
    let reconciler = ContainerReconciler::new(store, Arc::clone(shared));
    let liveness = Arc::clone(&reconciler.liveness);
    let events = Arc::clone(&shared.view).events();
    let events = futures::stream::select(events, liveness.events());
    controllers.add_with(reconciler, Box::pin(events));
    controllers.add_task("container.liveness", liveness.run());
}

/// What the container reconciler works with.
pub struct ContainerReconciler {
    store: Arc<dyn ContainerStore>,
    shared: Arc<Shared>,
    liveness: Arc<liveness::Liveness>,
    verified: observe::Verified,
    /// Since when containers have run without being ready.
    waiting: Stopwatch<Uid>,
    /// Since when replacements have been ready whose previous containers are kept.
    ready: Stopwatch<Uid>,
    absent: fixing::Absent,
    failed_starts: starts::FailedStarts,
    desired: Desired<ContainerRow>,
}

impl std::fmt::Debug for ContainerReconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContainerReconciler")
            .finish_non_exhaustive()
    }
}

impl ContainerReconciler {
    /// A reconciler that has read nothing yet.
    pub fn new(store: Arc<dyn ContainerStore>, shared: Arc<Shared>) -> Self {
        let rows: Arc<dyn Rows<ContainerRow>> = store.clone();
        Self {
            store,
            liveness: Arc::new(liveness::Liveness::new(
                Arc::clone(&shared.agents),
                Jitter::random(),
            )),
            verified: observe::Verified::new(shared.options.verify_every, shared.clock.now()),
            waiting: Stopwatch::new(Arc::clone(&shared.clock)),
            ready: Stopwatch::new(Arc::clone(&shared.clock)),
            absent: fixing::Absent::default(),
            failed_starts: starts::FailedStarts::default(),
            desired: Desired::new(rows),
            shared,
        }
    }
}

impl Reconciler for ContainerReconciler {
    const NAME: &'static str = "container";
    const KIND: Kind = Kind::Container;
    const RESYNC: Duration = Duration::from_secs(60);
    type Key = Uid;
    type Snapshot = observe::Snapshot;
    type Action = Action;
    type Error = ContainerError;

    async fn keys(&self) -> Result<Vec<Uid>, ContainerError> {
        self.observe_keys().await
    }

    async fn observe(
        &self,
        key: &Uid,
        purpose: Purpose,
    ) -> Result<Option<observe::Snapshot>, ContainerError> {
        self.observe_one(key, purpose).await
    }

    fn leads(&self) {
        self.liveness.forget_all();
        self.failed_starts.forget_all();
        self.desired.distrust();
        self.shared.view.distrust();
        self.verified.forget_all();
    }

    fn generation(snapshot: &observe::Snapshot) -> Generation {
        snapshot
            .row
            .as_ref()
            .map_or(Generation(0), |row| row.generation)
    }

    fn name(snapshot: &observe::Snapshot) -> Option<&str> {
        snapshot.row.as_ref().map(|row| row.name.as_str())
    }

    fn plan(snapshot: &observe::Snapshot, now: Timestamp) -> Plan<Action> {
        plan::plan(snapshot, now)
    }

    /// Only a pass that would have acted on what it found has verified anything.
    fn converged(&self, key: &Uid, snapshot: &observe::Snapshot, _conditions: &[Condition]) {
        if let observe::World::Seen(seen) = &snapshot.world
            && seen.verified
        {
            self.verified.done(key);
        }
    }

    fn changed(&self, key: &Uid) {
        self.desired.mark(key);
    }

    fn refresh(&self, key: &Uid) {
        self.verified.ask(key);
    }

    fn refresh_all(&self) {
        self.verified.ask_all();
    }

    fn describe(action: &Action) -> String {
        action.to_string()
    }

    fn is_event(action: &Action) -> bool {
        !matches!(
            action,
            Action::AddFinalizer
                | Action::ReleaseFinalizer
                | Action::ReleaseName(_)
                | Action::SaveFacts(_)
        )
    }

    fn count_step(snapshot: &observe::Snapshot, action: &Action, success: bool) {
        count::count_step(snapshot, action, success);
    }

    fn event_reason(action: &Action) -> Reason {
        match action {
            Action::NoteEnd { end, .. } if end.cause == evidence::UNRESPONSIVE => {
                Reason::Unresponsive
            }
            Action::NoteEnd { .. } => Reason::Exited,
            _ => Reason::Progressing,
        }
    }

    /// An image's home may be large. A copy that is cancelled goes on from what is there.
    fn action_timeout(action: &Action) -> Duration {
        match action {
            Action::SeedHome { .. } => Duration::from_secs(600),
            _ => Duration::from_secs(120),
        }
    }

    async fn apply(&self, key: &Uid, action: &Action) -> Result<(), ContainerError> {
        self.apply_one(key, action).await
    }
}
