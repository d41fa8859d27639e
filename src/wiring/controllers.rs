//! Runs reconcilers, each in a controller of its own, and keeps their handles.

use std::sync::Arc;

use reconcilers::runtime::controller::WorldEvents;
use reconcilers::runtime::summary::ReconcilerHandle;
use reconcilers::runtime::supervise::Supervisor;
use reconcilers::runtime::{Context, Controller, Reconciler, Settings, StatusStore};

/// The controllers of the process.
pub struct Controllers<'a> {
    /// Holds their tasks.
    pub supervisor: &'a mut Supervisor,
    /// What they share.
    pub context: Context,
    /// How they work.
    pub settings: Settings,
    /// What is known of those that run, in the order of their start.
    pub handles: Vec<Arc<dyn ReconcilerHandle>>,
}

impl Controllers<'_> {
    /// Runs a reconciler that nobody tells of its world: changes there are found by the resync.
    pub fn run<R: Reconciler>(&mut self, reconciler: R, statuses: Arc<dyn StatusStore<R::Key>>) {
        self.run_with(reconciler, statuses, Box::pin(futures::stream::pending()));
    }

    /// Runs a reconciler that hears of its world by `events`.
    pub fn run_with<R: Reconciler>(
        &mut self,
        reconciler: R,
        statuses: Arc<dyn StatusStore<R::Key>>,
        events: WorldEvents<R::Key>,
    ) {
        let (context, settings) = (self.context.clone(), self.settings.clone());
        let controller = Controller::new(reconciler, statuses, events, context, settings);
        self.handles.push(controller.handle());
        controller.spawn(self.supervisor);
    }
}
