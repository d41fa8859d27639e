//! Users move between images.

use schema::condition::{Condition, Reason};
use schema::ids::{Generation, Kind};
use schema::rollout::{ReadinessPolicy, RolloutRow, RolloutTarget};
use serde_json::json;

use super::*;
use crate::routes::test_support::Answer;

const UPGRADE: &str = "/api/admin/images/upgrade";
const MIGRATE: &str = "/api/admin/images/migrate";
const ROLLOUTS: &str = "/api/admin/images/rollouts";

async fn with_users(names: &[&str]) -> Yard {
    let yard = stocked(None).await;
    for name in names {
        yard.user(name).await;
    }
    yard
}

async fn stored(yard: &Yard, id: &str) -> (RolloutRow, Vec<RolloutTarget>) {
    let mut connection = yard.world.deps.db.read().await.unwrap();
    let uid = Uid::from(id.to_owned());
    rollout::get(&mut connection, &uid).await.unwrap().unwrap()
}

async fn names_of(yard: &Yard, id: &str) -> Vec<String> {
    let (_, targets) = stored(yard, id).await;
    targets.into_iter().map(|target| target.name).collect()
}

fn task(started: &Value) -> String {
    started["task_id"].as_str().unwrap().to_owned()
}

/// What the reconciler saves of the newest rollout; it moves nobody here.
async fn comes_to(yard: &Yard, id: &str, phase: Phase, message: &str, finished: bool) {
    let uid = Uid::from(id.to_owned());
    let (row, _) = stored(yard, id).await;
    let mut facts = row.facts;
    facts.phase = phase;
    facts.message = message.to_owned();
    facts.finished_at = finished.then_some(NOW);
    facts.resolved_attempt = row.attempt;
    if phase == Phase::Paused {
        facts.paused_attempt = row.attempt;
    }
    let mut tx = yard.world.db.begin().await.unwrap();
    rollout::save_facts(&mut tx, &uid, &facts).await.unwrap();
    tx.commit().await.unwrap();
    yard.world.status_ticks.send_modify(|ticks| *ticks += 1);
}

#[tokio::test]
async fn an_upgrade_moves_those_named_in_their_order_or_everybody_by_name() {
    let yard = with_users(&["carol", "alice", "Bob"]).await;
    let body = "tag=v2&users=bob,carol%0ABOB&max_unavailable=2&pause_on_failure=no&health_timeout=5m&min_ready=0s";
    let started = yard.post(UPGRADE, body).await.is(202);
    assert_eq!(
        (&started["total"], &started["state"]),
        (&json!(2), &json!("pending"))
    );
    let id = task(&started);
    assert_eq!(names_of(&yard, &id).await, ["Bob", "carol"]);
    let (row, _) = stored(&yard, &id).await;
    assert_eq!(row.reference, "registry:5000/agent:v2");
    assert_eq!((row.max_unavailable, row.pause_on_failure), (2, false));
    assert_eq!(
        (row.health_timeout, row.min_ready, &*row.actor),
        (Duration::from_secs(300), Duration::ZERO, "root")
    );
    assert_eq!(started["warnings"], json!([]), "not all get it");
    let refused = yard.post(UPGRADE, "tag=v3&all=1").await;
    let refused = refused.fails(409, "in_rollout");
    assert!(
        refused["error"].as_str().unwrap().contains("Bob"),
        "{refused}"
    );
    comes_to(&yard, &id, Phase::Succeeded, "", true).await;
    let started = yard
        .post(UPGRADE, "tag=other.example/x:1&all=true")
        .await
        .is(202);
    let id = task(&started);
    assert_eq!(names_of(&yard, &id).await, ["alice", "Bob", "carol"]);
    let (row, _) = stored(&yard, &id).await;
    assert_eq!((row.max_unavailable, row.pause_on_failure), (1, true));
    assert_eq!(row.health_timeout, Duration::from_secs(120));
    assert_eq!(row.min_ready, Duration::from_secs(10), "as configured");
    let warning = started["warnings"][0].as_str().unwrap();
    let default = "new users still get registry:5000/agent:latest; ";
    assert!(warning.starts_with(default), "{warning}");
    assert!(warning.ends_with("--all --set-default`"), "{warning}");
    assert!(started["message"].as_str().unwrap().ends_with(warning));
    let status = yard.get("/api/admin/task/status").await.is(200);
    assert_eq!(
        (&status["id"], &status["type"]),
        (&json!(id), &json!("upgrade"))
    );
    assert_eq!(
        (&status["total"], &status["pending"]),
        (&json!(3), &json!(3))
    );
}

/// Records that the engine has an image by this reference.
async fn pulled(yard: &Yard, reference: &str, image_id: String) {
    let mut tx = yard.world.db.begin().await.unwrap();
    let (uid, _) = schema::image::request_pull(&mut tx, reference, "1", None, NOW)
        .await
        .unwrap();
    let facts = schema::image::ImageFacts {
        image_id: Some(image_id),
        ..Default::default()
    };
    schema::image::save_facts(&mut tx, &uid, &facts)
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

async fn count_rollouts(yard: &Yard) -> u64 {
    let listed = yard.get(ROLLOUTS).await.is(200);
    listed["total"].as_u64().unwrap()
}

#[tokio::test]
async fn dry_run_of_an_upgrade_names_whom_it_would_move() {
    let yard = with_users(&["carol", "alice", "Bob", "dan"]).await;
    let target = "registry:5000/agent:v2";
    give(&yard, "carol", target, Some(id('2'))).await;
    pulled(&yard, target, id('2')).await;
    yard.post("/api/admin/users/disable", "username=alice&wait=0")
        .await
        .is(202);
    yard.post("/api/admin/users/delete", "username=dan&wait=0")
        .await
        .is(202);
    let before = count_rollouts(&yard).await;
    let plan = yard
        .post(UPGRADE, "tag=v2&all=1&dry_run=true")
        .await
        .is(200);
    assert_eq!(plan["task_id"], Value::Null);
    assert_eq!(plan["state"], Value::Null);
    assert_eq!((&plan["total"], &plan["moves"]), (&json!(3), &json!(2)));
    assert_eq!(plan["users"], json!(["alice", "Bob"]));
    assert_eq!(plan["restarts"], 1, "an account is disabled");
    let skipped = plan["skipped"].as_array().unwrap().iter();
    let skipped: Vec<_> = skipped
        .map(|user| {
            (
                user["username"].as_str().unwrap(),
                user["code"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        skipped,
        [("carol", "has_image"), ("dan", "name_being_removed")]
    );
    assert_eq!(plan["skipped_total"], 2);
    assert_eq!(plan["warnings"].as_array().unwrap().len(), 1);
    let named = "tag=v3&users=bob,carol%0ABOB&dry_run=1";
    let plan = yard.post(UPGRADE, named).await.is(200);
    assert_eq!(plan["users"], json!(["Bob", "carol"]));
    assert_eq!(plan["skipped"], json!([]));
    assert_eq!(count_rollouts(&yard).await, before);
}

#[tokio::test]
async fn dry_run_refuses_what_the_start_refuses() {
    let yard = with_users(&["alice", "bob"]).await;
    for (path, body, status, code) in [
        (UPGRADE, "tag=v2&users=eve", 400, "invalid_parameter"),
        (UPGRADE, "tag=v2", 400, "invalid_parameter"),
        (UPGRADE, "tag=v2&groups=none", 404, "not_found"),
        (MIGRATE, "image=v7&target=v2", 422, "no_users"),
        (
            MIGRATE,
            "image=v7&target=v2&users=bob",
            400,
            "invalid_parameter",
        ),
    ] {
        for dry_run in ["", "&dry_run=1"] {
            let body = format!("{body}{dry_run}");
            yard.post(path, &body).await.fails(status, code);
        }
    }
    yard.post(UPGRADE, "tag=v2&users=bob").await.is(202);
    let mut errors = Vec::new();
    for dry_run in ["", "&dry_run=1"] {
        let body = format!("tag=v3&all=1{dry_run}");
        let refused = yard.post(UPGRADE, &body).await.fails(409, "in_rollout");
        errors.push(refused["error"].clone());
    }
    assert_eq!(errors[0], errors[1]);
    let plan = yard.post(MIGRATE, "image=v1&target=v3&users=alice&dry_run=1");
    assert_eq!(plan.await.is(200)["users"], json!(["alice"]));
}

#[tokio::test]
async fn a_migration_moves_those_who_have_the_image() {
    let yard = with_users(&["alice", "bob", "carol"]).await;
    give(&yard, "carol", "registry:5000/agent:v2", Some(id('2'))).await;
    give(&yard, "bob", "registry:5000/agent:v1", Some(id('1'))).await;
    let unfit = yard
        .post(MIGRATE, "image=v1&target=v3&users=alice,carol")
        .await;
    let unfit = unfit.fails(400, "invalid_parameter");
    assert!(
        unfit["error"].as_str().unwrap().contains("carol"),
        "{unfit}"
    );
    let none = yard.post(MIGRATE, "image=v7&target=v3").await;
    none.fails(422, "no_users");
    let started = yard.post(MIGRATE, "image=v1&target=v3").await.is(202);
    let first = task(&started);
    assert_eq!(names_of(&yard, &first).await, ["alice", "bob"]);
    let (row, _) = stored(&yard, &first).await;
    assert_eq!(row.source.as_deref(), Some("v1"));
    comes_to(&yard, &first, Phase::Cancelled, "", true).await;
    for (image, expected) in [("111111111111", "bob"), (&id('2'), "carol")] {
        let body = format!("image={image}&target=v3");
        let started = yard.post(MIGRATE, &body).await.is(202);
        assert_eq!(names_of(&yard, &task(&started)).await, [expected]);
    }
}

#[tokio::test]
async fn whom_nobody_can_move_is_told() {
    let yard = with_users(&["alice"]).await;
    let unknown = yard
        .post(UPGRADE, "tag=v2&users=alice,eve,%3Cx%3E,mallory")
        .await;
    let unknown = unknown.fails(400, "invalid_parameter");
    let said = unknown["error"].as_str().unwrap();
    assert!(said.contains("eve, (no user name), mallory"), "{said}");
    let groups = yard.post(UPGRADE, "tag=v2&groups=staff").await;
    groups.fails(404, "not_found");
    yard.post("/api/admin/users/delete", "username=alice&wait=0")
        .await
        .is(202);
    let gone = yard.post(UPGRADE, "tag=v2&users=alice").await;
    gone.fails(400, "invalid_parameter");
    yard.post(UPGRADE, "tag=v2&all=1")
        .await
        .fails(422, "no_users");
    assert_eq!(yard.get(ROLLOUTS).await.is(200)["total"], 0);
}

#[tokio::test]
async fn a_rollout_is_shown_with_what_became_of_each_user() {
    let yard = with_users(&["alice", "bob"]).await;
    give(&yard, "alice", "registry:5000/agent:v1", Some(id('1'))).await;
    let started = yard.post(UPGRADE, "tag=v2&all=1").await.is(202);
    let id_ = task(&started);
    let rollout = Uid::from(id_.clone());
    let alice = Uid::from("alice".to_owned());
    let image = ImageChoice {
        reference: "registry:5000/agent:v2".to_owned(),
        image_id: Some(id('2')),
        digest: None,
    };
    let mut tx = yard.world.db.begin().await.unwrap();
    let policy = ReadinessPolicy {
        health_timeout: Duration::from_secs(60),
        min_ready: Duration::ZERO,
    };
    rollout::move_target(&mut tx, &rollout, &alice, &image, policy, NOW)
        .await
        .unwrap();
    rollout::finish_target(&mut tx, &rollout, &alice, TargetState::Done, "", NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let detail = yard.get(&format!("{ROLLOUTS}/{id_}")).await.is(200);
    assert_eq!(
        detail["users"][0],
        json!({
            "username": "alice", "state": "done", "message": "", "log": [], "image_id": id('2'),
            "previous_image": "registry:5000/agent:v1", "previous_image_id": id('1'),
            "moved_at": NOW.to_rfc3339(), "finished_at": NOW.to_rfc3339(),
        })
    );
    assert_eq!(detail["users"][1]["state"], "pending");
    let rollout = &detail["rollout"];
    assert_eq!(
        (&rollout["phase"], &rollout["desired"]),
        (&json!("pulling"), &json!("run"))
    );
    assert_eq!(
        (&rollout["type"], &rollout["health_timeout"]),
        (&json!("upgrade"), &json!("2m"))
    );
    assert_eq!(
        (&rollout["progress"]["done"], &rollout["progress"]["total"]),
        (&json!(1), &json!(2))
    );
    let page = yard
        .get(&format!("{ROLLOUTS}/{id_}?search=BO"))
        .await
        .is(200);
    assert_eq!(fields(&page["users"], "username"), ["bob"]);
    let list = yard.get(ROLLOUTS).await.is(200);
    assert_eq!(list["rollouts"][0], *rollout);
    assert_eq!(
        (&list["page_size"], &list["total"]),
        (&json!(20), &json!(2))
    );
    let none = yard
        .get(&format!("{ROLLOUTS}?search=nothing"))
        .await
        .is(200);
    assert_eq!(none["rollouts"], json!([]));
    yard.get(&format!("{ROLLOUTS}/0"))
        .await
        .fails(404, "not_found");
}

#[tokio::test]
async fn failed_user_of_a_rollout_has_the_last_log_lines() {
    let yard = with_users(&["alice"]).await;
    let started = yard.post(UPGRADE, "tag=v2&all=1").await.is(202);
    let path = format!("{ROLLOUTS}/{}", task(&started));
    let (rollout, alice) = (Uid::from(task(&started)), Uid::from("alice".to_owned()));
    let image = ImageChoice {
        reference: "registry:5000/agent:v2".to_owned(),
        image_id: Some(id('2')),
        digest: None,
    };
    let policy = ReadinessPolicy {
        health_timeout: Duration::from_secs(60),
        min_ready: Duration::ZERO,
    };
    let end = schema::container::ContainerEnd {
        at: NOW,
        exit_code: Some(1),
        cause: "exit code 1".to_owned(),
        log: "reading config\nno such key".to_owned(),
    };
    let mut tx = yard.world.db.begin().await.unwrap();
    rollout::move_target(&mut tx, &rollout, &alice, &image, policy, NOW)
        .await
        .unwrap();
    schema::container::note_end(&mut tx, &alice, &end)
        .await
        .unwrap();
    rollout::finish_target(&mut tx, &rollout, &alice, TargetState::Failed, "why", NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let row = yard.get(&path).await.is(200)["users"][0].clone();
    assert_eq!(row["log"], json!(["reading config", "no such key"]));
    assert_eq!(
        (&row["state"], &row["message"]),
        (&json!("failed"), &json!("why"))
    );
}

#[tokio::test]
async fn a_rollout_is_paused_resumed_cancelled_and_rolled_back() {
    let yard = with_users(&["alice", "bob"]).await;
    let verb = async |verb: &str, body: &str| -> Answer {
        yard.post(&format!("{ROLLOUTS}/{verb}"), body).await
    };
    for name in ["pause", "resume", "cancel", "rollback"] {
        verb(name, "").await.fails(404, "not_found");
        verb(name, "id=0").await.fails(404, "not_found");
    }
    let first = task(&yard.post(UPGRADE, "tag=v2&users=alice").await.is(202));
    let second = task(&yard.post(UPGRADE, "tag=v2&users=bob").await.is(202));
    let desired = async |id: &str| stored(&yard, id).await.0.desired;
    verb("resume", "").await.fails(409, "wrong_state");
    let told = verb("pause", "wait=0").await.is(202);
    assert_eq!(told["object"], format!("rollout/{second}"), "the newest");
    assert_eq!(desired(&second).await, rollout::DesiredRollout::Pause);
    assert_eq!(desired(&first).await, rollout::DesiredRollout::Run);
    let stale = format!("id={second}&if_generation=1&wait=0");
    let stale = verb("resume", &stale).await.fails(412, "stale_generation");
    let fresh = format!("if_generation={}&wait=0", stale["generation"]);
    verb("resume", &fresh).await.is(202);
    assert_eq!(desired(&second).await, rollout::DesiredRollout::Run);
    verb("cancel", &format!("id={first}&wait=0")).await.is(202);
    assert_eq!(desired(&first).await, rollout::DesiredRollout::Cancel);
    comes_to(&yard, &second, Phase::Succeeded, "", true).await;
    verb("pause", &format!("id={second}"))
        .await
        .fails(409, "wrong_state");
    let told = verb("rollback", "wait=0").await.is(202);
    assert_eq!(
        told["object"],
        format!("rollout/{second}"),
        "the newest, though it has ended"
    );
    comes_to(&yard, &second, Phase::RolledBack, "", true).await;
    verb("rollback", "").await.fails(409, "wrong_state");
}

#[tokio::test]
async fn a_verb_waits_until_the_reconciler_has_taken_note() {
    let yard = with_users(&["alice"]).await;
    let id = task(&yard.post(UPGRADE, "tag=v2&all=1").await.is(202));
    let uid = Uid::from(id);
    let path = format!("{ROLLOUTS}/pause");
    let (answer, ()) = tokio::join!(yard.post(&path, ""), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let paused = Condition::not_ready(Reason::RolloutPaused, "paused by an administrator");
        yard.saw(Kind::Rollout, &uid, 2, paused).await;
    });
    let answer = answer.is(200);
    assert_eq!(
        (&answer["state"], &answer["generation"]),
        (&json!("converged"), &json!(2))
    );
}

#[tokio::test]
async fn tasks_are_cancelled_by_what_they_are() {
    let yard = with_users(&["alice"]).await;
    let cancel = async |id: &str| {
        let body = format!("task_id={id}&wait=0");
        yard.post("/api/admin/task/cancel", &body).await
    };
    yard.post("/api/admin/task/cancel", "")
        .await
        .fails(400, "invalid_parameter");
    cancel("0").await.fails(404, "not_found");
    let rollout = task(&yard.post(UPGRADE, "tag=v2&all=1").await.is(202));
    cancel(&rollout).await.is(202);
    assert_eq!(
        stored(&yard, &rollout).await.0.desired,
        rollout::DesiredRollout::Cancel
    );
    comes_to(&yard, &rollout, Phase::Cancelled, "", true).await;
    cancel(&rollout).await.fails(409, "wrong_state");

    let reference = "registry:5000/agent:v2";
    let mut tx = yard.world.db.begin().await.unwrap();
    let (image, generation) = schema::image::request_pull(&mut tx, reference, "1", None, NOW)
        .await
        .unwrap();
    let object = [(Kind::Image, image.clone(), reference.to_owned(), generation)];
    let pull = schema::operation::create(&mut tx, "pull", "root", &object, NOW);
    let pull = pull.await.unwrap();
    let container = [(
        Kind::Container,
        Uid::random(),
        "x".to_owned(),
        Generation(1),
    )];
    let batch = schema::operation::create(&mut tx, "batch_create", "root", &container, NOW);
    let batch = batch.await.unwrap();
    tx.commit().await.unwrap();
    let pulling = Condition::not_ready(Reason::ImagePulling, "45 %");
    yard.saw(Kind::Image, &image, generation.0, pulling).await;
    let told = cancel(&pull).await.is(202);
    assert_eq!(told["object"], format!("image/{reference}"));
    cancel(&pull).await.fails(409, "wrong_state");
    let refused = cancel(&batch).await.fails(409, "not_cancellable");
    assert!(refused["error"].as_str().unwrap().contains("batch_create"));
}

/// What has become of every user of a rollout, without a reconciler.
async fn all_end(yard: &Yard, id: &str, users: &[&str], state: TargetState) {
    let mut tx = yard.world.db.begin().await.unwrap();
    for user in users {
        let (rollout, user) = (Uid::from(id.to_owned()), Uid::from((*user).to_owned()));
        rollout::finish_target(&mut tx, &rollout, &user, state, "", NOW)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn l75_the_task_of_a_paused_rollout_says_so_and_ends_with_the_rollout() {
    let yard = with_users(&["alice", "bob"]).await;
    let id = task(&yard.post(UPGRADE, "tag=v2&all=1").await.is(202));
    let status = async || {
        let path = format!("/api/admin/task/status?task_id={id}");
        let status = yard.get(&path).await.is(200);
        let tasks = yard.get("/api/admin/tasks").await.is(200);
        assert_eq!(tasks["tasks"][0]["message"], status["message"]);
        let message = status["message"].as_str().unwrap().to_owned();
        (message, status["finished_at"].clone())
    };
    let under_way = |message: &str| (message.to_owned(), Value::Null);
    let going = under_way("under way: 0 of 2 done, 0 failed");
    assert_eq!(status().await, going);
    comes_to(&yard, &id, Phase::Paused, "", false).await;
    let paused = under_way("paused: 0 of 2 done, 0 failed");
    assert_eq!(status().await, paused);
    // Nobody is left, but it is not at its end: it can be resumed.
    all_end(&yard, &id, &["alice", "bob"], TargetState::Failed).await;
    let paused = under_way("paused: 0 of 2 done, 2 failed");
    assert_eq!(status().await, paused);
    comes_to(&yard, &id, Phase::Failed, "", true).await;
    let ended = "finished: 0 of 2 done, 2 failed".to_owned();
    assert_eq!(status().await, (ended, json!(NOW.to_rfc3339())));
}

#[tokio::test]
async fn users_of_a_cancelled_rollout_have_not_failed() {
    let yard = with_users(&["alice", "bob"]).await;
    let id = task(&yard.post(UPGRADE, "tag=v2&all=1").await.is(202));
    all_end(&yard, &id, &["alice", "bob"], TargetState::Cancelled).await;
    comes_to(&yard, &id, Phase::Cancelled, "", true).await;
    let status = yard.get("/api/admin/task/status").await.is(200);
    assert_eq!(
        (&status["failed"], &status["cancelled"], &status["message"]),
        (
            &json!(0),
            &json!(2),
            &json!("cancelled: 0 of 2 done, 0 failed, 2 cancelled")
        )
    );
    let tasks = yard.get("/api/admin/tasks").await.is(200);
    let results = &tasks["tasks"][0]["results"];
    assert_eq!(fields(results, "state"), ["cancelled", "cancelled"]);
    let shown = yard.get(&format!("{ROLLOUTS}/{id}")).await.is(200);
    let progress = &shown["rollout"]["progress"];
    assert_eq!(
        (&progress["failed"], &progress["cancelled"]),
        (&json!(0), &json!(2))
    );
}

/// The payloads of an upgrade that is looked on at, while `meanwhile` happens to the newest rollout.
async fn watched(yard: &Yard, meanwhile: impl AsyncFn(&str)) -> Vec<Value> {
    let request = warp::test::request()
        .path(UPGRADE)
        .header("content-type", "application/x-www-form-urlencoded")
        .header("accept", "application/json, Text/Event-Stream;q=0.5")
        .body("tag=v2&all=1");
    let (answer, ()) = tokio::join!(yard.request("POST", request, "root"), async {
        let id = loop {
            let mut connection = yard.world.deps.db.read().await.unwrap();
            if let Some(uid) = rollout::unfinished(&mut connection).await.unwrap().pop() {
                break uid;
            }
            drop(connection);
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        tokio::time::sleep(Duration::from_millis(150)).await;
        meanwhile(id.as_str()).await;
    });
    assert_eq!(answer.status, 200, "{}", answer.text);
    let lines = answer
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("data:"));
    lines
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

#[tokio::test]
async fn l36_who_looks_on_hears_every_change_and_how_it_came_out() {
    let yard = with_users(&["alice"]).await;
    let told = watched(&yard, async |id| {
        comes_to(&yard, id, Phase::Rolling, "0 of 1 moved", false).await;
        tokio::time::sleep(Duration::from_millis(150)).await;
        let (rollout, alice) = (Uid::from(id.to_owned()), Uid::from("alice".to_owned()));
        let mut tx = yard.world.db.begin().await.unwrap();
        rollout::finish_target(&mut tx, &rollout, &alice, TargetState::Done, "", NOW)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        comes_to(&yard, id, Phase::Succeeded, "1 of 1 moved", true).await;
    })
    .await;
    let statuses: Vec<_> = told
        .iter()
        .map(|said| said["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["pulling", "rolling", "succeeded", "done"]);
    let id = &told[0]["task_id"];
    assert_eq!(
        told[1],
        json!({"status": "rolling", "task_id": id, "message": "0 of 1 moved", "total": 1, "done": 0, "failed": 0, "cancelled": 0, "running": 0, "pending": 1})
    );
    assert_eq!(
        told[3],
        json!({"status": "done", "task_id": id, "total": 1})
    );
}

#[tokio::test]
async fn l36_a_rollout_that_pauses_or_fails_ends_in_an_error() {
    for (phase, finished, words) in [
        (
            Phase::Paused,
            false,
            "is paused: alice did not become ready",
        ),
        (Phase::Failed, true, "not everybody could be moved"),
        (Phase::RolledBack, true, "rolled back"),
        (Phase::Cancelled, true, "cancelled"),
    ] {
        let yard = with_users(&["alice"]).await;
        let message = "alice did not become ready";
        let told = watched(&yard, async |id| {
            comes_to(&yard, id, phase, message, finished).await;
        })
        .await;
        let last = told.last().unwrap();
        assert_eq!(last["status"], "error");
        let sentence = last["error"].as_str().unwrap();
        assert!(sentence.contains(words), "{sentence}");
        assert_eq!(last["task_id"], told[0]["task_id"]);
        let ends = told
            .iter()
            .filter(|said| ["done", "error"].contains(&said["status"].as_str().unwrap()));
        assert_eq!(ends.count(), 1);
    }
}
