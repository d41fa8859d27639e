//! The service as the chart's Pod starts it, beside a real engine.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde_json::json;

use crate::support::stage::IMAGE;
use crate::support::{Engine, PATIENCE, Stage, seconds, until};

/// Command and environment of a container of the rendered chart.
#[derive(Deserialize)]
struct Container {
    command: Vec<String>,
    environment: BTreeMap<String, String>,
}

/// Renders the chart with `values` besides those of a file in its `ci` folder, and replaces texts in what it renders.
fn render_chart(
    stage: &Stage,
    file: &str,
    values: &serde_json::Value,
    replace: &[(&str, &str)],
) -> Container {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let more = stage.path().join("values.json");
    std::fs::write(&more, values.to_string()).unwrap();
    let mut command = Command::new(repository.join("target/tools/bin/python"));
    command
        .arg(repository.join("tests/chart/container"))
        .arg("--values")
        .arg(repository.join("charts/agentyard/ci").join(file))
        .arg("--values")
        .arg(more);
    for (old, new) in replace {
        command.arg("--replace").arg(format!("{old}={new}"));
    }
    let output = command
        .output()
        .expect("`make tools` installs Python's packages and helm");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn engine_rendered_container_serves_and_runs_an_agent() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let values = json!({
        "settings": {"image.name": IMAGE, "image.tag": "1", "image.pull_policy": "never"},
    });
    let data = stage.data().display().to_string();
    let container = render_chart(
        &stage,
        "docker-values.yaml",
        &values,
        &[
            // The Pod's mounts.
            ("/var/lib/agentyard/data", &data),
            ("unix:///run/engine/docker.sock", engine.host()),
            // Other tests listen at the Pod's ports.
            ("0.0.0.0:8080", "127.0.0.1:0"),
            ("0.0.0.0:9464", "127.0.0.1:0"),
        ],
    );
    assert_eq!(container.command, ["agentyard", "serve"]);
    let mut launch = stage.command().environment_only();
    for (name, value) in &container.environment {
        launch = launch.env(name, value);
    }
    let service = launch.start().await;

    let admin = service.admin().await;
    for path in ["/readyz?part=database", "/readyz"] {
        until(&format!("{path} is ready"), PATIENCE, async || {
            admin.get(path).await.status == 200
        })
        .await;
    }
    admin.create_user("bob").await;
    engine.the_running("bob");
    admin.status("bob", "running", seconds(5)).await;
    let lines: Vec<serde_json::Value> = service
        .log()
        .lines()
        .map(|line| serde_json::from_str(line).expect("the chart's log format is JSON"))
        .collect();
    assert!(!lines.is_empty());
}
