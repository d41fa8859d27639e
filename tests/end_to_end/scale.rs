//! Two hundred users (ten thousand in the long run) on the engine in memory, through the whole service:
//! the cost of standing still does not grow with their number.

use std::sync::Arc;

use kit::engine::FakeEngine;
use schema::clock::SystemClock;
use schema::container::Desired;

use crate::in_process::InProcess;
use crate::support::client::{Client, Target};
use crate::support::long;

#[tokio::test(flavor = "multi_thread")]
async fn l60_many_users_cost_a_constant_number_of_engine_calls() {
    let users = if long() { 10_000 } else { 200 };
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeEngine::new(Arc::new(SystemClock));
    fake.add_image("echo:1");
    let engine = || fake.clone();
    let service = InProcess::start_in(dir.path(), engine()).await;
    let uids = service.create_users(users, Desired::Stopped).await;
    // Nothing in memory could answer a readiness check, and debug mode asks for none.
    service.set_all(&uids, Desired::Running, true).await;
    service.all_ready(users).await;
    assert_eq!(fake.running().len(), users);
    service.resync().await;

    fake.reset_calls();
    for _ in 0..3 {
        service.resync().await;
    }
    let calls = fake.calls();
    assert_eq!(calls.writes(), 0, "{calls:?}");
    assert!(calls.reads() <= 3 * 12, "a resync costs {calls:?}");
    service.stop().await;

    fake.reset_calls();
    let service = InProcess::start_in(dir.path(), engine()).await;
    service.all_ready(users).await;
    service.resync().await;
    let calls = fake.calls();
    // The probe of the data directory is one container, whatever the number of users.
    assert!(calls.writes() <= 2, "{calls:?}");
    assert!(calls.reads() <= 40, "a start costs {calls:?}");

    let admin = Client::new(Target::Unix(dir.path().join("admin.sock")));
    fake.reset_calls();
    let page = admin.get("/api/admin/users?page_size=50").await.expect(200);
    assert_eq!(page["users"].as_array().unwrap().len(), 50);
    assert_eq!(page["total"], users);
    assert_eq!(fake.calls().reads(), 0, "a listing asks the database only");
    let metrics = Client::new(Target::Tcp(service.service.metrics.unwrap()));
    let text = metrics.get("/metrics").await.text();
    let line = format!("agentyard_objects{{kind=\"container\",ready=\"true\"}} {users}");
    assert!(text.contains(&line), "{text}");
    assert_eq!(fake.calls().reads(), 0, "a scrape does not ask the engine");
    service.stop().await;
}
