//! A thousand users (ten thousand in the long run) on the engine in memory, through the real runtime
//! and a real database: the cost of standing still does not grow with their number.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use reconcilers::container::pull::Pulls;
use reconcilers::container::settings::{AgentProfile, Readiness, RunAs};
use reconcilers::container::{ContainerReconciler, Options, Parts};
use reconcilers::drivers::docker::ContainerEngine;
use reconcilers::drivers::docker::fake::FakeEngine;
use reconcilers::engine::EngineReconciler;
use reconcilers::engine::data_dir::DataDirProbe;
use reconcilers::engine::view::EngineView;
use reconcilers::runtime::summary::{ReconcilerHandle, StatusTick};
use reconcilers::runtime::supervise::Supervisor;
use reconcilers::runtime::{Context, Controller, Settings, file_lock};
use reconcilers::stores::{ConfigSource, DataDir, DbStore, LocalDataDir, Store};
use reconcilers::user::UserReconciler;
use schema::clock::{Clock, SharedClock, SystemClock};
use schema::config::query as config;
use schema::container::Desired;
use schema::db::{Backend, Db};
use schema::ids::{Kind, Uid};
use schema::object;
use schema::secrets::MasterKey;
use schema::user::{self, NewUser, Source};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const OWNER: &str = "instance";

struct Running {
    supervisor: Supervisor,
    shutdown: CancellationToken,
    handles: Vec<Arc<dyn ReconcilerHandle>>,
}

/// The reconcilers as the binary wires them, with the engine in memory.
fn start(db: &Db, key: &Arc<MasterKey>, dir: &std::path::Path, fake: &FakeEngine) -> Running {
    let clock: SharedClock = Arc::new(SystemClock);
    let shutdown = CancellationToken::new();
    let mut supervisor = Supervisor::new(shutdown.clone());
    let engine: Arc<dyn ContainerEngine> = Arc::new(fake.clone());
    let view = Arc::new(EngineView::new(Arc::clone(&engine), OWNER));
    let store: Arc<dyn Store> = Arc::new(DbStore::new(db.clone(), Arc::clone(key)));
    let config = Arc::new(ConfigSource::new(Arc::clone(&store), false));
    let path = dir.to_str().unwrap().to_owned();
    let data_dir: Arc<dyn DataDir> = Arc::new(LocalDataDir::open(dir, OWNER).unwrap());
    let probe = Arc::new(DataDirProbe::new(
        Arc::clone(&engine),
        OWNER,
        Arc::clone(&data_dir),
        path.clone(),
    ));
    let pulls = Arc::new(Pulls::new(
        engine,
        Arc::clone(&clock),
        TaskTracker::new(),
        shutdown.clone(),
    ));
    let context = Context {
        leadership: file_lock::acquire(dir, Arc::clone(&clock)).unwrap(),
        clock: Arc::clone(&clock),
        tick: StatusTick::default(),
        bell: db.bell(),
        shutdown: shutdown.clone(),
    };
    let settings = Settings::default();
    let mut handles = Vec::new();
    let engines = EngineReconciler::new(
        Arc::clone(&store),
        Arc::clone(&view),
        Arc::clone(&config),
        Arc::clone(&probe),
    );
    let statuses = engines.status_store(Arc::clone(&clock));
    let events = view.connection_events(config::engine_uid());
    let controller = Controller::new(engines, statuses, events, context.clone(), settings.clone());
    handles.push(controller.handle());
    controller.spawn(&mut supervisor);
    let users = UserReconciler::new(
        Arc::clone(&store),
        Arc::clone(&data_dir),
        None,
        Arc::clone(&clock),
    );
    let statuses = users.status_store();
    let silence = Box::pin(futures::stream::pending());
    let controller = Controller::new(users, statuses, silence, context.clone(), settings.clone());
    handles.push(controller.handle());
    controller.spawn(&mut supervisor);
    let containers = ContainerReconciler::new(
        Parts {
            store,
            view: Arc::clone(&view),
            data_dir,
            config,
            probe,
            pulls,
        },
        clock,
        Options {
            agent: Arc::new(AgentProfile {
                home: "/root".to_owned(),
                environment: [].into(),
                command: None,
                debug_command: None,
                run_as: RunAs::Service,
                readiness: Readiness::Running,
            }),
            engine_data_dir: path,
            service_user: (0, 0),
            home_owner: None,
            readiness_timeout: Duration::from_secs(60),
            // Full verifications inspect each user in turn; none falls due while calls are counted.
            verify_every: Duration::from_secs(24 * 60 * 60),
        },
    );
    let statuses = containers.status_store();
    let controller = Controller::new(containers, statuses, view.events(), context, settings);
    handles.push(controller.handle());
    controller.spawn(&mut supervisor);
    Running {
        supervisor,
        shutdown,
        handles,
    }
}

impl Running {
    async fn stop(self) {
        self.shutdown.cancel();
        self.supervisor.wait(Duration::from_secs(10)).await.unwrap();
    }

    /// Waits until every object of every reconciler is ready and nothing is queued.
    async fn all_ready(&self, users: usize) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(300);
        loop {
            let summaries: Vec<_> = self.handles.iter().map(|h| h.summary()).collect();
            let done = summaries.iter().all(|s| {
                let wanted = if s.name == "engine" { 1 } else { users };
                s.ready == wanted && s.queue_depth == 0 && s.in_flight == 0
            });
            if done {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "{summaries:#?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// A full pass over all keys, to its end.
    async fn resync(&self) {
        let before: Vec<_> = self
            .handles
            .iter()
            .map(|h| h.summary().last_resync_at)
            .collect();
        tokio::time::sleep(Duration::from_millis(5)).await;
        for handle in &self.handles {
            handle.wake();
        }
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let summaries: Vec<_> = self.handles.iter().map(|h| h.summary()).collect();
            let done = summaries.iter().zip(&before).all(|(now, before)| {
                now.last_resync_at != *before && now.queue_depth == 0 && now.in_flight == 0
            });
            if done {
                return;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l60_many_users_cost_a_constant_number_of_engine_calls() {
    let users = if std::env::var_os("AGENTYARD_TEST_LONG").is_some() {
        10_000
    } else {
        1_000
    };
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(Backend::Sqlite(dir.path().join("agentyard.db")))
        .await
        .unwrap();
    let key = Arc::new(MasterKey::load_or_create(dir.path()).unwrap());
    let fake = FakeEngine::new(Arc::new(SystemClock));
    fake.add_image("echo:1");
    let now = SystemClock.now();
    let mut tx = db.begin().await.unwrap();
    object::insert(&mut tx, Kind::Engine, &config::engine_uid(), "local", now)
        .await
        .unwrap();
    for number in 0..users {
        let new = NewUser {
            uid: Uid::random(),
            name: format!("user{number}").parse().unwrap(),
            source: Source::Local,
            password_hash: None,
            image_ref: "echo:1".to_owned(),
            desired: Desired::Running,
        };
        user::create(&mut tx, &new, now).await.unwrap();
    }
    tx.commit().await.unwrap();

    let service = start(&db, &key, dir.path(), &fake);
    service.all_ready(users).await;
    assert_eq!(fake.running().len(), users);
    service.resync().await;

    fake.reset_calls();
    for _ in 0..3 {
        service.resync().await;
    }
    let calls = fake.calls();
    assert_eq!(calls.writes(), 0, "{calls:?}");
    assert!(calls.reads() <= 3 * 12, "a resync costs {calls:?}");
    service.stop().await;

    fake.reset_calls();
    let service = start(&db, &key, dir.path(), &fake);
    service.all_ready(users).await;
    service.resync().await;
    let calls = fake.calls();
    // The probe of the data directory is one container, whatever the number of users.
    assert!(calls.writes() <= 2, "{calls:?}");
    assert!(calls.reads() <= 40, "a start costs {calls:?}");
    let page = {
        let mut connection = db.read().await.unwrap();
        fake.reset_calls();
        user::list(&mut connection, "", 50, 0).await.unwrap()
    };
    assert_eq!((page.0.len(), page.1), (50, i64::try_from(users).unwrap()));
    assert_eq!(fake.calls().reads(), 0, "a listing asks the database only");
    service.stop().await;
}
