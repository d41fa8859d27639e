//! Adapter packages in the database, on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use schema::adapter::Adapter;
use schema::adapter::store::{self, Activation, AdapterFacts, Installed, Source};
use schema::config::history::SavedBy;
use schema::error::DbError;
use schema::ids::{Kind, Timestamp, Uid};
use schema::object;

use crate::support::{Yard, on_both_databases};

on_both_databases!(
    what_is_stored_reads_back_as_it_was,
    the_base_is_in_effect_until_somebody_brings_another,
    l47_an_uploaded_adapter_outlives_a_start_with_another_base,
    an_uploaded_adapter_that_equals_the_base_is_not_replaced_by_the_next_base,
    a_new_base_replaces_the_old_one_and_leaves_what_was_before_alone,
    what_is_in_effect_already_changes_nothing,
    rolling_back_twice_goes_back_and_forth,
    the_source_brings_only_what_is_newer_and_not_left,
    only_the_active_the_previous_and_the_base_are_kept,
    another_adapter_bumps_all_that_is_made_by_it,
    what_is_remembered_of_the_source_is_read_back,
);

const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);

fn builtin(name: &str) -> Adapter {
    Adapter::builtin(name).unwrap().unwrap()
}

/// The echo package with another version, and therefore another digest.
fn version(version: &str) -> Adapter {
    let mut files = builtin("echo").files().clone();
    let mut index: serde_json::Value = serde_json::from_str(&files["index.json"]).unwrap();
    index["adapter_version"] = version.into();
    files.insert("index.json".to_owned(), index.to_string());
    crate::support::repack(&mut files);
    Adapter::from_stored(&serde_json::to_string(&files).unwrap()).unwrap()
}

async fn start(yard: &Yard, base: &Adapter) -> bool {
    let mut tx = yard.db.begin().await.unwrap();
    let changed = store::ensure_base(
        &mut tx,
        base,
        SavedBy {
            actor: "admin",
            at: NOW,
        },
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    changed
}

async fn bring(yard: &Yard, adapter: &Adapter, source: Source) -> store::Activated {
    let mut tx = yard.db.begin().await.unwrap();
    let activated = store::activate(
        &mut tx,
        adapter,
        source,
        SavedBy {
            actor: "admin",
            at: NOW,
        },
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    activated
}

async fn roll_back(yard: &Yard) -> Result<i64, DbError> {
    let mut tx = yard.db.begin().await.unwrap();
    let generation = store::roll_back(
        &mut tx,
        SavedBy {
            actor: "admin",
            at: NOW,
        },
    )
    .await?;
    tx.commit().await.unwrap();
    Ok(generation.generation)
}

async fn active(yard: &Yard) -> (i64, String) {
    let mut connection = yard.db.read().await.unwrap();
    let (generation, adapter) = store::active(&mut connection).await.unwrap();
    (
        generation,
        adapter.index.adapter_version.as_str().to_owned(),
    )
}

async fn known(yard: &Yard) -> Vec<(String, Source, bool, bool)> {
    let mut connection = yard.db.read().await.unwrap();
    let mut known: Vec<_> = store::known(&mut connection)
        .await
        .unwrap()
        .into_iter()
        .map(|known| (known.version, known.source, known.active, known.previous))
        .collect();
    known.sort_by(|a, b| a.0.cmp(&b.0));
    known
}

async fn what_is_stored_reads_back_as_it_was(yard: Yard) {
    let mut connection = yard.db.read().await.unwrap();
    let none = store::active(&mut connection).await.unwrap_err();
    assert!(matches!(none, DbError::NotFound(_)), "{none:?}");
    drop(connection);
    let adapter = builtin("picoclaw");
    assert!(start(&yard, &adapter).await);
    let mut connection = yard.db.read().await.unwrap();
    let (generation, read) = store::active(&mut connection).await.unwrap();
    assert_eq!(read, adapter);
    assert_eq!(
        generation,
        store::generation(&mut connection).await.unwrap()
    );
}

async fn the_base_is_in_effect_until_somebody_brings_another(yard: Yard) {
    assert!(start(&yard, &version("1.0")).await);
    assert!(!start(&yard, &version("1.0")).await);
    assert_eq!(active(&yard).await, (2, "1.0".to_owned()));
    let mut connection = yard.db.read().await.unwrap();
    let object = object::get(&mut connection, Kind::Adapter, &store::object_uid()).await;
    assert_eq!(object.unwrap().unwrap().name, "active");
    drop(connection);
    assert!(bring(&yard, &version("0.5"), Source::Upload).await.changed);
    assert_eq!(active(&yard).await, (3, "0.5".to_owned()));
}

async fn l47_an_uploaded_adapter_outlives_a_start_with_another_base(yard: Yard) {
    start(&yard, &version("1.0")).await;
    bring(&yard, &version("0.5"), Source::Upload).await;
    assert!(!start(&yard, &version("1.0")).await);
    assert!(!start(&yard, &version("9.0")).await);
    assert_eq!(active(&yard).await, (3, "0.5".to_owned()));
    bring(&yard, &version("2.0"), Source::Refresh).await;
    assert!(!start(&yard, &version("9.1")).await);
    assert_eq!(active(&yard).await, (4, "2.0".to_owned()));
}

async fn an_uploaded_adapter_that_equals_the_base_is_not_replaced_by_the_next_base(yard: Yard) {
    start(&yard, &version("1.0")).await;
    assert!(!bring(&yard, &version("1.0"), Source::Upload).await.changed);
    assert!(!start(&yard, &version("2.0")).await);
    assert_eq!(active(&yard).await, (2, "1.0".to_owned()));
}

async fn a_new_base_replaces_the_old_one_and_leaves_what_was_before_alone(yard: Yard) {
    start(&yard, &version("1.0")).await;
    bring(&yard, &version("5.0"), Source::Upload).await;
    roll_back(&yard).await.unwrap();
    assert_eq!(active(&yard).await.1, "1.0");
    assert!(start(&yard, &version("1.1")).await);
    assert_eq!(
        known(&yard).await,
        [
            ("1.1".to_owned(), Source::Base, true, false),
            ("5.0".to_owned(), Source::Upload, false, true),
        ]
    );
    // A start with what was there before swaps the two.
    assert!(start(&yard, &version("5.0")).await);
    assert_eq!(
        known(&yard).await,
        [
            ("1.1".to_owned(), Source::Base, false, true),
            ("5.0".to_owned(), Source::Upload, true, false),
        ]
    );
}

async fn what_is_in_effect_already_changes_nothing(yard: Yard) {
    start(&yard, &version("1.0")).await;
    let first = bring(&yard, &version("2.0"), Source::Upload).await;
    let second = bring(&yard, &version("2.0"), Source::Upload).await;
    assert!(first.changed && !second.changed);
    assert_eq!(first.generation, second.generation);
    roll_back(&yard).await.unwrap();
    assert_eq!(active(&yard).await.1, "1.0");
}

async fn rolling_back_twice_goes_back_and_forth(yard: Yard) {
    start(&yard, &version("1.0")).await;
    let refused = roll_back(&yard).await.unwrap_err();
    assert!(matches!(refused, DbError::WrongState(_)), "{refused:?}");
    bring(&yard, &version("2.0"), Source::Upload).await;
    for (generation, expected) in [(4, "1.0"), (5, "2.0"), (6, "1.0")] {
        assert_eq!(roll_back(&yard).await.unwrap(), generation);
        assert_eq!(active(&yard).await, (generation, expected.to_owned()));
    }
}

async fn only_the_active_the_previous_and_the_base_are_kept(yard: Yard) {
    start(&yard, &version("1.0")).await;
    for next in ["2.0", "3.0", "4.0"] {
        bring(&yard, &version(next), Source::Upload).await;
    }
    assert_eq!(
        known(&yard).await,
        [
            ("1.0".to_owned(), Source::Base, false, false),
            ("3.0".to_owned(), Source::Upload, false, true),
            ("4.0".to_owned(), Source::Upload, true, false),
        ]
    );
    start(&yard, &version("1.1")).await;
    assert_eq!(known(&yard).await[0].0, "1.1");
    assert_eq!(known(&yard).await.len(), 3);
}

async fn another_adapter_bumps_all_that_is_made_by_it(yard: Yard) {
    start(&yard, &version("1.0")).await;
    let uid = crate::support::user(&yard, "alice").await;
    let of = async |kind: Kind, uid: &Uid| {
        let mut connection = yard.db.read().await.unwrap();
        let object = object::get(&mut connection, kind, uid).await.unwrap();
        object.unwrap().generation.0
    };
    let adapter = store::object_uid();
    let kinds = [
        (Kind::AgentConfig, &uid),
        (Kind::Container, &uid),
        (Kind::User, &uid),
        (Kind::Adapter, &adapter),
    ];
    for (kind, uid) in kinds {
        assert_eq!(of(kind, uid).await, 1, "{kind}");
    }
    let mut bell = yard.db.bell();
    bring(&yard, &version("2.0"), Source::Upload).await;
    bell.rung().await.unwrap();
    for (kind, uid) in kinds {
        assert_eq!(of(kind, uid).await, 2, "{kind}");
    }
    // Many at once: whoever waits for something else comes first.
    let mut connection = yard.db.read().await.unwrap();
    let dirty = object::dirty(&mut connection, Kind::Container).await;
    assert!(dirty.unwrap().iter().all(|dirty| dirty.generation.0 == 2));
    drop(connection);
    bring(&yard, &version("2.0"), Source::Upload).await;
    assert_eq!(of(Kind::Container, &uid).await, 2);
}

async fn what_is_remembered_of_the_source_is_read_back(yard: Yard) {
    start(&yard, &version("1.0")).await;
    let mut tx = yard.db.begin().await.unwrap();
    assert_eq!(
        store::facts(&mut tx).await.unwrap(),
        AdapterFacts::default()
    );
    assert_eq!(
        store::request_refresh(&mut tx, "token", None)
            .await
            .unwrap()
            .0,
        2
    );
    let facts = AdapterFacts {
        source_url: "https://example.test/adapter.zip".to_owned(),
        etag: Some("\"1\"".to_owned()),
        last_modified: Some("Sat, 01 Jan 2000 00:00:00 GMT".to_owned()),
        seen_generation: Some(2),
        offered: Some("2.0".to_owned()),
        invalid: Some("index.json is wrong".to_owned()),
        update_changes: Some("command".to_owned()),
        checked_at: Some(NOW),
        refresh_token: "token".to_owned(),
    };
    store::save_facts(&mut tx, &facts).await.unwrap();
    assert_eq!(store::facts(&mut tx).await.unwrap(), facts);
    assert_eq!(store::state(&mut tx).await.unwrap().refresh_token, "token");
}

async fn the_source_brings_only_what_is_newer_and_not_left(yard: Yard) {
    start(&yard, &version("1.10")).await;
    let install = async |adapter: &Adapter, activation: Activation| {
        let mut tx = yard.db.begin().await.unwrap();
        let installed = store::install(
            &mut tx,
            adapter,
            activation,
            SavedBy {
                actor: "admin",
                at: NOW,
            },
        )
        .await;
        tx.commit().await.unwrap();
        installed.unwrap()
    };
    for (offered, expected) in [
        ("1.9", Installed::NotNewer),
        ("1.10", Installed::NotNewer),
        ("1.10.0", Installed::NotNewer),
        ("1.11", Installed::Newer),
    ] {
        assert_eq!(
            install(&version(offered), Activation::Requested).await,
            expected,
            "{offered}"
        );
    }
    roll_back(&yard).await.unwrap();
    assert_eq!(
        install(&version("1.11"), Activation::Automatic).await,
        Installed::LeftBefore
    );
    let left = install(&version("1.11"), Activation::Manual).await;
    assert_eq!(left, Installed::LeftBefore);
    assert_eq!(active(&yard).await.1, "1.10");
    let waits = install(&version("1.12"), Activation::Manual).await;
    assert_eq!(waits, Installed::Waits);
    assert_eq!(active(&yard).await.1, "1.10");
    for activation in [Activation::Automatic, Activation::Requested] {
        let installed = install(&version("1.12"), activation).await;
        assert_eq!(installed, Installed::Newer);
        roll_back(&yard).await.unwrap();
    }
    install(&version("1.12"), Activation::Requested).await;
    assert_eq!(active(&yard).await.1, "1.12");
}
