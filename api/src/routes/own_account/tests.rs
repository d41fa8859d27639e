//! The own account, against a real database.

use std::time::Duration;

use schema::condition::{Condition, Reason};
use schema::container::ContainerFacts;
use schema::ids::{Epoch, Generation, Uid};
use schema::object::StatusRow;
use serde_json::json;

use super::*;
use crate::routes::yard::{PASSWORD, Yard, yard};

#[tokio::test]
async fn info_tells_the_session_that_asks() {
    let yard = yard().await;
    let (alice, root) = (yard.sign_in("alice").await, yard.sign_in("root").await);
    let answer = yard
        .get("/api/user/info")
        .with("alice", &alice)
        .send()
        .await;
    assert_eq!(
        answer.body,
        json!({"success": true, "message": "current session", "username": "alice", "role": "user",
               "auth_mode": "local", "unified_auth": false, "initializing": true})
    );
    let answer = yard.get("/api/user/info").with("root", &root).send().await;
    assert_eq!(answer.body["role"], "superadmin");
    assert_eq!(answer.body["initializing"], false);
}

async fn save(yard: &Yard, kind: Kind, uid: &Uid, condition: Condition) {
    let status = StatusRow {
        observed_generation: Generation(1),
        conditions: vec![condition],
        ..StatusRow::default()
    };
    let mut tx = yard.tx().await;
    assert!(
        object::save_status(&mut tx, kind, uid, &status, Epoch(1))
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn l59_init_status_tells_only_what_was_observed() {
    let yard = yard().await;
    let cookie = yard.sign_in("alice").await;
    let uid = yard.find("alice").await.unwrap().uid;
    let status = async || {
        yard.get("/api/user/init-status")
            .with("alice", &cookie)
            .send()
            .await
            .body
    };
    let fresh = status().await;
    assert_eq!(
        fresh,
        json!({"success": true, "message": "state of your container", "ready": false, "status": "starting",
               "image_ready": false, "has_config": false, "conditions": [], "plan": null})
    );
    save(
        &yard,
        Kind::AgentConfig,
        &uid,
        Condition::ready(Reason::Converged, ""),
    )
    .await;
    let pulling = Condition::not_ready(Reason::ImagePulling, "pulling echo:1");
    save(&yard, Kind::Container, &uid, pulling).await;
    let pulling = status().await;
    assert_eq!(
        (&pulling["has_config"], &pulling["image_ready"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(pulling["conditions"][0]["reason"], "ImagePulling");
    let facts = ContainerFacts {
        image_ref: Some("echo:1".to_owned()),
        image_id: Some("sha256:1".to_owned()),
        ..ContainerFacts::default()
    };
    let mut tx = yard.tx().await;
    container::save_facts(&mut tx, &uid, &facts).await.unwrap();
    tx.commit().await.unwrap();
    save(
        &yard,
        Kind::Container,
        &uid,
        Condition::ready(Reason::Running, ""),
    )
    .await;
    let ready = status().await;
    assert_eq!(
        (&ready["ready"], &ready["status"]),
        (&json!(true), &json!("running"))
    );
    assert_eq!(ready["image_ready"], true);

    // An operator pauses both: nobody observes them, but nothing begins again.
    let unknown = |kind| Condition::unknown(Reason::PausedByOperator, kind);
    let mut tx = yard.tx().await;
    for kind in [Kind::Container, Kind::AgentConfig] {
        object::set_paused(&mut tx, kind, &uid, true, None)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
    save(&yard, Kind::Container, &uid, unknown("was Running")).await;
    save(&yard, Kind::AgentConfig, &uid, unknown("was Converged")).await;
    let paused = status().await;
    assert_eq!(
        (&paused["ready"], &paused["has_config"]),
        (&json!(true), &json!(true))
    );
    let info = yard
        .get("/api/user/info")
        .with("alice", &cookie)
        .send()
        .await;
    assert_eq!(info.body["initializing"], false);
}

fn change<'a>(
    yard: &'a Yard,
    cookie: &'a str,
    old: &str,
    new: &str,
) -> crate::routes::yard::Ask<'a> {
    let form = [("old_password", old), ("new_password", new)];
    yard.post("/api/user/password", &form).with("alice", cookie)
}

#[tokio::test]
async fn l7_changing_the_password_ends_all_other_sessions() {
    let yard = yard().await;
    let (this, other) = (yard.sign_in("alice").await, yard.sign_in("alice").await);
    let bob = yard.sign_in("bob").await;
    let answer = change(&yard, &this, PASSWORD, "battery staple")
        .send()
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.body["sessions_ended"], 1);
    assert!(yard.lives(&this).await && !yard.lives(&other).await && yard.lives(&bob).await);
    let old = yard.login("alice", PASSWORD).send().await;
    assert_eq!(old.verdict(), (401, "bad_credentials"));
    let new = yard.login("alice", "battery staple").send().await;
    assert_eq!(new.status, 200);
}

#[tokio::test]
async fn a_wrong_old_password_changes_nothing_and_counts_as_attempt() {
    let yard = yard().await;
    let cookie = yard.sign_in("alice").await;
    for _ in 0..9 {
        let answer = change(&yard, &cookie, "wrong password", "battery staple")
            .send()
            .await;
        assert_eq!(answer.verdict(), (401, "wrong_password"));
    }
    let answer = change(&yard, &cookie, PASSWORD, "battery staple")
        .send()
        .await;
    assert_eq!(answer.verdict(), (429, "too_many_attempts"));
    yard.world.clock.advance(Duration::from_secs(300));
    yard.sign_in("alice").await;
    assert!(yard.lives(&cookie).await);
}

#[tokio::test]
async fn a_new_password_must_keep_the_rules() {
    let yard = yard().await;
    let cookie = yard.sign_in("alice").await;
    for new in ["", "short12", &"x".repeat(1025)] {
        let answer = change(&yard, &cookie, PASSWORD, new).send().await;
        assert_eq!(
            answer.verdict(),
            (400, "invalid_parameter"),
            "{}",
            new.len()
        );
        assert_eq!(answer.body["field"], "new_password");
    }
    let absent = yard.post("/api/user/password", &[("old_password", PASSWORD)]);
    let absent = absent.with("alice", &cookie).send().await;
    assert_eq!(absent.verdict(), (400, "invalid_parameter"));
    yard.sign_in("alice").await;
}

#[tokio::test]
async fn a_password_reset_while_the_old_one_was_verified_wins() {
    let yard = yard().await;
    let verified = yard.find("alice").await.unwrap();
    let old = verified.password_hash.unwrap();
    let mut tx = yard.tx().await;
    user::set_password(&mut tx, &verified.uid, &"reset".into(), None)
        .await
        .unwrap();
    let replaced = user::replace_password(&mut tx, &verified.uid, &old, &"own".into(), 0).await;
    assert_eq!(replaced.unwrap(), None);
    tx.commit().await.unwrap();
    let hash = yard.find("alice").await.unwrap().password_hash.unwrap();
    assert_eq!(secrecy::ExposeSecret::expose_secret(&hash), "reset");
}

#[tokio::test]
async fn own_sessions_are_listed_and_ended_one_by_one_or_all_others() {
    let yard = yard().await;
    let mut cookies = Vec::new();
    for _ in 0..4 {
        cookies.push(yard.sign_in("alice").await);
    }
    let bob = yard.sign_in("bob").await;
    let this = &cookies[1];
    let list = yard
        .get("/api/user/sessions")
        .with("alice", this)
        .send()
        .await
        .body;
    assert_eq!((&list["total"], &list["page"]), (&json!(4), &json!(1)));
    assert_eq!(
        list["sessions"][2],
        json!({"issued_at": 1_778_500_001, "created_at": "2026-05-11T11:46:41Z", "expires_at": "2026-05-12T11:46:41Z",
               "address": "", "client": "web", "current": true})
    );
    assert_eq!(list["sessions"][0]["current"], false);
    let page = yard
        .get("/api/user/sessions?page=2&page_size=3")
        .with("alice", this)
        .send()
        .await
        .body;
    assert_eq!(
        (
            page["sessions"].as_array().unwrap().len(),
            &page["total_pages"]
        ),
        (1, &json!(2))
    );

    let revoke = async |form: &[(&str, &str)]| {
        let ask = yard
            .post("/api/user/sessions/revoke", form)
            .with("alice", this);
        ask.send().await
    };
    let one = revoke(&[("issued_at", "1778500000")]).await;
    assert_eq!(
        (one.status.as_u16(), &one.body["revoked"]),
        (200, &json!(1))
    );
    assert!(!yard.lives(&cookies[0]).await && yard.lives(&cookies[2]).await);
    assert_eq!(
        revoke(&[("issued_at", "1778500000")]).await.body["revoked"],
        0
    );
    assert_eq!(
        revoke(&[("issued_at", "x")]).await.verdict(),
        (400, "invalid_parameter")
    );
    let others = revoke(&[]).await;
    assert_eq!(others.body["revoked"], 2);
    assert!(yard.lives(this).await && yard.lives(&bob).await);
    assert!(!yard.lives(&cookies[2]).await && !yard.lives(&cookies[3]).await);
    let own = revoke(&[("issued_at", "1778500001")]).await;
    assert!(
        own.headers[SET_COOKIE]
            .to_str()
            .unwrap()
            .contains("Max-Age=0")
    );
    assert!(!yard.lives(this).await);
}

#[tokio::test]
async fn the_own_container_is_for_ordinary_users() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    for path in ["/api/user/init-status", "/api/user/sessions"] {
        let answer = yard.get(path).with("root", &root).send().await;
        assert_eq!(answer.verdict(), (403, "wrong_role"), "{path}");
    }
}
