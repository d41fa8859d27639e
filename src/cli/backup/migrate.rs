//! `agentyard migrate-database`: from SQLite to PostgreSQL and back, while no server runs.

use clap::Args;
use reconcilers::runtime::file_lock::{self, LockError};
use schema::clock::SystemClock;
use schema::db::{Backend, Db};
use schema::error::{OpenError, chain};
use schema::lease;
use schema::transfer::{self, TransferError};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use url::Url;

use crate::cli::local::{blocking, db_failed};
use crate::cli::output::cell::Cell;
use crate::cli::output::screen;
use crate::cli::output::table::Table;
use crate::cli::{Failure, Result, failed};
use crate::settings::Settings;

/// Longest address that is read.
const LONGEST_URL: u64 = 8192;

/// Where to move the database.
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// Empty target database: postgres://… or sqlite:PATH; - reads the URL from standard input, required if it has a password
    #[arg(value_name = "URL")]
    url: String,
}

/// Runs the command.
///
/// # Errors
/// When a server runs, the target is not empty, or a table differs afterwards.
pub async fn migrate(settings: Settings, args: MigrateArgs) -> Result {
    let url = read_url(args.url).await?;
    let to = Backend::parse(&url).map_err(|error| Failure::Usage(error.to_string()))?;
    let from = settings.database.clone();
    if let Backend::Sqlite(file) = &from
        && !file.exists()
    {
        return Err(Failure::Failed(format!(
            "no database at {}; set the data directory with --data-dir",
            file.display()
        )));
    }
    let mut locks = vec![lock(&settings.data_dir)?];
    for backend in [&from, &to] {
        if let Backend::Sqlite(file) = backend
            && let Some(parent) = file
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty())
            && *parent != settings.data_dir
        {
            locks.push(lock(parent)?);
        }
    }
    refuse_served(&from).await?;
    let moved = transfer::transfer(&from, &to, |copied| {
        screen::note(&format!("{}: {} rows", copied.table, copied.rows));
    });
    let moved = moved.await.map_err(not_moved)?;
    // A server that was started meanwhile has changed what was copied.
    refuse_served(&from).await?;
    drop(locks);
    let rows: Vec<Vec<Cell>> = moved
        .iter()
        .map(|copied| {
            let digest = copied.digest.get(..16).unwrap_or(&copied.digest);
            [&*copied.table, &*copied.rows.to_string(), digest]
                .map(Cell::new)
                .to_vec()
        })
        .collect();
    let table = Table::new(vec!["TABLE", "ROWS", "SHA-256"], true).rows(&rows);
    screen::print(&table)?;
    screen::print(&format!(
        "moved to {}: the digests of both databases are equal. Now set --database-url (AGENTYARD_DATABASE_URL, or database-url in the settings file) to the new \
         database and start the server. {} is unchanged; remove it once the server runs\n",
        to.place(),
        from.place()
    ))
}

/// A password among the arguments could be read by every user of the machine.
async fn read_url(given: String) -> Result<String> {
    if given != "-" {
        let has_password = |url: Url| {
            url.password().is_some() || url.query_pairs().any(|(name, _)| name == "password")
        };
        return match Url::parse(&given).is_ok_and(has_password) {
            true => Err(Failure::Usage(
                "other users of this machine can see a password on the command line; use - and give the URL on standard input".to_owned(),
            )),
            false => Ok(given),
        };
    }
    blocking(|| {
        let mut text = String::new();
        let mut from = std::io::stdin().take(LONGEST_URL);
        from.read_to_string(&mut text).map_err(failed)?;
        Ok(text.trim().to_owned())
    })
    .await
}

fn lock(directory: &Path) -> Result<reconcilers::runtime::leader::Leadership> {
    file_lock::acquire(directory, Arc::new(SystemClock)).map_err(|error| match error {
        LockError::InUse(_) => {
            Failure::Unavailable(format!("{error}; stop the server, then repeat the command"))
        }
        error => Failure::Failed(chain(&error)),
    })
}

/// Refuses a PostgreSQL database whose lease a server holds.
async fn refuse_served(from: &Backend) -> Result {
    if !matches!(from, Backend::Postgres(_)) {
        return Ok(());
    }
    let db = Db::join(from.clone()).await.map_err(not_opened)?;
    let mut connection = db.read().await.map_err(db_failed)?;
    let holder = lease::holder(&mut connection).await.map_err(db_failed)?;
    drop(connection);
    db.close().await;
    match holder {
        None => Ok(()),
        Some(holder) => Err(Failure::Unavailable(format!(
            "the server {holder} uses the database; stop all servers, then repeat the command"
        ))),
    }
}

fn not_opened(error: OpenError) -> Failure {
    match error.is_refusal() {
        true => Failure::Refused(chain(&error)),
        false => Failure::Unavailable(chain(&error)),
    }
}

fn not_moved(error: TransferError) -> Failure {
    match error {
        TransferError::Open(error) => not_opened(error),
        TransferError::NotEmpty(_) => Failure::Refused(error.to_string()),
        TransferError::SameKind(_) => Failure::Usage(error.to_string()),
        error => Failure::Failed(format!("{}; nothing was moved", chain(&error))),
    }
}
