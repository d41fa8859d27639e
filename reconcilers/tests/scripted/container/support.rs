//! A user, a real database, a real data directory and the engine in memory: passes by hand, one
//! action at a time, so that a test can stop the service anywhere.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use kit::pass::pass;
pub use kit::pass::{Killed, Pass};
use kit::{FakeEngine, MemoryDataDir};
pub use kit::{OWNER, START};
use reconcilers::agent_config::{AgentConfigReconciler, AgentConfigStore};
use reconcilers::container::ContainerReconciler;
use reconcilers::engine::EngineReconciler;
use reconcilers::runtime::{ErrorClass, Reconciler, Requeue};
use reconcilers::shared::Shared;
use reconcilers::shared::view::EngineView;
use reconcilers::stores::{DataDir, Database, LocalDataDir, Rows};
use reconcilers::usage::UsageReconciler;
use reconcilers::user::UserReconciler;
use schema::adapter;
use schema::agent_config::{AgentConfigFacts, AgentConfigRow};
use schema::audit::{self, ChainKey};
use schema::clock::{Clock, ManualClock, SharedClock};
use schema::condition::{self, Condition, Reason};
use schema::config::history::SavedBy;
use schema::config::{Config, parse_patch, query as config};
use schema::container::Desired as DesiredState;
use schema::container::{self, ContainerRow};
use schema::db::{Db, fixture};
use schema::ids::{Kind, Timestamp, Uid};
use schema::object;
use schema::secrets::MasterKey;
use schema::user::{self, NewUser, Source};
use secrecy::SecretString;
use serde_json::{Value, json};
use tempfile::TempDir;

/// More passes than any way to a fix-point may take.
const MANY: usize = 200;

/// One run of the service: what is lost when it is killed.
pub struct Service {
    pub view: Arc<EngineView>,
    pub engine: EngineReconciler,
    pub user: UserReconciler,
    pub container: ContainerReconciler,
    pub config: AgentConfigReconciler,
    pub usage: UsageReconciler,
}

/// Who writes the agent's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// Nobody: they count as written as soon as they are desired.
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
    pub files: Files,
    /// Users' directories in memory, where they are not on a disk.
    pub memory: Option<MemoryDataDir>,
    pub service_user: (u32, u32),
    pub verify_every: Duration,
    pub service: Service,
    /// How many more actions may run before the service is "killed"; `None`: no end.
    pub budget: Option<usize>,
    pub actions: usize,
    /// The container that a test began with.
    pub first: Option<String>,
}

/// How agents are run unless a test says otherwise: without a readiness check.
fn agent(agent: &mut Value) {
    agent["environment"] = json!({ "AGENT_HOME": "${agent_dir}" });
    agent["debug_command"] = json!(["/bin/debug"]);
    agent["readiness"] = Value::Null;
}

impl Service {
    fn new(store: &Arc<Database>, shared: Arc<Shared>) -> Self {
        Self {
            view: Arc::clone(&shared.view),
            engine: EngineReconciler::new(store.clone(), Arc::clone(&shared)),
            user: UserReconciler::new(store.clone(), Arc::clone(&shared)),
            config: AgentConfigReconciler::new(store.clone(), Arc::clone(&shared)),
            usage: UsageReconciler::new(store.clone(), Arc::clone(&shared)),
            container: ContainerReconciler::new(store.clone(), shared),
        }
    }

    /// One pass of the engine reconciler.
    pub async fn engine_pass(&self) {
        for key in self.engine.keys().await.unwrap() {
            let _ = self.container.keys().await.unwrap();
            let now = START;
            pass(&self.engine, &key, now, &mut None, async || {})
                .await
                .unwrap();
        }
    }

    /// Passes of the user reconciler until the directory is there.
    pub async fn user_pass(&self, uid: &Uid) {
        for _ in 0..2 {
            pass(&self.user, uid, START, &mut None, async || {})
                .await
                .unwrap();
        }
    }
}

fn boot(
    data_dir: Arc<dyn DataDir>,
    store: Database,
    fake: &FakeEngine,
    clock: SharedClock,
    service_user: (u32, u32),
    verify_every: Duration,
) -> Service {
    let mut world = kit::world(fake, clock);
    world.compute = fake.compute(OWNER, &data_dir.place());
    world.data_dir = data_dir;
    let mut options = kit::options();
    options.service_user = service_user;
    options.verify_every = verify_every;
    let store = Arc::new(store);
    let shared = Shared::new(&store, world, options);
    Service::new(&store, shared)
}

impl Yard {
    pub async fn new() -> Self {
        Self::with_agent(|_| {}).await
    }

    /// With another `agent` in the adapter's index.
    pub async fn with_agent(edit: impl FnOnce(&mut Value)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let db = fixture::open_sqlite(dir.path()).await.unwrap();
        let key = Arc::new(MasterKey::load_or_create(dir.path()).unwrap());
        let clock = Arc::new(ManualClock::new(START));
        let fake = FakeEngine::new(clock.clone());
        fake.add_image("echo:1");
        fake.add_image("echo:2");
        let mut tx = db.begin().await.unwrap();
        audit::install(&mut tx, &ChainKey::of(&key)).await.unwrap();
        object::insert(&mut tx, Kind::Engine, &config::engine_uid(), "local", START)
            .await
            .unwrap();
        let echo = kit::adapter::echo(|index| {
            agent(&mut index["agent"]);
            edit(&mut index["agent"]);
        });
        adapter::store::ensure_base(
            &mut tx,
            &echo,
            SavedBy {
                actor: "admin",
                at: START,
            },
        )
        .await
        .unwrap();
        tx.commit().await.unwrap();
        let (service_user, verify_every) = ((0, 0), Duration::from_secs(600));
        let store = Database::new(db.clone(), Arc::clone(&key), clock.clone());
        let data_dir = LocalDataDir::open(dir.path(), OWNER).unwrap();
        let service = boot(
            Arc::new(data_dir),
            store,
            &fake,
            clock.clone(),
            service_user,
            verify_every,
        );
        Self {
            dir,
            db,
            key,
            clock,
            fake,
            files: Files::Settled,
            memory: None,
            service_user,
            verify_every,
            service,
            budget: None,
            actions: 0,
            first: None,
        }
    }

    /// Kills the service and starts it again: everything in its memory is gone.
    pub fn reboot(&mut self) {
        let data_dir: Arc<dyn DataDir> = match &self.memory {
            Some(memory) => Arc::new(memory.clone()),
            None => Arc::new(LocalDataDir::open(self.dir.path(), OWNER).unwrap()),
        };
        self.service = boot(
            data_dir,
            self.store(),
            &self.fake,
            self.clock.clone(),
            self.service_user,
            self.verify_every,
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

    /// What the bell does: the next pass reads desired rows again.
    pub fn bell(&self, uid: &Uid) {
        self.service.container.changed(uid);
        self.service.user.changed(uid);
        self.service.config.changed(uid);
    }

    pub fn store(&self) -> Database {
        let clock: SharedClock = self.clock.clone();
        Database::new(self.db.clone(), Arc::clone(&self.key), clock)
    }

    /// The user's files count as written, as they are desired now.
    pub async fn settle_files(&self, uid: &Uid) {
        let store = self.store();
        let row: Option<AgentConfigRow> = store.row(uid).await.unwrap();
        let Some(row) = row else {
            return;
        };
        if row.facts.generation < row.generation {
            let generation = row.generation;
            let facts = AgentConfigFacts {
                generation,
                ..row.facts
            };
            store.save_agent_config_facts(uid, &facts).await.unwrap();
            self.service.container.changed(uid);
        }
    }

    /// One pass for the user's files.
    pub async fn config_pass(&mut self, uid: &Uid) -> Result<Option<Pass>, Killed> {
        let now = self.now();
        let no_check = async || {};
        let pass = pass(&self.service.config, uid, now, &mut self.budget, no_check).await?;
        if pass.as_ref().is_some_and(|pass| pass.acted > 0) {
            // What the bell or the hint does.
            self.service.container.changed(uid);
        }
        Ok(pass)
    }

    /// Makes the file `ready` of alice's agent directory, as of now.
    pub fn gets_ready(&self) -> impl Fn() + Send + Sync + 'static {
        let path = self.dir.path().join("users/alice/.agent/ready");
        let clock = self.clock.clone();
        move || {
            let now = u64::try_from(clock.now().as_millis()).unwrap();
            let file = std::fs::File::create(&path).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_millis(now))
                .unwrap();
        }
    }

    /// What an engine event does.
    pub fn event(&self, uid: &Uid) {
        self.service.view.mark_stale(uid);
    }

    /// One pass for a container.
    pub async fn pass(&mut self, uid: &Uid) -> Result<Option<Pass>, Killed> {
        if self.files == Files::Settled {
            self.settle_files(uid).await;
        }
        let fake = self.fake.clone();
        let check = async || {
            assert!(
                fake.running().len() <= 1,
                "two at once: {:?}",
                fake.running()
            )
        };
        let now = self.now();
        let pass = pass(&self.service.container, uid, now, &mut self.budget, check).await?;
        self.actions += pass.as_ref().map_or(0, |pass| pass.acted);
        Ok(pass)
    }

    /// Passes of all reconcilers until nothing is left to do, moving the clock when all wait. Returns
    /// the last condition of the user's container; `None` when the user is gone.
    pub async fn settle(&mut self, uid: &Uid) -> Result<Option<Condition>, Killed> {
        let no_check = async || {};
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
                    pass(&self.service.engine, &key, now, &mut self.budget, no_check).await?;
                if let Some(pass) = pass {
                    acted += pass.acted;
                    failed |= pass.error.is_some_and(|e| e.0 != ErrorClass::Terminal);
                }
            }
            let pass = pass(&self.service.user, uid, now, &mut self.budget, no_check).await?;
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
                let is_tidy = !self.names().iter().any(|name| name.ends_with(".prev-"));
                match pause.filter(|_| !ready || !is_tidy) {
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
