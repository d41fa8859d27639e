//! `agentyard init`.

use std::path::Path;
use std::sync::Arc;

use reconcilers::runtime::file_lock;
use reconcilers::runtime::leader::Leadership;
use schema::clock::SystemClock;
use schema::db::Backend;

use super::{Failure, Result};
use crate::prepare::{self, First};
use crate::settings::{LogFormat, Settings};

/// Prepares the data directory, unless a server that runs has done so.
///
/// # Errors
/// When it cannot be prepared.
pub async fn init(settings: Settings) -> Result {
    prepare::data_dir(&settings)?;
    let _lock = lock(&settings)?;
    let prepared = prepare::prepare(&settings).await?;
    match prepared.first {
        First::Random(_) => prepare::say_password(&prepared, LogFormat::Text),
        First::Given => {
            prepare::say("initialised; the first superadmin has the password of the file")
        }
        First::Existing => prepare::say("already initialised; no changes"),
    }
    prepared.db.close().await;
    Ok(())
}

/// Keeps other processes away while it lives.
pub struct Lock {
    /// From the data directory; it also says who leads.
    pub data_dir: Leadership,
    /// From the database file's own directory, when that is another.
    pub database: Option<Leadership>,
}

/// Makes sure that no other process uses the data directory or the database file. On PostgreSQL
/// several may, and a lease decides who leads.
///
/// # Errors
/// When one does.
pub fn lock(settings: &Settings) -> Result<Option<Lock>> {
    let Backend::Sqlite(path) = &settings.database else {
        return Ok(None);
    };
    let acquire = |directory: &Path| {
        file_lock::acquire(directory, Arc::new(SystemClock))
            .map_err(|error| Failure::Unavailable(error.to_string()))
    };
    let data_dir = acquire(&settings.data_dir)?;
    let elsewhere = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty() && *parent != settings.data_dir);
    let database = elsewhere.map(acquire).transpose()?;
    Ok(Some(Lock { data_dir, database }))
}
