//! The installation of this machine, used directly: for commands that no route has, since administrators have none into
//! users' files. It works beside a running server as well as without one: nothing is locked, created or migrated.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use schema::db::{Backend, Db};
use schema::error::{DbError, chain};
use schema::home::{HomeError, Homes};
use schema::meta;

use super::{Failure, Result, failed};
use crate::settings::Settings;

/// An installation on this machine.
pub struct Local {
    /// Its database.
    pub db: Db,
    /// Users' directories, and the archive.
    pub homes: Arc<Homes>,
}

impl Local {
    /// The one with these settings.
    ///
    /// # Errors
    /// When there is none, or it belongs to another user of this machine.
    pub async fn open(settings: &Settings) -> Result<Self> {
        let data_dir = settings.data_dir.clone();
        blocking(move || ours(&data_dir)).await?;
        if let Backend::Sqlite(path) = &settings.database
            && !path.exists()
        {
            return Err(Failure::Failed(format!(
                "no database at {}; set the data directory with --data-dir",
                path.display()
            )));
        }
        let db = Db::join(settings.database.clone()).await;
        let db = db.map_err(|error| match error.is_refusal() {
            true => Failure::Refused(chain(&error)),
            false => Failure::Unavailable(chain(&error)),
        })?;
        let mut connection = db.read().await.map_err(db_failed)?;
        let instance = meta::get(&mut connection, "instance_id").await;
        drop(connection);
        let instance = instance.map_err(db_failed)?.ok_or_else(|| {
            Failure::Failed("the database was never prepared; start the server once".to_owned())
        })?;
        let data_dir = settings.data_dir.clone();
        let homes =
            blocking(move || Homes::open(&data_dir, &instance).map_err(home_failed)).await?;
        Ok(Self {
            db,
            homes: Arc::new(homes),
        })
    }
}

/// Refuses a data directory that a server has not prepared, or that belongs to another user: this one could not work in it,
/// and what root made in it the server could not use.
fn ours(data_dir: &Path) -> Result {
    let archive = data_dir.join("archive");
    let found = std::fs::symlink_metadata(&archive).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::Failed(format!(
            "no archive at {}; run this command on the server's machine, and set its data directory with --data-dir",
            archive.display()
        )),
        ErrorKind::PermissionDenied => Failure::Failed(format!(
            "{}: permission denied; run this command with sudo, as the user that runs the server",
            archive.display()
        )),
        _ => Failure::Failed(format!("{}: {error}", archive.display())),
    })?;
    let (owner, us) = (found.uid(), rustix::process::geteuid().as_raw());
    match owner == us {
        true => Ok(()),
        false => Err(Failure::Refused(format!(
            "{} belongs to user {owner}, and this command runs as user {us}; run it as the user that runs the server (sudo -u '#{owner}' agentyard …)",
            archive.display()
        ))),
    }
}

/// Runs what blocks where it may.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}

/// The database failed.
pub fn db_failed(error: DbError) -> Failure {
    match &error {
        DbError::Unavailable(_) | DbError::StorageFull(_) | DbError::StorageFailed(..) => {
            Failure::Unavailable(chain(&error))
        }
        _ => Failure::Failed(chain(&error)),
    }
}

/// A directory failed.
pub fn home_failed(error: HomeError) -> Failure {
    match &error {
        HomeError::RefusedRoot { .. } => Failure::Refused(chain(&error)),
        _ => Failure::Failed(chain(&error)),
    }
}
