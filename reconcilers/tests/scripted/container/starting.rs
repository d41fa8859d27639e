//! Containers that the engine does not start at once, or takes away.

use std::time::Duration;

use kit::engine::Run;
use schema::condition::{ConditionStatus, Reason};
use schema::ids::Uid;
use schema::live::{ContainerState, Waiting};

use super::support::{Pass, Yard, reason};

const NAME: &str = "agentyard-alice";
const WORDS: &str = "0/5 nodes: insufficient memory";

/// A run that waits for a machine until the test finds one.
fn waits() -> Run {
    let waiting = Waiting {
        reason: Reason::Unschedulable,
        message: WORDS.to_owned(),
    };
    Run {
        starts_after: Some((Duration::from_secs(1 << 20), waiting)),
        ..Run::default()
    }
}

async fn run_pass(yard: &mut Yard, uid: &Uid) -> Pass {
    yard.event(uid);
    yard.pass(uid).await.unwrap().unwrap()
}

fn ready_cause(pass: &Pass) -> (Reason, &str) {
    let condition = pass.condition.as_ref().unwrap();
    (condition.reason, &condition.message)
}

#[tokio::test]
async fn waiting_container_has_the_engines_cause() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    yard.fake.on_start(|_| waits());
    yard.clock.advance(Duration::from_secs(60));
    yard.restart(&uid, "again").await;
    let mut last = run_pass(&mut yard, &uid).await;
    while last.acted > 0 {
        last = run_pass(&mut yard, &uid).await;
    }
    assert_eq!(ready_cause(&last), (Reason::Unschedulable, WORDS));
    // Nothing is done about it, for however long.
    for _ in 0..5 {
        yard.clock.advance(Duration::from_secs(600));
        let waits = run_pass(&mut yard, &uid).await;
        assert_eq!(
            (waits.acted, ready_cause(&waits)),
            (0, (Reason::Unschedulable, WORDS))
        );
    }
    yard.fake.hand_begin(NAME).unwrap();
    yard.event(&uid);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert_eq!(yard.row(&uid).await.unwrap().facts.crash_count, 0);
}

#[tokio::test]
async fn stop_reaches_a_container_that_waits() {
    let mut yard = Yard::new().await;
    yard.fake.on_start(|_| waits());
    let uid = yard.create_user("alice").await;
    for _ in 0..3 {
        yard.service.engine_pass().await;
        yard.service.user_pass(&uid).await;
        run_pass(&mut yard, &uid).await;
    }
    let found = yard.fake.container(NAME).unwrap();
    assert_eq!(found.container.state, ContainerState::Starting);
    yard.set_desired(&uid, schema::container::Desired::Stopped, false)
        .await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Stopped);
    assert!(yard.names().is_empty());
}

#[tokio::test]
async fn replacement_without_a_machine_is_put_back() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    let first = yard.fake.container(NAME).unwrap().container.id;
    yard.fake
        .on_start(|details| match details.settings.memory_bytes {
            memory if memory == 256 << 20 => waits(),
            _ => Run::default(),
        });
    yard.set_limit(&uid, 256).await;
    let mut last = run_pass(&mut yard, &uid).await;
    while last.acted > 0 {
        last = run_pass(&mut yard, &uid).await;
    }
    assert_eq!(ready_cause(&last), (Reason::Unschedulable, WORDS));
    yard.clock.advance(Duration::from_secs(119));
    assert_eq!(run_pass(&mut yard, &uid).await.acted, 0);
    yard.clock.advance(Duration::from_secs(2));
    let mut failed = run_pass(&mut yard, &uid).await.condition.unwrap();
    for _ in 0..20 {
        if failed.reason == Reason::ReplacementFailed {
            break;
        }
        failed = run_pass(&mut yard, &uid).await.condition.unwrap();
    }
    assert_eq!(failed.reason, Reason::ReplacementFailed);
    let cause = format!("the engine did not start the replacement within 120 s: {WORDS}");
    assert!(failed.message.contains(&cause), "{}", failed.message);
    assert_eq!(yard.fake.container(NAME).unwrap().container.id, first);
    assert_eq!(yard.fake.running(), [NAME]);
}

#[tokio::test]
async fn eviction_is_no_crash() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    yard.clock.advance(Duration::from_secs(3600));
    yard.fake.hand_evict(NAME).unwrap();
    let noted = run_pass(&mut yard, &uid).await;
    let sentence = "the container ended: evicted from its machine";
    assert_eq!(ready_cause(&noted), (Reason::Evicted, sentence));
    let started = run_pass(&mut yard, &uid).await;
    assert_eq!(yard.fake.running(), [NAME], "{:?}", started.steps);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert_eq!(yard.row(&uid).await.unwrap().facts.crash_count, 0);
    // Again within ten minutes: with a rest.
    yard.clock.advance(Duration::from_secs(60));
    yard.fake.hand_evict(NAME).unwrap();
    run_pass(&mut yard, &uid).await;
    let rests = run_pass(&mut yard, &uid).await;
    let sentence = format!("{sentence}, soon after its start");
    assert_eq!(
        (rests.acted, ready_cause(&rests)),
        (0, (Reason::Evicted, &*sentence))
    );
    yard.clock.advance(Duration::from_secs(60));
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert_eq!(yard.row(&uid).await.unwrap().facts.crash_count, 0);
}

#[tokio::test]
async fn lost_machine_gets_no_second_container() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    yard.fake.hand_lose_node(NAME).unwrap();
    yard.restart(&uid, "again").await;
    for _ in 0..3 {
        yard.clock.advance(Duration::from_secs(3600));
        let lost = run_pass(&mut yard, &uid).await;
        assert_eq!(lost.acted, 0, "{:?}", lost.steps);
        assert_eq!(
            ready_cause(&lost),
            (Reason::NodeLost, "node n1 is not ready")
        );
        assert_eq!(yard.names(), [NAME]);
    }
    yard.fake.hand_remove_node(NAME).unwrap();
    yard.event(&uid);
    let back = yard.settled(&uid).await.unwrap();
    assert_eq!(
        (back.reason, back.status),
        (Reason::Running, ConditionStatus::True)
    );
    assert_eq!(yard.row(&uid).await.unwrap().facts.crash_count, 0);
}
