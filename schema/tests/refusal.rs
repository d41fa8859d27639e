//! L3: a database that cannot be read, or is newer than this release, is refused and left as it is.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use schema::db::{Backend, Db};
use schema::error::OpenError;

async fn open(path: &Path) -> Result<Db, OpenError> {
    Db::open(Backend::Sqlite(path.to_owned())).await
}

/// Writes a file as the service's own.
fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

async fn refused_untouched(path: &Path) -> OpenError {
    let before = fs::read(path).unwrap();
    let error = open(path).await.unwrap_err();
    assert!(error.is_refusal(), "{error:?}");
    assert_eq!(fs::read(path).unwrap(), before, "the file was changed");
    let beside: Vec<_> = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(beside, [path.file_name().unwrap()], "nothing else was made");
    error
}

async fn healthy(path: &Path) {
    let db = open(path).await.unwrap();
    db.ping().await.unwrap();
    db.close().await;
}

#[tokio::test]
async fn l3_garbage_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agentyard.db");
    write(
        &path,
        b"this is not a database, and nobody may replace it".repeat(100),
    );
    let error = refused_untouched(&path).await;
    assert!(matches!(error, OpenError::Unreadable { .. }), "{error:?}");
}

#[tokio::test]
async fn l3_a_damaged_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agentyard.db");
    healthy(&path).await;
    let mut bytes = fs::read(&path).unwrap();
    let half = bytes.len() / 2;
    bytes[4096..half].fill(0xAA);
    fs::write(&path, &bytes).unwrap();
    let error = refused_untouched(&path).await;
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
    let said = error.to_string();
    let begin = format!("the database file {} is damaged: ", path.display());
    assert!(
        said.starts_with(&begin) && said.lines().count() == 1,
        "{said}"
    );
    let backend = Backend::Sqlite(path.clone());
    let checked = Db::check_file(&backend).await.unwrap_err();
    assert!(matches!(checked, OpenError::Damaged { .. }), "{checked:?}");

    healthy(&dir.path().join("other.db")).await;
    fs::remove_file(&path).unwrap();
    fs::rename(dir.path().join("other.db"), &path).unwrap();
    let whole = fs::read(&path).unwrap();
    write(&path, &whole[..whole.len() / 3]);
    refused_untouched(&path).await;
}

#[tokio::test]
async fn l3_a_newer_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agentyard.db");
    healthy(&path).await;
    let db = open(&path).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (9999, 'future', 1, x'00', 0)",
    )
    .execute(tx.raw())
    .await
    .unwrap();
    tx.commit().await.unwrap();
    db.close().await;
    let error = refused_untouched(&path).await;
    assert!(matches!(error, OpenError::Newer { .. }), "{error:?}");
    assert!(error.to_string().contains("9999"));
}

#[tokio::test]
async fn l3_another_programs_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agentyard.db");
    healthy(&path).await;
    let db = open(&path).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    sqlx::query("DROP TABLE _sqlx_migrations")
        .execute(tx.raw())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    db.close().await;
    refused_untouched(&path).await;
}

/// Numbers of the pages that a write-ahead log holds: a header of 32 bytes, then frames of 24 bytes
/// and a page each.
fn logged_pages(log: &[u8]) -> Vec<usize> {
    let size = u32::from_be_bytes(log[8..12].try_into().unwrap()) as usize;
    let frames = log[32..].chunks_exact(24 + size);
    frames
        .map(|frame| u32::from_be_bytes(frame[..4].try_into().unwrap()) as usize)
        .collect()
}

#[tokio::test]
async fn l3_a_database_whose_process_was_killed_while_it_emptied_the_log_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agentyard.db");
    healthy(&path).await;
    let db = open(&path).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let (id, _) = schema::meta::ensure_instance_id(&mut tx).await.unwrap();
    for number in 0..500 {
        let value = "x".repeat(200);
        schema::meta::ensure(&mut tx, &format!("key{number}"), &value)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
    // The files as a kill leaves them, with one of many pages half written.
    let copy = tempfile::tempdir().unwrap();
    let copied = copy.path().join("agentyard.db");
    let mut bytes = fs::read(&path).unwrap();
    let log = fs::read(dir.path().join("agentyard.db-wal")).unwrap();
    db.close().await;
    let page = u16::from_be_bytes([bytes[16], bytes[17]]) as usize;
    let torn = logged_pages(&log)
        .into_iter()
        .find(|&number| number > 1 && number * page <= bytes.len())
        .unwrap();
    bytes[(torn - 1) * page..torn * page - 100].fill(0xAA);
    write(&copied, &bytes);
    refused_untouched(&copied).await;

    write(&copy.path().join("agentyard.db-wal"), &log);
    let db = open(&copied).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let again = schema::meta::ensure_instance_id(&mut tx).await.unwrap();
    assert_eq!(again, (id, false));
}

#[tokio::test]
async fn a_new_database_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("agentyard.db")).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    schema::meta::ensure_instance_id(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    for entry in fs::read_dir(dir.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{entry:?}: {mode:o}");
    }
}

#[tokio::test]
async fn a_directory_is_refused_and_a_reopened_database_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    assert!(open(dir.path()).await.unwrap_err().is_refusal());
    let path = dir.path().join("with ? and # and %20.db");
    let db = open(&path).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let (id, _) = schema::meta::ensure_instance_id(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    db.close().await;
    assert!(path.is_file(), "the file is where it was asked for");
    let db = open(&path).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let again = schema::meta::ensure_instance_id(&mut tx).await.unwrap();
    assert_eq!(again, (id, false));
}

#[test]
fn urls_are_understood_or_refused_without_showing_passwords() {
    assert!(matches!(
        Backend::parse("sqlite:/x/y.db"),
        Ok(Backend::Sqlite(_))
    ));
    assert!(
        matches!(Backend::parse("sqlite:///x/y.db"), Ok(Backend::Sqlite(p)) if p == Path::new("/x/y.db"))
    );
    for bad in [
        "",
        "mysql://u:secret@h/d",
        "sqlite:",
        "sqlite::memory:",
        "/x/y.db",
    ] {
        let error = Backend::parse(bad).unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
    let place = Backend::parse("postgres://u:secret@h/d").unwrap().place();
    assert_eq!(place, "postgres://h/d");
}

/// Refused because of this file, for this reason, and nothing came of it.
async fn refused_as_not_ours(path: &Path, file: &Path, reason: &str) {
    let error = open(path).await.unwrap_err();
    assert!(error.is_refusal(), "{error:?}");
    let said = error.to_string();
    assert!(
        said.starts_with(&format!("{} is not used", file.display())),
        "{said}"
    );
    assert!(said.contains(reason), "{said}");
}

#[tokio::test]
async fn planted_links_are_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agentyard.db");
    let elsewhere = dir.path().join("elsewhere");
    symlink(&elsewhere, &path).unwrap();
    refused_as_not_ours(&path, &path, "symbolic link").await;
    assert!(!elsewhere.exists(), "nothing was made where it leads");
    healthy(&elsewhere).await;
    let before = fs::read(&elsewhere).unwrap();
    refused_as_not_ours(&path, &path, "symbolic link").await;
    assert_eq!(fs::read(&elsewhere).unwrap(), before);
    fs::remove_file(&path).unwrap();
    healthy(&path).await;
    for suffix in ["-wal", "-shm", "-journal"] {
        let beside = dir.path().join(format!("agentyard.db{suffix}"));
        symlink(&elsewhere, &beside).unwrap();
        refused_as_not_ours(&path, &beside, "symbolic link").await;
        fs::remove_file(&beside).unwrap();
    }
    healthy(&path).await;
}

#[tokio::test]
async fn what_others_may_read_or_own_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agentyard.db");
    healthy(&path).await;
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    refused_as_not_ours(&path, &path, "its mode is 0644").await;
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    chown(&path, Some(12_345), None).expect("this test gives a file away: run it as root");
    refused_as_not_ours(&path, &path, "it belongs to user 12345").await;
}

async fn join(path: &Path) -> Result<Db, OpenError> {
    Db::join(Backend::Sqlite(path.to_owned())).await
}

#[tokio::test]
async fn whoever_joins_makes_and_migrates_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agentyard.db");
    let missing = join(&path).await.unwrap_err();
    assert!(missing.is_refusal(), "{missing:?}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    write(&path, b"this is not a database".repeat(100));
    let before = fs::read(&path).unwrap();
    let garbage = join(&path).await.unwrap_err();
    assert!(garbage.is_refusal(), "{garbage:?}");
    assert_eq!(fs::read(&path).unwrap(), before);
    fs::remove_file(&path).unwrap();

    for (change, is_older) in [
        (
            "DELETE FROM _sqlx_migrations WHERE version = (SELECT max(version) FROM _sqlx_migrations)",
            true,
        ),
        (
            "UPDATE _sqlx_migrations SET version = 9999 WHERE version = (SELECT max(version) FROM _sqlx_migrations)",
            false,
        ),
    ] {
        let db = open(&path).await.unwrap();
        let mut tx = db.begin().await.unwrap();
        let changed = sqlx::query(change).execute(tx.raw()).await;
        changed.unwrap();
        tx.commit().await.unwrap();
        db.close().await;
        let refused = join(&path).await.unwrap_err();
        assert!(refused.is_refusal(), "{refused:?}");
        let older = matches!(refused, OpenError::Older { .. });
        assert_eq!(older, is_older, "{refused}");
        for file in fs::read_dir(dir.path()).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
    }
}

#[tokio::test]
async fn whoever_joins_reads_and_writes_beside_the_service() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agentyard.db");
    let service = open(&path).await.unwrap();
    for _ in 0..2 {
        let joined = join(&path).await.unwrap();
        let mut tx = joined.begin().await.unwrap();
        let (id, fresh) = schema::meta::ensure_instance_id(&mut tx).await.unwrap();
        tx.commit().await.unwrap();
        joined.close().await;
        let mut connection = service.read().await.unwrap();
        let seen = schema::meta::get(&mut connection, "instance_id").await;
        assert_eq!(seen.unwrap(), Some(id), "{fresh}");
    }
    service.close().await;
    // And without it.
    join(&path).await.unwrap().close().await;
    healthy(&path).await;
}
