//! What the reference of a rollout means, and when it is pulled.

use std::time::Duration;

use engine::EngineError;
use schema::clock::Clock;
use schema::condition::{ConditionStatus, Reason};
use schema::config::{Config, parse_patch};
use schema::rollout::{NewRollout, RolloutKind, TargetState};
use serde_json::json;

use super::support::{NEW, Yard, upgrade};
use kit::engine::Verb;
use reconcilers::runtime::Requeue;
use reconcilers::shared::pulls::LONGEST_RETRY;
use reconcilers::stores::ConfigStore;

async fn policy(yard: &Yard, policy: &str) {
    let (stored, _) = yard.store.config().await.unwrap();
    let patch = parse_patch(&json!({ "image.pull_policy": policy })).unwrap();
    let changes = patch.resolve(&Config::from_stored(stored)).unwrap();
    yard.store.configure(&changes).unwrap();
}

fn pulls(yard: &Yard) -> u64 {
    yard.fake.calls().of(Verb::Pull)
}

async fn of_kind(kind: RolloutKind) -> Yard {
    Yard::new(2, &[], &NewRollout { kind, ..upgrade(1) }).await
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_pulls_what_is_there_and_a_migration_does_not() {
    for (kind, expected) in [(RolloutKind::Upgrade, 1), (RolloutKind::Migrate, 0)] {
        let mut yard = of_kind(kind).await;
        let stale = yard.fake.add_image(NEW);
        let newest = yard.fake.publish_image(NEW);
        assert_eq!(yard.settled().await.status, ConditionStatus::True);
        assert_eq!(pulls(&yard), expected, "{kind:?}");
        let wanted = if expected == 1 { newest } else { stale };
        assert_eq!(yard.images(), vec![Some(wanted); 2], "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_migration_pulls_what_is_missing_and_with_always_also_what_is_there() {
    for there in [false, true] {
        let mut yard = of_kind(RolloutKind::Migrate).await;
        if there {
            yard.fake.add_image(NEW);
            policy(&yard, "always").await;
        }
        let newest = yard.fake.publish_image(NEW);
        assert_eq!(yard.settled().await.status, ConditionStatus::True);
        assert_eq!(pulls(&yard), 1);
        assert_eq!(yard.images(), vec![Some(newest); 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn image_that_no_node_has_is_pulled_before_a_move() {
    let mut yard = of_kind(RolloutKind::Migrate).await;
    let newest = yard.fake.offer_image(NEW);
    assert_eq!(yard.settled().await.status, ConditionStatus::True);
    assert_eq!(pulls(&yard), 1);
    assert_eq!(yard.images(), vec![Some(newest); 2]);
}

#[tokio::test(start_paused = true)]
async fn image_that_no_node_has_is_nothing_to_fall_back_to() {
    let mut yard = of_kind(RolloutKind::Migrate).await;
    yard.fake.offer_image(NEW);
    yard.fake.fail_next(Verb::Pull, 1, || {
        EngineError::PullFailed("no such host".to_owned())
    });
    let mut last = None;
    for _ in 0..10 {
        last = Some(yard.pass().await.unwrap().unwrap().1.reason);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(last, Some(Reason::ImagePullFailed));
    assert_eq!(yard.state().await.0.facts.resolved_attempt, 0);
    assert_eq!(yard.settled().await.status, ConditionStatus::True);
    assert_eq!(pulls(&yard), 2);
}

#[tokio::test(start_paused = true)]
async fn registry_that_does_not_answer_is_asked_by_the_pull() {
    let away = || EngineError::RegistryFailed("the registry can't be reached".to_owned());
    let mut yard = of_kind(RolloutKind::Migrate).await;
    let newest = yard.fake.offer_image(NEW);
    yard.fake.fail_next(Verb::Image, 2, away);
    yard.fake.fail_next(Verb::Pull, 1, away);
    let mut seen = Vec::new();
    for _ in 0..10 {
        seen.push(yard.pass().await.unwrap().unwrap().1);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let last = seen.last().unwrap();
    assert_eq!(last.reason, Reason::ImagePullFailed, "{seen:?}");
    assert!(last.message.contains("can't be reached"), "{last:?}");
    assert_eq!(yard.settled().await.status, ConditionStatus::True);
    assert_eq!(yard.images(), vec![Some(newest); 2]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_pull_falls_back_to_what_is_there_and_says_so() {
    let mut yard = of_kind(RolloutKind::Upgrade).await;
    let local = yard.fake.add_image(NEW);
    yard.fake.fail_next(Verb::Pull, 1, || {
        EngineError::PullFailed("no such host".to_owned())
    });
    while yard.state().await.0.facts.resolved_attempt == 0 {
        yard.pass().await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let (row, _) = yard.state().await;
    assert!(
        row.facts
            .message
            .contains("could not be pulled: the image could not be pulled: no such host"),
        "{row:?}"
    );
    assert!(yard.told.iter().any(|line| line.contains("no such host")));
    // Neither a pause by hand nor the end forgets it.
    yard.store.pause_rollout(&yard.rollout).unwrap();
    let paused = yard.settled().await;
    assert!(
        paused.message.contains("own copy was used; paused by"),
        "{paused:?}"
    );
    yard.fake.fail_next(Verb::Pull, 1, || {
        EngineError::PullFailed("no such host".to_owned())
    });
    yard.store.resume_rollout(&yard.rollout).unwrap();
    let end = yard.settled().await;
    assert_eq!(end.status, ConditionStatus::True);
    assert!(end.message.contains("2 of 2 moved; "), "{end:?}");
    assert!(
        end.message
            .ends_with("no such host, the engine's own copy was used"),
        "{end:?}"
    );
    assert_eq!(yard.images(), vec![Some(local); 2]);
}

#[tokio::test(start_paused = true)]
async fn what_the_registry_refuses_is_not_answered_with_the_copy_that_is_there() {
    let mut yard = of_kind(RolloutKind::Upgrade).await;
    yard.fake.add_image(NEW);
    yard.fake.fail_next(Verb::Pull, 3, || {
        EngineError::PullRefused("manifest unknown".to_owned())
    });
    let mut reasons = Vec::new();
    for _ in 0..10 {
        let (_, condition, _) = yard.pass().await.unwrap().unwrap();
        reasons.push(condition.reason);
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    assert_eq!(
        reasons.last(),
        Some(&Reason::ImagePullFailed),
        "{reasons:?}"
    );
    assert_eq!(pulls(&yard), 1, "the next one is not due");
    assert_eq!(yard.state().await.0.facts.resolved_attempt, 0);
    // The registry is mended: the next try brings the new one.
    let newest = yard.fake.publish_image(NEW);
    assert_eq!(yard.settled().await.status, ConditionStatus::True);
    assert_eq!(pulls(&yard), 4);
    assert_eq!(yard.images(), vec![Some(newest); 2]);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_pull_pauses_the_rollout_whoever_began_it_and_resume_tries_again() {
    for others in [false, true] {
        let mut yard = of_kind(RolloutKind::Upgrade).await;
        yard.fake.add_image(NEW);
        let newest = yard.fake.publish_image(NEW);
        let pulling = yard.shared.pulls.clone();
        if others {
            pulling.start(NEW, None, "of another");
        }
        let (acted, _, _) = yard.pass().await.unwrap().unwrap();
        assert!(acted > 0);
        pulling.cancel(NEW);
        let paused = yard.settled().await;
        assert_eq!(paused.reason, Reason::RolloutPaused, "{paused:?}");
        assert!(
            paused
                .message
                .contains(&format!("the pull of {NEW} was cancelled")),
            "{paused:?}"
        );
        assert_eq!(yard.state().await.0.facts.resolved_attempt, 0);
        yard.store.resume_rollout(&yard.rollout).unwrap();
        assert_eq!(yard.settled().await.status, ConditionStatus::True);
        assert_eq!(yard.images(), vec![Some(newest); 2], "{others}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pull_that_fails_with_nothing_to_fall_back_to_is_tried_again_and_nobody_is_moved() {
    for there in [false, true] {
        let mut yard = of_kind(RolloutKind::Upgrade).await;
        if there {
            yard.fake.add_image(NEW);
            policy(&yard, "always").await;
        }
        let newest = yard.fake.publish_image(NEW);
        yard.fake.fail_next(Verb::Pull, 3, || {
            EngineError::PullFailed("no such host".to_owned())
        });
        let mut reasons = Vec::new();
        for _ in 0..10 {
            let (_, condition, _) = yard.pass().await.unwrap().unwrap();
            reasons.push(condition.reason);
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        assert!(reasons.contains(&Reason::ImagePullFailed), "{reasons:?}");
        assert_eq!(pulls(&yard), 1, "the next one is not due");
        assert_eq!(yard.settled().await.status, ConditionStatus::True);
        assert_eq!(pulls(&yard), 4);
        assert_eq!(yard.images(), vec![Some(newest); 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_image_that_was_removed_after_the_pull_is_pulled_once_more_after_a_while() {
    let mut yard = of_kind(RolloutKind::Upgrade).await;
    let newest = yard.fake.publish_image(NEW);
    while pulls(&yard) == 0 {
        yard.pass().await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    yard.fake.hand_remove_image(&newest);
    // The first pass writes down why nobody is moved.
    yard.pass().await.unwrap();
    let (acted, condition, requeue) = yard.pass().await.unwrap().unwrap();
    assert_eq!((acted, condition.reason), (0, Reason::ImageMissing));
    let Requeue::After(left) = requeue else {
        panic!("{requeue:?}");
    };
    assert!(left <= LONGEST_RETRY, "{left:?}");
    yard.clock.advance(left / 2);
    yard.pass().await.unwrap();
    assert_eq!(pulls(&yard), 1, "the next one is not due");
    assert_eq!(yard.settled().await.status, ConditionStatus::True);
    assert_eq!(pulls(&yard), 2);
    assert_eq!(yard.images(), vec![Some(newest); 2]);
}

#[tokio::test(start_paused = true)]
async fn never_means_never() {
    let mut yard = of_kind(RolloutKind::Upgrade).await;
    policy(&yard, "never").await;
    yard.fake.publish_image(NEW);
    while yard.pass().await.unwrap().unwrap().0 > 0 {}
    let (_, condition, _) = yard.pass().await.unwrap().unwrap();
    assert_eq!(condition.reason, Reason::ImageMissing);
    let local = yard.fake.add_image(NEW);
    assert_eq!(yard.settled().await.status, ConditionStatus::True);
    assert_eq!(pulls(&yard), 0);
    assert_eq!(yard.images(), vec![Some(local); 2]);
}

/// What `rollout status` shows beside the phase.
async fn message(yard: &Yard) -> String {
    yard.state().await.0.facts.message
}

#[tokio::test(start_paused = true)]
async fn an_image_that_cannot_be_had_is_named_in_the_rollouts_own_words() {
    let mut yard = of_kind(RolloutKind::Upgrade).await;
    policy(&yard, "never").await;
    while yard.pass().await.unwrap().unwrap().0 > 0 {}
    let missing = format!("the engine has no image {NEW}, and image.pull_policy is never");
    assert_eq!(message(&yard).await, missing);
    assert!(yard.told.iter().any(|line| line.contains(&missing)));
    let (acted, condition, _) = yard.pass().await.unwrap().unwrap();
    assert_eq!((acted, condition.reason), (0, Reason::ImageMissing));
    // Now it may be pulled, and cannot be.
    policy(&yard, "missing").await;
    yard.fake.fail_next(Verb::Pull, 1, || {
        EngineError::PullRefused("manifest unknown".to_owned())
    });
    while !message(&yard).await.contains("manifest unknown") {
        yard.pass().await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let (acted, condition, _) = yard.pass().await.unwrap().unwrap();
    assert_eq!((acted, condition.reason), (0, Reason::ImagePullFailed));
    // Once there is one, nothing of it is left.
    yard.fake.publish_image(NEW);
    let end = yard.settled().await;
    assert_eq!(end.message, "ended: 2 of 2 moved");
}

#[tokio::test(start_paused = true)]
async fn l33_without_an_engine_nobody_is_moved() {
    let mut yard = of_kind(RolloutKind::Upgrade).await;
    yard.fake.publish_image(NEW);
    yard.fake.set_unavailable(true);
    let (acted, condition, _) = yard.pass().await.unwrap().unwrap();
    assert_eq!((acted, condition.status), (0, ConditionStatus::Unknown));
    assert_eq!(condition.reason, Reason::EngineUnavailable);
    yard.fake.set_unavailable(false);
    assert_eq!(yard.settled().await.status, ConditionStatus::True);
}

#[tokio::test(start_paused = true)]
async fn rollout_ends_when_its_image_cannot_be_pulled_for_an_hour() {
    let mut yard = of_kind(RolloutKind::Upgrade).await;
    yard.fake.fail_next(Verb::Pull, 1000, || {
        EngineError::PullRefused("manifest unknown".to_owned())
    });
    let begun = yard.clock.now();
    // Half of the hour goes by before the service is started again.
    let half = Duration::from_secs(30 * 60);
    while yard.clock.now() < begun.plus(half) {
        let (acted, _, requeue) = yard.pass().await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        if let (0, Requeue::After(time)) = (acted, requeue) {
            yard.clock.advance(time);
        }
    }
    yard.reboot();
    let end = yard.settled().await;
    assert_eq!(end.reason, Reason::RolloutFailed, "{end:?}");
    for part in [
        "the image could not be had for an hour",
        "manifest unknown",
        "start another rollout",
    ] {
        assert!(end.message.contains(part), "{end:?}");
    }
    let took = yard.clock.now().since(begun);
    assert!(
        took >= half * 2 && took < half * 2 + LONGEST_RETRY,
        "{took:?}"
    );
    assert_eq!(yard.states().await, [TargetState::Cancelled; 2]);
}

#[tokio::test(start_paused = true)]
async fn rollout_ends_when_its_image_is_missing_for_an_hour() {
    let mut yard = of_kind(RolloutKind::Upgrade).await;
    policy(&yard, "never").await;
    let begun = yard.clock.now();
    let end = yard.settled().await;
    assert_eq!(end.reason, Reason::RolloutFailed, "{end:?}");
    assert!(
        end.message.contains("image.pull_policy is never"),
        "{end:?}"
    );
    let took = yard.clock.now().since(begun);
    assert!(took >= Duration::from_secs(60 * 60), "{took:?}");
    assert_eq!(yard.states().await, [TargetState::Cancelled; 2]);
}
