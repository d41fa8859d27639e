//! Bringing the configuration to agents' files.

use schema::ids::Uid;

use super::*;
use crate::routes::yard::yard;

const APPLY: &str = "/api/admin/config/apply";

async fn admin() -> Admin {
    let yard = yard().await;
    let cookie = yard.sign_in("root").await;
    Admin { yard, cookie }
}

impl Admin {
    async fn post(&self, path: &str, form: &[(&str, &str)]) -> Answer {
        let ask = self.yard.post(path, form);
        ask.with("root", &self.cookie).send().await
    }

    async fn get(&self, path: &str) -> Value {
        let ask = self.yard.get(path).with("root", &self.cookie);
        let answer = ask.send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    }

    /// Config objects that wait, and whether they can wait longer.
    async fn dirty(&self) -> Vec<(Uid, i64, bool)> {
        let mut connection = self.yard.world.deps.db.read().await.unwrap();
        let dirty = object::dirty(&mut connection, Kind::AgentConfig)
            .await
            .unwrap();
        let told = dirty.into_iter().map(|d| (d.uid, d.generation.0, d.bulk));
        told.collect()
    }

    /// What the reconciler would save.
    async fn seen(&self, uid: &Uid, generation: i64) {
        let status = schema::object::StatusRow {
            observed_generation: Generation(generation),
            conditions: vec![schema::condition::Condition::ready(
                schema::condition::Reason::Converged,
                "",
            )],
            ..Default::default()
        };
        let mut tx = self.yard.tx().await;
        let epoch = schema::ids::Epoch(1);
        object::save_status(&mut tx, Kind::AgentConfig, uid, &status, epoch)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn one_user_is_accepted_then_converged() {
    let admin = admin().await;
    let uid = admin.yard.find("alice").await.unwrap().uid;
    let form = [("username", "ALICE"), ("wait", "0")];
    let answer = admin.post(APPLY, &form).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(
        (&answer.body["object"], &answer.body["generation"]),
        (&json!("agent-config/alice"), &json!(2))
    );
    assert_eq!(answer.body["state"], "pending");
    let mine = admin.dirty().await.into_iter().find(|d| d.0 == uid);
    assert_eq!(mine.map(|d| (d.1, d.2)), Some((2, false)));
    let others = admin.dirty().await.into_iter().filter(|d| d.0 != uid);
    assert!(others.into_iter().all(|d| d.1 == 1));
    admin.seen(&uid, 3).await;
    let done = admin.post(APPLY, &[("username", "alice")]).await;
    assert_eq!(
        (done.status.as_u16(), &done.body["state"]),
        (200, &json!("converged"))
    );
    let stale = [("username", "alice"), ("if_generation", "1")];
    let stale = admin.post(APPLY, &stale).await;
    assert_eq!(stale.verdict(), (412, "stale_generation"));
}

#[tokio::test]
async fn whom_it_cannot_be_applied_to_is_told() {
    let admin = admin().await;
    for (field, verdict) in [
        (("username", "nobody"), (404, "not_found")),
        (("username", "root"), (404, "not_found")),
        (("username", "a b"), (400, "invalid_parameter")),
        (("group", "staff"), (404, "not_found")),
        (("group", "a/b"), (400, "invalid_parameter")),
        (("if_generation", "1"), (400, "invalid_parameter")),
    ] {
        let answer = admin.post(APPLY, &[field]).await;
        assert_eq!(answer.verdict(), verdict, "{field:?}");
    }
    let mut tx = admin.yard.tx().await;
    let uid = user::find(&mut tx, &"bob".parse().unwrap()).await.unwrap();
    let uid = uid.unwrap().uid;
    object::add_finalizer(&mut tx, Kind::User, &uid, "user")
        .await
        .unwrap();
    user::delete(&mut tx, &uid, crate::testing::NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let answer = admin.post(APPLY, &[("username", "bob")]).await;
    assert_eq!(answer.verdict(), (409, "name_being_removed"));
}

#[tokio::test]
async fn l41_everybody_is_a_task_and_a_second_one_is_another() {
    let admin = admin().await;
    let uid = admin.yard.find("alice").await.unwrap().uid;
    for uid in [&uid, &admin.yard.find("bob").await.unwrap().uid] {
        admin.seen(uid, 1).await;
    }
    let first = admin.post(APPLY, &[]).await;
    assert_eq!(
        (first.status.as_u16(), &first.body["total"]),
        (202, &json!(2))
    );
    let lanes = admin.dirty().await.into_iter().map(|d| d.2);
    assert_eq!(lanes.collect::<Vec<_>>(), [true, true], "others come first");
    let second = admin.post(APPLY, &[("username", ""), ("wait", "0")]).await;
    assert_ne!(first.body["task_id"], second.body["task_id"]);
    admin.seen(&uid, 2).await;
    let id = first.body["task_id"].as_str().unwrap();
    let status = admin
        .get(&format!("/api/admin/task/status?task_id={id}"))
        .await;
    assert_eq!(
        (&status["type"], &status["done"], &status["pending"]),
        (&json!("config_apply"), &json!(1), &json!(1))
    );
    let newest = admin.get("/api/admin/task/status").await;
    assert_eq!(
        (&newest["id"], &newest["done"]),
        (&second.body["task_id"], &json!(0))
    );
    assert_eq!(newest["message"], "under way: 0 of 2 done, 0 failed");
}

#[tokio::test]
async fn l41_a_task_that_is_cancelled_has_ended_and_the_wish_stays() {
    let admin = admin().await;
    let uid = admin.yard.find("alice").await.unwrap().uid;
    let started = admin.post(APPLY, &[]).await;
    let id = started.body["task_id"].as_str().unwrap();
    admin.seen(&uid, 2).await;
    let guarded = [("task_id", id), ("if_generation", "1")];
    let answer = admin.post("/api/admin/task/cancel", &guarded).await;
    assert_eq!(answer.verdict(), (400, "invalid_parameter"));
    let cancelled = admin
        .post("/api/admin/task/cancel", &[("task_id", id)])
        .await;
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    assert_eq!(cancelled.body["progress"]["cancelled"], 1);
    let status = admin
        .get(&format!("/api/admin/task/status?task_id={id}"))
        .await;
    assert_eq!(
        (&status["done"], &status["cancelled"], &status["pending"]),
        (&json!(1), &json!(1), &json!(0))
    );
    assert_eq!(
        status["message"],
        "cancelled: 1 of 2 done, 0 failed, 1 cancelled"
    );
    assert!(status["finished_at"].is_string());
    let tasks = admin.get("/api/admin/tasks").await;
    let result = &tasks["tasks"][0]["results"][0];
    assert_eq!(result["object"], "agent-config/bob");
    assert_eq!(result["message"], schema::operation::CANCELLED);
    assert_eq!(admin.dirty().await.len(), 1, "it still is wanted");
    let again = admin
        .post("/api/admin/task/cancel", &[("task_id", id)])
        .await;
    assert_eq!(again.verdict(), (409, "wrong_state"));
}

#[tokio::test]
async fn with_nobody_there_is_nothing_to_do() {
    let admin = admin().await;
    for name in ["alice", "bob"] {
        let uid = admin.yard.find(name).await.unwrap().uid;
        let mut tx = admin.yard.tx().await;
        user::delete(&mut tx, &uid, crate::testing::NOW)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
    let answer = admin.post(APPLY, &[]).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.body["total"]),
        (200, &json!(0))
    );
    assert_eq!(answer.body.get("task_id"), None);
    assert_eq!(admin.get("/api/admin/task/status").await["message"], "idle");
}
