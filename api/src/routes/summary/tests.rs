use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use schema::audit::{About, Author, Outcome};
use schema::condition::Condition;
use schema::config::query::engine_uid;
use schema::container::{self, Desired};
use schema::ids::Uid;
use serde_json::{Value, json};
use tracing::Instrument;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use super::*;
use crate::ports::{Fault, Health};
use crate::routes::test_support::{Yard, yard};
use crate::testing::NOW;

const SUMMARY: &str = "/api/admin/summary";
const LIST: &str = "/api/admin/users";
/// The span whose statements are counted.
const COUNTED: &str = "counted_request";

async fn all_ready(yard: &Yard, uid: &Uid) {
    let running = Condition::ready(Reason::Running, "");
    yard.saw(Kind::Container, uid, 1, running).await;
    for kind in [Kind::User, Kind::AgentConfig, Kind::SkillSet] {
        yard.saw(kind, uid, 1, Condition::ready(Reason::Converged, ""))
            .await;
    }
}

fn since(condition: Condition, ago: Duration) -> Condition {
    Condition {
        last_transition_at: NOW.minus(ago),
        ..condition
    }
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn states_are_those_of_the_list_of_users() {
    let yard = yard().await;
    for name in ["ada", "bob", "cleo", "dan", "eve"] {
        let uid = yard.user(name).await;
        all_ready(&yard, &uid).await;
    }
    let [ada, bob, cleo] = ["ada", "bob", "cleo"].map(|name| Uid::from(name.to_owned()));
    let failed = Condition::not_ready(Reason::ImageMissing, "no such image");
    yard.saw(Kind::Container, &ada, 1, failed).await;
    let broken = Condition::not_ready(Reason::InvalidUserConfig, "no JSON");
    yard.saw(Kind::AgentConfig, &bob, 1, broken).await;
    let mut tx = yard.world.db.begin().await.unwrap();
    container::set_desired(&mut tx, &cleo, Desired::Stopped, false, None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    yard.user("fay").await;
    for pause in ["", "container", "*"] {
        let mut tx = yard.world.db.begin().await.unwrap();
        if !pause.is_empty() {
            object::set_reconciler_paused(&mut tx, pause, true)
                .await
                .unwrap();
        }
        tx.commit().await.unwrap();
        let list = yard.get(LIST).await.is(200);
        let mut states: BTreeMap<String, u64> = BTreeMap::new();
        for user in list["users"].as_array().unwrap() {
            let word = user["status"].as_str().unwrap();
            *states.entry(word.to_owned()).or_default() += 1;
        }
        let summary = yard.get(SUMMARY).await.is(200);
        let counted = summary["agents"]["states"].as_array().unwrap();
        let counted: BTreeMap<String, u64> = counted
            .iter()
            .map(|state| {
                (
                    state["state"].as_str().unwrap().to_owned(),
                    state["count"].as_u64().unwrap(),
                )
            })
            .collect();
        assert_eq!(counted, states, "paused: {pause}");
        assert_eq!(summary["agents"]["total"], 6);
        let ready = 6 - list["not_ready"].as_u64().unwrap();
        assert_eq!(summary["agents"]["ready"], ready, "paused: {pause}");
    }
    assert_eq!(
        yard.get(SUMMARY).await.is(200)["paused"],
        json!(["*", "container"])
    );
}

#[tokio::test]
async fn problems_are_grouped_with_the_engine_first() {
    let yard = yard().await;
    let mut tx = yard.world.db.begin().await.unwrap();
    object::ensure_singles(&mut tx, NOW).await.unwrap();
    tx.commit().await.unwrap();
    let crash = |message: &str, ago| since(Condition::not_ready(Reason::CrashLoop, message), ago);
    for number in (0..7_u32).rev() {
        let uid = yard.user(&format!("u{number}")).await;
        let said = crash(&format!("exit {number}"), MINUTE * (10 - number));
        yard.saw(Kind::Container, &uid, 1, said).await;
    }
    let slow = yard.user("slow").await;
    let step = |ago| since(Condition::not_ready(Reason::NotReady, "no answer yet"), ago);
    yard.saw(Kind::Container, &slow, 1, step(MINUTE * 4)).await;
    let away = Condition::unknown(Reason::EngineUnavailable, "connection refused");
    yard.saw(Kind::Engine, &engine_uid(), 1, since(away, MINUTE))
        .await;
    let problems = async || yard.get(SUMMARY).await.is(200)["problems"].clone();
    let engine = json!({
        "kind": "engine", "reason": "EngineUnavailable", "count": 1, "objects": ["local"],
        "since": NOW.minus(MINUTE), "message": "connection refused",
        "remedy": Reason::EngineUnavailable.remedy(),
    });
    let containers = json!({
        "kind": "container", "reason": "CrashLoop", "count": 7, "objects": ["u0", "u1", "u2", "u3", "u4"],
        "since": NOW.minus(MINUTE * 10), "message": "exit 6", "remedy": Reason::CrashLoop.remedy(),
    });
    assert_eq!(problems().await, json!([engine, containers]));
    yard.saw(Kind::Container, &slow, 1, step(MINUTE * 6)).await;
    let with_slow = problems().await;
    assert_eq!(with_slow[2]["reason"], "NotReady");
    let waits = Condition {
        waits_for: Some("agent-config/slow".parse().unwrap()),
        ..step(MINUTE * 6)
    };
    yard.saw(Kind::Container, &slow, 1, waits).await;
    assert_eq!(problems().await, json!([engine, containers]));
}

/// A service whose storage is full.
struct Full;

impl Health for Full {
    fn parts(&self) -> Vec<PartHealth> {
        let fault = Fault {
            since: NOW,
            reason: Reason::StorageFull,
            message: "no space left".to_owned(),
            fatal: false,
        };
        vec![PartHealth {
            part: "storage".to_owned(),
            fault: Some(fault),
        }]
    }

    fn disk(&self) -> Option<Space> {
        Some(Space { free: 1, total: 9 })
    }
}

#[tokio::test]
async fn faults_of_the_service_come_before_all_others() {
    let mut yard = yard().await;
    yard.deps().health = Arc::new(Full);
    let uid = yard.user("ada").await;
    let failed = Condition::not_ready(Reason::ImageMissing, "no such image");
    yard.saw(Kind::Container, &uid, 1, failed).await;
    let summary = yard.get(SUMMARY).await.is(200);
    let first = &summary["problems"][0];
    let expected = json!([
        "service",
        "StorageFull",
        ["agentyard"],
        "storage: no space left"
    ]);
    assert_eq!(
        json!([
            first["kind"],
            first["reason"],
            first["objects"],
            first["message"]
        ]),
        expected
    );
    assert_eq!(summary["problems"][1]["reason"], "ImageMissing");
    assert_eq!(summary["conditions"][0]["reason"], "StorageFull");
    assert_eq!(summary["disk"], json!({"free": 1, "total": 9}));
    assert_eq!(summary["database"]["kind"], "sqlite");
    assert_eq!(summary["last_sync"], Value::Null);
}

#[tokio::test]
async fn only_the_newest_failed_rollout_is_a_problem() {
    let yard = yard().await;
    let failed = |name: &str| Condition::not_ready(Reason::RolloutFailed, name);
    for (name, at) in [("first", NOW), ("second", NOW.plus(MINUTE))] {
        let uid = Uid::from(name.to_owned());
        let mut tx = yard.world.db.begin().await.unwrap();
        object::insert(&mut tx, Kind::Rollout, &uid, name, at)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        yard.saw(Kind::Rollout, &uid, 1, failed(name)).await;
    }
    let problems = yard.get(SUMMARY).await.is(200)["problems"].clone();
    assert_eq!(
        (&problems[0]["objects"], &problems[0]["count"]),
        (&json!(["second"]), &json!(1))
    );
}

#[tokio::test]
async fn changes_are_those_that_people_made() {
    let yard = yard().await;
    let entries = [
        ("root", "users_create", Outcome::Ok),
        ("root", "users_delete", Outcome::Refused),
        ("alice", "login", Outcome::Ok),
        ("alice", "mcp_call", Outcome::Ok),
        ("alice", "files_upload", Outcome::Ok),
        ("alice", "chat_create", Outcome::Ok),
        ("alice", "chat_app_save", Outcome::Ok),
        ("system:rollout", "rollout_move", Outcome::Ok),
        ("local:0", "reset-password", Outcome::Ok),
    ];
    let mut tx = yard.world.db.begin().await.unwrap();
    for (actor, action, outcome) in entries {
        let author = Author {
            actor: actor.to_owned(),
            ..Author::local(0, action)
        };
        let entry = audit::Entry::new(author, About::whole("config"), outcome, NOW);
        audit::append(&mut tx, yard.world.deps.writer.key(), &entry)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
    let summary = yard.get(SUMMARY).await.is(200);
    let changes = summary["changes"].as_array().unwrap().iter();
    let actions: Vec<_> = changes
        .map(|change| change["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["reset-password", "users_create"]);
}

/// Counts statements inside of [`COUNTED`].
struct Counter(Arc<AtomicUsize>);

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Counter {
    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let mut spans = context.event_scope(event).into_iter().flatten();
        if event.metadata().target() == "sqlx::query" && spans.any(|span| span.name() == COUNTED) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[tokio::test]
async fn number_of_statements_is_the_same_for_all_sizes() {
    let counter = Arc::new(AtomicUsize::new(0));
    let relevant =
        filter_fn(|metadata| metadata.target() == "sqlx::query" || metadata.name() == COUNTED);
    let layer = Counter(counter.clone()).with_filter(relevant);
    let subscriber = tracing_subscriber::registry().with(layer);
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let yard = yard().await;
    // The first request reads the adapter.
    yard.get(SUMMARY).await.is(200);
    let mut costs = Vec::new();
    for users in [0..5, 5..500] {
        for number in users {
            let uid = yard.user(&format!("u{number:03}")).await;
            let said = Condition::not_ready(Reason::CrashLoop, format!("exit {number}"));
            yard.saw(Kind::Container, &uid, 1, said).await;
        }
        let before = counter.load(Ordering::SeqCst);
        let span = tracing::info_span!(COUNTED);
        yard.get(SUMMARY).instrument(span).await.is(200);
        costs.push(counter.load(Ordering::SeqCst) - before);
    }
    assert_eq!(costs[0], costs[1], "5 users cost what 500 do");
    assert!((5..=20).contains(&costs[0]), "{costs:?} statements");
}
