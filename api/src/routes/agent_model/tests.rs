//! The model that agents use, on a real database, with the echo adapter and a provider that gives verdicts.

use schema::condition::{Condition, ConditionStatus, ConditionType, Reason};
use schema::config::history::SavedBy;
use schema::ids::Epoch;
use schema::kind::Kind;
use schema::live::ModelHost;
use schema::object;
use serde_json::{Value, json};

use super::*;
use crate::routes::yard::{Answer, Yard, yard};
use crate::testing::NOW;

const PATH: &str = "/api/admin/agent/model";
const TRY: &str = "/api/admin/agent/model/try";
const ADDRESS: &str = "http://10.1.2.3:8080/v1";
const KEY: &str = "sk-hunter2";

struct Desk {
    yard: Yard,
    root: String,
}

async fn desk() -> Desk {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    Desk { yard, root }
}

impl Desk {
    async fn get(&self, path: &str) -> Value {
        let answer = self.yard.get(path).with("root", &self.root).send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(!answer.text.contains("hunter2"), "{}", answer.text);
        answer.body
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        let ask = self.yard.post_json(path, &body);
        let answer = ask.with("root", &self.root).send().await;
        assert!(!answer.text.contains("hunter2"), "{}", answer.text);
        answer
    }

    async fn save(&self, key: Option<&str>) -> Answer {
        let mut body = json!({"provider": "compatible", "address": ADDRESS, "model": "m-1"});
        if let Some(key) = key {
            body["key"] = json!(key);
        }
        self.post(PATH, body).await
    }

    async fn config(&self) -> Config {
        let deps = &self.yard.world.deps;
        let mut connection = deps.db.read().await.unwrap();
        let stored = config::query::load(&mut connection, &deps.master_key).await;
        Config::from_stored(stored.unwrap().0)
    }

    /// The last request to the provider.
    fn asked(&self) -> (String, String, Option<String>) {
        self.yard
            .world
            .models
            .asked
            .lock()
            .unwrap()
            .last()
            .cloned()
            .unwrap()
    }

    async fn activate(&self, name: &str) {
        let adapter = Adapter::builtin(name).unwrap().unwrap();
        let by = SavedBy {
            actor: "root",
            at: NOW,
        };
        let source = schema::adapter::store::Source::Upload;
        let mut tx = self.yard.world.db.begin().await.unwrap();
        let activated = schema::adapter::store::activate(&mut tx, &adapter, source, by).await;
        assert!(activated.unwrap().changed);
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn choice_is_saved_and_shown_without_its_key() {
    let desk = desk().await;
    let before = desk.get(PATH).await;
    assert_eq!(before["configured"], false);
    assert_eq!(before["providers"][0]["id"], "compatible");
    assert_eq!(
        (&before["model"], &before["key_set"]),
        (&Value::Null, &json!(false))
    );

    let saved = desk.save(Some(KEY)).await;
    assert_eq!(saved.status, 202, "{saved:?}");
    assert_eq!(saved.body["changed"], json!(["agent", "security"]));
    let shown = desk.get(PATH).await;
    let expected = json!({"configured": true, "provider": "compatible", "address": ADDRESS,
        "model": "m-1", "key_set": true, "generation": 2});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&shown[name], value, "{name}");
    }
    let config = desk.config().await;
    assert_eq!(config.get(&keys::AGENT)["defaults"]["model"], "compatible");
    let secret = &config.get(&keys::SECURITY)["models"]["compatible"]["api_keys"][0];
    assert_eq!(secret, KEY);
    let audit = desk.get("/api/admin/audit?page=1").await;
    let detail = audit["entries"][0]["detail"].as_str().unwrap_or_default();
    let all = audit.to_string();
    assert!(
        all.contains("model of compatible at http://10.1.2.3:8080; changed: agent, security"),
        "{detail}"
    );
}

#[tokio::test]
async fn stored_key_stays_with_its_provider_and_address() {
    let desk = desk().await;
    desk.save(Some(KEY)).await;
    let other = json!({"provider": "compatible", "address": ADDRESS, "model": "m-2"});
    assert_eq!(desk.post(PATH, other).await.status, 202);
    assert_eq!(desk.get(PATH).await["key_set"], true);
    let moved = json!({"provider": "compatible", "address": "http://evil.example", "model": "m-2"});
    assert_eq!(desk.post(TRY, moved.clone()).await.status, 200);
    assert_eq!(desk.asked().2, None);
    let saved = desk.post(PATH, moved).await;
    assert_eq!(saved.status, 202);
    let warning = format!(
        "the stored key was removed: it belongs to {ADDRESS}; give one for this address (`agentyard model set … --key -`)"
    );
    assert_eq!(saved.body["warnings"], json!([warning]));
    assert_eq!(desk.get(PATH).await["key_set"], false);
    assert!(
        !desk
            .config()
            .await
            .get(&keys::SECURITY)
            .to_string()
            .contains(KEY)
    );
}

#[tokio::test]
async fn key_that_a_provider_needs_is_asked_for() {
    let desk = desk().await;
    desk.activate("picoclaw").await;
    let ids: Vec<Value> = desk.get(PATH).await["providers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].clone())
        .collect();
    assert_eq!(
        json!(ids),
        json!([
            "openai",
            "anthropic",
            "deepseek",
            "qwen",
            "ollama",
            "compatible"
        ])
    );
    let bare = json!({"provider": "openai", "model": "gpt-5.4"});
    for path in [PATH, TRY] {
        let refused = desk.post(path, bare.clone()).await;
        assert_eq!(refused.verdict(), (422, "key_required"), "{path}");
    }
    let mut keyed = bare.clone();
    keyed["key"] = json!(KEY);
    assert_eq!(desk.post(PATH, keyed).await.status, 202);
    assert_eq!(desk.get(PATH).await["address"], "https://api.openai.com/v1");
    // The usual address in other words is the same.
    let mut again = bare.clone();
    again["address"] = json!("https://API.openai.com:443/v1");
    assert_eq!(desk.post(TRY, again).await.status, 200);
    assert_eq!(desk.asked().2.as_deref(), Some(KEY));
    let mut other = bare;
    other["address"] = json!("https://evil.example/v1");
    assert_eq!(desk.post(TRY, other).await.verdict(), (422, "key_required"));
}

#[tokio::test]
async fn stale_generation_is_refused_and_a_dry_run_saves_nothing() {
    let desk = desk().await;
    let body = json!({"provider": "compatible", "address": ADDRESS, "model": "m", "dry_run": true});
    let dry = desk.post(PATH, body.clone()).await;
    assert_eq!(
        (dry.status.as_u16(), &dry.body["changed"]),
        (200, &json!(["agent"])),
        "{dry:?}"
    );
    assert_eq!(desk.get(PATH).await["configured"], false);
    let mut stale = body;
    stale["dry_run"] = json!(false);
    stale["if_generation"] = json!(7);
    assert_eq!(
        desk.post(PATH, stale).await.verdict(),
        (412, "stale_generation")
    );
}

#[tokio::test]
async fn field_that_breaks_its_rule_is_named() {
    let desk = desk().await;
    for (name, value) in [
        ("provider", json!("openai")),
        ("address", json!("ftp://x")),
        ("address", json!("http://user:pw@x/")),
        ("address", json!("")),
        ("model", json!("a b")),
        ("key", json!("a\nb")),
    ] {
        let mut body = json!({"provider": "compatible", "address": ADDRESS, "model": "m"});
        body[name] = value;
        for path in [PATH, TRY] {
            let refused = desk.post(path, body.clone()).await;
            assert_eq!(
                refused.verdict(),
                (400, "invalid_parameter"),
                "{body} {refused:?}"
            );
            assert_eq!(refused.body["field"], name);
        }
    }
}

#[tokio::test]
async fn setting_in_the_way_refuses_the_save() {
    let desk = desk().await;
    let config = json!({"agent": {"models": "mine"}}).to_string();
    let saved = desk.post("/api/config", json!({"config": config})).await;
    assert_eq!(saved.status, 202);
    let refused = desk.save(None).await;
    assert_eq!(refused.verdict(), (422, "invalid_config"), "{refused:?}");
    assert_eq!(
        refused.body["error"],
        "agent has something else at models; remove it first"
    );
}

#[tokio::test]
async fn test_says_what_is_wrong_and_saves_nothing() {
    let desk = desk().await;
    let body = json!({"provider": "compatible", "address": ADDRESS, "model": "m-1", "key": KEY});
    let fine = desk.post(TRY, body.clone()).await;
    let expected = (&json!(true), &Value::Null, &json!("the model answered"));
    assert_eq!(
        (
            &fine.body["ok"],
            &fine.body["reason"],
            &fine.body["message"]
        ),
        expected
    );
    assert_eq!(
        desk.asked(),
        (ADDRESS.to_owned(), "m-1".to_owned(), Some(KEY.to_owned()))
    );
    *desk.yard.world.models.fault.lock().unwrap() = Some(ModelFault::Key);
    let failed = desk.post(TRY, body).await;
    assert_eq!(failed.status, 200);
    let expected = (&json!(false), &json!("key"), &json!("mend it"));
    assert_eq!(
        (
            &failed.body["ok"],
            &failed.body["reason"],
            &failed.body["remedy"]
        ),
        expected
    );
    assert_eq!(desk.get(PATH).await["configured"], false);
    let audit = desk.get("/api/admin/audit?page=1").await.to_string();
    assert!(audit.contains("tested http://10.1.2.3:8080"), "{audit}");
}

#[tokio::test]
async fn address_that_agents_do_not_reach_is_warned_of() {
    let desk = desk().await;
    let own = "agents cannot reach services of this host (10.1.2.3): set container.host_access=open, or run the model on another machine";
    let body = json!({"provider": "compatible", "address": ADDRESS, "model": "m-1"});
    assert_eq!(
        desk.post(TRY, body.clone()).await.body["warnings"],
        json!([])
    );
    let host = ModelHost {
        ip: [10, 1, 2, 3].into(),
        is_own: true,
    };
    *desk.yard.world.models.hosts.lock().unwrap() = vec![host];
    let tried = desk.post(TRY, body.clone()).await;
    assert_eq!(
        (&tried.body["ok"], &tried.body["warnings"]),
        (&json!(true), &json!([own]))
    );
    let mut dry = body.clone();
    dry["dry_run"] = json!(true);
    for (body, status) in [(dry, 200), (body.clone(), 202)] {
        let saved = desk.post(PATH, body).await;
        assert_eq!(saved.status, status, "{saved:?}");
        assert_eq!(saved.body["warnings"], json!([own]));
    }

    // Without rights to the packet filter nothing is closed.
    let mut tx = desk.yard.world.db.begin().await.unwrap();
    object::ensure_singles(&mut tx, NOW).await.unwrap();
    let open = Condition::new(
        ConditionType::HostRestricted,
        ConditionStatus::False,
        Reason::HostOpen,
        "no rights",
    );
    let status = object::StatusRow {
        conditions: vec![open],
        ..object::StatusRow::default()
    };
    let engine = config::query::engine_uid();
    let saved = object::save_status(&mut tx, Kind::Engine, &engine, &status, Epoch(1)).await;
    assert!(saved.unwrap());
    tx.commit().await.unwrap();
    assert_eq!(desk.post(TRY, body).await.body["warnings"], json!([]));
}

#[tokio::test]
async fn overview_warns_until_there_is_a_model() {
    let desk = desk().await;
    let warned = async || {
        let overview = desk.get("/api/admin/reconcile").await;
        overview["warnings"].to_string().contains(NO_MODEL)
    };
    assert!(warned().await);
    desk.save(None).await;
    assert!(!warned().await);
}
