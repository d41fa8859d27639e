//! What users set up of their own agents, on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use schema::adapter::Adapter;
use schema::adapter::store::{self, Source as Origin};
use schema::agent_config::{self, KeptFiles, UserValues};
use schema::config::history::SavedBy;
use schema::config::{self, Changes};
use schema::container;
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::object;
use schema::user;
use secrecy::ExposeSecret;
use serde_json::json;

use crate::support::{Yard, on_both_databases};

on_both_databases!(
    saves_of_one_channel_at_once_lose_nothing,
    a_save_and_changes_for_everybody_do_not_wait_in_a_circle,
    cookies_are_stored_by_domain,
    l6_the_next_bearer_of_a_name_has_nothing_of_the_last,
    files_of_before_a_migration_are_kept_sealed_until_the_account_goes,
);

const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);

/// What a save does: container and files first, so that another one waits, then what was there.
async fn save(yard: &Yard, uid: &Uid, field: &str) {
    let mut tx = yard.db.begin().await.unwrap();
    container::request_fresh(&mut tx, uid, field, None)
        .await
        .unwrap();
    object::bump(&mut tx, Kind::AgentConfig, uid, None)
        .await
        .unwrap();
    let mut values = agent_config::channel_values(&mut tx, &yard.key, uid, "chat")
        .await
        .unwrap();
    values.insert(field.to_owned(), json!(field));
    agent_config::set_channel_values(&mut tx, &yard.key, uid, "chat", &values, NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

async fn stored(yard: &Yard, uid: &Uid) -> UserValues {
    let mut connection = yard.db.read().await.unwrap();
    agent_config::values(&mut connection, &yard.key, uid)
        .await
        .unwrap()
}

async fn saves_of_one_channel_at_once_lose_nothing(yard: Yard) {
    let uid = crate::support::user(&yard, "alice").await;
    let fields: Vec<String> = (0..20).map(|at| format!("f{at}")).collect();
    let saves = async |fields: &[String]| {
        for field in fields {
            save(&yard, &uid, field).await;
        }
    };
    let (some, others) = fields.split_at(10);
    let (a, b) = some.split_at(5);
    let (c, d) = others.split_at(5);
    tokio::join!(saves(a), saves(b), saves(c), saves(d));
    let expected: BTreeMap<_, _> = fields
        .iter()
        .map(|field| (field.clone(), json!(field)))
        .collect();
    assert_eq!(stored(&yard, &uid).await.channels["chat"], expected);
    let mut connection = yard.db.read().await.unwrap();
    for kind in [Kind::AgentConfig, Kind::Container] {
        let object = object::get(&mut connection, kind, &uid).await.unwrap();
        assert_eq!(object.unwrap().generation.0, 21, "{kind}");
    }
}

/// Whoever changes containers and files takes the container first.
async fn a_save_and_changes_for_everybody_do_not_wait_in_a_circle(yard: Yard) {
    let uid = crate::support::user(&yard, "alice").await;
    for at in 0..20 {
        crate::support::user(&yard, &format!("u{at}")).await;
    }
    let saving = async {
        for at in 0..60 {
            save(&yard, &uid, &format!("f{at}")).await;
        }
    };
    let configuring = async {
        for at in 0..30 {
            let mut tx = yard.db.begin().await.unwrap();
            config::query::lock(&mut tx).await.unwrap();
            let agent = json!({"n": at});
            let limit = json!(1000 + at);
            let changes = Changes(BTreeMap::from([
                ("agent", Some(agent)),
                ("container.pids_limit", Some(limit)),
            ]));
            let by = SavedBy {
                actor: "admin",
                at: NOW,
            };
            config::query::save(&mut tx, &yard.key, &changes, None, by)
                .await
                .unwrap();
            tx.commit().await.unwrap();
        }
    };
    let activating = async {
        let adapters = ["echo", "picoclaw"].map(|name| Adapter::builtin(name).unwrap().unwrap());
        for at in 0..30 {
            let mut tx = yard.db.begin().await.unwrap();
            store::activate(
                &mut tx,
                &adapters[at % 2],
                Origin::Upload,
                SavedBy {
                    actor: "admin",
                    at: NOW,
                },
            )
            .await
            .unwrap();
            tx.commit().await.unwrap();
        }
    };
    tokio::join!(saving, configuring, activating);
    assert_eq!(stored(&yard, &uid).await.channels["chat"].len(), 60);
}

async fn cookies_are_stored_by_domain(yard: Yard) {
    let uid = crate::support::user(&yard, "alice").await;
    let other = crate::support::user(&yard, "bob").await;
    let mut tx = yard.db.begin().await.unwrap();
    for (uid, domain, value) in [
        (&uid, "example.com", "a=1"),
        (&uid, ".example.com", "a=2"),
        (&uid, "example.com", "a=3; ü=4"),
        (&other, "example.com", "b=1"),
    ] {
        let value = value.into();
        agent_config::set_cookies(&mut tx, &yard.key, uid, domain, &value, NOW)
            .await
            .unwrap();
    }
    let none = agent_config::delete_cookies(&mut tx, &uid, "nowhere.example").await;
    assert_eq!(none.unwrap(), None);
    tx.commit().await.unwrap();
    let mut connection = yard.db.read().await.unwrap();
    let cookies = agent_config::cookies(&mut connection, &yard.key, &uid).await;
    let cookies = cookies.unwrap();
    let told: BTreeMap<_, _> = cookies
        .iter()
        .map(|cookie| (&*cookie.domain, cookie.value.expose_secret()))
        .collect();
    assert_eq!(
        told,
        [(".example.com", "a=2"), ("example.com", "a=3; ü=4")].into()
    );
    let listed = agent_config::list_cookies(&mut connection, &uid).await;
    assert!(listed.unwrap().iter().all(|(_, at)| *at == NOW));
}

async fn kept(yard: &Yard, uid: &Uid) -> Option<KeptFiles> {
    let mut connection = yard.db.read().await.unwrap();
    agent_config::kept_files(&mut connection, &yard.key, uid)
        .await
        .unwrap()
}

async fn files_of_before_a_migration_are_kept_sealed_until_the_account_goes(yard: Yard) {
    let uid = crate::support::user(&yard, "alice").await;
    let other = crate::support::user(&yard, "bob").await;
    assert_eq!(kept(&yard, &uid).await, None);
    // As long as files may be, and in no particular encoding.
    let long = vec![0xfe; 2 << 20];
    let files = |config_version| KeptFiles {
        generation: Generation(3),
        config_version,
        applied: None,
        config: Some(long.clone()),
        security: Some(b"hunter2".to_vec()),
    };
    let keep = async |uid: &Uid, files: &KeptFiles| {
        let mut tx = yard.db.begin().await.unwrap();
        agent_config::keep_files(&mut tx, &yard.key, uid, files)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    };
    keep(&uid, &files(1)).await;
    keep(&uid, &files(2)).await;
    assert_eq!(kept(&yard, &uid).await, Some(files(2)));
    assert_eq!(kept(&yard, &other).await, None);
    let mut tx = yard.db.begin().await.unwrap();
    user::delete(&mut tx, &uid, NOW).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(kept(&yard, &uid).await, None);
    // A pass that was under way comes too late.
    keep(&uid, &files(2)).await;
    keep(&Uid::random(), &files(2)).await;
    assert_eq!(kept(&yard, &uid).await, None);
}

async fn l6_the_next_bearer_of_a_name_has_nothing_of_the_last(yard: Yard) {
    let uid = crate::support::user(&yard, "alice").await;
    save(&yard, &uid, "client_id").await;
    let mut tx = yard.db.begin().await.unwrap();
    let value = "a=1".into();
    agent_config::set_cookies(&mut tx, &yard.key, &uid, "a.example", &value, NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let mut tx = yard.db.begin().await.unwrap();
    user::delete(&mut tx, &uid, NOW).await.unwrap();
    tx.commit().await.unwrap();
    assert!(stored(&yard, &uid).await == UserValues::default());
    let mut tx = yard.db.begin().await.unwrap();
    assert!(container::purge(&mut tx, &uid).await.unwrap());
    assert!(user::purge(&mut tx, &uid).await.unwrap());
    tx.commit().await.unwrap();
    let next = crate::support::user(&yard, "alice").await;
    assert!(stored(&yard, &next).await == UserValues::default());
}
