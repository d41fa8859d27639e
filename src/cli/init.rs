//! `agentyard init`.

use schema::clock::SystemClock;
use schema::db::Backend;
use std::sync::Arc;

use super::Failure;
use crate::prepare;
use crate::settings::Settings;

/// Prepares the data directory, unless a server that runs has done so.
///
/// # Errors
/// When it cannot be prepared.
pub async fn init(settings: Settings) -> Result<(), Failure> {
    prepare::data_dir(&settings)?;
    let _lock = match &settings.database {
        Backend::Sqlite(_) => Some(lock(&settings)?),
        Backend::Postgres(_) => None,
    };
    let prepared = prepare::prepare(&settings).await?;
    match prepared.password {
        Some(_) => prepare::say_password(&prepared),
        None => prepare::say("already initialised; nothing was changed"),
    }
    prepared.db.close().await;
    Ok(())
}

/// Makes sure that no other process uses the data directory.
///
/// # Errors
/// When one does.
pub fn lock(settings: &Settings) -> Result<reconcilers::runtime::leader::Leadership, Failure> {
    reconcilers::runtime::file_lock::acquire(&settings.data_dir, Arc::new(SystemClock))
        .map_err(|error| Failure::Unavailable(error.to_string()))
}
