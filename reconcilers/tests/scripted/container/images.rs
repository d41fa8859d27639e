//! Where a container's image comes from, and that it stays the same.

use std::time::Duration;

use engine::EngineError;
use schema::condition::Reason;
use schema::container::Desired;
use schema::rollout::{self, ImageChoice, NewRollout, ReadinessPolicy, RolloutKind, TargetState};
use serde_json::json;

use super::support::{Yard, reason};
use kit::engine::{Fault, Run, Verb};

/// How long the rollouts of these tests wait for a replacement.
const HEALTH: Duration = Duration::from_secs(15);
const MIN_READY: Duration = Duration::from_secs(10);

/// Pulls run beside the passes: gives them time to end.
async fn settle_with_pulls(yard: &mut Yard, uid: &schema::ids::Uid) -> Reason {
    let mut last = None;
    for _ in 0..50 {
        let _ = reconcilers::runtime::Reconciler::keys(&yard.service.container)
            .await
            .unwrap();
        let pass = yard.pass(uid).await.unwrap().unwrap();
        last = pass.condition.map(|c| c.reason).or(last);
        tokio::time::sleep(Duration::from_millis(2)).await;
        if last != Some(Reason::ImagePulling) && last != Some(Reason::Progressing) {
            break;
        }
    }
    last.unwrap()
}

#[tokio::test]
async fn a_missing_image_is_pulled_once_for_all_who_wait() {
    let mut yard = Yard::new().await;
    let present = yard.fake.add_image("echo:1");
    yard.fake.hand_remove_image(&present);
    yard.fake.publish_image("echo:1");
    let alice = yard.create_user("alice").await;
    yard.fake
        .fault_next(Verb::Pull, 1, Fault::Delay(Duration::from_millis(20)));
    for _ in 0..4 {
        let _ = yard.service.engine_pass().await;
    }
    yard.service.user_pass(&alice).await;
    assert_eq!(settle_with_pulls(&mut yard, &alice).await, Reason::Running);
    assert_eq!(yard.fake.calls().of(Verb::Pull), 1);
}

#[tokio::test]
async fn first_start_does_not_wait_until_nodes_have_the_image() {
    let mut yard = Yard::new().await;
    let present = yard.fake.add_image("echo:1");
    yard.fake.hand_remove_image(&present);
    let offered = yard.fake.offer_image("echo:1");
    let alice = yard.create_user("alice").await;
    assert_eq!(reason(yard.settled(&alice).await), Reason::Running);
    assert_eq!(yard.fake.calls().of(Verb::Pull), 0);
    assert_eq!(container(&yard).image_id, offered);
}

#[tokio::test]
async fn registry_that_does_not_answer_is_no_missing_image() {
    let away = || EngineError::RegistryFailed("the registry can't be reached".to_owned());
    let mut yard = Yard::new().await;
    yard.fake.fail_next(Verb::Image, 50, away);
    yard.fake.fail_next(Verb::Pull, 1, away);
    let alice = yard.create_user("alice").await;
    assert_eq!(
        settle_with_pulls(&mut yard, &alice).await,
        Reason::ImagePullFailed
    );
    yard.fake.clear_faults();
    assert_eq!(reason(yard.settled(&alice).await), Reason::Running);
}

#[tokio::test]
async fn never_means_never() {
    let mut yard = Yard::new().await;
    yard.configure("image.pull_policy", json!("never")).await;
    let present = yard.fake.add_image("echo:1");
    yard.fake.hand_remove_image(&present);
    yard.fake.publish_image("echo:1");
    let uid = yard.create_user("alice").await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::ImageMissing);
    assert_eq!(yard.fake.calls().of(Verb::Pull), 0);
    yard.fake.add_image("echo:1");
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
}

#[tokio::test]
async fn a_failed_pull_is_named_and_tried_again_later() {
    let mut yard = Yard::new().await;
    let present = yard.fake.add_image("echo:1");
    yard.fake.hand_remove_image(&present);
    yard.fake.publish_image("echo:1");
    yard.fake.fail_next(Verb::Pull, 2, || {
        EngineError::PullFailed("no route".to_owned())
    });
    let uid = yard.create_user("alice").await;
    for _ in 0..4 {
        let _ = yard.service.engine_pass().await;
    }
    yard.service.user_pass(&uid).await;
    for _ in 0..2 {
        assert_eq!(
            settle_with_pulls(&mut yard, &uid).await,
            Reason::ImagePullFailed
        );
        assert_eq!(
            settle_with_pulls(&mut yard, &uid).await,
            Reason::ImagePullFailed
        );
        yard.clock.advance(Duration::from_secs(10));
    }
    assert_eq!(settle_with_pulls(&mut yard, &uid).await, Reason::Running);
    assert_eq!(yard.fake.calls().of(Verb::Pull), 3);
}

#[tokio::test]
async fn a_moved_tag_changes_no_existing_user() {
    let mut yard = Yard::new().await;
    let alice = yard.create_user("alice").await;
    yard.settled(&alice).await;
    let before = yard.fake.container("agentyard-alice").unwrap().container;
    let newer = yard.fake.add_image("echo:1");
    assert_ne!(before.image_id, newer);
    yard.reboot();
    yard.settled(&alice).await;
    yard.restart(&alice, "t").await;
    yard.settled(&alice).await;
    let after = yard.fake.container("agentyard-alice").unwrap().container;
    assert_ne!(after.id, before.id);
    assert_eq!(after.image_id, before.image_id);
}

#[tokio::test]
async fn who_is_created_stopped_has_the_image_of_then_at_the_first_start() {
    let mut yard = Yard::new().await;
    let alice = yard.create_user("alice").await;
    yard.set_desired(&alice, Desired::Stopped, false).await;
    let then = yard.fake.image_id("echo:1");
    let said = yard.settled(&alice).await.unwrap();
    assert_eq!(
        (said.reason, &*said.message),
        (Reason::Stopped, "stopped as asked")
    );
    assert_eq!(yard.row(&alice).await.unwrap().pinned_image(), Some(&*then));
    yard.assert_nothing_to_do(&alice).await;
    assert_eq!(yard.fake.calls().of(Verb::Image), 0, "it is known");
    assert_ne!(yard.fake.add_image("echo:1"), then);
    yard.set_desired(&alice, Desired::Running, false).await;
    assert_eq!(reason(yard.settled(&alice).await), Reason::Running);
    assert_eq!(container(&yard).image_id, then);
}

#[tokio::test]
async fn an_image_that_is_not_there_is_fixed_once_it_is_and_asked_for_once_for_all() {
    let mut yard = Yard::new().await;
    yard.fake.hand_remove_image(&yard.fake.image_id("echo:1"));
    let mut users = Vec::new();
    for n in 0..20 {
        let uid = yard.create_user(&format!("user{n}")).await;
        yard.set_desired(&uid, Desired::Stopped, false).await;
        users.push(uid);
    }
    let _ = reconcilers::runtime::Reconciler::keys(&yard.service.container).await;
    yard.fake.reset_calls();
    for uid in &users {
        let pass = yard.pass(uid).await.unwrap().unwrap();
        let said = pass.condition.unwrap();
        assert_eq!(said.reason, Reason::Stopped);
        assert_eq!(
            said.message,
            "stopped as asked; echo:1 is not on the engine yet"
        );
    }
    assert_eq!(yard.fake.calls().of(Verb::Image), 1);
    assert_eq!(yard.fake.calls().of(Verb::Pull), 0, "nobody needs it");
    let came = yard.fake.add_image("echo:1");
    yard.clock.advance(Duration::from_secs(5));
    for uid in &users {
        yard.settled(uid).await;
        assert_eq!(yard.row(uid).await.unwrap().pinned_image(), Some(&*came));
    }
}

#[tokio::test]
async fn what_is_pulled_always_is_fixed_by_its_first_pull() {
    let mut yard = Yard::new().await;
    yard.configure("image.pull_policy", json!("always")).await;
    let alice = yard.create_user("alice").await;
    yard.set_desired(&alice, Desired::Stopped, false).await;
    let said = yard.settled(&alice).await.unwrap();
    assert_eq!(
        said.message,
        "stopped as asked; echo:1 is pulled at the first start"
    );
    assert_eq!(yard.row(&alice).await.unwrap().pinned_image(), None);
}

#[tokio::test]
async fn an_image_is_fixed_before_anything_can_be_made_of_it() {
    let mut yard = Yard::new().await;
    let alice = yard.create_user("alice").await;
    // Neither a directory nor a network.
    let _ = reconcilers::runtime::Reconciler::keys(&yard.service.container).await;
    for _ in 0..3 {
        yard.pass(&alice).await.unwrap();
        yard.bell(&alice);
    }
    let then = yard.fake.image_id("echo:1");
    assert_eq!(yard.row(&alice).await.unwrap().pinned_image(), Some(&*then));
    assert_ne!(yard.fake.add_image("echo:1"), then);
    assert_eq!(reason(yard.settled(&alice).await), Reason::Running);
    assert_eq!(container(&yard).image_id, then);
}

#[tokio::test]
async fn an_image_that_was_removed_is_found_again_by_its_reference() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    let image = yard
        .fake
        .container("agentyard-alice")
        .unwrap()
        .container
        .image_id;
    yard.fake.hand_remove_image(&image);
    let newer = yard.fake.add_image("echo:1");
    yard.assert_nothing_to_do(&uid).await;
    yard.restart(&uid, "t").await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    let after = yard.fake.container("agentyard-alice").unwrap().container;
    assert_eq!(after.image_id, newer);
}

/// What a rollout does: another image for this user.
async fn give(yard: &mut Yard, uid: &schema::ids::Uid, image: &ImageChoice) {
    let new = NewRollout {
        kind: RolloutKind::Upgrade,
        reference: image.reference.clone(),
        source: None,
        max_unavailable: 1,
        pause_on_failure: true,
        health_timeout: HEALTH,
        min_ready: MIN_READY,
    };
    let mut tx = yard.db.begin().await.unwrap();
    let users = [uid.clone()];
    let now = yard.now();
    let rollout = match rollout::unfinished(&mut tx).await.unwrap().pop() {
        Some(rollout) => rollout,
        None => rollout::create(&mut tx, &new, &users, "admin", now)
            .await
            .unwrap(),
    };
    let policy = ReadinessPolicy {
        health_timeout: HEALTH,
        min_ready: MIN_READY,
    };
    rollout::move_target(&mut tx, &rollout, uid, image, policy, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    yard.bell(uid);
}

async fn put_back(yard: &mut Yard, uid: &schema::ids::Uid) {
    let mut tx = yard.db.begin().await.unwrap();
    let rollout = rollout::unfinished(&mut tx).await.unwrap().pop().unwrap();
    let state = TargetState::PuttingBack;
    rollout::put_back(&mut tx, &rollout, uid, state, "it failed", yard.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    yard.bell(uid);
}

fn choice(image_id: &str, digest: Option<&str>) -> ImageChoice {
    ImageChoice {
        reference: "docker.io/library/echo:2".to_owned(),
        image_id: Some(image_id.to_owned()),
        digest: digest.map(str::to_owned),
    }
}

fn container(yard: &Yard) -> engine::Container {
    yard.fake.container("agentyard-alice").unwrap().container
}

#[tokio::test]
async fn l36_a_container_gets_the_very_image_a_rollout_gave_whatever_the_tag_means_by_now() {
    let mut yard = Yard::new().await;
    let alice = yard.create_user("alice").await;
    yard.settled(&alice).await;
    let given = yard.fake.add_image("echo:2");
    let newer = yard.fake.add_image("echo:2");
    give(&mut yard, &alice, &choice(&given, None)).await;
    assert_eq!(reason(yard.settled(&alice).await), Reason::Running);
    assert_eq!(container(&yard).image_id, given);
    assert_ne!(given, newer);
    let row = yard.row(&alice).await.unwrap();
    assert_eq!(row.facts.image_id.as_deref(), Some(&*given));
    assert_eq!(row.facts.image_ref.as_deref(), Some(&*row.image_ref));
    yard.reboot();
    yard.settled(&alice).await;
    yard.assert_nothing_to_do(&alice).await;
}

#[tokio::test]
async fn l36_what_crashes_goes_back_at_once_and_the_previous_image_fits_without_another_container()
{
    let mut yard = Yard::new().await;
    let alice = yard.create_user("alice").await;
    yard.settled(&alice).await;
    let before = container(&yard);
    let broken = yard.fake.add_image("echo:2");
    let image = broken.clone();
    yard.fake.on_start(move |details| Run {
        ends: (details.settings.image == image).then_some((Duration::ZERO, 1)),
        ..Run::default()
    });
    give(&mut yard, &alice, &choice(&broken, None)).await;
    let begun = yard.now();
    let mut last = None;
    for _ in 0..30 {
        let _ = reconcilers::runtime::Reconciler::keys(&yard.service.container)
            .await
            .unwrap();
        let pass = yard.pass(&alice).await.unwrap().unwrap();
        last = pass.condition.map(|condition| condition.reason);
        if last == Some(Reason::ReplacementFailed) && pass.acted == 0 {
            break;
        }
    }
    assert_eq!(last, Some(Reason::ReplacementFailed));
    assert_eq!(yard.now(), begun, "nobody waited for the health timeout");
    assert_eq!(container(&yard).id, before.id);
    put_back(&mut yard, &alice).await;
    assert_eq!(reason(yard.settled(&alice).await), Reason::Running);
    assert_eq!(container(&yard).id, before.id, "it fits as it is");
    let row = yard.row(&alice).await.unwrap();
    assert_eq!(row.facts.image_id.as_deref(), Some(&*before.image_id));
    assert_eq!(row.facts.failed_digest, None);
    yard.assert_nothing_to_do(&alice).await;
    // The same image once more, mended meanwhile: nothing of the failure stands in its way.
    yard.fake.on_start(|_| Run::default());
    give(&mut yard, &alice, &choice(&broken, None)).await;
    assert_eq!(reason(yard.settled(&alice).await), Reason::Running);
    assert_eq!(container(&yard).image_id, broken);
}

#[tokio::test]
async fn the_crashes_of_the_old_image_do_not_hold_up_the_new_one() {
    let mut yard = Yard::new().await;
    let alice = yard.create_user("alice").await;
    let good = yard.fake.add_image("echo:2");
    let works = good.clone();
    yard.fake.on_start(move |details| Run {
        ends: (details.settings.image != works).then_some((Duration::ZERO, 1)),
        ..Run::default()
    });
    let mut crashes = 0;
    for _ in 0..300 {
        let _ = reconcilers::runtime::Reconciler::keys(&yard.service.container).await;
        let _ = yard.service.engine_pass().await;
        yard.service.user_pass(&alice).await;
        yard.pass(&alice).await.unwrap();
        crashes = yard.row(&alice).await.unwrap().facts.crash_count;
        if crashes >= 5 {
            break;
        }
        yard.clock.advance(Duration::from_secs(1));
    }
    assert!(crashes >= 5, "{crashes}");
    give(&mut yard, &alice, &choice(&good, None)).await;
    let begun = yard.now();
    assert_eq!(reason(yard.settled(&alice).await), Reason::Running);
    assert!(yard.now().since(begun) < Duration::from_secs(2));
    assert_eq!(yard.row(&alice).await.unwrap().facts.crash_count, 0);
}

#[tokio::test]
async fn a_given_image_that_is_gone_is_pulled_by_its_digest() {
    let mut yard = Yard::new().await;
    let alice = yard.create_user("alice").await;
    yard.settled(&alice).await;
    let digest = format!("docker.io/library/echo@sha256:{}", "a".repeat(64));
    let given = yard.fake.publish_image(&digest);
    give(&mut yard, &alice, &choice(&given, Some(&digest))).await;
    assert_eq!(settle_with_pulls(&mut yard, &alice).await, Reason::Running);
    assert_eq!(container(&yard).image_id, given);
    assert_eq!(yard.fake.calls().of(Verb::Pull), 1);
}

#[tokio::test]
async fn a_given_image_that_is_gone_for_good_is_told_and_never_silently_another() {
    let gone = format!("sha256:{}", "b".repeat(64));
    let digest = format!("docker.io/library/echo@sha256:{}", "a".repeat(64));
    // Without a digest there is nowhere to get it; with one, what comes may be something else.
    for digest in [None, Some(&*digest)] {
        let mut yard = Yard::new().await;
        let alice = yard.create_user("alice").await;
        yard.settled(&alice).await;
        let before = container(&yard);
        yard.fake.add_image("echo:2");
        if let Some(digest) = digest {
            yard.fake.publish_image(digest);
        }
        give(&mut yard, &alice, &choice(&gone, digest)).await;
        assert_eq!(
            settle_with_pulls(&mut yard, &alice).await,
            Reason::ImageMissing
        );
        assert_eq!(container(&yard), before);
    }
}

#[tokio::test]
async fn a_rollout_says_how_long_its_replacement_may_take() {
    let mut yard = Yard::with_agent(|agent| agent["readiness"] = json!({ "file": "ready" })).await;
    let old = yard.fake.add_image("echo:1");
    let ready = yard.gets_ready();
    yard.fake.on_start(move |details| {
        if details.settings.image == old {
            ready();
        }
        Run::default()
    });
    let alice = yard.create_user("alice").await;
    yard.settled(&alice).await;
    yard.clock.advance(Duration::from_secs(1));
    let before = container(&yard);
    let given = yard.fake.add_image("echo:2");
    give(&mut yard, &alice, &choice(&given, None)).await;
    let begun = yard.now();
    let mut failed = false;
    for _ in 0..200 {
        let _ = reconcilers::runtime::Reconciler::keys(&yard.service.container).await;
        let pass = yard.pass(&alice).await.unwrap().unwrap();
        failed = pass.condition.map(|c| c.reason) == Some(Reason::ReplacementFailed);
        if failed {
            break;
        }
        if pass.acted == 0 {
            yard.clock.advance(Duration::from_millis(300));
        }
    }
    assert!(failed);
    assert_eq!(container(&yard).id, before.id);
    let waited = yard.now().since(begun);
    assert!(waited >= HEALTH && waited < HEALTH * 2, "{waited:?}");
}
