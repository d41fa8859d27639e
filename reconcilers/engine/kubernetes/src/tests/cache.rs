use std::time::Duration;

use engine::ContainerState;
use schema::ids::Timestamp;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;

use super::{agent_status, merge, pod, settings, template_of};
use crate::cache::{Cache, Change, Kind, Object, STALE};
use crate::names::{LAST_RUN, NAME, STARTED};
use crate::state::{PodState, Template};

const NOW: Timestamp = Timestamp::from_millis(1_767_225_700_000);

fn template(revision: u64, annotations: &[(&str, &str)]) -> Object {
    let template = template_of(&settings(), annotations);
    let template = Template::of(&template.metadata).unwrap();
    Object::Template(Box::new(Template {
        revision,
        ..template
    }))
}

fn pod_state(patch: Value) -> Object {
    let pod = pod(&template_of(&settings(), &[]), patch);
    Object::Pod(Box::new(PodState::of(&pod).unwrap()))
}

fn running() -> Value {
    agent_status("Running", json!({ "running": {} }))
}

fn take_events(changes: &mut Receiver<Change>) -> Vec<String> {
    let mut actions = Vec::new();
    while let Ok(change) = changes.try_recv() {
        assert_eq!(
            (change.owner.as_str(), change.event.uid.as_str()),
            ("instance", "u1")
        );
        actions.push(change.event.action);
    }
    actions
}

fn state(cache: &Cache) -> Option<ContainerState> {
    let containers = cache.containers(NOW).unwrap();
    containers.first().map(|container| container.state)
}

#[tokio::test(start_paused = true)]
async fn life_of_a_container_is_told_in_order() {
    let cache = Cache::default();
    cache.replace(Kind::Templates, vec![], 1, NOW);
    cache.replace(Kind::Pods, vec![], 1, NOW);
    let mut changes = cache.subscribe_changes();
    let started = [(STARTED, "2026-01-01T00:01:00Z")];
    let update = |object| cache.update(Kind::Templates, object, 2, NOW);
    update(template(2, &[]));
    assert_eq!(take_events(&mut changes), ["create"]);
    cache.update(Kind::Pods, pod_state(json!({})), 3, NOW);
    update(template(4, &started));
    assert_eq!(state(&cache), Some(ContainerState::Starting));
    assert_eq!(take_events(&mut changes), Vec::<String>::new());
    cache.update(Kind::Pods, pod_state(running()), 5, NOW);
    assert_eq!(take_events(&mut changes), ["start"]);
    // By hand.
    update(template(6, &started));
    assert_eq!(take_events(&mut changes), ["update"]);
    let renamed = [started[0], (NAME, "other")];
    update(template(7, &renamed));
    assert_eq!(take_events(&mut changes), ["rename"]);
    let mut ending = running();
    merge(
        &mut ending,
        json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:02:00Z" } }),
    );
    cache.update(Kind::Pods, pod_state(ending), 8, NOW);
    assert_eq!(take_events(&mut changes), ["stop"]);
    cache.remove(Kind::Pods, &pod_state(running()), 9, NOW);
    assert_eq!(take_events(&mut changes), ["die"]);
    let ended = [renamed[0], renamed[1], (LAST_RUN, "{}")];
    update(template(10, &ended));
    assert_eq!(take_events(&mut changes), Vec::<String>::new());
    cache.remove(Kind::Templates, &template(11, &ended), 11, NOW);
    assert_eq!(take_events(&mut changes), ["destroy"]);
    assert_eq!(state(&cache), None);
}

#[tokio::test(start_paused = true)]
async fn cause_of_waiting_is_told_when_it_changes() {
    let cache = Cache::default();
    cache.replace(Kind::Templates, vec![template(2, &[])], 2, NOW);
    cache.replace(Kind::Pods, vec![pod_state(json!({}))], 2, NOW);
    let mut changes = cache.subscribe_changes();
    let pulling = json!({ "waiting": { "reason": "ErrImagePull", "message": "no" } });
    for expected in [vec!["update"], vec![]] {
        let patch = agent_status("Pending", pulling.clone());
        cache.update(Kind::Pods, pod_state(patch), 3, NOW);
        assert_eq!(take_events(&mut changes), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn new_listing_tells_what_was_missed() {
    let cache = Cache::default();
    cache.replace(
        Kind::Templates,
        vec![template(2, &[(STARTED, "2026-01-01T00:01:00Z")])],
        2,
        NOW,
    );
    cache.replace(Kind::Pods, vec![pod_state(running())], 2, NOW);
    let mut changes = cache.subscribe_changes();
    cache.replace(Kind::Pods, vec![], 9, NOW);
    assert_eq!(take_events(&mut changes), ["die"]);
    cache.replace(Kind::Templates, vec![], 9, NOW);
    assert_eq!(take_events(&mut changes), ["destroy"]);
}

#[tokio::test(start_paused = true)]
async fn late_word_of_an_older_pod_is_not_taken_for_the_new_one() {
    let cache = Cache::default();
    cache.replace(Kind::Templates, vec![template(2, &[])], 2, NOW);
    let second = json!({ "metadata": { "uid": "p2" } });
    cache.replace(Kind::Pods, vec![pod_state(second)], 2, NOW);
    cache.remove(Kind::Pods, &pod_state(running()), 3, NOW);
    assert_eq!(state(&cache), Some(ContainerState::Starting));
}

#[tokio::test(start_paused = true)]
async fn silent_watch_is_not_believed() {
    let cache = Cache::default();
    assert_eq!(cache.containers(NOW), None);
    cache.replace(Kind::Templates, vec![], 2, NOW);
    assert_eq!(cache.containers(NOW), None, "Pods are not listed yet");
    cache.replace(Kind::Pods, vec![], 2, NOW);
    assert_eq!(cache.containers(NOW), Some(vec![]));
    tokio::time::advance(STALE).await;
    assert_eq!(cache.containers(NOW), None);
    cache.note_alive(Kind::Templates, 3);
    assert_eq!(cache.containers(NOW), None);
    cache.note_alive(Kind::Pods, 3);
    assert_eq!(cache.containers(NOW), Some(vec![]));
}

#[tokio::test(start_paused = true)]
async fn writer_waits_for_its_echo_and_not_for_ever() {
    let cache = Cache::default();
    let begun = tokio::time::Instant::now();
    cache.wait_shown(Kind::Templates, 5).await;
    assert_eq!(begun.elapsed(), Duration::ZERO, "no watch runs");
    cache.replace(Kind::Templates, vec![template(2, &[])], 2, NOW);
    tokio::join!(cache.wait_shown(Kind::Templates, 5), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cache.note_alive(Kind::Templates, 5);
    });
    assert_eq!(begun.elapsed(), Duration::from_millis(100));
    cache.wait_template_gone("t1").await;
    assert_eq!(begun.elapsed(), Duration::from_millis(2100));
}

#[tokio::test(start_paused = true)]
async fn end_before_a_deletion_is_remembered() {
    let cache = Cache::default();
    cache.replace(Kind::Pods, vec![pod_state(running())], 2, NOW);
    let asked = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:02:00Z" } });
    let ended = agent_status("Failed", json!({ "terminated": { "exitCode": 0 } }));
    let mut both = ended.clone();
    merge(&mut both, asked.clone());
    let mut ending = running();
    merge(&mut ending, asked);
    let is_noted = |steps: [&Value; 3]| {
        cache.replace(Kind::Pods, vec![], 3, NOW);
        for step in steps {
            cache.update(Kind::Pods, pod_state(step.clone()), 4, NOW);
        }
        match pod_state(both.clone()) {
            Object::Pod(pod) => cache.ended_by_itself(&pod),
            Object::Template(_) => false,
        }
    };
    assert!(is_noted([&running(), &ended, &both]));
    assert!(!is_noted([&running(), &ending, &both]));
}
