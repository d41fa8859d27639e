use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use engine::{ContainerState, LABEL_OWNER, LABEL_UID};
use futures::StreamExt;
use schema::clock::ManualClock;

use super::*;

fn engine() -> FakeEngine {
    let clock = ManualClock::new(Timestamp::from_secs(1_000));
    let engine = FakeEngine::new(Arc::new(clock));
    engine.add_image("echo:1");
    engine
        .hand_create_network(&NetworkSettings {
            name: "agentyard".to_owned(),
            subnet: "10.88.0.0/29".to_owned(),
            labels: BTreeMap::new(),
            isolation: Default::default(),
        })
        .unwrap();
    engine
}

fn settings(uid: &str) -> ContainerSettings {
    ContainerSettings {
        image: "echo:1".to_owned(),
        network: "agentyard".to_owned(),
        labels: BTreeMap::from([
            (LABEL_OWNER.to_owned(), "me".to_owned()),
            (LABEL_UID.to_owned(), uid.to_owned()),
        ]),
        ..Default::default()
    }
}

async fn started(engine: &FakeEngine, name: &str) -> String {
    let id = engine.create(name, &settings("u1")).await.unwrap();
    engine.start(&id).await.unwrap();
    id
}

#[tokio::test(start_paused = true)]
async fn a_scripted_process_ends_on_time_and_its_event_comes_without_anybody_looking() {
    let engine = engine();
    engine.on_start(|_| Run {
        ends: Some((Duration::from_secs(5), 3)),
        ..Run::default()
    });
    let mut events = engine.events("me").await.unwrap();
    started(&engine, "agent").await;
    let begun = Instant::now();
    let mut actions = Vec::new();
    for _ in 0..3 {
        actions.push(events.next().await.unwrap().unwrap().action);
    }
    assert_eq!(actions, ["create", "start", "die"]);
    assert_eq!(begun.elapsed(), Duration::from_secs(5));
    let details = engine.container("agent").unwrap();
    assert_eq!(details.exit_code, Some(3));
    assert_eq!(details.finished_at, Some(Timestamp::from_secs(1_005)));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_earlier_run_does_not_end_a_later_one() {
    let engine = engine();
    engine.on_start(|_| Run {
        ends: Some((Duration::from_secs(5), 1)),
        ..Run::default()
    });
    let id = started(&engine, "agent").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    engine.hand_stop("agent").unwrap();
    engine.start(&id).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(engine.running(), ["agent"]);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(engine.running(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ignores_the_request_is_killed_after_the_grace() {
    let engine = engine();
    engine.on_start(|_| Run {
        stops_after: None,
        ..Run::default()
    });
    let id = started(&engine, "agent").await;
    let begun = Instant::now();
    engine.stop(&id, Duration::from_secs(10)).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
    assert_eq!(engine.container("agent").unwrap().exit_code, Some(137));
}

#[tokio::test(start_paused = true)]
async fn faults_come_in_order_and_only_for_their_verb() {
    let engine = engine();
    engine.fail_next(Verb::Create, 2, || {
        EngineError::Internal("scripted".to_owned())
    });
    engine.fault_next(
        Verb::Create,
        1,
        Fault::apply_then_fail(FakeEngine::unavailable_error),
    );
    for _ in 0..2 {
        let error = engine.create("agent", &settings("u1")).await.unwrap_err();
        assert!(matches!(error, EngineError::Internal(_)));
    }
    assert!(engine.containers().is_empty(), "nothing happened");
    let error = engine.create("agent", &settings("u1")).await.unwrap_err();
    assert!(matches!(error, EngineError::Unavailable(_)));
    assert_eq!(
        engine.containers().len(),
        1,
        "it happened, the answer was lost"
    );
    assert_eq!(engine.list("me", None).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_call_is_ended_by_the_callers_limit_and_may_be_repeated() {
    let engine = engine();
    engine.fault_next(Verb::Info, 1, Fault::Hang);
    let limit = Duration::from_secs(30);
    assert!(tokio::time::timeout(limit, engine.info()).await.is_err());
    assert!(engine.info().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_switched_off_engine_fails_every_verb_and_breaks_streams_but_keeps_containers() {
    let engine = engine();
    let mut events = engine.events("me").await.unwrap();
    started(&engine, "agent").await;
    engine.set_unavailable(true);
    assert!(matches!(
        engine.info().await,
        Err(EngineError::Unavailable(_))
    ));
    assert!(matches!(
        engine.list("me", None).await,
        Err(EngineError::Unavailable(_))
    ));
    assert!(matches!(
        events.next().await,
        Some(Err(EngineError::Unavailable(_)))
    ));
    assert!(events.next().await.is_none());
    engine.set_unavailable(false);
    assert_eq!(
        engine.list("me", None).await.unwrap()[0].state,
        ContainerState::Running
    );
}

#[tokio::test(start_paused = true)]
async fn reads_and_writes_are_counted_apart() {
    let engine = engine();
    started(&engine, "agent").await;
    engine.list("me", None).await.unwrap();
    let calls = engine.reset_calls();
    assert_eq!((calls.of(Verb::Create), calls.of(Verb::Start)), (1, 1));
    assert_eq!((calls.reads(), calls.writes()), (1, 2));
    assert_eq!(engine.calls(), Calls::default());
}

#[tokio::test(start_paused = true)]
async fn l29_addresses_go_round_skip_the_gateway_and_run_out() {
    let engine = engine();
    let address =
        |name: &str| engine.container(name).unwrap().container.networks["agentyard"].clone();
    for number in 2..=6 {
        let name = format!("agent{number}");
        started(&engine, &name).await;
        assert_eq!(address(&name), Some(format!("10.88.0.{number}")));
    }
    let id = engine.create("one-too-many", &settings("u")).await.unwrap();
    assert!(matches!(
        engine.start(&id).await,
        Err(EngineError::NetworkFull)
    ));
    engine.hand_remove("agent3").unwrap();
    engine.start(&id).await.unwrap();
    assert_eq!(address("one-too-many"), Some("10.88.0.3".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_followed_log_ends_with_the_process() {
    let engine = engine();
    engine.on_start(|_| Run {
        ends: Some((Duration::from_secs(5), 0)),
        ..Run::default()
    });
    let id = started(&engine, "agent").await;
    engine.hand_log("agent", false, "one").unwrap();
    let options = LogOptions {
        follow: true,
        ..LogOptions::default()
    };
    let mut log = engine.logs(&id, &options).await.unwrap();
    assert_eq!(log.next().await.unwrap().unwrap().bytes, "one\n");
    engine.hand_log("agent", true, "two").unwrap();
    let second = log.next().await.unwrap().unwrap();
    assert_eq!((second.stderr, second.bytes), (true, Bytes::from("two\n")));
    assert!(log.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_readiness_file_appears_when_its_time_has_come() {
    let engine = engine();
    engine.on_start(|_| Run {
        makes_file: Some((Duration::from_secs(2), "ready".to_owned())),
        ..Run::default()
    });
    let id = started(&engine, "agent").await;
    let uid = engine.container(&id).unwrap().container.labels[LABEL_UID].clone();
    assert_eq!(engine.file_made(&uid, "ready"), None);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(engine.file_made(&uid, "ready").is_some());
}

#[tokio::test(start_paused = true)]
async fn an_engine_elsewhere_sees_nothing_of_our_directories() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("probe"), "token").unwrap();
    let engine = engine();
    let mut settings = settings("u1");
    settings.binds = vec![engine::Bind {
        source: directory.path().display().to_string(),
        target: "/root".to_owned(),
        read_only: false,
    }];
    let id = engine.create("probe", &settings).await.unwrap();
    let read = engine.read_file(&id, "/root/probe", 100).await.unwrap();
    assert_eq!(read.as_deref(), Some(b"token".as_slice()));
    engine.hide_binds(true);
    assert_eq!(
        engine.read_file(&id, "/root/probe", 100).await.unwrap(),
        None
    );
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_containers_cost_little() {
    let engine = FakeEngine::new(Arc::new(ManualClock::new(Timestamp::from_secs(0))));
    engine.add_image("echo:1");
    engine
        .hand_create_network(&NetworkSettings {
            name: "agentyard".to_owned(),
            subnet: "10.88.0.0/16".to_owned(),
            labels: BTreeMap::new(),
            isolation: Default::default(),
        })
        .unwrap();
    for number in 0..10_000 {
        started(&engine, &format!("agent{number}")).await;
    }
    assert_eq!(engine.list("me", None).await.unwrap().len(), 10_000);
    assert_eq!(
        engine
            .network_by_name("agentyard")
            .unwrap()
            .containers
            .len(),
        10_000
    );
}
