//! The newest ends of each container that were not asked for.

use sqlx::FromRow;

use crate::connection::Connection;
use crate::db::ObservedTx;
use crate::error::DbError;
use crate::ids::{Timestamp, Uid};
use crate::statement::{execute, fetch_all, statements};

/// Ends that are kept of each container.
pub const ENDS_KEPT: usize = 3;

/// An end of a container that was not asked for, or of a replacement that failed.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct ContainerEnd {
    /// Time of it.
    #[sqlx(rename = "ended_at")]
    pub at: Timestamp,
    /// Exit code of the process; `None` when there is none, such as of a container that was removed.
    pub exit_code: Option<i64>,
    /// Cause, in a clause: `exit code 137, out of memory`.
    pub cause: String,
    /// The last lines of the log, cleaned and without secrets; empty when they could not be read.
    pub log: String,
}

statements! {
    /// Records an end; a repeat of the same one replaces it.
    INSERT = "INSERT INTO container_ends (uid, ended_at, exit_code, cause, log) \
              SELECT uid, CAST($2 AS BIGINT), CAST($3 AS BIGINT), $4, $5 FROM containers WHERE uid = $1 \
              ON CONFLICT (uid, ended_at) DO UPDATE SET exit_code = excluded.exit_code, cause = excluded.cause, log = excluded.log";
    /// Forgets those before the newest three.
    TRIM = "DELETE FROM container_ends WHERE uid = $1 \
            AND ended_at < (SELECT e.ended_at FROM container_ends e WHERE e.uid = $1 ORDER BY e.ended_at DESC LIMIT 1 OFFSET 2)";
    /// Lists the ends of a container, newest first.
    LIST = "SELECT ended_at, exit_code, cause, log FROM container_ends WHERE uid = $1 ORDER BY ended_at DESC";
}

/// Records an end beside the newest others; nothing happens when the container is gone.
pub async fn note_end(tx: &mut ObservedTx, uid: &Uid, end: &ContainerEnd) -> Result<(), DbError> {
    execute!(tx, INSERT, uid, end.at, end.exit_code, &end.cause, &end.log)?;
    execute!(tx, TRIM, uid)?;
    Ok(())
}

/// Lists the ends of a container that are kept, newest first.
pub async fn list_ends(
    connection: &mut Connection,
    uid: &Uid,
) -> Result<Vec<ContainerEnd>, DbError> {
    fetch_all!(connection, LIST, uid)
}

/// A cause, with as many of the last lines of a log as fit into so many bytes.
pub fn with_log(cause: &str, log: &str, mut room: usize) -> String {
    let mut lines = Vec::new();
    for line in log.lines().rev() {
        match room.checked_sub(line.len() + 3) {
            Some(left) => room = left,
            // The last one says most, if only its begin.
            None if lines.is_empty() => {
                let begin = line.get(..line.floor_char_boundary(room));
                lines.push(begin.unwrap_or_default());
                break;
            }
            None => break,
        }
        lines.push(line);
    }
    lines.reverse();
    match lines.len() {
        0 => cause.to_owned(),
        _ => format!("{cause}; end of its log: {}", lines.join(" | ")),
    }
}

/// A cause as a sentence: of a process by its exit code, of a replacement as it is.
pub fn sentence(cause: &str) -> String {
    if cause.starts_with("the ") {
        cause.to_owned()
    } else if cause.starts_with("exit code") {
        format!("the container ended with {cause}")
    } else {
        format!("the container ended: {cause}")
    }
}
