//! One process of the service: the real reconcilers and the real runtime on what is simulated.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use engine::AgentAddress;
use kit::{FakeDirectory, FakeEngine, FakeGit, FakeSource, MemoryDataDir, MemoryStore};
use reconcilers::register::register;
use reconcilers::runtime::leader::Leadership;
use reconcilers::runtime::summary::StatusTick;
use reconcilers::runtime::supervise::{Supervisor, SupervisorError};
use reconcilers::runtime::{Context, Controllers, Settings, Waits};
use reconcilers::shared::{Options, Shared, World};
use reconcilers::stores::DataDir;
use schema::clock::SharedClock;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::checks::OWNER;

/// The file of the agent directory that says an agent is ready, where that is asked.
pub const READY_FILE: &str = "ready";
/// How long a process may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(15);

/// What outlives a process.
pub struct Ground {
    pub store: MemoryStore,
    pub dir: MemoryDataDir,
    pub packages: FakeSource,
    pub directory: FakeDirectory,
    pub clock: SharedClock,
    pub workers: usize,
    pub seed: u64,
}

type Running = Pin<Box<dyn Future<Output = Result<(), SupervisorError>>>>;

/// A running process. Dropped, it is killed: every task ends at the await it is at.
pub struct Process {
    running: Option<Running>,
    shutdown: CancellationToken,
}

impl Process {
    /// Starts a process that leads under the given leadership and reaches the engine by `fake`.
    pub fn start(ground: &Ground, fake: FakeEngine, leadership: Leadership) -> Self {
        let shutdown = CancellationToken::new();
        let mut supervisor = Supervisor::new(shutdown.clone());
        let clock = Arc::clone(&ground.clock);
        let stores = Arc::new(ground.store.clone());
        let waits = Waits::default();
        let world = World {
            data_dir: Arc::new(ground.dir.clone()),
            compute: fake.compute(OWNER, &ground.dir.place()),
            agents: Arc::new(fake),
            packages: Arc::new(ground.packages.clone()),
            directory: Arc::new(ground.directory.clone()),
            git: Arc::new(FakeGit::default()),
            clock: Arc::clone(&clock),
            waits: waits.clone(),
            tasks: TaskTracker::new(),
            shutdown: shutdown.clone(),
        };
        let options = Options {
            owner: OWNER.to_owned(),
            service_user: (0, 0),
            agents: Some(AgentAddress {
                ip: None,
                port: 8081,
            }),
            readiness_timeout: Duration::from_secs(60),
            verify_every: Duration::from_secs(150),
        };
        let shared = Shared::new(&stores, world, options);
        let mut controllers = Controllers {
            supervisor: &mut supervisor,
            context: Context {
                leadership,
                clock,
                tick: StatusTick::default(),
                waits,
                shutdown: shutdown.clone(),
            },
            settings: Settings {
                workers: ground.workers,
                seed: Some(ground.seed),
                ..Settings::default()
            },
            objects: stores.clone(),
            handles: Vec::new(),
        };
        register(&stores, &shared, &mut controllers);
        Self {
            running: Some(Box::pin(supervisor.wait(GRACE))),
            shutdown,
        }
    }

    /// Waits until the process ends, which it does only when it is asked to or broken.
    pub async fn ended(&mut self) -> Result<(), SupervisorError> {
        match &mut self.running {
            Some(running) => running.await,
            None => std::future::pending().await,
        }
    }

    /// Asks the process to end and waits until it has.
    pub async fn stop(mut self) -> Result<(), SupervisorError> {
        self.shutdown.cancel();
        self.ended().await
    }

    /// Kills the process; when this returns, all its tasks are gone.
    pub async fn kill(mut self) {
        self.running = None;
        self.shutdown.cancel();
        // Killed tasks are dropped in their next turn.
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
    }
}
