//! The engine contract on the scripted engine in memory.

// The suite is test code although its functions bear no test attribute.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::NetworkSettings;
use kit::contract::engine::{Hand, Stage};
use kit::engine::{FakeEngine, Run};
use schema::clock::SystemClock;

struct FakeStage {
    engine: FakeEngine,
    home: tempfile::TempDir,
}

async fn stage() -> FakeStage {
    let home = tempfile::tempdir().unwrap();
    let engine = FakeEngine::new(Arc::new(SystemClock));
    engine.add_image("echo:1");
    engine.add_image("echo:2");
    engine
        .hand_create_network(&NetworkSettings {
            name: "contract".to_owned(),
            subnet: "10.100.0.0/24".to_owned(),
            labels: BTreeMap::new(),
            isolation: Default::default(),
        })
        .unwrap();
    let crash = home.path().join(".agent/crash");
    engine.on_start(move |details| {
        let command = details
            .settings
            .command
            .clone()
            .unwrap_or_default()
            .join(" ");
        let mounted_over_a_file = details
            .settings
            .binds
            .iter()
            .any(|bind| bind.target == "/bin/echo-agent");
        let ends = if command.contains("/no-such-program") {
            Some((Duration::ZERO, 127))
        } else {
            crash.exists().then_some((Duration::from_millis(200), 3))
        };
        Run {
            refused: mounted_over_a_file
                .then(|| "mounting to rootfs at \"/bin/echo-agent\": not a directory".to_owned()),
            ends,
            stops_after: (!command.contains("trap ''")).then_some(Duration::ZERO),
            ..Run::default()
        }
    });
    FakeStage { engine, home }
}

impl FakeStage {
    async fn strike(self) {}
}

impl Stage for FakeStage {
    type Engine = FakeEngine;

    fn engine(&self) -> &FakeEngine {
        &self.engine
    }

    fn owner(&self) -> &str {
        "contract"
    }

    fn name(&self, name: &str) -> String {
        format!("contract-{name}")
    }

    fn network(&self) -> &str {
        "contract"
    }

    fn tiny_subnet(&self) -> String {
        "10.101.0.0/30".to_owned()
    }

    fn home(&self) -> &Path {
        self.home.path()
    }

    async fn hand(&self, hand: Hand<'_>) {
        match hand {
            Hand::Stop(name) => self.engine.hand_stop(name),
            Hand::Remove(name) => self.engine.hand_remove(name),
            Hand::Pause(name) => self.engine.hand_pause(name),
            Hand::LimitMemory(name, bytes) => self
                .engine
                .hand_update(name, |settings| settings.memory_bytes = bytes),
            Hand::AlwaysRestart(name) => self.engine.hand_set_restart_policy(name),
            Hand::Disconnect(name, network) => self.engine.hand_disconnect(name, network),
            Hand::Import(reference) => {
                self.engine.add_image(reference);
                Ok(())
            }
            Hand::Tag(image, reference) => self.engine.hand_tag(image, reference),
        }
        .unwrap();
    }

    async fn let_speak(&self, name: &str) {
        self.engine.hand_log(name, false, "config: none").unwrap();
    }
}

kit::engine_contract!(stage(), tokio::test(start_paused = true));
