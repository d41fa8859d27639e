//! What reconcilers share, made of doubles. Tests put in what they want otherwise.

use std::sync::Arc;
use std::time::Duration;

use engine::AgentAddress;
use reconcilers::drivers::agent_probe::HttpProbe;
use reconcilers::runtime::Waits;
use reconcilers::shared::{Options, World};
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

/// An engine that sees the data directory at its place, and nothing else that is not in memory.
pub fn world(engine: &FakeEngine, clock: SharedClock) -> World {
    let data_dir = MemoryDataDir::default();
    World {
        agents: Arc::new(HttpProbe::default()),
        compute: engine.compute(OWNER, &data_dir.place()),
        data_dir: Arc::new(data_dir),
        packages: Arc::new(FakeSource::default()),
        directory: Arc::new(FakeDirectory::default()),
        git: Arc::new(FakeGit::default()),
        clock,
        waits: Waits::default(),
        tasks: TaskTracker::new(),
        shutdown: CancellationToken::new(),
    }
}

/// A service that runs as root.
pub fn options() -> Options {
    Options {
        owner: OWNER.to_owned(),
        service_user: (0, 0),
        agents: Some(AgentAddress {
            ip: None,
            port: 8081,
        }),
        readiness_timeout: Duration::from_secs(60),
        verify_every: Duration::from_secs(600),
    }
}
