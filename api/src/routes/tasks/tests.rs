use schema::condition::{Condition, Reason};
use schema::ids::{Generation, Kind, Uid};
use serde_json::{Value, json};

use super::*;
use crate::routes::test_support::{Yard, yard};
use crate::testing::NOW;

async fn operation(yard: &Yard, uids: &[Uid]) -> String {
    let objects: Vec<_> = uids
        .iter()
        .map(|uid| (Kind::Container, uid.clone(), uid.to_string(), Generation(1)))
        .collect();
    let mut tx = yard.world.db.begin().await.unwrap();
    let id = operation::create(&mut tx, "batch_create", "root", &objects, NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    id
}

#[tokio::test]
async fn without_any_operation_the_status_is_idle() {
    let yard = yard().await;
    let expected = json!({
        "id": "", "type": "", "total": 0, "done": 0, "failed": 0, "cancelled": 0, "running": 0, "pending": 0,
        "message": "idle", "started_at": null, "finished_at": null,
    });
    assert_eq!(yard.get("/api/admin/task/status").await.is(200), expected);
    let unknown = yard.get("/api/admin/task/status?task_id=x").await;
    unknown.fails(404, "not_found");
    let tasks = yard.get("/api/admin/tasks").await.is(200);
    assert_eq!(
        (&tasks["tasks"], &tasks["page_size"]),
        (&json!([]), &json!(20))
    );
}

#[tokio::test]
async fn l41_progress_is_what_the_objects_say() {
    let yard = yard().await;
    let uids = [yard.user("alice").await, yard.user("bob").await];
    let id = operation(&yard, &uids).await;
    let mut running = Condition::ready(Reason::Running, "");
    running.last_transition_at = NOW.plus(std::time::Duration::from_secs(5));
    yard.saw(Kind::Container, &uids[0], 1, running).await;
    let status = yard.get("/api/admin/task/status").await.is(200);
    assert_eq!(
        (&status["id"], &status["type"]),
        (&json!(id), &json!("batch_create"))
    );
    assert_eq!(
        (&status["total"], &status["done"], &status["pending"]),
        (&json!(2), &json!(1), &json!(1))
    );
    assert_eq!(status["finished_at"], Value::Null);
    let failed = Condition::not_ready(Reason::ImageMissing, "no such image");
    yard.saw(Kind::Container, &uids[1], 1, failed).await;
    let status = yard
        .get(&format!("/api/admin/task/status?task_id={id}"))
        .await
        .is(200);
    assert_eq!(status["message"], "finished: 1 of 2 done, 1 failed");
    let finished = NOW.plus(std::time::Duration::from_secs(5)).to_rfc3339();
    assert_eq!(status["finished_at"], finished);
}

#[tokio::test]
async fn l60_operations_come_in_pages_with_failures_first() {
    let yard = yard().await;
    let uids = [yard.user("alice").await, yard.user("bob").await];
    let failed = Condition::not_ready(Reason::ImageMissing, "no such image");
    yard.saw(Kind::Container, &uids[1], 1, failed).await;
    let first = operation(&yard, &uids).await;
    let second = operation(&yard, &uids[..1]).await;
    let tasks = yard.get("/api/admin/tasks").await.is(200);
    assert_eq!(
        (&tasks["tasks"][0]["id"], &tasks["tasks"][1]["id"]),
        (&json!(second), &json!(first))
    );
    let results = &tasks["tasks"][1]["results"];
    assert_eq!(
        (&results[0]["object"], &results[0]["state"]),
        (&json!("container/bob"), &json!("failed"))
    );
    assert_eq!(
        (&tasks["tasks"][1]["actor"], &tasks["total"]),
        (&json!("root"), &json!(2))
    );
    let last = yard
        .get("/api/admin/tasks?page=7&page_size=1")
        .await
        .is(200);
    assert_eq!(
        (&last["page"], &last["tasks"][0]["id"]),
        (&json!(2), &json!(first))
    );
}

#[tokio::test]
async fn an_operation_over_many_objects_shows_the_most_urgent() {
    let yard = yard().await;
    let shown = usize::try_from(MAX_RESULTS).unwrap();
    let uids: Vec<Uid> = (0..=shown).map(|n| Uid::from(format!("gone{n}"))).collect();
    let last = yard.user("zoe").await;
    let failed = Condition::not_ready(Reason::ImageMissing, "no such image");
    yard.saw(Kind::Container, &last, 1, failed).await;
    operation(&yard, &[uids, vec![last]].concat()).await;
    let tasks = yard.get("/api/admin/tasks").await.is(200);
    let task = &tasks["tasks"][0];
    assert_eq!(task["results"].as_array().unwrap().len(), shown);
    assert_eq!(
        (&task["results_truncated"], &task["total"], &task["done"]),
        (&json!(true), &json!(shown + 2), &json!(shown + 1))
    );
    assert_eq!(task["results"][0]["object"], "container/zoe");
}
