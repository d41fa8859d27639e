use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use schema::condition::{Condition, Reason};
use schema::ids::{Kind, Uid};
use serde_json::Value;

use super::*;
use crate::ports::{
    ContainerInspect, ContainerLogs, ContainerStats, LogOptions, LogStream, PortError, Usage,
};
use crate::routes::test_support::{Yard, yard};

const START: &str = "/api/admin/container/start";
const STOP: &str = "/api/admin/container/stop";
const RESTART: &str = "/api/admin/container/restart";
const DEBUG: &str = "/api/admin/container/debug";
const LIMITS: &str = "/api/admin/container/limits";
const LOGS: &str = "/api/admin/container/logs?username=alice";
const ALICE: &str = "username=alice&wait=0";

/// An engine with the container of alice.
struct Engine {
    log: Vec<u8>,
    away: bool,
    asked: std::sync::Mutex<Vec<LogOptions>>,
}

impl Engine {
    fn check<T>(&self, user: &Uid, there: T) -> Result<Option<T>, PortError> {
        if self.away {
            return Err(PortError::EngineUnavailable("connection refused".into()));
        }
        Ok((user.as_str() == "alice").then_some(there))
    }
}

#[async_trait]
impl ContainerLogs for Engine {
    async fn logs(&self, user: &Uid, query: LogOptions) -> Result<Option<LogStream>, PortError> {
        self.asked.lock().unwrap().push(query);
        let pieces: Vec<_> = self
            .log
            .chunks(7)
            .map(Bytes::copy_from_slice)
            .map(Ok)
            .collect();
        self.check(user, stream::iter(pieces).boxed())
    }
}

#[async_trait]
impl ContainerInspect for Engine {
    async fn inspect(&self, user: &Uid) -> Result<Option<ContainerDetails>, PortError> {
        let mut facts = ContainerDetails::default();
        facts.container.id = "abc".to_owned();
        self.check(user, facts)
    }
}

#[async_trait]
impl ContainerStats for Engine {
    async fn stats(&self, user: &Uid) -> Result<Option<Usage>, PortError> {
        let usage = Usage {
            cpu_percent: 12.5,
            memory_bytes: 1,
            memory_limit_bytes: 2,
            pids: Some(3),
            network_rx_bytes: Some(4),
            network_tx_bytes: None,
        };
        self.check(user, usage)
    }
}

async fn with_engine(log: &[u8], away: bool) -> (Yard, Arc<Engine>) {
    let mut yard = yard().await;
    let engine = Arc::new(Engine {
        log: log.to_vec(),
        away,
        asked: std::sync::Mutex::default(),
    });
    yard.deps().logs = engine.clone();
    yard.deps().inspect = engine.clone();
    yard.deps().stats = engine.clone();
    yard.user("alice").await;
    yard.user("bob").await;
    (yard, engine)
}

#[tokio::test]
async fn stop_and_start_are_desired_states() {
    let yard = yard().await;
    let uid = yard.user("alice").await;
    let body = yard.post(STOP, ALICE).await.is(202);
    assert_eq!(
        (&body["state"], &body["generation"]),
        (&json!("pending"), &json!(2))
    );
    assert_eq!(yard.container(&uid).await.desired, Desired::Stopped);
    yard.post(START, ALICE).await.is(202);
    assert_eq!(yard.container(&uid).await.desired, Desired::Running);
    yard.post(START, "username=nobody")
        .await
        .fails(404, "not_found");
}

#[tokio::test]
async fn an_answer_is_held_until_the_container_is_there() {
    let yard = yard().await;
    let uid = yard.user("alice").await;
    let reconcile = async {
        while yard.container(&uid).await.generation.0 < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        yard.saw(
            Kind::Container,
            &uid,
            2,
            Condition::ready(Reason::Running, ""),
        )
        .await;
    };
    let (answer, ()) = tokio::join!(yard.post(START, "username=alice&wait=20"), reconcile);
    let body = answer.is(200);
    assert_eq!(
        (&body["state"], &body["object"]),
        (&json!("converged"), &json!("container/alice"))
    );
}

#[tokio::test]
async fn l33_without_an_engine_a_start_is_recorded_and_pending() {
    let yard = yard().await;
    let uid = yard.user("alice").await;
    let away = Condition::unknown(Reason::EngineUnavailable, "connection refused");
    yard.saw(Kind::Container, &uid, 2, away).await;
    let body = yard.post(START, "username=alice&wait=0").await.is(202);
    assert_eq!(body["state"], "pending");
    assert_eq!(body["conditions"][0]["reason"], "EngineUnavailable");
    assert!(
        body["conditions"][0]["remedy"]
            .as_str()
            .unwrap()
            .contains("recovery")
    );
}

#[tokio::test]
async fn l30_a_foreign_container_of_the_name_is_a_conflict() {
    let yard = yard().await;
    let uid = yard.user("alice").await;
    let conflict = Condition::not_ready(Reason::NameConflict, "agentyard-alice is not ours");
    yard.saw(Kind::Container, &uid, 2, conflict).await;
    let body = yard
        .post(START, "username=alice&wait=0")
        .await
        .fails(409, "name_conflict");
    assert_eq!(body["error"], "agentyard-alice is not ours");
    assert_eq!(
        (&body["state"], &body["generation"]),
        (&json!("failed"), &json!(2))
    );
    assert_eq!(yard.container(&uid).await.desired, Desired::Running);
}

#[tokio::test]
async fn each_restart_has_a_token_of_its_own_and_ends_debugging() {
    let yard = yard().await;
    let uid = yard.user("alice").await;
    yard.post(DEBUG, ALICE).await.is(202);
    let first = yard.container(&uid).await;
    assert!(first.debug && !first.restart_token.is_empty());
    yard.post(RESTART, ALICE).await.is(202);
    let second = yard.container(&uid).await;
    assert!(!second.debug);
    assert_ne!(first.restart_token, second.restart_token);
    yard.post(DEBUG, ALICE).await.is(202);
    yard.post(START, ALICE).await.is(202);
    assert!(!yard.container(&uid).await.debug);
}

#[tokio::test]
async fn limits_are_set_together_and_go_back_when_left_out() {
    let yard = yard().await;
    let uid = yard.user("alice").await;
    let set = |fields: &'static str| yard.post(LIMITS, fields);
    let body = set("username=alice&wait=0&cpu_limit=1.5&memory_limit_mb=512")
        .await
        .is(202);
    assert_eq!(
        (&body["cpu_limit"], &body["memory_limit_mb"]),
        (&json!(1.5), &json!(512))
    );
    let row = yard.container(&uid).await;
    assert_eq!((row.cpu_limit, row.memory_limit_mb), (Some(1.5), Some(512)));
    let body = set("username=alice&wait=0&cpu_limit=&memory_limit_mb=")
        .await
        .is(202);
    assert_eq!(
        (&body["cpu_limit"], &body["memory_limit_mb"]),
        (&Value::Null, &Value::Null)
    );
    let row = yard.container(&uid).await;
    assert_eq!((row.cpu_limit, row.memory_limit_mb), (None, None));
    for (field, fields) in [
        ("cpu_limit", "username=alice&cpu_limit=-1"),
        ("cpu_limit", "username=alice&cpu_limit=NaN"),
        ("cpu_limit", "username=alice&cpu_limit=many"),
        ("memory_limit_mb", "username=alice&memory_limit_mb=1"),
        ("memory_limit_mb", "username=alice&memory_limit_mb=1.5"),
    ] {
        let body = set(fields).await.fails(400, "invalid_parameter");
        assert_eq!(body["field"], field, "{fields}");
    }
}

#[tokio::test]
async fn a_log_is_clean_text() {
    let (yard, engine) = with_engine(b"\x1b[32mgreen\x1b[0m\tline\nlast", false).await;
    let body = yard.get(LOGS).await.is(200);
    assert_eq!(body["logs"], "green\tline\nlast\n");
    assert_eq!(
        (&body["username"], &body["truncated"]),
        (&json!("alice"), &json!(false))
    );
    yard.get(&format!("{LOGS}&tail=all&since=1778500000"))
        .await
        .is(200);
    let asked = engine.asked.lock().unwrap().clone();
    assert_eq!(
        (asked[0].tail, asked[0].since, asked[0].follow),
        (Some(100), None, false)
    );
    assert_eq!(
        (asked[1].tail, asked[1].since),
        (None, Some(crate::testing::NOW))
    );
    for bad in ["tail=-1", "tail=some", "since=never", "follow=maybe"] {
        let answer = yard.get(&format!("{LOGS}&{bad}")).await;
        answer.fails(400, "invalid_parameter");
    }
}

#[tokio::test]
async fn l42_a_long_log_is_cut_to_its_newest_mebibyte() {
    let mut log = b"x".repeat(99);
    log.push(b'\n');
    let log = [log.repeat(11_000), b"newest\n".to_vec()].concat();
    let (yard, _) = with_engine(&log, false).await;
    let body = yard.get(&format!("{LOGS}&tail=all")).await.is(200);
    let text = body["logs"].as_str().unwrap();
    assert_eq!(body["truncated"], true);
    assert!(text.len() <= live::MAX_LOG && text.len() > live::MAX_LOG - 200);
    assert!(text.starts_with('x') && text.ends_with("newest\n"));
}

#[tokio::test]
async fn a_followed_log_comes_line_by_line_and_says_when_it_ends() {
    let (yard, engine) = with_engine(b"one\ntwo\n", false).await;
    let answer = yard.get(&format!("{LOGS}&follow=true")).await;
    assert_eq!(answer.status, 200);
    let events: Vec<&str> = answer
        .text
        .split("\n\n")
        .filter(|event| !event.is_empty())
        .collect();
    assert_eq!(events[..2], ["data: one", "data: two"]);
    assert!(events[2].contains("event:end"), "{events:?}");
    assert!(engine.asked.lock().unwrap()[0].follow);
}

#[tokio::test]
async fn live_reads_tell_no_user_no_container_and_no_engine_apart() {
    let (yard, _) = with_engine(b"", false).await;
    let (away, _) = with_engine(b"", true).await;
    for path in ["logs", "inspect", "stats"] {
        let path = |name| format!("/api/admin/container/{path}?username={name}");
        yard.get(&path("alice")).await.is(200);
        yard.get(&path("bob")).await.fails(404, "not_found");
        yard.get(&path("nobody")).await.fails(404, "not_found");
        away.get(&path("alice"))
            .await
            .fails(503, "engine_unavailable");
    }
    let stats = yard
        .get("/api/admin/container/stats?username=alice")
        .await
        .is(200);
    assert_eq!(stats["stats"]["cpu_percent"], 12.5);
    let inspect = yard
        .get("/api/admin/container/inspect?username=alice")
        .await
        .is(200);
    assert_eq!(inspect["container"]["id"], "abc");
}

#[tokio::test]
async fn users_see_and_restart_their_own_container_only() {
    let (yard, _) = with_engine(b"hello\n", false).await;
    let alice = Uid::from("alice".to_owned());
    let shown = yard.get_as("alice", "/api/user/container").await.is(200);
    let expected = [
        ("username", "alice"),
        ("status", "starting"),
        ("desired", "running"),
    ];
    for (field, value) in expected {
        assert_eq!(shown[field], value);
    }
    assert_eq!(shown["conditions"], json!([]));
    let logs = yard
        .get_as("alice", "/api/user/logs?username=bob")
        .await
        .is(200);
    assert_eq!(
        (&logs["username"], &logs["logs"]),
        (&json!("alice"), &json!("hello\n"))
    );
    let path = "/api/user/container/restart";
    yard.post_as("alice", path, "username=bob&wait=0")
        .await
        .is(202);
    assert!(!yard.container(&alice).await.restart_token.is_empty());
    let bob = yard.container(&Uid::from("bob".to_owned())).await;
    assert_eq!(bob.restart_token, "");
}

#[tokio::test]
async fn a_users_restart_neither_starts_what_is_stopped_nor_ends_debug_mode() {
    let (yard, _) = with_engine(b"", false).await;
    let alice = Uid::from("alice".to_owned());
    let restart = async || {
        yard.post_as("alice", "/api/user/container/restart", "wait=0")
            .await
    };
    yard.post(DEBUG, ALICE).await.is(202);
    let debugged = yard.container(&alice).await;
    restart().await.is(202);
    let restarted = yard.container(&alice).await;
    assert!(restarted.debug);
    assert_ne!(restarted.restart_token, debugged.restart_token);
    yard.post(RESTART, ALICE).await.is(202);
    assert!(!yard.container(&alice).await.debug);

    yard.post(STOP, ALICE).await.is(202);
    let stopped = yard.container(&alice).await;
    let refused = restart().await;
    assert_eq!(refused.is(409)["code"], "container_stopped");
    assert_eq!(yard.container(&alice).await, stopped, "nothing is recorded");
}
