use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use schema::condition::{Condition, ConditionStatus, ConditionType, Reason};
use schema::event;
use schema::ids::ObjectRef;
use serde_json::{Value, json};

use super::*;
use crate::ports::{DryRun, LeaderState, Leadership, NextReconciliation, Reconcilers, Trigger};
use crate::routes::test_support::{Yard, yard};
use crate::testing::NOW;

mod events;

/// Reconcilers that note what they are asked.
#[derive(Default)]
struct Asked {
    standby: bool,
    broken: bool,
    notes: Mutex<Vec<String>>,
}

impl Asked {
    fn note(&self, text: String) {
        self.notes.lock().unwrap().push(text);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock().unwrap())
    }
}

impl Leadership for Asked {
    fn leader(&self) -> LeaderState {
        LeaderState {
            leading: !self.standby,
            holder: Some("one".to_owned()),
        }
    }
}

#[async_trait]
impl Reconcilers for Asked {
    fn summaries(&self) -> Vec<(&'static str, LiveNumbers)> {
        let live = LiveNumbers {
            queue_depth: 7,
            ..LiveNumbers::default()
        };
        vec![("container", live)]
    }

    async fn dry_run(&self, reconciler: &str, key: &str) -> Result<Option<DryRun>, String> {
        if self.broken {
            return Err("the engine can't be reached".to_owned());
        }
        Ok(Some(DryRun {
            generation: Generation(1),
            actions: vec![format!("{reconciler} {key}")],
            conditions: Vec::new(),
            requeue_after_ms: None,
        }))
    }

    fn next_reconciliation(&self, _: &str, _: &str) -> Option<NextReconciliation> {
        (!self.standby).then_some(NextReconciliation {
            by: Trigger::Resync,
            at: Some(NOW),
        })
    }

    fn retry(&self, reconciler: &str, key: &str) {
        self.note(format!("retry {reconciler} {key}"));
    }

    fn wake(&self, reconciler: Option<&str>) {
        self.note(format!("wake {}", reconciler.unwrap_or("all")));
    }
}

async fn with(asked: Asked) -> (Yard, Arc<Asked>) {
    let mut yard = yard().await;
    let asked = Arc::new(asked);
    yard.deps().reconcilers = asked.clone();
    yard.deps().leadership = asked.clone();
    (yard, asked)
}

#[tokio::test]
async fn the_overview_merges_live_and_stored_numbers() {
    let (yard, _) = with(Asked::default()).await;
    let uid = yard.user("alice").await;
    yard.user("bob").await;
    yard.saw(
        Kind::Container,
        &uid,
        1,
        Condition::ready(Reason::Running, ""),
    )
    .await;
    yard.post("/api/admin/reconcile/pause", "reconciler=user")
        .await
        .is(200);
    let body = yard.get("/api/admin/reconcile").await.is(200);
    assert_eq!(
        (&body["leader"]["leading"], &body["paused"]),
        (&json!(true), &json!(false))
    );
    let expected = json!({
        "name": "container", "queue_depth": 7, "objects": 2, "ready": 1, "not_ready": 1,
        "failing": 0, "paused": false,
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&body["reconcilers"][0][name], value, "{name}");
    }
    let user = &body["reconcilers"][1];
    assert_eq!(
        (&user["name"], &user["paused"], &user["objects"]),
        (&json!("user"), &json!(true), &json!(2))
    );
    assert_eq!(
        body["reconcilers"].as_array().unwrap().len(),
        Kind::VARIANTS.len()
    );
}

#[tokio::test]
async fn warning_of_the_engine_is_in_the_overview() {
    let (yard, _) = with(Asked::default()).await;
    let mut tx = yard.world.db.begin().await.unwrap();
    object::ensure_singles(&mut tx, NOW).await.unwrap();
    let [no, open] = [ConditionStatus::False, ConditionStatus::True].map(|status| {
        let kind = ConditionType::HostRestricted;
        Condition::new(kind, status, Reason::HostOpen, "agents reach it")
    });
    tx.commit().await.unwrap();
    let no_model =
        "no model is configured: agents cannot answer; choose one with `agentyard model set`";
    for (restricted, warnings) in [
        (
            no,
            json!([
                "engine/local: HostRestricted=False: agents reach it",
                no_model
            ]),
        ),
        (open, json!([no_model])),
    ] {
        let status = object::StatusRow {
            observed_generation: Generation(1),
            conditions: vec![Condition::ready(Reason::Converged, ""), restricted],
            ..object::StatusRow::default()
        };
        let mut tx = yard.world.db.begin().await.unwrap();
        let (uid, epoch) = (config_query::engine_uid(), schema::ids::Epoch(1));
        let saved = object::save_status(&mut tx, Kind::Engine, &uid, &status, epoch).await;
        assert!(saved.unwrap());
        tx.commit().await.unwrap();
        let overview = yard.get("/api/admin/reconcile").await.is(200);
        assert_eq!(overview["warnings"], warnings);
        let reconcilers = overview["reconcilers"].as_array().unwrap();
        let engine = reconcilers.iter().find(|one| one["name"] == "engine");
        assert_eq!(engine.unwrap()["ready"], 1, "a warning is no failure");
        let path = "/api/admin/reconcile/objects?reconciler=engine&ready=false";
        let not_ready = yard.get(path).await.is(200);
        assert_eq!(not_ready["objects"], json!([]));
    }
}

fn objects_of(body: &Value) -> Vec<&str> {
    let objects = body["objects"].as_array().unwrap();
    objects
        .iter()
        .map(|object| object["object"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn l60_objects_are_filtered_and_paged() {
    let (yard, _) = with(Asked::default()).await;
    let alice = yard.user("alice").await;
    yard.user("bob").await;
    let missing = Condition::not_ready(Reason::ImageMissing, "no such image");
    yard.saw(Kind::Container, &alice, 1, missing).await;
    let list = |query: &'static str| {
        let yard = &yard;
        async move {
            yard.get(&format!("/api/admin/reconcile/objects?{query}"))
                .await
        }
    };
    let all = list("").await.is(200);
    assert_eq!(
        objects_of(&all),
        [
            "agent-config/alice",
            "agent-config/bob",
            "container/alice",
            "container/bob",
            "skill-set/alice",
            "skill-set/bob",
            "user/alice",
            "user/bob"
        ]
    );
    let failing = list("reconciler=container&ready=false").await.is(200);
    assert_eq!(objects_of(&failing), ["container/alice"]);
    let condition = &failing["objects"][0]["conditions"][0];
    assert_eq!(condition["remedy"], Reason::ImageMissing.remedy());
    assert_eq!(
        objects_of(&list("ready=unknown&search=BO").await.is(200)),
        [
            "agent-config/bob",
            "container/bob",
            "skill-set/bob",
            "user/bob"
        ]
    );
    let last = list("page=9&page_size=3").await.is(200);
    assert_eq!(
        (objects_of(&last), &last["page"]),
        (vec!["user/alice", "user/bob"], &json!(3))
    );
    list("ready=maybe").await.fails(400, "invalid_parameter");
    list("reconciler=pods")
        .await
        .fails(400, "invalid_parameter");
}

#[tokio::test]
async fn an_object_is_told_in_full() {
    let (yard, _) = with(Asked::default()).await;
    let uid = yard.user("alice").await;
    yard.saw(
        Kind::Container,
        &uid,
        1,
        Condition::ready(Reason::Running, ""),
    )
    .await;
    let mut tx = yard.world.db.begin().await.unwrap();
    event::record(
        &mut tx,
        Kind::Container,
        &uid,
        Reason::Progressing,
        "Start",
        "started",
        NOW,
    )
    .await
    .unwrap();
    object::add_finalizer(&mut tx, Kind::Container, &uid, "container")
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let body = yard
        .get("/api/admin/reconcile/objects/container/Alice")
        .await
        .is(200);
    assert_eq!(
        (&body["object"], &body["observed_generation"]),
        (&json!("container/alice"), &json!(1))
    );
    assert_eq!(
        (&body["desired"]["running"], &body["desired"]["image"]),
        (&json!(true), &json!("registry:5000/agent:v1"))
    );
    assert_eq!(body["observed"]["crash_count"], 0);
    assert_eq!(body["plan"]["actions"], json!(["container alice"]));
    assert_eq!(body["finalizers"], json!(["container"]));
    assert_eq!(body["events"][0]["message"], "started");
    let user = yard
        .get("/api/admin/reconcile/objects/user/alice")
        .await
        .is(200);
    assert_eq!(user["desired"]["directory"], "users/alice");
    for path in ["container/nobody", "pod/alice"] {
        let path = format!("/api/admin/reconcile/objects/{path}");
        yard.get(&path).await.fails(404, "not_found");
    }
}

#[tokio::test]
async fn an_object_that_cannot_be_observed_says_why() {
    let broken = Asked {
        broken: true,
        ..Asked::default()
    };
    let (yard, _) = with(broken).await;
    yard.user("alice").await;
    let body = yard
        .get("/api/admin/reconcile/objects/container/alice")
        .await
        .is(200);
    assert_eq!(
        body["plan"],
        json!({ "error": "the engine can't be reached" })
    );
}

#[tokio::test]
async fn a_retry_is_passed_to_the_reconciler() {
    let (yard, asked) = with(Asked::default()).await;
    let uid = yard.user("alice").await;
    let path = "/api/admin/reconcile/retry";
    let body = yard.post(path, "object=container/alice").await.is(200);
    assert_eq!(
        (&body["object"], &body["generation"]),
        (&json!("container/alice"), &json!(1))
    );
    yard.post(path, "reconciler=user").await.is(200);
    yard.post(path, "all=true").await.is(200);
    assert_eq!(
        asked.take(),
        ["retry container alice", "wake user", "wake all"]
    );
    assert_eq!(yard.container(&uid).await.generation.0, 1);
    yard.post(path, "").await.fails(400, "invalid_parameter");
    yard.post(path, "object=container/nobody")
        .await
        .fails(404, "not_found");
}

#[tokio::test]
async fn a_retry_on_a_standby_reaches_the_leader_through_the_database() {
    let standby = Asked {
        standby: true,
        ..Asked::default()
    };
    let (yard, asked) = with(standby).await;
    let uid = yard.user("alice").await;
    let path = "/api/admin/reconcile/retry";
    let body = yard.post(path, "object=container/alice").await.is(200);
    assert_eq!(body["generation"], 2);
    assert_eq!(yard.container(&uid).await.generation.0, 2);
    yard.post(path, "all=true").await.fails(409, "not_leader");
    assert!(asked.take().is_empty());
}

#[tokio::test]
async fn an_object_is_paused_when_a_pass_has_seen_it() {
    let (yard, _) = with(Asked::default()).await;
    let uid = yard.user("alice").await;
    let seen = async {
        while !yard.object(Kind::Container, &uid).await.unwrap().paused {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let paused = Condition::new(
            ConditionType::Paused,
            ConditionStatus::True,
            Reason::PausedByOperator,
            "",
        );
        yard.saw(Kind::Container, &uid, 1, paused).await;
    };
    let pause = yard.post(
        "/api/admin/reconcile/pause",
        "object=container/alice&wait=20",
    );
    let (answer, ()) = tokio::join!(pause, seen);
    assert_eq!(answer.is(200)["state"], "converged");
    // Whoever changes it meanwhile is told, and the change is recorded.
    let body = yard
        .post("/api/admin/container/stop", "username=alice")
        .await;
    let body = body.is(202);
    assert_eq!(
        (&body["state"], &body["generation"]),
        (&json!("pending"), &json!(3))
    );
    assert_eq!(body["conditions"][0]["type"], "Paused");
    assert_eq!(body["conditions"].as_array().unwrap().len(), 1);
    let resume = "kind=container&name=alice&wait=0";
    let body = yard
        .post("/api/admin/reconcile/resume", resume)
        .await
        .is(202);
    assert_eq!(body["generation"], 4);
    assert!(!yard.object(Kind::Container, &uid).await.unwrap().paused);
    // With the generation that was seen, too, it is one change.
    for (switch, seen, status) in [("pause", 4, 200), ("resume", 5, 202)] {
        let path = format!("/api/admin/reconcile/{switch}");
        let target = format!("object=container/alice&wait=0&if_generation={seen}");
        let body = yard.post(&path, &target).await.is(status);
        assert_eq!(body["generation"], seen + 1, "{switch}");
    }
    let stale = "object=container/alice&if_generation=1";
    yard.post("/api/admin/reconcile/pause", stale)
        .await
        .fails(412, "stale_generation");
    assert!(!yard.object(Kind::Container, &uid).await.unwrap().paused);
}

#[tokio::test]
async fn everything_is_paused_and_resumed_at_once() {
    let (yard, asked) = with(Asked::default()).await;
    yard.user("alice").await;
    yard.post("/api/admin/reconcile/pause", "all=true")
        .await
        .is(200);
    assert_eq!(
        yard.get("/api/admin/reconcile").await.is(200)["paused"],
        true
    );
    // Nobody is told that something is looked at which is not.
    for target in ["all=true", "reconciler=user", "object=user/alice"] {
        let refused = yard.post("/api/admin/reconcile/retry", target).await;
        let body = refused.fails(409, "paused");
        assert!(
            body["error"].as_str().unwrap().contains("all=true"),
            "{body}"
        );
    }
    let stop = yard
        .post("/api/admin/container/stop", "username=alice")
        .await;
    let body = stop.is(202);
    assert_eq!(
        (&body["state"], &body["conditions"][0]["reason"]),
        (&json!("pending"), &json!("PausedByOperator"))
    );
    yard.post("/api/admin/reconcile/resume", "all=true")
        .await
        .is(200);
    assert_eq!(asked.take(), ["wake all"]);
    let body = yard.get("/api/admin/reconcile").await.is(200);
    assert_eq!(
        (&body["paused"], &body["reconcilers"][0]["paused"]),
        (&json!(false), &json!(false))
    );
}

#[tokio::test]
async fn a_broken_object_says_what_is_tried_next_and_how_to_force_it() {
    let (yard, _) = with(Asked::default()).await;
    let uid = yard.user("alice").await;
    let waits = |kind, reason, message: &str| Condition {
        waits_for: Some(ObjectRef::new(kind, "alice")),
        ..Condition::not_ready(reason, message)
    };
    let files = waits(Kind::AgentConfig, Reason::ConfigPending, "files");
    yard.saw(Kind::Container, &uid, 1, files).await;
    let missing = waits(Kind::User, Reason::HomeMissing, "not there yet");
    yard.saw(Kind::AgentConfig, &uid, 1, missing).await;
    let full = Condition::not_ready(Reason::StorageFull, "no space left");
    yard.saw(Kind::User, &uid, 1, full).await;
    let body = yard
        .get("/api/admin/reconcile/objects/container/alice")
        .await
        .is(200);
    assert_eq!(body["problem"], "ConfigPending: files");
    assert!(body["since"].is_string(), "{body}");
    let next = body["next"].as_str().unwrap();
    assert!(next.contains(&NOW.to_rfc3339()), "{next}");
    assert_eq!(body["force"]["command"], "agentyard retry container/alice");
    let files = &body["waits_for"][0];
    assert_eq!(
        (&files["object"], &files["problem"]),
        (
            &json!("agent-config/alice"),
            &json!("HomeMissing: not there yet")
        )
    );
    let awaited = &body["waits_for"][1];
    assert_eq!(body["waits_for"][2], Value::Null);
    assert_eq!(
        (&awaited["object"], &awaited["problem"]),
        (&json!("user/alice"), &json!("StorageFull: no space left"))
    );
    assert_eq!(awaited["force"]["command"], "agentyard retry user/alice");
    let listed = yard
        .get("/api/admin/reconcile/objects?reconciler=user")
        .await
        .is(200);
    assert_eq!(listed["objects"][0]["problem"], awaited["problem"]);
    let pause = "reconciler=user";
    yard.post("/api/admin/reconcile/pause", pause).await.is(200);
    let body = yard
        .get("/api/admin/reconcile/objects/user/alice")
        .await
        .is(200);
    assert_eq!(
        body["force"]["command"],
        "agentyard resume --reconciler user"
    );
}

#[tokio::test]
async fn desired_and_observed_tell_limits_in_the_same_words() {
    let (yard, _) = with(Asked::default()).await;
    let uid = yard.user("alice").await;
    let mut tx = yard.world.db.begin().await.unwrap();
    schema::container::set_limits(&mut tx, &uid, Some(0.5), None, None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let body = yard
        .get("/api/admin/reconcile/objects/container/alice")
        .await
        .is(200);
    let desired = &body["desired"];
    assert_eq!(
        (&desired["cpu_limit"], &desired["memory_limit_mb"]),
        (&json!(0.5), &json!(1024))
    );
    let observed = &body["observed"];
    assert_eq!(
        (&observed["running"], &observed["state"]),
        (&json!(false), &json!("none"))
    );
}

#[tokio::test]
async fn a_retry_of_a_crash_loop_is_a_restart() {
    for standby in [false, true] {
        let asked = Asked {
            standby,
            ..Asked::default()
        };
        let (yard, asked) = with(asked).await;
        let uid = yard.user("alice").await;
        let before = yard.container(&uid).await.restart_token;
        let looping = Condition::not_ready(Reason::CrashLoop, "ended 3 times");
        yard.saw(Kind::Container, &uid, 1, looping).await;
        let path = "/api/admin/reconcile/retry";
        let body = yard.post(path, "object=container/alice").await.is(200);
        assert_eq!(body["generation"], 2);
        let row = yard.container(&uid).await;
        assert_ne!(row.restart_token, before);
        assert!(asked.take().is_empty(), "the bell is rung");
    }
}

#[tokio::test]
async fn init_status_names_the_next_steps_until_it_is_ready() {
    let (yard, _) = with(Asked::default()).await;
    let uid = yard.user("alice").await;
    let plan = async || yard.get_as("alice", "/api/user/init-status").await.is(200)["plan"].clone();
    assert_eq!(plan().await, json!({"actions": ["container alice"]}));
    let running = Condition::ready(Reason::Running, "");
    yard.saw(Kind::Container, &uid, 1, running).await;
    assert_eq!(plan().await, Value::Null);
}
