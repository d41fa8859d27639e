//! A disk that is full or fails: what was accepted stays, nothing is half done, and nobody has to restart
//! anything once it is well again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::support::{Yard, on_both_databases};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use schema::db::{Backend, Db, StorageFault};
use schema::error::{DbError, OpenError};
use schema::meta;

const PAGE: u64 = 4096;

/// A small file system of its own.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(size: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = format!("size={size},mode=0700");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(dir.path())
            .status()
            .unwrap();
        assert!(mount.success(), "{mount}");
        Self(dir)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }

    /// Leaves so many pages free.
    fn leave(&self, pages: u64) {
        let all = fs::write(self.filler(), vec![1; 64 << 20]);
        assert_eq!(all.unwrap_err().kind(), ErrorKind::StorageFull);
        let filler = OpenOptions::new().write(true).open(self.filler()).unwrap();
        let size = filler.metadata().unwrap().len();
        filler.set_len(size - pages * PAGE).unwrap();
    }

    fn free(&self) {
        fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let path = self.path();
        let _ = Command::new("umount").arg("-l").arg(path).status();
    }
}

async fn open(path: &Path) -> Db {
    let backend = Backend::Sqlite(path.join("agentyard.db"));
    Db::open(backend).await.unwrap()
}

/// A write of several statements, each of which makes the database larger.
async fn write(db: &Db, round: u64) -> Result<(), DbError> {
    let mut tx = db.begin().await?;
    for part in 0..4 {
        let value = part.to_string().repeat(10_000);
        meta::ensure(&mut tx, &format!("{round}.{part}"), &value).await?;
    }
    tx.commit().await
}

/// How many parts of each round are there.
async fn rounds(db: &Db) -> BTreeMap<u64, usize> {
    let mut connection = db.read().await.unwrap();
    let names: Vec<String> = sqlx::query_scalar("SELECT name FROM meta WHERE name LIKE '%.%'")
        .fetch_all(connection.raw())
        .await
        .unwrap();
    let mut rounds = BTreeMap::new();
    for name in names {
        let (round, _) = name.split_once('.').unwrap();
        *rounds.entry(round.parse().unwrap()).or_default() += 1;
    }
    rounds
}

/// The log begins at its beginning again, so that whatever is written takes space.
async fn fold(db: &Db) {
    let mut connection = db.read().await.unwrap();
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
        .execute(connection.raw())
        .await
        .unwrap();
}

#[tokio::test]
async fn file_that_another_program_has_locked_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path()).await;
    let other = Db::join(db.backend().clone()).await.unwrap();
    let locked = other.begin().await.unwrap();
    let told = async {
        while db.storage_fault() != Some(StorageFault::Locked) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(other.storage_fault(), None);
        drop(locked);
    };
    let both = async { tokio::join!(write(&db, 1), told) };
    let (written, ()) = tokio::time::timeout(Duration::from_secs(10), both)
        .await
        .unwrap();
    written.unwrap();
    assert_eq!(db.storage_fault(), None);
}

#[tokio::test]
async fn engine_a_disk_that_is_full_at_any_statement_takes_the_whole_write_or_nothing() {
    let disk = SmallDisk::mount("16m");
    let db = open(disk.path()).await;
    let (mut accepted, mut refused) = (Vec::new(), 0);
    for pages in 0..40 {
        fold(&db).await;
        disk.leave(pages);
        match write(&db, pages).await {
            Ok(()) => accepted.push(pages),
            Err(DbError::StorageFull(_)) => {
                refused += 1;
                assert_eq!(db.storage_fault(), Some(StorageFault::Full));
                // A write that has failed holds up no other that finds room, and no read.
                let again = write(&db, pages).await;
                assert!(matches!(again, Err(DbError::StorageFull(_))), "{again:?}");
            }
            Err(error) => panic!("{pages} pages free: {error:?}"),
        }
        let whole = accepted.iter().map(|round| (*round, 4)).collect();
        assert_eq!(rounds(&db).await, whole, "{pages} pages free");
        disk.free();
        write(&db, 1000 + pages).await.expect("there is room again");
        accepted.push(1000 + pages);
        assert_eq!(db.storage_fault(), None);
    }
    assert!(refused >= 10, "{refused}");
    let whole: BTreeMap<u64, usize> = accepted.iter().map(|round| (*round, 4)).collect();
    db.close().await;
    let db = open(disk.path()).await;
    assert_eq!(rounds(&db).await, whole);
    assert!(whole.keys().any(|round| *round < 1000), "the last ones fit");
    db.close().await;
}

#[tokio::test]
async fn engine_a_start_on_a_full_disk_asks_for_no_backup() {
    let disk = SmallDisk::mount("16m");
    let db = open(disk.path()).await;
    write(&db, 1).await.unwrap();
    db.close().await;
    for path in ["agentyard.db", "new.db"] {
        disk.leave(0);
        let opened = Db::open(Backend::Sqlite(disk.path().join(path))).await;
        match opened {
            Err(error @ OpenError::Prepare(_)) => assert!(!error.is_refusal(), "{error}"),
            Err(error) => panic!("{path}: {error:?}"),
            Ok(_) => panic!("{path}: there was room"),
        }
        disk.free();
    }
    let db = open(disk.path()).await;
    assert_eq!(rounds(&db).await, BTreeMap::from([(1, 4)]));
    db.close().await;
}

#[tokio::test]
async fn engine_a_disk_that_fills_up_while_the_log_is_folded_loses_nothing() {
    let disk = SmallDisk::mount("14m");
    fs::write(disk.filler(), vec![1; 2 << 20]).unwrap();
    let db = open(disk.path()).await;
    let mut accepted = BTreeMap::new();
    let full = loop {
        let round = accepted.len() as u64;
        match write(&db, round).await {
            Ok(()) => accepted.insert(round, 4),
            Err(error) => break error,
        };
        assert!(accepted.len() < 1000, "it never is full");
    };
    assert!(matches!(full, DbError::StorageFull(_)), "{full:?}");
    let log = fs::metadata(disk.path().join("agentyard.db-wal")).unwrap();
    assert!(log.len() > 1000 * PAGE, "no folding was tried: {log:?}");
    assert_eq!(rounds(&db).await, accepted);
    disk.free();
    for round in 5000..5020 {
        write(&db, round).await.expect("there is room again");
        accepted.insert(round, 4);
    }
    db.close().await;
    let db = open(disk.path()).await;
    assert_eq!(rounds(&db).await, accepted);
    db.close().await;
}

/// No file of this process may become larger than this.
fn limit_files(to: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    let current = to.or(maximum);
    setrlimit(Resource::Fsize, Rlimit { current, maximum }).unwrap();
}

#[tokio::test]
async fn a_disk_that_fails_is_said_to_and_works_again_without_a_restart() {
    // Without anybody who listens, the signal that comes with the error ends the process.
    let kind = tokio::signal::unix::SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    let _heard = tokio::signal::unix::signal(kind).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path()).await;
    write(&db, 0).await.unwrap();
    let mut accepted = BTreeMap::from([(0, 4)]);
    let mut refused = 0;
    for step in 0..20 {
        fold(&db).await;
        limit_files(Some(step * 2 * PAGE));
        let written = write(&db, 1 + step).await;
        let seen = rounds(&db).await;
        limit_files(None);
        match written {
            Ok(()) => {
                accepted.insert(1 + step, 4);
            }
            Err(DbError::StorageFailed(what, _)) => {
                refused += 1;
                assert_eq!(db.storage_fault(), Some(StorageFault::Failed(what)));
            }
            Err(error) => panic!("{step}: {error:?}"),
        }
        assert_eq!(seen, accepted, "{step}");
        write(&db, 1000 + step).await.expect("it works again");
        accepted.insert(1000 + step, 4);
        assert_eq!(db.storage_fault(), None);
    }
    assert!(refused >= 5, "{refused}");
    db.close().await;
    let db = open(dir.path()).await;
    assert_eq!(rounds(&db).await, accepted);
    db.close().await;
}

/// A write that is cut off in the midst of a statement.
async fn cut_off_in_the_midst_of_a_statement(yard: Yard) {
    let db = &yard.db;
    for polls in [Duration::ZERO, Duration::from_millis(1)] {
        let mut tx = db.begin().await.unwrap();
        meta::ensure(&mut tx, "first", "1").await.unwrap();
        let cut = tokio::time::timeout(polls, async {
            for n in 0..10_000 {
                meta::ensure(&mut tx, &format!("more.{n}"), "1")
                    .await
                    .unwrap();
            }
        });
        assert!(cut.await.is_err());
        // Nobody knows what has become of it, so it can only be given up.
        let committed = tx.commit().await;
        assert!(
            matches!(committed, Err(DbError::Unavailable(_))),
            "{committed:?}"
        );
        let mut tx = db.begin().await.unwrap();
        assert_eq!(meta::get(&mut tx, "first").await.unwrap(), None);
        assert_eq!(meta::get(&mut tx, "more.0").await.unwrap(), None);
        meta::ensure(&mut tx, "next", "1").await.unwrap();
        tx.commit().await.unwrap();
    }
}

on_both_databases!(cut_off_in_the_midst_of_a_statement);

/// A replica that stands still (SIGSTOP, a machine that is suspended) in the middle of a write, with others of it waiting.
#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::disallowed_methods)] // They end before the test does.
async fn on_postgres_a_replica_that_stands_still_holds_up_nobody_for_long() {
    let yard = crate::support::postgres().await;
    let other = Db::open(yard.backend.clone()).await.unwrap();
    let mut held = other.begin().await.unwrap();
    meta::ensure(&mut held, "held", "1").await.unwrap();
    let limit = Duration::from_secs(5);
    let writes = (0..20).map(|n| {
        let db = yard.db.clone();
        tokio::spawn(tokio::time::timeout(limit, async move {
            let mut tx = db.begin().await?;
            // Waits for the row that is held.
            meta::ensure(&mut tx, "held", "2").await?;
            meta::ensure(&mut tx, &format!("write.{n}"), "1").await?;
            tx.commit().await
        }))
    });
    let writes: Vec<_> = writes.collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    for _ in 0..20 {
        let read = tokio::time::timeout(Duration::from_secs(1), yard.db.ping()).await;
        read.expect("no reader waits for a writer").unwrap();
    }
    let mut refused = 0;
    for write in writes {
        let ended = write.await.unwrap();
        match ended.expect("no write waits for five seconds") {
            // Its turn came when the other's session had been ended.
            Ok(()) => {}
            Err(DbError::Unavailable(_)) => refused += 1,
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(refused >= 5, "{refused}");
    // Its session is ended, and nothing of it is left.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut tx = yard.db.begin().await.unwrap();
    assert_ne!(
        meta::get(&mut tx, "held").await.unwrap().as_deref(),
        Some("1")
    );
    meta::ensure(&mut tx, "held", "2").await.unwrap();
    tx.commit().await.unwrap();
    assert!(held.commit().await.is_err());
    yard.db.close().await;
}
