//! Statements on a change of the authentication mode.

use sha2::{Digest, Sha256};

use crate::config::AuthMode;
use crate::connection::Connection;
use crate::db::Tx;
use crate::error::DbError;
use crate::home::ArchiveBatch;
use crate::ids::{Kind, Timestamp, UserName};
use crate::statement::{execute, fetch_all, scalar, statements};
use crate::{group, meta, object, operation};

statements! {
    /// The users who would leave.
    LEAVING = "SELECT u.name FROM users u JOIN objects o ON o.kind = 'user' AND o.uid = u.uid WHERE o.deleted_at IS NULL ORDER BY u.name_key";
    /// How many groups there are.
    COUNT_GROUPS = "SELECT count(*) FROM user_groups";
    /// How many containers are desired, or there.
    COUNT_CONTAINERS = "SELECT count(*) FROM objects WHERE kind = 'container' AND deleted_at IS NULL";
    /// Where their directories go.
    SET_BATCH = "UPDATE users SET archive_batch = $1 WHERE uid IN (SELECT uid FROM objects WHERE kind = 'user' AND deleted_at IS NULL)";
    /// Ends all sessions of ordinary users.
    END_SESSIONS = "DELETE FROM sessions WHERE uid IN (SELECT uid FROM users WHERE role = 'user')";
    /// No group has a parent any more.
    RELEASE_GROUPS = "UPDATE user_groups SET parent_uid = NULL";
    /// All groups, with their members and bindings.
    DELETE_GROUPS = "DELETE FROM user_groups";
    /// Bindings of single users.
    DELETE_BINDINGS = "DELETE FROM user_skills";
    /// Values of users' channels.
    DELETE_CHANNELS = "DELETE FROM channel_values";
    /// Users' cookies.
    DELETE_COOKIES = "DELETE FROM cookies";
    /// What was remembered of the directory.
    FORGET_DIRECTORY = "UPDATE directory_facts SET facts = '{}' WHERE id = 1";
    /// What was asked of it.
    FORGET_REQUEST = "UPDATE directory_requests SET token = '', scope = 'users', confirm = '' WHERE id = 1";
}

/// What a change of the mode takes away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purge {
    /// The users who leave.
    pub names: Vec<UserName>,
    /// Number of containers that are removed.
    pub containers: i64,
    /// Number of groups that are removed.
    pub groups: i64,
}

impl Purge {
    /// Returns true when nothing is removed.
    pub fn is_nothing(&self) -> bool {
        self.names.is_empty() && self.containers == 0 && self.groups == 0
    }

    /// Digest of a change from one mode to another and of all that it removes: a confirmation repeats it.
    pub fn digest(&self, (old, new): (AuthMode, AuthMode)) -> String {
        let mut hash = Sha256::new();
        hash.update(format!("{old} {new} {} {}\n", self.containers, self.groups));
        for name in &self.names {
            hash.update(name.as_str());
            hash.update("\n");
        }
        hex::encode(hash.finalize()).chars().take(16).collect()
    }
}

/// Reads what a change of the mode would take away now.
pub async fn purge(connection: &mut Connection) -> Result<Purge, DbError> {
    let leaving: Vec<(UserName,)> = fetch_all!(connection, LEAVING)?;
    Ok(Purge {
        names: leaving.into_iter().map(|(name,)| name).collect(),
        containers: scalar!(connection, COUNT_CONTAINERS)?,
        groups: scalar!(connection, COUNT_GROUPS)?,
    })
}

/// Asks for the removal of all ordinary users, and removes all groups, in a few statements however many they are. Returns the
/// operation that tells how far it is. The caller holds the configuration (see [`crate::config::query::lock`]).
pub async fn begin(
    tx: &mut Tx,
    (old, new): (AuthMode, AuthMode),
    actor: &str,
    now: Timestamp,
) -> Result<String, DbError> {
    group::lock(tx).await?;
    // Whoever is created waits for this, and finds the new mode.
    meta::take_guard(tx, "names").await?;
    let batch = ArchiveBatch::of_mode_switch(now, old, new);
    execute!(tx, SET_BATCH, batch.as_str())?;
    // The users' objects, at the generation of their removal.
    let operation =
        operation::query::create_for_removal(tx, "mode_switch", actor, Kind::User, now).await?;
    for kind in [
        Kind::User,
        Kind::Container,
        Kind::AgentConfig,
        Kind::SkillSet,
    ] {
        object::query::delete_all(tx, kind, now).await?;
    }
    for statement in [
        END_SESSIONS,
        DELETE_BINDINGS,
        DELETE_CHANNELS,
        DELETE_COOKIES,
        RELEASE_GROUPS,
        DELETE_GROUPS,
        FORGET_DIRECTORY,
        FORGET_REQUEST,
    ] {
        execute!(tx, statement)?;
    }
    Ok(operation)
}
