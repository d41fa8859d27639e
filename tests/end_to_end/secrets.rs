//! What answers mask is nowhere to be found in the clear: not at rest, not in answers, not in logs.

use std::path::{Path, PathBuf};

use schema::config::{KEYS, KeyDef, Secrets, ValueType};
use serde_json::{Value, json};

use crate::support::{Client, Engine, Stage, seconds, until};

/// What every secret of this test begins with.
const MARK: &str = "hunter2-";

/// A value of a key of which documents mask something.
fn secret(def: &KeyDef, turn: &str) -> Option<Value> {
    let secret = format!("{MARK}{}-{turn}", def.key);
    match (def.key, def.value_type) {
        ("agent", _) => Some(json!({
            "channel_list": {"chat": {"enabled": true}},
            "model_list": [{"model_name": "m", "api_keys": [secret]}],
            "proxy": format!("http://u:{secret}@proxy.example:3128"),
            "tools": {"mcp": {"servers": {"s": {
                "args": ["--token", secret],
                "env": {"A": secret},
                "headers": {"X-Auth": secret},
            }}}},
        })),
        (_, ValueType::Object(Secrets::None)) => None,
        (_, ValueType::Object(_)) => Some(json!({"a": {"b": [secret]}})),
        (_, ValueType::Secret) => Some(json!(secret)),
        _ => None,
    }
}

async fn save_all(admin: &Client, turn: &str) {
    let values = KEYS
        .values()
        .filter_map(|def| Some((def.key, secret(def, turn)?)));
    let document = Value::Object(values.map(|(key, value)| (key.to_owned(), value)).collect());
    let document = document.to_string();
    let saved = admin.post("/api/config", &[("config", &*document)]).await;
    let changed = saved.json()["changed"].clone();
    assert_eq!(
        changed,
        json!([
            "agent",
            "image.registry_password",
            "ldap.bind_password",
            "oidc.client_secret",
            "security"
        ])
    );
}

/// Every file below a directory.
fn files(below: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(below).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files(&entry.path(), found);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
}

fn holds(bytes: &[u8]) -> bool {
    bytes
        .windows(MARK.len())
        .any(|window| window == MARK.as_bytes())
}

#[tokio::test]
async fn engine_l71_no_value_that_is_masked_is_anywhere_in_the_clear() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let launch = stage.serve(&engine).args(&["--adapter", "echo"]);
    let service = launch.env("RUST_LOG", "debug").start().await;
    let admin = service.admin().await;
    save_all(&admin, "first").await;
    let password = admin.create_user("alice").await;
    let own = service.client().signed_in("alice", &password).await;
    let secret = format!("{MARK}channel");
    let values = json!({"enabled": true, "client_id": "1", "client_secret": secret}).to_string();
    let form = [("section", "chat"), ("values", &*values), ("wait", "60")];
    own.post("/api/agent/config-fields", &form)
        .await
        .converged();
    let cookie = format!("a={MARK}cookie");
    let form = [("domain", "a.example"), ("cookies", &*cookie)];
    own.post("/api/cookies", &form).await.expect(200);
    let home = stage.data().join("users/alice");
    until(
        "the agent's files have the secrets",
        seconds(30),
        async || {
            let security = std::fs::read(home.join(".agent/security.json"));
            let config = std::fs::read(home.join(".agent/config.json"));
            holds(&security.unwrap_or_default()) && holds(&config.unwrap_or_default())
        },
    )
    .await;
    save_all(&admin, "second").await;
    admin.status("alice", "running", seconds(60)).await;

    let container = engine.the_running("alice").id;
    let mut texts = vec![(
        "container".to_owned(),
        engine.inspect(&container).to_string(),
    )];
    let mut ask = async |client: &Client, path: &str| {
        let text = client.get(path).await.text();
        texts.push((path.to_owned(), text));
    };
    for path in [
        "/api/config",
        "/api/admin/config/history",
        "/api/admin/audit",
        "/api/admin/events",
        "/api/admin/reconcile/objects",
        "/api/admin/reconcile/objects/agent-config/alice",
        "/api/admin/reconcile/objects/container/alice",
        "/api/admin/users",
    ] {
        ask(&admin, path).await;
    }
    for path in ["/api/agent/config-fields?section=chat", "/api/user/cookies"] {
        ask(&own, path).await;
    }
    for (path, text) in &texts {
        assert!(!holds(text.as_bytes()), "{path}: {text}");
    }
    // What is masked is there.
    for (path, text) in &texts[1..3] {
        assert!(text.contains("********"), "{path}: {text}");
    }

    let form = [("username", "alice"), ("wait", "60")];
    admin
        .post("/api/admin/users/delete", &form)
        .await
        .expect(200);
    assert_eq!(stage.archives("alice").len(), 1);
    let mut found = Vec::new();
    files(stage.path(), &mut found);
    let archived = stage.archives("alice")[0].join(".agent/config.json");
    for needed in [stage.data().join("agentyard.db-wal"), archived] {
        assert!(found.contains(&needed), "{found:?}");
    }
    for path in found {
        assert!(!holds(&std::fs::read(&path).unwrap()), "{}", path.display());
    }
}
