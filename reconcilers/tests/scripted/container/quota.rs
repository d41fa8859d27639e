//! Tests of agents that write beyond the quota, and of their containers.

use std::fs;
use std::time::Duration;

use schema::condition::{ConditionStatus, Reason};
use schema::object;
use schema::usage::{self, object_uid};
use serde_json::json;

use super::support::{Yard, reason};
use kit::pass::pass;

impl Yard {
    /// Passes of the usage reconciler until it has nothing to do, after this time.
    async fn measure_after(&self, time: Duration) {
        self.clock.advance(time);
        for _ in 0..5 {
            let (usage, key) = (&self.service.usage, object_uid());
            let passed = pass(usage, &key, self.now(), &mut None, async || {}).await;
            if passed.unwrap().unwrap().acted == 0 {
                return;
            }
        }
        panic!("it never comes to an end");
    }
}

#[tokio::test]
async fn agent_beyond_the_quota_is_stopped_until_it_takes_less() {
    let mut yard = Yard::new().await;
    let mut tx = yard.db.begin().await.unwrap();
    object::ensure_singles(&mut tx, yard.now()).await.unwrap();
    tx.commit().await.unwrap();
    let uid = yard.create_user("alice").await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    let status = object::StatusRow {
        observed_generation: schema::ids::Generation(1),
        ..object::StatusRow::default()
    };
    let mut tx = yard.db.begin().await.unwrap();
    let (kind, epoch) = (schema::ids::Kind::User, schema::ids::Epoch(1));
    object::save_status(&mut tx, kind, &uid, &status, epoch)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    yard.configure("files.quota_mb", json!(1)).await;
    yard.measure_after(Duration::ZERO).await;

    // Beside the workspace, without a request.
    let home = yard.dir.path().join("users/alice");
    let file = home.join("cache");
    fs::write(&file, vec![b'x'; 2 << 20]).unwrap();
    yard.measure_after(usage::WITH_QUOTA + Duration::from_secs(1))
        .await;
    yard.bell(&uid);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running, "warn");
    yard.configure("files.quota_action", json!("stop")).await;
    yard.measure_after(Duration::ZERO).await;
    yard.bell(&uid);
    let stopped = yard.settled(&uid).await.unwrap();
    let said = (stopped.status, stopped.reason);
    assert_eq!(said, (ConditionStatus::False, Reason::QuotaExceeded));
    let note =
        "2 of 1 MiB (files.quota_mb) are used; uploads are refused, and the agent is stopped";
    assert_eq!((yard.names(), stopped.message.as_str()), (vec![], note));
    yard.assert_nothing_to_do(&uid).await;

    // Unknown is not empty.
    let away = home.with_file_name("away");
    fs::rename(&home, &away).unwrap();
    yard.measure_after(Duration::from_secs(24 * 3600)).await;
    let mut connection = yard.db.read().await.unwrap();
    let known = usage::get(&mut connection, &uid).await.unwrap().unwrap();
    drop(connection);
    assert!(known.problem.is_some(), "{known:?}");
    assert!(!yard.row(&uid).await.unwrap().desired_running());

    fs::rename(&away, &home).unwrap();
    fs::remove_file(&file).unwrap();
    yard.measure_after(usage::RETRY).await;
    yard.bell(&uid);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
}
