//! An engine that is killed and comes back. Has an engine of its own, so that the other tests of a
//! real engine keep theirs; needs root.
//!
//! Needs the packages of the test services (`make services-up`, `make run-tests`). Without them the test fails; it never skips.

// Test code, although not every function bears the test attribute.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use engine::{ContainerSettings, ContainerState, Containers, EngineError, LABEL_OWNER, LABEL_UID};
use engine_docker::DockerEngine;
use futures::StreamExt;

/// A set of services in a directory of its own.
struct Services {
    scripts: PathBuf,
    directory: tempfile::TempDir,
}

impl Services {
    fn new() -> Self {
        let scripts = std::env::var("AGENTYARD_TEST_SERVICES").expect(
            "AGENTYARD_TEST_SERVICES is not set: start the services with `make services-up` and run the tests with `make run-tests FILTER=…`",
        );
        Self {
            scripts: scripts.into(),
            directory: tempfile::Builder::new().prefix("ay-").tempdir().unwrap(),
        }
    }

    fn script(&self, name: &str, arguments: &[&str]) {
        let output = std::process::Command::new(self.scripts.join(name))
            .args(arguments)
            .env("AGENTYARD_SERVICES_DIR", self.directory.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{name} {arguments:?}: {output:?}");
    }

    fn engine(&self) -> DockerEngine {
        let socket = self.directory.path().join("docker/docker.sock");
        let host = format!("unix://{}", socket.display());
        DockerEngine::new(host.parse().unwrap(), None)
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        let _ = std::process::Command::new(self.scripts.join("down"))
            .arg("--purge")
            .env("AGENTYARD_SERVICES_DIR", self.directory.path())
            .output();
    }
}

#[tokio::test]
async fn engine_l33_l57_lost_engine_is_reported_and_found_again() {
    let services = Services::new();
    let engine = services.engine();
    let missing = engine.info().await;
    assert!(
        matches!(missing, Err(EngineError::Unavailable(_))),
        "{missing:?}"
    );

    services.script("up", &["engine"]);
    services.script("echo-image", &["1"]);
    let info = engine.info().await.unwrap();
    assert_eq!(info.too_old, None);

    let settings = ContainerSettings {
        image: "echo:1".to_owned(),
        network: "bridge".to_owned(),
        labels: BTreeMap::from([
            (LABEL_OWNER.to_owned(), "restart".to_owned()),
            (LABEL_UID.to_owned(), "u1".to_owned()),
        ]),
        ..Default::default()
    };
    let id = engine.create("agent", &settings).await.unwrap();
    engine.start(&id).await.unwrap();
    let mut events = engine.events("restart").await.unwrap();
    let waiting = async {
        while let Some(event) = events.next().await {
            event?;
        }
        Ok::<(), EngineError>(())
    };
    let killing = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        services.script("dockerd", &["kill9"]);
    };
    let (ended, ()) = tokio::join!(waiting, killing);
    assert!(
        matches!(ended, Ok(()) | Err(EngineError::Unavailable(_))),
        "the stream ends with the engine: {ended:?}"
    );
    for outcome in [
        engine.list("restart", None).await.map(|_| ()),
        engine.start(&id).await,
        engine.inspect(&id).await.map(|_| ()),
    ] {
        assert!(
            matches!(outcome, Err(EngineError::Unavailable(_))),
            "{outcome:?}"
        );
    }

    services.script("dockerd", &["start"]);
    let listed = engine.list("restart", None).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        listed[0].state,
        ContainerState::Exited,
        "it ended with the engine's restart"
    );
    let mut events = engine.events("restart").await.unwrap();
    engine.start(&id).await.unwrap();
    assert_eq!(events.next().await.unwrap().unwrap().action, "start");
}
