//! A stage on a real engine. Everything on it carries a label of this run and is removed at the end.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use engine::{AgentNetwork, EngineError, Images, LABEL_OWNER, NetworkSettings};
use engine_docker::DockerEngine;
use schema::ids::Uid;

use kit::contract::engine::{Hand, Stage};

/// The sentence that tells how to get an engine.
const HOW: &str = "AGENTYARD_TEST_DOCKER_HOST is not set: this test needs a real engine. Start one with `make services-up` and run the tests with `make run-tests FILTER=…`";

/// The address of the test engine.
pub fn docker_host() -> String {
    std::env::var("AGENTYARD_TEST_DOCKER_HOST").expect(HOW)
}

pub struct RealStage {
    engine: DockerEngine,
    host: String,
    owner: String,
    network: String,
    home: tempfile::TempDir,
}

pub async fn stage() -> RealStage {
    let host = docker_host();
    let engine = DockerEngine::new(host.parse().unwrap(), None);
    assert!(
        engine.image("echo:2").await.unwrap().is_some(),
        "the test images are missing: run tests/services/echo-image"
    );
    let owner = format!("contract-{}", &Uid::random().as_str()[..12]);
    let stage = RealStage {
        engine,
        host,
        network: format!("{owner}-net"),
        owner,
        home: tempfile::tempdir().unwrap(),
    };
    loop {
        let settings = NetworkSettings {
            name: stage.network.clone(),
            subnet: format!("{}.0/24", random_prefix()),
            labels: BTreeMap::from([(LABEL_OWNER.to_owned(), stage.owner.clone())]),
            isolation: Default::default(),
        };
        match stage.engine.create_network(&settings).await {
            Ok(()) => return stage,
            // Another test running at the same time drew the same subnet.
            Err(EngineError::Refused(text)) if text.contains("overlaps") => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

fn random_prefix() -> String {
    let draw = u32::from_str_radix(&Uid::random().as_str()[..4], 16).unwrap();
    format!("10.{}.{}", 128 + (draw >> 8) % 64, draw % 256)
}

impl RealStage {
    /// Removes everything of this run, also what a failed test left.
    pub async fn strike(self) {
        drop(self);
    }

    fn docker(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new("docker");
        command
            .args(["-H", &self.host])
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    fn ids(&self, arguments: &[&str]) -> Vec<String> {
        let output = self.docker(arguments).output();
        let text = output.map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&text)
            .lines()
            .map(str::to_owned)
            .collect()
    }
}

impl Drop for RealStage {
    fn drop(&mut self) {
        for owner in [self.owner.clone(), format!("{}-other", self.owner)] {
            let filter = format!("label={LABEL_OWNER}={owner}");
            for (list, remove) in [
                (
                    ["ps", "-aq", "--no-trunc", "--filter"].as_slice(),
                    ["rm", "-fv"].as_slice(),
                ),
                (&["network", "ls", "-q", "--filter"], &["network", "rm"]),
            ] {
                let ids = self.ids(&[list, &[&filter]].concat());
                if !ids.is_empty() {
                    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                    let _ = self.docker(&[remove, &ids].concat()).output();
                }
            }
        }
        let pattern = format!("reference={}-*", self.owner);
        let format = "{{.Repository}}:{{.Tag}}";
        for image in self.ids(&["images", "--format", format, "--filter", &pattern]) {
            let _ = self.docker(&["rmi", &image]).output();
        }
    }
}

impl Stage for RealStage {
    type Engine = DockerEngine;

    fn engine(&self) -> &DockerEngine {
        &self.engine
    }

    fn owner(&self) -> &str {
        &self.owner
    }

    fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.owner)
    }

    fn network(&self) -> &str {
        &self.network
    }

    fn tiny_subnet(&self) -> String {
        // Apart from the range of the stages' own networks.
        let draw = u32::from_str_radix(&Uid::random().as_str()[..4], 16).unwrap();
        format!("10.{}.{}.0/30", 192 + (draw >> 8) % 64, draw % 256)
    }

    fn home(&self) -> &Path {
        self.home.path()
    }

    async fn hand(&self, hand: Hand<'_>) {
        let (bytes, archive, file);
        let arguments: &[&str] = match hand {
            Hand::Stop(name) => &["stop", "-t", "5", name],
            Hand::Remove(name) => &["rm", "-f", name],
            Hand::Pause(name) => &["pause", name],
            Hand::LimitMemory(name, limit) => {
                bytes = limit.to_string();
                &["update", "--memory", &bytes, "--memory-swap", &bytes, name]
            }
            Hand::AlwaysRestart(name) => &["update", "--restart", "always", name],
            Hand::Disconnect(name, network) => &["network", "disconnect", "-f", network, name],
            Hand::Import(reference) => {
                archive = self.home.path().join("image.tar");
                let mut tar = tar::Builder::new(std::fs::File::create(&archive).unwrap());
                let mut header = tar::Header::new_gnu();
                header.set_size(reference.len() as u64);
                header.set_mode(0o644);
                tar.append_data(&mut header, "name", reference.as_bytes())
                    .unwrap();
                tar.finish().unwrap();
                file = archive.display().to_string();
                &["import", &file, reference]
            }
            Hand::Tag(image, reference) => &["tag", image, reference],
        };
        let output = self.docker(arguments).output().unwrap();
        assert!(output.status.success(), "{hand:?}: {output:?}");
    }

    async fn let_speak(&self, _name: &str) {}
}
