//! What administrators ask for comes true on the engine in memory.

use std::time::Duration;

use engine::{ContainerSettings, EngineError, Images};
use schema::condition::{ConditionStatus, Reason};
use schema::container::ContainerFacts;
use schema::ids::Uid;
use schema::image::DesiredImage;
use serde_json::json;

use super::support::{AGENT, Yard, broken, reason, slow};
use kit::engine::{Fault, PullEnd, Verb};
use reconcilers::container::ContainerStore;
use reconcilers::image::Action;
use reconcilers::runtime::Reconciler;
use reconcilers::user::UserStore;

#[tokio::test(start_paused = true)]
async fn an_image_is_pulled_once_for_a_request_and_once_more_for_the_next() {
    let mut yard = Yard::new();
    let first = yard.fake.publish_image("agent:1");
    let uid = yard.request(AGENT, "t1");
    assert_eq!(reason(yard.settled(&uid).await), Reason::Converged);
    let facts = yard.row(&uid).await.unwrap().facts;
    assert_eq!(facts.image_id.as_deref(), Some(first.as_str()));
    assert!(facts.digest.unwrap().starts_with("agent@sha256:"));
    yard.assert_nothing_to_do(&uid).await;

    let second = yard.fake.publish_image("agent:1");
    yard.assert_nothing_to_do(&uid).await;
    assert_eq!(yard.request(AGENT, "t2"), uid);
    yard.settled(&uid).await;
    let facts = yard.row(&uid).await.unwrap().facts;
    assert_eq!(facts.image_id.as_deref(), Some(second.as_str()));
    yard.reboot();
    yard.service.view.refresh().await.unwrap();
    yard.assert_nothing_to_do(&uid).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_is_answered_by_the_pull_that_is_under_way_for_somebody_else() {
    let mut yard = Yard::new();
    yard.fake.publish_image("agent:1");
    yard.fake.script_pull("agent:1", slow(PullEnd::Done));
    yard.service.pulls.start("agent:1", None, "");
    yard.pass_time(Duration::from_secs(1)).await;
    let uid = yard.request(AGENT, "t1");
    assert_eq!(reason(yard.settled(&uid).await), Reason::Converged);
    assert_eq!(yard.fake.calls().of(Verb::Pull), 1);
}

#[tokio::test(start_paused = true)]
async fn the_condition_tells_how_far_a_pull_is() {
    let mut yard = Yard::new();
    yard.fake.publish_image("agent:1");
    yard.fake.script_pull("agent:1", slow(PullEnd::Hangs(8)));
    let uid = yard.request(AGENT, "t1");
    let condition = yard
        .settle_within(&uid, Duration::from_secs(5))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(condition.reason, Reason::ImagePulling);
    assert_eq!(condition.message, "60 %, 40.0 of 80.0 MB");
}

#[tokio::test(start_paused = true)]
async fn a_policy_against_pulling_does_not_stop_one_that_was_asked_for() {
    let mut yard = Yard::new();
    yard.configure("image.pull_policy", json!("never")).await;
    yard.fake.publish_image("agent:1");
    let uid = yard.request(AGENT, "t1");
    assert_eq!(reason(yard.settled(&uid).await), Reason::Converged);
}

#[tokio::test(start_paused = true)]
async fn answered_request_is_unknown_while_its_registry_is_away() {
    let away = || EngineError::RegistryFailed("the registry can't be reached".to_owned());
    let mut yard = Yard::new();
    yard.fake.publish_image("agent:1");
    // Before it is answered, the pull tells what is so.
    yard.fake.fail_next(Verb::Image, 1, away);
    let uid = yard.request(AGENT, "t1");
    assert_eq!(reason(yard.settled(&uid).await), Reason::Converged);
    let pulls = yard.fake.calls().of(Verb::Pull);
    yard.fake.fail_next(Verb::Image, 1, away);
    let pass = yard.pass(&uid).await.unwrap().unwrap();
    let told = pass.condition.unwrap();
    assert_eq!(told.status, ConditionStatus::Unknown, "{told:?}");
    assert!(told.message.contains("can't be reached"), "{told:?}");
    assert_eq!(yard.fake.calls().of(Verb::Pull), pulls);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Converged);
}

#[tokio::test(start_paused = true)]
async fn a_wanted_image_that_somebody_removed_is_pulled_again() {
    let mut yard = Yard::new();
    let image = yard.fake.publish_image("agent:1");
    let uid = yard.request(AGENT, "t1");
    yard.settled(&uid).await;
    yard.fake.hand_remove_image(&image);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Converged);
    assert_eq!(yard.tags(), ["agent:1"]);
}

#[tokio::test(start_paused = true)]
async fn l37_a_requested_pull_that_fails_has_ended_until_somebody_asks_again() {
    let refused = || EngineError::PullRefused("manifest unknown".to_owned());
    for (ends, words) in [
        (broken as fn() -> EngineError, "unexpected EOF"),
        (refused, "manifest unknown"),
    ] {
        let mut yard = Yard::new();
        let breaks = PullEnd::Fails(6, std::sync::Arc::new(ends));
        yard.fake.script_pull("agent:1", slow(breaks));
        yard.fake.publish_image("agent:1");
        let uid = yard.request(AGENT, "t1");
        let hour = Duration::from_secs(60 * 60);
        for reboot in [false, true] {
            if reboot {
                yard.reboot();
                yard.service.view.refresh().await.unwrap();
            }
            let condition = yard.settle_within(&uid, hour).await.unwrap().unwrap();
            assert!(condition.message.contains(words), "{condition:?}");
            assert!(condition.needs_action(), "{condition:?}");
            assert_eq!(yard.fake.calls().of(Verb::Pull), 1, "{reboot}");
        }
        yard.fake.script_pull("agent:1", slow(PullEnd::Done));
        yard.request(AGENT, "t2");
        let condition = yard
            .settle_within(&uid, Duration::from_secs(5))
            .await
            .unwrap();
        assert_eq!(reason(condition), Reason::Converged, "at once");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_pulled_and_is_gone_is_tried_again_with_growing_pauses() {
    let mut yard = Yard::new();
    let image = yard.fake.publish_image("agent:1");
    let uid = yard.request(AGENT, "t1");
    yard.settled(&uid).await;
    yard.fake.hand_remove_image(&image);
    let breaks = PullEnd::Fails(6, std::sync::Arc::new(broken));
    yard.fake.script_pull("agent:1", slow(breaks));
    let condition = yard
        .settle_within(&uid, Duration::from_secs(60))
        .await
        .unwrap();
    assert_eq!(reason(condition), Reason::ImagePullFailed);
    // The first; then at 0, 6, 17 and 38 seconds, each after a second of pulling.
    assert_eq!(yard.fake.calls().of(Verb::Pull), 5);
    yard.fake.script_pull("agent:1", slow(PullEnd::Done));
    assert_eq!(reason(yard.settled(&uid).await), Reason::Converged);
}

#[tokio::test(start_paused = true)]
async fn a_pull_that_only_lost_its_engine_goes_on_when_that_is_back() {
    let mut yard = Yard::new();
    yard.fake.publish_image("agent:1");
    yard.fake
        .fail_next(Verb::Pull, 1, || EngineError::Unavailable("gone".into()));
    let uid = yard.request(AGENT, "t1");
    assert_eq!(reason(yard.settled(&uid).await), Reason::Converged);
    assert_eq!(yard.fake.calls().of(Verb::Pull), 2);
}

#[tokio::test(start_paused = true)]
async fn an_image_that_users_have_stays_until_they_have_another() {
    let mut yard = Yard::new();
    let image = yard.fake.publish_image("agent:1");
    let uid = yard.request(AGENT, "t1");
    yard.settled(&uid).await;
    let users =
        ["u1", "u2", "u3", "u4", "u5", "u6", "u7"].map(|name| yard.create_user(name, "agent:1"));
    for user in &users {
        let facts = ContainerFacts {
            image_ref: Some("agent:1".to_owned()),
            image_id: Some(image.clone()),
            ..ContainerFacts::default()
        };
        yard.store.save_container_facts(user, &facts).await.unwrap();
    }
    let removals = [yard.absent(AGENT), yard.absent(&image)];
    for removal in &removals {
        let condition = yard
            .settle_within(removal, Duration::from_secs(20))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(condition.reason, Reason::ImageInUse);
        assert_eq!(condition.message, "in use by u1, u2, u3, u4, u5 and 2 more");
    }
    assert_eq!(yard.tags(), ["agent:1"]);
    for user in &users {
        yard.store.delete_user(user, yard.clock_now()).unwrap();
        yard.store.purge_container(user).await.unwrap();
        yard.store.purge_user(user).await.unwrap();
    }
    for removal in &removals {
        assert!(yard.settled(removal).await.is_none(), "it is forgotten");
    }
    assert!(yard.tags().is_empty());
    assert_eq!(
        yard.fake.calls().of(Verb::Pull),
        1,
        "nothing pulls it again"
    );
}

#[tokio::test(start_paused = true)]
async fn an_image_is_removed_by_its_id_with_all_its_names() {
    let mut yard = Yard::new();
    let image = yard.fake.add_image("agent:1");
    yard.fake
        .hand_tag("agent:1", "other.example/agent:9")
        .unwrap();
    let uid = yard.absent(&image);
    assert!(yard.settled(&uid).await.is_none());
    assert!(yard.fake.all_images().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_image_removed_by_its_id_is_not_pulled_again_for_a_name_it_had() {
    let mut yard = Yard::new();
    let image = yard.fake.publish_image("agent:1");
    let wanted = yard.request(AGENT, "t1");
    yard.settled(&wanted).await;
    // What the API writes: the id, and what was pulled as that image.
    let removals = [yard.absent(&image), yard.absent(AGENT)];
    for removal in &removals {
        assert!(yard.settled(removal).await.is_none());
    }
    yard.reboot();
    yard.service.view.refresh().await.unwrap();
    yard.assert_nothing_to_do(&wanted).await;
    assert!(yard.fake.all_images().is_empty());
    assert_eq!(yard.fake.calls().of(Verb::Pull), 0, "since it was removed");
}

#[tokio::test(start_paused = true)]
async fn l38_an_image_stays_for_a_user_who_has_it_by_name_only() {
    let mut yard = Yard::new();
    let image = yard.fake.add_image("agent:1");
    yard.create_user("ada", "agent:1");
    let uid = yard.absent(&image);
    let condition = yard.settle_within(&uid, Duration::from_secs(10)).await;
    let condition = condition.unwrap().unwrap();
    assert_eq!(condition.reason, Reason::ImageInUse);
    assert_eq!(condition.message, "in use by ada");
    assert_eq!(yard.tags(), ["agent:1"]);
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_is_taken_back_leaves_the_image() {
    let mut yard = Yard::new();
    let image = yard.fake.add_image("agent:1");
    let user = yard.create_user("ada", "agent:1");
    let uid = yard.absent(AGENT);
    let _ = yard.settle_within(&uid, Duration::from_secs(10)).await;
    assert_eq!(yard.cancel(AGENT), uid);
    yard.store.delete_user(&user, yard.clock_now()).unwrap();
    yard.store.purge_container(&user).await.unwrap();
    yard.store.purge_user(&user).await.unwrap();
    assert!(yard.settled(&uid).await.is_none());
    assert_eq!(yard.fake.all_images()[0].id, image);
}

/// A first pull that has begun, and then tells nothing for a while.
async fn in_the_midst_of_a_pull() -> (Yard, Uid) {
    let mut yard = Yard::new();
    yard.fake.publish_image("agent:1");
    yard.fake.script_pull("agent:1", slow(PullEnd::Hangs(5)));
    let uid = yard.request(AGENT, "t1");
    let _ = yard.settle_within(&uid, Duration::from_secs(3)).await;
    assert_eq!(yard.fake.pulls_under_way(), 1);
    (yard, uid)
}

#[tokio::test(start_paused = true)]
async fn a_removal_stops_the_pull_of_what_shall_go() {
    let (mut yard, uid) = in_the_midst_of_a_pull().await;
    assert_eq!(yard.absent(AGENT), uid);
    assert!(yard.settled(&uid).await.is_none());
    tokio::task::yield_now().await;
    assert_eq!(yard.fake.pulls_under_way(), 0);
    assert!(yard.tags().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pull_is_called_off_while_the_engine_answers_nothing() {
    let (mut yard, uid) = in_the_midst_of_a_pull().await;
    yard.fake.fault_next(Verb::Image, 9, Fault::Hang);
    yard.cancel(AGENT);
    let second = Duration::from_secs(1);
    let pass = tokio::time::timeout(second, yard.pass(&uid)).await;
    let pass = pass.expect("the engine is not waited for").unwrap();
    assert_eq!(pass.unwrap().error, None);
    assert_eq!(yard.row(&uid).await, None);
    tokio::task::yield_now().await;
    assert_eq!(yard.fake.pulls_under_way(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_removal_asked_for_while_a_cancel_is_carried_out_is_not_lost() {
    let mut yard = Yard::new();
    yard.fake.add_image("agent:1");
    let uid = yard.cancel(AGENT);
    let late = Action::Purge {
        desired: DesiredImage::Cancelled,
    };
    yard.absent(AGENT);
    yard.service.images.apply(&uid, &late).await.unwrap();
    assert!(yard.settled(&uid).await.is_none());
    assert!(yard.tags().is_empty());
}

#[tokio::test(start_paused = true)]
async fn l38_an_image_that_a_foreign_container_uses_is_kept_in_the_engines_words() {
    let mut yard = Yard::new();
    yard.fake.add_image("agent:1");
    let settings = ContainerSettings {
        image: "agent:1".to_owned(),
        ..Default::default()
    };
    yard.fake.hand_create("foreign", &settings).unwrap();
    let uid = yard.absent(AGENT);
    let condition = yard
        .settle_within(&uid, Duration::from_secs(10))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(condition.reason, Reason::ImageInUse);
    assert!(condition.message.contains("container"), "{condition:?}");
    assert_eq!(yard.tags(), ["agent:1"]);
    yard.fake.hand_remove("foreign").unwrap();
    assert!(yard.settled(&uid).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn calling_a_first_pull_off_stops_it_and_leaves_nothing() {
    let (mut yard, uid) = in_the_midst_of_a_pull().await;
    assert_eq!(yard.cancel(AGENT), uid);
    assert!(yard.settled(&uid).await.is_none());
    tokio::task::yield_now().await;
    assert_eq!(yard.fake.pulls_under_way(), 0);
    assert!(yard.tags().is_empty());
}

#[tokio::test(start_paused = true)]
async fn calling_a_repeated_pull_off_keeps_the_image_as_it_was() {
    let mut yard = Yard::new();
    let image = yard.fake.publish_image("agent:1");
    let uid = yard.request(AGENT, "t1");
    yard.settled(&uid).await;
    yard.fake.publish_image("agent:1");
    yard.fake.script_pull("agent:1", slow(PullEnd::Hangs(5)));
    yard.request(AGENT, "t2");
    let _ = yard.settle_within(&uid, Duration::from_secs(3)).await;
    assert_eq!(yard.fake.pulls_under_way(), 1);
    yard.cancel(AGENT);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Converged);
    tokio::task::yield_now().await;
    assert_eq!(yard.fake.pulls_under_way(), 0);
    let facts = yard.row(&uid).await.unwrap().facts;
    assert_eq!(facts.image_id, Some(image));
    yard.assert_nothing_to_do(&uid).await;
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_follows_a_cancel_is_not_forgotten() {
    let mut yard = Yard::new();
    yard.fake.add_image("agent:1");
    let uid = yard.cancel(AGENT);
    let _ = Reconciler::keys(&yard.service.images).await;
    // No generation rings for it, so nobody marks the row.
    let new = Uid::random();
    let now = yard.clock_now();
    yard.store.request_absent(&new, AGENT, now).unwrap();
    assert!(yard.settled(&uid).await.is_none());
    assert!(yard.tags().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_claimed_or_done_while_the_engine_is_away() {
    let mut yard = Yard::new();
    yard.fake.publish_image("agent:1");
    yard.fake.set_unavailable(true);
    let uid = yard.request(AGENT, "t1");
    let _ = yard.service.view.refresh().await;
    let pass = yard.pass(&uid).await.unwrap().unwrap();
    let condition = pass.condition.unwrap();
    assert_eq!(condition.status, ConditionStatus::Unknown);
    assert_eq!(condition.reason, Reason::EngineUnavailable);
    assert_eq!((pass.acted, pass.error), (0, None));
    yard.fake.set_unavailable(false);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Converged);
    // A single answer that does not come is no failure of the image.
    yard.fake
        .fail_next(Verb::Image, 1, || EngineError::Unavailable("gone".into()));
    let pass = yard.pass(&uid).await.unwrap().unwrap();
    assert_eq!(pass.condition.unwrap().reason, Reason::EngineUnavailable);
    assert!(yard.fake.image(AGENT).await.unwrap().is_some());
}
