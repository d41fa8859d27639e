//! `agentyard archive delete`.

use std::io::{IsTerminal, Write};

use schema::audit::{About, Author, Writer};
use schema::error::DbError;
use schema::home::Archive;
use schema::ids::Kind;

use super::{DeleteArgs, archives, find, open_audit_writer};
use crate::cli::local::{Local, blocking, db_failed, home_failed};
use crate::cli::output::screen;
use crate::cli::{Failure, Result, failed};
use crate::settings::Settings;

/// Deletes an archive as the retention does, after its name was typed again, and records that.
///
/// # Errors
/// When there is no such archive, the name is not confirmed, or the removal fails; the server goes on with one that was begun.
pub async fn delete(settings: &Settings, local: &Local, args: &DeleteArgs) -> Result {
    let (archive, handle) = find(local, &args.archive).await?;
    let writer = open_audit_writer(settings, local)?;
    if !args.yes {
        confirm_deletion(handle.clone()).await?;
    }
    // Before anything is gone: there is no removal without its entry. On a full disk there is room once the archive is gone.
    let recorded = record_deletion(&writer, &archive, &handle).await;
    let is_full = matches!(recorded, Err(DbError::StorageFull(_)));
    if !is_full {
        recorded.map_err(db_failed)?;
    }
    remove_files(local, &archive).await?;
    if is_full {
        let recorded = record_deletion(&writer, &archive, &handle).await;
        recorded.map_err(|error| {
            Failure::Failed(format!(
                "archive {handle} is deleted, but the audit trail could not be written: {}",
                schema::error::chain(&error)
            ))
        })?;
    }
    screen::print(&format!("archive {handle} deleted\n"))
}

/// Asks for the name of the archive.
async fn confirm_deletion(handle: String) -> Result {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Usage(format!(
            "nothing was deleted: no terminal to confirm it; repeat the command with --yes to delete archive {handle}"
        )));
    }
    blocking(move || {
        let mut prompt = std::io::stderr();
        write!(prompt, "Archive {handle} will be deleted; its files are lost. Type its name to confirm: ").map_err(failed)?;
        prompt.flush().map_err(failed)?;
        let mut typed = String::new();
        std::io::stdin().read_line(&mut typed).map_err(failed)?;
        match typed.trim() == handle {
            true => Ok(()),
            false => Err(Failure::Failed(format!(
                "nothing was deleted: what was typed is not {handle}; repeat the command and type exactly that"
            ))),
        }
    })
    .await
}

async fn record_deletion(writer: &Writer, archive: &Archive, handle: &str) -> Result<(), DbError> {
    let author = Author::local(rustix::process::getuid().as_raw(), "archive_delete");
    let tx = writer.begin(author).await?;
    let about = About::object(Kind::Archive, &archive.directory);
    tx.commit(about.detail(handle)).await
}

/// Removes the files. If the retention was faster, that is no failure.
async fn remove_files(local: &Local, archive: &Archive) -> Result {
    let (homes, directory) = (local.homes.clone(), archive.directory.clone());
    let removed = blocking(move || homes.remove_archive(&directory).map_err(home_failed)).await;
    if removed.is_err() {
        let left = archives(local).await?;
        if !left
            .iter()
            .any(|other| other.directory == archive.directory)
        {
            return Ok(());
        }
    }
    removed
}
