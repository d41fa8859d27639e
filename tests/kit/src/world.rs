//! What reconcilers share, made of doubles. Tests put in what they want otherwise.

use std::sync::Arc;
use std::time::Duration;

use engine::ContainerEngine;
use reconcilers::drivers::agent_probe::HttpProbe;
use reconcilers::runtime::Waits;
use reconcilers::shared::{AgentAddress, Options, World};
use reconcilers::stores::DataDir;
use schema::clock::SharedClock;
use schema::ids::Timestamp;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::{FakeDirectory, FakeEngine, FakeGit, FakeSource, MemoryDataDir};

/// The instance id of a test.
pub const OWNER: &str = "instance";
/// When the clock of a test starts.
pub const START: Timestamp = Timestamp::from_secs(1_800_000_000);

/// An engine, and nothing else that is not in memory.
pub fn world(engine: &FakeEngine, clock: SharedClock) -> World {
    let firewall = Arc::new(engine.firewall());
    let engine: Arc<dyn ContainerEngine> = Arc::new(engine.clone());
    World {
        agents: Arc::new(HttpProbe::default()),
        data_dir: Arc::new(MemoryDataDir::default()),
        engine,
        firewall,
        packages: Arc::new(FakeSource::default()),
        directory: Arc::new(FakeDirectory::default()),
        git: Arc::new(FakeGit::default()),
        clock,
        waits: Waits::default(),
        tasks: TaskTracker::new(),
        shutdown: CancellationToken::new(),
    }
}

/// A service that runs as root, on a data directory that the engine sees at the same place.
pub fn options(data_dir: &dyn DataDir) -> Options {
    Options {
        owner: OWNER.to_owned(),
        service_user: (0, 0),
        engine_data_dir: data_dir.place(),
        agents: Some(AgentAddress {
            ip: None,
            port: 8081,
        }),
        readiness_timeout: Duration::from_secs(60),
        verify_every: Duration::from_secs(600),
    }
}
