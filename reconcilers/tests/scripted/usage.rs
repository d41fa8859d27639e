//! Workspaces are measured, wherever the service is killed and whatever cannot be read: passes by hand, on a real database and a real
//! data directory.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kit::pass::{Killed, Pass, pass};
use kit::{FakeEngine, MemoryDataDir, OWNER, Pace};
use reconcilers::runtime::Requeue;
use reconcilers::shared::Shared;
use reconcilers::stores::{DataDir, Database, LocalDataDir};
use reconcilers::usage::UsageReconciler;
use schema::clock::{Clock, ManualClock};
use schema::condition::{Condition, ConditionStatus, Reason};
use schema::container::Desired;
use schema::db::{Db, fixture};
use schema::home::{WORKSPACE_DIR, Walked};
use schema::ids::{Epoch, Generation, Kind, Timestamp, Uid, UserName};
use schema::object::{self, StatusRow};
use schema::secrets::MasterKey;
use schema::usage::{self, RETRY, Usage, object_uid};
use schema::user::{self, NewUser, Source};
use tempfile::TempDir;

const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);
/// An hour, and a little for the entries.
const HOUR: Duration = Duration::from_secs(3601);

struct Yard {
    dir: TempDir,
    db: Db,
    key: Arc<MasterKey>,
    clock: Arc<ManualClock>,
    files: Arc<LocalDataDir>,
    reconciler: UsageReconciler,
}

fn boot(
    db: &Db,
    key: &Arc<MasterKey>,
    clock: &Arc<ManualClock>,
    data_dir: Arc<dyn DataDir>,
) -> UsageReconciler {
    let mut world = kit::world(&FakeEngine::new(clock.clone()), clock.clone());
    world.data_dir = data_dir;
    let options = kit::options();
    let store = Arc::new(Database::new(db.clone(), Arc::clone(key), clock.clone()));
    let shared = Shared::new(&store, world, options);
    UsageReconciler::new(store, shared)
}

impl Yard {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let db = fixture::open_sqlite(dir.path()).await.unwrap();
        let key = Arc::new(MasterKey::load_or_create(dir.path()).unwrap());
        let clock = Arc::new(ManualClock::new(NOW));
        let mut tx = db.begin().await.unwrap();
        object::ensure_singles(&mut tx, NOW).await.unwrap();
        tx.commit().await.unwrap();
        let files = Arc::new(LocalDataDir::open(dir.path(), OWNER).unwrap());
        let reconciler = boot(&db, &key, &clock, files.clone());
        Self {
            dir,
            db,
            key,
            clock,
            files,
            reconciler,
        }
    }

    /// A user whose directory was made.
    async fn user(&self, name: &str) -> Uid {
        let new = NewUser {
            uid: Uid::random(),
            name: name.parse().unwrap(),
            source: Source::Local,
            password_hash: None,
            image_ref: "docker.io/library/agent:1".to_owned(),
            desired: Desired::Running,
        };
        self.files.ensure(&new.name, &new.uid, None).await.unwrap();
        let status = StatusRow {
            observed_generation: Generation(1),
            conditions: vec![Condition::ready(Reason::Converged, "")],
            ..StatusRow::default()
        };
        let mut tx = self.db.begin().await.unwrap();
        user::create(&mut tx, &new, NOW).await.unwrap();
        object::save_status(&mut tx, Kind::User, &new.uid, &status, Epoch(1))
            .await
            .unwrap();
        tx.commit().await.unwrap();
        new.uid
    }

    fn workspace(&self, name: &str) -> PathBuf {
        self.dir.path().join("users").join(name).join(WORKSPACE_DIR)
    }

    async fn changed(&self, uid: &Uid) {
        let mut tx = self.db.begin().await.unwrap();
        usage::changed(&mut tx, uid).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn pass(&self, budget: &mut Option<usize>) -> Result<Pass, Killed> {
        let (uid, now) = (object_uid(), self.clock.now());
        let pass = pass(&self.reconciler, &uid, now, budget, async || {}).await?;
        Ok(pass.unwrap())
    }

    /// Passes until there is nothing to do; the steps of all.
    async fn settle(&self, budget: &mut Option<usize>) -> Result<(Pass, Vec<String>), Killed> {
        let mut steps = Vec::new();
        for _ in 0..10 {
            let pass = self.pass(budget).await?;
            if pass.acted == 0 || pass.error.is_some() {
                return Ok((pass, steps));
            }
            steps.extend(pass.steps);
        }
        panic!("it never comes to an end");
    }

    async fn usage(&self, uid: &Uid) -> Option<Usage> {
        let mut connection = self.db.read().await.unwrap();
        usage::get(&mut connection, uid).await.unwrap()
    }

    /// Bytes and files, as far as they are known.
    async fn known(&self, uid: &Uid) -> Option<(bool, u64)> {
        let usage = self.usage(uid).await?;
        Some((usage.used_bytes >= 100_000, usage.files))
    }
}

fn said(pass: &Pass) -> (ConditionStatus, Reason, &str) {
    let condition = pass.condition.as_ref().unwrap();
    (condition.status, condition.reason, &condition.message)
}

const READY: (ConditionStatus, Reason, &str) = (ConditionStatus::True, Reason::Converged, "");

#[tokio::test]
async fn a_workspace_is_measured_at_first_after_a_change_and_from_time_to_time() {
    let yard = Yard::new().await;
    let ada = yard.user("ada").await;
    let (idle, steps) = yard.settle(&mut None).await.unwrap();
    assert_eq!(steps, ["measure the directory of ada"]);
    assert_eq!((said(&idle), idle.requeue), (READY, Requeue::AtResync));
    assert_eq!(yard.known(&ada).await, Some((false, 0)));

    let file = yard.workspace("ada").join("file");
    fs::write(&file, vec![b'x'; 200_000]).unwrap();
    yard.clock.advance(Duration::from_secs(20));
    assert_eq!(yard.pass(&mut None).await.unwrap().acted, 0);
    yard.changed(&ada).await;
    yard.settle(&mut None).await.unwrap();
    assert_eq!(yard.known(&ada).await, Some((true, 1)));
    let measured_at = yard.usage(&ada).await.unwrap().measured_at;
    assert_eq!(measured_at, yard.clock.now());

    // The agent removes it, and asks nobody.
    fs::remove_file(file).unwrap();
    yard.clock.advance(HOUR);
    let (_, steps) = yard.settle(&mut None).await.unwrap();
    assert_eq!(steps, ["measure the directory of ada"]);
    assert_eq!(yard.known(&ada).await, Some((false, 0)));
}

#[tokio::test]
async fn trash_is_emptied_after_a_week_and_not_by_a_set_clock() {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let yard = Yard::new().await;
    let ada = yard.user("ada").await;
    yard.settle(&mut None).await.unwrap();
    let deleted = yard.workspace("ada").join(".trash").join(NOW.to_basic());
    fs::create_dir_all(deleted.join("notes")).unwrap();
    let measure = async || {
        yard.changed(&ada).await;
        yard.settle(&mut None).await.unwrap();
        deleted.exists()
    };
    yard.clock.advance(DAY);
    assert!(measure().await);
    yard.clock.set(NOW.plus(DAY * 30));
    assert!(measure().await, "the clock was set");
    yard.clock.advance(DAY * 7);
    assert!(!measure().await);
}

#[tokio::test]
async fn a_pass_measures_a_bounded_number_and_the_next_goes_on_where_it_was_killed() {
    for budget in 0..3 {
        let yard = Yard::new().await;
        let mut uids = Vec::new();
        for number in 0..45 {
            uids.push(yard.user(&format!("user-{number}")).await);
        }
        let killed = yard.settle(&mut Some(budget)).await;
        assert!(killed.is_err(), "{budget}");
        let (idle, steps) = yard.settle(&mut None).await.unwrap();
        assert_eq!(said(&idle), READY);
        assert_eq!(steps.len(), 3 - budget);
        let last = "measure the directories of 5 users";
        assert_eq!(steps.last().map(String::as_str), Some(last));
        for uid in &uids {
            assert_eq!(yard.known(uid).await, Some((false, 0)));
        }
    }
}

#[tokio::test]
async fn a_workspace_that_cannot_be_measured_is_reported_and_holds_up_no_other() {
    let yard = Yard::new().await;
    let ada = yard.user("ada").await;
    let zoe = yard.user("zoe").await;
    let workspace = yard.workspace("ada");
    fs::write(workspace.join("file"), vec![b'x'; 200_000]).unwrap();
    yard.settle(&mut None).await.unwrap();
    assert_eq!(yard.known(&ada).await, Some((true, 1)));

    let home = yard.dir.path().join("users/ada");
    let away = yard.dir.path().join("away");
    fs::rename(&home, &away).unwrap();
    fs::write(&home, b"").unwrap();
    fs::write(yard.workspace("zoe").join("new"), b"x").unwrap();
    yard.clock.advance(HOUR);
    let (failing, steps) = yard.settle(&mut None).await.unwrap();
    assert_eq!(steps, ["measure the directories of 2 users"]);
    let (status, reason, message) = said(&failing);
    assert_eq!((status, reason), (ConditionStatus::False, Reason::Retrying));
    let begin = "the directory of ada cannot be measured: ";
    assert!(message.starts_with(begin), "{message}");
    assert_eq!(failing.requeue, Requeue::After(RETRY));
    // The number of before stays.
    assert_eq!(yard.known(&ada).await, Some((true, 1)));
    assert_eq!(yard.known(&zoe).await, Some((false, 1)));

    fs::remove_file(&home).unwrap();
    yard.clock.advance(RETRY / 2);
    assert_eq!(yard.pass(&mut None).await.unwrap().acted, 0);
    yard.clock.advance(RETRY / 2);
    let (missing, _) = yard.settle(&mut None).await.unwrap();
    let message = "the directory of ada cannot be measured: it is missing";
    assert_eq!(said(&missing).2, message);

    fs::rename(&away, &home).unwrap();
    yard.clock.advance(RETRY);
    let (idle, _) = yard.settle(&mut None).await.unwrap();
    assert_eq!(said(&idle), READY);
    assert_eq!(yard.usage(&ada).await.unwrap().problem, None);
}

#[tokio::test]
async fn when_the_disk_fails_every_number_stays() {
    let mut yard = Yard::new().await;
    let ada = yard.user("ada").await;
    fs::write(yard.workspace("ada").join("file"), vec![b'x'; 200_000]).unwrap();
    yard.settle(&mut None).await.unwrap();
    yard.clock.advance(HOUR);
    let memory = MemoryDataDir::default();
    memory.on_call(|| Pace {
        fails: true,
        ..Pace::default()
    });
    yard.reconciler = boot(&yard.db, &yard.key, &yard.clock, Arc::new(memory));
    let (failing, _) = yard.settle(&mut None).await.unwrap();
    assert_eq!(said(&failing).1, Reason::Retrying);
    let usage = yard.usage(&ada).await.unwrap();
    assert!(usage.used_bytes >= 100_000 && usage.problem.is_some());
}

#[tokio::test]
async fn l6_what_was_measured_for_one_user_is_not_the_next_ones() {
    let yard = Yard::new().await;
    let ada = yard.user("ada").await;
    fs::write(yard.workspace("ada").join("file"), vec![b'x'; 200_000]).unwrap();
    yard.settle(&mut None).await.unwrap();
    let name: UserName = "ada".parse().unwrap();
    yard.files
        .archive(&name, &ada, NOW, None, None)
        .await
        .unwrap();
    let mut tx = yard.db.begin().await.unwrap();
    user::delete(&mut tx, &ada, NOW).await.unwrap();
    schema::container::purge(&mut tx, &ada).await.unwrap();
    assert!(user::purge(&mut tx, &ada).await.unwrap());
    tx.commit().await.unwrap();
    let next = yard.user("ada").await;
    assert_eq!(
        (yard.usage(&ada).await, yard.usage(&next).await),
        (None, None)
    );
    yard.settle(&mut None).await.unwrap();
    assert_eq!(yard.known(&next).await, Some((false, 0)));
}

#[tokio::test]
async fn a_large_workspace_is_measured_over_many_passes_and_holds_up_no_other() {
    const FILES: u64 = 30_000;
    let mut yard = Yard::new().await;
    let ada = yard.user("ada").await;
    for directory in 0..3 {
        let directory = yard.workspace("ada").join(directory.to_string());
        fs::create_dir(&directory).unwrap();
        for number in 0..FILES / 3 {
            fs::write(directory.join(number.to_string()), b"").unwrap();
        }
    }
    let small = yard.user("zoe").await;
    let files = LocalDataDir::open(yard.dir.path(), OWNER).unwrap();
    let files = files.with_pieces_of_walks(Duration::from_millis(1));
    yard.reconciler = boot(&yard.db, &yard.key, &yard.clock, Arc::new(files));
    yard.pass(&mut None).await.unwrap();
    let mut passes = 1;
    // On a busy machine a piece may end before anything is walked.
    while yard.known(&small).await.is_none() {
        yard.pass(&mut None).await.unwrap();
        passes += 1;
        assert!(passes < 20, "the small one waits for the large one");
    }
    assert_eq!(yard.usage(&ada).await, None, "a part is no number");
    assert_eq!(yard.known(&small).await, Some((false, 0)));
    // What a request changes meanwhile is measured afterwards.
    yard.changed(&ada).await;
    while yard.usage(&ada).await.is_none() {
        yard.pass(&mut None).await.unwrap();
        passes += 1;
        assert!(passes < 10_000, "it never comes to an end");
    }
    assert!(passes > 3, "{passes}");
    let usage = yard.usage(&ada).await.unwrap();
    assert_eq!((usage.files, usage.complete), (FILES, true));
    yard.clock.advance(HOUR / 2);
    let again = yard.pass(&mut None).await.unwrap();
    assert_eq!(again.steps, ["measure the directory of ada"]);
}

/// A walk that nobody waits for any more ends: the service does not wait for it, either.
#[tokio::test]
async fn a_measurement_that_is_given_up_ends() {
    let yard = Yard::new().await;
    let ada = yard.user("ada").await;
    let workspace = yard.workspace("ada");
    for number in 0..2000 {
        fs::write(workspace.join(number.to_string()), b"").unwrap();
    }
    let name: UserName = "ada".parse().unwrap();
    // More of them than may run at once: each that goes on would keep its place.
    for _ in 0..20 {
        let measured = yard.files.measure(&name, &ada, None);
        let given_up = tokio::time::timeout(Duration::from_micros(10), measured);
        drop(given_up.await);
    }
    let walked = yard.files.measure(&name, &ada, None).await.unwrap();
    let Walked::Done(whole) = walked else {
        panic!("{walked:?}");
    };
    assert_eq!((whole.files, whole.is_complete()), (2000, true));
}
