//! Passes by hand, on a real database and a real data directory.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

use kit::pass::{Killed, Pass, pass};
use kit::{FakeEngine, MemoryDataDir, OWNER, Pace};
use reconcilers::archive::ArchiveReconciler;
use reconcilers::runtime::{ErrorClass, Requeue};
use reconcilers::shared::Shared;
use reconcilers::stores::{DataDir, Database, LocalDataDir};
use schema::archive::{ArchiveFacts, facts, object_uid};
use schema::audit::{self, ChainKey};
use schema::clock::{Clock, ManualClock};
use schema::condition::{ConditionStatus, Reason};
use schema::config::history::SavedBy;
use schema::config::{Config, parse_patch, query as config};
use schema::db::{Db, fixture};
use schema::ids::{Generation, Kind, Timestamp, Uid, UserName};
use schema::object;
use schema::secrets::MasterKey;
use serde_json::json;
use tempfile::TempDir;

/// 2026-05-11T11:46:40Z
const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);
const DAY: Duration = Duration::from_secs(24 * 3600);

struct Yard {
    dir: TempDir,
    db: Db,
    key: Arc<MasterKey>,
    clock: Arc<ManualClock>,
    files: Arc<LocalDataDir>,
    reconciler: ArchiveReconciler,
}

fn boot(
    db: &Db,
    key: &Arc<MasterKey>,
    clock: &Arc<ManualClock>,
    data_dir: Arc<dyn DataDir>,
) -> ArchiveReconciler {
    let mut world = kit::world(&FakeEngine::new(clock.clone()), clock.clone());
    world.data_dir = data_dir;
    let options = kit::options();
    let store = Arc::new(Database::new(db.clone(), Arc::clone(key), clock.clone()));
    let shared = Shared::new(&store, world, options);
    ArchiveReconciler::new(store, shared)
}

impl Yard {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let db = fixture::open_sqlite(dir.path()).await.unwrap();
        let key = Arc::new(MasterKey::load_or_create(dir.path()).unwrap());
        let clock = Arc::new(ManualClock::new(NOW));
        let mut tx = db.begin().await.unwrap();
        audit::install(&mut tx, &ChainKey::of(&key)).await.unwrap();
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

    /// A user deleted so many days ago, with something in its directory.
    async fn archive(&self, user: &str, days: u32) -> String {
        let (name, uid): (UserName, Uid) = (user.parse().unwrap(), Uid::random());
        self.files.ensure(&name, &uid, None).await.unwrap();
        let home = self.dir.path().join("users").join(user);
        fs::create_dir_all(home.join("a/b")).unwrap();
        fs::write(home.join("a/b/c"), b"c").unwrap();
        symlink(self.dir.path().join("agentyard.db"), home.join("a/link")).unwrap();
        let deleted_at = NOW.minus(DAY * days);
        self.files
            .archive(&name, &uid, deleted_at, None, None)
            .await
            .unwrap();
        let archives = self.files.archives().await.unwrap();
        let ours = archives.iter().find(|archive| archive.user == name);
        ours.unwrap().directory.clone()
    }

    async fn keep(&self, retention: &str) -> Generation {
        let mut tx = self.db.begin().await.unwrap();
        let (stored, _) = config::load(&mut tx, &self.key).await.unwrap();
        let patch = parse_patch(&json!({ "archive.retention": retention })).unwrap();
        let changes = patch.resolve(&Config::from_stored(stored)).unwrap();
        let by = SavedBy {
            actor: "admin",
            at: NOW,
        };
        config::save(&mut tx, &self.key, &changes, None, by)
            .await
            .unwrap();
        let object = object::get(&mut tx, Kind::Archive, &object_uid()).await;
        tx.commit().await.unwrap();
        object.unwrap().unwrap().generation
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

    /// What lies in the archive, but for what the service keeps there for itself.
    fn listing(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path().join("archive")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    /// Of which archives the audit trail says that they were removed.
    async fn audited(&self) -> Vec<String> {
        let mut connection = self.db.read().await.unwrap();
        let entries = audit::following(&mut connection, 0, 100).await.unwrap();
        let removed = entries.into_iter().map(|record| {
            let entry = record.entry;
            assert_eq!(
                (&*entry.actor, &*entry.action),
                ("system:archive", "archive_remove")
            );
            entry.object.strip_prefix("archive/").unwrap().to_owned()
        });
        removed.collect()
    }

    async fn facts(&self) -> ArchiveFacts {
        let mut connection = self.db.read().await.unwrap();
        facts(&mut connection).await.unwrap()
    }
}

#[tokio::test]
async fn what_is_older_than_the_retention_goes_and_the_next_is_waited_for() {
    let yard = Yard::new().await;
    let old = yard.archive("ada", 90).await;
    let young = yard.archive("zoe", 10).await;
    let (kept, steps) = yard.settle(&mut None).await.unwrap();
    assert_eq!(steps, ["remember what is in the archive"]);
    let said = kept.condition.unwrap();
    let message = format!("2 archives; the oldest is {old}");
    assert_eq!(
        (said.status, said.message),
        (ConditionStatus::True, message)
    );
    assert_eq!(kept.requeue, Requeue::AtResync);

    assert_eq!(yard.keep("30d").await, Generation(2));
    let (_, steps) = yard.settle(&mut None).await.unwrap();
    assert_eq!(steps[0], format!("remove the archive {old}"));
    assert_eq!(yard.audited().await, [old]);
    assert_eq!(yard.listing(), std::slice::from_ref(&young));
    let left = yard.facts().await;
    assert_eq!((left.count, &left.oldest[0].directory), (1, &young));
    let idle = yard.pass(&mut None).await.unwrap();
    assert_eq!((idle.acted, idle.requeue), (0, Requeue::After(DAY * 20)));

    yard.clock.advance(DAY * 20);
    let (empty, _) = yard.settle(&mut None).await.unwrap();
    assert_eq!(empty.condition.unwrap().message, "no archives");
    assert_eq!(yard.listing(), Vec::<String>::new());
}

#[tokio::test]
async fn killed_after_any_step_it_ends_the_same() {
    for steps in 0..6 {
        let yard = Yard::new().await;
        for (user, days) in [("ada", 90), ("bob", 60), ("eve", 40)] {
            yard.archive(user, days).await;
        }
        let young = yard.archive("zoe", 1).await;
        yard.keep("30d").await;
        let killed = yard.settle(&mut Some(steps)).await.is_err();
        assert_eq!(killed, steps < 4, "{steps}");
        let (idle, _) = yard.settle(&mut None).await.unwrap();
        assert_eq!(idle.condition.unwrap().status, ConditionStatus::True);
        assert_eq!(yard.listing(), [young]);
        assert_eq!(yard.facts().await.count, 1);
        let mut audited = yard.audited().await;
        audited.dedup();
        assert_eq!(audited.len(), 3, "{audited:?}");
    }
}

#[tokio::test]
async fn what_is_no_archive_of_ours_stays_whatever_its_age() {
    let yard = Yard::new().await;
    let root = yard.dir.path().join("archive");
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("kept"), b"").unwrap();
    let stamp = "20200101T000000Z";
    fs::create_dir(root.join(format!("unmarked-{stamp}"))).unwrap();
    fs::create_dir(root.join("backup")).unwrap();
    fs::write(root.join(format!("file-{stamp}")), b"").unwrap();
    symlink(outside.path(), root.join(format!("link-{stamp}"))).unwrap();
    // An archive that somebody replaced by a link.
    let moved = yard.archive("moved", 90).await;
    fs::rename(root.join(&moved), outside.path().join(&moved)).unwrap();
    symlink(outside.path().join(&moved), root.join(&moved)).unwrap();
    let old = yard.archive("old", 90).await;
    yard.keep("1h").await;
    let (_, steps) = yard.settle(&mut None).await.unwrap();
    assert_eq!(steps[0], format!("remove the archive {old}"));
    assert_eq!(yard.audited().await, [old]);
    assert_eq!(yard.listing().len(), 5, "{:?}", yard.listing());
    assert!(outside.path().join("kept").exists());
    assert!(outside.path().join(moved).join("a/b/c").exists());
}

#[tokio::test]
async fn an_archive_that_cannot_be_listed_is_unknown_and_loses_nothing() {
    let mut yard = Yard::new().await;
    yard.keep("30d").await;
    let memory = MemoryDataDir::default();
    memory.on_call(|| Pace {
        fails: true,
        ..Pace::default()
    });
    yard.reconciler = boot(&yard.db, &yard.key, &yard.clock, Arc::new(memory.clone()));
    let pass = yard.pass(&mut None).await.unwrap();
    // Which the runtime shows as `Ready=Unknown`, since nothing was observed.
    let (class, reason, _) = pass.error.unwrap();
    assert_eq!(
        (class, reason),
        (ErrorClass::Transient, Reason::StorageFull)
    );
    assert_eq!((pass.acted, memory.writes()), (0, 0));
}

#[tokio::test]
async fn an_archive_whose_owner_cannot_be_read_stays() {
    let yard = Yard::new().await;
    let old = yard.archive("ada", 90).await;
    let other = yard.archive("bob", 60).await;
    yard.keep("30d").await;
    let owner = yard.dir.path().join("archive/.owners").join(&old);
    fs::write(owner, b"damaged").unwrap();
    let pass = yard.pass(&mut None).await.unwrap();
    let (class, reason, said) = pass.error.unwrap();
    assert_eq!((class, reason), (ErrorClass::Transient, Reason::Retrying));
    assert!(said.contains(&old), "{said}");
    // It is reported, and keeps no other.
    let (last, steps) = yard.settle(&mut None).await.unwrap();
    assert_eq!(steps[0], format!("remove the archive {other}"));
    let message = last.condition.unwrap().message;
    assert!(
        message.contains(&format!("{old} cannot be removed")),
        "{message}"
    );
    assert_eq!(yard.listing(), [old]);
}
