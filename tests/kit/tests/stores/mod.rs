//! What is at rest, in memory and for real: whatever is written to both, both answer the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use kit::{MemoryDataDir, MemoryStore};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reconcilers::agent_config::AgentConfigStore;
use reconcilers::container::ContainerStore;
use reconcilers::engine::EngineStore;
use reconcilers::image::ImageStore;
use reconcilers::rollout::{RolloutStep, RolloutStore};
use reconcilers::runtime::Objects;
use reconcilers::runtime::{DirtyKeys, ObjectStatus, StatusStore};
use reconcilers::stores::{ConfigStore, DataDir, Database, LocalDataDir, Rows};
use reconcilers::user::UserStore;
use schema::agent_config::{self, AgentConfigFacts, AgentConfigRow, KeptFiles};
use schema::audit::{self, ChainKey};
use schema::clock::{ManualClock, SharedClock};
use schema::condition::{Condition, Reason};
use schema::config::history::SavedBy;
use schema::config::query as config;
use schema::config::{Config, parse_patch};
use schema::container::{self, ContainerEnd, ContainerFacts, ContainerRow, Desired};
use schema::db::{Db, Tx, fixture};
use schema::error::DbError;
use schema::home::HomeId;
use schema::home::{FoundFile, HomeError, NewFile};
use schema::ids::{Epoch, Generation, Kind, Timestamp, Uid, UserName};
use schema::image::{self, DesiredImage, ImageFacts, ImageRow};
use schema::meta;
use schema::object;
use schema::rollout::{
    self, ImageChoice, NewRollout, Phase, ReadinessPolicy, RolloutFacts, RolloutKind, TargetState,
};
use schema::secrets::MasterKey;
use schema::user::{self, NewUser, Source, UserRow};
use secrecy::SecretString;
use serde_json::{Value, json};

const STEPS: usize = 250;
const NAMES: [&str; 3] = ["ada", "Bob", "bob"];
const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

/// Stories that each test tells.
fn stories() -> u64 {
    let long = std::env::var_os("AGENTYARD_TEST_LONG").is_some();
    if long { 6 } else { 4 }
}

type Statuses = Arc<dyn StatusStore<Uid>>;
/// What a observe memory has found, and one at the database.
type Reads = (DirtyKeys<Uid>, DirtyKeys<Uid>);

/// The same in memory and in a database.
struct Both {
    memory: MemoryStore,
    real: Database,
    db: Db,
    key: Arc<MasterKey>,
    statuses: [(Kind, Statuses, Statuses); 8],
    rollouts: std::sync::Mutex<Vec<Uid>>,
    /// What was found when both were last observed.
    reads: std::sync::Mutex<BTreeMap<Kind, Reads>>,
    _dir: tempfile::TempDir,
}

/// What an answer says, whoever gives it: of errors only that they are.
fn said<T: Debug, E>(answer: &Result<T, E>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(_) => "refused".to_owned(),
    }
}

fn same<T: Debug, A, B>(what: &str, memory: &Result<T, A>, real: &Result<T, B>) {
    assert_eq!(
        said(memory),
        said(real),
        "{what}: memory, then the real one"
    );
}

/// One transaction of the API on the database, rolled back when it is refused.
macro_rules! write {
    ($both:expr, |$tx:ident| $work:expr) => {{
        let mut $tx = $both.db.begin().await.unwrap();
        let result = $work.await;
        if result.is_ok() {
            $tx.commit().await.unwrap();
        }
        result
    }};
}

/// What the API does when a user saves a channel.
async fn save_channel(
    tx: &mut Tx,
    key: &MasterKey,
    uid: &Uid,
    values: &BTreeMap<String, Value>,
) -> Result<Generation, DbError> {
    object::bump(tx, Kind::AgentConfig, uid, None).await?;
    agent_config::set_channel_values(tx, key, uid, "echo", values, NOW).await?;
    let (generation, _) = container::request_fresh(tx, uid, "t", None).await?;
    Ok(generation)
}

impl Both {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let key = Arc::new(MasterKey::load_or_create(dir.path()).unwrap());
        let db = fixture::open_sqlite(dir.path()).await.unwrap();
        let clock: SharedClock = Arc::new(ManualClock::new(NOW));
        let real = Database::new(db.clone(), Arc::clone(&key), clock);
        let memory = MemoryStore::default();
        let statuses = [
            (Kind::User, "user"),
            (Kind::Container, "container"),
            (Kind::Engine, "engine"),
            (Kind::Image, "image"),
            (Kind::Rollout, "rollout"),
            (Kind::AgentConfig, "agent-config"),
            (Kind::Skill, "skill"),
            (Kind::SkillSet, "skill-set"),
        ]
        .map(|(kind, name)| {
            let of = |store: &dyn Objects| store.statuses(kind, name);
            (kind, of(&memory), of(&real))
        });
        let both = Self {
            memory,
            real,
            db,
            key,
            statuses,
            rollouts: std::sync::Mutex::default(),
            reads: std::sync::Mutex::default(),
            _dir: dir,
        };
        both.memory.create_singles();
        write!(both, |tx| object::ensure_singles(&mut tx, NOW)).unwrap();
        let trail = ChainKey::of(&both.key);
        write!(both, |tx| audit::install(&mut tx, &trail)).unwrap();
        both
    }

    /// How often whoever changes many rows at once has taken its turn.
    async fn turns_of_bulk(&self) -> i64 {
        let mut tx = self.db.begin().await.unwrap();
        // Never committed: asking is no turn.
        meta::take_guard(&mut tx, "bulk").await.unwrap()
    }

    /// Somebody writes something, anything.
    async fn write(&self, rng: &mut StdRng, uids: &mut Vec<Uid>) {
        let number: u32 = rng.random_range(0..30);
        let now = NOW.plus(std::time::Duration::from_secs(rng.random_range(0..1000)));
        if number < 2 || uids.is_empty() {
            return self.create(rng, uids).await;
        }
        let uid = uids[rng.random_range(0..uids.len())].clone();
        let memory = &self.memory;
        let flag = rng.random_bool(0.5);
        match number {
            2 => {
                let real = write!(self, |tx| container::set_desired(
                    &mut tx,
                    &uid,
                    Desired::Stopped,
                    flag,
                    None
                ));
                same(
                    "stop",
                    &memory.set_desired(&uid, Desired::Stopped, flag),
                    &real,
                );
            }
            3 => {
                let real = write!(self, |tx| container::request_restart(
                    &mut tx, &uid, "t", flag, None
                ));
                same("restart", &memory.request_restart(&uid, "t", flag), &real);
            }
            4 => {
                let limit = flag.then_some(256);
                let real = write!(self, |tx| container::set_limits(
                    &mut tx,
                    &uid,
                    Some(0.5),
                    limit,
                    None
                ));
                same("limits", &memory.set_limits(&uid, Some(0.5), limit), &real);
            }
            5 => {
                let real = write!(self, |tx| user::set_disabled(&mut tx, &uid, flag, None));
                same("disable", &memory.set_disabled(&uid, flag), &real);
            }
            6 => {
                let real = write!(self, |tx| user::delete(&mut tx, &uid, now));
                same("delete", &memory.delete_user(&uid, now), &real);
            }
            7 => {
                let kind = if flag { Kind::User } else { Kind::Container };
                let paused = rng.random_bool(0.5);
                for kind in [kind, Kind::AgentConfig] {
                    let real = write!(self, |tx| object::set_paused(
                        &mut tx, kind, &uid, paused, None
                    ));
                    same("pause", &memory.set_paused(kind, &uid, paused), &real);
                }
            }
            8 => {
                let name = if rng.random_bool(0.3) {
                    "*"
                } else {
                    "container"
                };
                memory.set_reconciler_paused(name, flag);
                write!(self, |tx| object::set_reconciler_paused(
                    &mut tx, name, flag
                ))
                .unwrap();
            }
            9 => self.configure(rng).await,
            10 | 11 => {
                same(
                    "finalizer",
                    &memory.add_user_finalizer(&uid).await,
                    &self.real.add_user_finalizer(&uid).await,
                );
                same(
                    "applied",
                    &memory.applied(&uid).await,
                    &self.real.applied(&uid).await,
                );
                same(
                    "finalizer",
                    &memory.add_container_finalizer(&uid).await,
                    &self.real.add_container_finalizer(&uid).await,
                );
            }
            12 => same(
                "purge container",
                &memory.purge_container(&uid).await,
                &self.real.purge_container(&uid).await,
            ),
            13 => same(
                "purge user",
                &memory.purge_user(&uid).await,
                &self.real.purge_user(&uid).await,
            ),
            14 => {
                let image = rng.random_bool(0.5).then(|| "sha256:old".to_owned());
                let facts = ContainerFacts {
                    image_ref: flag.then(|| "echo:1".to_owned()),
                    image_digest: image.as_ref().map(|_| "echo@sha256:d".to_owned()),
                    image_id: image,
                    engine_id: flag.then(|| "id".to_owned()),
                    ready_at: Some(now),
                    crash_count: rng.random_range(0..4),
                    ..ContainerFacts::default()
                };
                same(
                    "facts",
                    &memory.save_container_facts(&uid, &facts).await,
                    &self.real.save_container_facts(&uid, &facts).await,
                );
                let end = ContainerEnd {
                    at: now,
                    exit_code: flag.then_some(1),
                    cause: "exit code 1".to_owned(),
                    log: format!("crash {}", facts.crash_count),
                };
                same(
                    "end",
                    &memory.note_container_end(&uid, &facts, &end).await,
                    &self.real.note_container_end(&uid, &facts, &end).await,
                );
            }
            15 => self.save_status(rng, &uid, now).await,
            16..=20 => self.rollout(rng, uids, now).await,
            24..=27 => self.write_agent_config(rng, &uid).await,
            28 | 29 => self.write_usage(rng, &uid, now).await,
            _ => self.write_image(rng, uids, now).await,
        }
    }

    /// Somebody wants something of an image, or its reconciler does its work.
    async fn write_image(&self, rng: &mut StdRng, uids: &mut Vec<Uid>, now: Timestamp) {
        let reference = ["r.example/a:1", "docker.io/library/echo:1"][rng.random_range(0..2)];
        let memory = &self.memory;
        let images: Vec<(Uid, ImageRow)> = self.real.rows().await.unwrap();
        let mut images = images.iter().map(|(_, image)| image);
        let known = images.find(|image| image.reference == reference);
        // A uid is drawn by the database, when it draws one at all.
        let drawn = |real: &Result<(Uid, Generation), DbError>| match real {
            Ok((uid, _)) => uid.clone(),
            Err(_) => Uid::random(),
        };
        match rng.random_range(0..8) {
            0..3 => {
                let token = ["t1", "t2"][rng.random_range(0..2)];
                let real = write!(self, |tx| image::request_pull(
                    &mut tx, reference, token, None, now
                ));
                let uid = drawn(&real);
                same("pull", &memory.request_pull(&uid, reference, token), &real);
                uids.extend(real.is_ok().then_some(uid));
            }
            3 => {
                let real = write!(self, |tx| image::request_absent(&mut tx, reference, now));
                let uid = drawn(&real);
                same(
                    "absent",
                    &memory.request_absent(&uid, reference, now),
                    &real,
                );
            }
            4 => {
                let real = write!(self, |tx| image::request_cancel(
                    &mut tx, reference, None, now
                ));
                let uid = drawn(&real);
                same(
                    "cancel",
                    &memory.request_cancel(&uid, reference, now),
                    &real,
                );
            }
            5 => {
                let Some(known) = known else { return };
                let facts = ImageFacts {
                    image_id: Some("sha256:aa".to_owned()),
                    digest: None,
                    pull_token: Some(known.pull_token.clone()),
                    pulled_at: Some(now),
                    failed_token: Some(known.pull_token.clone()),
                    failure: Some("no such tag".to_owned()),
                };
                same(
                    "image facts",
                    &memory.save_image_facts(&known.uid, &facts).await,
                    &self.real.save_image_facts(&known.uid, &facts).await,
                );
            }
            6 => {
                let nobody = Uid::random();
                let uid = known.map_or(&nobody, |known| &known.uid);
                let wishes = [DesiredImage::Absent, DesiredImage::Cancelled];
                let wished = wishes[rng.random_range(0..2)];
                same(
                    "purge image",
                    &memory.purge_image(uid, wished).await,
                    &self.real.purge_image(uid, wished).await,
                );
            }
            _ => {
                let Some(uid) = uids.first() else { return };
                let facts = ContainerFacts {
                    image_ref: Some(["echo:1", "echo:2"][rng.random_range(0..2)].to_owned()),
                    image_id: Some("sha256:aa".to_owned()),
                    ..ContainerFacts::default()
                };
                same(
                    "pinned image",
                    &memory.save_container_facts(uid, &facts).await,
                    &self.real.save_container_facts(uid, &facts).await,
                );
            }
        }
    }

    /// Somebody saves what goes into agents' files, or the reconciler remembers something of them.
    async fn write_agent_config(&self, rng: &mut StdRng, uid: &Uid) {
        let (memory, real) = (&self.memory, &self.real);
        match rng.random_range(0..5) {
            0 => {
                let values = [("token".to_owned(), json!(rng.random_range(0..3)))].into();
                let written = write!(self, |tx| save_channel(&mut tx, &self.key, uid, &values));
                same(
                    "channel",
                    &memory.save_channel(uid, "echo", &values, "t"),
                    &written,
                );
            }
            1 => {
                let value = format!("a={}", rng.random_range(0..3));
                let secret = SecretString::from(value.clone());
                let written = write!(self, |tx| agent_config::set_cookies(
                    &mut tx,
                    &self.key,
                    uid,
                    "d.example",
                    &secret,
                    NOW
                ));
                same(
                    "cookies",
                    &memory.set_cookies(uid, "d.example", &value),
                    &written,
                );
            }
            2 => {
                let mut file = || {
                    rng.random_bool(0.7)
                        .then(|| vec![rng.random(), rng.random()])
                };
                let files = KeptFiles {
                    config: file(),
                    security: file(),
                    generation: Generation(rng.random_range(0..5)),
                    config_version: rng.random_range(1..4),
                    applied: None,
                };
                same(
                    "kept files",
                    &memory.keep_files(uid, &files).await,
                    &real.keep_files(uid, &files).await,
                );
            }
            _ => {
                let facts = AgentConfigFacts {
                    generation: Generation(rng.random_range(0..5)),
                    refused: rng.random_bool(0.3).then_some(Reason::NoMigrationPath),
                    applied: None,
                    restart_digest: rng.random_bool(0.7).then(|| "digest".to_owned()),
                    home: rng
                        .random_bool(0.7)
                        .then(|| HomeId::from(format!("home-{}", rng.random_range(0..2)))),
                    put_back: rng.random_bool(0.3),
                };
                same(
                    "config facts",
                    &memory.save_agent_config_facts(uid, &facts).await,
                    &real.save_agent_config_facts(uid, &facts).await,
                );
            }
        }
    }

    async fn create(&self, rng: &mut StdRng, uids: &mut Vec<Uid>) {
        let uid = Uid::from(format!("{:032x}", rng.random::<u128>()));
        let new = NewUser {
            uid: uid.clone(),
            name: NAMES[rng.random_range(0..NAMES.len())].parse().unwrap(),
            source: Source::Local,
            password_hash: None,
            image_ref: "echo:1".to_owned(),
            desired: Desired::Running,
        };
        let real = write!(self, |tx| user::create(&mut tx, &new, NOW));
        let memory = self.memory.create_user(&new);
        assert_eq!(
            memory.as_ref().map_err(ToString::to_string),
            real.as_ref().map_err(ToString::to_string)
        );
        if memory.is_ok() {
            uids.push(uid);
        }
    }

    async fn configure(&self, rng: &mut StdRng) {
        let document = match rng.random_range(0..4) {
            3 => json!({ "container.service_url": format!("http://h{}", rng.random_range(1..9)) }),
            0 => json!({ "container.memory_limit_mb": 64 * rng.random_range(1..4) }),
            1 => {
                json!({ "container.network_subnet": format!("10.{}.0.0/16", rng.random_range(1..9)) })
            }
            _ => json!({ "image.pull_policy": "always", "container.pids_limit": null }),
        };
        let stored = Config::from_stored(self.memory.config().await.unwrap().0);
        let changes = parse_patch(&document).unwrap().resolve(&stored).unwrap();
        let saved = write!(self, |tx| config::save(
            &mut tx,
            &self.key,
            &changes,
            None,
            SavedBy {
                actor: "root",
                at: NOW
            }
        ));
        let real = saved.map(|saved| saved.generation);
        same("configure", &self.memory.configure(&changes), &real);
    }

    /// Somebody begins a rollout, desired changes something of one, or it takes a step.
    async fn rollout(&self, rng: &mut StdRng, uids: &[Uid], now: Timestamp) {
        let rollouts = self.rollouts.lock().unwrap().clone();
        let some: Vec<Uid> = uids
            .iter()
            .filter(|_| rng.random_bool(0.5))
            .cloned()
            .collect();
        let choice = rng.random_range(0..12);
        if rollouts.is_empty() || choice == 0 {
            let new = NewRollout {
                kind: RolloutKind::Upgrade,
                reference: "docker.io/library/echo:2".to_owned(),
                source: rng.random_bool(0.5).then(|| "echo".to_owned()),
                max_unavailable: 2,
                pause_on_failure: rng.random_bool(0.5),
                health_timeout: std::time::Duration::from_secs(9),
                min_ready: std::time::Duration::from_secs(2),
            };
            let real = write!(self, |tx| rollout::create(
                &mut tx, &new, &some, "admin", now
            ));
            let uid = real.as_ref().map_or_else(|_| Uid::random(), Clone::clone);
            let memory = self.memory.create_rollout(&uid, &new, &some, "admin", now);
            same("rollout", &memory, &real.as_ref().map(|_| ()));
            if memory.is_ok() {
                self.rollouts.lock().unwrap().push(uid);
            }
            return;
        }
        let uid = &rollouts[rng.random_range(0..rollouts.len())];
        let (memory, real) = (&self.memory, &self.real);
        let (generation, _) = self.memory.peek(Kind::Rollout, uid).unwrap();
        let step = RolloutStep {
            rollout: uid,
            // Now and then somebody was faster.
            planned_for: Generation(generation.0 - i64::from(rng.random_bool(0.1))),
            now,
        };
        let user = uids[rng.random_range(0..uids.len())].clone();
        let image = ImageChoice {
            reference: "docker.io/library/echo:2".to_owned(),
            image_id: Some("sha256:new".to_owned()),
            digest: rng.random_bool(0.5).then(|| "echo@sha256:e".to_owned()),
        };
        let policy = ReadinessPolicy {
            health_timeout: std::time::Duration::from_secs(9),
            min_ready: std::time::Duration::from_secs(2),
        };
        match choice {
            1 => {
                let wish = write!(self, |tx| rollout::pause(&mut tx, uid, None));
                same("pause", &memory.pause_rollout(uid), &wish);
            }
            2 => {
                let wish = write!(self, |tx| rollout::resume(&mut tx, uid, None));
                same("resume", &memory.resume_rollout(uid), &wish);
            }
            3 => {
                let wish = write!(self, |tx| rollout::roll_back(&mut tx, uid, None));
                same("roll back", &memory.roll_back_rollout(uid), &wish);
            }
            4 => {
                let wish = write!(self, |tx| rollout::cancel(&mut tx, uid, None));
                same("cancel", &memory.cancel_rollout(uid), &wish);
            }
            5 => {
                let ended = rng.random_bool(0.5);
                let facts = RolloutFacts {
                    image_id: image.image_id.clone(),
                    image_digest: image.digest.clone(),
                    resolved_attempt: rng.random_range(0..3),
                    paused_attempt: rng.random_range(0..3),
                    phase: if ended {
                        Phase::Succeeded
                    } else {
                        Phase::Rolling
                    },
                    message: "m".to_owned(),
                    finished_at: ended.then_some(now),
                    pull_failed_at: rng.random_bool(0.5).then_some(now),
                };
                same(
                    "rollout facts",
                    &memory.save_rollout_facts(step, &facts).await,
                    &real.save_rollout_facts(step, &facts).await,
                );
            }
            6 | 7 => {
                let batch = [user, uids[rng.random_range(0..uids.len())].clone()];
                let turns = self.turns_of_bulk().await;
                let moved = real.move_targets(step, &batch, &image, policy).await;
                // PostgreSQL locks rows in no order of ours: it takes turns with changes of all.
                let taken = self.turns_of_bulk().await - turns;
                assert_eq!(taken, i64::from(moved.is_ok()));
                same(
                    "move",
                    &memory.move_targets(step, &batch, &image, policy).await,
                    &moved,
                );
            }
            8 | 9 => {
                let states = [TargetState::RollingBack, TargetState::PuttingBack];
                let state = states[rng.random_range(0..2)];
                same(
                    "put back",
                    &memory.put_back_target(step, &user, state, "why").await,
                    &real.put_back_target(step, &user, state, "why").await,
                );
            }
            10 => {
                let batch = [user, uids[rng.random_range(0..uids.len())].clone()];
                let state = TargetState::Cancelled;
                same(
                    "finish many",
                    &memory.finish_targets(step, &batch, state, "all").await,
                    &real.finish_targets(step, &batch, state, "all").await,
                );
            }
            _ => {
                let state = [TargetState::Failed, TargetState::Done][rng.random_range(0..2)];
                same(
                    "finish",
                    &memory.finish_target(step, &user, state, "why").await,
                    &real.finish_target(step, &user, state, "why").await,
                );
            }
        }
    }

    async fn save_status(&self, rng: &mut StdRng, uid: &Uid, now: Timestamp) {
        let mut condition = Condition::not_ready(Reason::NotReady, "soon");
        condition.last_transition_at = now;
        let status = ObjectStatus {
            observed_generation: Generation(rng.random_range(0..6)),
            conditions: vec![condition],
            failures: rng.random_range(0..3),
            next_attempt_at: rng.random_bool(0.5).then_some(now),
            paused: false,
        };
        let epoch = Epoch(rng.random_range(1..3));
        let (_, memory, real) = &self.statuses[rng.random_range(0..self.statuses.len())];
        same(
            "status",
            &memory.save(uid, &status, epoch).await,
            &real.save(uid, &status, epoch).await,
        );
    }

    /// Both find the same at first, and later whatever has a new generation since.
    async fn compare_dirty(&self, kind: Kind, memory: &Statuses, real: &Statuses) {
        let before = self.reads.lock().unwrap().remove(&kind);
        let [mut one, mut other] = [
            memory.dirty(None).await.unwrap(),
            real.dirty(None).await.unwrap(),
        ];
        one.dirty.sort();
        other.dirty.sort();
        assert_eq!(one.dirty, other.dirty, "dirty keys of {kind}");
        if let Some((first, second)) = before {
            let known: BTreeSet<_> = first.dirty.into_iter().collect();
            let new: BTreeSet<_> = one.dirty.iter().filter(|d| !known.contains(d)).collect();
            for (store, since) in [(memory, first.through), (real, second.through)] {
                let later = store.dirty(Some(since)).await.unwrap().dirty;
                let later: BTreeSet<_> = later.iter().collect();
                assert!(later.is_superset(&new), "{kind}: {later:?}, not {new:?}");
                assert!(later.iter().all(|dirty| one.dirty.contains(dirty)));
            }
        }
        self.reads.lock().unwrap().insert(kind, (one, other));
    }

    /// All rows of one kind, and each by itself, are the same; their uids.
    async fn compare_rows<T>(&self, what: &str) -> Vec<Uid>
    where
        T: Debug + 'static,
        MemoryStore: Rows<T>,
        Database: Rows<T>,
    {
        let (memory, real): (&dyn Rows<T>, &dyn Rows<T>) = (&self.memory, &self.real);
        let rows = real.rows().await;
        same(what, &memory.rows().await, &rows);
        let uids: Vec<Uid> = rows.unwrap().into_iter().map(|(uid, _)| uid).collect();
        for uid in &uids {
            same(what, &memory.row(uid).await, &real.row(uid).await);
        }
        let nobody = Uid::random();
        same(what, &memory.row(&nobody).await, &real.row(&nobody).await);
        uids
    }

    /// Everything that can be asked is answered the same.
    async fn compare(&self, uids: &[Uid]) {
        let (memory, real) = (&self.memory, &self.real);
        self.compare_rows::<ImageRow>("image").await;
        for rows in [
            self.compare_rows::<UserRow>("user").await,
            self.compare_rows::<ContainerRow>("container").await,
            self.compare_rows::<AgentConfigRow>("agent config").await,
        ] {
            assert!(rows.is_sorted(), "{rows:?}");
        }
        same("engine", &memory.engine().await, &real.engine().await);
        same(
            "image uses",
            &memory.image_uses().await,
            &real.image_uses().await,
        );
        let mut lists = [
            memory.rollouts().await.unwrap(),
            real.rollouts().await.unwrap(),
        ];
        lists.iter_mut().for_each(|list| list.sort());
        assert_eq!(lists[0], lists[1]);
        let rollouts = self.rollouts.lock().unwrap().clone();
        for uid in rollouts {
            same(
                "rollout",
                &memory.rollout(&uid).await,
                &real.rollout(&uid).await,
            );
        }
        same("config", &memory.config().await, &real.config().await);
        same(
            "config generation",
            &memory.config_generation().await,
            &real.config_generation().await,
        );
        for (kind, memory, real) in &self.statuses {
            self.compare_dirty(*kind, memory, real).await;
            let [mut one, mut other] = [
                memory.load_all().await.unwrap(),
                real.load_all().await.unwrap(),
            ];
            one.sort_by(|a, b| a.0.cmp(&b.0));
            other.sort_by(|a, b| a.0.cmp(&b.0));
            assert_eq!(one, other, "statuses of {kind}");
            assert_eq!(memory.paused().await.unwrap(), real.paused().await.unwrap());
        }
        for uid in uids {
            let values = [
                memory.user_values(uid).await.unwrap(),
                real.user_values(uid).await.unwrap(),
            ];
            assert!(values[0] == values[1], "values of {uid}");
            let kept = [
                memory.kept_files(uid).await.unwrap(),
                real.kept_files(uid).await.unwrap(),
            ];
            assert!(kept[0] == kept[1], "kept files of {uid}");
            let gone = real.is_container_gone(uid).await;
            same(
                "container gone",
                &memory.is_container_gone(uid).await,
                &gone,
            );
            for (kind, one, other) in &self.statuses {
                same("status", &one.load(uid).await, &other.load(uid).await);
                let mut connection = self.db.read().await.unwrap();
                let object = object::get(&mut connection, *kind, uid).await.unwrap();
                let generation = memory.peek(*kind, uid).map(|(generation, _)| generation);
                assert_eq!(generation, object.map(|object| object.generation), "{kind}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_in_memory_answers_as_the_real_one() {
    for story in 1..=stories() {
        let both = Both::new().await;
        let mut rng = StdRng::seed_from_u64(story);
        let mut uids = Vec::new();
        for _ in 0..STEPS {
            both.write(&mut rng, &mut uids).await;
            both.compare(uids.get(uids.len().saturating_sub(4)..).unwrap())
                .await;
        }
        both.compare(&uids).await;
        assert!(uids.len() > 2, "names are used again: {uids:?}");
    }
}

#[tokio::test]
async fn the_bell_in_memory_rings_for_every_listener_when_desired_state_changes() {
    let store = MemoryStore::default();
    let mut bells = [store.bell(), store.bell()];
    for bell in &mut bells {
        bell.listen();
    }
    store.create_singles();
    for bell in &mut bells {
        bell.rung().await.unwrap();
    }
}

fn kind_of<T: Debug>(answer: Result<T, HomeError>) -> String {
    match answer {
        Ok(answer) => {
            let text = format!("{answer:?}");
            // The sentence of a conflict names a place.
            text.split('(').next().unwrap_or_default().to_owned()
        }
        Err(HomeError::Conflict(_)) => "conflict".to_owned(),
        Err(HomeError::Changed { .. }) => "changed".to_owned(),
        Err(HomeError::TooLarge { .. }) => "too large".to_owned(),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_data_directory_in_memory_answers_as_the_real_one() {
    for story in 1..=stories() {
        let dir = tempfile::tempdir().unwrap();
        let real = LocalDataDir::open(dir.path(), "instance").unwrap();
        let memory = MemoryDataDir::default();
        let mut rng = StdRng::seed_from_u64(story);
        let uids: Vec<Uid> = (0..4_u8)
            .map(|n| Uid::from(format!("{n:x}").repeat(32)))
            .collect();
        for step in 0..STEPS {
            let uid = &uids[rng.random_range(0..uids.len())];
            let name: UserName = ["ada", "zoe"][rng.random_range(0..2)].parse().unwrap();
            let number = rng.random_range(0..10);
            let [one, other] = match number {
                0 | 1 => [
                    kind_of(memory.ensure(&name, uid, None).await),
                    kind_of(real.ensure(&name, uid, None).await),
                ],
                2 => {
                    let at = NOW.plus(std::time::Duration::from_secs(rng.random_range(0..3)));
                    [
                        kind_of(memory.archive(&name, uid, at, None, None).await),
                        kind_of(real.archive(&name, uid, at, None, None).await),
                    ]
                }
                3..=5 => {
                    // One knows the files of both, or the files of one.
                    let paths = ["config.json", "deep/.security.yml"];
                    let limit = rng.random_range(1..6);
                    let known = [
                        memory.read_agent_files(&name, uid, paths, limit).await,
                        real.read_agent_files(&name, uid, paths, limit).await,
                    ];
                    let text = known.each_ref().map(|known| match known {
                        Ok(files) => {
                            let of = |file: &FoundFile| (file.bytes.clone(), file.mode);
                            format!("{:?}", files.each_ref().map(|f| f.as_ref().map(of)))
                        }
                        Err(HomeError::TooLarge { .. }) => "too large".to_owned(),
                        Err(HomeError::Conflict(_)) => "conflict".to_owned(),
                        Err(error) => panic!("{error}"),
                    });
                    assert_eq!(text[0], text[1], "story {story}, step {step}");
                    let stale = rng.random_bool(0.2);
                    let length = rng.random_range(0..6);
                    let mode = [0o600, 0o640][rng.random_range(0..2)];
                    let [one, other] = known.map(|known| {
                        let known = known.unwrap_or([None, None]);
                        let files = paths.into_iter().zip(known).map(|(path, found)| NewFile {
                            path: path.to_owned(),
                            bytes: vec![b'x'; length],
                            mode,
                            expected: found.filter(|_| !stale).map(|found| found.stamp),
                        });
                        files.collect::<Vec<_>>()
                    });
                    [
                        kind_of(memory.write_agent_files(&name, uid, &one).await),
                        kind_of(real.write_agent_files(&name, uid, &other).await),
                    ]
                }
                6 => {
                    let archives = real.archives().await.unwrap();
                    let at = rng.random_range(0..=archives.len());
                    let known = archives.get(at).map(|archive| &*archive.directory);
                    let directory = known.unwrap_or("ada-20270115T080000Z-foreign");
                    [
                        kind_of(memory.remove_archive(directory).await),
                        kind_of(real.remove_archive(directory).await),
                    ]
                }
                7 => [
                    kind_of(memory.measure(&name, uid, None).await),
                    kind_of(real.measure(&name, uid, None).await),
                ],
                8 => {
                    let to: UserName = match name.as_str() {
                        "ada" => "zoe".parse().unwrap(),
                        _ => "ada".parse().unwrap(),
                    };
                    [
                        kind_of(memory.rename(&name, &to, uid).await),
                        kind_of(real.rename(&name, &to, uid).await),
                    ]
                }
                _ => [
                    kind_of(memory.file_modified(&name, uid, "none").await),
                    kind_of(real.file_modified(&name, uid, "none").await),
                ],
            };
            assert_eq!(one, other, "story {story}, step {step}, call {number}");
            for uid in &uids {
                assert_eq!(
                    kind_of(memory.state(&name, uid, None).await),
                    kind_of(real.state(&name, uid, None).await),
                    "story {story}, step {step}"
                );
            }
            assert_eq!(memory.homes(), listing(&dir.path().join("users")));
            assert_eq!(
                memory.archives().await.unwrap(),
                real.archives().await.unwrap()
            );
            let archived: usize = uids.iter().map(|uid| memory.archives_of(uid).len()).sum();
            assert_eq!(archived, listing(&dir.path().join("archive")).len());
        }
        memory.write_probe("token").await.unwrap();
        real.write_probe("token").await.unwrap();
        assert!(dir.path().join("probe/probe").exists());
        memory.remove_probe().await.unwrap();
        real.remove_probe().await.unwrap();
        assert_eq!(
            memory.remove_probe().await.is_err(),
            real.remove_probe().await.is_err()
        );
    }
}

/// Names in a directory, without those that begin with a dot.
fn listing(dir: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

mod directories;
mod skills;
mod usage;
