//! `agentyard archive restore`.

use schema::adapter::store as adapters;
use schema::audit::{About, Author, Writer};
use schema::clock::{Clock, SystemClock};
use schema::home::{Archive, Owner, Restored};
use schema::ids::UserName;
use schema::usage;
use schema::user::{self, Role, User};

use super::{find, not_restored, open_audit_writer};
use crate::cli::local::{Local, blocking, db_failed, home_failed};
use crate::cli::output::cell::counted;
use crate::cli::output::clean::clean;
use crate::cli::output::screen;
use crate::cli::{Failure, Result, failed};
use crate::settings::Settings;

/// So many of the entries that were left out are named.
const NAMED: usize = 10;

/// Copies the workspace of an archive into that of a user, and records it.
///
/// # Errors
/// When there is no such archive or user, or the copy fails; then the workspace is as it was.
pub async fn restore(settings: &Settings, local: &Local, archive: &str, to: &str) -> Result {
    let name: UserName = to.parse().map_err(failed)?;
    let writer = open_audit_writer(settings, local)?;
    let account = target(local, &name).await?;
    let (archive, handle) = find(local, archive).await?;
    let restored = copy(local, &writer, (archive, &handle), &account).await?;
    screen::print(&(restored + "\n"))
}

/// Copies the workspace of an archive into that of a user, records it, and describes it.
///
/// # Errors
/// As [`restore`].
pub(super) async fn copy(
    local: &Local,
    writer: &Writer,
    (archive, handle): (Archive, &str),
    account: &User,
) -> Result<String> {
    ensure_home(local, account).await?;
    let (homes, name, uid) = (
        local.homes.clone(),
        account.name.clone(),
        account.uid.clone(),
    );
    let shown = handle.to_owned();
    let restored = blocking(move || {
        let restored = homes.restore(&archive, &name, &uid);
        restored.map_err(|error| not_restored(error, &shown, name.as_str()))
    });
    let restored = restored.await?;
    let stays = record(writer, account, handle, &restored).await;
    let name = &account.name;
    let directory = &restored.directory;
    let stays = stays.map_err(|failure| {
        let text = format!(
            "restored to {directory} in {name}'s workspace, but the audit trail could not be written: {failure}"
        );
        match failure {
            Failure::Unavailable(_) => Failure::Unavailable(text),
            _ => Failure::Failed(text),
        }
    })?;
    if !stays {
        return Err(Failure::Failed(format!(
            "{name} was deleted meanwhile; what was restored is archived with {name}'s directory"
        )));
    }
    Ok(said(&restored, name))
}

/// The user who gets the files.
pub(in crate::cli) async fn target(local: &Local, name: &UserName) -> Result<User> {
    let mut connection = local.db.read().await.map_err(db_failed)?;
    let account = user::find(&mut connection, name).await.map_err(db_failed)?;
    let account = account
        .ok_or_else(|| Failure::NotFound(format!("user {name} not found; create it first")))?;
    if account.role != Role::User {
        return Err(Failure::Failed(format!(
            "{name} is a superadmin and has no workspace; name an ordinary user"
        )));
    }
    if account.deleted_at.is_some() {
        return Err(being_deleted(name));
    }
    let row = user::row(&mut connection, &account.uid).await;
    let previous = row.map_err(db_failed)?.and_then(|row| row.previous_name);
    match previous {
        None => Ok(account),
        Some(previous) => Err(Failure::Failed(format!(
            "the directory of {name} is still called {previous}, as the user was before; try again once `agentyard describe user/{name}` shows Ready"
        ))),
    }
}

fn being_deleted(name: &UserName) -> Failure {
    Failure::Failed(format!("user {name} is being deleted; name another user"))
}

/// Makes the user's directory if it is missing, as the server would.
pub(in crate::cli) async fn ensure_home(local: &Local, account: &User) -> Result {
    let (homes, name, uid) = (
        local.homes.clone(),
        account.name.clone(),
        account.uid.clone(),
    );
    let is_there = blocking(move || {
        let home = homes.open_existing(&name, &uid).map_err(home_failed)?;
        // What is missing in it is made; whom the rest belongs to is the server's to say.
        let made = home.map(|_| homes.ensure(&name, &uid, None)).transpose();
        made.map(|made| made.is_some()).map_err(home_failed)
    });
    if is_there.await? {
        return Ok(());
    }
    let owner = owner(local).await?;
    let (homes, name, uid) = (
        local.homes.clone(),
        account.name.clone(),
        account.uid.clone(),
    );
    let made = blocking(move || homes.ensure(&name, &uid, owner).map_err(home_failed));
    made.await?;
    // Nobody would clear the place of an account that was deleted meanwhile.
    let mut connection = local.db.read().await.map_err(db_failed)?;
    let row = user::row(&mut connection, &account.uid).await;
    let row = row.map_err(db_failed)?;
    let (deleted_at, batch) = match row {
        Some(row) => match row.deleted_at {
            None => return Ok(()),
            Some(at) => (at, row.archive_batch),
        },
        None => (SystemClock.now(), None),
    };
    let (homes, name, uid) = (
        local.homes.clone(),
        account.name.clone(),
        account.uid.clone(),
    );
    let archived = blocking(move || {
        let archived = homes.archive(&name, &uid, deleted_at, batch.as_ref(), None);
        archived.map_err(home_failed)
    });
    archived.await?;
    Err(being_deleted(&account.name))
}

/// To whom a new directory belongs, when that is not the server.
async fn owner(local: &Local) -> Result<Option<Owner>> {
    let mut connection = local.db.read().await.map_err(db_failed)?;
    let (_, adapter) = adapters::active(&mut connection).await.map_err(db_failed)?;
    let us = (
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    Ok(adapter.index.agent.home_owner(us))
}

/// Leaves an entry in the audit trail; says whether the user is still there.
async fn record(
    writer: &Writer,
    account: &User,
    handle: &str,
    restored: &Restored,
) -> Result<bool> {
    let author = Author::local(rustix::process::getuid().as_raw(), "archive_restore");
    let mut tx = writer.begin(author).await.map_err(db_failed)?;
    let now = user::find(&mut tx, &account.name)
        .await
        .map_err(db_failed)?;
    let stays = now.is_some_and(|now| now.uid == account.uid && now.deleted_at.is_none());
    if stays {
        usage::changed(&mut tx, &account.uid)
            .await
            .map_err(db_failed)?;
    }
    let about = About::object(account.role, &account.name);
    let about = about.detail(format!("{handle} to {}", restored.directory));
    tx.commit(about).await.map_err(db_failed)?;
    Ok(stays)
}

fn said(restored: &Restored, name: &UserName) -> String {
    let Restored {
        directory,
        files,
        bytes,
        skipped,
        conversations_left_out,
    } = restored;
    let (files, bytes) = (counted(*files, "file"), counted(*bytes, "byte"));
    let mut text = format!("restored to {directory} in {name}'s workspace: {files}, {bytes}");
    if !skipped.is_empty() {
        let named: Vec<String> = skipped.paths.iter().take(NAMED).map(|p| clean(p)).collect();
        let more = match skipped.count > named.len() as u64 {
            true => ", …",
            false => "",
        };
        text += &format!(
            "; skipped {} (fifos, sockets or devices): {}{more}",
            skipped.count,
            named.join(", ")
        );
    }
    if *conversations_left_out {
        text += "; conversations and the agent's session history are left out because they belong to another account";
    }
    text
}

#[cfg(test)]
mod tests {
    use schema::home::Skipped;

    use super::*;

    #[test]
    fn what_was_left_out_is_said_without_control_characters() {
        let name: UserName = "bob".parse().unwrap();
        let mut restored = Restored {
            directory: "restored-20260511T114640Z".to_owned(),
            files: 1,
            bytes: 2,
            skipped: Skipped::default(),
            conversations_left_out: false,
        };
        let whole = "restored to restored-20260511T114640Z in bob's workspace: 1 file, 2 bytes";
        assert_eq!(said(&restored, &name), whole);
        restored.skipped = Skipped {
            count: 3,
            paths: vec!["a\x1b[2J".to_owned(), "b".to_owned()],
        };
        let left_out = "skipped 3 (fifos, sockets or devices): a\\u{1b}[2J, b, …";
        assert_eq!(said(&restored, &name), format!("{whole}; {left_out}"));
        restored.skipped = Skipped::default();
        restored.conversations_left_out = true;
        let left_out = "conversations and the agent's session history are left out because they belong to another account";
        assert_eq!(said(&restored, &name), format!("{whole}; {left_out}"));
    }
}
