//! Superadmins, against a real database.

use serde_json::json;

use super::*;
use crate::routes::house::{Answer, House, PASSWORD, from_socket, house};

const CREATE: &str = "/api/admin/superadmins/create";
const DELETE: &str = "/api/admin/superadmins/delete";
const RESET: &str = "/api/admin/superadmins/reset";

async fn post(house: &House, cookie: &str, path: &str, username: &str) -> Answer {
    let ask = house.post(path, &[("username", username)]);
    ask.with("root", cookie).send().await
}

#[tokio::test]
async fn a_created_superadmin_signs_in_with_the_password_told_once() {
    let house = house().await;
    let root = house.sign_in("root").await;
    let created = post(&house, &root, CREATE, "Carol").await;
    assert_eq!(created.body["username"], "Carol");
    let password = created.body["password"].as_str().unwrap().to_owned();
    assert_eq!(password.len(), 16);
    let answer = house.login("carol", &password).send().await;
    assert_eq!(answer.body["role"], "superadmin");
    let list = house
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
    let found = house
        .get("/api/admin/superadmins?search=CAR")
        .with("root", &root)
        .send()
        .await;
    assert_eq!(found.body["admins"], json!(["Carol"]));
}

#[tokio::test]
async fn l10_names_are_unique_across_superadmins_and_users_without_case() {
    let house = house().await;
    let root = house.sign_in("root").await;
    for name in ["root", "ROOT", "alice", "Alice"] {
        let answer = post(&house, &root, CREATE, name).await;
        assert_eq!(answer.verdict(), (409, "already_exists"), "{name}");
        assert!(answer.body.get("password").is_none());
    }
    for name in ["", "a:b", ".a", &"a".repeat(65)] {
        let answer = post(&house, &root, CREATE, name).await;
        assert_eq!(answer.verdict(), (400, "invalid_parameter"), "{name}");
    }
    let uid = house.find("bob").await.unwrap().uid;
    let mut tx = house.tx().await;
    user::delete(&mut tx, &uid, crate::testing::NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let answer = post(&house, &root, CREATE, "bob").await;
    assert_eq!(answer.verdict(), (409, "name_being_removed"));
}

#[tokio::test]
async fn l7_a_deleted_superadmin_is_signed_out_at_once() {
    let house = house().await;
    house.create_superadmin("carol").await;
    let (root, carol) = (house.sign_in("root").await, house.sign_in("carol").await);
    let answer = post(&house, &root, DELETE, "carol").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(!house.lives(&carol).await && house.lives(&root).await);
    assert!(house.find("carol").await.is_none());
    house.create_superadmin("carol").await;
    assert!(
        !house.lives(&carol).await,
        "cookies of the former bearer stay dead"
    );
    assert_eq!(
        post(&house, &root, DELETE, "nobody").await.verdict(),
        (404, "not_found")
    );
    assert_eq!(
        post(&house, &root, DELETE, "alice").await.verdict(),
        (404, "not_found")
    );
    assert!(house.find("alice").await.is_some());
}

#[tokio::test]
async fn the_last_superadmin_stays_and_nobody_deletes_themselves() {
    let house = house().await;
    let root = house.sign_in("root").await;
    assert_eq!(
        post(&house, &root, DELETE, "root").await.verdict(),
        (409, "last_superadmin")
    );
    house.create_superadmin("carol").await;
    for own in ["root", "ROOT"] {
        let answer = post(&house, &root, DELETE, own).await;
        assert_eq!(answer.verdict(), (400, "invalid_parameter"), "{own}");
    }
    assert!(house.find("root").await.is_some() && house.lives(&root).await);
}

#[tokio::test]
async fn l9_two_superadmins_deleting_each_other_leave_one() {
    for _ in 0..5 {
        let house = house().await;
        house.create_superadmin("carol").await;
        let (root, carol) = (house.sign_in("root").await, house.sign_in("carol").await);
        let (a, b) = tokio::join!(
            house
                .post(DELETE, &[("username", "carol")])
                .with("root", &root)
                .send(),
            house
                .post(DELETE, &[("username", "root")])
                .with("carol", &carol)
                .send(),
        );
        let mut verdicts = [a.status.as_u16(), b.status.as_u16()];
        verdicts.sort_unstable();
        // The second is refused for being last, or has no session any more.
        assert!(matches!(verdicts, [200, 401 | 409]), "{verdicts:?}");
        let left = user::superadmin_count(&mut house.world.deps.db.read().await.unwrap()).await;
        assert_eq!(left.unwrap(), 1);
    }
}

#[tokio::test]
async fn l7_a_reset_ends_all_sessions_but_the_one_that_asks() {
    let house = house().await;
    house.create_superadmin("carol").await;
    let (root, carol) = (house.sign_in("root").await, house.sign_in("carol").await);
    let other = house.sign_in("root").await;
    let answer = post(&house, &root, RESET, "Carol").await;
    let password = answer.body["password"].as_str().unwrap().to_owned();
    assert!(!house.lives(&carol).await);
    assert_eq!(house.login("carol", PASSWORD).send().await.status, 401);
    assert_eq!(house.login("carol", &password).send().await.status, 200);
    assert_eq!(post(&house, &root, RESET, "root").await.status, 200);
    assert!(house.lives(&root).await && !house.lives(&other).await);
    assert_eq!(
        post(&house, &root, RESET, "alice").await.verdict(),
        (404, "not_found")
    );
    house.sign_in("alice").await;
}

#[tokio::test]
async fn a_given_password_is_checked_and_not_repeated() {
    let house = house().await;
    let cookie = house.sign_in("root").await;
    let reset = async |password: &str| {
        let form = [("username", "root"), ("password", password)];
        house.post(RESET, &form).context(from_socket()).send().await
    };
    let short = reset("short").await;
    assert_eq!(short.verdict(), (400, "invalid_parameter"));
    assert!(house.lives(&cookie).await);
    let answer = reset("battery staple").await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.get("password").is_none() && !answer.text.contains("staple"));
    assert!(
        !house.lives(&cookie).await,
        "through the socket no session asks"
    );
    assert_eq!(
        house.login("root", "battery staple").send().await.status,
        200
    );
}
