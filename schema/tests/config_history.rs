//! The history of the configuration, on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use schema::adapter::{Adapter, SecretPaths, store as adapters};
use schema::config::history::{self, Access, KEPT, KEPT_BYTES, Past, Revision, SavedBy};
use schema::config::{Changes, MASK, query as config};
use schema::ids::Timestamp;
use serde_json::{Value, json};

use crate::support::{Yard, on_both_databases};

on_both_databases!(
    l21_history_tells_who_changed_what_but_no_secret,
    l21_history_hides_what_the_adapter_in_effect_stores_as_secret,
    l71_what_an_adapter_stores_as_secret_is_masked_in_saves_before_it,
    the_past_is_known_as_long_as_the_history_reaches,
    history_is_bounded,
    history_is_bounded_by_bytes,
);

const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);

async fn save(yard: &Yard, list: &[(&'static str, Option<Value>)]) -> i64 {
    let changes = Changes(list.iter().cloned().collect());
    let by = SavedBy {
        actor: "Root",
        at: NOW,
    };
    let mut tx = yard.db.begin().await.unwrap();
    let generation = config::save(&mut tx, &yard.key, &changes, None, by).await;
    tx.commit().await.unwrap();
    generation.unwrap().generation
}

async fn at(yard: &Yard, revision: i64) -> Past {
    let mut connection = yard.db.read().await.unwrap();
    let paths = SecretPaths::default();
    let access = Access {
        master_key: &yard.key,
        secret_paths: &paths,
    };
    history::at(&mut connection, access, revision)
        .await
        .unwrap()
}

async fn list(yard: &Yard, search: &str, limit: i64, offset: i64) -> (Vec<Revision>, i64) {
    let mut connection = yard.db.read().await.unwrap();
    let paths = SecretPaths::default();
    let access = Access {
        master_key: &yard.key,
        secret_paths: &paths,
    };
    let listed = history::list(&mut connection, access, search, limit, offset).await;
    listed.unwrap()
}

async fn l21_history_tells_who_changed_what_but_no_secret(yard: Yard) {
    let secrets = [
        ("ldap.bind_password", Some(json!("hunter2"))),
        ("security", Some(json!({"channels": {"token": "hunter3"}}))),
        (
            "agent",
            Some(json!({"model": {"api_key": "hunter4", "name": "large"}})),
        ),
        ("image.tag", Some(json!("2"))),
    ];
    assert_eq!(save(&yard, &secrets).await, 2);
    save(&yard, &[("image.tag", None), ("security", None)]).await;
    let (revisions, total) = list(&yard, "", 10, 0).await;
    assert_eq!(total, 2);
    let text = serde_json::to_string(&revisions).unwrap();
    assert!(!text.contains("hunter"), "{text}");
    let newest = serde_json::to_value(&revisions[0]).unwrap();
    assert_eq!(
        newest,
        json!({
            "revision": 3, "at": NOW, "actor": "Root",
            "changes": [
                {"key": "image.tag", "old": "2", "new": null},
                {"key": "security", "old": {"channels": {"token": MASK}}, "new": null},
            ],
        })
    );
    let changed = |key: &str| {
        let mut changes = revisions[1].changes.iter();
        changes.find(|changed| changed.key == key).cloned().unwrap()
    };
    assert_eq!(changed("ldap.bind_password").new, json!(MASK));
    assert_eq!(
        changed("agent").new,
        json!({"model": {"api_key": MASK, "name": "large"}})
    );
    for (search, expected) in [
        ("ROOT", 2),
        ("bind_pass", 1),
        ("image.tag", 2),
        ("large", 0),
    ] {
        let (_, total) = list(&yard, search, 10, 0).await;
        assert_eq!(total, expected, "{search}");
    }
}

async fn l21_history_hides_what_the_adapter_in_effect_stores_as_secret(yard: Yard) {
    let adapter = Adapter::builtin("picoclaw").unwrap().unwrap();
    let mut tx = yard.db.begin().await.unwrap();
    adapters::ensure_base(
        &mut tx,
        &adapter,
        SavedBy {
            actor: "admin",
            at: NOW,
        },
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    let mqtt = |user: &str| {
        let settings = json!({"username": user, "broker": "visible"});
        Some(json!({"channel_list": {"mqtt": {"settings": settings}}}))
    };
    save(&yard, &[("agent", mqtt("hunter2"))]).await;
    save(&yard, &[("agent", mqtt("hunter3"))]).await;
    let (revisions, _) = list(&yard, "", 10, 0).await;
    let text = serde_json::to_string(&revisions).unwrap();
    assert!(!text.contains("hunter"), "{text}");
    assert!(text.contains("visible"), "{text}");
}

async fn l71_what_an_adapter_stores_as_secret_is_masked_in_saves_before_it(yard: Yard) {
    let settings = |user: &str| json!({"mqtt": {"settings": {"username": user}}});
    for user in ["hunter2", "hunter3"] {
        save(
            &yard,
            &[("agent", Some(json!({"channel_list": settings(user)})))],
        )
        .await;
    }
    let adapter = Adapter::builtin("picoclaw").unwrap().unwrap();
    let access = Access {
        master_key: &yard.key,
        secret_paths: &adapter.secret_paths,
    };
    let mut connection = yard.db.read().await.unwrap();
    let listed = history::list(&mut connection, access, "", 10, 0).await;
    let text = serde_json::to_string(&listed.unwrap().0).unwrap();
    assert!(text.contains(MASK) && !text.contains("hunter"), "{text}");
    let past = history::at(&mut connection, access, 2).await.unwrap();
    let masked = json!({"channel_list": settings(MASK)});
    assert_eq!(past, Past::Known([("agent".to_owned(), masked)].into()));
}

async fn the_past_is_known_as_long_as_the_history_reaches(yard: Yard) {
    for n in 0..50 {
        save(&yard, &[("image.tag", Some(json!(format!("t{n}"))))]).await;
    }
    save(&yard, &[("log.level", Some(json!("debug")))]).await;
    // The first save made generation 2.
    let Past::Known(past) = at(&yard, 2).await else {
        panic!("it is known")
    };
    assert_eq!(json!(past), json!({"image.tag": "t0", "log.level": null}));
    let Past::Known(past) = at(&yard, 1).await else {
        panic!("the beginning is known")
    };
    assert_eq!(json!(past), json!({"image.tag": null, "log.level": null}));
    assert_eq!(at(&yard, 52).await, Past::Known(Default::default()));
    assert_eq!(at(&yard, 53).await, Past::NotYet);
    for unknown in [0, -1, i64::MIN] {
        assert_eq!(at(&yard, unknown).await, Past::Forgotten);
    }
}

async fn history_is_bounded(yard: Yard) {
    let mut tx = yard.db.begin().await.unwrap();
    let by = SavedBy {
        actor: "root",
        at: NOW,
    };
    for n in 0..KEPT + 5 {
        let changes = Changes([("image.tag", Some(json!(format!("t{n}"))))].into());
        config::save(&mut tx, &yard.key, &changes, None, by)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
    let (page, total) = list(&yard, "", 1, KEPT - 1).await;
    assert_eq!((total, page[0].revision), (KEPT, 7));
    assert!(matches!(at(&yard, 6).await, Past::Known(_)));
    assert_eq!(at(&yard, 5).await, Past::Forgotten);
}

async fn history_is_bounded_by_bytes(yard: Yard) {
    let large = "x".repeat(usize::try_from(KEPT_BYTES / 4).unwrap());
    for n in 0..6 {
        let revision = save(&yard, &[("image.tag", Some(json!(format!("t{n}"))))]).await;
        // Sealing as much takes a while where nothing is optimised; of a sealed save this column counts only.
        let mut tx = yard.db.begin().await.unwrap();
        sqlx::query("UPDATE config_history SET changes = $1 WHERE revision = $2")
            .bind(&large)
            .bind(revision)
            .execute(tx.raw())
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
    // The newest was small when it forgot what is too much: four of the others are just more than fits.
    let (_, total) = list(&yard, "", 1, 0).await;
    assert_eq!(total, 4);
    assert!(matches!(at(&yard, 3).await, Past::Known(_)));
    assert_eq!(at(&yard, 2).await, Past::Forgotten);
}
