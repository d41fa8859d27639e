//! Users' own settings over HTTP, on a real database without reconcilers, with the echo adapter: `chat` and `mail`
//! have fields of the same names.

mod channels;
mod chatapp;
mod cookies;
mod fields;
mod saving;
mod secrets;

use std::collections::BTreeMap;

use schema::agent_config::{self, UserValues};
use schema::condition::{Condition, Reason};
use schema::container;
use schema::ids::{Epoch, Kind, Uid};
use schema::object::{self, ObjectRow, StatusRow};
use serde_json::{Value, json};

use crate::route::Modes;
use crate::routes::yard::{Answer, Yard, yard};

const CHATAPP: &str = "/api/chatapp";
const CHANNELS: &str = "/api/agent/channels";
const FIELDS: &str = "/api/agent/config-fields";
const COOKIES: &str = "/api/cookies";
const DOMAINS: &str = "/api/user/cookies";
const DELETE: &str = "/api/user/cookies/delete";

/// A yard in which alice and an administrator are signed in.
struct Desk {
    yard: Yard,
    alice: String,
    root: String,
}

async fn desk() -> Desk {
    let yard = yard().await;
    let alice = yard.sign_in("alice").await;
    let root = yard.sign_in("root").await;
    Desk { yard, alice, root }
}

/// A desk at which both channels are allowed.
async fn open_desk() -> Desk {
    let desk = desk().await;
    desk.allow(&["chat", "mail"]).await;
    desk
}

impl Desk {
    /// Allows these channels and no others.
    async fn allow(&self, channels: &[&str]) {
        let enabled = ["chat", "mail"].map(|channel| {
            let enabled = json!({"enabled": channels.contains(&channel)});
            (channel.to_owned(), enabled)
        });
        let agent = json!({"channel_list": Value::Object(enabled.into_iter().collect())});
        self.configure(&json!({"agent": agent})).await;
    }

    async fn configure(&self, config: &Value) {
        let form = [("config", &*config.to_string())];
        let ask = self.yard.post("/api/config", &form);
        let answer = ask.with("root", &self.root).send().await;
        assert_eq!(answer.status, 202, "{answer:?}");
    }

    async fn get(&self, path: &str) -> Answer {
        self.yard.get(path).with("alice", &self.alice).send().await
    }

    /// POST of form fields; nobody reconciles here, so nothing is waited for.
    async fn post(&self, path: &str, form: &[(&str, &str)]) -> Answer {
        let form = [form, &[("wait", "0")]].concat();
        let ask = self.yard.post(path, &form);
        ask.with("alice", &self.alice).send().await
    }

    async fn post_json(&self, path: &str, body: &Value) -> Answer {
        let mut body = body.clone();
        body["wait"] = json!(0);
        let ask = self.yard.post_json(path, &body);
        ask.with("alice", &self.alice).send().await
    }

    /// Saves values of a channel, which is accepted.
    async fn set(&self, section: &str, values: &Value) -> Value {
        let body = json!({"section": section, "values": values});
        let answer = self.post_json(FIELDS, &body).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.body
    }

    async fn uid(&self, name: &str) -> Uid {
        self.yard.find(name).await.unwrap().uid
    }

    /// What is stored for alice.
    async fn stored(&self) -> UserValues {
        let uid = self.uid("alice").await;
        let mut connection = self.yard.world.deps.db.read().await.unwrap();
        let key = &self.yard.world.deps.master_key;
        agent_config::values(&mut connection, key, &uid)
            .await
            .unwrap()
    }

    async fn object(&self, kind: Kind) -> ObjectRow {
        let uid = self.uid("alice").await;
        let mut connection = self.yard.world.deps.db.read().await.unwrap();
        let row = object::get(&mut connection, kind, &uid).await.unwrap();
        row.unwrap()
    }

    /// Generations of alice's files and container, and the container's restart token.
    async fn marks(&self) -> (i64, i64, String) {
        let uid = self.uid("alice").await;
        let mut connection = self.yard.world.deps.db.read().await.unwrap();
        let row = container::get(&mut connection, &uid).await.unwrap();
        let row = row.unwrap();
        let files = object::get(&mut connection, Kind::AgentConfig, &uid).await;
        let files = files.unwrap().unwrap().generation;
        (files.0, row.generation.0, row.restart_token)
    }

    /// What a reconciler would save of alice's object, and tells whoever waits.
    async fn saw(&self, kind: Kind, said: Condition) {
        let (uid, generation) = (self.uid("alice").await, self.object(kind).await.generation);
        let status = StatusRow {
            observed_generation: generation,
            conditions: vec![said],
            ..StatusRow::default()
        };
        let mut tx = self.yard.tx().await;
        let saved = object::save_status(&mut tx, kind, &uid, &status, Epoch(1)).await;
        assert!(saved.unwrap());
        tx.commit().await.unwrap();
        let ticks = &self.yard.world.status_ticks;
        ticks.send_modify(|ticks| *ticks += 1);
    }
}

/// The `problems` of a refusal, as `key: message`.
fn problems(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.verdict(), (422, "invalid_values"), "{answer:?}");
    let problems = answer.body["problems"].as_array().unwrap().iter();
    problems
        .map(|problem| {
            format!(
                "{}: {}",
                problem["key"].as_str().unwrap(),
                problem["message"].as_str().unwrap()
            )
        })
        .collect()
}

fn ready() -> Condition {
    Condition::ready(Reason::Running, "")
}

#[tokio::test]
async fn nothing_here_is_for_superadmins_or_strangers() {
    let desk = open_desk().await;
    for (post, path) in [
        (false, CHATAPP),
        (true, CHATAPP),
        (false, CHANNELS),
        (false, FIELDS),
        (true, FIELDS),
        (true, COOKIES),
        (false, DOMAINS),
        (true, DELETE),
    ] {
        let ask = || match post {
            true => desk.yard.post(path, &[]),
            false => desk.yard.get(path),
        };
        let root = ask().with("root", &desk.root).send().await;
        assert_eq!(root.verdict(), (403, "wrong_role"), "{path}");
        let stranger = ask().send().await;
        assert_eq!(stranger.verdict(), (401, "not_signed_in"), "{path}");
        let mut rows = crate::routes::all().into_iter();
        let row = rows.find(|row| row.path == path && row.is_post() == post);
        assert_eq!(row.unwrap().modes, Modes::Any, "{path}");
    }
}

#[tokio::test]
async fn l46_a_get_writes_nothing() {
    let desk = open_desk().await;
    desk.set("chat", &json!({"client_id": "a", "client_secret": "b"}))
        .await;
    let before = (desk.marks().await, newest_change(&desk).await);
    for path in [CHATAPP, CHANNELS, FIELDS, DOMAINS] {
        assert_eq!(desk.get(path).await.status, 200, "{path}");
    }
    for path in [
        "/api/agent/config-fields?section=chat&config_version=1",
        "/api/agent/channels?config_version=2",
        "/api/agent/config-fields?section=nowhere",
    ] {
        desk.get(path).await;
    }
    assert_eq!((desk.marks().await, newest_change(&desk).await), before);
}

async fn newest_change(desk: &Desk) -> String {
    let mut connection = desk.yard.world.deps.db.read().await.unwrap();
    let position = schema::change::position(&mut connection).await.unwrap();
    format!("{position:?}")
}
