use std::time::Duration;

use schema::condition::{Condition, Reason};
use schema::session;
use secrecy::ExposeSecret;
use serde_json::Value;

use super::*;
use crate::routes::house::house;
use crate::routes::test_support::{Fleet, fleet};
use crate::testing::NOW;

const CREATE: &str = "/api/admin/users/create";
const DELETE: &str = "/api/admin/users/delete";
const LIST: &str = "/api/admin/users";

fn names(body: &Value) -> Vec<&str> {
    let users = body["users"].as_array().unwrap();
    users
        .iter()
        .map(|user| user["username"].as_str().unwrap())
        .collect()
}

async fn password_fits(fleet: &Fleet, name: &str, password: &Value) -> bool {
    let hash = fleet.account(name).await.unwrap().password_hash.unwrap();
    let slot = fleet.world.deps.passwords.slot().await.unwrap();
    let password = password.as_str().unwrap().to_owned().into();
    slot.verify(password, Some(hash.expose_secret().to_owned()))
        .await
        .unwrap()
}

async fn session(fleet: &Fleet, uid: &Uid) -> i64 {
    let mut tx = fleet.world.db.begin().await.unwrap();
    let issued_at = session::issue(&mut tx, uid, NOW, "::1", "web")
        .await
        .unwrap();
    tx.commit().await.unwrap();
    issued_at
}

async fn is_live(fleet: &Fleet, name: &str, issued_at: i64) -> bool {
    let mut connection = fleet.world.deps.db.read().await.unwrap();
    let live = session::find_live(&mut connection, &name.parse().unwrap(), issued_at).await;
    live.unwrap().is_some()
}

#[tokio::test]
async fn a_new_user_gets_a_container_and_a_password_told_once() {
    let fleet = fleet().await;
    let body = fleet.post(CREATE, "username=bob&wait=0").await.is(202);
    assert_eq!(body["state"], "pending");
    assert_eq!(body["object"], "container/bob");
    assert_eq!(body["generation"], 1);
    assert_eq!(body["password"].as_str().unwrap().len(), 16);
    assert!(password_fits(&fleet, "bob", &body["password"]).await);
    let bob = fleet.account("bob").await.unwrap();
    let row = fleet.container(&bob.uid).await;
    assert_eq!(row.desired, Desired::Running);
    assert_eq!(row.image_ref, "docker.io/sipeed/picoclaw:latest");
    let listed = fleet.get(LIST).await.is(200);
    assert!(
        !listed
            .to_string()
            .contains(body["password"].as_str().unwrap())
    );
}

#[tokio::test]
async fn the_image_tag_and_the_password_can_be_chosen() {
    let fleet = fleet().await;
    let fields = "username=bob&password=correct+horse&image_tag=v1.2&wait=0";
    let body = fleet.post(CREATE, fields).await.is(202);
    assert_eq!(body["password"], "correct horse");
    let bob = fleet.account("bob").await.unwrap();
    let row = fleet.container(&bob.uid).await;
    assert_eq!(row.image_ref, "docker.io/sipeed/picoclaw:v1.2");
    for (field, fields) in [
        ("password", "username=eve&password=short"),
        ("image_tag", "username=eve&image_tag=a%20b"),
        ("username", "username=e:v"),
        ("username", "password=correct+horse"),
    ] {
        let body = fleet
            .post(CREATE, fields)
            .await
            .fails(400, "invalid_parameter");
        assert_eq!(body["field"], field);
    }
    assert!(fleet.account("eve").await.is_none());
}

#[tokio::test]
async fn the_password_is_told_even_when_the_container_fails() {
    let fleet = fleet().await;
    let fail = async {
        while fleet.account("bob").await.is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let uid = fleet.account("bob").await.unwrap().uid;
        let missing = Condition::not_ready(Reason::ImageMissing, "no such image");
        fleet.saw(Kind::Container, &uid, 1, missing).await;
    };
    let (answer, ()) = tokio::join!(fleet.post(CREATE, "username=bob&wait=20"), fail);
    let body = answer.fails(422, "image_missing");
    assert_eq!(
        (&body["state"], &body["error"]),
        (&json!("failed"), &json!("no such image"))
    );
    assert!(password_fits(&fleet, "bob", &body["password"]).await);
}

#[tokio::test]
async fn l10_a_name_is_taken_in_every_case_and_until_its_bearer_is_purged() {
    let fleet = fleet().await;
    let alice = fleet.user("alice").await;
    fleet
        .post(CREATE, "username=ALICE")
        .await
        .fails(409, "already_exists");
    fleet.post(DELETE, "username=alice&wait=0").await.is(202);
    fleet
        .post(CREATE, "username=alice")
        .await
        .fails(409, "name_being_removed");
    fleet.purge(&alice).await;
    fleet.post(CREATE, "username=alice&wait=0").await.is(202);
    assert_ne!(fleet.account("alice").await.unwrap().uid, alice);
}

#[tokio::test]
async fn without_autostart_a_new_container_stands() {
    let fleet = fleet().await;
    let changes = schema::config::Changes([("container.autostart", Some(json!(false)))].into());
    let deps = &fleet.world.deps;
    let mut tx = fleet.world.db.begin().await.unwrap();
    config_query::save(
        &mut tx,
        &deps.master_key,
        &changes,
        None,
        crate::testing::BY,
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    fleet.post(CREATE, "username=bob&wait=0").await.is(202);
    let bob = fleet.account("bob").await.unwrap();
    assert_eq!(fleet.container(&bob.uid).await.desired, Desired::Stopped);
}

#[tokio::test]
async fn a_user_is_listed_with_its_container() {
    let fleet = fleet().await;
    let uid = fleet.user("alice").await;
    let running = Condition::ready(Reason::Running, "running and ready");
    fleet.saw(Kind::Container, &uid, 1, running).await;
    let body = fleet.get(LIST).await.is(200);
    assert_eq!(
        (&body["auth_mode"], &body["unified_auth"]),
        (&json!("local"), &json!(false))
    );
    assert_eq!(
        (&body["page"], &body["total"], &body["total_pages"]),
        (&json!(1), &json!(1), &json!(1))
    );
    let user = &body["users"][0];
    let condition = &user["conditions"][0];
    assert_eq!(condition["reason"], "Running");
    let expected = json!({
        "username": "alice", "source": "local", "role": "user", "disabled": false,
        "status": "running", "image": "registry:5000/agent:v1", "image_tag": "v1",
        "image_ready": false, "ip": null, "groups": [], "desired": "running",
        "generation": 1, "observed_generation": 1, "conditions": [condition],
        "created_at": NOW.to_rfc3339(), "last_login_at": null,
    });
    assert_eq!(user, &expected);
}

#[tokio::test]
async fn l60_users_come_in_pages_and_the_last_page_stands_for_those_behind_it() {
    let fleet = fleet().await;
    assert_eq!(names(&fleet.get(LIST).await.is(200)), [""; 0]);
    for n in 0..5 {
        fleet.user(&format!("user{n}")).await;
    }
    let page = |query: &'static str| {
        let fleet = &fleet;
        async move { fleet.get(&format!("{LIST}?{query}")).await.is(200) }
    };
    assert_eq!(names(&fleet.get(LIST).await.is(200)).len(), 5);
    assert_eq!(names(&page("page=2&page_size=2").await), ["user2", "user3"]);
    let last = page("page=9&page_size=2").await;
    assert_eq!(names(&last), ["user4"]);
    assert_eq!(
        (&last["page"], &last["total_pages"]),
        (&json!(3), &json!(3))
    );
    let found = page("search=SER3").await;
    assert_eq!((names(&found), &found["total"]), (vec!["user3"], &json!(1)));
}

#[test]
fn a_registry_port_is_no_tag() {
    assert_eq!(tag_of("host:5000/a/b:v1"), "v1");
    assert_eq!(tag_of("host:5000/a/b"), "latest");
    let digest = format!("sha256:{}", "0".repeat(64));
    assert_eq!(tag_of(&format!("a:v1@{digest}")), "v1");
    assert_eq!(tag_of(&format!("a@{digest}")), "");
}

#[tokio::test]
async fn a_batch_is_one_task_with_a_result_for_each_name() {
    let fleet = fleet().await;
    fleet.user("alice").await;
    let body = "usernames=bob%0Aalice,b%2Fd,%20carol";
    let body = fleet
        .post("/api/admin/users/batch-create", body)
        .await
        .is(202);
    let results = body["results"].as_array().unwrap();
    let codes: Vec<_> = results
        .iter()
        .map(|r| (r["username"].as_str().unwrap(), &r["code"]))
        .collect();
    let none = Value::Null;
    let (exists, bad) = (json!("already_exists"), json!("invalid_parameter"));
    assert_eq!(
        codes,
        [
            ("bob", &none),
            ("alice", &exists),
            ("b/d", &bad),
            ("carol", &none)
        ]
    );
    assert!(password_fits(&fleet, "carol", &results[3]["password"]).await);
    assert_eq!(
        (&body["state"], &body["progress"]["pending"]),
        (&json!("pending"), &json!(2))
    );
    let task = body["task_id"].as_str().unwrap();
    let status = fleet
        .get(&format!("/api/admin/task/status?task_id={task}"))
        .await
        .is(200);
    assert_eq!(
        (&status["type"], &status["total"]),
        (&json!("batch_create"), &json!(2))
    );
}

#[tokio::test]
async fn a_batch_can_be_waited_for() {
    let fleet = fleet().await;
    let ready = async {
        for name in ["bob", "carol"] {
            while fleet.account(name).await.is_none() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let uid = fleet.account(name).await.unwrap().uid;
            let running = Condition::ready(Reason::Running, "");
            fleet.saw(Kind::Container, &uid, 1, running).await;
        }
    };
    let create = fleet.post(
        "/api/admin/users/batch-create",
        "usernames=bob,carol&wait=20",
    );
    let (answer, ()) = tokio::join!(create, ready);
    assert_eq!(answer.is(200)["state"], "converged");
}

#[tokio::test]
async fn a_batch_of_nobody_or_of_too_many_is_refused() {
    let fleet = fleet().await;
    let many = (0..501)
        .map(|n| format!("u{n}"))
        .collect::<Vec<_>>()
        .join(",");
    for names in ["", " ,,%0A", &many] {
        let body = format!("usernames={names}");
        let answer = fleet.post("/api/admin/users/batch-create", &body).await;
        answer.fails(400, "invalid_parameter");
    }
    let refused = fleet
        .post("/api/admin/users/batch-create", "usernames=a:b")
        .await
        .is(200);
    assert_eq!(refused["task_id"], Value::Null);
    fleet.get("/api/admin/task/status?task_id=").await.is(200);
}

#[tokio::test]
async fn l6_deleting_waits_until_nothing_is_left() {
    let fleet = fleet().await;
    let uid = fleet.user("alice").await;
    let issued_at = session(&fleet, &uid).await;
    let purge = async {
        while fleet
            .object(Kind::User, &uid)
            .await
            .unwrap()
            .deleted_at
            .is_none()
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        fleet.purge(&uid).await;
    };
    let (answer, ()) = tokio::join!(fleet.post(DELETE, "username=alice&wait=20"), purge);
    let body = answer.is(200);
    assert_eq!(
        (&body["state"], &body["object"]),
        (&json!("converged"), &json!("user/alice"))
    );
    assert!(body["message"].as_str().unwrap().contains("free"));
    assert!(!is_live(&fleet, "alice", issued_at).await);
    fleet
        .post(DELETE, "username=alice")
        .await
        .fails(404, "not_found");
}

#[tokio::test]
async fn l12_deleting_again_waits_for_the_same_removal() {
    let fleet = fleet().await;
    let uid = fleet.user("alice").await;
    let first = fleet.post(DELETE, "username=alice&wait=0").await.is(202);
    let again = fleet.post(DELETE, "username=alice&wait=0").await.is(202);
    assert_eq!(first["generation"], again["generation"]);
    assert!(fleet.container(&uid).await.deleted_at.is_some());
    for path in [
        "/api/admin/container/start",
        "/api/admin/container/stop",
        "/api/admin/users/enable",
        "/api/admin/users/reset-password",
    ] {
        fleet
            .post(path, "username=alice")
            .await
            .fails(409, "name_being_removed");
    }
    assert_eq!(
        fleet.get(LIST).await.is(200)["users"][0]["status"],
        "deleting"
    );
}

#[tokio::test]
async fn a_stale_generation_changes_nothing() {
    let fleet = fleet().await;
    let uid = fleet.user("alice").await;
    for path in [
        DELETE,
        "/api/admin/users/disable",
        "/api/admin/container/stop",
    ] {
        let stale = fleet.post(path, "username=alice&if_generation=7").await;
        assert_eq!(stale.fails(412, "stale_generation")["generation"], 1);
    }
    let row = fleet.container(&uid).await;
    assert_eq!(
        (row.generation, row.deleted_at, row.disabled),
        (Generation(1), None, false)
    );
    fleet
        .post(DELETE, "username=alice&if_generation=1&wait=0")
        .await
        .is(202);
}

#[tokio::test]
async fn l7_a_reset_password_ends_all_sessions() {
    let fleet = fleet().await;
    let uid = fleet.user("alice").await;
    let issued_at = session(&fleet, &uid).await;
    assert!(is_live(&fleet, "alice", issued_at).await);
    let body = fleet
        .post("/api/admin/users/reset-password", "username=alice")
        .await
        .is(200);
    assert!(password_fits(&fleet, "alice", &body["password"]).await);
    assert!(!is_live(&fleet, "alice", issued_at).await);
}

#[tokio::test]
async fn l7_a_disabled_user_has_no_session_and_no_container() {
    let fleet = fleet().await;
    let uid = fleet.user("alice").await;
    let issued_at = session(&fleet, &uid).await;
    let body = fleet
        .post("/api/admin/users/disable", "username=alice&wait=0")
        .await
        .is(202);
    assert_eq!(
        (&body["object"], &body["generation"]),
        (&json!("container/alice"), &json!(2))
    );
    assert!(!is_live(&fleet, "alice", issued_at).await);
    assert!(!fleet.container(&uid).await.desired_running());
    assert_eq!(
        fleet.get(LIST).await.is(200)["users"][0]["status"],
        "stopping"
    );
    for path in ["start", "restart", "debug"] {
        let path = format!("/api/admin/container/{path}");
        fleet
            .post(&path, "username=alice")
            .await
            .fails(409, "account_disabled");
    }
    fleet
        .post("/api/admin/users/enable", "username=alice&wait=0")
        .await
        .is(202);
    assert!(fleet.container(&uid).await.desired_running());
}

#[tokio::test]
async fn l7_revoked_sessions_end() {
    let fleet = fleet().await;
    let uid = fleet.user("alice").await;
    let issued_at = session(&fleet, &uid).await;
    let path = "/api/admin/users/sessions/revoke";
    let body = fleet.post(path, "username=alice").await.is(200);
    assert_eq!(body["ended"], 1);
    assert!(!is_live(&fleet, "alice", issued_at).await);
    fleet
        .post(path, "username=nobody")
        .await
        .fails(404, "not_found");
}

#[tokio::test]
async fn live_sessions_of_an_account_are_listed_newest_first() {
    let house = house().await;
    let root = house.sign_in("root").await;
    for _ in 0..2 {
        house.sign_in("alice").await;
    }
    let get = async |query: &str| {
        let path = format!("/api/admin/users/sessions?{query}");
        house.get(&path).with("root", &root).send().await
    };
    let list = get("username=Alice").await.body;
    let newest = json!({
        "issued_at": 1_778_500_001, "created_at": "2026-05-11T11:46:41Z",
        "expires_at": "2026-05-12T11:46:41Z", "address": "", "client": "web", "current": false,
    });
    assert_eq!((&list["total"], &list["sessions"][0]), (&json!(2), &newest));
    assert_eq!(get("username=alice&search=desktop").await.body["total"], 0);
    let own = get("username=root").await.body;
    assert_eq!(own["sessions"][0]["current"], true);
    house
        .post("/api/admin/users/sessions/revoke", &[("username", "alice")])
        .with("root", &root)
        .send()
        .await;
    assert_eq!(get("username=alice").await.body["sessions"], json!([]));
    assert_eq!(get("username=nobody").await.verdict(), (404, "not_found"));
}

#[tokio::test]
async fn a_superadmin_is_not_an_ordinary_user() {
    let fleet = fleet().await;
    let mut tx = fleet.world.db.begin().await.unwrap();
    let hash = "x".to_owned().into();
    user::create_superadmin(&mut tx, &"root".parse().unwrap(), &hash, NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    for path in [
        DELETE,
        "/api/admin/users/disable",
        "/api/admin/users/reset-password",
    ] {
        fleet
            .post(path, "username=root")
            .await
            .fails(404, "not_found");
    }
    fleet
        .post(CREATE, "username=Root")
        .await
        .fails(409, "already_exists");
}

#[tokio::test]
async fn an_empty_password_is_none_so_a_random_one_is_made() {
    let fleet = fleet().await;
    fleet.user("alice").await;
    let path = "/api/admin/users/reset-password";
    let body = fleet.post(path, "username=alice&password=").await.is(200);
    assert!(body["password"].as_str().unwrap().len() >= 8);
    let given = "username=alice&password=correct+horse";
    let body = fleet.post(path, given).await.is(200);
    assert_eq!(body.get("password"), None);
}
