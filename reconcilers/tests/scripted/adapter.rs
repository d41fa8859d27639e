//! Passes by hand, on a real database and a source that says what it is told to.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kit::http::Scripted;
use kit::pass::pure_plan;
use kit::{FakeEngine, FakeSource};
use reconcilers::adapter::{Action, AdapterError, AdapterReconciler};
use reconcilers::drivers::adapter_source::{
    Answer, HttpSource, Limits, PackageSource, SourceError, Validators,
};
use reconcilers::runtime::{Classify, ErrorClass, Plan, Purpose, Reconciler, Requeue};
use reconcilers::shared::Shared;
use reconcilers::stores::Database;
use schema::adapter::Adapter;
use schema::adapter::store::{self, AdapterState, KnownAdapter, Source};
use schema::audit::{self, ChainKey};
use schema::clock::{Clock, ManualClock};
use schema::condition::{Condition, ConditionStatus, Reason};
use schema::config::history::SavedBy;
use schema::config::{Config, parse_patch, query as config};
use schema::db::{Backend, Db, fixture};
use schema::ids::Timestamp;
use schema::secrets::MasterKey;
use serde_json::{Value, json};
use tempfile::TempDir;

const URL: &str = "https://example.test/a.zip?token=hunter2";
const DAY: Duration = Duration::from_secs(24 * 3600);

struct Yard {
    dir: TempDir,
    db: Db,
    key: Arc<MasterKey>,
    clock: Arc<ManualClock>,
    source: FakeSource,
    reconciler: AdapterReconciler,
}

/// The package `echo` with another version, as a zip.
fn zip(version: &str) -> Vec<u8> {
    kit::adapter::zip(|index| index["adapter_version"] = json!(version))
}

fn package(version: &str) -> Adapter {
    Adapter::from_zip(&zip(version)).unwrap()
}

fn gives(bytes: Vec<u8>, etag: Option<&str>) -> Result<Answer, SourceError> {
    let validators = Validators {
        etag: etag.map(str::to_owned),
        last_modified: None,
    };
    Ok(Answer::Package {
        package: Adapter::from_zip(&bytes).map(Box::new),
        validators,
    })
}

impl Yard {
    /// A yard whose base is version 1.5.
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let db = fixture::open_sqlite(dir.path()).await.unwrap();
        let key = Arc::new(MasterKey::load_or_create(dir.path()).unwrap());
        let mut tx = db.begin().await.unwrap();
        audit::install(&mut tx, &ChainKey::of(&key)).await.unwrap();
        tx.commit().await.unwrap();
        let clock = Arc::new(ManualClock::new(Timestamp::from_secs(1_778_500_000)));
        let source = FakeSource::default();
        let reconciler = Self::boot(&db, &key, &clock, &source);
        let yard = Self {
            dir,
            db,
            key,
            clock,
            source,
            reconciler,
        };
        yard.start("1.5").await;
        yard.configure(json!({"adapter.auto_activate": true})).await;
        yard
    }

    fn boot(
        db: &Db,
        key: &Arc<MasterKey>,
        clock: &Arc<ManualClock>,
        source: &FakeSource,
    ) -> AdapterReconciler {
        Self::with(db, key, clock, Arc::new(source.clone()))
    }

    fn with(
        db: &Db,
        key: &Arc<MasterKey>,
        clock: &Arc<ManualClock>,
        source: Arc<dyn PackageSource>,
    ) -> AdapterReconciler {
        let mut world = kit::world(&FakeEngine::new(clock.clone()), clock.clone());
        world.packages = source;
        let options = kit::options();
        let store = Arc::new(Database::new(db.clone(), Arc::clone(key), clock.clone()));
        let shared = Shared::new(&store, world, options);
        AdapterReconciler::new(store, shared)
    }

    /// What a start of the service with this base does; everything in memory is gone.
    async fn start(&self, base: &str) {
        let mut tx = self.db.begin().await.unwrap();
        store::ensure_base(
            &mut tx,
            &package(base),
            SavedBy {
                actor: "admin",
                at: self.clock.now(),
            },
        )
        .await
        .unwrap();
        tx.commit().await.unwrap();
    }

    async fn reopen(&mut self) {
        self.db.close().await;
        let path = self.dir.path().join("agentyard.db");
        self.db = Db::open(Backend::Sqlite(path)).await.unwrap();
        self.reconciler = Self::boot(&self.db, &self.key, &self.clock, &self.source);
    }

    async fn configure(&self, document: Value) {
        let mut tx = self.db.begin().await.unwrap();
        let (stored, _) = config::load(&mut tx, &self.key).await.unwrap();
        let patch = parse_patch(&document).unwrap();
        let changes = patch.resolve(&Config::from_stored(stored)).unwrap();
        let by = SavedBy {
            actor: "admin",
            at: self.clock.now(),
        };
        config::save(&mut tx, &self.key, &changes, None, by)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    async fn ask(&self, token: &str) {
        let mut tx = self.db.begin().await.unwrap();
        store::request_refresh(&mut tx, token, None).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn upload(&self, version: &str) {
        let mut tx = self.db.begin().await.unwrap();
        let now = self.clock.now();
        store::activate(
            &mut tx,
            &package(version),
            Source::Upload,
            SavedBy {
                actor: "admin",
                at: now,
            },
        )
        .await
        .unwrap();
        tx.commit().await.unwrap();
    }

    async fn roll_back(&self) {
        let mut tx = self.db.begin().await.unwrap();
        store::roll_back(
            &mut tx,
            SavedBy {
                actor: "admin",
                at: self.clock.now(),
            },
        )
        .await
        .unwrap();
        tx.commit().await.unwrap();
    }

    async fn plan(&self) -> Plan<Action> {
        let uid = store::object_uid();
        let snapshot = self.reconciler.observe(&uid, Purpose::Pass).await;
        pure_plan::<AdapterReconciler>(&snapshot.unwrap().unwrap(), self.clock.now())
    }

    /// Passes until there is nothing to do; the condition in the end.
    async fn settle(&self) -> (Condition, Requeue) {
        for _ in 0..5 {
            let plan = self.plan().await;
            if plan.actions.is_empty() {
                return (plan.conditions[0].clone(), plan.requeue);
            }
            for action in &plan.actions {
                self.step(action).await.unwrap();
            }
        }
        panic!("it never comes to an end");
    }

    async fn step(&self, action: &Action) -> Result<(), AdapterError> {
        self.reconciler.apply(&store::object_uid(), action).await
    }

    async fn known(&self) -> Vec<KnownAdapter> {
        let mut connection = self.db.read().await.unwrap();
        store::known(&mut connection).await.unwrap()
    }

    async fn state(&self) -> AdapterState {
        let mut connection = self.db.read().await.unwrap();
        store::state(&mut connection).await.unwrap()
    }

    async fn active(&self) -> String {
        let known = self.known().await;
        let mut active = known.into_iter().filter(|known| known.active);
        active.next().unwrap().version
    }
}

#[tokio::test]
async fn without_a_source_nobody_is_asked() {
    let yard = Yard::new().await;
    let (said, requeue) = yard.settle().await;
    assert_eq!(
        (said.status, said.reason),
        (ConditionStatus::True, Reason::Converged)
    );
    assert!(
        said.message.contains("there is no source"),
        "{}",
        said.message
    );
    assert_eq!(requeue, Requeue::AtResync);
    assert!(yard.source.asked().is_empty());
}

#[tokio::test]
async fn a_newer_package_comes_into_effect_and_the_next_look_waits() {
    let yard = Yard::new().await;
    yard.configure(json!({"adapter.source_url": URL})).await;
    yard.source.then(gives(zip("1.10"), Some("\"a\"")));
    let (said, requeue) = yard.settle().await;
    assert_eq!(said.reason, Reason::Converged);
    assert_eq!(yard.active().await, "1.10");
    assert!(
        yard.known()
            .await
            .iter()
            .any(|known| known.active && known.source == Source::Refresh)
    );
    assert_eq!(requeue, Requeue::After(DAY));
    yard.clock.advance(DAY - Duration::from_secs(1));
    assert!(yard.plan().await.actions.is_empty());
    yard.clock.advance(Duration::from_secs(1));
    yard.source.then(Ok(Answer::NotModified));
    yard.settle().await;
    let mut connection = yard.db.read().await.unwrap();
    let trail = audit::following(&mut connection, 0, 10).await.unwrap();
    let [activation] = &trail[..] else {
        panic!("{trail:?}");
    };
    let entry = &activation.entry;
    assert_eq!(
        (&*entry.actor, &*entry.action),
        ("system:adapter", "adapter_activate")
    );
    assert_eq!(entry.object, "adapter/active");
    assert_eq!(entry.detail, "version 1.10, by adapter.auto_activate");
    let asked = yard.source.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].1, Validators::default());
    assert_eq!(asked[1].1.etag.as_deref(), Some("\"a\""));
    assert_eq!(yard.active().await, "1.10");
}

/// A yard whose source has version 2.0, which was found by the timer and waits.
async fn waiting() -> Yard {
    let yard = Yard::new().await;
    yard.configure(json!({"adapter.auto_activate": false, "adapter.source_url": URL}))
        .await;
    let newer = kit::adapter::zip(|index| {
        index["adapter_version"] = json!("2.0");
        index["agent"]["environment"]["ECHO_MORE"] = json!("hunter2");
    });
    yard.source.then(gives(newer, Some("\"two\"")));
    let (said, requeue) = yard.settle().await;
    assert_eq!(
        (said.status, said.reason),
        (ConditionStatus::True, Reason::UpdateAvailable)
    );
    for part in ["version 1.5", "has 2.0", "environment (added: ECHO_MORE)"] {
        assert!(said.message.contains(part), "{}", said.message);
    }
    assert!(!said.message.contains("hunter2"), "{}", said.message);
    assert_eq!(requeue, Requeue::After(DAY));
    assert_eq!(yard.active().await, "1.5");
    yard
}

#[tokio::test]
async fn a_newer_package_that_the_timer_finds_waits_until_somebody_asks_for_it() {
    let yard = waiting().await;
    // Found again it waits on, unchanged or not.
    yard.clock.advance(DAY);
    yard.source.then(Ok(Answer::NotModified));
    let (said, _) = yard.settle().await;
    assert_eq!(said.reason, Reason::UpdateAvailable);
    assert_eq!(yard.source.asked()[1].1.etag.as_deref(), Some("\"two\""));
    yard.ask("now").await;
    yard.source.then(gives(zip("2.0"), Some("\"two\"")));
    let (said, _) = yard.settle().await;
    assert_eq!(said.reason, Reason::Converged);
    assert_eq!(yard.active().await, "2.0");
    // The source had to give it again.
    assert_eq!(yard.source.asked()[2].1, Validators::default());
}

#[tokio::test]
async fn what_waits_comes_into_effect_once_that_is_automatic() {
    let yard = waiting().await;
    yard.configure(json!({"adapter.auto_activate": true})).await;
    yard.source.then(gives(zip("2.0"), Some("\"two\"")));
    yard.settle().await;
    assert_eq!(yard.active().await, "2.0");
    assert_eq!(yard.source.asked()[1].1, Validators::default());
}

#[tokio::test]
async fn what_waits_is_compared_with_what_is_in_effect_now() {
    let yard = waiting().await;
    yard.upload("3.0").await;
    yard.source.then(gives(zip("2.0"), Some("\"two\"")));
    let (said, _) = yard.settle().await;
    assert_eq!(said.reason, Reason::Converged, "{}", said.message);
    yard.roll_back().await;
    yard.clock.advance(DAY);
    yard.source.then(gives(b"no zip".to_vec(), None));
    assert_eq!(yard.settle().await.0.reason, Reason::AdapterInvalid);
    assert_eq!(yard.active().await, "1.5");
}

#[tokio::test]
async fn what_somebody_left_does_not_wait_for_its_activation() {
    let yard = waiting().await;
    yard.ask("now").await;
    yard.source.then(gives(zip("2.0"), None));
    yard.settle().await;
    yard.roll_back().await;
    yard.clock.advance(DAY);
    yard.source.then(gives(zip("2.0"), None));
    let (said, _) = yard.settle().await;
    assert_eq!(said.reason, Reason::Converged, "{}", said.message);
    assert_eq!(yard.active().await, "1.5");
}

#[tokio::test]
async fn the_same_and_an_older_version_change_nothing() {
    let yard = Yard::new().await;
    yard.configure(json!({"adapter.source_url": URL})).await;
    let before = yard.state().await.generation;
    for (token, offered) in [("a", "1.5"), ("b", "1.4.9"), ("c", "1.5.0")] {
        yard.ask(token).await;
        yard.source.then(gives(zip(offered), None));
        let (said, _) = yard.settle().await;
        assert_eq!(said.status, ConditionStatus::True, "{offered}");
        assert!(said.message.contains(offered), "{}", said.message);
        assert_eq!(yard.active().await, "1.5");
    }
    assert_eq!(yard.state().await.generation, before);
    assert_eq!(yard.source.asked().len(), 3);
}

#[tokio::test]
async fn what_is_no_valid_package_is_told_and_the_active_one_stays() {
    let yard = Yard::new().await;
    yard.configure(json!({"adapter.source_url": URL})).await;
    let mut spoiled = zip("9.0");
    let middle = spoiled.len() / 2;
    // A single byte may be one that no reader looks at.
    for byte in &mut spoiled[middle..middle + 64] {
        *byte ^= 0xff;
    }
    let broken = zip("9.0")[..200].to_vec();
    for (token, bytes) in [("a", spoiled), ("b", broken), ("c", b"no zip".to_vec())] {
        yard.ask(token).await;
        yard.source.then(gives(bytes, Some("\"bad\"")));
        let (said, requeue) = yard.settle().await;
        assert_eq!(
            (said.status, said.reason),
            (ConditionStatus::False, Reason::AdapterInvalid)
        );
        assert!(
            said.message.contains("version 1.5 stays"),
            "{}",
            said.message
        );
        assert_eq!(requeue, Requeue::After(DAY));
    }
    assert_eq!(yard.active().await, "1.5");
    // The same again is known to be bad; another one is observed.
    yard.ask("d").await;
    yard.source.then(Ok(Answer::NotModified));
    assert_eq!(yard.settle().await.0.reason, Reason::AdapterInvalid);
    yard.ask("e").await;
    yard.source.then(gives(zip("2.0"), None));
    assert_eq!(yard.settle().await.0.reason, Reason::Converged);
    assert_eq!(yard.active().await, "2.0");
}

#[tokio::test]
async fn an_invalid_package_is_named_by_file_and_place() {
    let yard = Yard::new().await;
    yard.configure(json!({"adapter.source_url": URL})).await;
    let invalid = kit::adapter::zip(|index| index["adapter_schema_version"] = json!(2));
    yard.source.then(gives(invalid, None));
    let (said, _) = yard.settle().await;
    assert!(
        said.message.contains("index.json#/adapter_schema_version"),
        "{}",
        said.message
    );
    assert!(said.message.len() < 1500);
}

#[tokio::test]
async fn a_source_that_fails_is_an_error_to_be_tried_again_and_the_request_stays_open() {
    let yard = Yard::new().await;
    yard.configure(json!({"adapter.source_url": URL})).await;
    yard.ask("a").await;
    for error in [
        SourceError::Timeout,
        SourceError::Redirect,
        SourceError::TooLarge(1),
    ] {
        yard.source.then(Err(error));
        let plan = yard.plan().await;
        let error = yard.step(&plan.actions[0]).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Transient);
        assert_eq!(error.reason(), Reason::AdapterSourceFailed);
        for text in [format!("{plan:?}"), error.to_string()] {
            assert!(!text.contains("hunter2"), "{text}");
        }
        assert!(!AdapterReconciler::describe(&plan.actions[0]).contains("hunter2"));
    }
    yard.source.then(gives(zip("2.0"), None));
    yard.settle().await;
    assert_eq!(yard.active().await, "2.0");
    assert!(yard.plan().await.actions.is_empty());
}

#[tokio::test]
async fn what_somebody_left_comes_back_only_when_it_is_asked_for() {
    let yard = Yard::new().await;
    yard.configure(json!({"adapter.source_url": URL})).await;
    yard.source.then(gives(zip("2.0"), Some("\"two\"")));
    yard.settle().await;
    yard.roll_back().await;
    yard.clock.advance(DAY);
    // Also a source that does not know what it gave before.
    yard.source.then(gives(zip("2.0"), Some("\"two\"")));
    yard.settle().await;
    assert_eq!(yard.active().await, "1.5");
    yard.ask("now").await;
    yard.source.then(gives(zip("2.0"), Some("\"two\"")));
    yard.settle().await;
    assert_eq!(yard.active().await, "2.0");
    yard.upload("1.0").await;
    yard.ask("again").await;
    yard.source.then(gives(zip("2.0"), Some("\"two\"")));
    yard.settle().await;
    assert_eq!(yard.active().await, "2.0");
    // Who asks gets it again after somebody left it, so it must not be skipped.
    for asked in &yard.source.asked()[2..] {
        assert_eq!(asked.1, Validators::default());
    }
}

#[tokio::test]
async fn what_was_not_newer_comes_into_effect_when_somebody_goes_back_behind_it() {
    let yard = Yard::new().await;
    yard.configure(json!({"adapter.source_url": URL})).await;
    yard.upload("3.0").await;
    yard.source.then(gives(zip("2.0"), Some("\"two\"")));
    yard.settle().await;
    assert_eq!(yard.active().await, "3.0");
    yard.roll_back().await;
    yard.clock.advance(DAY);
    yard.source.then(gives(zip("2.0"), Some("\"two\"")));
    yard.settle().await;
    assert_eq!(yard.active().await, "2.0");
    // It was asked for all of it, since what it has is newer now.
    assert_eq!(yard.source.asked()[1].1, Validators::default());
}

#[tokio::test]
async fn what_somebody_left_for_several_others_stays_left_and_a_newer_one_comes() {
    let yard = Yard::new().await;
    yard.configure(json!({"adapter.source_url": URL})).await;
    yard.source.then(gives(zip("2.0"), None));
    yard.settle().await;
    yard.upload("1.0").await;
    yard.upload("1.1").await;
    yard.clock.advance(DAY);
    yard.source.then(gives(zip("2.0"), None));
    yard.settle().await;
    assert_eq!(yard.active().await, "1.1");
    yard.clock.advance(DAY);
    yard.source.then(gives(zip("2.1"), None));
    yard.settle().await;
    assert_eq!(yard.active().await, "2.1");
}

#[tokio::test]
async fn another_source_is_asked_at_once_and_never_when_that_is_switched_off() {
    let yard = Yard::new().await;
    yard.configure(json!({"adapter.source_url": URL})).await;
    yard.source.then(gives(zip("1.4"), Some("\"old\"")));
    yard.settle().await;
    yard.configure(json!({"adapter.source_url": "https://other.test/a.zip"}))
        .await;
    yard.source.then(gives(zip("1.6"), None));
    yard.settle().await;
    assert_eq!(yard.source.asked()[1].1, Validators::default());
    assert_eq!(yard.active().await, "1.6");
    yard.configure(json!({"adapter.source_url": URL, "adapter.refresh_interval": "0"}))
        .await;
    yard.clock.advance(DAY * 365);
    let (said, requeue) = yard.settle().await;
    assert_eq!(
        (said.status, requeue),
        (ConditionStatus::True, Requeue::AtResync)
    );
    assert_eq!(yard.source.asked().len(), 2);
    yard.ask("now").await;
    yard.source.then(gives(zip("1.7"), None));
    yard.settle().await;
    assert_eq!(yard.active().await, "1.7");
}

#[tokio::test]
async fn l47_what_was_uploaded_or_fetched_outlives_a_restart_with_another_base() {
    let mut yard = Yard::new().await;
    yard.upload("0.9").await;
    yard.reopen().await;
    yard.start("1.6").await;
    yard.settle().await;
    assert_eq!(yard.active().await, "0.9");
    yard.configure(json!({"adapter.source_url": URL})).await;
    yard.source.then(gives(zip("1.0"), None));
    yard.settle().await;
    yard.reopen().await;
    yard.start("1.7").await;
    yard.settle().await;
    assert_eq!(yard.active().await, "1.0");
}

#[tokio::test]
async fn an_upload_during_a_fetch_is_compared_with_what_comes() {
    let yard = Yard::new().await;
    yard.configure(json!({"adapter.source_url": URL})).await;
    yard.source.then(gives(zip("2.0"), None));
    let plan = yard.plan().await;
    // Somebody is faster than the answer.
    yard.upload("3.0").await;
    yard.step(&plan.actions[0]).await.unwrap();
    assert_eq!(yard.active().await, "3.0");
    yard.settle().await;
    assert_eq!(yard.active().await, "3.0");
}

#[tokio::test]
async fn over_real_sockets_only_a_newer_valid_package_comes_into_effect() {
    let mut yard = Yard::new().await;
    let given = Arc::new(Mutex::new(zip("2.0")));
    let bytes = Arc::clone(&given);
    let server = Scripted::new(move |host, asked| match &*asked.path {
        "/elsewhere" => {
            let there = ("location", format!("https://{host}/adapter.zip"));
            Some((302, vec![there], Vec::new()))
        }
        _ => Some((200, Vec::new(), bytes.lock().unwrap().clone())),
    })
    .await;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let source = Arc::new(HttpSource::new(Limits::default()).unwrap());
    yard.reconciler = Yard::with(&yard.db, &yard.key, &yard.clock, source);
    let url = format!("http://{}/adapter.zip?token=hunter2", server.address);
    yard.configure(json!({"adapter.source_url": url})).await;
    yard.settle().await;
    assert_eq!(yard.active().await, "2.0");
    let before = yard.state().await.generation;
    yard.ask("same").await;
    let (said, _) = yard.settle().await;
    assert_eq!(said.reason, Reason::Converged);
    *given.lock().unwrap() = b"no zip at all".to_vec();
    yard.ask("broken").await;
    let (said, _) = yard.settle().await;
    assert_eq!(said.reason, Reason::AdapterInvalid);
    let elsewhere = format!("http://{}/elsewhere", server.address);
    yard.configure(json!({"adapter.source_url": elsewhere}))
        .await;
    let plan = yard.plan().await;
    let error = yard.step(&plan.actions[0]).await.unwrap_err();
    assert!(
        matches!(error, AdapterError::Source(SourceError::Redirect)),
        "{error:?}"
    );
    assert_eq!(yard.state().await.generation, before);
    assert_eq!(yard.active().await, "2.0");
}
