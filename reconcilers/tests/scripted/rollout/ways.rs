//! What administrators wish, and what it comes to.

use std::time::Duration;

use schema::condition::{ConditionStatus, Reason};
use schema::container::{ContainerEnd, ContainerFacts, Desired};
use schema::rollout::{DesiredRollout, NewRollout, Phase, TargetState};

use super::support::{Answer, MIN_READY, NEW, OLD, OLD_ID, Yard, upgrade};
use kit::Pace;
use reconcilers::container::ContainerStore;
use reconcilers::runtime::{Purpose, Reconciler, Requeue};
use schema::clock::Clock;
use schema::config::Changes;
use schema::ids::Kind;
use serde_json::json;

async fn yard(users: usize, stopped: &[usize], most: u32) -> (Yard, String) {
    let yard = Yard::new(users, stopped, &upgrade(most)).await;
    let image = yard.fake.publish_image(NEW);
    (yard, image)
}

fn has(id: &str) -> Option<String> {
    Some(id.to_owned())
}

#[tokio::test(start_paused = true)]
async fn everybody_is_moved_a_canary_first_then_in_batches() {
    let (mut yard, new) = yard(6, &[1], 2).await;
    let end = yard.settled().await;
    assert_eq!(end.status, ConditionStatus::True, "{end:?}");
    assert_eq!(yard.images(), vec![has(&new); 6]);
    assert_eq!(yard.states().await, [TargetState::Done; 6]);
    assert_eq!(yard.most_under_way, 2);
    let (row, _) = yard.state().await;
    assert_eq!(row.facts.phase, Phase::Succeeded);
    assert!(row.facts.finished_at.is_some());
    // A stopped user is moved, and not started.
    let stopped = yard.store.peek_container(&yard.users[1]).unwrap();
    assert_eq!(stopped.desired, Desired::Stopped);
    assert_eq!(stopped.health_timeout, None);
    let told: Vec<String> = yard
        .told
        .iter()
        .map(|l| l.replace(&new, "sha256:new"))
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn l36_a_failure_puts_the_user_back_pauses_and_leaves_the_others_alone() {
    let (mut yard, new) = yard(8, &[], 2).await;
    yard.breaks(4, &new, Answer::Fails);
    let end = yard.settled().await;
    assert_eq!(end.reason, Reason::RolloutPaused, "{end:?}");
    assert!(
        end.message
            .contains("user4 failed: ReplacementFailed: it ended"),
        "{end:?}"
    );
    assert!(end.message.contains("4 of 8 moved, 1 failed"), "{end:?}");
    let mut images = vec![has(&new); 4];
    images.extend(vec![has(OLD_ID); 4]);
    assert_eq!(yard.images(), images);
    let states = yard.states().await;
    assert_eq!(states[..4], [TargetState::Done; 4]);
    assert_eq!(states[4], TargetState::Failed);
    assert_eq!(states[5..], [TargetState::Pending; 3]);
    let untouched = yard.store.peek_container(&yard.users[6]).unwrap();
    assert_eq!(untouched.generation.0, 1);

    // Paused by hand on top, it still says why it stands.
    yard.store.pause_rollout(&yard.rollout).unwrap();
    for _ in 0..2 {
        let end = yard.settled().await;
        let both = "user4 failed: ReplacementFailed: it ended; paused by an administrator; 4 of 8";
        assert!(end.message.contains(both), "{end:?}");
    }

    // Resumed with a fixed tag, everybody gets the new one, whoever was moved before included.
    let fixed = yard.fake.publish_image(NEW);
    yard.store.resume_rollout(&yard.rollout).unwrap();
    let end = yard.settled().await;
    assert_eq!(end.status, ConditionStatus::True, "{end:?}");
    assert_eq!(yard.images(), vec![has(&fixed); 8]);
    assert_eq!(yard.most_under_way, 2);
}

#[tokio::test(start_paused = true)]
async fn the_batch_under_way_is_judged_to_its_end_beside_a_failure() {
    let (mut yard, new) = yard(7, &[], 3).await;
    yard.breaks(2, &new, Answer::Fails);
    yard.breaks(3, &new, Answer::Hangs);
    let end = yard.settled().await;
    assert_eq!(end.reason, Reason::RolloutPaused);
    let states = yard.states().await;
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
    let (_, targets) = yard.state().await;
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
    let mut yard = Yard::new(5, &[], &new).await;
    let image = yard.fake.publish_image(NEW);
    yard.breaks(0, &image, Answer::Fails);
    yard.breaks(3, &image, Answer::Fails);
    let end = yard.settled().await;
    assert_eq!(end.reason, Reason::RolloutFailed, "{end:?}");
    assert!(
        end.message.contains("3 of 5 moved, 2 failed; user0 failed"),
        "{end:?}"
    );
    assert!(end.message.ends_with("and 1 more"), "{end:?}");
    assert_eq!(yard.state().await.0.facts.phase, Phase::Failed);
}

#[tokio::test(start_paused = true)]
async fn paused_by_hand_nobody_more_is_moved_until_it_is_resumed() {
    let (mut yard, new) = yard(5, &[], 2).await;
    yard.breaks(0, &new, Answer::Silent);
    while yard.states().await[0] != TargetState::Moving {
        yard.pass().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    yard.store.pause_rollout(&yard.rollout).unwrap();
    yard.broken.clear();
    let end = yard.settled().await;
    assert_eq!(end.reason, Reason::RolloutPaused);
    assert!(
        end.message
            .contains("paused by an administrator; 1 of 5 moved"),
        "{end:?}"
    );
    assert_eq!(yard.state().await.0.facts.phase, Phase::Paused);
    yard.store.resume_rollout(&yard.rollout).unwrap();
    assert_eq!(yard.settled().await.status, ConditionStatus::True);
    assert_eq!(yard.images(), vec![has(&new); 5]);
}

#[tokio::test(start_paused = true)]
async fn cancelled_who_is_under_way_is_judged_and_the_rest_stays_as_it_is() {
    let (mut yard, new) = yard(5, &[], 2).await;
    yard.breaks(2, &new, Answer::Silent);
    while yard.states().await[2] != TargetState::Moving {
        yard.pass().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        yard.containers().await;
    }
    yard.store.cancel_rollout(&yard.rollout).unwrap();
    for _ in 0..5 {
        yard.pass().await.unwrap();
    }
    assert_eq!(
        yard.states().await[2],
        TargetState::Moving,
        "it is waited for"
    );
    yard.broken.clear();
    let end = yard.settled().await;
    assert_eq!(
        (end.status, end.reason),
        (ConditionStatus::True, Reason::Converged)
    );
    assert!(end.message.contains("cancelled: 3 of 5 moved"), "{end:?}");
    assert_eq!(yard.states().await[3..], [TargetState::Cancelled; 2]);
    assert_eq!(yard.images()[3..], [has(OLD_ID), has(OLD_ID)]);
}

#[tokio::test(start_paused = true)]
async fn however_many_end_alike_it_is_one_step() {
    for back in [false, true] {
        let (mut yard, _) = yard(30, &[], 2).await;
        while yard.states().await[2] != TargetState::Done {
            yard.pass().await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
            yard.containers().await;
        }
        if back {
            yard.store.roll_back_rollout(&yard.rollout).unwrap();
        } else {
            yard.store.cancel_rollout(&yard.rollout).unwrap();
        }
        yard.told.clear();
        assert_eq!(yard.settled().await.status, ConditionStatus::True);
        let told: Vec<&String> = yard
            .told
            .iter()
            .filter(|line| line.contains("not moved any more"))
            .collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].matches(';').count(), 0, "one step: {told:?}");
        assert!(told[0].contains("user29") || told[0].contains("more are not moved"));
        let states = yard.states().await;
        assert_eq!(states[5..], [TargetState::Cancelled; 25], "{states:?}");
    }
    // Those who need no move, too: the same rollout once more.
    let (mut yard, _) = yard(4, &[], 2).await;
    yard.settled().await;
    let again = schema::ids::Uid::from("e".repeat(32));
    yard.store
        .create_rollout(
            &again,
            &upgrade(2),
            &yard.users,
            "admin",
            super::support::START,
        )
        .unwrap();
    yard.rollout = again;
    assert_eq!(yard.settled().await.status, ConditionStatus::True);
    let told = yard.told.join("\n");
    assert!(
        told.contains("user0, user1, user2, user3 are moved: it has this image already"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn only_a_rollout_with_users_under_way_is_woken_by_changes() {
    let (mut yard, new) = yard(3, &[], 1).await;
    let woken = |yard: &Yard| {
        let canary = (Kind::Container, yard.users[0].clone());
        yard.waits_for.contains(&canary)
    };
    yard.pass().await.unwrap();
    assert!(!woken(&yard), "it is pulling");
    yard.breaks(0, &new, Answer::Silent);
    for _ in 0..6 {
        yard.pass().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(woken(&yard), "its canary is under way");
    yard.store.pause_rollout(&yard.rollout).unwrap();
    // One to remember the pause, one to wait.
    yard.pass().await.unwrap();
    yard.pass().await.unwrap();
    assert!(woken(&yard), "who is under way is still judged");
    yard.broken.clear();
    yard.settled().await;
    assert!(!woken(&yard), "it is paused");
}

#[tokio::test(start_paused = true)]
async fn l36_rolled_back_after_its_end_everybody_has_the_image_of_before() {
    let (mut yard, new) = yard(6, &[2], 2).await;
    yard.settled().await;
    assert_eq!(yard.images(), vec![has(&new); 6]);
    // One of them got its image from somebody else since, and one is gone.
    yard.store
        .delete_user(&yard.users[5], super::support::START)
        .unwrap();
    yard.containers().await;
    yard.most_under_way = 0;
    yard.store.roll_back_rollout(&yard.rollout).unwrap();
    yard.wanted_again();
    let end = yard.settled().await;
    assert_eq!(end.status, ConditionStatus::True, "{end:?}");
    assert_eq!(yard.images()[..5], vec![has(OLD_ID); 5]);
    assert_eq!(yard.most_under_way, 2);
    let states = yard.states().await;
    assert_eq!(states[..5], [TargetState::RolledBack; 5]);
    assert_eq!(states[5], TargetState::Skipped);
    assert_eq!(yard.state().await.0.facts.phase, Phase::RolledBack);
}

#[tokio::test(start_paused = true)]
async fn rolled_back_during_the_last_look_at_its_end_it_is_looked_at_again() {
    let (mut yard, _) = yard(2, &[], 1).await;
    yard.settled().await;
    // As after a start, which remembers nothing.
    yard.wanted_again();
    yard.store.on_call(|| Pace {
        after: Duration::from_secs(1),
        ..Pace::default()
    });
    let rolled_back = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        yard.store.roll_back_rollout(&yard.rollout).unwrap();
        yard.wanted_again();
    };
    let (reconciler, uid) = (&yard.reconciler, &yard.rollout);
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
    let (mut yard, new) = yard(5, &[], 2).await;
    yard.breaks(2, &new, Answer::Fails);
    yard.settled().await;
    yard.store.roll_back_rollout(&yard.rollout).unwrap();
    let end = yard.settled().await;
    assert_eq!(end.status, ConditionStatus::True, "{end:?}");
    let states = yard.states().await;
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
    assert_eq!(yard.images(), vec![has(OLD_ID); 5]);
}

#[tokio::test(start_paused = true)]
async fn rolled_back_while_users_are_moving_they_go_back_at_once() {
    for answer in [Answer::Hangs, Answer::Silent] {
        let (mut yard, new) = yard(3, &[], 2).await;
        yard.breaks(0, &new, answer);
        while yard.states().await[0] != TargetState::Moving {
            yard.pass().await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
            yard.containers().await;
        }
        yard.store.roll_back_rollout(&yard.rollout).unwrap();
        yard.pass().await.unwrap();
        assert_eq!(yard.images(), vec![has(OLD_ID); 3], "{answer:?}");
        assert_eq!(yard.states().await[0], TargetState::RollingBack);
        assert_eq!(yard.settled().await.status, ConditionStatus::True);
    }
}

#[tokio::test(start_paused = true)]
async fn who_has_nothing_to_go_back_to_keeps_what_it_has_and_is_named() {
    for under_way in [false, true] {
        let (mut yard, new) = yard(3, &[], 3).await;
        let there = yard.fake.add_image(OLD);
        for (user, id) in [(0, there.as_str()), (1, "sha256:gone")] {
            // Built or loaded here: no registry has it.
            let facts = ContainerFacts {
                image_ref: Some(OLD.to_owned()),
                image_id: Some(id.to_owned()),
                ..ContainerFacts::default()
            };
            yard.store
                .save_container_facts(&yard.users[user], &facts)
                .await
                .unwrap();
        }
        if under_way {
            yard.breaks(1, &new, Answer::Silent);
        }
        while yard.states().await[2] != TargetState::Done {
            yard.pass().await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
            yard.containers().await;
        }
        yard.store.roll_back_rollout(&yard.rollout).unwrap();
        yard.wanted_again();
        // Whether it is gone nobody knows who cannot ask.
        yard.fake.set_unavailable(true);
        let (acted, condition, _) = yard.pass().await.unwrap().unwrap();
        assert_eq!((acted, condition.reason), (0, Reason::EngineUnavailable));
        yard.fake.set_unavailable(false);
        let end = yard.settled().await;
        assert_eq!(end.reason, Reason::RolloutFailed, "{end:?}");
        let why = "user1 failed: the previous image is gone from the engine";
        assert!(end.message.contains(why), "{end:?}");
        assert_eq!(yard.images(), [Some(there), has(&new), has(OLD_ID)]);
        let row = yard.store.peek_container(&yard.users[1]).unwrap();
        assert_eq!((row.generation.0, row.health_timeout), (2, None));
    }
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_pulled_an_image_that_a_registry_has_is_gone_all_the_same() {
    let (mut yard, new) = yard(1, &[], 1).await;
    yard.settled().await;
    let facts = yard.store.peek_container(&yard.users[0]).unwrap().facts;
    assert!(facts.image_digest.is_some());
    yard.fake.hand_remove_image(OLD_ID);
    let never = [("image.pull_policy", Some(json!("never")))];
    yard.store
        .configure(&Changes(never.into_iter().collect()))
        .unwrap();
    yard.store.roll_back_rollout(&yard.rollout).unwrap();
    yard.wanted_again();
    let end = yard.settled().await;
    assert_eq!(end.reason, Reason::RolloutFailed, "{end:?}");
    let why = "user0 failed: the previous image is gone from the engine";
    assert!(end.message.contains(why), "{end:?}");
    assert_eq!(yard.images(), [has(&new)], "nobody was moved");
}

#[tokio::test(start_paused = true)]
async fn who_does_not_come_back_healthy_is_named_and_the_rest_goes_back_all_the_same() {
    let (mut yard, _) = yard(4, &[], 1).await;
    yard.settled().await;
    yard.breaks(1, OLD_ID, Answer::Fails);
    yard.store.roll_back_rollout(&yard.rollout).unwrap();
    yard.wanted_again();
    let end = yard.settled().await;
    assert_eq!(end.reason, Reason::RolloutFailed, "{end:?}");
    assert!(
        end.message.contains("3 of 4 back, 1 failed; user1"),
        "{end:?}"
    );
    assert_eq!(yard.images(), vec![has(OLD_ID); 4]);
}

#[tokio::test(start_paused = true)]
async fn l33_while_nobody_can_look_nothing_is_judged() {
    let (mut yard, new) = yard(2, &[], 1).await;
    yard.breaks(0, &new, Answer::Silent);
    for _ in 0..30 {
        yard.pass().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        yard.containers().await;
        yard.clock.advance(Duration::from_secs(600));
    }
    assert_eq!(
        yard.states().await,
        [TargetState::Moving, TargetState::Pending]
    );
    yard.broken.clear();
    assert_eq!(yard.settled().await.status, ConditionStatus::True);
}

#[tokio::test(start_paused = true)]
async fn who_has_the_image_already_or_is_gone_is_not_moved() {
    let (mut yard, new) = yard(4, &[], 2).await;
    while yard.state().await.0.facts.resolved_attempt == 0 {
        yard.pass().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    yard.store
        .delete_user(&yard.users[1], super::support::START)
        .unwrap();
    let end = yard.settled().await;
    assert_eq!(end.status, ConditionStatus::True, "{end:?}");
    assert!(end.message.contains("3 of 4 moved, 1 left out"), "{end:?}");
    let generations = |yard: &Yard| {
        let row = |uid| yard.store.peek_container(uid).map(|row| row.generation.0);
        yard.users.iter().map(row).collect::<Vec<_>>()
    };
    let before = generations(&yard);
    // The same once more: nobody has to move.
    let again = schema::ids::Uid::from("e".repeat(32));
    let users = yard.users.clone();
    yard.store
        .create_rollout(&again, &upgrade(2), &users, "admin", super::support::START)
        .unwrap();
    yard.rollout = again;
    let end = yard.settled().await;
    assert_eq!(end.status, ConditionStatus::True, "{end:?}");
    assert_eq!(generations(&yard), before);
    assert_eq!(yard.images()[0], has(&new));
}

#[tokio::test(start_paused = true)]
async fn a_step_is_refused_when_somebody_wants_something_else_by_now() {
    use reconcilers::runtime::{Classify, ErrorClass, Reconciler};
    let (mut yard, _) = yard(3, &[], 2).await;
    while yard.state().await.0.facts.resolved_attempt == 0 {
        yard.pass().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let key = yard.rollout.clone();
    let seen = yard
        .reconciler
        .observe(&key, Purpose::Pass)
        .await
        .unwrap()
        .unwrap();
    let plan = reconcilers::rollout::plan::plan(&seen, super::support::START);
    assert_eq!(plan.actions.len(), 1);
    yard.store.pause_rollout(&key).unwrap();
    let refused = yard
        .reconciler
        .apply(&key, &plan.actions[0])
        .await
        .unwrap_err();
    assert_eq!(refused.class(), ErrorClass::Conflict);
    assert_eq!(yard.states().await, [TargetState::Pending; 3]);
    assert_eq!(yard.images(), vec![has(OLD_ID); 3]);
}

#[tokio::test(start_paused = true)]
async fn user_counts_as_moved_after_min_ready() {
    let (mut yard, new) = yard(3, &[2], 1).await;
    yard.breaks(0, &new, Answer::Hangs);
    let (mut acted, mut busy) = (1, true);
    while acted > 0 || busy {
        acted = yard.pass().await.unwrap().unwrap().0;
        tokio::time::sleep(Duration::from_millis(1)).await;
        busy = yard.containers().await;
    }
    yard.broken.clear();
    yard.clock.advance(Duration::from_secs(5));
    yard.containers().await;
    let (acted, _, requeue) = yard.pass().await.unwrap().unwrap();
    let left = MIN_READY + Duration::from_millis(1);
    assert_eq!((acted, requeue), (0, Requeue::After(left)));
    assert_eq!(yard.states().await[0], TargetState::Moving);
    // A service that is started meanwhile goes on from what is stored.
    yard.clock.advance(MIN_READY - Duration::from_secs(1));
    yard.reboot();
    assert_eq!(yard.pass().await.unwrap().unwrap().0, 0);
    yard.clock.advance(Duration::from_secs(1));
    yard.pass().await.unwrap().unwrap();
    assert_eq!(yard.states().await[0], TargetState::Done);
    // Those whose containers go on as they are, and who do not run, count at once.
    let before = yard.clock.now();
    assert_eq!(yard.settled().await.status, ConditionStatus::True);
    assert_eq!(yard.states().await, [TargetState::Done; 3]);
    assert_eq!(yard.clock.now(), before);
}

#[tokio::test(start_paused = true)]
async fn failure_within_min_ready_puts_user_back_with_log() {
    let (mut yard, new) = yard(2, &[], 1).await;
    yard.breaks(0, &new, Answer::Hangs);
    let (mut acted, mut busy) = (1, true);
    while acted > 0 || busy {
        acted = yard.pass().await.unwrap().unwrap().0;
        tokio::time::sleep(Duration::from_millis(1)).await;
        busy = yard.containers().await;
    }
    yard.broken.clear();
    yard.containers().await;
    yard.pass().await.unwrap();
    yard.clock.advance(Duration::from_secs(5));
    let uid = yard.users[0].clone();
    let end = ContainerEnd {
        at: yard.clock.now(),
        exit_code: Some(1),
        cause: "exit code 1".to_owned(),
        log: "cannot connect".to_owned(),
    };
    let facts = yard.store.peek_container(&uid).unwrap().facts;
    let noted = yard.store.note_container_end(&uid, &facts, &end).await;
    noted.unwrap();
    yard.breaks(0, &new, Answer::Fails);
    yard.containers().await;
    assert_eq!(yard.settled().await.reason, Reason::RolloutPaused);
    let (_, targets) = yard.state().await;
    assert_eq!(targets[0].state, TargetState::Failed);
    assert_eq!(targets[0].message, "ReplacementFailed: it ended");
    assert_eq!(targets[0].log, "cannot connect");
}
