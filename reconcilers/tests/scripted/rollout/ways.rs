//! What administrators wish, and what it comes to.

use std::time::Duration;

use schema::condition::{ConditionStatus, Reason};
use schema::container::{ContainerFacts, Desired};
use schema::rollout::{DesiredRollout, NewRollout, Phase, TargetState};

use super::support::{Answer, Fleet, NEW, OLD, OLD_ID, upgrade};
use kit::Pace;
use reconcilers::container::ContainerStore;
use reconcilers::runtime::{Purpose, Reconciler};
use schema::ids::Kind;

async fn fleet(users: usize, stopped: &[usize], most: u32) -> (Fleet, String) {
    let fleet = Fleet::new(users, stopped, &upgrade(most)).await;
    let image = fleet.fake.publish_image(NEW);
    (fleet, image)
}

fn has(id: &str) -> Option<String> {
    Some(id.to_owned())
}

#[tokio::test(start_paused = true)]
async fn everybody_is_moved_a_canary_first_then_in_batches() {
    let (mut fleet, new) = fleet(6, &[1], 2).await;
    let end = fleet.settled().await;
    assert_eq!(end.status, ConditionStatus::True, "{end:?}");
    assert_eq!(fleet.images(), vec![has(&new); 6]);
    assert_eq!(fleet.states().await, [TargetState::Done; 6]);
    assert_eq!(fleet.most_under_way, 2);
    let (row, _) = fleet.state().await;
    assert_eq!(row.facts.phase, Phase::Succeeded);
    assert!(row.facts.finished_at.is_some());
    // A stopped user is moved, and not started.
    let stopped = fleet.store.peek_container(&fleet.users[1]).unwrap();
    assert_eq!(stopped.desired, Desired::Stopped);
    assert_eq!(stopped.health_timeout, None);
    assert!(fleet.store_rollouts().await.is_empty());
    let told: Vec<String> = fleet
        .told
        .iter()
        .map(|l| l.replace(&new, "sha256:new"))
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn l36_a_failure_puts_the_user_back_pauses_and_leaves_the_others_alone() {
    let (mut fleet, new) = fleet(8, &[], 2).await;
    fleet.breaks(4, &new, Answer::Fails);
    let end = fleet.settled().await;
    assert_eq!(end.reason, Reason::RolloutPaused, "{end:?}");
    assert!(
        end.message
            .contains("user4 failed: ReplacementFailed: it ended"),
        "{end:?}"
    );
    assert!(end.message.contains("4 of 8 moved, 1 failed"), "{end:?}");
    let mut images = vec![has(&new); 4];
    images.extend(vec![has(OLD_ID); 4]);
    assert_eq!(fleet.images(), images);
    let states = fleet.states().await;
    assert_eq!(states[..4], [TargetState::Done; 4]);
    assert_eq!(states[4], TargetState::Failed);
    assert_eq!(states[5..], [TargetState::Pending; 3]);
    let untouched = fleet.store.peek_container(&fleet.users[6]).unwrap();
    assert_eq!(untouched.generation.0, 1);

    // Paused by hand on top, it still says why it stands.
    fleet.store.pause_rollout(&fleet.rollout).unwrap();
    for _ in 0..2 {
        let end = fleet.settled().await;
        let both = "user4 failed: ReplacementFailed: it ended; paused by an administrator; 4 of 8";
        assert!(end.message.contains(both), "{end:?}");
    }

    // Resumed with a fixed tag, everybody gets the new one, whoever was moved before included.
    let fixed = fleet.fake.publish_image(NEW);
    fleet.store.resume_rollout(&fleet.rollout).unwrap();
    let end = fleet.settled().await;
    assert_eq!(end.status, ConditionStatus::True, "{end:?}");
    assert_eq!(fleet.images(), vec![has(&fixed); 8]);
    assert_eq!(fleet.most_under_way, 2);
}

#[tokio::test(start_paused = true)]
async fn the_batch_under_way_is_judged_to_its_end_beside_a_failure() {
    let (mut fleet, new) = fleet(7, &[], 3).await;
    fleet.breaks(2, &new, Answer::Fails);
    fleet.breaks(3, &new, Answer::Hangs);
    let end = fleet.settled().await;
    assert_eq!(end.reason, Reason::RolloutPaused);
    let states = fleet.states().await;
    assert_eq!(
        states[..4],
        [
            TargetState::Done,
            TargetState::Done,
            TargetState::Failed,
            TargetState::Failed
        ]
    );
    assert_eq!(states[4..], [TargetState::Pending; 3]);
    let (_, targets) = fleet.state().await;
    assert!(
        targets[3].message.contains("not ready within 30 s"),
        "{}",
        targets[3].message
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_pause_on_failure_it_goes_on_and_says_so_at_the_end() {
    let new = NewRollout {
        pause_on_failure: false,
        ..upgrade(2)
    };
    let mut fleet = Fleet::new(5, &[], &new).await;
    let image = fleet.fake.publish_image(NEW);
    fleet.breaks(0, &image, Answer::Fails);
    fleet.breaks(3, &image, Answer::Fails);
    let end = fleet.settled().await;
    assert_eq!(end.reason, Reason::RolloutFailed, "{end:?}");
    assert!(
        end.message.contains("3 of 5 moved, 2 failed; user0 failed"),
        "{end:?}"
    );
    assert!(end.message.ends_with("and 1 more"), "{end:?}");
    assert_eq!(fleet.state().await.0.facts.phase, Phase::Failed);
}

#[tokio::test(start_paused = true)]
async fn paused_by_hand_nobody_more_is_moved_until_it_is_resumed() {
    let (mut fleet, new) = fleet(5, &[], 2).await;
    fleet.breaks(0, &new, Answer::Silent);
    while fleet.states().await[0] != TargetState::Moving {
        fleet.pass().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    fleet.store.pause_rollout(&fleet.rollout).unwrap();
    fleet.broken.clear();
    let end = fleet.settled().await;
    assert_eq!(end.reason, Reason::RolloutPaused);
    assert!(
        end.message
            .contains("paused by an administrator; 1 of 5 moved"),
        "{end:?}"
    );
    assert_eq!(fleet.state().await.0.facts.phase, Phase::Paused);
    fleet.store.resume_rollout(&fleet.rollout).unwrap();
    assert_eq!(fleet.settled().await.status, ConditionStatus::True);
    assert_eq!(fleet.images(), vec![has(&new); 5]);
}

#[tokio::test(start_paused = true)]
async fn cancelled_who_is_under_way_is_judged_and_the_rest_stays_as_it_is() {
    let (mut fleet, new) = fleet(5, &[], 2).await;
    fleet.breaks(2, &new, Answer::Silent);
    while fleet.states().await[2] != TargetState::Moving {
        fleet.pass().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        fleet.containers().await;
    }
    fleet.store.cancel_rollout(&fleet.rollout).unwrap();
    for _ in 0..5 {
        fleet.pass().await.unwrap();
    }
    assert_eq!(
        fleet.states().await[2],
        TargetState::Moving,
        "it is waited for"
    );
    fleet.broken.clear();
    let end = fleet.settled().await;
    assert_eq!(
        (end.status, end.reason),
        (ConditionStatus::True, Reason::Converged)
    );
    assert!(end.message.contains("cancelled: 3 of 5 moved"), "{end:?}");
    assert_eq!(fleet.states().await[3..], [TargetState::Cancelled; 2]);
    assert_eq!(fleet.images()[3..], [has(OLD_ID), has(OLD_ID)]);
}

#[tokio::test(start_paused = true)]
async fn however_many_end_alike_it_is_one_step() {
    for back in [false, true] {
        let (mut fleet, _) = fleet(30, &[], 2).await;
        while fleet.states().await[2] != TargetState::Done {
            fleet.pass().await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
            fleet.containers().await;
        }
        if back {
            fleet.store.roll_back_rollout(&fleet.rollout).unwrap();
        } else {
            fleet.store.cancel_rollout(&fleet.rollout).unwrap();
        }
        fleet.told.clear();
        assert_eq!(fleet.settled().await.status, ConditionStatus::True);
        let told: Vec<&String> = fleet
            .told
            .iter()
            .filter(|line| line.contains("not moved any more"))
            .collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].matches(';').count(), 0, "one step: {told:?}");
        assert!(told[0].contains("user29") || told[0].contains("more are not moved"));
        let states = fleet.states().await;
        assert_eq!(states[5..], [TargetState::Cancelled; 25], "{states:?}");
    }
    // Those who need no move, too: the same rollout once more.
    let (mut fleet, _) = fleet(4, &[], 2).await;
    fleet.settled().await;
    let again = schema::ids::Uid::from("e".repeat(32));
    fleet
        .store
        .create_rollout(
            &again,
            &upgrade(2),
            &fleet.users,
            "admin",
            super::support::START,
        )
        .unwrap();
    fleet.rollout = again;
    assert_eq!(fleet.settled().await.status, ConditionStatus::True);
    let told = fleet.told.join("\n");
    assert!(
        told.contains("user0, user1, user2, user3 are moved: it has this image already"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn only_a_rollout_with_users_under_way_is_woken_by_changes() {
    let (mut fleet, new) = fleet(3, &[], 1).await;
    let woken = |fleet: &Fleet| {
        let canary = (Kind::Container, fleet.users[0].clone());
        fleet.waits_for.contains(&canary)
    };
    fleet.pass().await.unwrap();
    assert!(!woken(&fleet), "it is pulling");
    fleet.breaks(0, &new, Answer::Silent);
    for _ in 0..6 {
        fleet.pass().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(woken(&fleet), "its canary is under way");
    fleet.store.pause_rollout(&fleet.rollout).unwrap();
    // One to remember the pause, one to wait.
    fleet.pass().await.unwrap();
    fleet.pass().await.unwrap();
    assert!(woken(&fleet), "who is under way is still judged");
    fleet.broken.clear();
    fleet.settled().await;
    assert!(!woken(&fleet), "it is paused");
}

#[tokio::test(start_paused = true)]
async fn l36_rolled_back_after_its_end_everybody_has_the_image_of_before() {
    let (mut fleet, new) = fleet(6, &[2], 2).await;
    fleet.settled().await;
    assert_eq!(fleet.images(), vec![has(&new); 6]);
    // One of them got its image from somebody else since, and one is gone.
    fleet
        .store
        .delete_user(&fleet.users[5], super::support::START)
        .unwrap();
    fleet.containers().await;
    fleet.most_under_way = 0;
    fleet.store.roll_back_rollout(&fleet.rollout).unwrap();
    fleet.wanted_again();
    let end = fleet.settled().await;
    assert_eq!(end.status, ConditionStatus::True, "{end:?}");
    assert_eq!(fleet.images()[..5], vec![has(OLD_ID); 5]);
    assert_eq!(fleet.most_under_way, 2);
    let states = fleet.states().await;
    assert_eq!(states[..5], [TargetState::RolledBack; 5]);
    assert_eq!(states[5], TargetState::Skipped);
    assert_eq!(fleet.state().await.0.facts.phase, Phase::RolledBack);
}

#[tokio::test(start_paused = true)]
async fn rolled_back_during_the_last_look_at_its_end_it_is_looked_at_again() {
    let (mut fleet, _) = fleet(2, &[], 1).await;
    fleet.settled().await;
    // As after a start, which remembers nothing.
    fleet.wanted_again();
    fleet.store.on_call(|| Pace {
        after: Duration::from_secs(1),
        ..Pace::default()
    });
    let rolled_back = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        fleet.store.roll_back_rollout(&fleet.rollout).unwrap();
        fleet.wanted_again();
    };
    let (reconciler, uid) = (&fleet.reconciler, &fleet.rollout);
    let (seen, ()) = tokio::join!(reconciler.observe(uid, Purpose::Pass), rolled_back);
    let seen = seen.unwrap().unwrap();
    assert!(seen.row.facts.finished_at.is_some(), "it was read before");
    reconciler.converged(uid, &seen, &[]);
    let again = reconciler.observe(uid, Purpose::Pass).await.unwrap();
    let again = again.map(|again| again.row.desired);
    assert_eq!(again, Some(DesiredRollout::Rollback));
}

#[tokio::test(start_paused = true)]
async fn rolled_back_half_way_who_failed_before_counts_as_back_when_it_is() {
    let (mut fleet, new) = fleet(5, &[], 2).await;
    fleet.breaks(2, &new, Answer::Fails);
    fleet.settled().await;
    fleet.store.roll_back_rollout(&fleet.rollout).unwrap();
    let end = fleet.settled().await;
    assert_eq!(end.status, ConditionStatus::True, "{end:?}");
    let states = fleet.states().await;
    // The canary and the whole batch of the failure.
    let moved = states
        .iter()
        .filter(|s| **s == TargetState::RolledBack)
        .count();
    let never = states
        .iter()
        .filter(|s| **s == TargetState::Cancelled)
        .count();
    assert_eq!((moved, never), (3, 2), "{states:?}");
    assert_eq!(fleet.images(), vec![has(OLD_ID); 5]);
}

#[tokio::test(start_paused = true)]
async fn rolled_back_while_users_are_moving_they_go_back_at_once() {
    for answer in [Answer::Hangs, Answer::Silent] {
        let (mut fleet, new) = fleet(3, &[], 2).await;
        fleet.breaks(0, &new, answer);
        while fleet.states().await[0] != TargetState::Moving {
            fleet.pass().await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
            fleet.containers().await;
        }
        fleet.store.roll_back_rollout(&fleet.rollout).unwrap();
        fleet.pass().await.unwrap();
        assert_eq!(fleet.images(), vec![has(OLD_ID); 3], "{answer:?}");
        assert_eq!(fleet.states().await[0], TargetState::RollingBack);
        assert_eq!(fleet.settled().await.status, ConditionStatus::True);
    }
}

#[tokio::test(start_paused = true)]
async fn who_has_nothing_to_go_back_to_keeps_what_it_has_and_is_named() {
    for under_way in [false, true] {
        let (mut fleet, new) = fleet(3, &[], 3).await;
        let there = fleet.fake.add_image(OLD);
        for (user, id) in [(0, there.as_str()), (1, "sha256:gone")] {
            // Built or loaded here: no registry has it.
            let facts = ContainerFacts {
                image_ref: Some(OLD.to_owned()),
                image_id: Some(id.to_owned()),
                ..ContainerFacts::default()
            };
            fleet
                .store
                .save_container_facts(&fleet.users[user], &facts)
                .await
                .unwrap();
        }
        if under_way {
            fleet.breaks(1, &new, Answer::Silent);
        }
        while fleet.states().await[2] != TargetState::Done {
            fleet.pass().await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
            fleet.containers().await;
        }
        fleet.store.roll_back_rollout(&fleet.rollout).unwrap();
        fleet.wanted_again();
        // Whether it is gone nobody knows who cannot ask.
        fleet.fake.set_unavailable(true);
        let (acted, condition, _) = fleet.pass().await.unwrap().unwrap();
        assert_eq!((acted, condition.reason), (0, Reason::EngineUnavailable));
        fleet.fake.set_unavailable(false);
        let end = fleet.settled().await;
        assert_eq!(end.reason, Reason::RolloutFailed, "{end:?}");
        let why = "user1 failed: the image of before is gone from the engine";
        assert!(end.message.contains(why), "{end:?}");
        assert_eq!(fleet.images(), [Some(there), has(&new), has(OLD_ID)]);
        let row = fleet.store.peek_container(&fleet.users[1]).unwrap();
        assert_eq!((row.generation.0, row.health_timeout), (2, None));
    }
}

#[tokio::test(start_paused = true)]
async fn who_does_not_come_back_healthy_is_named_and_the_rest_goes_back_all_the_same() {
    let (mut fleet, _) = fleet(4, &[], 1).await;
    fleet.settled().await;
    fleet.breaks(1, OLD_ID, Answer::Fails);
    fleet.store.roll_back_rollout(&fleet.rollout).unwrap();
    fleet.wanted_again();
    let end = fleet.settled().await;
    assert_eq!(end.reason, Reason::RolloutFailed, "{end:?}");
    assert!(
        end.message.contains("3 of 4 back, 1 failed; user1"),
        "{end:?}"
    );
    assert_eq!(fleet.images(), vec![has(OLD_ID); 4]);
}

#[tokio::test(start_paused = true)]
async fn l33_while_nobody_can_look_nothing_is_judged() {
    let (mut fleet, new) = fleet(2, &[], 1).await;
    fleet.breaks(0, &new, Answer::Silent);
    for _ in 0..30 {
        fleet.pass().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        fleet.containers().await;
        fleet.clock.advance(Duration::from_secs(600));
    }
    assert_eq!(
        fleet.states().await,
        [TargetState::Moving, TargetState::Pending]
    );
    fleet.broken.clear();
    assert_eq!(fleet.settled().await.status, ConditionStatus::True);
}

#[tokio::test(start_paused = true)]
async fn who_has_the_image_already_or_is_gone_is_not_moved() {
    let (mut fleet, new) = fleet(4, &[], 2).await;
    while fleet.state().await.0.facts.resolved_attempt == 0 {
        fleet.pass().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    fleet
        .store
        .delete_user(&fleet.users[1], super::support::START)
        .unwrap();
    let end = fleet.settled().await;
    assert_eq!(end.status, ConditionStatus::True, "{end:?}");
    assert!(end.message.contains("3 of 4 moved, 1 left out"), "{end:?}");
    let generations = |fleet: &Fleet| {
        let row = |uid| fleet.store.peek_container(uid).map(|row| row.generation.0);
        fleet.users.iter().map(row).collect::<Vec<_>>()
    };
    let before = generations(&fleet);
    // The same once more: nobody has to move.
    let again = schema::ids::Uid::from("e".repeat(32));
    let users = fleet.users.clone();
    fleet
        .store
        .create_rollout(&again, &upgrade(2), &users, "admin", super::support::START)
        .unwrap();
    fleet.rollout = again;
    let end = fleet.settled().await;
    assert_eq!(end.status, ConditionStatus::True, "{end:?}");
    assert_eq!(generations(&fleet), before);
    assert_eq!(fleet.images()[0], has(&new));
}

#[tokio::test(start_paused = true)]
async fn a_step_is_refused_when_somebody_wants_something_else_by_now() {
    use reconcilers::runtime::{Classify, ErrorClass, Reconciler};
    let (mut fleet, _) = fleet(3, &[], 2).await;
    while fleet.state().await.0.facts.resolved_attempt == 0 {
        fleet.pass().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let key = fleet.rollout.clone();
    let seen = fleet
        .reconciler
        .observe(&key, Purpose::Pass)
        .await
        .unwrap()
        .unwrap();
    let plan = reconcilers::rollout::plan::plan(&seen, super::support::START);
    assert_eq!(plan.actions.len(), 1);
    fleet.store.pause_rollout(&key).unwrap();
    let refused = fleet
        .reconciler
        .apply(&key, &plan.actions[0])
        .await
        .unwrap_err();
    assert_eq!(refused.class(), ErrorClass::Conflict);
    assert_eq!(fleet.states().await, [TargetState::Pending; 3]);
    assert_eq!(fleet.images(), vec![has(OLD_ID); 3]);
}
