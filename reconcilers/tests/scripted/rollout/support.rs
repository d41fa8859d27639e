//! A yard of users whose containers do at once what is wanted of them, or fail as the test says.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use schema::clock::{Clock, ManualClock};
use schema::condition::{self, Condition, Reason};
use schema::container::{ContainerFacts, Desired};
use schema::ids::{Epoch, Kind, Uid};
use schema::rollout::{NewRollout, RolloutKind, RolloutRow, RolloutTarget, TargetState};
use schema::user::{NewUser, Source};

pub use kit::START;
pub use kit::pass::Killed;
use kit::pass::pass;
use kit::{FakeEngine, MemoryStore};
use reconcilers::container::ContainerStore;
use reconcilers::rollout::{RolloutReconciler, RolloutStore};
use reconcilers::runtime::{
    Awaited, ErrorClass, ObjectStatus, Objects, Reconciler, Requeue, StatusStore,
};
use reconcilers::shared::Shared;
use reconcilers::user::UserStore;

pub const OLD: &str = "docker.io/library/echo:1";
pub const NEW: &str = "docker.io/library/echo:2";
/// Time for which a container must have been ready before it counts as moved.
pub const MIN_READY: Duration = Duration::from_secs(10);
pub const OLD_ID: &str = "sha256:old";

/// What a container does with a new generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// It becomes ready, or stops.
    Ready,
    /// The replacement fails.
    Fails,
    /// It is started and never ready.
    Hangs,
    /// Nobody observes it.
    Silent,
}

pub struct Yard {
    pub store: MemoryStore,
    pub clock: Arc<ManualClock>,
    pub fake: FakeEngine,
    pub users: Vec<Uid>,
    pub rollout: Uid,
    pub reconciler: RolloutReconciler,
    pub shared: Arc<Shared>,
    statuses: Arc<dyn StatusStore<Uid>>,
    /// Users and images that do not go together, and what comes of it.
    pub broken: BTreeSet<(usize, String, Answer)>,
    /// So many actions may still run before the service is "killed".
    pub budget: Option<usize>,
    pub most_under_way: usize,
    /// Every plan that did something, in words.
    pub told: Vec<String>,
    /// What the last pass waits for.
    pub waits_for: Vec<Awaited>,
}

pub fn upgrade(max_unavailable: u32) -> NewRollout {
    NewRollout {
        kind: RolloutKind::Upgrade,
        reference: NEW.to_owned(),
        source: None,
        max_unavailable,
        pause_on_failure: true,
        health_timeout: Duration::from_secs(30),
        min_ready: MIN_READY,
    }
}

impl Yard {
    /// `users` users, of whom those in `stopped` shall not run, and a rollout of them all.
    pub async fn new(users: usize, stopped: &[usize], new: &NewRollout) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let fake = FakeEngine::new(clock.clone());
        let store = MemoryStore::default();
        let mut uids = Vec::new();
        for number in 0..users {
            let uid = Uid::from(format!("{number:032x}"));
            let user = NewUser {
                uid: uid.clone(),
                name: format!("user{number}").parse().unwrap(),
                source: Source::Local,
                password_hash: None,
                image_ref: OLD.to_owned(),
                desired: if stopped.contains(&number) {
                    Desired::Stopped
                } else {
                    Desired::Running
                },
            };
            store.create_user(&user).unwrap();
            let facts = ContainerFacts {
                image_ref: Some(OLD.to_owned()),
                image_id: Some(OLD_ID.to_owned()),
                image_digest: Some("docker.io/library/echo@sha256:old".to_owned()),
                ..ContainerFacts::default()
            };
            store.save_container_facts(&uid, &facts).await.unwrap();
            uids.push(uid);
        }
        let rollout = Uid::from("f".repeat(32));
        store
            .create_rollout(&rollout, new, &uids, "admin", START)
            .unwrap();
        let statuses = store.statuses(Kind::Container, "container");
        let (reconciler, shared) = Self::boot(&store, &clock, &fake);
        let mut yard = Self {
            reconciler,
            shared,
            store,
            clock,
            fake,
            users: uids,
            rollout,
            statuses,
            broken: BTreeSet::new(),
            budget: None,
            most_under_way: 0,
            told: Vec::new(),
            waits_for: Vec::new(),
        };
        yard.containers().await;
        // They have been ready for long when the rollout begins.
        yard.clock.advance(MIN_READY);
        yard
    }

    fn boot(
        store: &MemoryStore,
        clock: &Arc<ManualClock>,
        fake: &FakeEngine,
    ) -> (RolloutReconciler, Arc<Shared>) {
        let world = kit::world(fake, clock.clone());
        let options = kit::options();
        let store = Arc::new(store.clone());
        let shared = Shared::new(&store, world, options);
        (RolloutReconciler::new(store, Arc::clone(&shared)), shared)
    }

    /// Kills the service and starts it again.
    pub fn reboot(&mut self) {
        (self.reconciler, self.shared) = Self::boot(&self.store, &self.clock, &self.fake);
        self.budget = None;
    }

    pub fn breaks(&mut self, user: usize, image: &str, answer: Answer) {
        self.broken.insert((user, image.to_owned(), answer));
    }

    pub async fn state(&self) -> (RolloutRow, Vec<RolloutTarget>) {
        self.store.rollout(&self.rollout).await.unwrap().unwrap()
    }

    pub async fn states(&self) -> Vec<TargetState> {
        self.state().await.1.iter().map(|t| t.state).collect()
    }

    /// The images of all users' containers.
    pub fn images(&self) -> Vec<Option<String>> {
        let row = |uid| self.store.peek_container(uid);
        let image = |uid| Some(row(uid)?.pinned_image()?.to_owned());
        self.users.iter().map(image).collect()
    }

    fn answer(&self, user: usize, image: &str) -> Answer {
        let broken = self
            .broken
            .iter()
            .find(|(of, with, _)| *of == user && with == image);
        broken.map_or(Answer::Ready, |(_, _, answer)| *answer)
    }

    /// What the container reconciler does, in short. True when it did something.
    pub async fn containers(&mut self) -> bool {
        let mut busy = false;
        for (number, uid) in self.users.iter().enumerate() {
            let Some(row) = self.store.peek_container(uid) else {
                continue;
            };
            if row.deleted_at.is_some() {
                self.store.purge_container(uid).await.unwrap();
                self.store.purge_user(uid).await.unwrap();
                busy = true;
                continue;
            }
            let image = row.pinned_image().unwrap_or_default();
            busy |= self.files(uid).await;
            let condition = match self.answer(number, image) {
                // It has not got what breaks it.
                _ if row.held_by.is_some() => Condition::ready(Reason::Running, ""),
                _ if !row.desired_running() => Condition::ready(Reason::Stopped, ""),
                Answer::Ready => Condition::ready(Reason::Running, ""),
                Answer::Fails => Condition::not_ready(Reason::ReplacementFailed, "it ended"),
                Answer::Hangs => Condition::not_ready(Reason::NotReady, "not ready yet"),
                Answer::Silent => continue,
            };
            let before = self.statuses.load(uid).await.unwrap();
            let now = self.clock.now();
            let status = ObjectStatus {
                observed_generation: row.generation,
                conditions: condition::merge(
                    &before.conditions,
                    vec![condition],
                    row.generation,
                    now,
                ),
                ..ObjectStatus::default()
            };
            if before != status {
                self.statuses.save(uid, &status, Epoch(1)).await.unwrap();
                busy = true;
            }
        }
        busy
    }

    /// Does what the agent-config reconciler does, in short. True when it did something.
    async fn files(&self, uid: &Uid) -> bool {
        let kind = Kind::AgentConfig;
        let Some((generation, status)) = self.store.peek(kind, uid) else {
            return false;
        };
        if status.observed_generation == generation {
            return false;
        }
        let ready = Condition::ready(Reason::Converged, "");
        let now = self.clock.now();
        let status = ObjectStatus {
            observed_generation: generation,
            conditions: condition::merge(&status.conditions, vec![ready], generation, now),
            ..ObjectStatus::default()
        };
        let statuses = self.store.statuses(kind, "agent-config");
        statuses.save(uid, &status, Epoch(1)).await.unwrap()
    }

    /// One pass. `None`: there is nothing to observe any more.
    pub async fn pass(&mut self) -> Result<Option<(usize, Condition, Requeue)>, Killed> {
        let key = self.rollout.clone();
        let now = self.clock.now();
        let (store, most) = (&self.store, Cell::new(self.most_under_way));
        let check = async || {
            let (row, targets) = unfailing(store, &key).await;
            let under_way = targets.iter().filter(|t| t.state.is_under_way()).count();
            most.set(most.get().max(under_way));
            let limit = usize::try_from(row.max_unavailable).unwrap();
            assert!(under_way <= limit, "{targets:?}");
        };
        let pass = pass(&self.reconciler, &key, now, &mut self.budget, check).await;
        self.most_under_way = most.get();
        let Some(pass) = pass? else {
            return Ok(None);
        };
        if let Some((class, _, message)) = &pass.error {
            assert_ne!(*class, ErrorClass::Terminal, "{message}");
            return Ok(Some((1, pass.condition.unwrap(), pass.requeue)));
        }
        let condition = pass.condition.unwrap();
        self.waits_for = pass.waits_for;
        if pass.acted > 0 {
            let steps = pass.steps.join("; ");
            self.told.push(format!("{steps}  ({})", condition.message));
        }
        Ok(Some((pass.acted, condition, pass.requeue)))
    }

    /// Passes until nothing happens any more, and the last condition.
    pub async fn settle(&mut self) -> Result<Condition, Killed> {
        let mut last = None;
        for _ in 0..2_000 {
            let Some((acted, condition, requeue)) = self.pass().await? else {
                break;
            };
            last = Some(condition);
            // Pulls run beside the passes.
            tokio::time::sleep(Duration::from_millis(1)).await;
            let busy = self.containers().await;
            if acted > 0 || busy {
                continue;
            }
            match requeue {
                Requeue::AtResync => return Ok(last.unwrap()),
                Requeue::After(time) => self.clock.advance(time),
            }
            if self.clock.now() > START.plus(Duration::from_secs(100_000)) {
                return Ok(last.unwrap());
            }
        }
        Ok(last.expect("it ended before it was observed, or never does"))
    }

    pub async fn settled(&mut self) -> Condition {
        self.budget = None;
        self.settle().await.unwrap()
    }
}

async fn unfailing(store: &MemoryStore, rollout: &Uid) -> (RolloutRow, Vec<RolloutTarget>) {
    loop {
        if let Ok(Some(found)) = store.rollout(rollout).await {
            return found;
        }
    }
}

impl Yard {
    /// What the bell does when an ended rollout is wanted again.
    pub fn wanted_again(&self) {
        self.reconciler.changed(&self.rollout);
    }
}
