//! Images leave the engine.

use schema::condition::{Condition, Reason};
use schema::ids::Kind;
use schema::image::{self, DesiredImage};
use serde_json::json;

use super::*;

const DELETE: &str = "/api/admin/images/delete";

fn shelf() -> Vec<LocalImage> {
    vec![
        local('1', &["registry:5000/agent:v1"], 300),
        local('2', &["registry:5000/agent:v2"], 200),
        local('a', &["registry:5000/agent:v10"], 100),
        local('3', &["busybox:1"], 100),
    ]
}

async fn wanted(yard: &Yard, name: &str) -> Option<DesiredImage> {
    let mut connection = yard.world.deps.db.read().await.unwrap();
    let row = image::find(&mut connection, name).await.unwrap();
    row.map(|row| row.desired)
}

#[tokio::test]
async fn l38_only_what_is_managed_goes_without_force() {
    let yard = stocked(Some(shelf())).await;
    yard.post(DELETE, "image=v3").await.fails(404, "not_found");
    let foreign = yard.post(DELETE, "image=busybox:1").await;
    let foreign = foreign.fails(409, "not_managed");
    assert!(foreign["error"].as_str().unwrap().contains(OURS));
    assert_eq!(wanted(&yard, "docker.io/library/busybox:1").await, None);
    let body = "image=busybox:1&force=1&wait=0";
    let taken = yard.post(DELETE, body).await.is(202);
    assert_eq!(taken["object"], "image/docker.io/library/busybox:1");
    for (named, means) in [
        ("v1", "registry:5000/agent:v1".to_owned()),
        (
            "registry:5000/agent:v2",
            "registry:5000/agent:v2".to_owned(),
        ),
        ("aaaaaaaaaaaa", id('a')),
    ] {
        let body = format!("image={named}&wait=0");
        yard.post(DELETE, &body).await.is(202);
        let absent = Some(DesiredImage::Absent);
        assert_eq!(wanted(&yard, &means).await, absent, "{named}");
    }
    let mut twins = [local('b', &[], 1), local('b', &[], 1)];
    twins[1].id.replace_range(60.., "c");
    let fleet_of_twins = stocked(Some(twins.to_vec())).await;
    let either = fleet_of_twins
        .post(DELETE, "image=bbbbbbbbbbbb&force=1")
        .await;
    assert_eq!(either.fails(400, "invalid_parameter")["field"], "image");
    let again = yard.post("/api/admin/images/pull", "image=v1").await;
    again.fails(409, "image_being_removed");
}

#[tokio::test]
async fn what_somebody_has_stays_and_says_who_and_what_else_there_is() {
    let yard = stocked(Some(shelf())).await;
    yard.user("alice").await;
    yard.user("bob").await;
    give(&yard, "bob", "registry:5000/agent:gone", Some(id('1'))).await;
    for named in ["v1", &id('1'), "111111111111"] {
        let refused = yard.post(DELETE, &format!("image={named}&force=1")).await;
        let refused = refused.fails(409, "image_in_use");
        let others = ["registry:5000/agent:v10", "registry:5000/agent:v2"];
        assert_eq!(refused["alternatives"], json!(others), "{named}");
        assert_eq!(refused["users"], json!(["alice", "bob"]), "{named}");
    }
    let mut connection = yard.world.deps.db.read().await.unwrap();
    assert!(image::all(&mut connection).await.unwrap().is_empty());
}

#[tokio::test]
async fn dry_run_of_a_deletion_names_what_would_go() {
    let both = ["registry:5000/agent:v2", "registry:5000/agent:stable"];
    let shelf = vec![
        local('1', &["registry:5000/agent:v1"], 300),
        local('2', &both, 200),
    ];
    let yard = stocked(Some(shelf)).await;
    yard.user("alice").await;
    let dry = async |image: &str| {
        let body = format!("image={image}&dry_run=true");
        yard.post(DELETE, &body).await
    };
    let plan = dry("v2").await.is(200);
    assert_eq!(plan["image"], both[0]);
    assert_eq!(plan["references"], json!([both[0]]));
    assert_eq!(plan["state"], serde_json::Value::Null);
    let plan = dry(&id('2')).await.is(200);
    assert_eq!(plan["references"], json!([both[1], both[0]]));
    let refused = dry("v1").await.fails(409, "image_in_use");
    assert_eq!(refused["users"], json!(["alice"]));
    dry("busybox:1").await.fails(404, "not_found");
    let mut connection = yard.world.deps.db.read().await.unwrap();
    assert!(image::all(&mut connection).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_a_user_has_by_name_only_stays_when_the_id_is_named() {
    let yard = stocked(Some(shelf())).await;
    yard.user("alice").await;
    let refused = yard.post(DELETE, &format!("image={}", id('1'))).await;
    let refused = refused.fails(409, "image_in_use");
    assert_eq!(refused["users"], json!(["alice"]));
}

/// Records a pull, and what it brought.
async fn pull(yard: &Yard, reference: &str, image_id: Option<String>) {
    let mut tx = yard.world.db.begin().await.unwrap();
    let (uid, _) = image::request_pull(&mut tx, reference, "1", None, NOW)
        .await
        .unwrap();
    let facts = image::ImageFacts {
        image_id,
        ..Default::default()
    };
    image::save_facts(&mut tx, &uid, &facts).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn whoever_removes_an_id_wants_none_of_its_names_any_more() {
    let yard = stocked(Some(shelf())).await;
    let (by_name, by_fact) = ("registry:5000/agent:v2", "registry:5000/agent:old");
    let (other, moved) = ("registry:5000/agent:v10", "registry:5000/agent:v1");
    // Its name means another image by now.
    pull(&yard, moved, Some(id('2'))).await;
    pull(&yard, by_name, None).await;
    pull(&yard, by_fact, Some(id('2'))).await;
    pull(&yard, other, Some(id('a'))).await;
    let body = format!("image={}&wait=0", id('2'));
    yard.post(DELETE, &body).await.is(202);
    for name in [&id('2')[..], by_name, by_fact] {
        let absent = Some(DesiredImage::Absent);
        assert_eq!(wanted(&yard, name).await, absent, "{name}");
    }
    for name in [other, moved] {
        let present = Some(DesiredImage::Present);
        assert_eq!(wanted(&yard, name).await, present, "{name}");
    }
    // One name alone takes no other along.
    let yard = stocked(Some(shelf())).await;
    pull(&yard, by_fact, Some(id('2'))).await;
    yard.post(DELETE, "image=v2&wait=0").await.is(202);
    assert_eq!(wanted(&yard, by_fact).await, Some(DesiredImage::Present));
}

#[tokio::test]
async fn what_a_rollout_may_yet_give_stays_until_it_ends() {
    let yard = stocked(Some(shelf())).await;
    let alice = yard.user("alice").await;
    give(&yard, "alice", "registry:5000/agent:v10", Some(id('a'))).await;
    let v2 = ImageChoice {
        reference: "registry:5000/agent:v2".to_owned(),
        image_id: Some(id('2')),
        digest: None,
    };
    let new = NewRollout {
        kind: RolloutKind::Upgrade,
        reference: v2.reference.clone(),
        source: None,
        max_unavailable: 1,
        pause_on_failure: true,
        health_timeout: Duration::from_secs(60),
        min_ready: Duration::ZERO,
    };
    let mut tx = yard.world.db.begin().await.unwrap();
    let users = std::slice::from_ref(&alice);
    let uid = rollout::create(&mut tx, &new, users, "test", NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let refused = yard.post(DELETE, "image=v2").await;
    let refused = refused.fails(409, "image_in_use");
    assert_eq!(refused["users"], json!(["alice"]));
    let said = refused["error"].as_str().unwrap();
    assert!(said.contains("a rollout may still"), "{said}");
    let mut tx = yard.world.db.begin().await.unwrap();
    let policy = ReadinessPolicy {
        health_timeout: new.health_timeout,
        min_ready: new.min_ready,
    };
    rollout::move_target(&mut tx, &uid, &alice, &v2, policy, NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    for before in ["v10".to_owned(), id('a')] {
        let refused = yard.post(DELETE, &format!("image={before}")).await;
        refused.fails(409, "image_in_use");
    }
    let mut tx = yard.world.db.begin().await.unwrap();
    let (row, _) = rollout::get(&mut tx, &uid).await.unwrap().unwrap();
    let mut facts = row.facts;
    facts.finished_at = Some(NOW);
    rollout::save_facts(&mut tx, &uid, &facts).await.unwrap();
    tx.commit().await.unwrap();
    yard.post(DELETE, "image=v10&wait=0").await.is(202);
}

#[tokio::test]
async fn a_removal_that_is_not_done_yet_is_called_off() {
    const CANCEL: &str = "/api/admin/images/pulls/cancel";
    let yard = stocked(Some(shelf())).await;
    for (named, means) in [
        ("v2", "registry:5000/agent:v2"),
        (&id('a')[..], &id('a')[..]),
    ] {
        let body = format!("image={named}&wait=0");
        yard.post(CANCEL, &body).await.fails(404, "not_found");
        yard.post(DELETE, &body).await.is(202);
        yard.post(CANCEL, &body).await.is(202);
        let cancelled = Some(DesiredImage::Cancelled);
        assert_eq!(wanted(&yard, means).await, cancelled, "{named}");
    }
}

#[tokio::test]
async fn while_the_engine_is_away_a_managed_reference_is_taken_at_its_word() {
    let yard = stocked(None).await;
    yard.user("alice").await;
    yard.post(DELETE, "image=v9&wait=0").await.is(202);
    assert_eq!(
        wanted(&yard, "registry:5000/agent:v9").await,
        Some(DesiredImage::Absent)
    );
    let used = yard.post(DELETE, "image=v1").await;
    let used = used.fails(409, "image_in_use");
    assert_eq!(used["users"], json!(["alice"]));
    // So is anything by force, as far as it means itself.
    for (named, means) in [
        ("busybox:1", "docker.io/library/busybox:1"),
        (&id('1')[..], &id('1')[..]),
    ] {
        let body = format!("image={named}&force=1&wait=0");
        yard.post(DELETE, &body).await.is(202);
        assert_eq!(wanted(&yard, means).await, Some(DesiredImage::Absent));
    }
    // And what was wanted is known without the engine.
    pull(&yard, "docker.io/library/nginx:1", None).await;
    let foreign = yard.post(DELETE, "image=nginx:1").await;
    foreign.fails(409, "not_managed");
    for unclear in ["registry.example/other:1", &id('2')] {
        let body = format!("image={unclear}");
        yard.post(DELETE, &body)
            .await
            .fails(503, "engine_unavailable");
    }
}

#[tokio::test]
async fn an_answer_waits_until_the_image_is_gone_or_cannot_go() {
    let yard = stocked(Some(shelf())).await;
    let name = "registry:5000/agent:v1";
    let uid = async || {
        loop {
            let mut connection = yard.world.deps.db.read().await.unwrap();
            if let Some(row) = image::find(&mut connection, name).await.unwrap() {
                return row.uid;
            }
            drop(connection);
            tokio::task::yield_now().await;
        }
    };
    let seen = async |reason| {
        let uid: Uid = uid().await;
        let said = Condition::not_ready(reason, "a container has it");
        yard.saw(Kind::Image, &uid, 5, said).await;
    };
    let (answer, ()) = tokio::join!(yard.post(DELETE, "image=v1"), seen(Reason::ImageInUse));
    answer.fails(409, "image_in_use");
    let purge = async {
        let uid = uid().await;
        let mut tx = yard.world.db.begin().await.unwrap();
        assert!(
            image::purge(&mut tx, &uid, DesiredImage::Absent)
                .await
                .unwrap()
        );
        tx.commit().await.unwrap();
    };
    purge.await;
    let purged = async {
        let uid = uid().await;
        let mut tx = yard.world.db.begin().await.unwrap();
        assert!(
            image::purge(&mut tx, &uid, DesiredImage::Absent)
                .await
                .unwrap()
        );
        tx.commit().await.unwrap();
        yard.world.status_ticks.send_modify(|ticks| *ticks += 1);
    };
    let (answer, ()) = tokio::join!(yard.post(DELETE, "image=v1"), purged);
    assert_eq!(answer.is(200)["state"], "converged");
}

#[tokio::test]
async fn engine_that_removes_no_image_only_withdraws_requests() {
    let yard = nodes(&['1', '2']).await;
    let why = "kubelets remove images";
    for dry_run in ["", "&dry_run=1"] {
        let refused = yard
            .post(DELETE, &format!("image={}{dry_run}", id('1')))
            .await;
        let refused = refused.fails(409, "not_supported");
        assert_eq!(refused["error"], why);
    }
    let mut tx = yard.world.db.begin().await.unwrap();
    let name = format!("{OURS}:v1");
    image::request_pull(&mut tx, &name, "t1", None, crate::testing::NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let preview = yard.post(DELETE, "image=v1&dry_run=1").await.is(200);
    assert_eq!(
        (&preview["image"], &preview["removal"]),
        (&json!(name), &json!(why))
    );
    let taken = yard.post(DELETE, "image=v1&wait=0").await.is(202);
    assert_eq!(taken["removal"], why);
    assert_eq!(wanted(&yard, &name).await, Some(DesiredImage::Cancelled));
}
