//! The configuration, against a real database.

use std::time::Duration;

use schema::adapter::Adapter;
use schema::adapter::store::{self, Source};
use schema::config::history::SavedBy;
use schema::container::ContainerFacts;
use schema::ids::Kind;
use schema::{object, user};
use tokio_util::sync::CancellationToken;

use serde_json::json;

use schema::condition::{Condition, Reason};
use schema::ids::Epoch;
use schema::object::StatusRow;

use super::*;
use crate::routes::yard::{Answer, Yard, yard};
use crate::testing::NOW;

mod apply;
mod history;

const PATH: &str = "/api/config";
const MASK: &str = "********";

struct Admin {
    yard: Yard,
    cookie: String,
}

async fn admin() -> Admin {
    let yard = yard().await;
    let cookie = yard.sign_in("root").await;
    Admin { yard, cookie }
}

impl Admin {
    async fn read(&self) -> Answer {
        let answer = self.yard.get(PATH).with("root", &self.cookie).send().await;
        assert_eq!(answer.status, 200);
        answer
    }

    async fn save_with(&self, config: &Value, more: &[(&str, &str)]) -> Answer {
        let text = config.to_string();
        let form: Vec<_> = [("config", text.as_str())]
            .into_iter()
            .chain(more.iter().copied())
            .collect();
        self.yard
            .post(PATH, &form)
            .with("root", &self.cookie)
            .send()
            .await
    }

    async fn save(&self, config: &Value) -> Answer {
        self.save_with(config, &[]).await
    }

    /// Puts a built-in adapter into effect.
    async fn activate(&self, name: &str) {
        let adapter = Adapter::builtin(name).unwrap().unwrap();
        let by = SavedBy {
            actor: "admin",
            at: NOW,
        };
        let mut tx = self.yard.world.db.begin().await.unwrap();
        let activated = store::activate(&mut tx, &adapter, Source::Upload, by).await;
        assert!(activated.unwrap().changed);
        tx.commit().await.unwrap();
    }

    async fn stored(&self, key: &str) -> Option<Value> {
        let deps = &self.yard.world.deps;
        let mut connection = deps.db.read().await.unwrap();
        let (values, _) = config::query::load(&mut connection, &deps.master_key)
            .await
            .unwrap();
        values.get(key).cloned()
    }
}

#[tokio::test]
async fn l21_what_the_active_adapter_stores_as_secret_is_not_shown() {
    let admin = admin().await;
    admin.activate("picoclaw").await;
    let settings = json!({"username": "hunter2", "broker": "visible"});
    let agent = json!({"channel_list": {"mqtt": {"settings": settings}}});
    let saved = admin.save(&json!({ "agent": agent })).await;
    assert_eq!(saved.status, 202, "{}", saved.text);
    for path in [PATH, "/api/admin/config/history"] {
        let shown = admin.yard.get(path).with("root", &admin.cookie);
        let shown = shown.send().await;
        assert!(!shown.text.contains("hunter2"), "{}", shown.text);
        assert!(shown.text.contains("visible"), "{}", shown.text);
    }
    let shown = admin.read().await.body;
    assert_eq!(admin.save(&shown).await.body["changed"], json!([]));
}

#[tokio::test]
async fn all_keys_are_read_as_one_pretty_document_with_its_generation() {
    let admin = admin().await;
    let answer = admin.read().await;
    assert!(answer.text.starts_with("{\n  "), "{}", answer.text);
    assert!(answer.body.get("success").is_none());
    assert_eq!(answer.body["web"]["auth_mode"], "local");
    assert_eq!(answer.body["container"]["memory_limit_mb"], 1024);
    assert_eq!(answer.headers[ETAG], "\"1\"");
    assert_eq!(answer.headers[GENERATION], "1");
    let saved = admin
        .save(&json!({"web": {"public_url": "https://a.example"}}))
        .await;
    assert_eq!(saved.body["generation"], 2);
    assert_eq!(admin.read().await.headers[GENERATION], "2");
}

#[tokio::test]
async fn l21_secrets_never_come_back_and_masks_keep_them() {
    let admin = admin().await;
    let secrets = json!({
        "image.registry_password": "hunter2",
        "security": {"channels": {"token": "hunter3"}},
        "agent": {"model": {"api_key": "hunter4", "name": "large"}},
    });
    let saved = admin.save(&secrets).await;
    assert_eq!(saved.status, 202, "{saved:?}");
    assert!(!saved.text.contains("hunter"));
    let mut document = admin.read().await;
    assert!(!document.text.contains("hunter"), "{}", document.text);
    assert_eq!(document.body["image"]["registry_password"], MASK);
    assert_eq!(document.body["security"]["channels"]["token"], MASK);
    // What a form does: it sends everything back, with one thing changed.
    document.body["agent"]["model"]["name"] = json!("small");
    let again = admin.save(&document.body).await;
    assert_eq!(again.body["changed"], json!(["agent"]), "{again:?}");
    assert_eq!(
        admin.stored("image.registry_password").await,
        Some(json!("hunter2"))
    );
    let agent = admin.stored("agent").await.unwrap();
    assert_eq!(
        agent["model"],
        json!({"api_key": "hunter4", "name": "small"})
    );
    let unchanged = admin.save(&admin.read().await.body).await;
    assert_eq!(
        (&unchanged.body["changed"], &unchanged.body["generation"]),
        (&json!([]), &json!(3))
    );
    let cleared = admin.save(&json!({"image.registry_password": null})).await;
    assert_eq!(cleared.body["changed"], json!(["image.registry_password"]));
    assert_eq!(admin.stored("image.registry_password").await, None);
}

#[tokio::test]
async fn l21_a_secret_is_sealed_in_the_database() {
    let admin = admin().await;
    admin
        .save(&json!({"image.registry_password": "hunter2"}))
        .await;
    admin.yard.world.db.close().await;
    for entry in std::fs::read_dir(admin.yard.world.dir.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let bytes = std::fs::read(path).unwrap();
        assert!(!bytes.windows(7).any(|window| window == b"hunter2"));
    }
}

#[tokio::test]
async fn l21_passwords_that_look_like_numbers_stay_texts() {
    let admin = admin().await;
    for password in [
        "0012",
        "1e3",
        "true",
        "null",
        "[1]",
        "123456789012345678901234567890",
    ] {
        let answer = admin
            .save(&json!({"image": {"registry_password": password}}))
            .await;
        assert_eq!(answer.status, 200, "{password}");
        assert_eq!(
            admin.stored("image.registry_password").await,
            Some(json!(password))
        );
    }
    // The same through a JSON body whose `config` is an object instead of a text.
    let body = json!({"config": {"image": {"registry_password": "00"}}});
    let ask = admin
        .yard
        .post_json(PATH, &body)
        .with("root", &admin.cookie);
    assert_eq!(ask.send().await.status, 200);
    assert_eq!(
        admin.stored("image.registry_password").await,
        Some(json!("00"))
    );
    let number = admin
        .save(&json!({"image": {"registry_password": 12}}))
        .await;
    assert_eq!(number.verdict(), (422, "invalid_config"));
}

#[tokio::test]
async fn l21_writers_of_different_keys_lose_nothing() {
    let admin = admin().await;
    let keys = [
        "web.public_url",
        "adapter.source_url",
        "container.service_url",
        "image.registry_username",
    ];
    let documents: Vec<_> = keys
        .iter()
        .map(|key| json!({*key: "https://a.example"}))
        .collect();
    let answers = futures::future::join_all(documents.iter().map(|d| admin.save(d))).await;
    let mut generations: Vec<_> = answers
        .iter()
        .map(|a| a.body["generation"].as_i64())
        .collect();
    generations.sort_unstable();
    assert_eq!(generations, [Some(2), Some(3), Some(4), Some(5)]);
    for key in keys {
        assert_eq!(
            admin.stored(key).await,
            Some(json!("https://a.example")),
            "{key}"
        );
    }
    let settings = admin.yard.world.deps.settings();
    assert_eq!(
        settings.generation, 5,
        "the newest is in effect, whoever came last"
    );
    assert!(settings.public_origin.is_some());
}

#[tokio::test]
async fn of_two_writers_who_saw_the_same_generation_one_is_told() {
    let admin = admin().await;
    let (first, second) = (json!({"image.tag": "a"}), json!({"image.tag": "b"}));
    let both = [("if_generation", "1")];
    let (first, second) = tokio::join!(
        admin.save_with(&first, &both),
        admin.save_with(&second, &both)
    );
    let mut verdicts = [first.verdict(), second.verdict()];
    verdicts.sort_unstable();
    assert_eq!(verdicts, [(200, ""), (412, "stale_generation")]);
    let dry = admin
        .save_with(&json!({}), &[("if_generation", "1"), ("dry_run", "1")])
        .await;
    assert_eq!(
        (dry.verdict(), &dry.body["generation"]),
        ((412, "stale_generation"), &json!(2))
    );
}

#[tokio::test]
async fn l64_nul_is_refused_in_texts_and_kept_as_json_in_objects() {
    let admin = admin().await;
    let texts = json!({
        "image.registry_username": "a\0",
        "ldap.bind_password": "a\0",
        "ldap.ca_certificate": "-----BEGIN CERTIFICATE-----\0-----END CERTIFICATE-----",
        "oidc.scopes": "openid \0",
        "skills.defaults": ["a\0"],
        "web.desktop_user_agents": ["a\0"],
    });
    let answer = admin.save(&texts).await;
    assert_eq!(answer.verdict(), (422, "invalid_config"));
    let problems = answer.body["problems"].as_array().unwrap();
    let keys: Vec<_> = problems.iter().map(|problem| &problem["key"]).collect();
    let sent: Vec<_> = texts.as_object().unwrap().keys().collect();
    assert_eq!(json!(keys), json!(sent));

    let agent = json!({"a\0": ["b\0"]});
    let answer = admin.save(&json!({"agent": agent})).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(admin.stored("agent").await, Some(agent));
}

#[tokio::test]
async fn every_problem_is_told_and_nothing_is_saved() {
    let admin = admin().await;
    let answer = admin
        .save(&json!({
            "web": {"public_url": "https://a.example", "colour": "red"},
            "container": {"pids_limit": "many"},
            "image.tag": "not a tag",
            "ldap.timeout": "0",
        }))
        .await;
    assert_eq!(answer.verdict(), (422, "invalid_config"));
    let problems = answer.body["problems"].as_array().unwrap();
    let mut keys: Vec<_> = problems
        .iter()
        .map(|p| p["key"].as_str().unwrap())
        .collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "container.pids_limit",
            "image.tag",
            "ldap.timeout",
            "web.colour"
        ]
    );
    assert!(
        answer.body["error"]
            .as_str()
            .unwrap()
            .ends_with("and 1 more"),
        "{answer:?}"
    );
    assert_eq!(admin.stored("web.public_url").await, None);
    assert_eq!(admin.read().await.headers[GENERATION], "1");
    let mask = admin.save(&json!({"security": {"token": MASK}})).await;
    assert_eq!(mask.verdict(), (422, "invalid_config"));
    for text in ["", "{", "not json"] {
        let ask = admin
            .yard
            .post(PATH, &[("config", text)])
            .with("root", &admin.cookie);
        let answer = ask.send().await;
        assert_eq!(answer.verdict(), (400, "invalid_parameter"), "{text}");
        assert_eq!(answer.body["field"], "config");
    }
    assert_eq!(
        admin.save(&json!([1])).await.verdict(),
        (422, "invalid_config")
    );
}

#[tokio::test]
async fn a_mode_needs_what_it_works_with() {
    let admin = admin().await;
    let answer = admin.save(&json!({"web": {"auth_mode": "oidc"}})).await;
    assert_eq!(answer.verdict(), (422, "invalid_config"));
    let problems = answer.body["problems"].as_array().unwrap();
    let keys: Vec<_> = problems.iter().map(|it| &it["key"]).collect();
    let needed = ["oidc.provider_url", "oidc.client_id", "oidc.redirect_url"];
    assert_eq!(keys, needed);
    let unknown = admin.save(&json!({"web": {"auth_mode": "magic"}})).await;
    assert_eq!(unknown.verdict(), (422, "invalid_config"));
}

#[tokio::test]
async fn values_that_are_not_available_yet_are_refused_as_such_and_what_is_shown_goes_back_unchanged()
 {
    let admin = admin().await;
    let document = json!({"mcp": {"policy": {"browser": {"mode": "ask"}}}, "image.tag": "2"});
    let message = "mcp.policy: browser.mode: ask is not available yet; use off, read-only or auto";
    for more in [&[][..], &[("dry_run", "1")]] {
        let answer = admin.save_with(&document, more).await;
        assert_eq!(answer.verdict(), (422, "not_available_yet"));
        let said = format!("the configuration was not saved: {message}");
        assert_eq!(answer.body["error"], said);
        let problem = json!({
            "key": "mcp.policy",
            "code": "not_available_yet",
            "message": message,
        });
        assert_eq!(answer.body["problems"], json!([problem]));
    }
    assert_eq!(admin.stored("image.tag").await, None);
    let shown = admin.read().await;
    assert_eq!(shown.headers[GENERATION], "1");
    let again = admin.save(&shown.body).await;
    assert_eq!(
        (again.status.as_u16(), &again.body["changed"]),
        (200, &json!([]))
    );
    let defaults = json!({"mcp.session_strict": false, "mcp.policy": null});
    assert_eq!(admin.save(&defaults).await.status, 200);
}

#[tokio::test]
async fn the_next_request_obeys_new_settings() {
    let admin = admin().await;
    let foreign = |path| {
        let ask = admin
            .yard
            .post(path, &[])
            .header("origin", "https://tools.example");
        ask.send()
    };
    assert_eq!(
        foreign("/api/logout").await.verdict(),
        (403, "csrf_invalid")
    );
    admin
        .save(&json!({"web.allowed_origins": ["https://tools.example"]}))
        .await;
    assert_eq!(foreign("/api/logout").await.status, 200);
}

#[tokio::test]
async fn what_no_agent_can_read_is_refused() {
    let admin = admin().await;
    let deep = (0..80).fold(json!(1), |inner, _| json!({ "a": inner }));
    for key in ["agent", "security"] {
        let answer = admin.save(&json!({ key: deep, "image.tag": "2" })).await;
        assert_eq!(answer.verdict(), (422, "invalid_config"), "{key}");
        assert_eq!(answer.body["problems"][0]["key"], key);
    }
    assert_eq!(admin.read().await.headers[GENERATION], "1");
}

#[tokio::test]
async fn other_channel_of_the_chats_type_is_refused() {
    let admin = admin().await;
    admin.activate("picoclaw").await;
    let rival = json!({"channel_list": {"web": {"enabled": true, "type": "pico"}}});
    let answer = admin.save(&json!({ "agent": rival })).await;
    assert_eq!(answer.verdict(), (422, "invalid_config"), "{answer:?}");
    let problem = &answer.body["problems"][0];
    assert_eq!(problem["key"], "agent");
    assert_eq!(
        problem["message"],
        "agent enables channel_list.web, a channel of the type pico: agents take one of that type, and the chat \
         needs it; disable that channel, or set chat.enabled to false"
    );
    let off = json!({ "agent": rival, "chat.enabled": false });
    assert_eq!(admin.save(&off).await.status, 202);
    let on = admin.save(&json!({"chat.enabled": true})).await;
    assert_eq!(on.verdict(), (422, "invalid_config"), "{on:?}");
    let mended = json!({"channel_list": {"web": {"enabled": false, "type": "pico"}}});
    let mended = json!({ "agent": mended, "chat.enabled": true });
    assert_eq!(admin.save(&mended).await.status, 202);
}

async fn generation(admin: &Admin, name: &str) -> i64 {
    let mut connection = admin.yard.world.deps.db.read().await.unwrap();
    let object = object::find_by_name(&mut connection, Kind::Container, name).await;
    object.unwrap().unwrap().generation.0
}

#[tokio::test]
async fn a_dry_run_tells_what_would_restart_and_saves_nothing() {
    let admin = admin().await;
    let limited = admin.yard.find("bob").await.unwrap().uid;
    let disabled = admin.yard.create_user("disabled").await;
    let mut tx = admin.yard.tx().await;
    container::set_limits(&mut tx, &limited, Some(2.0), None, None)
        .await
        .unwrap();
    user::set_disabled(&mut tx, &disabled, true, None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let before = generation(&admin, "alice").await;
    for (config, restarts) in [
        (json!({"container.pids_limit": 100}), 2),
        (json!({"container.cpu_limit": 1}), 1),
        (
            json!({"container": {"cpu_limit": 1, "memory_limit_mb": 512}}),
            2,
        ),
        (json!({"container.memory_limit_mb": 1024}), 0),
        (json!({"container.service_url": "http://10.0.0.1:8081"}), 2),
        (json!({"agent": {"model": "large"}}), 2),
        (json!({"security": {"token": "hunter2"}}), 2),
        (json!({"image.tag": "2"}), 0),
    ] {
        let answer = admin.save_with(&config, &[("dry_run", "1")]).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.body["restarts"], restarts, "{config}");
    }
    let config = json!({"image.tag": "2", "web.public_url": null});
    let dry = admin.save_with(&config, &[("dry_run", "true")]);
    assert_eq!(dry.await.body["changed"], json!(["image.tag"]));
    assert_eq!(admin.read().await.headers[GENERATION], "1");
    assert_eq!(generation(&admin, "alice").await, before);
    admin.save(&json!({"container.pids_limit": 100})).await;
    assert_eq!(generation(&admin, "alice").await, before + 1);
}

#[tokio::test]
async fn a_save_tells_how_far_what_follows_from_it_is() {
    let admin = admin().await;
    let told = |answer: &Answer| (answer.status.as_u16(), answer.body["state"].clone());
    // Nothing follows from it.
    let saved = admin
        .save(&json!({"web.public_url": "https://a.example"}))
        .await;
    assert_eq!(told(&saved), (200, json!("converged")));
    assert_eq!(saved.body["object"], "config");
    assert_eq!(saved.body["generation"], 2);
    let dry = json!({"container.pids_limit": 200});
    let dry = admin.save_with(&dry, &[("dry_run", "1")]).await;
    assert_eq!(told(&dry), (200, Value::Null));

    // All containers follow from it: not waited for unless asked.
    let saved = admin.save(&json!({"container.pids_limit": 100})).await;
    assert_eq!(told(&saved), (202, json!("pending")));
    let uids = ["alice", "bob"];
    let settle = async |reason: Reason| {
        for name in uids {
            let uid = admin.yard.find(name).await.unwrap().uid;
            let mut tx = admin.yard.tx().await;
            let object = object::get(&mut tx, Kind::Container, &uid)
                .await
                .unwrap()
                .unwrap();
            let condition = match reason {
                Reason::Running => Condition::ready(reason, ""),
                reason => Condition::not_ready(reason, ""),
            };
            let status = StatusRow {
                observed_generation: object.generation,
                conditions: vec![condition],
                ..StatusRow::default()
            };
            let kind = Kind::Container;
            assert!(
                object::save_status(&mut tx, kind, &uid, &status, Epoch(1))
                    .await
                    .unwrap()
            );
            tx.commit().await.unwrap();
        }
    };
    for (limit, reason, expected) in [
        (101, Reason::Running, (200, "converged")),
        (102, Reason::Progressing, (202, "pending")),
        (103, Reason::CrashLoop, (200, "failed")),
    ] {
        let change = json!({"container.pids_limit": limit});
        let wait = [("wait", "1")];
        let (saved, ()) = tokio::join!(admin.save_with(&change, &wait), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            settle(reason).await;
        });
        assert_eq!(told(&saved), (expected.0, json!(expected.1)), "{saved:?}");
    }
}

#[tokio::test]
async fn the_network_stays_while_containers_exist() {
    let admin = admin().await;
    let change = json!({"container.network_subnet": "10.99.0.0/16"});
    assert_eq!(admin.save(&change).await.verdict(), (409, "network_in_use"));
    let dry = admin.save_with(&change, &[("dry_run", "1")]).await;
    assert_eq!(dry.verdict(), (409, "network_in_use"));
    let same = json!({"container.network_subnet": "10.88.0.0/16"});
    assert_eq!(admin.save(&same).await.status, 200);
    let mut uids = Vec::new();
    for name in ["alice", "bob"] {
        let uid = admin.yard.find(name).await.unwrap().uid;
        let mut tx = admin.yard.tx().await;
        let stopped = container::Desired::Stopped;
        container::set_desired(&mut tx, &uid, stopped, false, None)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        uids.push(uid);
    }
    let mut facts = ContainerFacts {
        engine_id: Some("still there".to_owned()),
        ..ContainerFacts::default()
    };
    for expected in [(409, "network_in_use"), (202, "")] {
        let mut tx = admin.yard.tx().await;
        container::save_facts(&mut tx, &uids[0], &facts)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        assert_eq!(admin.save(&change).await.verdict(), expected);
        facts.engine_id = None;
    }
}

#[tokio::test]
async fn settings_follow_what_others_save() {
    let admin = admin().await;
    let deps = &admin.yard.world.deps;
    let shutdown = CancellationToken::new();
    let (sender, mut settings) = tokio::sync::watch::channel(Default::default());
    let key = deps.master_key.clone();
    let follow = settings::follow(deps.db.clone(), key, sender, shutdown.clone());
    let test = async {
        settings.changed().await.unwrap();
        assert_eq!(settings.borrow_and_update().generation, 1);
        admin
            .save(&json!({"web.desktop_user_agents": ["Desk"]}))
            .await;
        let changed = tokio::time::timeout(Duration::from_secs(5), settings.changed()).await;
        changed.expect("the bell wakes it").unwrap();
        assert_eq!(settings.borrow_and_update().desktop_user_agents, ["Desk"]);
        admin.yard.world.db.close().await;
        let stays = tokio::time::timeout(Duration::from_millis(50), settings.changed()).await;
        assert!(stays.is_err());
        shutdown.cancel();
    };
    tokio::join!(follow, test);
}

#[test]
fn older_settings_never_replace_newer_ones() {
    let (sender, receiver) = tokio::sync::watch::channel(Default::default());
    for generation in [2, 5, 3, 5, 4] {
        let settings = WebSettings {
            generation,
            ..WebSettings::default()
        };
        settings::publish(&sender, settings);
    }
    assert_eq!(receiver.borrow().generation, 5);
}

#[tokio::test]
async fn save_of_ready_agents_is_a_task_that_names_the_way_back() {
    let admin = admin().await;
    let alice = admin.yard.find("alice").await.unwrap().uid;
    let status = StatusRow {
        observed_generation: Generation(1),
        conditions: vec![Condition::ready(Reason::Running, "up")],
        ..StatusRow::default()
    };
    let mut tx = admin.yard.tx().await;
    object::save_status(&mut tx, Kind::Container, &alice, &status, Epoch(1))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let config = json!({"container.pids_limit": 100});
    let dry = admin.save_with(&config, &[("dry_run", "1")]).await;
    assert_eq!(dry.body["restarted_users"], json!(["alice", "bob"]));
    assert_eq!(dry.body["task_id"], Value::Null);
    let saved = admin.save(&config).await;
    assert_eq!(saved.status, 202, "{saved:?}");
    let message = saved.body["message"].as_str().unwrap();
    assert!(
        message.contains("`agentyard config rollback 1` takes it back"),
        "{message}"
    );
    let task = saved.body["task_id"].as_str().unwrap();
    let path = format!("/api/admin/images/rollouts/{task}");
    let rollout = admin
        .yard
        .get(&path)
        .with("root", &admin.cookie)
        .send()
        .await;
    assert_eq!(rollout.body["rollout"]["type"], "config", "{rollout:?}");
    assert_eq!(rollout.body["users"][0]["username"], "alice");
}

#[tokio::test]
async fn more_processors_than_the_engine_has_are_refused() {
    let admin = admin().await;
    let refused = admin.save(&json!({"container.cpu_limit": 1000})).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    let said = refused.body["problems"][0]["message"].as_str().unwrap();
    assert!(said.contains("set 2 or fewer"), "{said}");
    assert_eq!(
        admin.save(&json!({"container.cpu_limit": 2})).await.status,
        202
    );
}

#[tokio::test]
async fn an_integer_that_would_lose_digits_is_refused() {
    let admin = admin().await;
    let big = json!({"agent": {"id": u64::MAX, "chat": -1001234567890123456_i64}});
    assert_eq!(admin.save(&big).await.status, 202);
    let stored = admin.stored("agent").await.unwrap();
    assert_eq!(stored, big["agent"], "kept exactly");
    assert!(admin.read().await.text.contains("18446744073709551615"));
    let long = r#"{"agent": {"chat": {"id": 123456789012345678901234567890}}}"#;
    let form = [("config", long)];
    let by_form = admin.yard.post(PATH, &form);
    let body = format!(r#"{{"config": {long}}}"#);
    let by_json = admin.yard.post_raw(PATH, "application/json", &body);
    for ask in [by_form, by_json] {
        let answer = ask.with("root", &admin.cookie).send().await;
        assert_eq!(answer.verdict(), (422, "invalid_config"), "{answer:?}");
        let message = answer.body["problems"][0]["message"].as_str().unwrap();
        assert!(message.contains("id") && message.contains("quotes"));
    }
}
