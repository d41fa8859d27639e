//! Changes of the configuration that agents get in steps.

use schema::condition::{Condition, Reason};
use schema::config::Changes;
use schema::ids::{Generation, Uid};
use schema::rollout::{Phase, TargetState};
use serde_json::{Value, json};

use super::support::{Answer, OLD_ID, Yard, upgrade};

fn configure(yard: &Yard, key: &'static str, value: Option<Value>) {
    yard.store
        .configure(&Changes([(key, value)].into()))
        .unwrap();
}

/// Six users, of whom the second is stopped, and a change of which the third breaks; each gets it alone.
async fn paused() -> (Yard, Condition) {
    let mut yard = Yard::new(6, &[1], &upgrade(1)).await;
    yard.store.cancel_rollout(&yard.rollout).unwrap();
    yard.settled().await;
    configure(&yard, "container.max_unavailable", Some(json!(1)));
    yard.breaks(2, OLD_ID, Answer::Hangs);
    configure(&yard, "container.memory_limit_mb", Some(json!(512)));
    yard.rollout = Uid::from("step-1".to_owned());
    let end = yard.settled().await;
    (yard, end)
}

fn generations(yard: &Yard) -> Vec<Generation> {
    let row = |uid| yard.store.peek_container(uid).unwrap().generation;
    yard.users.iter().map(row).collect()
}

#[tokio::test(start_paused = true)]
async fn change_of_all_pauses_at_the_first_that_is_not_ready() {
    let (mut yard, end) = paused().await;
    assert_eq!(end.reason, Reason::RolloutPaused, "{end:?}");
    for said in [
        "user2 failed: not ready within 120 s: NotReady: not ready yet",
        "go back with `agentyard config rollback 0`",
        "1 of 5 moved, 1 failed",
    ] {
        assert!(end.message.contains(said), "{end:?}");
    }
    assert_eq!(yard.most_under_way, 1);
    let [done, failed, pending] = [TargetState::Done, TargetState::Failed, TargetState::Pending];
    assert_eq!(
        yard.states().await,
        [done, failed, pending, pending, pending]
    );
    // The stopped one has it at once, and those whose turn has not come keep what they have.
    let [before, after] = [1, 2].map(Generation);
    assert_eq!(
        generations(&yard),
        [after, after, after, before, before, before]
    );

    // What takes it back takes its place: who failed gets it at once.
    yard.broken.clear();
    configure(&yard, "container.memory_limit_mb", None);
    let (row, _) = yard.state().await;
    assert_eq!(row.facts.phase, Phase::Cancelled);
    assert_eq!(generations(&yard)[2], Generation(3));
    yard.rollout = Uid::from("step-2".to_owned());
    yard.containers().await;
    let end = yard.settled().await;
    assert_eq!(end.reason, Reason::Converged, "{end:?}");
    assert_eq!(yard.states().await, [done; 4]);
    assert!(yard.state().await.0.facts.finished_at.is_some());
}

#[tokio::test(start_paused = true)]
async fn resumed_change_leaves_out_who_failed() {
    let (mut yard, _) = paused().await;
    assert!(yard.store.cancel_rollout(&yard.rollout).is_err());
    yard.store.resume_rollout(&yard.rollout).unwrap();
    let end = yard.settled().await;
    assert!(
        end.message.contains("ended: 4 of 5 moved, 1 left out"),
        "{end:?}"
    );
    let (row, _) = yard.state().await;
    assert_eq!(row.facts.phase, Phase::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn restarted_agent_has_the_new_values_before_its_turn() {
    let (yard, _) = paused().await;
    let last = &yard.users[5];
    assert!(yard.store.peek_container(last).unwrap().held_by.is_some());
    yard.store.request_restart(last, "token", false).unwrap();
    assert_eq!(yard.store.peek_container(last).unwrap().held_by, None);
}
