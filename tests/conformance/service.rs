//! The whole service in this process, on a fake engine whose containers are ready at once.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use agentyard::logging::LogFilter;
use agentyard::prepare::{self, Prepared};
use agentyard::settings::{AgentListen, CommonArgs, InitArgs, MetricsListen, ServeArgs, Settings};
use agentyard::wiring::{self, Held, Listeners};
use api::auth::session::SessionClaims;
use api::auth::{Signer, csrf};
use kit::engine::FakeEngine;
use schema::clock::{Clock, SystemClock};
use schema::container::Desired;
use schema::ids::{Timestamp, Uid, UserName};
use schema::session;
use schema::user::{self, NewUser, Source};
use secrecy::SecretString;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A running service.
pub struct Service {
    pub dir: TempDir,
    prepared: Prepared,
    service: wiring::Service,
    engine: FakeEngine,
    shutdown: CancellationToken,
}

/// A session as a client holds it.
pub struct Session {
    pub cookie: String,
    pub csrf_token: String,
}

impl Service {
    pub async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let common = CommonArgs {
            data_dir: Some(dir.path().join("data")),
            ..CommonArgs::default()
        };
        let adapter = super::in_repository("tests/conformance/adapter");
        let init = InitArgs {
            // A tag that is made up is refused, and not asked of a registry: that would be a 502.
            set: ["image.name=echo", "image.tag=1", "image.pull_policy=never"]
                .map(str::to_owned)
                .into(),
            adapter: Some(adapter.display().to_string()),
            ..Default::default()
        };
        let serve = ServeArgs {
            listen: "127.0.0.1:0".parse().ok(),
            agent_listen: Some(AgentListen::Off),
            metrics_listen: Some(MetricsListen::Off),
            ..ServeArgs::default()
        };
        let settings = Settings::resolve(&common, &init, &serve).unwrap();
        std::fs::create_dir_all(&settings.data_dir).unwrap();
        let clock = Arc::new(SystemClock);
        let lock = reconcilers::runtime::file_lock::acquire(&settings.data_dir, clock).unwrap();
        let prepared = prepare::prepare(&settings).await.unwrap();
        let engine = FakeEngine::new(Arc::new(SystemClock));
        engine.add_image("echo:1");
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
            dir,
            prepared,
            service,
            engine,
            shutdown,
        }
    }

    pub fn address(&self) -> &str {
        &self.service.address
    }

    /// Records an ordinary user with a container.
    pub async fn create_user(&self, name: &str) {
        let new = NewUser {
            uid: Uid::random(),
            name: name.parse().unwrap(),
            source: Source::Local,
            password_hash: Some(SecretString::from("x")),
            image_ref: "echo:1".to_owned(),
            desired: Desired::Running,
        };
        let mut tx = self.prepared.db.begin().await.unwrap();
        user::create(&mut tx, &new, SystemClock.now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    /// A new session of an account.
    pub async fn session(&self, name: &str) -> Session {
        let name: UserName = name.parse().unwrap();
        let now = SystemClock.now();
        let mut tx = self.prepared.db.begin().await.unwrap();
        let account = user::find(&mut tx, &name).await.unwrap().unwrap();
        let issued_at = session::issue(&mut tx, &account.uid, now, "127.0.0.1", "web").await;
        tx.commit().await.unwrap();
        let signer = Signer::new(&self.prepared.session_secret).unwrap();
        let claims = SessionClaims::new(name.clone(), Timestamp::from_secs(issued_at.unwrap()));
        Session {
            cookie: claims.to_cookie_value(&signer),
            csrf_token: csrf::token(&signer, &name, now),
        }
    }

    /// All agents write to their logs, so that whoever follows one has something to read.
    pub async fn agents_talk(&self) -> Infallible {
        let mut pause = tokio::time::interval(Duration::from_millis(200));
        loop {
            pause.tick().await;
            for agent in self.engine.running() {
                // It may be gone by now.
                let _ = self.engine.hand_log(&agent, false, "still here");
            }
        }
    }

    pub async fn stop(self) {
        self.shutdown.cancel();
        let stopped = self.service.supervisor.wait(Duration::from_secs(30)).await;
        stopped.unwrap();
        self.prepared.db.close().await;
    }
}
