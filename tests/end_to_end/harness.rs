//! The harness itself: a broken one would let tests pass for the wrong reason.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};

use crate::support::proxy::{Mode, Proxy};
use crate::support::{Engine, PATIENCE, Stage, seconds, until};

#[tokio::test(flavor = "multi_thread")]
async fn engine_proxy_passes_stalls_event_streams_and_refuses() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let proxy = Proxy::new(&stage.path().join("proxy.sock"), &engine.socket());
    let docker = |arguments: &[&str], stdout: Stdio| {
        let mut command = tokio::process::Command::new("docker");
        command
            .args(["-H", &proxy.host()])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::null())
            .kill_on_drop(true);
        command
    };
    let answers = async || {
        docker(&["info"], Stdio::null())
            .status()
            .await
            .unwrap()
            .success()
    };
    let mut events = docker(&["events", "--filter", "type=network"], Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(events.stdout.take().unwrap()).lines();
    until("the stream is open", seconds(10), async || {
        proxy.event_streams() == 1
    })
    .await;
    let create = |name: &str| {
        let label = format!("{}=harness", crate::support::engine::LABEL_OWNER);
        engine.docker(&["network", "create", "--label", &label, name])
    };

    create("agentyard-one");
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
    assert!(line.unwrap().unwrap().unwrap().contains("create"));

    proxy.set(Mode::StallEvents);
    create("agentyard-two");
    let line = tokio::time::timeout(seconds(1), lines.next_line()).await;
    assert!(line.is_err(), "{line:?}");
    assert!(answers().await);
    assert_eq!(proxy.event_streams(), 1);

    proxy.set(Mode::Pass);
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
    assert!(line.unwrap().unwrap().unwrap().contains("create"));

    proxy.set(Mode::Refuse);
    let ended = tokio::time::timeout(PATIENCE, events.wait()).await;
    ended.unwrap().unwrap();
    assert!(!answers().await);
    assert_eq!(proxy.event_streams(), 0);

    proxy.set(Mode::Pass);
    assert!(answers().await);
}

#[tokio::test]
async fn engine_claimed_after_a_failure_is_running_and_clean() {
    let engine = Engine::claim();
    let since = engine.now();
    engine.docker(&["run", "-d", "--name", "agentyard-left", "echo:1"]);
    engine.docker(&[
        "network",
        "create",
        "--label",
        "io.agentyard.owner=harness",
        "agentyard",
    ]);
    let happened = engine.happened("left", &since);
    assert!(
        happened.iter().any(|event| event.action == "start"),
        "{happened:?}"
    );
    assert_eq!(engine.the_running("left").name, "agentyard-left");
    engine.stop();
    std::mem::forget(engine);

    let engine = Engine::claim();
    assert_eq!(engine.ours(), []);
    let networks = engine.docker(&["network", "ls", "--format", "{{.Name}}"]);
    assert!(!networks.contains("agentyard"), "{networks}");
}
