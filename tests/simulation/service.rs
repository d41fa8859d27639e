//! One process of the service: the real reconcilers and the real runtime on what is simulated.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use reconcilers::agent_config::{self, AgentConfigReconciler};
use reconcilers::container::{Agents, ContainerReconciler, Options, Parts};
use reconcilers::drivers::docker::ContainerEngine;
use reconcilers::drivers::docker::fake::FakeEngine;
use reconcilers::engine::EngineReconciler;
use reconcilers::engine::data_dir::DataDirProbe;
use reconcilers::engine::view::EngineView;
use reconcilers::image::pulls::Pulls;
use reconcilers::runtime::leader::Leadership;
use reconcilers::runtime::summary::StatusTick;
use reconcilers::runtime::supervise::{Supervisor, SupervisorError};
use reconcilers::runtime::{Context, Controller, Settings};
use reconcilers::stores::memory::{MemoryDataDir, MemoryStore};
use reconcilers::stores::{AdapterSource, ConfigSource, DataDir, Store};
use reconcilers::user::UserReconciler;
use schema::adapter::{Agent, Readiness};
use schema::clock::SharedClock;
use schema::config::query::engine_uid;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::checks::OWNER;

/// The file that says an agent is ready, where that is asked.
pub const READY_FILE: &str = "/run/ready";
/// How long a process may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(15);

/// What outlives a process.
pub struct Ground {
    pub store: MemoryStore,
    pub dir: MemoryDataDir,
    pub clock: SharedClock,
    pub by_file: bool,
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
        let engine: Arc<dyn ContainerEngine> = Arc::new(fake);
        let store: Arc<dyn Store> = Arc::new(ground.store.clone());
        let dir: Arc<dyn DataDir> = Arc::new(ground.dir.clone());
        let view = Arc::new(EngineView::new(Arc::clone(&engine), OWNER));
        let source = Arc::new(ConfigSource::new(Arc::clone(&store)));
        let probe = Arc::new(DataDirProbe::new(
            Arc::clone(&engine),
            OWNER,
            Arc::clone(&dir),
            dir.place(),
        ));
        let pulls = Arc::new(Pulls::new(
            engine,
            Arc::clone(&clock),
            TaskTracker::new(),
            shutdown.clone(),
        ));
        // Each controller has a bell of its own, so that they hear it in the same order every time.
        let context = || Context {
            leadership: leadership.clone(),
            clock: Arc::clone(&clock),
            tick: StatusTick::default(),
            bell: ground.store.bell(),
            shutdown: shutdown.clone(),
        };
        let settings = |number| Settings {
            workers: ground.workers,
            seed: Some(ground.seed.wrapping_add(number)),
            ..Settings::default()
        };

        let engines = EngineReconciler::new(
            Arc::clone(&store),
            Arc::clone(&view),
            Arc::clone(&source),
            Arc::clone(&probe),
        );
        let statuses = engines.status_store(Arc::clone(&clock));
        let events = view.connection_events(engine_uid());
        Controller::new(engines, statuses, events, context(), settings(1)).spawn(&mut supervisor);

        let agents: Arc<dyn Agents> = Arc::new(profile(ground.by_file));
        let users = UserReconciler::new(
            Arc::clone(&store),
            Arc::clone(&dir),
            Arc::clone(&agents),
            (0, 0),
            Arc::clone(&clock),
        );
        let statuses = users.status_store();
        let silence = Box::pin(futures::stream::pending());
        Controller::new(users, statuses, silence, context(), settings(2)).spawn(&mut supervisor);

        let (settled, files) = agent_config::settled::channel();
        let configs = AgentConfigReconciler::new(
            agent_config::Parts {
                store: Arc::clone(&store),
                view: Arc::clone(&view),
                data_dir: Arc::clone(&dir),
                config: Arc::clone(&source),
                adapters: Arc::new(AdapterSource::new(Arc::clone(&store))),
                settled,
            },
            Arc::clone(&clock),
            agent_config::Options {
                service_user: (0, 0),
                agent_port: 8081,
                verify_every: Duration::from_secs(150),
            },
        );
        let statuses = configs.status_store();
        let silence = Box::pin(futures::stream::pending());
        Controller::new(configs, statuses, silence, context(), settings(4)).spawn(&mut supervisor);

        let containers = ContainerReconciler::new(
            Parts {
                store,
                view,
                data_dir: Arc::clone(&dir),
                config: source,
                agents,
                probe,
                pulls,
            },
            Arc::clone(&clock),
            Options {
                engine_data_dir: dir.place(),
                service_user: (0, 0),
                readiness_timeout: Duration::from_secs(60),
                verify_every: Duration::from_secs(150),
            },
        );
        let (statuses, events) = (containers.status_store(), containers.events(files));
        Controller::new(containers, statuses, events, context(), settings(3))
            .spawn(&mut supervisor);
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

fn profile(by_file: bool) -> Agent {
    Agent {
        environment: [("AGENT_HOME".to_owned(), "/root/.agent".to_owned())].into(),
        debug_command: Some(vec!["/bin/debug".to_owned()]),
        readiness: if by_file {
            Readiness::File(READY_FILE.to_owned())
        } else {
            Readiness::Running
        },
        ..Agent::default()
    }
}
