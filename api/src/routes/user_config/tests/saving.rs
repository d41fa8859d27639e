use std::time::Duration;

use serde_json::json;

use super::*;

fn values() -> Value {
    json!({"section": "chat", "values": {"client_id": "a", "client_secret": "b"}})
}

#[tokio::test]
async fn a_save_bumps_files_and_container_once_each_also_when_nothing_is_different() {
    let desk = open_desk().await;
    let mut before = desk.marks().await;
    for _ in 0..2 {
        let body = desk.set("chat", &values()["values"]).await;
        let after = desk.marks().await;
        assert_eq!((after.0, after.1), (before.0 + 1, before.1 + 1));
        assert_ne!(after.2, before.2, "another restart token");
        assert_eq!(
            (&body["object"], &body["state"]),
            (&json!("agent-config/alice"), &json!("pending"))
        );
        assert_eq!(body["generation"], after.0);
        before = after;
    }
}

#[tokio::test]
async fn a_stopped_container_stays_stopped() {
    let desk = open_desk().await;
    let form = [("username", "alice"), ("wait", "0")];
    let stop = desk.yard.post("/api/admin/container/stop", &form);
    assert_eq!(stop.with("root", &desk.root).send().await.status, 202);
    desk.set("chat", &values()["values"]).await;
    let uid = desk.uid("alice").await;
    let mut connection = desk.yard.world.deps.db.read().await.unwrap();
    let row = container::get(&mut connection, &uid).await.unwrap();
    assert!(!row.unwrap().desired_running());
}

#[tokio::test]
async fn a_save_has_converged_when_files_and_container_have() {
    let desk = open_desk().await;
    let (files, container, _) = desk.marks().await;
    let save = async {
        let ask = desk.yard.post_json(FIELDS, &values());
        ask.with("alice", &desk.alice).send().await
    };
    let world = async {
        while desk.marks().await.1 == container {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(desk.marks().await.0, files + 1);
        desk.saw(Kind::AgentConfig, ready()).await;
        // The files alone are not all of it.
        tokio::time::sleep(Duration::from_millis(300)).await;
        desk.saw(Kind::Container, ready()).await;
    };
    let began = tokio::time::Instant::now();
    let (answer, ()) = tokio::join!(save, world);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.body["state"], "converged");
    assert_eq!(answer.body["object"], "agent-config/alice");
    assert!(began.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn the_failure_of_files_and_that_of_the_container_are_told_as_their_own() {
    let desk = open_desk().await;
    for (kind, reason, status, code) in [
        (
            Kind::AgentConfig,
            Reason::InvalidUserConfig,
            409,
            "invalid_user_config",
        ),
        (
            Kind::AgentConfig,
            Reason::NoMigrationPath,
            422,
            "no_migration_path",
        ),
        (Kind::Container, Reason::ImageMissing, 422, "image_missing"),
    ] {
        let save = async {
            let ask = desk.yard.post_json(FIELDS, &values());
            ask.with("alice", &desk.alice).send().await
        };
        let before = desk.marks().await.1;
        let world = async {
            while desk.marks().await.1 == before {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let other = match kind {
                Kind::AgentConfig => Kind::Container,
                _ => Kind::AgentConfig,
            };
            desk.saw(other, ready()).await;
            desk.saw(kind, Condition::not_ready(reason, "it is so"))
                .await;
        };
        let (answer, ()) = tokio::join!(save, world);
        assert_eq!(answer.verdict(), (status, code), "{answer:?}");
        assert_eq!(answer.body["object"], format!("{kind}/alice"));
        assert_eq!(answer.body["state"], "failed");
        let stored = desk.stored().await.channels;
        assert_eq!(stored["chat"]["client_id"], "a", "it stays recorded");
    }
}

#[tokio::test]
async fn a_stale_writer_is_told_and_changes_nothing() {
    let desk = open_desk().await;
    let read = desk.get(FIELDS).await.body["generation"].clone();
    desk.set("chat", &values()["values"]).await;
    let before = desk.marks().await;
    for (path, body) in [
        (
            FIELDS,
            json!({"section": "chat", "values": {"client_id": "z"}, "if_generation": read}),
        ),
        (CHATAPP, json!({"client_id": "z", "if_generation": read})),
    ] {
        let answer = desk.post_json(path, &body).await;
        assert_eq!(answer.verdict(), (412, "stale_generation"));
        assert_eq!(answer.body["generation"], before.0);
    }
    assert_eq!(desk.marks().await, before);
    assert_eq!(desk.stored().await.channels["chat"]["client_id"], "a");
    let fresh = json!({"client_id": "z", "if_generation": before.0});
    assert_eq!(desk.post_json(CHATAPP, &fresh).await.status, 202);
}

#[tokio::test]
async fn two_saves_at_once_lose_nothing() {
    let desk = open_desk().await;
    desk.set("mail", &json!({"client_id": "m"})).await;
    let keys = [
        "port",
        "interval",
        "encryption",
        "enabled",
        "headers",
        "client_secret",
    ];
    let given = [
        json!(1),
        json!(2),
        json!("none"),
        json!(true),
        json!({}),
        json!("s"),
    ];
    let saves = keys.iter().zip(&given).map(|(key, value)| {
        let values = json!({*key: value});
        let body = json!({"section": "mail", "values": values});
        let desk = &desk;
        async move { desk.post_json(FIELDS, &body).await.status.as_u16() }
    });
    let statuses = futures::future::join_all(saves).await;
    assert_eq!(statuses, [202; 6]);
    let stored = &desk.stored().await.channels["mail"];
    for (key, value) in keys.iter().zip(&given) {
        assert_eq!(stored[*key], *value, "{key}");
    }
    assert_eq!(stored["client_id"], "m");
}
