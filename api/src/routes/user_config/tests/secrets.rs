use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use super::*;

/// In every secret that is sent.
const CANARY: &str = "cAnArY";

#[tokio::test]
async fn l6_the_next_bearer_of_a_name_inherits_nothing() {
    let desk = open_desk().await;
    desk.set(
        "chat",
        &json!({"client_id": "old", "client_secret": "old", "enabled": true}),
    )
    .await;
    desk.post(COOKIES, &[("domain", "a.example"), ("cookies", "a=1")])
        .await;
    let uid = desk.uid("alice").await;
    let mut tx = desk.yard.tx().await;
    let now = crate::testing::NOW;
    schema::user::delete(&mut tx, &uid, now).await.unwrap();
    tx.commit().await.unwrap();
    assert!(
        forgotten(&desk, &uid).await,
        "at once, not with the last trace"
    );
    let mut tx = desk.yard.tx().await;
    assert!(container::purge(&mut tx, &uid).await.unwrap());
    assert!(schema::user::purge(&mut tx, &uid).await.unwrap());
    tx.commit().await.unwrap();

    desk.yard.create_user("alice").await;
    assert_eq!(desk.get(DOMAINS).await.status, 401, "nor the session");
    let alice = desk.yard.sign_in("alice").await;
    let desk = Desk { alice, ..desk };
    assert!(desk.get(DOMAINS).await.body["cookies"] == json!([]));
    assert_eq!(desk.get(CHATAPP).await.body["client_secret_set"], false);
    let fields = desk.get(FIELDS).await.body;
    let fields = fields["fields"].as_array().unwrap();
    assert!(fields.iter().all(|field| field["set"] == false));
    assert!(forgotten(&desk, &desk.uid("alice").await).await);
}

async fn forgotten(desk: &Desk, uid: &Uid) -> bool {
    let mut connection = desk.yard.world.deps.db.read().await.unwrap();
    let key = &desk.yard.world.deps.master_key;
    let values = agent_config::values(&mut connection, key, uid).await;
    values.unwrap() == UserValues::default()
}

#[tokio::test]
async fn users_see_and_change_their_own_only() {
    let desk = open_desk().await;
    desk.set(
        "chat",
        &json!({"client_id": "alices", "client_secret": "s"}),
    )
    .await;
    let bob = desk.yard.sign_in("bob").await;
    let ask = desk.yard.get(CHATAPP);
    let answer = ask.with("bob", &bob).send().await;
    assert_eq!(
        (&answer.body["client_id"], answer.status.as_u16()),
        (&json!(""), 200)
    );
    let form = [
        ("client_id", "bobs"),
        ("client_secret", "t"),
        ("wait", "0"),
        ("username", "alice"),
    ];
    let saved = desk
        .yard
        .post(CHATAPP, &form)
        .with("bob", &bob)
        .send()
        .await;
    assert_eq!(saved.body["object"], "agent-config/bob", "{saved:?}");
    assert_eq!(desk.stored().await.channels["chat"]["client_id"], "alices");
}

/// A request that means well, or not.
#[derive(Debug, Clone)]
enum Sent {
    Fields(String, Value),
    Text(String, String),
    Chat(String, String),
    Cookies(String, String),
    Forget(String),
}

fn a_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(|text| Value::from(format!("{CANARY}{text}"))),
        Just(Value::from("")),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn sent() -> impl Strategy<Value = Sent> {
    let section = || prop_oneof![Just("chat".to_owned()), Just("mail".to_owned()), ".{0,10}"];
    let key = prop_oneof![
        prop::sample::select(vec![
            "client_id",
            "client_secret",
            "enabled",
            "port",
            "interval",
            "encryption",
            "headers",
            "allow_from",
        ])
        .prop_map(str::to_owned),
        ".{0,10}",
    ];
    let values = prop::collection::btree_map(key, a_value(), 0..6);
    let secret = ".{0,40}".prop_map(|text| format!("{CANARY}{text}"));
    let domain = prop_oneof!["[a-z]{1,5}\\.example", ".{0,30}"];
    prop_oneof![
        4 => (section(), values).prop_map(|(section, values)| {
            Sent::Fields(section, Value::Object(values.into_iter().collect()))
        }),
        1 => (section(), ".{0,40}").prop_map(|(section, text)| Sent::Text(section, text)),
        2 => (".{0,20}", secret.clone()).prop_map(|(id, secret)| Sent::Chat(id, secret)),
        2 => (domain.clone(), secret).prop_map(|(domain, secret)| Sent::Cookies(domain, secret)),
        1 => domain.prop_map(Sent::Forget),
    ]
}

impl Desk {
    async fn send(&self, sent: &Sent) -> Answer {
        match sent {
            Sent::Fields(section, values) => {
                let body = json!({"section": section, "values": values});
                self.post_json(FIELDS, &body).await
            }
            Sent::Text(section, text) => {
                self.post(FIELDS, &[("section", section), ("values", text)])
                    .await
            }
            Sent::Chat(id, secret) => {
                self.post(CHATAPP, &[("client_id", id), ("client_secret", secret)])
                    .await
            }
            Sent::Cookies(domain, cookies) => {
                self.post(COOKIES, &[("domain", domain), ("cookies", cookies)])
                    .await
            }
            Sent::Forget(domain) => self.post(DELETE, &[("domain", domain)]).await,
        }
    }
}

/// What is written to the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Whatever is sent, nothing breaks, and nothing that is secret is ever told again.
#[test]
fn whatever_is_sent_nothing_breaks_and_no_secret_comes_back() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    let desk = runtime.block_on(open_desk());
    let mut runner = TestRunner::new(Config::with_cases(96));
    let outcome = runner.run(&sent(), |sent| {
        runtime.block_on(async {
            let answer = desk.send(&sent).await;
            prop_assert!(answer.status.as_u16() < 500, "{answer:?}");
            prop_assert!(!answer.text.contains(CANARY), "{answer:?}");
            Ok(())
        })
    });
    outcome.unwrap();
    runtime.block_on(async {
        // A channel and cookies are set for sure, with a canary in everything that is secret.
        let secret = format!("{CANARY}secret");
        desk.set("chat", &json!({"client_id": "id", "client_secret": secret}))
            .await;
        let form = [("domain", "sure.example"), ("cookies", &*secret)];
        assert_eq!(desk.post(COOKIES, &form).await.status, 202);
        desk.set(
            "mail",
            &json!({"client_id": "id", "client_secret": secret, "headers": null}),
        )
        .await;
        assert_eq!(
            desk.stored().await.channels["chat"]["client_secret"],
            secret
        );
        for path in [
            CHATAPP,
            CHANNELS,
            "/api/agent/config-fields?section=chat",
            DOMAINS,
        ] {
            let answer = desk.get(path).await;
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
            assert!(!answer.text.contains(&secret), "{path}: {answer:?}");
        }
        for path in [
            "/api/admin/audit/export",
            "/api/admin/events",
            "/api/admin/reconcile/objects/agent-config/alice",
        ] {
            let answer = desk.yard.get(path).with("root", &desk.root).send().await;
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
            assert!(!answer.text.contains(CANARY), "{path}");
        }
    });
    let log = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned();
    assert!(log.contains("own_fields_save") && log.contains("cookies_save"));
    assert!(!log.contains(CANARY), "{log}");
}
