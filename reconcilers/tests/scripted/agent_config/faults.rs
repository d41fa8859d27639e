//! Killed before every step, and with every call failing or losing its answer: the end is the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use schema::adapter::Adapter;
use schema::clock::{ManualClock, SharedClock};
use schema::condition::Reason;
use schema::config::{Config, parse_patch};
use schema::container::Desired;
use schema::ids::{Timestamp, Uid};
use schema::user::{NewUser, Source};
use serde_json::json;

use super::converge::{save, text, yard};
use crate::scripted::container::support::reason;
use kit::pass::{pass, pure_plan};
use kit::{FakeEngine, MemoryDataDir, MemoryStore, Pace};
use reconcilers::agent_config::AgentConfigReconciler;
use reconcilers::runtime::{ErrorClass, Purpose, Reconciler};
use reconcilers::shared::Shared;
use reconcilers::stores::DataDir;

#[tokio::test(flavor = "multi_thread")]
async fn killed_before_every_step_the_end_is_the_same() {
    for steps in 0.. {
        let (mut yard, uid) = yard().await;
        save(&yard, &uid, "s3cret", "one").await;
        yard.budget = Some(steps);
        let survived = yard.settle(&uid).await.is_ok();
        yard.reboot();
        assert_eq!(reason(yard.settled(&uid).await), Reason::Running, "{steps}");
        assert!(text(&yard, "security.json").contains("s3cret"), "{steps}");
        let row = yard.row(&uid).await.unwrap();
        assert!(!row.files.pending && row.files.refused.is_none(), "{steps}");
        yard.assert_nothing_to_do(&uid).await;
        if survived {
            assert!(steps > 5, "something was killed");
            return;
        }
    }
}

struct Memory {
    store: MemoryStore,
    dir: MemoryDataDir,
    clock: SharedClock,
    uid: Uid,
}

impl Memory {
    async fn new() -> Self {
        let store = MemoryStore::default();
        let echo = Adapter::builtin("echo").unwrap().unwrap();
        store.activate(echo);
        let document = json!({
            "agent": { "channel_list": { "chat": { "enabled": true } } },
            "container.service_url": "http://yard.example",
        });
        let changes = parse_patch(&document)
            .unwrap()
            .resolve(&Config::from_stored(store.peek_config()))
            .unwrap();
        store.configure(&changes).unwrap();
        let uid = Uid::from("a".repeat(32));
        let new = NewUser {
            uid: uid.clone(),
            name: "ada".parse().unwrap(),
            source: Source::Local,
            password_hash: None,
            image_ref: "echo:2.0.0".to_owned(),
            desired: Desired::Running,
        };
        store.create_user(&new).unwrap();
        let dir = MemoryDataDir::default();
        dir.ensure(&new.name, &uid, None).await.unwrap();
        let clock: SharedClock = Arc::new(ManualClock::new(Timestamp::from_secs(1)));
        Self {
            store,
            dir,
            clock,
            uid,
        }
    }

    fn boot(&self) -> AgentConfigReconciler {
        let engine = FakeEngine::new(Arc::clone(&self.clock));
        let mut world = kit::world(&engine, Arc::clone(&self.clock));
        world.data_dir = Arc::new(self.dir.clone());
        let options = kit::options();
        let store = Arc::new(self.store.clone());
        let shared = Shared::new(&store, world, options);
        AgentConfigReconciler::new(store, shared)
    }

    /// A pass; tells the reason it ends with once nothing is left to do.
    async fn pass(&self, reconciler: &AgentConfigReconciler) -> Option<Reason> {
        reconciler.changed(&self.uid);
        let now = Timestamp::from_secs(1);
        let pass = pass(reconciler, &self.uid, now, &mut None, async || {}).await;
        let pass = pass.unwrap().unwrap();
        if let Some((class, _, error)) = &pass.error {
            assert_ne!(*class, ErrorClass::Terminal, "{error}");
            return None;
        }
        (pass.acted == 0).then(|| pass.condition.unwrap().reason)
    }

    async fn settle(&self, reconciler: &AgentConfigReconciler) {
        for _ in 0..20 {
            if let Some(reason) = self.pass(reconciler).await {
                assert_eq!(reason, Reason::Converged);
                return;
            }
        }
        panic!("no end");
    }

    fn save(&self, secret: &str) {
        let values = [
            ("enabled".to_owned(), json!(true)),
            ("client_secret".to_owned(), json!(secret)),
        ];
        let saved = self
            .store
            .save_channel(&self.uid, "chat", &values.into(), secret);
        saved.unwrap();
    }

    fn files(&self) -> [Option<Vec<u8>>; 2] {
        let name = "ada".parse().unwrap();
        [".agent/config.json", ".agent/security.json"].map(|file| self.dir.peek_file(&name, file))
    }

    /// From the next call on, the one of this number fails, or takes effect and loses its answer.
    fn break_call(&self, number: u64, loses_answer: bool) -> Arc<AtomicU64> {
        let calls = Arc::new(AtomicU64::new(0));
        let counting = Arc::clone(&calls);
        let pace = move || {
            let hit = counting.fetch_add(1, Ordering::Relaxed) == number;
            Pace {
                fails: hit && !loses_answer,
                loses_answer: hit && loses_answer,
                ..Pace::default()
            }
        };
        let pace = Arc::new(pace);
        let shared = Arc::clone(&pace);
        self.store.on_call(move || shared());
        self.dir.on_call(move || pace());
        calls
    }
}

#[tokio::test]
async fn every_call_may_fail_or_lose_its_answer_the_end_is_the_same() {
    for loses_answer in [false, true] {
        let mut expected = None;
        for number in 0.. {
            let memory = Memory::new().await;
            let reconciler = memory.boot();
            memory.settle(&reconciler).await;
            memory.save("s3cret");
            let calls = memory.break_call(number, loses_answer);
            memory.settle(&reconciler).await;
            let last = calls.load(Ordering::Relaxed) <= number;
            // The service may be started again at any time, too.
            memory.settle(&memory.boot()).await;
            let (row, _) = memory.store.peek_agent_config(&memory.uid).unwrap();
            assert_eq!(row.facts.generation, row.generation);
            let mut facts = row.facts;
            if let Some(applied) = &mut facts.applied {
                // Which objects were made for the service is not known any more when the files were written
                // and nothing was remembered; then they stay although nothing is left in them.
                applied.managed.config.objects.clear();
                applied.managed.security.objects.clear();
            }
            let end = (memory.files(), facts);
            assert_eq!(
                expected.get_or_insert_with(|| end.clone()),
                &end,
                "call {number}"
            );
            if last {
                assert!(number > 5, "calls were broken");
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_while_nothing_has_changed() {
    let memory = Memory::new().await;
    memory.save("s3cret");
    let reconciler = memory.boot();
    memory.settle(&reconciler).await;
    reconciler.keys().await.unwrap();
    let calls = memory.break_call(u64::MAX, false);
    let mut looked = Vec::new();
    for minute in 0..30_u64 {
        let before = calls.load(Ordering::Relaxed);
        let snapshot = reconciler.observe(&memory.uid, Purpose::Pass);
        let snapshot = snapshot.await.unwrap().unwrap();
        let plan = pure_plan::<AgentConfigReconciler>(&snapshot, Timestamp::from_secs(1));
        assert_eq!(plan.actions, []);
        reconciler.converged(&memory.uid, &snapshot, &plan.conditions);
        // One question says which directory it is and whether the files are there.
        if calls.load(Ordering::Relaxed) > before + 1 {
            looked.push(minute);
        }
        tokio::time::advance(Duration::from_secs(60)).await;
    }
    assert!(
        (2..=3).contains(&looked.len()),
        "every ten minutes: {looked:?}"
    );
    // An operator asks for it, of this user or of all.
    for all in [false, true] {
        let observed = reconciler.observe(&memory.uid, Purpose::Pass).await;
        let snapshot = observed.unwrap().unwrap();
        let plan = pure_plan::<AgentConfigReconciler>(&snapshot, Timestamp::from_secs(1));
        reconciler.converged(&memory.uid, &snapshot, &plan.conditions);
        match all {
            true => reconciler.refresh_all(),
            false => reconciler.refresh(&memory.uid),
        }
        let before = calls.load(Ordering::Relaxed);
        let observed = reconciler.observe(&memory.uid, Purpose::DryRun).await;
        assert!(observed.unwrap().is_some());
        assert!(calls.load(Ordering::Relaxed) > before + 1, "{all}");
    }
}
