//! Starts reconcilers, each in a controller of its own, and keeps their handles.

use std::fmt;
use std::sync::Arc;

use schema::ids::Uid;

use super::controller::{Context, Controller, Settings, WorldEvents};
use super::summary::ReconcilerHandle;
use super::supervise::Supervisor;
use super::{Objects, Reconciler};

/// The controllers of the process.
pub struct Controllers<'a> {
    /// Holds their tasks.
    pub supervisor: &'a mut Supervisor,
    /// What they share.
    pub context: Context,
    /// How they work.
    pub settings: Settings,
    /// Where statuses are, and who rings.
    pub objects: Arc<dyn Objects>,
    /// Those that run, in the order of their start.
    pub handles: Vec<Arc<dyn ReconcilerHandle>>,
}

impl fmt::Debug for Controllers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controllers")
            .field("running", &self.handles.len())
            .finish_non_exhaustive()
    }
}

impl Controllers<'_> {
    /// Starts a reconciler without events of the world: changes there are found by the resync.
    pub fn add<R: Reconciler<Key = Uid>>(&mut self, reconciler: R) {
        self.add_with(reconciler, Box::pin(futures::stream::pending()));
    }

    /// Runs a task of a reconciler beside its passes, until the process ends.
    pub fn add_task(
        &mut self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let shutdown = self.context.shutdown.clone();
        self.supervisor.spawn(name, async move {
            let _ = shutdown.run_until_cancelled(task).await;
            Ok(())
        });
    }

    /// Starts a reconciler that is woken by `events` of the world.
    pub fn add_with<R: Reconciler<Key = Uid>>(&mut self, reconciler: R, events: WorldEvents<Uid>) {
        let statuses = self.objects.statuses(R::KIND, R::NAME);
        let bell = self.objects.bell();
        let (context, settings) = (self.context.clone(), self.settings.clone());
        let controller = Controller::new(reconciler, statuses, (bell, events), context, settings);
        // Each has a jitter of its own, also where a seed fixes it.
        self.settings.seed = self.settings.seed.map(|seed| seed.wrapping_add(1));
        self.handles.push(controller.handle());
        controller.spawn(self.supervisor);
    }
}
