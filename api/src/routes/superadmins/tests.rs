//! Superadmins, against a real database.

use serde_json::json;

use super::*;
use crate::routes::yard::{Answer, PASSWORD, Yard, from_socket, yard};
use crate::settings::{AuthMode, WebSettings};

const CREATE: &str = "/api/admin/superadmins/create";
const DELETE: &str = "/api/admin/superadmins/delete";
const RESET: &str = "/api/admin/superadmins/reset";

async fn post(yard: &Yard, cookie: &str, path: &str, username: &str) -> Answer {
    let ask = yard.post(path, &[("username", username)]);
    ask.with("root", cookie).send().await
}

#[tokio::test]
async fn a_created_superadmin_signs_in_with_the_password_told_once() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    let created = post(&yard, &root, CREATE, "Carol").await;
    assert_eq!(created.body["username"], "Carol");
    let password = created.body["password"].as_str().unwrap().to_owned();
    assert_eq!(password.len(), 16);
    let answer = yard.login("carol", &password).send().await;
    assert_eq!(answer.body["role"], "superadmin");
    let list = yard
        .get("/api/admin/superadmins")
        .with("root", &root)
        .send()
        .await;
    assert_eq!(list.body["admins"], json!(["Carol", "root"]));
    assert_eq!(
        list.body["items"][0],
        json!({"username": "Carol", "created_at": "2026-05-11T11:46:40Z", "last_login_at": "2026-05-11T11:46:40Z"})
    );
    assert_eq!(list.body["total"], 2);
    assert!(!list.text.contains(&password) && !list.text.contains("argon2"));
    let found = yard
        .get("/api/admin/superadmins?search=CAR")
        .with("root", &root)
        .send()
        .await;
    assert_eq!(found.body["admins"], json!(["Carol"]));
}

#[tokio::test]
async fn l10_names_are_unique_across_superadmins_and_users_without_case() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    for name in ["root", "ROOT", "alice", "Alice"] {
        let answer = post(&yard, &root, CREATE, name).await;
        assert_eq!(answer.verdict(), (409, "already_exists"), "{name}");
        assert!(answer.body.get("password").is_none());
    }
    for name in ["", "a:b", ".a", &"a".repeat(65)] {
        let answer = post(&yard, &root, CREATE, name).await;
        assert_eq!(answer.verdict(), (400, "invalid_parameter"), "{name}");
    }
    let uid = yard.find("bob").await.unwrap().uid;
    let mut tx = yard.tx().await;
    user::delete(&mut tx, &uid, crate::testing::NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let answer = post(&yard, &root, CREATE, "bob").await;
    assert_eq!(answer.verdict(), (409, "name_being_removed"));
}

#[tokio::test]
async fn l7_a_deleted_superadmin_is_signed_out_at_once() {
    let yard = yard().await;
    yard.create_superadmin("carol").await;
    let (root, carol) = (yard.sign_in("root").await, yard.sign_in("carol").await);
    let answer = post(&yard, &root, DELETE, "carol").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(!yard.lives(&carol).await && yard.lives(&root).await);
    assert!(yard.find("carol").await.is_none());
    yard.create_superadmin("carol").await;
    assert!(
        !yard.lives(&carol).await,
        "cookies of the former bearer stay dead"
    );
    assert_eq!(
        post(&yard, &root, DELETE, "nobody").await.verdict(),
        (404, "not_found")
    );
    assert_eq!(
        post(&yard, &root, DELETE, "alice").await.verdict(),
        (404, "not_found")
    );
    assert!(yard.find("alice").await.is_some());
}

#[tokio::test]
async fn the_last_superadmin_stays_and_nobody_deletes_themselves() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    assert_eq!(
        post(&yard, &root, DELETE, "root").await.verdict(),
        (409, "last_superadmin")
    );
    yard.create_superadmin("carol").await;
    for own in ["root", "ROOT"] {
        let answer = post(&yard, &root, DELETE, own).await;
        assert_eq!(answer.verdict(), (400, "invalid_parameter"), "{own}");
    }
    assert!(yard.find("root").await.is_some() && yard.lives(&root).await);
}

#[tokio::test]
async fn l9_two_superadmins_deleting_each_other_leave_one() {
    for _ in 0..5 {
        let yard = yard().await;
        yard.create_superadmin("carol").await;
        let (root, carol) = (yard.sign_in("root").await, yard.sign_in("carol").await);
        let (a, b) = tokio::join!(
            yard.post(DELETE, &[("username", "carol")])
                .with("root", &root)
                .send(),
            yard.post(DELETE, &[("username", "root")])
                .with("carol", &carol)
                .send(),
        );
        let mut verdicts = [a.status.as_u16(), b.status.as_u16()];
        verdicts.sort_unstable();
        // The second is refused for being last, or has no session any more.
        assert!(matches!(verdicts, [200, 401 | 409]), "{verdicts:?}");
        let left = user::superadmin_count(&mut yard.world.deps.db.read().await.unwrap()).await;
        assert_eq!(left.unwrap(), 1);
    }
}

#[tokio::test]
async fn l7_a_reset_ends_all_sessions_but_the_one_that_asks() {
    let yard = yard().await;
    yard.create_superadmin("carol").await;
    let (root, carol) = (yard.sign_in("root").await, yard.sign_in("carol").await);
    let other = yard.sign_in("root").await;
    let answer = post(&yard, &root, RESET, "Carol").await;
    let password = answer.body["password"].as_str().unwrap().to_owned();
    assert!(!yard.lives(&carol).await);
    assert_eq!(yard.login("carol", PASSWORD).send().await.status, 401);
    assert_eq!(yard.login("carol", &password).send().await.status, 200);
    assert_eq!(post(&yard, &root, RESET, "root").await.status, 200);
    assert!(yard.lives(&root).await && !yard.lives(&other).await);
    assert_eq!(
        post(&yard, &root, RESET, "alice").await.verdict(),
        (404, "not_found")
    );
    yard.sign_in("alice").await;
}

#[tokio::test]
async fn own_password_is_changed_in_every_mode() {
    const PATH: &str = "/api/admin/superadmins/password";
    let yard = yard().await;
    for (mode, old, new) in [
        (AuthMode::Ldap, PASSWORD, "battery staple"),
        (AuthMode::Local, "battery staple", "horse correct"),
    ] {
        let settings = WebSettings {
            auth_mode: mode,
            ..WebSettings::default()
        };
        yard.world.settings.send_replace(settings.into());
        let session = async || yard.login("root", old).send().await.cookie();
        let (root, other) = (session().await, session().await);
        let change = async |old: &str| {
            let form = [("old_password", old), ("new_password", new)];
            yard.post(PATH, &form).with("root", &root).send().await
        };
        assert_eq!(change("wrong").await.verdict(), (401, "wrong_password"));
        assert_eq!(change(old).await.status, 200);
        assert!(yard.lives(&root).await && !yard.lives(&other).await);
        assert_eq!(yard.login("root", old).send().await.status, 401);
    }
    let form = [
        ("old_password", "horse correct"),
        ("new_password", PASSWORD),
    ];
    let socket = yard.post(PATH, &form).context(from_socket()).send().await;
    assert_eq!(socket.verdict(), (400, "invalid_parameter"));
}

#[tokio::test]
async fn a_given_password_is_checked_and_not_repeated() {
    let yard = yard().await;
    let cookie = yard.sign_in("root").await;
    let reset = async |password: &str| {
        let form = [("username", "root"), ("password", password)];
        yard.post(RESET, &form).context(from_socket()).send().await
    };
    let short = reset("short").await;
    assert_eq!(short.verdict(), (400, "invalid_parameter"));
    assert!(yard.lives(&cookie).await);
    let answer = reset("battery staple").await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.get("password").is_none() && !answer.text.contains("staple"));
    assert!(
        !yard.lives(&cookie).await,
        "through the socket no session asks"
    );
    assert_eq!(
        yard.login("root", "battery staple").send().await.status,
        200
    );
}
