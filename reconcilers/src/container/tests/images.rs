//! Where a container's image comes from, and that it stays the same.

use std::time::Duration;

use schema::condition::Reason;
use serde_json::json;

use super::support::{Yard, reason};
use crate::drivers::docker::EngineError;
use crate::drivers::docker::fake::{Fault, Verb};

/// Pulls run beside the passes: gives them time to end.
async fn settle_with_pulls(yard: &mut Yard, uid: &schema::ids::Uid) -> Reason {
    let mut last = None;
    for _ in 0..50 {
        let _ = crate::runtime::Reconciler::keys(&yard.service.container)
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
