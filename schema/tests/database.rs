//! The database layer, on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use schema::condition::{Condition, Reason};
use schema::config::flags::AgentFlags;
use schema::config::history::SavedBy;
use schema::config::{Changes, query as config};
use schema::container::{self, ContainerEnd, ContainerFacts, Desired, StatusWord};
use schema::db::Backend;
use schema::error::DbError;
use schema::ids::{Epoch, Generation, Kind, Timestamp, Uid, UserName};
use schema::object::{self, Dirty, StatusRow};
use schema::replica::{Owner, PlaceKey, ReplicaTable};
use schema::session;
use schema::user::{self, ImageFilter, NewUser, Role, Source, UserFilter, UserOrder, UserSort};
use schema::{event, lease, meta, operation};
use secrecy::SecretString;
use serde_json::json;
use sqlx::{Connection as _, Executor};

use crate::support::{Yard, on_both_databases};

on_both_databases!(
    every_statement_can_be_prepared,
    l10_names_differing_in_case_are_one_name,
    a_name_stays_taken_until_its_predecessor_is_purged,
    l12_deletion_is_one_transaction_and_ends_with_no_row,
    l9_two_superadmins_cannot_remove_each_other,
    l6_cookies_of_a_former_bearer_of_a_name_never_live_again,
    sessions_end_by_logout_password_and_disabling,
    l73_a_session_begins_at_the_next_free_second_from_now_wherever_the_clock_was,
    a_password_is_replaced_only_if_it_is_the_one_that_was_verified,
    changes_tell_how_many_containers_they_restart,
    the_network_is_in_use_while_a_container_is_or_shall_be,
    guarded_update_tells_stale_from_gone,
    status_never_moves_back,
    dirty_lists_what_no_pass_has_seen,
    secrets_are_sealed_and_come_back,
    configuration_bumps_what_it_is_part_of,
    two_writers_of_configuration_lose_nothing,
    repeated_events_are_one_event,
    events_are_found_by_what_they_say_even_when_their_object_is_gone,
    progress_is_computed_from_the_objects,
    search_treats_wildcards_as_text,
    users_are_filtered_and_ordered,
    facts_come_back_as_saved,
    three_newest_ends_of_a_container_are_kept,
    pausing_is_listed,
    pausing_is_one_change_of_the_generation_that_was_looked_at,
    commit_rings_the_bell_and_rollback_does_not,
);

const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);
const BY: SavedBy<'static> = SavedBy {
    actor: "root",
    at: NOW,
};

fn name(text: &str) -> UserName {
    text.parse().unwrap()
}

async fn create(yard: &Yard, text: &str) -> Result<Uid, DbError> {
    let uid = Uid::random();
    let mut tx = yard.db.begin().await.unwrap();
    let new = NewUser {
        uid: uid.clone(),
        name: name(text),
        source: Source::Local,
        password_hash: Some(SecretString::from("hash")),
        image_ref: "echo:1".to_owned(),
        desired: Desired::Running,
    };
    user::create(&mut tx, &new, NOW).await?;
    tx.commit().await?;
    Ok(uid)
}

async fn every_statement_can_be_prepared(yard: Yard) {
    let mut connection = yard.db.read().await.unwrap();
    let mut statements = schema::statement::all();
    if matches!(yard.backend, schema::db::Backend::Postgres(_)) {
        statements.extend(schema::statement::postgres_only());
    }
    assert!(statements.len() > 50);
    for (label, sql) in statements {
        if let Err(error) = connection
            .raw()
            .prepare(sqlx::SqlStr::from_static(sql))
            .await
        {
            panic!("{label}: {error}\n{sql}");
        }
    }
}

async fn l10_names_differing_in_case_are_one_name(yard: Yard) {
    create(&yard, "Alice").await.unwrap();
    assert!(matches!(
        create(&yard, "aLICE").await,
        Err(DbError::NameTaken)
    ));
    let mut tx = yard.db.begin().await.unwrap();
    let admin =
        user::create_superadmin(&mut tx, &name("ALICE"), &SecretString::from("h"), NOW).await;
    assert!(matches!(admin, Err(DbError::NameTaken)));
    drop(tx);
    // Two creations at the same moment: one wins, the other is told so, none fails otherwise.
    let (a, b) = tokio::join!(create(&yard, "bob"), create(&yard, "BOB"));
    assert!(a.is_ok() != b.is_ok());
    assert!(matches!(a.and(b), Err(DbError::NameTaken)));
}

async fn a_name_stays_taken_until_its_predecessor_is_purged(yard: Yard) {
    let uid = create(&yard, "alice").await.unwrap();
    let mut tx = yard.db.begin().await.unwrap();
    object::add_finalizer(&mut tx, Kind::Container, &uid, "container")
        .await
        .unwrap();
    object::add_finalizer(&mut tx, Kind::User, &uid, "user")
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let mut tx = yard.db.begin().await.unwrap();
    user::delete(&mut tx, &uid, NOW).await.unwrap();
    tx.commit().await.unwrap();
    assert!(matches!(
        create(&yard, "alice").await,
        Err(DbError::NameBeingRemoved)
    ));

    let mut tx = yard.db.begin().await.unwrap();
    assert!(!container::purge(&mut tx, &uid).await.unwrap());
    object::remove_finalizer(&mut tx, Kind::Container, &uid, "container")
        .await
        .unwrap();
    assert!(container::purge(&mut tx, &uid).await.unwrap());
    assert!(!user::purge(&mut tx, &uid).await.unwrap());
    object::remove_finalizer(&mut tx, Kind::User, &uid, "user")
        .await
        .unwrap();
    assert!(user::purge(&mut tx, &uid).await.unwrap());
    tx.commit().await.unwrap();
    let again = create(&yard, "alice").await.unwrap();
    assert_ne!(again, uid);
}

async fn l12_deletion_is_one_transaction_and_ends_with_no_row(yard: Yard) {
    let uid = create(&yard, "alice").await.unwrap();
    let mut tx = yard.db.begin().await.unwrap();
    user::delete(&mut tx, &uid, NOW).await.unwrap();
    drop(tx);
    let mut connection = yard.db.read().await.unwrap();
    let row = container::get(&mut connection, &uid)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(row.deleted_at, None);
    drop(connection);

    let mut tx = yard.db.begin().await.unwrap();
    user::delete(&mut tx, &uid, NOW).await.unwrap();
    assert!(matches!(
        user::delete(&mut tx, &uid, NOW).await,
        Err(DbError::NotFound(_))
    ));
    // A start that comes after the deletion brings nothing back (L13).
    let late = container::set_desired(&mut tx, &uid, Desired::Running, false, None).await;
    assert!(matches!(late, Err(DbError::NotFound(_))));
    assert!(container::purge(&mut tx, &uid).await.unwrap());
    assert!(user::purge(&mut tx, &uid).await.unwrap());
    tx.commit().await.unwrap();
    let mut connection = yard.db.read().await.unwrap();
    assert!(
        user::find(&mut connection, &name("alice"))
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        object::uids(&mut connection, Kind::User)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        object::uids(&mut connection, Kind::Container)
            .await
            .unwrap()
            .is_empty()
    );
}

async fn l9_two_superadmins_cannot_remove_each_other(yard: Yard) {
    let hash = SecretString::from("h");
    let remove = async |who: &str| -> Result<(), DbError> {
        let mut tx = yard.db.begin().await?;
        user::delete_superadmin(&mut tx, &name(who)).await?;
        tx.commit().await
    };
    for _ in 0..10 {
        let mut tx = yard.db.begin().await.unwrap();
        for who in ["a", "b"] {
            if user::find(&mut tx, &name(who)).await.unwrap().is_none() {
                user::create_superadmin(&mut tx, &name(who), &hash, NOW)
                    .await
                    .unwrap();
            }
        }
        tx.commit().await.unwrap();
        let (a, b) = tokio::join!(remove("a"), remove("b"));
        assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
        assert!(matches!(a.and(b), Err(DbError::LastSuperadmin)));
        let mut connection = yard.db.read().await.unwrap();
        assert_eq!(user::superadmin_count(&mut connection).await.unwrap(), 1);
    }
}

async fn l6_cookies_of_a_former_bearer_of_a_name_never_live_again(yard: Yard) {
    let mut seen = Vec::new();
    for _ in 0..3 {
        let uid = create(&yard, "alice").await.unwrap();
        for _ in 0..3 {
            let mut tx = yard.db.begin().await.unwrap();
            seen.push(
                session::issue(&mut tx, &uid, NOW, "127.0.0.1", "web")
                    .await
                    .unwrap(),
            );
            tx.commit().await.unwrap();
        }
        let mut tx = yard.db.begin().await.unwrap();
        user::delete(&mut tx, &uid, NOW).await.unwrap();
        assert!(container::purge(&mut tx, &uid).await.unwrap());
        assert!(user::purge(&mut tx, &uid).await.unwrap());
        tx.commit().await.unwrap();
    }
    let uid = create(&yard, "ALICE").await.unwrap();
    let mut tx = yard.db.begin().await.unwrap();
    let newest = session::issue(&mut tx, &uid, NOW, "127.0.0.1", "web")
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert!(!seen.contains(&newest));
    let mut connection = yard.db.read().await.unwrap();
    for old in seen {
        let live = session::find_live(&mut connection, &name("alice"), old)
            .await
            .unwrap();
        assert!(live.is_none());
    }
}

async fn sessions_end_by_logout_password_and_disabling(yard: Yard) {
    let uid = create(&yard, "alice").await.unwrap();
    let alice = name("alice");
    let mut tx = yard.db.begin().await.unwrap();
    let mut issued = Vec::new();
    for _ in 0..4 {
        issued.push(
            session::issue(&mut tx, &uid, NOW, "::1", "web")
                .await
                .unwrap(),
        );
    }
    assert_eq!(
        issued,
        [1_778_500_000, 1_778_500_001, 1_778_500_002, 1_778_500_003]
    );
    assert!(session::revoke(&mut tx, &uid, issued[0]).await.unwrap());
    assert!(!session::revoke(&mut tx, &uid, issued[0]).await.unwrap());
    let again = session::issue(&mut tx, &uid, NOW, "::1", "web")
        .await
        .unwrap();
    assert_eq!(
        again, 1_778_500_004,
        "a logged-out time is never issued again"
    );
    user::set_password(&mut tx, &uid, &SecretString::from("new"), Some(issued[1]))
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let mut connection = yard.db.read().await.unwrap();
    let live = session::find_live(&mut connection, &alice, issued[1])
        .await
        .unwrap()
        .unwrap();
    assert_eq!((live.role, live.uid), (Role::User, uid.clone()));
    assert!(live.initializing);
    for dead in [issued[0], issued[2], issued[3], again] {
        assert!(
            session::find_live(&mut connection, &alice, dead)
                .await
                .unwrap()
                .is_none()
        );
    }
    drop(connection);
    let mut tx = yard.db.begin().await.unwrap();
    user::set_disabled(&mut tx, &uid, true, None).await.unwrap();
    user::set_disabled(&mut tx, &uid, false, None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let mut connection = yard.db.read().await.unwrap();
    assert!(
        session::find_live(&mut connection, &alice, issued[1])
            .await
            .unwrap()
            .is_none()
    );
}

async fn l73_a_session_begins_at_the_next_free_second_from_now_wherever_the_clock_was(yard: Yard) {
    const DAYS: Duration = Duration::from_secs(3 * 24 * 60 * 60);
    let uid = create(&yard, "alice").await.unwrap();
    let issue = async |now: Timestamp| {
        let mut tx = yard.db.begin().await.unwrap();
        let issued = session::issue(&mut tx, &uid, now, "::1", "web").await;
        tx.commit().await.unwrap();
        issued
    };
    let live = async |issued_at: i64| {
        let mut connection = yard.db.read().await.unwrap();
        let live = session::find_live(&mut connection, &name("alice"), issued_at).await;
        live.unwrap().is_some()
    };
    let now = NOW.as_secs();
    assert_eq!(issue(NOW).await.unwrap(), now);
    let ahead = issue(NOW.plus(DAYS)).await.unwrap();
    assert_eq!(ahead, NOW.plus(DAYS).as_secs());
    assert!(live(ahead).await);
    // Set back: that session is forgotten, and what is taken stays taken.
    assert_eq!(issue(NOW).await.unwrap(), now + 1);
    assert!(!live(ahead).await && live(now).await);
    assert_eq!(
        issue(NOW.minus(DAYS)).await.unwrap(),
        now - 3 * 24 * 60 * 60
    );
    assert!(!live(now).await);
    assert_eq!(issue(NOW).await.unwrap(), now + 2);
    assert_eq!(issue(NOW.plus(DAYS)).await.unwrap(), ahead + 1);
    // So many that the next one would lie too far ahead.
    for second in 3..=60 {
        assert_eq!(issue(NOW).await.unwrap(), now + second);
    }
    assert!(matches!(issue(NOW).await, Err(DbError::TooManySessions)));
    let mut tx = yard.db.begin().await.unwrap();
    session::revoke_all(&mut tx, &uid, None).await.unwrap();
    tx.commit().await.unwrap();
    assert!(matches!(issue(NOW).await, Err(DbError::TooManySessions)));
    let next = NOW.plus(Duration::from_secs(1));
    assert_eq!(issue(next).await.unwrap(), now + 61);
}

async fn a_password_is_replaced_only_if_it_is_the_one_that_was_verified(yard: Yard) {
    let uid = create(&yard, "alice").await.unwrap();
    let mut tx = yard.db.begin().await.unwrap();
    for _ in 0..3 {
        session::issue(&mut tx, &uid, NOW, "", "web").await.unwrap();
    }
    let [old, new] = ["hash", "new"].map(SecretString::from);
    let mut replace = async |old, new| {
        let keep = NOW.as_secs();
        user::replace_password(&mut tx, &uid, old, new, keep)
            .await
            .unwrap()
    };
    assert_eq!(replace(&old, &new).await, Some(2));
    assert_eq!(replace(&old, &new).await, None);
    assert_eq!(replace(&new, &old).await, Some(0));
}

async fn changes_tell_how_many_containers_they_restart(yard: Yard) {
    let limited = create(&yard, "alice").await.unwrap();
    let stopped = create(&yard, "bob").await.unwrap();
    let leaving = create(&yard, "carol").await.unwrap();
    create(&yard, "dave").await.unwrap();
    let mut tx = yard.db.begin().await.unwrap();
    container::set_limits(&mut tx, &limited, None, Some(64), None)
        .await
        .unwrap();
    container::set_desired(&mut tx, &stopped, Desired::Stopped, false, None)
        .await
        .unwrap();
    user::delete(&mut tx, &leaving, NOW).await.unwrap();
    for (key, expected) in [
        ("container.pids_limit", 2),
        ("container.cpu_limit", 2),
        ("container.memory_limit_mb", 1),
        ("container.service_url", 2),
        ("agent", 2),
        ("security", 2),
        ("image.tag", 0),
    ] {
        let changes = changes(&[(key, json!(1))]);
        assert_eq!(
            config::restarts(&mut tx, &changes, 100).await.unwrap().0,
            expected,
            "{key}"
        );
    }
}

async fn the_network_is_in_use_while_a_container_is_or_shall_be(yard: Yard) {
    let uid = create(&yard, "alice").await.unwrap();
    let mut tx = yard.db.begin().await.unwrap();
    assert_eq!(container::count_on_network(&mut tx).await.unwrap(), 1);
    container::set_desired(&mut tx, &uid, Desired::Stopped, false, None)
        .await
        .unwrap();
    assert_eq!(container::count_on_network(&mut tx).await.unwrap(), 0);
    let facts = ContainerFacts {
        engine_id: Some("id".to_owned()),
        ..ContainerFacts::default()
    };
    container::save_facts(&mut tx, &uid, &facts).await.unwrap();
    assert_eq!(container::count_on_network(&mut tx).await.unwrap(), 1);
    // The engine object comes with the first start; saving does not depend on it.
    let subnet = changes(&[("container.network_subnet", json!("10.99.0.0/16"))]);
    config::save(&mut tx, &yard.key, &subnet, None, BY)
        .await
        .unwrap();
}

async fn guarded_update_tells_stale_from_gone(yard: Yard) {
    let uid = create(&yard, "alice").await.unwrap();
    let mut tx = yard.db.begin().await.unwrap();
    let two = container::set_desired(&mut tx, &uid, Desired::Stopped, false, Some(Generation(1)))
        .await
        .unwrap();
    assert_eq!(two, Generation(2));
    let stale =
        container::set_desired(&mut tx, &uid, Desired::Running, false, Some(Generation(1))).await;
    assert!(matches!(stale, Err(DbError::StaleGeneration { actual: 2 })));
    let gone = container::set_desired(&mut tx, &Uid::random(), Desired::Running, false, None).await;
    assert!(matches!(gone, Err(DbError::NotFound(_))));
}

async fn status_never_moves_back(yard: Yard) {
    let uid = create(&yard, "alice").await.unwrap();
    let status = |generation, reason| StatusRow {
        observed_generation: Generation(generation),
        conditions: vec![Condition::not_ready(reason, "because")],
        failures: 2,
        next_attempt_at: Some(NOW),
    };
    let mut tx = yard.db.begin().await.unwrap();
    let save = async |tx: &mut schema::db::Tx, generation, epoch, reason| {
        object::save_status(
            tx,
            Kind::Container,
            &uid,
            &status(generation, reason),
            Epoch(epoch),
        )
        .await
        .unwrap()
    };
    assert!(save(&mut tx, 2, 5, Reason::Progressing).await);
    assert!(
        !save(&mut tx, 1, 5, Reason::Failed).await,
        "older generation"
    );
    assert!(!save(&mut tx, 3, 4, Reason::Failed).await, "older epoch");
    assert!(save(&mut tx, 2, 6, Reason::NotReady).await);
    let row = object::get(&mut tx, Kind::Container, &uid)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(row.status, status(2, Reason::NotReady));
    let failed = status(1, Reason::Failed);
    let saved = object::save_status(&mut tx, Kind::Container, &Uid::random(), &failed, Epoch(9))
        .await
        .unwrap();
    assert!(!saved, "no status without its object");
}

async fn dirty_lists_what_no_pass_has_seen(yard: Yard) {
    let alice = create(&yard, "alice").await.unwrap();
    let bob = create(&yard, "bob").await.unwrap();
    let mut tx = yard.db.begin().await.unwrap();
    let dirty = object::dirty(&mut tx, Kind::Container).await.unwrap();
    let mut dirty: Vec<Uid> = dirty.into_iter().map(|object| object.uid).collect();
    dirty.sort();
    let mut both = vec![alice.clone(), bob.clone()];
    both.sort();
    assert_eq!(dirty, both);
    let seen = StatusRow {
        observed_generation: Generation(1),
        conditions: vec![Condition::ready(Reason::Running, "")],
        ..StatusRow::default()
    };
    object::save_status(&mut tx, Kind::Container, &alice, &seen, Epoch(1))
        .await
        .unwrap();
    assert_eq!(
        object::dirty(&mut tx, Kind::Container).await.unwrap(),
        [Dirty {
            uid: bob,
            generation: Generation(1),
            bulk: false
        }]
    );
    object::bump_all(&mut tx, Kind::Container).await.unwrap();
    assert_eq!(
        object::dirty(&mut tx, Kind::Container).await.unwrap().len(),
        2
    );
    let (page, total) = object::list(&mut tx, Some(Kind::Container), Some("True"), "LIC", 10, 0)
        .await
        .unwrap();
    assert_eq!((page.len(), total), (1, 1));
    assert_eq!(page[0].name, "alice");
    let counts = object::ready_counts(&mut tx).await.unwrap();
    assert_eq!(counts.iter().map(|c| c.n).sum::<i64>(), 8);
}

fn changes(list: &[(&'static str, serde_json::Value)]) -> Changes {
    Changes(
        list.iter()
            .map(|(key, value)| (*key, Some(value.clone())))
            .collect(),
    )
}

async fn secrets_are_sealed_and_come_back(yard: Yard) {
    let mut tx = yard.db.begin().await.unwrap();
    config::lock(&mut tx).await.unwrap();
    let before = config::generation(&mut tx).await.unwrap();
    let both = changes(&[
        ("image.registry_password", json!("0123456")),
        ("image.name", json!("echo")),
    ]);
    let after = config::save(&mut tx, &yard.key, &both, Some(before), BY)
        .await
        .unwrap();
    assert_eq!(after.generation, before + 1);
    let stale = config::save(&mut tx, &yard.key, &both, Some(before), BY).await;
    assert!(matches!(stale, Err(DbError::StaleGeneration { .. })));
    let secret = meta::ensure_session_secret(&mut tx, &yard.key)
        .await
        .unwrap();
    let again = meta::ensure_session_secret(&mut tx, &yard.key)
        .await
        .unwrap();
    assert_eq!(*secret, *again);
    let stored: Vec<(Option<String>, Option<Vec<u8>>)> = sqlx::query_as(
        "SELECT value, sealed FROM config_values WHERE key = 'image.registry_password'",
    )
    .fetch_all(tx.raw())
    .await
    .unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].0, None);
    let sealed = stored[0].1.clone().unwrap();
    assert!(!sealed.windows(7).any(|w| w == b"0123456"));
    tx.commit().await.unwrap();
    let mut connection = yard.db.read().await.unwrap();
    let (values, _) = config::load(&mut connection, &yard.key).await.unwrap();
    assert_eq!(values["image.registry_password"], json!("0123456"));
    assert_eq!(values["image.name"], json!("echo"));
}

async fn configuration_bumps_what_it_is_part_of(yard: Yard) {
    let uid = create(&yard, "alice").await.unwrap();
    let mut tx = yard.db.begin().await.unwrap();
    let save = async |tx: &mut schema::db::Tx, key| {
        let one = changes(&[(key, json!(512))]);
        config::save(tx, &yard.key, &one, None, BY).await.unwrap()
    };
    save(&mut tx, "files.quota_mb").await;
    let row = container::get(&mut tx, &uid).await.unwrap().unwrap();
    assert_eq!(row.generation, Generation(1));
    let generation = save(&mut tx, "container.memory_limit_mb").await;
    let row = container::get(&mut tx, &uid).await.unwrap().unwrap();
    assert_eq!(row.generation, Generation(2));
    assert_eq!(row.config_generation, generation.generation);
}

async fn two_writers_of_configuration_lose_nothing(yard: Yard) {
    let add = async |key: &'static str| -> Result<(), DbError> {
        let mut tx = yard.db.begin().await?;
        config::lock(&mut tx).await?;
        let (values, _) = config::load(&mut tx, &yard.key).await?;
        let count = values
            .get("files.quota_mb")
            .and_then(serde_json::Value::as_i64)
            .unwrap_or(0);
        let both = changes(&[("files.quota_mb", json!(count + 1)), (key, json!(1))]);
        config::save(&mut tx, &yard.key, &both, None, BY).await?;
        tx.commit().await
    };
    let (a, b, c) = tokio::join!(
        add("container.cpu_limit"),
        add("container.pids_limit"),
        add("container.memory_limit_mb")
    );
    a.and(b).and(c).unwrap();
    let mut connection = yard.db.read().await.unwrap();
    let (values, _) = config::load(&mut connection, &yard.key).await.unwrap();
    assert_eq!(values["files.quota_mb"], json!(3));
    assert_eq!(values.len(), 4);
}

async fn repeated_events_are_one_event(yard: Yard) {
    let uid = create(&yard, "alice").await.unwrap();
    let mut tx = yard.db.begin().await.unwrap();
    let record = async |tx: &mut schema::db::Tx, message: &str, at| {
        event::record(
            tx,
            Kind::Container,
            &uid,
            Reason::Exited,
            "Start",
            message,
            at,
        )
        .await
        .unwrap();
    };
    record(&mut tx, "exit code 1", NOW).await;
    record(&mut tx, "exit code 1", NOW.plus(Duration::from_secs(60))).await;
    record(&mut tx, "exit code 2", NOW.plus(Duration::from_secs(61))).await;
    record(&mut tx, "exit code 1", NOW.plus(Duration::from_secs(62))).await;
    record(&mut tx, "exit code 1", NOW.plus(Duration::from_secs(900))).await;
    record(
        &mut tx,
        &"ä".repeat(2000),
        NOW.plus(Duration::from_secs(901)),
    )
    .await;
    let events = event::list(&mut tx, Some(Kind::Container), Some(&uid), NOW, 100)
        .await
        .unwrap();
    assert_eq!(
        events.iter().map(|e| e.count).collect::<Vec<_>>(),
        [1, 1, 3, 1]
    );
    assert_eq!(events[0].message.len(), event::MAX_MESSAGE);
    let seconds = |count| NOW.plus(Duration::from_secs(count));
    let merged = (events[2].first_at, events[2].last_at);
    assert_eq!(merged, (NOW, seconds(62)), "whatever came between");
    assert_eq!(
        (events[3].object.as_str(), &events[3].uid),
        ("container/alice", &uid)
    );
    assert_eq!(event::prune(&mut tx, seconds(62)).await.unwrap(), 1);
}

async fn events_are_found_by_what_they_say_even_when_their_object_is_gone(yard: Yard) {
    let uid = create(&yard, "Alice").await.unwrap();
    create(&yard, "bob").await.unwrap();
    let mut tx = yard.db.begin().await.unwrap();
    user::delete(&mut tx, &uid, NOW).await.unwrap();
    container::purge(&mut tx, &uid).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = yard.db.begin().await.unwrap();
    // The step that purges an object is told after it.
    for (kind, reason, message) in [
        (Kind::Container, Reason::Progressing, "removed 100%"),
        (Kind::User, Reason::Progressing, "archived"),
        (Kind::User, Reason::StorageFull, "no space"),
    ] {
        event::record(&mut tx, kind, &uid, reason, "", message, NOW)
            .await
            .unwrap();
    }
    let mut found = async |filter: event::Filter, limit, offset| {
        let (events, total) = event::page(&mut tx, &filter, limit, offset).await.unwrap();
        let messages: Vec<_> = events.into_iter().map(|event| event.message).collect();
        (messages.join(","), total)
    };
    let all = event::Filter::default;
    let told = |messages: &str, total| (messages.to_owned(), total);
    assert_eq!(found(all(), 2, 1).await, told("archived,removed 100%", 3));
    let kind = Some(event::Subject::Object(Kind::Container));
    let name = Some("alicE".to_owned());
    let of_object = event::Filter {
        kind,
        name,
        ..all()
    };
    assert_eq!(found(of_object, 9, 0).await, told("removed 100%", 1));
    let user = Some("ALICE".to_owned());
    assert_eq!(found(event::Filter { user, ..all() }, 9, 0).await.1, 3);
    let user = Some("ali".to_owned());
    assert_eq!(found(event::Filter { user, ..all() }, 9, 0).await.1, 0);
    let reason = Some(Reason::StorageFull);
    assert_eq!(
        found(event::Filter { reason, ..all() }, 9, 0).await,
        told("no space", 1)
    );
    let since = NOW.plus(Duration::from_millis(1));
    assert_eq!(
        found(event::Filter { since, ..all() }, 9, 0).await,
        told("", 0)
    );
    for (search, expected) in [("0%", "removed 100%"), ("FULL", "no space"), ("bob", "")] {
        let search = search.to_owned();
        let (messages, _) = found(event::Filter { search, ..all() }, 9, 0).await;
        assert_eq!(messages, expected);
    }
}

/// PostgreSQL only: on SQLite a file lock decides.
#[tokio::test]
async fn on_postgres_one_holder_of_the_lease_at_a_time() {
    let yard = crate::support::postgres().await;
    let ttl = Duration::from_secs(15);
    let nothing = Duration::ZERO;
    let mut tx = yard.db.begin().await.unwrap();
    let one = lease::try_acquire(&mut tx, "a", ttl)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(lease::try_acquire(&mut tx, "b", ttl).await.unwrap(), None);
    assert!(lease::renew(&mut tx, "a", one, ttl).await.unwrap());
    assert_eq!(lease::try_acquire(&mut tx, "b", ttl).await.unwrap(), None);
    assert!(lease::renew(&mut tx, "a", one, nothing).await.unwrap());
    let two = lease::try_acquire(&mut tx, "b", ttl)
        .await
        .unwrap()
        .unwrap();
    assert!(two > one);
    assert!(!lease::renew(&mut tx, "a", one, ttl).await.unwrap());
    lease::release(&mut tx, "b", two).await.unwrap();
    let three = lease::try_acquire(&mut tx, "a", ttl)
        .await
        .unwrap()
        .unwrap();
    assert!(three > two);
}

/// PostgreSQL only: on SQLite one process serves.
#[tokio::test]
async fn on_postgres_a_place_has_one_replica_at_a_time() {
    let yard = crate::support::postgres().await;
    let table = ReplicaTable::of(&yard.db).unwrap();
    let join = async |table: &ReplicaTable, id: &str, address: &str| {
        table.join(id, address, id, &AgentFlags::default()).await
    };
    assert!(ReplicaTable::of(&crate::support::sqlite().await.db).is_none());
    let one = join(&table, "one", "http://a:1").await.unwrap();
    let two = join(&table, "two", "http://b:2").await.unwrap();
    assert_eq!((one.number, two.number), (1, 2));
    assert_eq!(table.live().await.unwrap(), [one.clone(), two.clone()]);
    let place = PlaceKey {
        user: Uid::random(),
        service: "browser".to_owned(),
    };
    assert_eq!(table.claim(&place, "one", None).await.unwrap(), Some(1));
    assert_eq!(table.claim(&place, "two", None).await.unwrap(), None);
    assert_eq!(table.claim(&place, "one", None).await.unwrap(), Some(2));
    // The place was taken again since this epoch: it is not given back.
    table.release(&place, "one", 1).await.unwrap();
    let owner = table.owner(&place).await.unwrap().unwrap();
    assert_eq!((&owner.replica, owner.epoch), (&one, 2));
    // One that cannot be reached loses it, unless it has moved meanwhile.
    let stale = Owner {
        epoch: 1,
        ..owner.clone()
    };
    let stolen = table.claim(&place, "two", Some(&stale)).await.unwrap();
    assert_eq!(stolen, None);
    let stolen = table.claim(&place, "two", Some(&owner)).await.unwrap();
    assert_eq!(stolen, Some(3));
    assert_eq!(table.epoch(&place, "one").await.unwrap(), None);
    assert_eq!(table.epoch(&place, "two").await.unwrap(), Some(3));
    assert!(!table.beat(&two).await.unwrap());

    // A dead one counts no longer, and is forgotten after a while.
    let age = async |millis: i64| {
        let Backend::Postgres(url) = &yard.backend else {
            panic!("PostgreSQL");
        };
        let mut server = sqlx::PgConnection::connect(url).await.unwrap();
        let aged = sqlx::query("UPDATE replicas SET seen_at = seen_at - $1 WHERE id = 'two'");
        aged.bind(millis).execute(&mut server).await.unwrap();
    };
    age(16_000).await;
    assert_eq!(table.live().await.unwrap(), std::slice::from_ref(&one));
    assert_eq!(table.owner(&place).await.unwrap(), None);
    age(60_000).await;
    assert!(!table.beat(&one).await.unwrap());
    assert_eq!(table.epoch(&place, "two").await.unwrap(), None);
    let three = join(&table, "three", "http://c:3").await.unwrap();
    assert_eq!(
        three.number, 3,
        "the number of one that sleeps is not given"
    );
    assert!(
        table.beat(&two).await.unwrap(),
        "it is told that it was removed"
    );
    assert_eq!(table.live().await.unwrap(), [one, two, three]);
    assert_eq!(table.claim(&place, "two", None).await.unwrap(), Some(1));
    table.leave("two").await.unwrap();
    assert_eq!(table.owner(&place).await.unwrap(), None);
}

async fn progress_is_computed_from_the_objects(yard: Yard) {
    let alice = create(&yard, "alice").await.unwrap();
    let bob = create(&yard, "bob").await.unwrap();
    let carol = create(&yard, "carol").await.unwrap();
    let mut tx = yard.db.begin().await.unwrap();
    let target = |uid: &Uid, n: &str| (Kind::Container, uid.clone(), n.to_owned(), Generation(1));
    let targets = [
        target(&alice, "alice"),
        target(&bob, "bob"),
        target(&carol, "carol"),
    ];
    let id = operation::create(&mut tx, "batch_create", "admin", &targets, NOW)
        .await
        .unwrap();
    let status = |condition| StatusRow {
        observed_generation: Generation(1),
        conditions: vec![condition],
        ..StatusRow::default()
    };
    let ready = status(Condition::ready(Reason::Running, ""));
    object::save_status(&mut tx, Kind::Container, &alice, &ready, Epoch(1))
        .await
        .unwrap();
    let failed = status(Condition::not_ready(Reason::ImageMissing, "no such image"));
    object::save_status(&mut tx, Kind::Container, &bob, &failed, Epoch(1))
        .await
        .unwrap();
    let operation = operation::get(&mut tx, &id).await.unwrap().unwrap();
    let targets = operation::targets(&mut tx, &operation, 9).await.unwrap();
    let progress = operation::count(&mut tx, &operation)
        .await
        .unwrap()
        .progress;
    assert_eq!(
        (
            progress.total,
            progress.done,
            progress.failed,
            progress.pending
        ),
        (3, 1, 1, 1)
    );
    assert_eq!(targets[0].message, "no such image", "the most urgent first");
    let (operations, total) = operation::list(&mut tx, 10, 0).await.unwrap();
    assert_eq!((operations[0].id.as_str(), total), (id.as_str(), 1));
    assert_eq!(operation::list(&mut tx, 10, 1).await.unwrap().0, []);
    assert!(operation::get(&mut tx, "nothing").await.unwrap().is_none());
}

async fn search_treats_wildcards_as_text(yard: Yard) {
    for n in ["a_b", "axb", "Alpha", "beta"] {
        create(&yard, n).await.unwrap();
    }
    let mut connection = yard.db.read().await.unwrap();
    let names = async |connection: &mut schema::reader::Connection, search: &str| {
        let (rows, total) = user::list(connection, search, 10, 0).await.unwrap();
        assert_eq!(rows.len() as i64, total);
        rows.into_iter().map(|r| r.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&mut connection, "A_B").await, ["a_b"]);
    assert_eq!(names(&mut connection, "%").await, Vec::<String>::new());
    assert_eq!(names(&mut connection, "PH").await, ["Alpha"]);
    assert_eq!(
        names(&mut connection, "").await,
        ["a_b", "Alpha", "axb", "beta"]
    );
    let (page, total) = user::list(&mut connection, "", 2, 2).await.unwrap();
    assert_eq!((page[0].name.as_str(), total), ("axb", 4));
}

async fn users_are_filtered_and_ordered(yard: Yard) {
    for n in ["alice", "bob", "carol"] {
        create(&yard, n).await.unwrap();
    }
    let mut tx = yard.db.begin().await.unwrap();
    let bob = user::find(&mut tx, &name("bob"))
        .await
        .unwrap()
        .unwrap()
        .uid;
    let failed = StatusRow {
        observed_generation: Generation(1),
        conditions: vec![Condition::not_ready(Reason::ImageMissing, "no such image")],
        ..StatusRow::default()
    };
    let saved = object::save_status(&mut tx, Kind::Container, &bob, &failed, Epoch(1));
    assert!(saved.await.unwrap());
    user::set_last_login(&mut tx, &bob, NOW, None)
        .await
        .unwrap();
    let present = user::listing(&mut tx, &bob)
        .await
        .unwrap()
        .unwrap()
        .image_ref;
    tx.commit().await.unwrap();
    let all = UserFilter::default;
    let image = |reference: &str| {
        let image = ImageFilter {
            reference: reference.to_owned(),
            id: "sha256:ab".to_owned(),
        };
        UserFilter {
            image: Some(image),
            ..all()
        }
    };
    let everybody = "alice bob carol";
    let mut connection = yard.db.read().await.unwrap();
    for (filter, expected) in [
        (all(), everybody),
        (UserFilter::search("B"), "bob"),
        (
            UserFilter {
                name: "a".to_owned(),
                ..all()
            },
            "alice carol",
        ),
        (
            UserFilter {
                ready: Some(true),
                ..all()
            },
            "",
        ),
        (
            UserFilter {
                ready: Some(false),
                ..all()
            },
            everybody,
        ),
        (
            UserFilter {
                status: Some(StatusWord::Failed),
                ..all()
            },
            "bob",
        ),
        (
            UserFilter {
                status: Some(StatusWord::Starting),
                ..all()
            },
            "alice carol",
        ),
        (
            UserFilter {
                reason: Some(Reason::ImageMissing),
                ..all()
            },
            "bob",
        ),
        (
            UserFilter {
                reason: Some(Reason::PausedByOperator),
                ..all()
            },
            "",
        ),
        (
            UserFilter {
                group: Some(Uid::random()),
                ..all()
            },
            "",
        ),
        (image(&present), everybody),
        (image("other:1"), ""),
        (
            UserFilter {
                source: Some(Source::Local),
                ..all()
            },
            everybody,
        ),
        (
            UserFilter {
                disabled: Some(true),
                ..all()
            },
            "",
        ),
        (
            UserFilter {
                disabled: Some(false),
                ..all()
            },
            everybody,
        ),
    ] {
        let order = UserOrder::default();
        let found = user::list_filtered(&mut connection, &filter, order, 9, 0).await;
        let (rows, total) = found.unwrap();
        let names: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names.join(" "), expected, "{filter:?}");
        assert_eq!(total, i64::try_from(rows.len()).unwrap());
        assert_eq!(user::count(&mut connection, &filter).await.unwrap(), total);
    }
    assert_eq!(user::count_unready(&mut connection).await.unwrap(), 3);
    for (by, descending, expected) in [
        (UserSort::Name, true, "carol bob"),
        (UserSort::Status, false, "bob alice"),
        (UserSort::Status, true, "alice carol"),
        (UserSort::Image, false, "alice bob"),
        (UserSort::CreatedAt, true, "alice bob"),
        (UserSort::LastLoginAt, false, "alice carol"),
        (UserSort::LastLoginAt, true, "bob alice"),
        (UserSort::Used, true, "alice bob"),
    ] {
        let order = UserOrder { by, descending };
        let found = user::list_filtered(&mut connection, &all(), order, 2, 0).await;
        let (rows, total) = found.unwrap();
        let names: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(
            (names.join(" "), total),
            (expected.to_owned(), 3),
            "{order:?}"
        );
    }
}

async fn three_newest_ends_of_a_container_are_kept(yard: Yard) {
    let (alice, bob) = (create(&yard, "alice").await, create(&yard, "bob").await);
    let (alice, bob) = (alice.unwrap(), bob.unwrap());
    let mut tx = yard.db.begin().await.unwrap();
    let end = |number: u64, cause: &str| ContainerEnd {
        at: NOW.plus(Duration::from_secs(number)),
        exit_code: (number > 1).then_some(1),
        cause: cause.to_owned(),
        log: "one\ntwo".to_owned(),
    };
    for (number, cause) in [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (4, "noted again")] {
        for uid in [&alice, &bob] {
            let end = end(number, cause);
            container::note_end(&mut tx, uid, &end).await.unwrap();
        }
    }
    let kept = [end(4, "noted again"), end(3, "c"), end(2, "b")];
    let ends = container::list_ends(&mut tx, &alice).await.unwrap();
    assert_eq!(ends, kept);
    container::note_end(&mut tx, &Uid::random(), &end(5, "nobody's"))
        .await
        .unwrap();
    user::delete(&mut tx, &alice, NOW).await.unwrap();
    assert!(container::purge(&mut tx, &alice).await.unwrap());
    assert_eq!(container::list_ends(&mut tx, &alice).await.unwrap(), []);
    assert_eq!(container::list_ends(&mut tx, &bob).await.unwrap(), kept);
}

async fn facts_come_back_as_saved(yard: Yard) {
    let uid = create(&yard, "alice").await.unwrap();
    let facts = ContainerFacts {
        engine_id: Some("abc".to_owned()),
        image_ref: Some("echo:1".to_owned()),
        image_id: Some("sha256:1".to_owned()),
        ip: Some("10.88.0.2".to_owned()),
        started_at: Some(NOW),
        ready_at: Some(NOW),
        crash_count: 3,
        crash_token: "t".to_owned(),
        last_exit_at: Some(NOW),
        last_exit_code: Some(137),
        last_exit_cause: Some("exit code 137, out of memory".to_owned()),
        failed_digest: Some("d".to_owned()),
        failed_at: Some(NOW),
        failed_count: 2,
        failure: Some("it exited".to_owned()),
        failure_log: Some("one\ntwo".to_owned()),
        image_digest: None,
    };
    let mut tx = yard.db.begin().await.unwrap();
    container::save_facts(&mut tx, &uid, &facts).await.unwrap();
    assert_eq!(
        container::get(&mut tx, &uid).await.unwrap().unwrap().facts,
        facts
    );
    container::save_facts(&mut tx, &uid, &ContainerFacts::default())
        .await
        .unwrap();
    assert_eq!(
        container::all(&mut tx).await.unwrap()[0].facts,
        ContainerFacts::default()
    );
    container::set_limits(&mut tx, &uid, Some(1.5), None, None)
        .await
        .unwrap();
    assert_eq!(
        container::get(&mut tx, &uid)
            .await
            .unwrap()
            .unwrap()
            .cpu_limit,
        Some(1.5)
    );
    container::save_facts(&mut tx, &Uid::random(), &facts)
        .await
        .unwrap();
}

async fn pausing_is_one_change_of_the_generation_that_was_looked_at(yard: Yard) {
    let uid = create(&yard, "alice").await.unwrap();
    let mut tx = yard.db.begin().await.unwrap();
    let kind = Kind::Container;
    let paused = object::set_paused(&mut tx, kind, &uid, true, Some(Generation(1))).await;
    assert_eq!(paused.unwrap(), Generation(2));
    let stale = object::set_paused(&mut tx, kind, &uid, false, Some(Generation(1))).await;
    assert!(
        matches!(stale, Err(DbError::StaleGeneration { actual: 2 })),
        "{stale:?}"
    );
    let row = object::get(&mut tx, kind, &uid).await.unwrap().unwrap();
    assert_eq!((row.paused, row.generation), (true, Generation(2)));
    let gone = object::set_paused(&mut tx, kind, &Uid::random(), true, Some(Generation(1))).await;
    assert!(matches!(gone, Err(DbError::NotFound(_))), "{gone:?}");
}

async fn pausing_is_listed(yard: Yard) {
    let uid = create(&yard, "alice").await.unwrap();
    let mut tx = yard.db.begin().await.unwrap();
    object::set_paused(&mut tx, Kind::Container, &uid, true, None)
        .await
        .unwrap();
    object::set_reconciler_paused(&mut tx, "container", true)
        .await
        .unwrap();
    object::set_reconciler_paused(&mut tx, "container", true)
        .await
        .unwrap();
    assert_eq!(
        object::paused_uids(&mut tx, Kind::Container).await.unwrap(),
        std::slice::from_ref(&uid)
    );
    assert_eq!(
        object::paused_reconcilers(&mut tx).await.unwrap(),
        ["container"]
    );
    object::set_reconciler_paused(&mut tx, "container", false)
        .await
        .unwrap();
    object::set_paused(&mut tx, Kind::Container, &uid, false, None)
        .await
        .unwrap();
    assert!(
        object::paused_uids(&mut tx, Kind::Container)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        object::paused_reconcilers(&mut tx)
            .await
            .unwrap()
            .is_empty()
    );
}

async fn commit_rings_the_bell_and_rollback_does_not(yard: Yard) {
    let mut bell = yard.db.bell();
    let uid = create(&yard, "alice").await.unwrap();
    bell.rung().await.unwrap();
    bell.listen();
    let mut tx = yard.db.begin().await.unwrap();
    container::set_desired(&mut tx, &uid, Desired::Stopped, false, None)
        .await
        .unwrap();
    drop(tx);
    let silence = tokio::time::timeout(Duration::from_millis(50), bell.rung()).await;
    assert!(silence.is_err());
    // A second process on the same database hears it too, where there can be one.
    if matches!(yard.backend, schema::db::Backend::Postgres(_)) {
        let other = schema::db::Db::open(yard.backend.clone()).await.unwrap();
        let mut heard = other.bell();
        #[allow(clippy::disallowed_methods)]
        let listener = tokio::spawn(async move { other.listen().await });
        tokio::time::timeout(Duration::from_secs(300), heard.rung())
            .await
            .unwrap()
            .unwrap();
        heard.listen();
        let mut tx = yard.db.begin().await.unwrap();
        container::set_desired(&mut tx, &uid, Desired::Stopped, false, None)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        tokio::time::timeout(Duration::from_secs(300), heard.rung())
            .await
            .unwrap()
            .unwrap();
        listener.abort();
    }
    assert!(yard.dir.path().exists());
}
