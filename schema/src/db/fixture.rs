//! Databases of tests: copies of a migrated template, whose commits do not wait for the disk.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Backend, Db, MIGRATOR, READERS, sqlite_pool_with, sqlite_url};
use crate::error::OpenError;

const SYNCHRONOUS: &str = "PRAGMA synchronous = OFF";

/// Digest of all migrations: templates of other releases have other names.
pub fn migrations_digest() -> String {
    let mut digest = Sha256::new();
    for migration in MIGRATOR.iter() {
        digest.update(&migration.checksum);
    }
    hex::encode(&digest.finalize()[..8])
}

/// Path of the SQLite database in a test's directory.
pub fn sqlite_path(directory: &Path) -> PathBuf {
    directory.join("agentyard.db")
}

/// Opens a new, migrated SQLite database in a directory.
///
/// # Errors
/// As [`Db::open`].
pub async fn open_sqlite(directory: &Path) -> Result<Db, OpenError> {
    sqlx::any::install_default_drivers();
    let failed = |error| OpenError::Prepare(sqlx::Error::Io(error));
    let path = sqlite_path(directory);
    let template = template().map_err(failed)?;
    if !template.exists() {
        make_template(&template, directory).await?;
    }
    std::fs::copy(&template, &path).map_err(failed)?;
    let url = sqlite_url(&path, "rw");
    let pool = async |connections| {
        let pool = sqlite_pool_with(&url, connections, SYNCHRONOUS).await;
        pool.map_err(OpenError::Prepare)
    };
    let (writer, readers) = (pool(1).await?, pool(READERS).await?);
    Ok(Db::of(Backend::Sqlite(path), writer, readers))
}

/// Path of the template: beside the test program, in a folder that only its builder writes.
fn template() -> std::io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    Ok(program.with_file_name(format!("template-{}.db", migrations_digest())))
}

/// Migrates a database in `directory` and moves it to `template`; processes that do so at once replace each other's.
async fn make_template(template: &Path, directory: &Path) -> Result<(), OpenError> {
    let failed = |error| OpenError::Prepare(sqlx::Error::Io(error));
    let made = directory.join("template.db");
    let db = Db::open(Backend::Sqlite(made.clone())).await?;
    db.close().await;
    let near = template.with_extension(format!("{}.new", uuid::Uuid::now_v7()));
    std::fs::copy(&made, &near).map_err(failed)?;
    std::fs::rename(&near, template).map_err(failed)?;
    std::fs::remove_file(made).map_err(failed)
}
