//! What the reference of a rollout means, and when it is pulled.

use schema::condition::{ConditionStatus, Reason};
use schema::config::{Config, parse_patch};
use schema::rollout::{NewRollout, RolloutKind};
use serde_json::json;

use super::support::{Fleet, NEW, upgrade};
use kit::engine::Verb;
use reconcilers::drivers::docker::EngineError;
use reconcilers::stores::ConfigStore;

async fn policy(fleet: &Fleet, policy: &str) {
    let (stored, _) = fleet.store.config().await.unwrap();
    let patch = parse_patch(&json!({ "image.pull_policy": policy })).unwrap();
    let changes = patch.resolve(&Config::from_stored(stored)).unwrap();
    fleet.store.configure(&changes).unwrap();
}

fn pulls(fleet: &Fleet) -> u64 {
    fleet.fake.calls().of(Verb::Pull)
}

async fn of_kind(kind: RolloutKind) -> Fleet {
    Fleet::new(2, &[], &NewRollout { kind, ..upgrade(1) }).await
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_pulls_what_is_there_and_a_migration_does_not() {
    for (kind, expected) in [(RolloutKind::Upgrade, 1), (RolloutKind::Migrate, 0)] {
        let mut fleet = of_kind(kind).await;
        let stale = fleet.fake.add_image(NEW);
        let newest = fleet.fake.publish_image(NEW);
        assert_eq!(fleet.settled().await.status, ConditionStatus::True);
        assert_eq!(pulls(&fleet), expected, "{kind:?}");
        let wanted = if expected == 1 { newest } else { stale };
        assert_eq!(fleet.images(), vec![Some(wanted); 2], "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_migration_pulls_what_is_missing_and_with_always_also_what_is_there() {
    for there in [false, true] {
        let mut fleet = of_kind(RolloutKind::Migrate).await;
        if there {
            fleet.fake.add_image(NEW);
            policy(&fleet, "always").await;
        }
        let newest = fleet.fake.publish_image(NEW);
        assert_eq!(fleet.settled().await.status, ConditionStatus::True);
        assert_eq!(pulls(&fleet), 1);
        assert_eq!(fleet.images(), vec![Some(newest); 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_pull_falls_back_to_what_is_there_and_says_so() {
    let mut fleet = of_kind(RolloutKind::Upgrade).await;
    let local = fleet.fake.add_image(NEW);
    fleet.fake.fail_next(Verb::Pull, 1, || {
        EngineError::PullFailed("no such host".to_owned())
    });
    while fleet.state().await.0.facts.resolved_attempt == 0 {
        fleet.pass().await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let (row, _) = fleet.state().await;
    assert!(
        row.facts
            .message
            .contains("could not be pulled: the image could not be pulled: no such host"),
        "{row:?}"
    );
    assert!(fleet.told.iter().any(|line| line.contains("no such host")));
    // Neither a pause by hand nor the end forgets it.
    fleet.store.pause_rollout(&fleet.rollout).unwrap();
    let paused = fleet.settled().await;
    assert!(
        paused.message.contains("own copy was used; paused by"),
        "{paused:?}"
    );
    fleet.fake.fail_next(Verb::Pull, 1, || {
        EngineError::PullFailed("no such host".to_owned())
    });
    fleet.store.resume_rollout(&fleet.rollout).unwrap();
    let end = fleet.settled().await;
    assert_eq!(end.status, ConditionStatus::True);
    assert!(end.message.contains("2 of 2 moved; "), "{end:?}");
    assert!(
        end.message
            .ends_with("no such host, the engine's own copy was used"),
        "{end:?}"
    );
    assert_eq!(fleet.images(), vec![Some(local); 2]);
}

#[tokio::test(start_paused = true)]
async fn what_the_registry_refuses_is_not_answered_with_the_copy_that_is_there() {
    let mut fleet = of_kind(RolloutKind::Upgrade).await;
    fleet.fake.add_image(NEW);
    fleet.fake.fail_next(Verb::Pull, 3, || {
        EngineError::PullRefused("manifest unknown".to_owned())
    });
    let mut reasons = Vec::new();
    for _ in 0..10 {
        let (_, condition, _) = fleet.pass().await.unwrap().unwrap();
        reasons.push(condition.reason);
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    assert_eq!(
        reasons.last(),
        Some(&Reason::ImagePullFailed),
        "{reasons:?}"
    );
    assert_eq!(pulls(&fleet), 1, "the next one is not due");
    assert_eq!(fleet.state().await.0.facts.resolved_attempt, 0);
    // The registry is mended: the next try brings the new one.
    let newest = fleet.fake.publish_image(NEW);
    assert_eq!(fleet.settled().await.status, ConditionStatus::True);
    assert_eq!(pulls(&fleet), 4);
    assert_eq!(fleet.images(), vec![Some(newest); 2]);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_pull_pauses_the_rollout_whoever_began_it_and_resume_tries_again() {
    for others in [false, true] {
        let mut fleet = of_kind(RolloutKind::Upgrade).await;
        fleet.fake.add_image(NEW);
        let newest = fleet.fake.publish_image(NEW);
        let pulling = fleet.shared.pulls.clone();
        if others {
            pulling.start(NEW, None, "of another");
        }
        let (acted, _, _) = fleet.pass().await.unwrap().unwrap();
        assert!(acted > 0);
        pulling.cancel(NEW);
        let paused = fleet.settled().await;
        assert_eq!(paused.reason, Reason::RolloutPaused, "{paused:?}");
        assert!(
            paused
                .message
                .contains(&format!("the pull of {NEW} was cancelled")),
            "{paused:?}"
        );
        assert_eq!(fleet.state().await.0.facts.resolved_attempt, 0);
        fleet.store.resume_rollout(&fleet.rollout).unwrap();
        assert_eq!(fleet.settled().await.status, ConditionStatus::True);
        assert_eq!(fleet.images(), vec![Some(newest); 2], "{others}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pull_that_fails_with_nothing_to_fall_back_to_is_tried_again_and_nobody_is_moved() {
    for there in [false, true] {
        let mut fleet = of_kind(RolloutKind::Upgrade).await;
        if there {
            fleet.fake.add_image(NEW);
            policy(&fleet, "always").await;
        }
        let newest = fleet.fake.publish_image(NEW);
        fleet.fake.fail_next(Verb::Pull, 3, || {
            EngineError::PullFailed("no such host".to_owned())
        });
        let mut reasons = Vec::new();
        for _ in 0..10 {
            let (_, condition, _) = fleet.pass().await.unwrap().unwrap();
            reasons.push(condition.reason);
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        assert!(reasons.contains(&Reason::ImagePullFailed), "{reasons:?}");
        assert_eq!(pulls(&fleet), 1, "the next one is not due");
        assert_eq!(fleet.settled().await.status, ConditionStatus::True);
        assert_eq!(pulls(&fleet), 4);
        assert_eq!(fleet.images(), vec![Some(newest); 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn never_means_never() {
    let mut fleet = of_kind(RolloutKind::Upgrade).await;
    policy(&fleet, "never").await;
    fleet.fake.publish_image(NEW);
    let (_, condition, _) = fleet.pass().await.unwrap().unwrap();
    assert_eq!(condition.reason, Reason::ImageMissing);
    let local = fleet.fake.add_image(NEW);
    assert_eq!(fleet.settled().await.status, ConditionStatus::True);
    assert_eq!(pulls(&fleet), 0);
    assert_eq!(fleet.images(), vec![Some(local); 2]);
}

#[tokio::test(start_paused = true)]
async fn l33_without_an_engine_nobody_is_moved() {
    let mut fleet = of_kind(RolloutKind::Upgrade).await;
    fleet.fake.publish_image(NEW);
    fleet.fake.set_unavailable(true);
    let (acted, condition, _) = fleet.pass().await.unwrap().unwrap();
    assert_eq!((acted, condition.status), (0, ConditionStatus::Unknown));
    assert_eq!(condition.reason, Reason::EngineUnavailable);
    fleet.fake.set_unavailable(false);
    assert_eq!(fleet.settled().await.status, ConditionStatus::True);
}
