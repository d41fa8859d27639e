//! Backups of this installation: first the database, at one moment, then the files.

pub mod postgres;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schema::adapter;
use schema::backup::{
    BackupError, DatabaseHead, Directory, Keys, Made, Making, Origin, Progress, SettingsFiles,
};
use schema::clock::{Clock, SystemClock};
use schema::db::{Backend, Db};
use schema::error::DbError;
use schema::secrets::{MASTER_KEY_FILE, MasterKey};
use schema::under_way::track_call;
use tokio::task::{JoinError, spawn_blocking};

use self::postgres::ToolError;

/// Names of the copy and of the dump.
const SQLITE_FILE: &str = "database.sqlite";
const POSTGRES_FILE: &str = "database.pgdump";

/// The installation that is backed up.
#[derive(Debug, Clone)]
pub struct Installation {
    /// The data directory.
    pub data_dir: PathBuf,
    /// The database.
    pub db: Db,
    /// Identity of the installation.
    pub instance: String,
    /// Keys of its backups.
    pub keys: Arc<Keys>,
}

/// Where a backup goes.
pub enum Destination {
    /// A folder of a directory of backups, held open.
    Folder(Directory),
    /// A tar stream.
    Stream(Box<dyn Write + Send>),
}

/// Reason for which there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// Files could not be copied.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The database could not be copied.
    #[error("the database could not be copied")]
    Db(#[from] DbError),
    /// The tool of the database server failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// A directory for temporary files could not be made.
    #[error("no temporary directory could be made")]
    Scratch(#[source] std::io::Error),
    /// The work has crashed.
    #[error("the backup has crashed")]
    Crashed(#[from] JoinError),
}

impl Installation {
    /// The one in this data directory.
    pub fn new(data_dir: &Path, db: &Db, instance: &str, key: &MasterKey) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
            db: db.clone(),
            instance: instance.to_owned(),
            keys: Arc::new(Keys::new(key)),
        }
    }

    /// Makes a backup while the service runs. `watch` is called often, and ends the work by returning false; then nothing is
    /// left that looks like a backup.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub async fn back_up(
        &self,
        destination: Destination,
        mut watch: impl FnMut(&Progress) -> bool + Send + 'static,
    ) -> Result<Made, CreateError> {
        let now = SystemClock.now();
        let (instance, keys) = (self.instance.clone(), Arc::clone(&self.keys));
        let mut connection = self.db.read().await?;
        let named = adapter::store::settings_files(&mut connection).await?;
        drop(connection);
        // Holds what a stream needs on a disk, for as long as it is written.
        let scratch = match &destination {
            Destination::Folder(_) => None,
            Destination::Stream(_) => Some(tempfile::tempdir().map_err(CreateError::Scratch)?),
        };
        let place = scratch.as_ref().map(|scratch| scratch.path().to_owned());
        let making = spawn_blocking(move || match (destination, place) {
            (Destination::Stream(out), Some(place)) => Ok(Making::in_stream(out, &place, now)),
            (Destination::Stream(out), None) => Ok(Making::in_stream(out, Path::new("."), now)),
            (Destination::Folder(directory), _) => {
                Making::in_folder(directory, &instance, &keys, now)
            }
        });
        let making = making.await??;
        let backend = self.db.backend();
        let file = match backend {
            Backend::Sqlite(_) => SQLITE_FILE,
            Backend::Postgres(_) => POSTGRES_FILE,
        };
        let copy = making.database_dir().join(file);
        let schema = self.db.schema_version().await?;
        match backend {
            Backend::Sqlite(_) => self.db.copy_to(&copy).await?,
            Backend::Postgres(url) => postgres::dump(url, &copy).await?,
        }
        let origin = Origin {
            data_dir: self.data_dir.clone(),
            instance: self.instance.clone(),
            database: DatabaseHead {
                kind: backend.kind().to_owned(),
                schema,
                file: file.to_owned(),
            },
            key_file: self.data_dir.join(MASTER_KEY_FILE).display().to_string(),
            keys: Arc::clone(&self.keys),
            settings: SettingsFiles::new(named),
            release: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let finish = move || making.finish(&origin, || SystemClock.now(), &mut watch);
        let made = spawn_blocking(track_call("a backup", finish)).await??;
        drop(scratch);
        Ok(made)
    }
}
