//! The whole service in this process, on an engine of the caller's choice.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agentyard::logging::LogFilter;
use agentyard::prepare::{self, Prepared};
use agentyard::settings::{CommonArgs, InitArgs, ServeArgs, Settings};
use agentyard::wiring::{self, Held, Listeners, Service};
use engine::Compute;
use engine_docker::DockerHost;
use kit::FakeEngine;
use schema::clock::{Clock, SystemClock};
use schema::container::{self, Desired};
use schema::ids::Uid;
use schema::user::{self, NewUser, Source};
use secrecy::SecretString;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Full comparisons ask the engine about each container in turn; none falls due while calls are
/// counted or a pass is timed.
const NEVER: Duration = Duration::from_secs(24 * 60 * 60);

pub struct InProcess {
    /// Removed at the end, if it was made here.
    dir: Option<TempDir>,
    pub prepared: Prepared,
    pub service: Service,
    pub shutdown: CancellationToken,
}

/// An engine for a service, once the instance of the service is known.
pub trait Engine {
    /// The engine for the instance `owner`, which sees the data directory at `data_dir`.
    fn compute(self, owner: &str, data_dir: &str) -> Compute;
}

impl Engine for FakeEngine {
    fn compute(self, owner: &str, data_dir: &str) -> Compute {
        FakeEngine::compute(&self, owner, data_dir)
    }
}

impl Engine for DockerHost {
    fn compute(self, owner: &str, data_dir: &str) -> Compute {
        engine_docker::compute(self, None, owner, data_dir)
    }
}

impl InProcess {
    /// Starts a service in a directory of its own.
    pub async fn start(engine: impl Engine) -> Self {
        Self::start_with(engine, &[]).await
    }

    /// Starts a service in a directory of its own with these settings.
    pub async fn start_with(engine: impl Engine, set: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut service = Self::start_set(dir.path(), engine, set).await;
        service.dir = Some(dir);
        service
    }

    /// Starts a service whose users run `echo:1` with the adapter `echo`.
    pub async fn start_in(dir: &Path, engine: impl Engine) -> Self {
        Self::start_set(dir, engine, &[]).await
    }

    /// Starts a service in this directory with these settings.
    pub async fn start_with_in(dir: &Path, engine: impl Engine, set: &[&str]) -> Self {
        Self::start_set(dir, engine, set).await
    }

    async fn start_set(dir: &Path, engine: impl Engine, set: &[&str]) -> Self {
        let usual = ["image.name=echo", "image.tag=1"];
        let common = CommonArgs {
            data_dir: Some(dir.to_owned()),
            ..CommonArgs::default()
        };
        let init = InitArgs {
            set: usual.iter().chain(set).map(|&set| set.to_owned()).collect(),
            adapter: Some("echo".to_owned()),
            ..Default::default()
        };
        let serve = ServeArgs {
            listen: "127.0.0.1:0".parse().ok(),
            agent_listen: Some(agentyard::settings::AgentListen::Off),
            metrics_listen: "127.0.0.1:0".parse().ok(),
            verify: Some(NEVER),
            sample: Some(NEVER),
            backup_directories: dir
                .parent()
                .map(|above| above.join("backups"))
                .into_iter()
                .collect(),
            ..ServeArgs::default()
        };
        let settings = Settings::resolve(&common, &init, &serve).unwrap();
        let clock = Arc::new(SystemClock);
        let lock = reconcilers::runtime::file_lock::acquire(dir, clock).unwrap();
        let prepared = prepare::prepare(&settings).await.unwrap();
        let shutdown = CancellationToken::new();
        let held = Held {
            hangup: None,
            engine_certificates: Vec::new(),
            listeners: Listeners::bind(&settings).await.unwrap(),
            lock: Some(lock),
            log: LogFilter::default(),
        };
        let data_dir = settings.data_dir.display().to_string();
        let compute = engine.compute(&prepared.instance_id, &data_dir);
        let service = wiring::build(&settings, &prepared, held, compute, shutdown.clone())
            .await
            .unwrap();
        Self {
            dir: None,
            prepared,
            service,
            shutdown,
        }
    }

    /// Records users in one transaction.
    pub async fn create_users(&self, count: usize, desired: Desired) -> Vec<Uid> {
        let now = SystemClock.now();
        let mut tx = self.prepared.db.begin().await.unwrap();
        let mut uids = Vec::with_capacity(count);
        for number in 0..count {
            let uid = Uid::random();
            let new = NewUser {
                uid: uid.clone(),
                name: format!("user{number}").parse().unwrap(),
                source: Source::Local,
                password_hash: Some(SecretString::from("x")),
                image_ref: "echo:1".to_owned(),
                desired,
            };
            user::create(&mut tx, &new, now).await.unwrap();
            uids.push(uid);
        }
        tx.commit().await.unwrap();
        uids
    }

    /// Records that all of them shall run (in debug mode or not), or stop, in one transaction.
    pub async fn set_all(&self, uids: &[Uid], desired: Desired, debug: bool) {
        let mut tx = self.prepared.db.begin().await.unwrap();
        for uid in uids {
            container::set_desired(&mut tx, uid, desired, debug, None)
                .await
                .unwrap();
        }
        tx.commit().await.unwrap();
    }

    /// Waits until every user and container is ready and nobody works.
    pub async fn all_ready(&self, users: usize) {
        loop {
            let done = self.service.handles.iter().all(|handle| {
                let summary = handle.summary();
                let wanted = match summary.name {
                    "user" | "container" => users,
                    _ => summary.objects,
                };
                summary.ready == wanted
                    && summary.live.queue_depth == 0
                    && summary.live.in_flight == 0
            });
            if done && self.nothing_is_dirty().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn nothing_is_dirty(&self) -> bool {
        let mut connection = self.prepared.db.read().await.unwrap();
        let kind = schema::ids::Kind::Container;
        let dirty = schema::object::dirty(&mut connection, kind).await;
        dirty.unwrap().is_empty()
    }

    /// A full pass over all keys of every reconciler, to its end.
    pub async fn resync(&self) {
        let handles = &self.service.handles;
        let summaries = || handles.iter().map(|handle| handle.summary());
        let before: Vec<_> = summaries()
            .map(|summary| summary.live.last_resync_at)
            .collect();
        // The clock of the summaries counts milliseconds.
        tokio::time::sleep(Duration::from_millis(5)).await;
        for handle in handles {
            handle.wake();
        }
        loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let done = summaries().zip(&before).all(|(now, before)| {
                now.live.last_resync_at != *before
                    && now.live.queue_depth == 0
                    && now.live.in_flight == 0
            });
            if done {
                return;
            }
        }
    }

    pub async fn stop(self) {
        self.shutdown.cancel();
        self.service
            .supervisor
            .wait(Duration::from_secs(30))
            .await
            .unwrap();
        self.prepared.db.close().await;
        drop(self.dir);
    }
}
