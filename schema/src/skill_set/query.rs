//! Statements on skill sets.

use std::collections::BTreeMap;

use super::model::{Deployment, DesiredSkill, SkillSetRow};
use crate::connection::Connection;
use crate::db::{ObservedTx, Tx};
use crate::error::{DbError, unless_gone};
use crate::ids::{Kind, Timestamp, Uid};
use crate::statement::{execute, fetch_all, fetch_optional, statements};
use crate::{object, skill};

/// Columns of a skill set.
macro_rules! select_set {
    ($rest:literal) => {
        concat!(
            "SELECT o.uid, u.name, o.generation, o.deleted_at, a.generation AS adapter_generation \
             FROM objects o JOIN users u ON u.uid = o.uid CROSS JOIN adapter_state a WHERE o.kind = 'skill-set' ",
            $rest
        )
    };
}

statements! {
    /// Reads one.
    GET = select_set!("AND o.uid = $1");
    /// Reads all, in one scan.
    ALL = select_set!("ORDER BY o.uid");
    /// What was put into a user's workspace.
    DEPLOYMENTS = "SELECT name, digest, stamp, next, file_count, size FROM skill_deployments WHERE user_uid = $1 ORDER BY name";
    /// Remembers one; nothing happens when the account is gone.
    PUT = "INSERT INTO skill_deployments (user_uid, name, digest, stamp, next, file_count, size) SELECT uid, $2, $3, $4, $5, CAST($6 AS BIGINT), CAST($7 AS BIGINT) FROM users WHERE uid = $1 \
           ON CONFLICT (user_uid, name) DO UPDATE SET digest = excluded.digest, stamp = excluded.stamp, next = excluded.next, file_count = excluded.file_count, size = excluded.size";
    /// Forgets one.
    FORGET = "DELETE FROM skill_deployments WHERE user_uid = $1 AND name = $2";
}

/// Asks for the removal of a user's skill set, and ends the user's own bindings.
pub(crate) async fn delete(tx: &mut Tx, uid: &Uid, now: Timestamp) -> Result<(), DbError> {
    unless_gone(object::delete(tx, Kind::SkillSet, uid, now).await)?;
    skill::forget_user(tx, uid).await
}

/// Removes a deleted user's skill set. The files went with the user's directory, so nobody waits for it.
pub(crate) async fn purge(tx: &mut ObservedTx, uid: &Uid) -> Result<bool, DbError> {
    object::purge_if_finalized(tx, Kind::SkillSet, uid).await
}

/// Reads one.
pub async fn get(connection: &mut Connection, uid: &Uid) -> Result<Option<SkillSetRow>, DbError> {
    fetch_optional!(connection, GET, uid)
}

/// Reads all, in one scan.
pub async fn all(connection: &mut Connection) -> Result<Vec<SkillSetRow>, DbError> {
    fetch_all!(connection, ALL)
}

/// What a user gets, ordered by name.
pub async fn desired(connection: &mut Connection, uid: &Uid) -> Result<Vec<DesiredSkill>, DbError> {
    let bound = skill::bindings(connection, uid).await?.into_iter();
    let by_name: BTreeMap<_, _> = bound
        .map(|binding| {
            let desired = DesiredSkill {
                name: binding.skill.clone(),
                digest: binding.digest,
                file_count: binding.file_count,
                size: binding.size,
            };
            (binding.skill, desired)
        })
        .collect();
    Ok(by_name.into_values().collect())
}

/// What was put into a user's workspace, ordered by name.
pub async fn deployments(
    connection: &mut Connection,
    uid: &Uid,
) -> Result<Vec<Deployment>, DbError> {
    fetch_all!(connection, DEPLOYMENTS, uid)
}

/// Remembers these, and forgets those that hold nothing.
pub async fn save_deployments(
    tx: &mut ObservedTx,
    uid: &Uid,
    deployments: &[Deployment],
) -> Result<(), DbError> {
    for deployment in deployments {
        let Deployment {
            name,
            digest,
            stamp,
            next,
            file_count,
            size,
        } = deployment;
        if digest.is_none() && next.is_none() {
            execute!(tx, FORGET, uid, name)?;
        } else {
            execute!(tx, PUT, uid, name, digest, stamp, next, file_count, size)?;
        }
    }
    Ok(())
}
