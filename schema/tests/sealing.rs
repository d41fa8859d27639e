//! Whatever documents mask is sealed at rest, on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use schema::adapter::SecretPaths;
use schema::config::history::{self, Access, SavedBy};
use schema::config::{Changes, KEYS, KeyDef, Secrets, ValueType, query as config, sealing};
use schema::db::Backend;
use schema::ids::Timestamp;
use serde_json::{Value, json};

use crate::support::{Yard, on_both_databases};

on_both_databases!(
    l71_what_documents_mask_is_sealed_at_rest,
    l71_values_of_an_earlier_release_are_sealed_and_their_bytes_go,
);

const BY: SavedBy<'_> = SavedBy {
    actor: "root",
    at: Timestamp::from_secs(1_778_500_000),
};

/// A value of a key of which documents show nothing, or not all.
fn value(def: &KeyDef, secret: &str) -> Option<Value> {
    match def.value_type {
        ValueType::Secret => Some(json!(secret)),
        // It is shown as it is.
        ValueType::Object(Secrets::None) => None,
        ValueType::Object(_) => Some(json!({"models": [{"name": "m", "api_key": secret}]})),
        _ => None,
    }
}

async fn save(yard: &Yard, changes: &[(&'static str, Option<Value>)]) -> i64 {
    let changes = Changes(changes.iter().cloned().collect());
    let mut tx = yard.db.begin().await.unwrap();
    let generation = config::save(&mut tx, &yard.key, &changes, None, BY).await;
    tx.commit().await.unwrap();
    generation.unwrap().generation
}

/// Everything that is at rest: each column of both tables, and the database's files.
async fn at_rest(yard: &Yard) -> Vec<u8> {
    type Row = (Option<String>, Option<Vec<u8>>);
    let mut connection = yard.db.read().await.unwrap();
    let mut bytes = Vec::new();
    for columns in [
        "value, sealed FROM config_values",
        "changes, sealed FROM config_history",
    ] {
        let text = sqlx::AssertSqlSafe(format!("SELECT {columns}"));
        let rows: Vec<Row> = sqlx::query_as(text)
            .fetch_all(connection.raw())
            .await
            .unwrap();
        for (text, sealed) in rows {
            bytes.extend(text.unwrap_or_default().into_bytes());
            bytes.extend(sealed.unwrap_or_default());
        }
    }
    if let Backend::Sqlite(file) = &yard.backend {
        for suffix in ["", "-wal"] {
            let path = format!("{}{suffix}", file.display());
            bytes.extend(std::fs::read(path).unwrap_or_default());
        }
    }
    bytes
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

async fn l71_what_documents_mask_is_sealed_at_rest(yard: Yard) {
    let mut secrets = Vec::new();
    for def in KEYS.values() {
        let secret = format!("hunter-of-{}", def.key);
        let other = format!("second-{secret}");
        let (Some(first), Some(second)) = (value(def, &secret), value(def, &other)) else {
            continue;
        };
        save(&yard, &[(def.key, Some(first))]).await;
        save(&yard, &[(def.key, Some(second))]).await;
        secrets.push(secret);
    }
    assert!(secrets.len() >= 5, "{secrets:?}");
    let mut connection = yard.db.read().await.unwrap();
    let (values, _) = config::load(&mut connection, &yard.key).await.unwrap();
    let agent = json!({"models": [{"name": "m", "api_key": "second-hunter-of-agent"}]});
    assert_eq!(values["agent"], agent);
    let bytes = at_rest(&yard).await;
    for secret in secrets {
        assert!(!holds(&bytes, &secret), "{secret}");
    }
}

/// What the start of the service does.
async fn start(yard: &Yard) {
    let mut tx = yard.db.begin().await.unwrap();
    sealing::seal_plain(&mut tx, &yard.key).await.unwrap();
    tx.commit().await.unwrap();
    sealing::scrub(&yard.db).await.unwrap();
}

/// Saves as a release did that sealed nothing but secrets.
async fn save_plain(yard: &Yard, revision: i64, agent: &Value) {
    let mut tx = yard.db.begin().await.unwrap();
    let changes = json!([{"key": "agent", "old": null, "new": agent}]);
    let history = "INSERT INTO config_history (revision, at, actor, keys, changes) VALUES ($1, 1, 'root', 'agent', $2)";
    let values = "INSERT INTO config_values (key, value, sealed) VALUES ('agent', $1, NULL) \
                  ON CONFLICT (key) DO UPDATE SET value = excluded.value, sealed = NULL";
    for query in [
        sqlx::query(history)
            .bind(revision)
            .bind(changes.to_string()),
        sqlx::query(values).bind(agent.to_string()),
    ] {
        query.execute(tx.raw()).await.unwrap();
    }
    tx.commit().await.unwrap();
}

async fn l71_values_of_an_earlier_release_are_sealed_and_their_bytes_go(yard: Yard) {
    let agent = |n: i64| json!({"nickserv": format!("hunter-{n}"), "long": "x".repeat(9000)});
    save(&yard, &[("image.tag", Some(json!("v1")))]).await;
    // More than are sealed at a time.
    for revision in 3..=50 {
        save_plain(&yard, revision, &agent(revision)).await;
    }
    assert!(holds(&at_rest(&yard).await, "hunter-"));
    start(&yard).await;
    assert!(!holds(&at_rest(&yard).await, "hunter-"));

    let mut connection = yard.db.read().await.unwrap();
    let (values, _) = config::load(&mut connection, &yard.key).await.unwrap();
    assert_eq!(
        (&values["agent"], &values["image.tag"]),
        (&agent(50), &json!("v1"))
    );
    let paths = SecretPaths::default();
    let access = Access {
        master_key: &yard.key,
        secret_paths: &paths,
    };
    let listed = history::list(&mut connection, access, "agent", 100, 0).await;
    let (revisions, _) = listed.unwrap();
    assert_eq!(revisions.len(), 48);
    assert_eq!(revisions[47].changes[0].new, agent(3));
    drop(connection);

    // A replica of that release has not been stopped yet.
    save_plain(&yard, 60, &agent(60)).await;
    start(&yard).await;
    assert!(!holds(&at_rest(&yard).await, "hunter-"));
}
