use schema::condition::Condition;
use schema::container::{self, ContainerFacts};
use schema::home::Measured;
use schema::ids::Uid;
use schema::usage::{self, Attempt};
use serde_json::Value;

use super::*;
use crate::routes::test_support::{Yard, yard};
use crate::testing::NOW;

const LIST: &str = "/api/admin/users";

fn names(body: &Value) -> String {
    let users = body["users"].as_array().unwrap().iter();
    let names: Vec<_> = users
        .map(|user| user["username"].as_str().unwrap())
        .collect();
    names.join(" ")
}

async fn all_ready(yard: &Yard, uid: &Uid) {
    let running = Condition::ready(Reason::Running, "");
    yard.saw(Kind::Container, uid, 1, running).await;
    for kind in [Kind::User, Kind::AgentConfig, Kind::SkillSet] {
        yard.saw(kind, uid, 1, Condition::ready(Reason::Converged, ""))
            .await;
    }
}

/// Users of every kind, of whom `dave` is in the group `core`, which is in `staff`.
async fn several() -> Yard {
    let yard = yard().await;
    for name in ["alice", "bob", "carol", "dave", "Eve"] {
        let uid = yard.user(name).await;
        all_ready(&yard, &uid).await;
    }
    let [alice, bob] = ["alice", "bob"].map(|name| Uid::from(name.to_owned()));
    let failed = Condition::not_ready(Reason::ImageMissing, "no such image");
    yard.saw(Kind::Container, &bob, 1, failed).await;
    let broken = Condition::not_ready(Reason::InvalidUserConfig, "no JSON");
    yard.saw(Kind::AgentConfig, &Uid::from("carol".to_owned()), 1, broken)
        .await;
    yard.post("/api/admin/users/disable", "username=Eve&wait=0")
        .await
        .is(202);
    for form in ["name=staff", "name=core&parent_id=staff"] {
        yard.post("/api/admin/groups/create", form).await.is(200);
    }
    let form = "group_name=core&usernames=dave";
    yard.post("/api/admin/groups/members/add", form)
        .await
        .is(200);
    let mut tx = yard.world.db.begin().await.unwrap();
    let facts = ContainerFacts {
        engine_id: Some("e".to_owned()),
        image_ref: Some("registry:5000/agent:v0".to_owned()),
        image_id: Some(format!("sha256:{}", "ab".repeat(32))),
        ..ContainerFacts::default()
    };
    container::save_facts(&mut tx, &alice, &facts)
        .await
        .unwrap();
    let measured = |bytes| Measured {
        bytes,
        ..Measured::default()
    };
    let attempts = [(&alice, 10), (&bob, 2000)].map(|(uid, bytes)| Attempt {
        uid: uid.clone(),
        changes: 0,
        outcome: Ok(measured(bytes)),
    });
    usage::save(&mut tx, &attempts, NOW).await.unwrap();
    user::set_last_login(&mut tx, &bob, NOW, None)
        .await
        .unwrap();
    let dave = Uid::from("dave".to_owned());
    container::set_desired(&mut tx, &dave, Desired::Stopped, false, None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let stopped = Condition::ready(Reason::Stopped, "");
    yard.saw(Kind::Container, &dave, 2, stopped).await;
    yard
}

#[tokio::test]
async fn image_filter_finds_all_spellings_of_a_reference() {
    let yard = yard().await;
    yard.user_of("alice", "busybox").await;
    yard.user_of("bob", "sipeed/picoclaw:v1").await;
    yard.user_of("carol", "docker.io/library/busybox:latest")
        .await;
    yard.user_of("dave", "library/busybox:v2").await;
    yard.user_of("erin", "").await;
    for (image, expected) in [
        ("library/busybox", "alice carol"),
        ("docker.io/sipeed/picoclaw:v1", "bob"),
        ("busybox:v2", "dave"),
        ("quay.io/busybox:v2", ""),
    ] {
        let body = yard.get(&format!("{LIST}?image={image}")).await.is(200);
        assert_eq!(names(&body), expected, "{image}");
    }
}

#[tokio::test]
async fn filters_and_orders_act_on_all_users() {
    let yard = several().await;
    let first = yard.get(LIST).await.is(200);
    assert_eq!(
        first["users"][0]["observed_image"],
        "registry:5000/agent:v0"
    );
    assert_eq!(first["users"][1]["observed_image"], Value::Null);
    for (query, expected) in [
        ("", "alice bob carol dave Eve"),
        ("name=A", "alice carol dave"),
        ("search=a&name=E", "alice dave"),
        ("ready=true", "alice dave"),
        ("ready=false", "bob carol Eve"),
        ("not_ready", "bob carol Eve"),
        ("status=running", "alice carol"),
        ("status=failed", "bob"),
        ("status=stopped", "dave"),
        ("status=stopping", "Eve"),
        ("status=unknown", ""),
        ("reason=ImageMissing", "bob"),
        ("reason=InvalidUserConfig&status=running", "carol"),
        ("reason=PausedByOperator", ""),
        ("group=STAFF", "dave"),
        ("group=core&ready=false", ""),
        ("image=registry:5000/agent:v1", "alice bob carol dave Eve"),
        ("image=v1", ""),
        ("source=local&disabled=true", "Eve"),
        ("source=ldap", ""),
        ("disabled=false&sort=-name", "dave carol bob alice"),
        ("sort=status", "bob alice carol dave Eve"),
        ("sort=-status", "Eve dave alice carol bob"),
        ("sort=used", "carol dave Eve alice bob"),
        ("sort=-used", "bob alice carol dave Eve"),
        ("sort=-last_login_at", "bob alice carol dave Eve"),
        ("sort=created_at", "alice bob carol dave Eve"),
        ("sort=-used&page=2&page_size=1", "alice"),
        ("sort=image&page=9&page_size=2", "Eve"),
    ] {
        let body = yard.get(&format!("{LIST}?{query}")).await.is(200);
        assert_eq!(names(&body), expected, "{query}");
        assert_eq!(body["not_ready"], 3, "{query}");
        if !query.contains("page") {
            assert_eq!(
                body["total"],
                body["users"].as_array().unwrap().len(),
                "{query}"
            );
        }
    }
    for query in [
        "sort=size",
        "sort=--name",
        "status=gone",
        "reason=x",
        "ready=2",
        "not_ready&ready=true",
        "image=A%20b",
    ] {
        let answer = yard.get(&format!("{LIST}?{query}")).await;
        answer.fails(400, "invalid_parameter");
    }
    yard.get(&format!("{LIST}?group=nobody"))
        .await
        .fails(404, "not_found");
}

#[tokio::test]
async fn a_paused_reconciler_is_found_by_its_reason_and_word() {
    let yard = several().await;
    yard.post("/api/admin/reconcile/pause", "reconciler=container")
        .await
        .is(200);
    for (query, expected) in [
        (
            "reason=PausedByOperator&source=local",
            "alice bob carol dave Eve",
        ),
        ("status=unknown", "alice carol dave Eve"),
        ("status=running", ""),
        ("status=failed", "bob"),
        ("ready=true", ""),
    ] {
        let body = yard.get(&format!("{LIST}?{query}")).await.is(200);
        assert_eq!(names(&body), expected, "{query}");
    }
}

/// The database and [`status_word`] say the same, whatever was observed.
#[tokio::test]
async fn word_of_the_database_is_that_of_the_listing() {
    let yard = yard().await;
    let paused = |status| {
        Condition::new(
            schema::condition::ConditionType::Paused,
            status,
            Reason::PausedByOperator,
            "",
        )
    };
    let (yes, no) = (
        schema::condition::ConditionStatus::True,
        schema::condition::ConditionStatus::False,
    );
    let ready = [
        None,
        Some(Condition::ready(Reason::Running, "")),
        Some(Condition::not_ready(
            Reason::ImageMissing,
            "\"type\":\"Paused\",\"status\":\"True\"",
        )),
        Some(Condition::not_ready(Reason::Progressing, "")),
        Some(Condition::unknown(Reason::Retrying, "")),
    ];
    let mut number = 0;
    for desired in [Desired::Running, Desired::Stopped] {
        for behind in [0, 1] {
            for more in [None, Some(yes), Some(no)] {
                for ready in &ready {
                    number += 1;
                    let uid = yard.user(&format!("u{number}")).await;
                    let mut tx = yard.world.db.begin().await.unwrap();
                    let generation = container::set_desired(&mut tx, &uid, desired, false, None);
                    let Generation(generation) = generation.await.unwrap();
                    tx.commit().await.unwrap();
                    let conditions = ready.iter().cloned().chain(more.map(paused));
                    yard.saw_all(
                        Kind::Container,
                        &uid,
                        generation - behind,
                        conditions.collect(),
                    )
                    .await;
                }
            }
        }
    }
    let all = yard.get(LIST).await.is(200)["users"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(all.len(), number);
    for word in StatusWord::VARIANTS {
        let expected: Vec<_> = all
            .iter()
            .filter(|user| user["status"] == word.to_string())
            .map(|user| user["username"].as_str().unwrap())
            .collect();
        let found = yard.get(&format!("{LIST}?status={word}")).await.is(200);
        assert_eq!(names(&found), expected.join(" "), "{word}");
    }
}

#[test]
fn a_registry_port_is_no_tag() {
    assert_eq!(tag_of("host:5000/a/b:v1"), "v1");
    assert_eq!(tag_of("host:5000/a/b"), "latest");
    let digest = format!("sha256:{}", "0".repeat(64));
    assert_eq!(tag_of(&format!("a:v1@{digest}")), "v1");
    assert_eq!(tag_of(&format!("a@{digest}")), "");
}
