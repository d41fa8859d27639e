use std::time::Duration;

use schema::condition::{Condition, Reason};
use schema::container::Desired;
use schema::home::Measured;
use schema::session;
use schema::usage::{self, Attempt};
use secrecy::ExposeSecret;
use serde_json::Value;

use schema::ids::Uid;

use super::*;
use crate::routes::test_support::{Yard, yard};
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

async fn password_fits(yard: &Yard, name: &str, password: &Value) -> bool {
    let hash = yard.account(name).await.unwrap().password_hash.unwrap();
    let slot = yard.world.deps.passwords.slot().await.unwrap();
    let password = password.as_str().unwrap().to_owned().into();
    slot.verify(password, Some(hash.expose_secret().to_owned()))
        .await
        .unwrap()
}

async fn session(yard: &Yard, uid: &Uid) -> i64 {
    let mut tx = yard.world.db.begin().await.unwrap();
    let issued_at = session::issue(&mut tx, uid, NOW, "::1", "web")
        .await
        .unwrap();
    tx.commit().await.unwrap();
    issued_at
}

async fn is_live(yard: &Yard, name: &str, issued_at: i64) -> bool {
    let mut connection = yard.world.deps.db.read().await.unwrap();
    let live = session::find_live(&mut connection, &name.parse().unwrap(), issued_at).await;
    live.unwrap().is_some()
}

#[tokio::test]
async fn a_new_user_gets_a_container_and_a_password_told_once() {
    let yard = yard().await;
    let body = yard.post(CREATE, "username=bob&wait=0").await.is(202);
    assert_eq!(body["state"], "pending");
    assert_eq!(body["object"], "container/bob");
    assert_eq!(body["generation"], 1);
    assert_eq!(body["password"].as_str().unwrap().len(), 16);
    assert!(password_fits(&yard, "bob", &body["password"]).await);
    let bob = yard.account("bob").await.unwrap();
    let row = yard.container(&bob.uid).await;
    assert_eq!(row.desired, Desired::Running);
    assert_eq!(row.image_ref, "docker.io/sipeed/picoclaw:latest");
    let listed = yard.get(LIST).await.is(200);
    assert!(
        !listed
            .to_string()
            .contains(body["password"].as_str().unwrap())
    );
}

#[tokio::test]
async fn the_image_tag_and_the_password_can_be_chosen() {
    let yard = yard().await;
    let fields = "username=bob&password=correct+horse&image_tag=v1.2&wait=0";
    let body = yard.post(CREATE, fields).await.is(202);
    assert_eq!(body["password"], "correct horse");
    let bob = yard.account("bob").await.unwrap();
    let row = yard.container(&bob.uid).await;
    assert_eq!(row.image_ref, "docker.io/sipeed/picoclaw:v1.2");
    for (field, fields) in [
        ("password", "username=eve&password=short"),
        ("image_tag", "username=eve&image_tag=a%20b"),
        ("username", "username=e:v"),
        ("username", "password=correct+horse"),
    ] {
        let body = yard
            .post(CREATE, fields)
            .await
            .fails(400, "invalid_parameter");
        assert_eq!(body["field"], field);
    }
    assert!(yard.account("eve").await.is_none());
}

#[tokio::test]
async fn the_password_is_told_even_when_the_container_fails() {
    let yard = yard().await;
    let fail = async {
        while yard.account("bob").await.is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let uid = yard.account("bob").await.unwrap().uid;
        let missing = Condition::not_ready(Reason::ImageMissing, "no such image");
        yard.saw(Kind::Container, &uid, 1, missing).await;
    };
    let (answer, ()) = tokio::join!(yard.post(CREATE, "username=bob&wait=20"), fail);
    let body = answer.fails(422, "image_missing");
    assert_eq!(
        (&body["state"], &body["error"]),
        (&json!("failed"), &json!("no such image"))
    );
    assert!(password_fits(&yard, "bob", &body["password"]).await);
}

#[tokio::test]
async fn what_is_paused_with_its_whole_reconciler_is_not_called_running() {
    let yard = yard().await;
    let uid = yard.user("alice").await;
    let running = Condition::ready(Reason::Running, "running and ready");
    yard.saw(Kind::Container, &uid, 1, running).await;
    for paused in ["reconciler=container", "all=true"] {
        let shown = async || {
            let users = yard.get("/api/admin/users").await.is(200)["users"][0].clone();
            let own = yard.get_as("alice", "/api/user/container").await.is(200);
            let objects = "/api/admin/reconcile/objects/container/alice";
            let object = yard.get(objects).await.is(200);
            assert_eq!(users["status"], own["status"]);
            let ready = [&users, &own, &object].map(|of| of["conditions"][0]["status"].clone());
            (users["status"].clone(), ready)
        };
        let word = |word: &str| (json!(word), |status: &str| [(); 3].map(|()| json!(status)));
        let (running, status) = word("running");
        assert_eq!(shown().await, (running, status("True")));
        yard.post("/api/admin/reconcile/pause", paused)
            .await
            .is(200);
        let (unknown, status) = word("unknown");
        assert_eq!(shown().await, (unknown, status("Unknown")), "{paused}");
        yard.post("/api/admin/reconcile/resume", paused)
            .await
            .is(200);
    }
}

#[tokio::test]
async fn user_health_is_that_of_the_worst_part() {
    let yard = yard().await;
    let [alice, bob] = ["alice", "bob"].map(|name| yard.user(name));
    let (alice, bob) = (alice.await, bob.await);
    for uid in [&alice, &bob] {
        let running = Condition::ready(Reason::Running, "running and ready");
        yard.saw(Kind::Container, uid, 1, running).await;
        for kind in [Kind::User, Kind::AgentConfig, Kind::SkillSet] {
            let done = Condition::ready(Reason::Converged, "");
            yard.saw(kind, uid, 1, done).await;
        }
    }
    const NOT_READY: &str = "/api/admin/users?not_ready=true&page=1&page_size=1";
    let health = async |name: &str| {
        let list = yard.get(LIST).await.is(200);
        let users = list["users"].as_array().unwrap().clone();
        let user = users.into_iter().find(|user| user["username"] == name);
        let detail = format!("/api/admin/reconcile/objects/user/{name}");
        let detail = yard.get(&detail).await.is(200);
        let health = user.unwrap()["health"].clone();
        assert_eq!(detail["health"], health);
        health
    };
    let container = health("alice").await;
    assert_eq!(
        (
            &container["status"],
            &container["reason"],
            &container["object"]
        ),
        (&json!("True"), &json!("Running"), &json!("container/alice"))
    );
    assert_eq!(yard.get(NOT_READY).await.is(200)["total"], 0);

    let broken = Condition::not_ready(Reason::InvalidUserConfig, "config.json is no JSON");
    yard.saw(Kind::AgentConfig, &alice, 1, broken).await;
    assert_eq!(
        health("alice").await,
        json!({
            "status": "False", "reason": "InvalidUserConfig", "message": "config.json is no JSON",
            "remedy": Reason::InvalidUserConfig.remedy(), "since": Timestamp::default(),
            "object": "agent-config/alice",
        })
    );
    assert_eq!(names(&yard.get(NOT_READY).await.is(200)), ["alice"]);
    let path = "/api/admin/reconcile/objects?not_ready=true";
    let objects = yard.get(path).await.is(200);
    assert_eq!(objects["objects"][0]["object"], "agent-config/alice");
    assert_eq!(objects["total"], 1);
    yard.get(&format!("{path}&ready=true"))
        .await
        .fails(400, "invalid_parameter");

    // A newer change is not observed yet.
    let stop = "/api/admin/container/stop";
    yard.post(stop, "username=bob&wait=0").await.is(202);
    assert_eq!(health("bob").await["reason"], "Pending");
    let both = yard.get("/api/admin/users?not_ready=true").await.is(200);
    assert_eq!(names(&both), ["alice", "bob"]);
    yard.post("/api/admin/reconcile/pause", "reconciler=skill-set")
        .await
        .is(200);
    let paused = health("bob").await;
    assert_eq!(paused["object"], "skill-set/bob", "{paused}");
}

#[tokio::test]
async fn standstill_names_author_and_time() {
    let yard = yard().await;
    let uid = yard.user("alice").await;
    let shown = async || yard.get(LIST).await.is(200)["users"][0].clone();
    assert_eq!(shown().await["standstill"], Value::Null);
    let change = async |path: &str| {
        let path = format!("/api/admin/{path}");
        yard.post(&path, "username=alice&wait=0").await.is(202);
    };
    change("container/stop").await;
    let stopped = shown().await["standstill"].clone();
    let at = NOW.to_rfc3339();
    assert_eq!(
        stopped,
        json!({
            "reason": "stopped", "since": NOW, "by": "root", "removed_after": null,
            "message": format!("the container is stopped by root, since {at}"),
        })
    );
    change("container/restart").await;
    assert_eq!(shown().await["standstill"], Value::Null);

    change("users/disable").await;
    let disabled = shown().await;
    assert_eq!(
        (&disabled["desired"], &disabled["standstill"]["reason"]),
        (&json!("stopped"), &json!("disabled"))
    );
    let by_root = format!("the account is disabled by root, since {at}");
    assert_eq!(disabled["standstill"]["message"], by_root);
    let stopped = Condition::ready(Reason::Stopped, "stopped because the account is disabled");
    yard.saw(Kind::Container, &uid, 4, stopped).await;
    for kind in [Kind::User, Kind::AgentConfig, Kind::SkillSet] {
        yard.saw(kind, &uid, 1, Condition::ready(Reason::Converged, ""))
            .await;
    }
    let health = shown().await["health"].clone();
    assert_eq!(
        (&health["reason"], &health["message"], &health["since"]),
        (&json!("Disabled"), &json!(by_root), &json!(NOW))
    );
    let container = "/api/admin/reconcile/objects/container/alice";
    let container = yard.get(container).await.is(200);
    assert_eq!(container["desired"]["desired"], "stopped");
    let user = "/api/admin/reconcile/objects/user/alice";
    let user = yard.get(user).await.is(200);
    assert_eq!(user["standstill"]["by"], "root");
    change("users/enable").await;
    assert_eq!(shown().await["standstill"], Value::Null);
}

#[tokio::test]
async fn l10_a_name_is_taken_in_every_case_and_until_its_bearer_is_purged() {
    let yard = yard().await;
    let alice = yard.user("alice").await;
    yard.post(CREATE, "username=ALICE")
        .await
        .fails(409, "already_exists");
    yard.post(DELETE, "username=alice&wait=0").await.is(202);
    yard.post(CREATE, "username=alice")
        .await
        .fails(409, "name_being_removed");
    yard.purge(&alice).await;
    yard.post(CREATE, "username=alice&wait=0").await.is(202);
    assert_ne!(yard.account("alice").await.unwrap().uid, alice);
}

#[tokio::test]
async fn without_autostart_a_new_container_stands() {
    let yard = yard().await;
    let changes = schema::config::Changes([("container.autostart", Some(json!(false)))].into());
    let deps = &yard.world.deps;
    let mut tx = yard.world.db.begin().await.unwrap();
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
    yard.post(CREATE, "username=bob&wait=0").await.is(202);
    let bob = yard.account("bob").await.unwrap();
    assert_eq!(yard.container(&bob.uid).await.desired, Desired::Stopped);
}

#[tokio::test]
async fn a_user_is_listed_with_its_container() {
    let yard = yard().await;
    let uid = yard.user("alice").await;
    let running = Condition::ready(Reason::Running, "running and ready");
    yard.saw(Kind::Container, &uid, 1, running).await;
    for kind in [Kind::User, Kind::AgentConfig, Kind::SkillSet] {
        yard.saw(kind, &uid, 1, Condition::ready(Reason::Converged, ""))
            .await;
    }
    let body = yard.get(LIST).await.is(200);
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
        "image_ready": false, "observed_image": null, "observed_image_id": null, "ip": null, "groups": [], "desired": "running",
        "generation": 1, "observed_generation": 1, "conditions": [condition],
        "created_at": NOW.to_rfc3339(), "last_login_at": null,
        "used_bytes": null, "used": null, "standstill": null,
        "health": {
            "status": "True", "reason": "Running", "message": "running and ready", "remedy": "",
            "since": Timestamp::default(), "object": "container/alice",
        },
    });
    assert_eq!(user, &expected);
}

#[tokio::test]
async fn l60_users_come_in_pages_and_the_last_page_stands_for_those_behind_it() {
    let yard = yard().await;
    assert_eq!(names(&yard.get(LIST).await.is(200)), [""; 0]);
    for n in 0..5 {
        yard.user(&format!("user{n}")).await;
    }
    let page = |query: &'static str| {
        let yard = &yard;
        async move { yard.get(&format!("{LIST}?{query}")).await.is(200) }
    };
    assert_eq!(names(&yard.get(LIST).await.is(200)).len(), 5);
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

#[tokio::test]
async fn the_space_that_a_workspace_takes_is_shown_as_it_was_measured() {
    let yard = yard().await;
    let [alice, bob] = [yard.user("alice").await, yard.user("bob").await];
    yard.user("carol").await;
    let measured = |bytes, stopped| Measured {
        bytes,
        files: 3,
        stopped,
        ..Measured::default()
    };
    let attempt = |uid: &Uid, outcome| Attempt {
        uid: uid.clone(),
        changes: 0,
        outcome,
    };
    let attempts = [
        attempt(&alice, Ok(measured(2_500_000, false))),
        attempt(&bob, Ok(measured(999, true))),
        // A later failure leaves the number as it is.
        attempt(&alice, Err("it failed".to_owned())),
    ];
    let mut tx = yard.world.db.begin().await.unwrap();
    usage::save(&mut tx, &attempts, NOW).await.unwrap();
    tx.commit().await.unwrap();
    let body = yard.get(LIST).await.is(200);
    let users = body["users"].as_array().unwrap().iter();
    let shown: Vec<_> = users
        .map(|user| json!([user["used_bytes"], user["used"]]))
        .collect();
    let expected = json!([[2_500_000, "2.5 MB"], [999, "at least 999 B"], [null, null]]);
    assert_eq!(json!(shown), expected);
    let body = yard
        .get("/api/admin/reconcile/objects/user/alice")
        .await
        .is(200);
    let expected = json!({
        "used_bytes": 2_500_000, "files": 3, "entries": 0, "complete": true, "measured_at": NOW.to_rfc3339(),
        "problem": "it failed",
    });
    assert_eq!(body["observed"]["workspace"], expected);
}

#[tokio::test]
async fn a_batch_is_one_task_with_a_result_for_each_name() {
    let yard = yard().await;
    yard.user("alice").await;
    let body = "usernames=bob%0Aalice,b%2Fd,%20carol";
    let body = yard
        .post("/api/admin/users/batch-create", body)
        .await
        .is(200);
    assert_eq!(
        (&body["success"], &body["total"]),
        (&json!(false), &json!(2))
    );
    let error = body["error"].as_str().unwrap();
    assert!(
        error.starts_with("2 of 4 users not created; alice: "),
        "{error}"
    );
    assert!(error.contains("; b/d: "), "{error}");
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
    assert!(password_fits(&yard, "carol", &results[3]["password"]).await);
    assert_eq!(
        (&body["state"], &body["progress"]["pending"]),
        (&json!("pending"), &json!(2))
    );
    let task = body["task_id"].as_str().unwrap();
    let status = yard
        .get(&format!("/api/admin/task/status?task_id={task}"))
        .await
        .is(200);
    assert_eq!(
        (&status["type"], &status["total"]),
        (&json!("batch_create"), &json!(2))
    );
}

#[tokio::test]
async fn a_batch_takes_passwords_image_and_groups() {
    let yard = yard().await;
    let path = "/api/admin/users/batch-create";
    for name in ["staff", "core"] {
        let form = format!("name={name}");
        yard.post("/api/admin/groups/create", &form).await.is(200);
    }
    let form = "usernames=bob,carol,dave&passwords=correct,+horse%0A%0Ashort&image_tag=v9&groups=staff,core";
    let body = yard.post(path, form).await.is(200);
    let results = &body["results"];
    assert_eq!(results[0].get("password"), None, "the caller has it");
    assert!(password_fits(&yard, "bob", &json!("correct, horse")).await);
    assert_eq!(results[1]["password"].as_str().unwrap().len(), 16);
    assert_eq!(
        (&results[2]["success"], &results[2]["code"]),
        (&json!(false), &json!("invalid_parameter"))
    );
    assert!(!results[2].to_string().contains("short"));
    let users = yard.get(LIST).await.is(200);
    assert_eq!(names(&users), ["bob", "carol"]);
    for user in users["users"].as_array().unwrap() {
        assert_eq!(
            (&user["image_tag"], &user["groups"]),
            (&json!("v9"), &json!(["core", "staff"]))
        );
    }
    for (form, code) in [
        ("usernames=eve&passwords=a%0Ab", 200),
        ("usernames=eve,fay&passwords=correct+horse", 400),
        ("usernames=eve&image_tag=a+b", 400),
        ("usernames=eve&groups=none", 404),
    ] {
        yard.post(path, form).await.is(code);
    }
    assert!(yard.account("eve").await.is_none());
}

#[tokio::test]
async fn a_batch_can_be_waited_for() {
    let yard = yard().await;
    let ready = async {
        for name in ["bob", "carol"] {
            while yard.account(name).await.is_none() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let uid = yard.account(name).await.unwrap().uid;
            let running = Condition::ready(Reason::Running, "");
            yard.saw(Kind::Container, &uid, 1, running).await;
        }
    };
    let create = yard.post(
        "/api/admin/users/batch-create",
        "usernames=bob,carol&wait=20",
    );
    let (answer, ()) = tokio::join!(create, ready);
    assert_eq!(answer.is(200)["state"], "converged");
}

#[tokio::test]
async fn a_batch_of_nobody_or_of_too_many_is_refused() {
    let yard = yard().await;
    let many = (0..501)
        .map(|n| format!("u{n}"))
        .collect::<Vec<_>>()
        .join(",");
    for names in ["", " ,,%0A", &many] {
        let body = format!("usernames={names}");
        let answer = yard.post("/api/admin/users/batch-create", &body).await;
        answer.fails(400, "invalid_parameter");
    }
    let refused = yard
        .post("/api/admin/users/batch-create", "usernames=a:b")
        .await
        .is(200);
    assert_eq!(refused["task_id"], Value::Null);
    yard.get("/api/admin/task/status?task_id=").await.is(200);
}

#[tokio::test]
async fn l6_deleting_waits_until_nothing_is_left() {
    let yard = yard().await;
    let uid = yard.user("alice").await;
    let issued_at = session(&yard, &uid).await;
    let purge = async {
        while yard
            .object(Kind::User, &uid)
            .await
            .unwrap()
            .deleted_at
            .is_none()
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        yard.purge(&uid).await;
    };
    let (answer, ()) = tokio::join!(yard.post(DELETE, "username=alice&wait=20"), purge);
    let body = answer.is(200);
    assert_eq!(
        (&body["state"], &body["object"]),
        (&json!("converged"), &json!("user/alice"))
    );
    assert!(body["message"].as_str().unwrap().contains("free"));
    assert!(!is_live(&yard, "alice", issued_at).await);
    yard.post(DELETE, "username=alice")
        .await
        .fails(404, "not_found");
}

#[tokio::test]
async fn l12_deleting_again_waits_for_the_same_removal() {
    let yard = yard().await;
    let uid = yard.user("alice").await;
    let first = yard.post(DELETE, "username=alice&wait=0").await.is(202);
    let again = yard.post(DELETE, "username=alice&wait=0").await.is(202);
    assert_eq!(first["generation"], again["generation"]);
    assert!(yard.container(&uid).await.deleted_at.is_some());
    for path in [
        "/api/admin/container/start",
        "/api/admin/container/stop",
        "/api/admin/users/enable",
        "/api/admin/users/reset-password",
    ] {
        yard.post(path, "username=alice")
            .await
            .fails(409, "name_being_removed");
    }
    assert_eq!(
        yard.get(LIST).await.is(200)["users"][0]["status"],
        "deleting"
    );
}

#[tokio::test]
async fn a_stale_generation_changes_nothing() {
    let yard = yard().await;
    let uid = yard.user("alice").await;
    for path in [
        DELETE,
        "/api/admin/users/disable",
        "/api/admin/container/stop",
    ] {
        let stale = yard.post(path, "username=alice&if_generation=7").await;
        assert_eq!(stale.fails(412, "stale_generation")["generation"], 1);
    }
    let row = yard.container(&uid).await;
    assert_eq!(
        (row.generation, row.deleted_at, row.disabled),
        (Generation(1), None, false)
    );
    yard.post(DELETE, "username=alice&if_generation=1&wait=0")
        .await
        .is(202);
}

#[tokio::test]
async fn l7_a_reset_password_ends_all_sessions() {
    let yard = yard().await;
    let uid = yard.user("alice").await;
    let issued_at = session(&yard, &uid).await;
    assert!(is_live(&yard, "alice", issued_at).await);
    let body = yard
        .post("/api/admin/users/reset-password", "username=alice")
        .await
        .is(200);
    assert!(password_fits(&yard, "alice", &body["password"]).await);
    assert!(!is_live(&yard, "alice", issued_at).await);
}

#[tokio::test]
async fn l7_a_disabled_user_has_no_session_and_no_container() {
    let yard = yard().await;
    let uid = yard.user("alice").await;
    let issued_at = session(&yard, &uid).await;
    let body = yard
        .post("/api/admin/users/disable", "username=alice&wait=0")
        .await
        .is(202);
    assert_eq!(
        (&body["object"], &body["generation"]),
        (&json!("container/alice"), &json!(2))
    );
    assert!(!is_live(&yard, "alice", issued_at).await);
    assert!(!yard.container(&uid).await.desired_running());
    assert_eq!(
        yard.get(LIST).await.is(200)["users"][0]["status"],
        "stopping"
    );
    for path in ["start", "restart", "debug"] {
        let path = format!("/api/admin/container/{path}");
        yard.post(&path, "username=alice")
            .await
            .fails(409, "account_disabled");
    }
    yard.post("/api/admin/users/enable", "username=alice&wait=0")
        .await
        .is(202);
    assert!(yard.container(&uid).await.desired_running());
}

#[tokio::test]
async fn l7_revoked_sessions_end() {
    let yard = yard().await;
    let uid = yard.user("alice").await;
    let issued_at = session(&yard, &uid).await;
    let path = "/api/admin/users/sessions/revoke";
    let body = yard.post(path, "username=alice").await.is(200);
    assert_eq!(body["ended"], 1);
    assert!(!is_live(&yard, "alice", issued_at).await);
    yard.post(path, "username=nobody")
        .await
        .fails(404, "not_found");
}

#[tokio::test]
async fn live_sessions_of_an_account_are_listed_newest_first() {
    let yard = crate::routes::yard::yard().await;
    let root = yard.sign_in("root").await;
    for _ in 0..2 {
        yard.sign_in("alice").await;
    }
    let get = async |query: &str| {
        let path = format!("/api/admin/users/sessions?{query}");
        yard.get(&path).with("root", &root).send().await
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
    yard.post("/api/admin/users/sessions/revoke", &[("username", "alice")])
        .with("root", &root)
        .send()
        .await;
    assert_eq!(get("username=alice").await.body["sessions"], json!([]));
    assert_eq!(get("username=nobody").await.verdict(), (404, "not_found"));
}

#[tokio::test]
async fn a_superadmin_is_not_an_ordinary_user() {
    let yard = yard().await;
    let mut tx = yard.world.db.begin().await.unwrap();
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
        yard.post(path, "username=root")
            .await
            .fails(404, "not_found");
    }
    yard.post(CREATE, "username=Root")
        .await
        .fails(409, "already_exists");
}

#[tokio::test]
async fn an_empty_password_is_none_so_a_random_one_is_made() {
    let yard = yard().await;
    yard.user("alice").await;
    let path = "/api/admin/users/reset-password";
    let body = yard.post(path, "username=alice&password=").await.is(200);
    assert!(body["password"].as_str().unwrap().len() >= 8);
    let given = "username=alice&password=correct+horse";
    let body = yard.post(path, given).await.is(200);
    assert_eq!(body.get("password"), None);
}

#[tokio::test]
async fn dry_run_of_a_removal_names_what_goes_and_the_way_back() {
    let yard = yard().await;
    let uid = yard.user("alice").await;
    session(&yard, &uid).await;
    let dry_run = async || yard.post(DELETE, "username=Alice&dry_run=true").await;
    let body = dry_run().await.is(200);
    assert_eq!(body["state"], Value::Null);
    assert_eq!(
        body["removal"],
        json!({
            "sessions": 1, "executors": 0, "groups": [], "channels": [], "cookies": 0, "used_bytes": null,
            "archive": {
                "directory": "alice-<time>", "kept": null,
                "restore": "agentyard archive restore alice@<time> --to alice",
            },
            "afterwards": "the name is free for a new user",
        })
    );
    assert!(yard.account("alice").await.unwrap().deleted_at.is_none());
    yard.post(DELETE, "username=alice&wait=0").await.is(202);
    dry_run().await.fails(409, "name_being_removed");
}
