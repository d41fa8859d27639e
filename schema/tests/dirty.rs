//! What reconcilers find when they ask what has changed, on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use schema::condition::{Condition, Reason};
use schema::db::Backend;
use schema::ids::{Epoch, Generation, Kind, Uid};
use schema::object::{self, StatusRow};
use sqlx::{AssertSqlSafe, Row};

use crate::support::{Yard, on_both_databases, user};

on_both_databases!(
    a_read_finds_what_has_changed_since_the_one_before,
    a_change_that_is_committed_late_is_found,
    a_history_that_was_put_back_is_read_from_its_beginning,
    reading_costs_what_has_changed_and_not_what_exists,
);

async fn read(yard: &Yard, since: Option<i64>) -> (Vec<Uid>, i64) {
    let mut connection = yard.db.read().await.unwrap();
    let read = object::dirty_since(&mut connection, Kind::Container, since).await;
    let (dirty, through) = read.unwrap();
    let mut uids: Vec<Uid> = dirty.into_iter().map(|dirty| dirty.uid).collect();
    uids.sort();
    (uids, through)
}

async fn bump(yard: &Yard, uid: &Uid) {
    let mut tx = yard.db.begin().await.unwrap();
    object::bump(&mut tx, Kind::Container, uid, None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

async fn observed(yard: &Yard, uid: &Uid, generation: i64) {
    let status = StatusRow {
        observed_generation: Generation(generation),
        conditions: vec![Condition::ready(Reason::Running, "")],
        ..StatusRow::default()
    };
    let mut tx = yard.db.begin().await.unwrap();
    object::save_status(&mut tx, Kind::Container, uid, &status, Epoch(1))
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

async fn a_read_finds_what_has_changed_since_the_one_before(yard: Yard) {
    let (ada, bob) = (user(&yard, "ada").await, user(&yard, "bob").await);
    let mut both = vec![ada.clone(), bob.clone()];
    both.sort();
    let (found, first) = read(&yard, None).await;
    assert_eq!(found, both);
    assert_eq!(read(&yard, Some(first)).await, (vec![], first));
    bump(&yard, &ada).await;
    let (found, second) = read(&yard, Some(first)).await;
    assert_eq!(found, std::slice::from_ref(&ada), "only what has changed");
    assert_eq!(read(&yard, None).await.0, both, "nothing is lost by a read");
    observed(&yard, &ada, 2).await;
    assert_eq!(read(&yard, Some(first)).await.0, [], "it was observed");
    let mut tx = yard.db.begin().await.unwrap();
    object::bump_all(&mut tx, Kind::Container).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(read(&yard, Some(second)).await.0, both);
}

async fn a_change_that_is_committed_late_is_found(yard: Yard) {
    let (ada, bob) = (user(&yard, "ada").await, user(&yard, "bob").await);
    let (_, since) = read(&yard, None).await;
    let mut late = yard.db.begin().await.unwrap();
    object::bump(&mut late, Kind::Container, &ada, None)
        .await
        .unwrap();
    // On SQLite one transaction writes at a time.
    let through = if matches!(yard.backend, Backend::Postgres(_)) {
        bump(&yard, &bob).await;
        let (found, through) = read(&yard, Some(since)).await;
        assert_eq!(found, [bob]);
        through
    } else {
        read(&yard, Some(since)).await.1
    };
    late.commit().await.unwrap();
    assert_eq!(read(&yard, Some(through)).await.0, [ada]);
}

async fn a_history_that_was_put_back_is_read_from_its_beginning(yard: Yard) {
    let ada = user(&yard, "ada").await;
    let (_, through) = read(&yard, None).await;
    assert_eq!(read(&yard, Some(through + 9)).await, (vec![ada], through));
}

/// The plan of a statement, as the database explains it.
async fn explain(yard: &Yard, name: &str) -> String {
    let all = schema::statement::all();
    let (_, text) = all.iter().find(|(of, _)| *of == name).unwrap();
    let explain = match yard.backend {
        Backend::Sqlite(_) => "EXPLAIN QUERY PLAN",
        Backend::Postgres(_) => "EXPLAIN",
    };
    let text = text.replace("$1", "'container'").replace("$2", "990");
    let mut tx = yard.db.begin().await.unwrap();
    if matches!(yard.backend, Backend::Postgres(_)) {
        // It would rather read all of a small table: asked is whether it could do without.
        sqlx::query("SET LOCAL enable_seqscan = off")
            .execute(tx.raw())
            .await
            .unwrap();
    }
    let rows = sqlx::query(AssertSqlSafe(format!("{explain} {text}")))
        .fetch_all(tx.raw())
        .await
        .unwrap();
    let column = match yard.backend {
        Backend::Sqlite(_) => "detail",
        Backend::Postgres(_) => "QUERY PLAN",
    };
    let lines: Vec<String> = rows.iter().map(|row| row.get(column)).collect();
    lines.join("\n")
}

async fn reading_costs_what_has_changed_and_not_what_exists(yard: Yard) {
    let mut tx = yard.db.begin().await.unwrap();
    for number in 0..1000 {
        let uid = Uid::from(format!("{number:032x}"));
        let now = schema::ids::Timestamp::from_secs(1_778_500_000);
        object::insert(&mut tx, Kind::Container, &uid, &uid.to_string(), now)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
    for (name, index) in [
        ("DIRTY_SINCE", "changes_version"),
        ("PAUSED_UIDS", "objects_paused"),
    ] {
        let plan = explain(&yard, name).await;
        assert!(plan.contains(index), "{name}:\n{plan}");
        let scans = plan
            .lines()
            .any(|line| line.contains("SCAN") || line.contains("Seq Scan"));
        assert!(!scans, "{name}:\n{plan}");
    }
}
