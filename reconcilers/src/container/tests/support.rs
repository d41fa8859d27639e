//! A user, a real database, a real data directory and the engine in memory: passes by hand, one
//! action at a time, so that a test can stop the service anywhere.

use std::sync::Arc;
use std::time::Duration;

use schema::adapter::{self, Adapter, Agent};
use schema::agent_config::AgentConfigFacts;
use schema::clock::{Clock, ManualClock, SharedClock};
use schema::condition::{self, Condition, ConditionType, Reason};
use schema::config::history::SavedBy;
use schema::config::{Config, parse_patch, query as config};
use schema::container::Desired as DesiredState;
use schema::container::{self, ContainerRow};
use schema::db::{Backend, Db};
use schema::ids::{Kind, Timestamp, Uid};
use schema::object;
use schema::secrets::MasterKey;
use schema::user::{self, NewUser, Source};
use secrecy::SecretString;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agent_config::{self as agent_files, AgentConfigReconciler};
use crate::container::{Agents, ContainerReconciler, Options, Parts};
use crate::drivers::docker::ContainerEngine;
use crate::drivers::docker::fake::FakeEngine;
use crate::engine::EngineReconciler;
use crate::engine::data_dir::DataDirProbe;
use crate::engine::view::EngineView;
use crate::image::pulls::Pulls;
use crate::runtime::{Classify, ErrorClass, Plan, Reconciler, Requeue};
use crate::stores::{AdapterSource, ConfigSource, DataDir, DbStore, LocalDataDir, Store};
use crate::user::UserReconciler;

pub const OWNER: &str = "instance";
pub const START: Timestamp = Timestamp::from_secs(1_800_000_000);
/// More passes than any way to a fix-point may take.
const MANY: usize = 200;

/// One run of the service: what is lost when it is killed.
pub struct Service {
    pub view: Arc<EngineView>,
    pub engine: EngineReconciler,
    pub user: UserReconciler,
    pub container: ContainerReconciler,
    pub config: AgentConfigReconciler,
}

/// Who writes the agent's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// Nobody: they count as written as soon as they are wished.
    Settled,
    /// The agent-config reconciler.
    Reconciled,
}

/// What a kill does not touch.
pub struct Yard {
    pub dir: TempDir,
    pub db: Db,
    pub key: Arc<MasterKey>,
    pub clock: Arc<ManualClock>,
    pub fake: FakeEngine,
    pub agent: Agent,
    pub files: Files,
    pub service: Service,
    /// How many more actions may run before the service is "killed"; `None`: no end.
    pub budget: Option<usize>,
    pub actions: usize,
    /// The container that a test began with.
    pub first: Option<String>,
}

/// How a pass ended.
#[derive(Debug)]
pub struct Pass {
    pub condition: Option<Condition>,
    pub requeue: Requeue,
    pub acted: usize,
    pub error: Option<(ErrorClass, Reason, String)>,
}

/// The service was "killed" at the wanted action.
#[derive(Debug, PartialEq, Eq)]
pub struct Killed;

pub fn agent() -> Agent {
    Agent {
        environment: [("AGENT_HOME".to_owned(), "/root/.agent".to_owned())].into(),
        debug_command: Some(vec!["/bin/debug".to_owned()]),
        ..Agent::default()
    }
}

impl Service {
    /// One pass of the engine reconciler.
    pub async fn engine_pass(&self) {
        for key in self.engine.keys().await.unwrap() {
            let _ = self.container.keys().await.unwrap();
            let now = START;
            Yard::pass_of(&self.engine, &key, now, &mut None, &|| {})
                .await
                .unwrap();
        }
    }

    /// Passes of the user reconciler until the directory is there.
    pub async fn user_pass(&self, uid: &Uid) {
        for _ in 0..2 {
            Yard::pass_of(&self.user, uid, START, &mut None, &|| {})
                .await
                .unwrap();
        }
    }
}

impl Yard {
    pub async fn new() -> Self {
        Self::with_agent(agent()).await
    }

    pub async fn with_agent(agent: Agent) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(Backend::Sqlite(dir.path().join("agentyard.db")))
            .await
            .unwrap();
        let key = Arc::new(MasterKey::load_or_create(dir.path()).unwrap());
        let clock = Arc::new(ManualClock::new(START));
        let fake = FakeEngine::new(clock.clone());
        fake.add_image("echo:1");
        fake.add_image("echo:2");
        let mut tx = db.begin().await.unwrap();
        object::insert(&mut tx, Kind::Engine, &config::engine_uid(), "local", START)
            .await
            .unwrap();
        let echo = Adapter::builtin("echo").unwrap().unwrap();
        adapter::store::ensure_base(&mut tx, &echo, START)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let service = Self::boot(&dir, &db, &key, &clock, &fake, &agent);
        Self {
            dir,
            db,
            key,
            clock,
            fake,
            agent,
            files: Files::Settled,
            service,
            budget: None,
            actions: 0,
            first: None,
        }
    }

    fn boot(
        dir: &TempDir,
        db: &Db,
        key: &Arc<MasterKey>,
        clock: &Arc<ManualClock>,
        fake: &FakeEngine,
        agent: &Agent,
    ) -> Service {
        let engine: Arc<dyn ContainerEngine> = Arc::new(fake.clone());
        let clock: SharedClock = clock.clone();
        let view = Arc::new(EngineView::new(Arc::clone(&engine), OWNER));
        let store: Arc<dyn Store> = Arc::new(DbStore::new(db.clone(), Arc::clone(key)));
        let source = Arc::new(ConfigSource::new(Arc::clone(&store)));
        let path = dir.path().to_str().unwrap();
        let data_dir: Arc<dyn DataDir> = Arc::new(LocalDataDir::open(dir.path(), OWNER).unwrap());
        let probe = Arc::new(DataDirProbe::new(
            Arc::clone(&engine),
            OWNER,
            Arc::clone(&data_dir),
            path,
        ));
        let pulls = Arc::new(Pulls::new(
            engine,
            Arc::clone(&clock),
            TaskTracker::new(),
            CancellationToken::new(),
        ));
        let agents: Arc<dyn Agents> = Arc::new(agent.clone());
        let parts = Parts {
            store: Arc::clone(&store),
            view: Arc::clone(&view),
            data_dir: Arc::clone(&data_dir),
            config: Arc::clone(&source),
            agents: Arc::clone(&agents),
            probe: Arc::clone(&probe),
            pulls,
        };
        let (settled, _) = agent_files::settled::channel();
        let config_parts = agent_files::Parts {
            store: Arc::clone(&store),
            view: Arc::clone(&view),
            data_dir: Arc::clone(&data_dir),
            config: Arc::clone(&source),
            adapters: Arc::new(AdapterSource::new(Arc::clone(&store))),
            settled,
        };
        let config_options = agent_files::Options {
            service_user: (0, 0),
            agent_port: 8081,
            verify_every: Duration::from_secs(600),
        };
        let options = Options {
            engine_data_dir: path.to_owned(),
            service_user: (0, 0),
            readiness_timeout: Duration::from_secs(60),
            verify_every: Duration::from_secs(600),
        };
        Service {
            engine: EngineReconciler::new(Arc::clone(&store), Arc::clone(&view), source, probe),
            user: UserReconciler::new(store, data_dir, agents, (0, 0), Arc::clone(&clock)),
            config: AgentConfigReconciler::new(config_parts, Arc::clone(&clock), config_options),
            container: ContainerReconciler::new(parts, clock, options),
            view,
        }
    }

    /// Kills the service and starts it again: everything in its memory is gone.
    pub fn reboot(&mut self) {
        self.service = Self::boot(
            &self.dir,
            &self.db,
            &self.key,
            &self.clock,
            &self.fake,
            &self.agent,
        );
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub async fn create_user(&self, name: &str) -> Uid {
        let uid = Uid::random();
        let new = NewUser {
            uid: uid.clone(),
            name: name.parse().unwrap(),
            source: Source::Local,
            password_hash: Some(SecretString::from("hash")),
            image_ref: "echo:1".to_owned(),
            desired: DesiredState::Running,
        };
        let mut tx = self.db.begin().await.unwrap();
        user::create(&mut tx, &new, self.now()).await.unwrap();
        tx.commit().await.unwrap();
        uid
    }

    pub async fn set_desired(&self, uid: &Uid, desired: DesiredState, debug: bool) {
        let mut tx = self.db.begin().await.unwrap();
        container::set_desired(&mut tx, uid, desired, debug, None)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        self.bell(uid);
    }

    pub async fn restart(&self, uid: &Uid, token: &str) {
        let mut tx = self.db.begin().await.unwrap();
        container::request_restart(&mut tx, uid, token, false, None)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        self.bell(uid);
    }

    pub async fn set_limit(&self, uid: &Uid, memory_limit_mb: i64) {
        let mut tx = self.db.begin().await.unwrap();
        container::set_limits(&mut tx, uid, None, Some(memory_limit_mb), None)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        self.bell(uid);
    }

    pub async fn configure(&self, key: &str, value: Value) {
        let patch = parse_patch(&json!({ key: value })).unwrap();
        let mut tx = self.db.begin().await.unwrap();
        let (stored, _) = config::load(&mut tx, &self.key).await.unwrap();
        let changes = patch.resolve(&Config::from_stored(stored)).unwrap();
        let by = SavedBy {
            actor: "root",
            at: Timestamp::default(),
        };
        config::save(&mut tx, &self.key, &changes, None, by)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    pub async fn delete_user(&self, uid: &Uid) {
        let mut tx = self.db.begin().await.unwrap();
        user::delete(&mut tx, uid, self.now()).await.unwrap();
        tx.commit().await.unwrap();
        self.bell(uid);
    }

    pub async fn row(&self, uid: &Uid) -> Option<ContainerRow> {
        let mut connection = self.db.read().await.unwrap();
        container::get(&mut connection, uid).await.unwrap()
    }

    /// What the bell does: the next pass reads desired rows anew.
    pub fn bell(&self, uid: &Uid) {
        self.service.container.desired.mark(uid);
        self.service.user.mark_dirty(uid);
        self.service.config.mark_dirty(uid);
    }

    pub fn store(&self) -> DbStore {
        DbStore::new(self.db.clone(), Arc::clone(&self.key))
    }

    /// The user's files count as written, as they are wished now.
    pub async fn settle_files(&self, uid: &Uid) {
        let store = self.store();
        let Some(row) = store.agent_config(uid).await.unwrap() else {
            return;
        };
        if row.facts.generation < row.generation {
            let generation = row.generation;
            let facts = AgentConfigFacts {
                generation,
                ..row.facts
            };
            store.save_config_facts(uid, &facts).await.unwrap();
            self.service.container.desired.mark(uid);
        }
    }

    /// One pass for the user's files.
    pub async fn config_pass(&mut self, uid: &Uid) -> Result<Option<Pass>, Killed> {
        let now = self.now();
        let pass = Self::pass_of(&self.service.config, uid, now, &mut self.budget, &|| {}).await?;
        if pass.as_ref().is_some_and(|pass| pass.acted > 0) {
            // What the bell or the hint does.
            self.service.container.desired.mark(uid);
        }
        Ok(pass)
    }

    /// What an engine event does.
    pub fn event(&self, uid: &Uid) {
        self.service.view.mark_stale(uid);
    }

    /// One pass of one reconciler for one key, as the runtime makes it.
    async fn pass_of<R: Reconciler<Key = Uid>>(
        reconciler: &R,
        key: &Uid,
        now: Timestamp,
        budget: &mut Option<usize>,
        check: &impl Fn(),
    ) -> Result<Option<Pass>, Killed> {
        let failed = |error: R::Error, acted| Pass {
            condition: None,
            requeue: Requeue::AtResync,
            acted,
            error: Some((error.class(), error.reason(), error.to_string())),
        };
        let snapshot = match reconciler.observe(key).await {
            Ok(Some(snapshot)) => snapshot,
            Ok(None) => return Ok(None),
            Err(error) => return Ok(Some(failed(error, 0))),
        };
        let plan: Plan<R::Action> = R::plan(&snapshot, now);
        let again: Plan<R::Action> = R::plan(&snapshot, now);
        assert_eq!(plan, again, "a plan depends on nothing but its input");
        let ready = condition::find(&plan.conditions, ConditionType::Ready).cloned();
        let claims_ready = ready
            .as_ref()
            .is_some_and(|c| c.status == condition::ConditionStatus::True);
        assert!(plan.actions.is_empty() || !claims_ready, "{plan:?}");
        let mut acted = 0;
        for action in &plan.actions {
            if let Some(left) = budget {
                if *left == 0 {
                    return Err(Killed);
                }
                *left -= 1;
            }
            if let Err(error) = reconciler.apply(key, action).await {
                return Ok(Some(failed(error, acted + 1)));
            }
            acted += 1;
            check();
        }
        Ok(Some(Pass {
            condition: ready,
            requeue: plan.requeue,
            acted,
            error: None,
        }))
    }

    /// One pass for a container.
    pub async fn pass(&mut self, uid: &Uid) -> Result<Option<Pass>, Killed> {
        if self.files == Files::Settled {
            self.settle_files(uid).await;
        }
        let fake = self.fake.clone();
        let check = || {
            assert!(
                fake.running().len() <= 1,
                "two at once: {:?}",
                fake.running()
            )
        };
        let now = self.now();
        let pass =
            Self::pass_of(&self.service.container, uid, now, &mut self.budget, &check).await?;
        self.actions += pass.as_ref().map_or(0, |pass| pass.acted);
        Ok(pass)
    }

    /// Passes of all reconcilers until nothing is left to do, moving the clock when all wait. Returns
    /// the last condition of the user's container; `None` when the user is gone.
    pub async fn settle(&mut self, uid: &Uid) -> Result<Option<Condition>, Killed> {
        let no_check = || {};
        let mut conflicts = 0;
        for _ in 0..MANY {
            let now = self.now();
            let mut acted = 0;
            let mut pause: Option<Duration> = None;
            let mut wait = |requeue: Requeue| {
                if let Requeue::After(time) = requeue {
                    pause = Some(pause.map_or(time, |p| p.min(time)));
                }
            };
            let mut failed = false;
            let _ = self.service.container.keys().await.unwrap();
            let _ = self.service.user.keys().await.unwrap();
            let _ = self.service.config.keys().await.unwrap();
            for key in self.service.engine.keys().await.unwrap() {
                let pass =
                    Self::pass_of(&self.service.engine, &key, now, &mut self.budget, &no_check)
                        .await?;
                if let Some(pass) = pass {
                    acted += pass.acted;
                    failed |= pass.error.is_some_and(|e| e.0 != ErrorClass::Terminal);
                }
            }
            let pass =
                Self::pass_of(&self.service.user, uid, now, &mut self.budget, &no_check).await?;
            if let Some(pass) = pass {
                acted += pass.acted;
                failed |= pass.error.is_some_and(|e| e.0 != ErrorClass::Terminal);
                wait(pass.requeue);
            }
            if self.files == Files::Reconciled
                && let Some(pass) = self.config_pass(uid).await?
            {
                acted += pass.acted;
                failed |= pass.error.is_some_and(|e| e.0 != ErrorClass::Terminal);
                wait(pass.requeue);
            }
            let mut last = None;
            if let Some(pass) = self.pass(uid).await? {
                acted += pass.acted;
                wait(pass.requeue);
                last = pass.condition;
                if let Some((class, reason, message)) = pass.error {
                    last = Some(Condition::not_ready(reason, message));
                    if class == ErrorClass::Terminal {
                        return Ok(last);
                    }
                    failed = true;
                    conflicts += 1;
                }
            }
            if acted == 0 && !failed {
                let ready = last
                    .as_ref()
                    .is_some_and(|c| c.status == condition::ConditionStatus::True);
                match pause.filter(|_| !ready) {
                    None => return Ok(last),
                    Some(time) => self.clock.advance(time),
                }
            }
            assert!(conflicts < 50, "fails for ever: {last:?}");
        }
        panic!("no fix-point after {MANY} passes");
    }

    /// Settles, without being killed on the way.
    pub async fn settled(&mut self, uid: &Uid) -> Option<Condition> {
        self.budget = None;
        self.settle(uid).await.unwrap()
    }

    /// Asserts the fix-point: passes change nothing and cost no engine write.
    pub async fn assert_nothing_to_do(&mut self, uid: &Uid) {
        self.fake.reset_calls();
        for _ in 0..3 {
            let _ = self.service.container.keys().await.unwrap();
            if let Some(pass) = self.pass(uid).await.unwrap() {
                assert_eq!(pass.acted, 0);
                assert!(pass.error.is_none(), "{:?}", pass.error);
            }
        }
        assert_eq!(self.fake.calls().writes(), 0);
    }

    pub fn names(&self) -> Vec<String> {
        self.fake
            .containers()
            .into_iter()
            .map(|c| c.container.name)
            .collect()
    }
}

pub fn reason(condition: Option<Condition>) -> Reason {
    condition.unwrap().reason
}
