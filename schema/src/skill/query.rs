//! Statements on skills and their versions.

use std::collections::BTreeMap;

use super::VERSIONS_KEPT;
use super::impact::{self, Impact, Scope};
use super::model::{NewVersion, Origin, Saved, SkillListing, SkillRow, SkillVersion, TreeDigest};
use crate::connection::Connection;
use crate::db::{ObservedTx, Tx};
use crate::error::DbError;
use crate::ids::{Generation, Kind, PlainName, SkillName, Timestamp, Uid};
use crate::object::status_columns;
use crate::statement::{
    execute, fetch_all, fetch_optional, like_pattern, scalar, scalars, statements,
};
use crate::{meta, object};

/// Whoever cleans up after a skill: its reconciler.
pub(super) const FINALIZER: &str = "skill";

/// Columns of a version.
macro_rules! version_columns {
    () => {
        "v.number, v.digest, v.description, v.version, v.license, v.has_manifest, v.file_count, v.size, \
         v.repository, v.path, v.commit_id, v.warnings, v.created_at"
    };
}

/// Columns of a skill with the version in effect.
macro_rules! select_skill {
    ($more:expr, $rest:expr) => {
        concat!(
            "SELECT k.uid, k.name, o.generation, o.deleted_at, ",
            version_columns!(),
            $more,
            " FROM skills k JOIN objects o ON o.kind = 'skill' AND o.uid = k.uid \
             JOIN skill_versions v ON v.skill_uid = k.uid AND v.number = k.number ",
            $rest
        )
    };
}

statements! {
    /// Reads one.
    GET = select_skill!("", "WHERE k.uid = $1");
    /// Finds one by the key of its name.
    FIND = select_skill!("", "WHERE k.name_key = $1");
    /// Reads all, in one scan.
    ALL = select_skill!("", "ORDER BY k.uid");
    /// One page, with how many users get each; `$1` is a LIKE pattern on the key of the name.
    LIST = concat!(
        "WITH RECURSIVE up (group_uid, uid) AS (SELECT uid, uid FROM user_groups \
         UNION SELECT up.group_uid, g.parent_uid FROM up JOIN user_groups g ON g.uid = up.uid WHERE g.parent_uid IS NOT NULL), \
         given (user_uid, skill_uid) AS (SELECT o.uid, d.skill_uid FROM objects o CROSS JOIN default_skills d WHERE o.kind = 'skill-set' AND o.deleted_at IS NULL \
         UNION SELECT user_uid, skill_uid FROM user_skills \
         UNION SELECT m.user_uid, b.skill_uid FROM group_skills b JOIN up ON up.uid = b.group_uid JOIN group_members m ON m.group_uid = up.group_uid), \
         held (skill_uid, n) AS (SELECT skill_uid, count(*) FROM given GROUP BY skill_uid) ",
        select_skill!(
            concat!(", coalesce(h.n, 0) AS user_count, ", status_columns!()),
            "LEFT JOIN held h ON h.skill_uid = k.uid LEFT JOIN object_status s ON s.kind = 'skill' AND s.uid = k.uid \
             WHERE k.name_key LIKE $1 ESCAPE '!' ORDER BY k.name_key LIMIT $2 OFFSET $3"
        )
    );
    /// How many `LIST` would give without paging.
    COUNT = "SELECT count(*) FROM skills WHERE name_key LIKE $1 ESCAPE '!'";
    /// Which groups which skill is bound to.
    BOUND_GROUPS = "SELECT b.skill_uid, g.name FROM group_skills b JOIN user_groups g ON g.uid = b.group_uid ORDER BY g.name_key";
    /// The skills that are bound to a group itself.
    OF_GROUP = "SELECT s.name FROM group_skills b JOIN skills s ON s.uid = b.skill_uid WHERE b.group_uid = $1 ORDER BY s.name_key";
    /// The versions that are kept, the newest first.
    VERSIONS = concat!("SELECT ", version_columns!(), " FROM skill_versions v WHERE v.skill_uid = $1 ORDER BY v.number DESC");
    /// Records a skill.
    INSERT = "INSERT INTO skills (uid, name, name_key, number, created_at) VALUES ($1, $2, $3, $4, $5)";
    /// Records a version.
    INSERT_VERSION = "INSERT INTO skill_versions (skill_uid, number, digest, description, version, license, has_manifest, file_count, size, repository, path, commit_id, created_at, warnings) \
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
    /// Where the files of a version come from, and what was left out there.
    SET_ORIGIN = "UPDATE skill_versions SET repository = $3, path = $4, commit_id = $5, warnings = $6 WHERE skill_uid = $1 AND number = $2";
    /// Brings a version into effect.
    SET_NUMBER = "UPDATE skills SET number = $2 WHERE uid = $1";
    /// Forgets old versions, but never the one in effect.
    FORGET_OLD = "DELETE FROM skill_versions WHERE skill_uid = $1 AND number <= $2 AND number <> (SELECT number FROM skills WHERE uid = $1)";
    /// The digests of all versions that are kept, by skill.
    KEPT_DIGESTS = "SELECT DISTINCT skill_uid, digest FROM skill_versions ORDER BY skill_uid, digest";
    /// The digests of the skills of one name that lie in workspaces, or are about to.
    DEPLOYED = "SELECT digest FROM skill_deployments WHERE name = $1 AND digest IS NOT NULL \
                UNION SELECT next FROM skill_deployments WHERE name = $1 AND next IS NOT NULL";
    /// Removes the row, and with it versions and bindings.
    DELETE = "DELETE FROM skills WHERE uid = $1";
}

/// Takes skills, and with them groups and bindings, for the rest of the transaction.
pub async fn lock(tx: &mut Tx) -> Result<(), DbError> {
    meta::take_guard(tx, "skills").await?;
    meta::take_guard(tx, "groups").await?;
    Ok(())
}

/// Reads one.
pub async fn get(connection: &mut Connection, uid: &Uid) -> Result<Option<SkillRow>, DbError> {
    fetch_optional!(connection, GET, uid)
}

/// Finds one by its name, without regard to case. One that is being removed is found, too.
pub async fn find(
    connection: &mut Connection,
    name: &SkillName,
) -> Result<Option<SkillRow>, DbError> {
    fetch_optional!(connection, FIND, name.key())
}

/// Reads all, in one scan.
pub async fn all(connection: &mut Connection) -> Result<Vec<SkillRow>, DbError> {
    fetch_all!(connection, ALL)
}

/// One page, with the total. `search` is a case-insensitive substring.
pub async fn list(
    connection: &mut Connection,
    search: &str,
    limit: i64,
    offset: i64,
) -> Result<(Vec<SkillListing>, i64), DbError> {
    let pattern = like_pattern(&search.to_lowercase());
    let total = scalar!(connection, COUNT, &pattern)?;
    let rows = fetch_all!(connection, LIST, &pattern, limit, offset)?;
    Ok((rows, total))
}

/// The names of the groups that skills are bound to themselves, by skill: one scan.
pub async fn bound_groups(
    connection: &mut Connection,
) -> Result<BTreeMap<Uid, Vec<PlainName>>, DbError> {
    let rows: Vec<(Uid, PlainName)> = fetch_all!(connection, BOUND_GROUPS)?;
    let mut groups: BTreeMap<Uid, Vec<PlainName>> = BTreeMap::new();
    for (skill, group) in rows {
        groups.entry(skill).or_default().push(group);
    }
    Ok(groups)
}

/// The skills that are bound to a group itself.
pub async fn skills_of_group(
    connection: &mut Connection,
    group: &Uid,
) -> Result<Vec<SkillName>, DbError> {
    scalars!(connection, OF_GROUP, group)
}

/// The versions that are kept, the newest first.
pub async fn versions(
    connection: &mut Connection,
    skill: &Uid,
) -> Result<Vec<SkillVersion>, DbError> {
    fetch_all!(connection, VERSIONS, skill)
}

/// The digests of all versions that are kept, by skill: one scan.
pub async fn kept_digests(connection: &mut Connection) -> Result<Vec<(Uid, TreeDigest)>, DbError> {
    fetch_all!(connection, KEPT_DIGESTS)
}

/// The digests of the skills of one name that lie in workspaces, or are about to.
pub async fn deployed(
    connection: &mut Connection,
    name: &SkillName,
) -> Result<Vec<TreeDigest>, DbError> {
    scalars!(connection, DEPLOYED, name)
}

/// Brings a version into effect; the skill is created if there is none of this name. Nothing changes when it is what is in
/// effect already.
///
/// # Errors
/// [`DbError::NameBeingRemoved`] while a skill of this name is being removed; [`DbError::NameTaken`] when there is one that
/// differs in case, since the files are stored under the name as it is written; with `expected`,
/// [`DbError::StaleGeneration`].
pub async fn save_version(
    tx: &mut Tx,
    name: &SkillName,
    new: &NewVersion,
    expected: Option<Generation>,
    now: Timestamp,
) -> Result<(Saved, Impact), DbError> {
    // Orders two that add the same.
    lock(tx).await?;
    let Some(row) = find(tx, name).await? else {
        if expected.is_some() {
            return Err(DbError::StaleGeneration { actual: 0 });
        }
        let uid = Uid::random();
        execute!(tx, INSERT, &uid, name, name.key(), 1_i64, now)?;
        insert_version(tx, &uid, 1, new, now).await?;
        let generation = object::insert(tx, Kind::Skill, &uid, name.as_str(), now).await?;
        object::add_finalizer(tx, Kind::Skill, &uid, FINALIZER).await?;
        let saved = Saved {
            uid,
            generation,
            number: 1,
            changed: true,
        };
        // Nobody can have been bound to it.
        return Ok((saved, Impact::default()));
    };
    if row.deleted_at.is_some() {
        return Err(DbError::NameBeingRemoved);
    }
    if row.name != *name {
        return Err(DbError::NameTaken);
    }
    let uid = row.uid;
    let kept = versions(tx, &uid).await?;
    let same = row.version.digest == new.digest;
    let generation = object::bump(tx, Kind::Skill, &uid, expected).await?;
    if same {
        // The same files may come from elsewhere by now.
        let (at, origin) = (row.version.number, &new.origin);
        let Origin {
            repository,
            path,
            commit_id,
        } = origin;
        let warnings = serde_json::to_string(&new.warnings)?;
        execute!(
            tx, SET_ORIGIN, &uid, at, repository, path, commit_id, warnings
        )?;
        let saved = Saved {
            uid,
            generation,
            number: row.version.number,
            changed: false,
        };
        return Ok((saved, Impact::default()));
    }
    let before = impact::before(tx, Scope::Skills(vec![uid.clone()])).await?;
    let number = kept.first().map_or(0, |newest| newest.number) + 1;
    insert_version(tx, &uid, number, new, now).await?;
    execute!(tx, SET_NUMBER, &uid, number)?;
    execute!(tx, FORGET_OLD, &uid, number - VERSIONS_KEPT)?;
    let impact = before.settle(tx).await?;
    let saved = Saved {
        uid,
        generation,
        number,
        changed: true,
    };
    Ok((saved, impact))
}

async fn insert_version(
    tx: &mut Tx,
    skill: &Uid,
    number: i64,
    new: &NewVersion,
    now: Timestamp,
) -> Result<(), DbError> {
    execute!(
        tx,
        INSERT_VERSION,
        skill,
        number,
        &new.digest,
        &new.description,
        &new.version,
        &new.license,
        i64::from(new.has_manifest),
        new.file_count,
        new.size,
        &new.origin.repository,
        &new.origin.path,
        &new.origin.commit_id,
        now,
        serde_json::to_string(&new.warnings)?
    )?;
    Ok(())
}

/// Brings a version that is kept into effect again.
///
/// # Errors
/// [`DbError::NotFound`] when the skill is going, or there is no such version; with `expected`,
/// [`DbError::StaleGeneration`].
pub async fn roll_back(
    tx: &mut Tx,
    skill: &Uid,
    number: i64,
    expected: Option<Generation>,
) -> Result<(Generation, Impact), DbError> {
    lock(tx).await?;
    let kept = versions(tx, skill).await?;
    if !kept.iter().any(|version| version.number == number) {
        return Err(DbError::NotFound("version of the skill"));
    }
    let generation = object::bump(tx, Kind::Skill, skill, expected).await?;
    let before = impact::before(tx, Scope::Skills(vec![skill.clone()])).await?;
    execute!(tx, SET_NUMBER, skill, number)?;
    Ok((generation, before.settle(tx).await?))
}

/// Asks for the removal of a skill, which must not be bound any more.
pub async fn delete(tx: &mut Tx, skill: &Uid, now: Timestamp) -> Result<Generation, DbError> {
    object::delete(tx, Kind::Skill, skill, now).await
}

/// Removes the last trace of a deleted skill once its files are cleaned up. Returns whether it did.
pub async fn purge(tx: &mut ObservedTx, skill: &Uid) -> Result<bool, DbError> {
    object::remove_finalizer(tx, Kind::Skill, skill, FINALIZER).await?;
    if !object::purge_if_finalized(tx, Kind::Skill, skill).await? {
        return Ok(false);
    }
    execute!(tx, DELETE, skill)?;
    Ok(true)
}
