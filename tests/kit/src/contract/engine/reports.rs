//! Events, logs and samples.

use std::time::Duration;

use engine::{
    ContainerFiles, Containers, EngineError, EngineEvent, EngineStream, LABEL_OWNER, LogOptions,
};
use futures::StreamExt;

use super::{Hand, Stage};

/// The next event. That a container is asked to stop is not told by every engine.
async fn next(events: &mut EngineStream<EngineEvent>) -> (String, String) {
    loop {
        let event = tokio::time::timeout(Duration::from_secs(300), events.next())
            .await
            .expect("an event comes")
            .expect("the stream goes on")
            .unwrap();
        if event.action != "stop" {
            return (event.uid, event.action);
        }
    }
}

pub async fn events_tell_the_life_of_owned_containers<S: Stage>(stage: &S) {
    let engine = stage.engine();
    let before = stage.create("before", "u0").await;
    let mut events = engine.events(stage.owner()).await.unwrap();
    let mut foreign = stage.settings("u9");
    foreign
        .labels
        .insert(LABEL_OWNER.to_owned(), format!("{}-other", stage.owner()));
    let foreign = engine
        .create(&stage.name("foreign"), &foreign)
        .await
        .unwrap();
    engine.remove(&foreign).await.unwrap();

    // What happened before the stream was first read is not lost.
    let id = stage.run("seen", "u1").await;
    let told = |action: &str| ("u1".to_owned(), action.to_owned());
    assert_eq!(next(&mut events).await, told("create"));
    assert_eq!(next(&mut events).await, told("start"));
    stage
        .hand(Hand::LimitMemory(&stage.name("seen"), 48 << 20))
        .await;
    assert_eq!(next(&mut events).await, told("update"));
    engine.rename(&id, &stage.name("renamed")).await.unwrap();
    assert_eq!(next(&mut events).await, told("rename"));
    engine.stop(&id, Duration::ZERO).await.unwrap();
    assert_eq!(next(&mut events).await, told("die"));
    engine.remove(&id).await.unwrap();
    assert_eq!(next(&mut events).await, told("destroy"));
    engine.remove(&before).await.unwrap();
    assert_eq!(
        next(&mut events).await,
        ("u0".to_owned(), "destroy".to_owned())
    );
}

pub async fn l58_looking_at_a_container_makes_no_event<S>(stage: &S)
where
    S: Stage<Engine: ContainerFiles>,
{
    let engine = stage.engine();
    std::fs::write(stage.home().join("probe"), "token").unwrap();
    let id = stage.run("watched", "u1").await;
    let mut events = engine.events(stage.owner()).await.unwrap();
    engine.list(stage.owner(), None).await.unwrap();
    engine.inspect(&id).await.unwrap();
    engine.read_file(&id, "/home/agent/probe", 1).await.unwrap();
    engine
        .read_file(&id, "/home/agent/probe", 10)
        .await
        .unwrap();
    engine.stats(&id).await.unwrap();
    drop(engine.logs(&id, &LogOptions::default()).await.unwrap());
    engine.start(&id).await.unwrap();
    engine.remove(&id).await.unwrap();
    let (_, action) = next(&mut events).await;
    assert_eq!(action, "die", "the removal is the first thing heard of");
}

async fn read<S: Stage>(stage: &S, id: &str, options: &LogOptions) -> String {
    let stream = stage.engine().logs(id, options).await.unwrap();
    let chunks: Vec<_> = stream.collect().await;
    let bytes: Vec<u8> = chunks
        .into_iter()
        .flat_map(|chunk| chunk.unwrap().bytes.to_vec())
        .collect();
    String::from_utf8(bytes).unwrap()
}

pub async fn a_log_is_read_whole_in_part_and_followed<S: Stage>(stage: &S) {
    let engine = stage.engine();
    let id = stage.create("log", "u1").await;
    assert_eq!(read(stage, &id, &LogOptions::default()).await, "");
    stage.start(&id).await;
    stage.let_speak(&stage.name("log")).await;
    tokio::time::sleep(Duration::from_millis(700)).await;

    let all = read(stage, &id, &LogOptions::default()).await;
    assert!(all.contains("config: none\n"), "{all:?}");
    let options = LogOptions {
        tail: Some(1),
        ..Default::default()
    };
    assert_eq!(read(stage, &id, &options).await, "config: none\n");
    let options = LogOptions {
        tail: Some(1),
        timestamps: true,
        ..Default::default()
    };
    let line = read(stage, &id, &options).await;
    let (time, text) = line.split_once(' ').unwrap();
    assert_eq!(text, "config: none\n");
    let time = schema::ids::Timestamp::parse_rfc3339(time).unwrap();
    let after = LogOptions {
        since: Some(time.plus(Duration::from_secs(60))),
        ..Default::default()
    };
    assert_eq!(read(stage, &id, &after).await, "");
    let before = LogOptions {
        since: Some(time.minus(Duration::from_millis(1))),
        ..Default::default()
    };
    assert!(read(stage, &id, &before).await.contains("config: none\n"));

    let options = LogOptions {
        follow: true,
        ..Default::default()
    };
    let mut followed = engine.logs(&id, &options).await.unwrap();
    let first = followed.next().await.unwrap().unwrap();
    assert!(!first.stderr);
    engine.stop(&id, Duration::from_secs(5)).await.unwrap();
    let end = tokio::time::timeout(Duration::from_secs(300), async {
        while let Some(chunk) = followed.next().await {
            chunk.unwrap();
        }
    });
    end.await.expect("a followed log ends with its process");
    let missing = engine
        .logs(&stage.name("nobody"), &options)
        .await
        .map(|_| ());
    assert!(
        matches!(missing, Err(EngineError::NotFound(_))),
        "{missing:?}"
    );
}

pub async fn a_running_container_has_stats<S: Stage>(stage: &S) {
    let engine = stage.engine();
    let id = stage.create("stats", "u1").await;
    assert_eq!(engine.stats(&id).await.unwrap(), None);
    engine.start(&id).await.unwrap();
    let stats = engine.stats(&id).await.unwrap().unwrap();
    assert_eq!(stats.memory_limit_bytes, 64 << 20);
    assert!(stats.pids.is_none_or(|count| count >= 1), "{stats:?}");
    assert!(
        stats.memory_bytes > 0 && stats.memory_bytes < 64 << 20,
        "{stats:?}"
    );
    assert!((0.0..=1600.0).contains(&stats.cpu_percent), "{stats:?}");
    let sample = engine.sample(&id).await.unwrap().unwrap();
    assert!(sample.memory_bytes < 64 << 20, "{sample:?}");
    let later = engine.sample(&id).await.unwrap().unwrap();
    assert!(later.cpu >= sample.cpu, "{sample:?} {later:?}");
    engine.stop(&id, Duration::from_secs(1)).await.unwrap();
    assert_eq!(engine.sample(&id).await.unwrap(), None);
}
