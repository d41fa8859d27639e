//! Parts of the cluster that go away. Nothing else may use the cluster meanwhile.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use engine::{ContainerState, Containers, EngineError};
use futures::StreamExt;
use kit::contract::engine::Stage;
use schema::condition::Reason;

use crate::stage::stage;

fn state() -> PathBuf {
    PathBuf::from(std::env::var("AGENTYARD_TEST_CLUSTER").unwrap())
}

fn send_signal(program: &str, signal: &str) {
    let pid = std::fs::read_to_string(state().join("pid").join(program)).unwrap();
    let sent = Command::new("kill").args([signal, pid.trim()]).status();
    assert!(sent.unwrap().success());
}

/// Goes on with a program that was stopped, also when the test fails.
struct Stopped(&'static str);

impl Stopped {
    fn new(program: &'static str) -> Self {
        send_signal(program, "-STOP");
        Self(program)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        send_signal(self.0, "-CONT");
    }
}

/// Starts a program again that was killed, also when the test fails.
struct Killed(&'static str);

impl Killed {
    fn new(program: &'static str) -> Self {
        send_signal(program, "-KILL");
        Self(program)
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let mut command = Command::new("setsid");
        command.arg("--fork").arg(state().join("cmd").join(self.0));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        assert!(command.status().unwrap().success());
    }
}

#[tokio::test]
async fn server_that_comes_back_tells_what_was_missed() {
    let stage = stage().await;
    let id = stage.run("outage", "u1").await;
    let mut events = stage.engine.events(stage.owner()).await.unwrap();
    let version = stage.version().await;
    stage.change_something_else().await;
    let killed = Killed::new("kube-apiserver");
    stage
        .wait_for("the outage is noticed", async || {
            matches!(stage.engine.ping().await, Err(EngineError::Unavailable(_)))
        })
        .await;
    let outcome = stage.engine.start(&id).await;
    assert!(
        matches!(outcome, Err(EngineError::Unavailable(_))),
        "{outcome:?}"
    );
    drop(killed);
    stage
        .wait_for("the server is back and has its roles", async || {
            stage.engine.ping().await.is_ok() && stage.engine.inspect(&id).await.is_ok()
        })
        .await;
    assert!(stage.is_forgotten(&version).await, "no 410 for {version}");
    let seen = stage.see(&id).await;
    assert_eq!(seen.container.state, ContainerState::Running);
    stage.engine.stop(&id, Duration::ZERO).await.unwrap();
    let died = tokio::time::timeout(Duration::from_secs(60), async {
        while let Some(event) = events.next().await {
            if event.unwrap().action == "die" {
                return true;
            }
        }
        false
    });
    assert!(died.await.unwrap());
    let stopped = stage.see(&id).await;
    stage.expect_listed(&[stopped.container]).await;
    stage.strike().await;
}

#[tokio::test]
async fn server_that_hangs_is_unavailable() {
    let stage = stage().await;
    stage.create("hang", "u1").await;
    let stopped = Stopped::new("kube-apiserver");
    // The last answer stands for a while.
    tokio::time::sleep(Duration::from_secs(11)).await;
    let begun = tokio::time::Instant::now();
    let outcome = stage.engine.ping().await;
    assert!(
        matches!(outcome, Err(EngineError::Unavailable(_))),
        "{outcome:?}"
    );
    assert!(begun.elapsed() < Duration::from_secs(10));
    drop(stopped);
    stage
        .wait_for("the server is back", async || {
            stage.engine.ping().await.is_ok()
        })
        .await;
    stage.strike().await;
}

#[tokio::test]
async fn node_that_does_not_answer_is_lost_and_has_one_pod() {
    let stage = stage().await;
    let id = stage.run("lost", "u1").await;
    let next = stage.create("next", "u1").await;
    let stopped = Stopped::new("kubelet");
    let outcome = stage.engine.stop(&id, Duration::ZERO).await;
    assert!(
        matches!(outcome, Err(EngineError::Timeout(_))),
        "{outcome:?}"
    );
    let outcome = stage.engine.start(&next).await;
    assert!(
        matches!(outcome, Err(EngineError::Conflict(_))),
        "{outcome:?}"
    );
    let lost = |seen: &engine::ContainerDetails| {
        let waiting = seen.container.waiting.as_ref();
        seen.container.state == ContainerState::Removing
            && waiting.is_some_and(|it| it.reason == Reason::NodeLost)
    };
    stage
        .wait_for("the node is lost", async || lost(&stage.see(&id).await))
        .await;
    assert_eq!(stage.pods().await.len(), 1);
    drop(stopped);
    stage
        .wait_for("the end is confirmed", async || {
            stage.pods().await.is_empty()
        })
        .await;
    let ended = stage.see(&id).await;
    assert_eq!(
        (ended.container.state, ended.loss),
        (ContainerState::Exited, None)
    );
    stage.start(&next).await;
    assert_eq!(
        stage.see(&next).await.container.state,
        ContainerState::Running
    );
    stage.strike().await;
}
