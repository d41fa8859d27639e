//! Digests and labels of typical agents, byte for byte as earlier versions made them: with other ones, an update of the
//! service would recreate every running agent.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::Bind;
use kit::FakeEngine;
use reconcilers::container::settings::{Inputs, container_settings, digest};
use schema::adapter::{Agent, Readiness, RunAs};
use schema::clock::SystemClock;
use schema::config::Config;
use schema::container::{AgentFiles, ContainerFacts, ContainerRow, Desired};
use schema::home::HomeId;
use schema::ids::{Generation, Uid};
use serde_json::{Value, json};

const IMAGE: &str = "sha256:6b1e0f4ad5a4d0f2e8f1c9a1f0a4d0f2e8f1c9a1f0a4d0f2e8f1c9a1f0a4d0f2";

fn row(name: &str) -> ContainerRow {
    ContainerRow {
        uid: Uid::from("0f1e2d3c4b5a69788796a5b4c3d2e1f0".to_owned()),
        name: name.parse().unwrap(),
        previous_name: None,
        disabled: false,
        quota_stop: None,
        desired: Desired::Running,
        restart_token: "r1".to_owned(),
        debug: false,
        image_ref: "docker.io/sipeed/picoclaw:v0.2.9".to_owned(),
        image_id: None,
        image_digest: None,
        health_timeout: None,
        min_ready: None,
        cpu_limit: None,
        memory_limit_mb: None,
        generation: Generation(3),
        deleted_at: None,
        has_finalizer: true,
        config_generation: 1,
        adapter_generation: 1,
        files: AgentFiles::default(),
        held_by: None,
        facts: ContainerFacts::default(),
    }
}

fn picoclaw() -> Agent {
    let environment = [
        ("PICOCLAW_CONFIG", "/home/picoclaw/.agent/config.json"),
        ("PICOCLAW_HOME", "/home/picoclaw/.agent"),
    ];
    Agent {
        name: "PicoClaw".to_owned(),
        home: "/home/picoclaw".to_owned(),
        environment: environment
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        command: Some(["picoclaw", "gateway"].map(str::to_owned).to_vec()),
        debug_command: Some(["picoclaw", "gateway", "-d"].map(str::to_owned).to_vec()),
        ..Agent::default()
    }
}

fn config(values: Value) -> Config {
    let Value::Object(values) = values else {
        panic!("{values}");
    };
    Config::from_stored(values.into_iter().collect())
}

/// The labels, of which one is the digest, as lines.
fn labels(row: &ContainerRow, agent: &Agent, config: &Config, home: Option<&str>) -> String {
    let home: Option<HomeId> = home.map(|home| serde_json::from_value(json!(home)).unwrap());
    let owner = "d41d8cd98f00b204e9800998ecf8427e";
    let engine = FakeEngine::new(Arc::new(SystemClock));
    let homes = engine.compute(owner, "/var/lib/agentyard/").homes;
    let inputs = Inputs {
        config,
        agent,
        owner,
        mount: homes.bind_home(&row.name, &agent.home),
        service_user: (998, 997),
        home: home.as_ref(),
        probes: false,
        overlay: None,
    };
    let settings = container_settings(row, IMAGE, &inputs);
    let labels = settings.labels.into_iter();
    let lines = labels.map(|(label, value)| format!("{label} {value}\n"));
    lines.collect()
}

/// The snapshot was taken before engines had crates of their own. It is never taken anew.
#[test]
fn digests_and_labels_are_those_of_earlier_versions() {
    let home = Some("1a2b3c-65f0.1d");
    let mut limited = row("Bob.Builder_1@example+x");
    limited.cpu_limit = Some(1.5);
    limited.memory_limit_mb = Some(768);
    limited.files.restart_digest = Some("f00d".to_owned());
    let timezone = config(json!({"container.timezone": "Europe/Berlin"}));
    let mut debugged = row("carol");
    debugged.debug = true;
    let tight = config(json!({
        "container.capabilities": ["SETUID", "CHOWN"],
        "container.cpu_limit": 0.5,
        "container.memory_limit_mb": 512,
        "container.pids_limit": 64,
    }));
    let image = Agent {
        run_as: RunAs::Image,
        command: None,
        debug_command: None,
        ..Agent::default()
    };
    let ids = Agent {
        run_as: RunAs::Ids(1000, 1000),
        ..picoclaw()
    };
    let usual = Config::default();
    let all = [
        labels(&row("alice"), &picoclaw(), &usual, None),
        labels(&limited, &picoclaw(), &timezone, home),
        labels(&debugged, &picoclaw(), &tight, home),
        labels(&row("dave"), &image, &usual, home),
        labels(&row("erin"), &ids, &usual, home),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn engines_own_configuration_and_check_are_part_of_the_digest() {
    let row = row("alice");
    let agent = Agent {
        readiness: Readiness::Http {
            port: 8080,
            path: "/health".to_owned(),
        },
        ..picoclaw()
    };
    let config = Config::default();
    let made = |probes: bool, overlay: Option<&str>| {
        let mount = Bind::default();
        let inputs = Inputs {
            config: &config,
            agent: &agent,
            owner: "x",
            mount,
            service_user: (998, 997),
            home: None,
            probes,
            overlay,
        };
        container_settings(&row, IMAGE, &inputs)
    };
    let plain = made(false, None);
    assert_eq!((plain.probe.as_ref(), plain.overlay.as_ref()), (None, None));
    let probed = made(true, None);
    assert_eq!(probed.probe.as_ref().map(|probe| probe.port), Some(8080));
    let all = [plain, probed, made(true, Some("a")), made(true, Some("b"))];
    let digests: BTreeSet<_> = all.iter().map(digest).collect();
    assert_eq!(digests.len(), all.len());
}
