//! What watchers are told, on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use schema::change::{self, Change, Filter, News, Position};
use schema::condition::{Condition, Reason};
use schema::config::history::SavedBy;
use schema::config::{Changes, query as config};
use schema::container::{self, Desired};
use schema::db::{Backend, Db, Tx};
use schema::ids::{Epoch, Generation, Kind, Timestamp, Uid};
use schema::meta;
use schema::object::{self, StatusRow};
use schema::user;

use crate::support::{Yard, on_both_databases};

on_both_databases!(
    each_write_that_watchers_are_told_of_is_one_change,
    what_is_rolled_back_or_says_nothing_new_is_no_change,
    a_change_is_the_present_state_of_its_object,
    one_statement_changes_all_of_a_kind,
    changes_come_in_pages_and_by_object,
    purged_objects_are_told_until_they_are_forgotten,
    a_position_of_elsewhere_or_of_the_future_has_no_history,
    versions_become_visible_in_their_order,
    transactions_that_change_the_same_objects_do_not_block_each_other_for_ever,
);

const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);
const LIMIT: u16 = 1000;

async fn position(yard: &Yard) -> Position {
    let mut connection = yard.db.snapshot().await.unwrap();
    change::position(&mut connection).await.unwrap()
}

async fn news(yard: &Yard, since: &Position, filter: &Filter, limit: u16) -> News {
    let mut connection = yard.db.snapshot().await.unwrap();
    let news = change::after(&mut connection, since, filter, limit).await;
    news.unwrap()
}

async fn changes(yard: &Yard, since: &Position) -> Vec<Change> {
    match news(yard, since, &Filter::default(), LIMIT).await {
        News::Changes { changes, .. } => changes,
        News::Resync(position) => panic!("history is gone; present: {position}"),
    }
}

fn told(changes: &[Change]) -> Vec<(&str, i64, &str)> {
    changes
        .iter()
        .map(|change| {
            (
                change.object.as_str(),
                change.generation.0,
                change.status.as_str(),
            )
        })
        .collect()
}

async fn saw(tx: &mut Tx, kind: Kind, uid: &Uid, generation: i64, said: Condition) {
    let status = StatusRow {
        observed_generation: Generation(generation),
        conditions: vec![said],
        ..StatusRow::default()
    };
    let saved = object::save_status(tx, kind, uid, &status, Epoch(1)).await;
    assert!(saved.unwrap());
}

async fn each_write_that_watchers_are_told_of_is_one_change(yard: Yard) {
    let mut since = position(&yard).await;
    let uid = crate::support::user(&yard, "alice").await;
    let mut expect = async |what: &str, expected: &[(&str, i64, &str)]| {
        let changes = changes(&yard, &since).await;
        assert_eq!(told(&changes), expected, "{what}");
        let versions: Vec<i64> = changes.iter().map(|change| change.version).collect();
        assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
        since = since.at(*versions.last().unwrap());
        assert_eq!(self::changes(&yard, &since).await, [], "told once");
    };
    let both = |generation, word| {
        [
            ("container/alice", generation, word),
            ("user/alice", 1, word),
        ]
    };
    let created = [
        ("container/alice", 1, "starting"),
        ("user/alice", 1, "starting"),
        ("agent-config/alice", 1, "unknown"),
        ("skill-set/alice", 1, "unknown"),
    ];
    expect("created", &created).await;
    let mut bell = yard.db.changes();
    bell.listen();

    let mut tx = yard.db.begin().await.unwrap();
    container::set_desired(&mut tx, &uid, Desired::Stopped, false, None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    bell.rung().await.unwrap();
    expect("stopped", &both(2, "stopping")).await;

    let mut tx = yard.db.begin().await.unwrap();
    saw(
        &mut tx,
        Kind::Container,
        &uid,
        2,
        Condition::ready(Reason::Stopped, ""),
    )
    .await;
    tx.commit().await.unwrap();
    expect("status", &both(2, "stopped")).await;

    let mut tx = yard.db.begin().await.unwrap();
    saw(
        &mut tx,
        Kind::User,
        &uid,
        1,
        Condition::ready(Reason::Converged, ""),
    )
    .await;
    tx.commit().await.unwrap();
    expect("status of the user", &[("user/alice", 1, "stopped")]).await;

    let mut tx = yard.db.begin().await.unwrap();
    object::set_paused(&mut tx, Kind::Container, &uid, true, None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    expect("paused", &both(3, "stopping")).await;

    let mut tx = yard.db.begin().await.unwrap();
    user::set_disabled(&mut tx, &uid, true, None).await.unwrap();
    container::set_limits(&mut tx, &uid, Some(1.0), None, None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    expect("two changes in one transaction", &both(5, "stopping")).await;

    let mut tx = yard.db.begin().await.unwrap();
    user::delete(&mut tx, &uid, NOW).await.unwrap();
    tx.commit().await.unwrap();
    expect(
        "deleted",
        &[
            ("container/alice", 6, "deleting"),
            ("user/alice", 2, "deleting"),
            ("agent-config/alice", 2, "unknown"),
            ("skill-set/alice", 2, "unknown"),
        ],
    )
    .await;

    let mut tx = yard.db.begin().await.unwrap();
    assert!(container::purge(&mut tx, &uid).await.unwrap());
    tx.commit().await.unwrap();
    expect("container purged", &[("container/alice", 6, "deleted")]).await;
    let mut tx = yard.db.begin().await.unwrap();
    assert!(user::purge(&mut tx, &uid).await.unwrap());
    tx.commit().await.unwrap();
    let purged = [
        ("user/alice", 2, "deleted"),
        ("agent-config/alice", 2, "deleted"),
        ("skill-set/alice", 2, "deleted"),
    ];
    expect("user purged", &purged).await;
}

async fn what_is_rolled_back_or_says_nothing_new_is_no_change(yard: Yard) {
    let uid = crate::support::user(&yard, "alice").await;
    let since = position(&yard).await;
    let mut tx = yard.db.begin().await.unwrap();
    container::set_desired(&mut tx, &uid, Desired::Stopped, false, None)
        .await
        .unwrap();
    drop(tx);
    let mut tx = yard.db.begin().await.unwrap();
    object::add_finalizer(&mut tx, Kind::Container, &uid, "container")
        .await
        .unwrap();
    let stale = StatusRow::default();
    let nobody = Uid::random();
    let saved = object::save_status(&mut tx, Kind::Container, &nobody, &stale, Epoch(1)).await;
    assert!(!saved.unwrap());
    tx.commit().await.unwrap();
    assert_eq!(position(&yard).await, since);
    assert!(yard.dir.path().exists());
}

async fn a_change_is_the_present_state_of_its_object(yard: Yard) {
    let since = position(&yard).await;
    let uid = crate::support::user(&yard, "alice").await;
    let mut tx = yard.db.begin().await.unwrap();
    object::insert(&mut tx, Kind::Engine, &config::engine_uid(), "local", NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    for (condition, ready, word, engine) in [
        (
            Condition::ready(Reason::Running, "up"),
            "True",
            "running",
            "ready",
        ),
        (
            Condition::not_ready(Reason::NotReady, ""),
            "False",
            "starting",
            "not_ready",
        ),
        (
            Condition::not_ready(Reason::ImageMissing, ""),
            "False",
            "failed",
            "not_ready",
        ),
        (
            Condition::unknown(Reason::EngineUnavailable, ""),
            "Unknown",
            "unknown",
            "unknown",
        ),
    ] {
        let mut tx = yard.db.begin().await.unwrap();
        saw(&mut tx, Kind::Container, &uid, 1, condition.clone()).await;
        saw(
            &mut tx,
            Kind::Engine,
            &config::engine_uid(),
            1,
            condition.clone(),
        )
        .await;
        tx.commit().await.unwrap();
        // Read from before the creation: everything in between is one change.
        let changes = changes(&yard, &since).await;
        let mut words: Vec<_> = told(&changes);
        words.sort_unstable();
        assert_eq!(
            words,
            [
                ("agent-config/alice", 1, "unknown"),
                ("container/alice", 1, word),
                ("engine/local", 1, engine),
                ("skill-set/alice", 1, "unknown"),
                ("user/alice", 1, word)
            ]
        );
        let container = changes.iter().find(|c| c.kind == "container").unwrap();
        assert_eq!(
            (
                container.ready.as_str(),
                container.reason.as_str(),
                &container.uid
            ),
            (ready, condition.reason.as_str(), &uid)
        );
        assert_eq!(container.observed_generation, Generation(1));
        // The listing of users has the same word.
        let mut connection = yard.db.read().await.unwrap();
        let (users, _) = user::list(&mut connection, "", 10, 0).await.unwrap();
        let listed = container::status_word(true, false, users[0].generation, &users[0].status);
        assert_eq!(listed.to_string(), word);
    }
    let told = serde_json::to_value(&changes(&yard, &since).await[0]).unwrap();
    let fields: Vec<&str> = told
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        fields,
        [
            "generation",
            "object",
            "observed_generation",
            "ready",
            "reason",
            "status",
            "uid"
        ]
    );
}

const BY: SavedBy<'static> = SavedBy {
    actor: "root",
    at: NOW,
};

async fn one_statement_changes_all_of_a_kind(yard: Yard) {
    let alice = crate::support::user(&yard, "alice").await;
    crate::support::user(&yard, "bob").await;
    let gone = crate::support::user(&yard, "carol").await;
    let since = position(&yard).await;
    let mut tx = yard.db.begin().await.unwrap();
    user::delete(&mut tx, &gone, NOW).await.unwrap();
    let value = Some(serde_json::json!(512));
    let changed = Changes([("container.pids_limit", value)].into());
    config::save(&mut tx, &yard.key, &changed, None, BY)
        .await
        .unwrap();
    container::set_desired(&mut tx, &alice, Desired::Stopped, false, None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let changes = changes(&yard, &since).await;
    let mut told = told(&changes);
    told.sort_unstable();
    assert_eq!(
        told,
        [
            ("agent-config/carol", 2, "unknown"),
            ("container/alice", 3, "stopping"),
            ("container/bob", 2, "starting"),
            ("container/carol", 2, "deleting"),
            ("skill-set/carol", 2, "unknown"),
            ("user/alice", 1, "stopping"),
            ("user/bob", 1, "starting"),
            ("user/carol", 2, "deleting"),
        ]
    );
    let newest = changes.iter().map(|change| change.version).max().unwrap();
    assert_eq!(position(&yard).await.version, newest);
}

async fn changes_come_in_pages_and_by_object(yard: Yard) {
    let since = position(&yard).await;
    for name in ["Alice", "bob", "carol"] {
        crate::support::user(&yard, name).await;
    }
    let (mut at, mut seen, mut pages) = (since.clone(), Vec::new(), 0);
    loop {
        let News::Changes {
            changes,
            through,
            more,
        } = news(&yard, &at, &Filter::default(), 4).await
        else {
            panic!("history is gone");
        };
        seen.extend(changes.into_iter().map(|change| change.object));
        at = at.at(through);
        pages += 1;
        if !more {
            break;
        }
    }
    assert_eq!((seen.len(), pages), (12, 4));
    assert_eq!(at, position(&yard).await);
    for (filter, expected) in [
        (
            Filter::object(Kind::Container, "aLICE"),
            vec!["container/Alice"],
        ),
        (Filter::object(Kind::Engine, "alice"), vec![]),
        (
            Filter {
                kind: Some(Kind::User),
                ..Filter::default()
            },
            vec!["user/Alice", "user/bob", "user/carol"],
        ),
    ] {
        let News::Changes {
            changes,
            through,
            more,
        } = news(&yard, &since, &filter, LIMIT).await
        else {
            panic!("history is gone");
        };
        let objects: Vec<&str> = changes.iter().map(|c| c.object.as_str()).collect();
        assert_eq!(objects, expected);
        // Whoever reads a part of it has seen that there is nothing else of that part.
        assert_eq!((through, more), (at.version, false));
        assert!(changes.iter().all(|change| filter.takes(change)));
        let all = self::changes(&yard, &since).await;
        assert_eq!(
            all.iter().filter(|c| filter.takes(c)).count(),
            expected.len()
        );
    }
}

async fn purge(yard: &Yard, uid: &Uid, asked_at: Timestamp) {
    let mut tx = yard.db.begin().await.unwrap();
    user::delete(&mut tx, uid, asked_at).await.unwrap();
    assert!(container::purge(&mut tx, uid).await.unwrap());
    assert!(user::purge(&mut tx, uid).await.unwrap());
    tx.commit().await.unwrap();
}

async fn prune(yard: &Yard, kept: i64, oldest: Timestamp) -> u64 {
    let mut tx = yard.db.begin().await.unwrap();
    let forgotten = change::prune(&mut tx, kept, oldest).await.unwrap();
    tx.commit().await.unwrap();
    forgotten
}

async fn purged_objects_are_told_until_they_are_forgotten(yard: Yard) {
    let begin = position(&yard).await;
    for (name, day) in [("alice", 0), ("bob", 1), ("carol", 2)] {
        let uid = crate::support::user(&yard, name).await;
        purge(&yard, &uid, NOW.plus(Duration::from_secs(day * 86_400))).await;
    }
    let all = changes(&yard, &begin).await;
    assert_eq!(all.len(), 12);
    assert!(all.iter().all(|change| change.status == "deleted"));
    assert_eq!(
        (all[0].ready.as_str(), all[0].reason.as_str()),
        ("False", "")
    );
    crate::support::user(&yard, "dave").await;
    assert_eq!(
        prune(&yard, 12, NOW).await,
        0,
        "neither too many nor too old"
    );
    assert_eq!(changes(&yard, &begin).await.len(), 16);

    assert_eq!(prune(&yard, 11, NOW).await, 1, "one too many");
    let present = position(&yard).await;
    assert_eq!(
        news(&yard, &begin, &Filter::default(), LIMIT).await,
        News::Resync(present.clone())
    );
    let seen = begin.at(all[0].version);
    assert_eq!(
        changes(&yard, &seen).await.len(),
        15,
        "who has seen it goes on"
    );

    let oldest = NOW.plus(Duration::from_secs(2 * 86_400));
    assert_eq!(prune(&yard, 100, oldest).await, 7, "too old");
    assert_eq!(
        news(&yard, &seen, &Filter::default(), LIMIT).await,
        News::Resync(present)
    );
    let seen = begin.at(all[7].version);
    assert_eq!(changes(&yard, &seen).await.len(), 8);
    // Objects that are there are never forgotten.
    assert_eq!(prune(&yard, 0, oldest).await, 4);
    assert_eq!(prune(&yard, 0, oldest).await, 0);
    let seen = begin.at(all[11].version);
    assert_eq!(changes(&yard, &seen).await.len(), 4);
}

async fn a_position_of_elsewhere_or_of_the_future_has_no_history(yard: Yard) {
    let mut tx = yard.db.begin().await.unwrap();
    let (instance, _) = meta::ensure_instance_id(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    crate::support::user(&yard, "alice").await;
    let present = position(&yard).await;
    assert_eq!(present.instance, instance);
    let elsewhere = Position {
        instance: "other".to_owned(),
        ..present.clone()
    };
    for unknown in [elsewhere, present.at(present.version + 1)] {
        let news = news(&yard, &unknown, &Filter::default(), LIMIT).await;
        assert_eq!(news, News::Resync(present.clone()));
    }
    assert_eq!(changes(&yard, &present).await, []);
}

async fn versions_become_visible_in_their_order(yard: Yard) {
    let mut uids = Vec::new();
    for n in 0..4 {
        uids.push(crate::support::user(&yard, &format!("user{n}")).await);
    }
    let begin = position(&yard).await;
    const ROUNDS: usize = 25;
    // Another server of this database writes, where there can be one.
    let writer = match yard.backend {
        Backend::Sqlite(_) => yard.db.clone(),
        Backend::Postgres(_) => Db::open(yard.backend.clone()).await.unwrap(),
    };
    let write = async |uid: &Uid| {
        for round in 0..ROUNDS {
            let mut tx = writer.begin().await.unwrap();
            let desired = [Desired::Running, Desired::Stopped][round % 2];
            container::set_desired(&mut tx, uid, desired, false, None)
                .await
                .unwrap();
            // Commits come in another order than the first statements.
            tokio::time::sleep(Duration::from_millis(
                (uid.as_str().len() + round) as u64 % 3,
            ))
            .await;
            tx.commit().await.unwrap();
        }
    };
    // One reader goes on from what it has seen; in the end it knows the last state of everything.
    let read = async {
        let (mut at, mut seen) = (begin.clone(), std::collections::BTreeMap::new());
        loop {
            let News::Changes {
                changes, through, ..
            } = news(&yard, &at, &Filter::default(), LIMIT).await
            else {
                panic!("history is gone");
            };
            at = at.at(through);
            for change in changes
                .into_iter()
                .filter(|change| change.kind == "container")
            {
                seen.insert(change.uid, change.generation);
            }
            let last = Generation(1 + ROUNDS as i64);
            if seen.len() == uids.len() && seen.values().all(|generation| *generation == last) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let writers = async {
        tokio::join!(
            write(&uids[0]),
            write(&uids[1]),
            write(&uids[2]),
            write(&uids[3])
        )
    };
    let both = async { tokio::join!(writers, read) };
    tokio::time::timeout(Duration::from_secs(300), both)
        .await
        .expect("the reader missed a change");
}

async fn transactions_that_change_the_same_objects_do_not_block_each_other_for_ever(yard: Yard) {
    let mut uids = Vec::new();
    for n in 0..3 {
        uids.push(crate::support::user(&yard, &format!("user{n}")).await);
    }
    let write = async |n: usize| {
        for round in 0..10 {
            let mut tx = yard.db.begin().await.unwrap();
            // Each transaction changes several objects, always in one order, as handlers do; the
            // shared row must not add a second order.
            if n == 0 {
                object::bump_all(&mut tx, Kind::Container).await.unwrap();
            } else {
                let uid = &uids[(n + round) % 3];
                object::bump(&mut tx, Kind::Container, uid, None)
                    .await
                    .unwrap();
                object::bump(&mut tx, Kind::User, uid, None).await.unwrap();
            }
            tx.commit().await.unwrap();
        }
    };
    let writers = async { tokio::join!(write(0), write(1), write(2), write(3)) };
    tokio::time::timeout(Duration::from_secs(300), writers)
        .await
        .expect("they wait for each other");
    let mut connection = yard.db.snapshot().await.unwrap();
    let rows = object::statuses(&mut connection, Kind::User).await.unwrap();
    assert!(rows.iter().map(|row| row.generation.0).sum::<i64>() > 3);
}
