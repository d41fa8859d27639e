//! The database in memory and the engine in memory: passes by hand, one action at a time, in time
//! that stands still unless somebody waits.

use std::sync::Arc;
use std::time::Duration;

use engine::EngineError;
use schema::clock::{Clock, ManualClock};
use schema::condition::{Condition, ConditionStatus, Reason};
use schema::config::{Config, parse_patch};
use schema::container::Desired;
use schema::ids::{Timestamp, Uid};
use schema::image::ImageRow;
use schema::user::{NewUser, Source};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub use kit::START;
use kit::engine::{PullEnd, PullScript};
use kit::pass::pass;
pub use kit::pass::{Killed, Pass};
use kit::{FakeEngine, MemoryStore};
use reconcilers::image::ImageReconciler;
use reconcilers::runtime::{Reconciler, Requeue};
use reconcilers::shared::Shared;
use reconcilers::shared::pulls::Pulls;
use reconcilers::shared::view::EngineView;
use reconcilers::stores::{ConfigStore, Rows};

pub const AGENT: &str = "docker.io/library/agent:1";
const MANY: usize = 200;

/// One run of the service: what is lost when it is killed.
pub struct Service {
    pub view: Arc<EngineView>,
    pub pulls: Arc<Pulls>,
    pub images: ImageReconciler,
    shutdown: CancellationToken,
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// What a kill does not touch.
pub struct Yard {
    pub store: MemoryStore,
    pub clock: Arc<ManualClock>,
    pub fake: FakeEngine,
    pub service: Service,
    /// How many more actions may run before the service is "killed"; `None`: no end.
    pub budget: Option<usize>,
    pub actions: usize,
}

/// A pull of three layers, one of which is there already, an event every 100 ms.
pub fn slow(ends: PullEnd) -> PullScript {
    PullScript {
        layers: vec![
            ("base".to_owned(), 50_000_000),
            ("python".to_owned(), 60_000_000),
            ("agent".to_owned(), 20_000_000),
        ],
        present: 1,
        step: Duration::from_millis(100),
        ends,
    }
}

pub fn broken() -> EngineError {
    EngineError::PullFailed("unexpected EOF".to_owned())
}

fn boot(store: &MemoryStore, clock: &Arc<ManualClock>, fake: &FakeEngine) -> Service {
    let world = kit::world(fake, clock.clone());
    let shutdown = world.shutdown.clone();
    let options = kit::options();
    let store = Arc::new(store.clone());
    let shared = Shared::new(&store, world, options);
    Service {
        view: Arc::clone(&shared.view),
        pulls: Arc::clone(&shared.pulls),
        images: ImageReconciler::new(store, shared),
        shutdown,
    }
}

impl Yard {
    pub fn new() -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let fake = FakeEngine::new(clock.clone());
        let store = MemoryStore::default();
        let service = boot(&store, &clock, &fake);
        Self {
            store,
            clock,
            fake,
            service,
            budget: None,
            actions: 0,
        }
    }

    /// Kills the service and starts it again: everything in its memory is gone.
    pub fn reboot(&mut self) {
        self.service = boot(&self.store, &self.clock, &self.fake);
    }

    pub fn request(&self, reference: &str, token: &str) -> Uid {
        let new = Uid::random();
        let (uid, _) = self.store.request_pull(&new, reference, token).unwrap();
        self.service.images.changed(&uid);
        uid
    }

    pub fn absent(&self, reference: &str) -> Uid {
        let new = Uid::random();
        let now = self.clock.now();
        let (uid, _) = self.store.request_absent(&new, reference, now).unwrap();
        self.service.images.changed(&uid);
        uid
    }

    pub fn cancel(&self, reference: &str) -> Uid {
        let new = Uid::random();
        let now = self.clock.now();
        let (uid, _) = self.store.request_cancel(&new, reference, now).unwrap();
        self.service.images.changed(&uid);
        uid
    }

    pub fn create_user(&self, name: &str, image_ref: &str) -> Uid {
        let uid = Uid::random();
        let new = NewUser {
            uid: uid.clone(),
            name: name.parse().unwrap(),
            source: Source::Local,
            password_hash: None,
            image_ref: image_ref.to_owned(),
            desired: Desired::Running,
        };
        self.store.create_user(&new).unwrap();
        uid
    }

    pub async fn configure(&self, key: &str, value: Value) {
        let stored = Config::from_stored(self.store.config().await.unwrap().0);
        let patch = parse_patch(&json!({ key: value })).unwrap();
        self.store
            .configure(&patch.resolve(&stored).unwrap())
            .unwrap();
    }

    pub async fn row(&self, uid: &Uid) -> Option<ImageRow> {
        Rows::<ImageRow>::row(&self.store, uid).await.unwrap()
    }

    /// Time passes, for the clock and for whoever sleeps.
    pub async fn pass_time(&self, time: Duration) {
        self.clock.advance(time);
        tokio::time::sleep(time).await;
    }

    /// One pass, as the runtime makes it; `None` when the object is gone.
    pub async fn pass(&mut self, uid: &Uid) -> Result<Option<Pass>, Killed> {
        let now = self.clock.now();
        let images = &self.service.images;
        let pass = pass(images, uid, now, &mut self.budget, async || {}).await?;
        self.actions += pass.as_ref().map_or(0, |pass| pass.acted);
        Ok(pass)
    }

    /// Passes until the image is ready or gone, or the time is up. Returns the last condition; `None`
    /// when the object is gone.
    pub async fn settle_within(
        &mut self,
        uid: &Uid,
        limit: Duration,
    ) -> Result<Option<Condition>, Killed> {
        let until = self.clock.now().plus(limit);
        let mut last = None;
        for _ in 0..MANY {
            // What a reconnect does.
            let _ = self.service.view.refresh().await;
            let Some(pass) = self.pass(uid).await? else {
                return Ok(None);
            };
            last = pass.condition.clone();
            if is_ready(last.as_ref()) || self.clock.now() >= until {
                return Ok(last);
            }
            match (&pass.error, pass.requeue) {
                (Some(_), _) => self.pass_time(Duration::from_secs(1)).await,
                (None, Requeue::After(time)) => {
                    let left = until.since(self.clock.now());
                    self.pass_time(time.min(left)).await;
                }
                (None, Requeue::AtResync) if pass.acted == 0 => {
                    self.pass_time(Duration::from_secs(60)).await;
                }
                (None, Requeue::AtResync) => {}
            }
        }
        panic!("no fix-point after {MANY} passes: {last:?}");
    }

    pub async fn settle(&mut self, uid: &Uid) -> Result<Option<Condition>, Killed> {
        self.settle_within(uid, Duration::from_secs(3600)).await
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
            if let Some(pass) = self.pass(uid).await.unwrap() {
                assert_eq!((pass.acted, pass.error), (0, None));
            }
            self.pass_time(Duration::from_secs(60)).await;
        }
        assert_eq!(self.fake.calls().writes(), 0);
    }

    /// Reference of every image on the engine.
    pub fn tags(&self) -> Vec<String> {
        let images = self.fake.all_images().into_iter();
        let mut tags: Vec<String> = images.flat_map(|image| image.repo_tags).collect();
        tags.sort();
        tags
    }
}

pub fn is_ready(condition: Option<&Condition>) -> bool {
    condition.is_some_and(|c| c.status == ConditionStatus::True)
}

#[track_caller]
pub fn reason(condition: Option<Condition>) -> Reason {
    condition.expect("the object is there").reason
}

impl Yard {
    pub fn clock_now(&self) -> Timestamp {
        self.clock.now()
    }
}
