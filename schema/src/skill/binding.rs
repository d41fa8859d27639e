//! Statements on bindings. Each change says what it means for whom, and raises their generations.

use std::collections::BTreeSet;

use super::impact::{self, Impact, Scope};
use super::model::Binding;
use super::query;
use crate::connection::Connection;
use crate::db::Tx;
use crate::error::DbError;
use crate::ids::{SkillName, Uid};
use crate::statement::{execute, fetch_all, scalar, statements};

statements! {
    /// A group gets a skill.
    BIND_GROUP = "INSERT INTO group_skills (group_uid, skill_uid) VALUES ($1, $2) ON CONFLICT (group_uid, skill_uid) DO NOTHING";
    /// A group gets a skill no more.
    UNBIND_GROUP = "DELETE FROM group_skills WHERE group_uid = $1 AND skill_uid = $2";
    /// A user gets a skill.
    BIND_USER = "INSERT INTO user_skills (user_uid, skill_uid) VALUES ($1, $2) ON CONFLICT (user_uid, skill_uid) DO NOTHING";
    /// A user gets a skill no more.
    UNBIND_USER = "DELETE FROM user_skills WHERE user_uid = $1 AND skill_uid = $2";
    /// A user has no bindings any more.
    FORGET_USER = "DELETE FROM user_skills WHERE user_uid = $1";
    /// Everybody gets a skill.
    BIND_ALL = "INSERT INTO default_skills (skill_uid) VALUES ($1) ON CONFLICT (skill_uid) DO NOTHING";
    /// Not everybody gets a skill any more.
    UNBIND_ALL = "DELETE FROM default_skills WHERE skill_uid = $1";
    /// No group gets a skill any more.
    UNBIND_ALL_GROUPS = "DELETE FROM group_skills WHERE skill_uid = $1";
    /// No user gets a skill by a binding of their own any more.
    UNBIND_ALL_USERS = "DELETE FROM user_skills WHERE skill_uid = $1";
    /// Number of bindings of a skill.
    COUNT_BINDINGS = "SELECT (SELECT count(*) FROM group_skills WHERE skill_uid = $1) + (SELECT count(*) FROM user_skills WHERE skill_uid = $1) \
                      + (SELECT count(*) FROM default_skills WHERE skill_uid = $1)";
    /// The skills that everybody gets.
    DEFAULTS = "SELECT s.uid, s.name FROM default_skills d JOIN skills s ON s.uid = d.skill_uid ORDER BY s.name_key";
    /// Everything that gives a user a skill. Whatever the rows of groups say, each way is found once (L14).
    OF_USER = "WITH RECURSIVE up (via_uid, uid) AS (SELECT group_uid, group_uid FROM group_members WHERE user_uid = $1 \
               UNION SELECT up.via_uid, g.parent_uid FROM up JOIN user_groups g ON g.uid = up.uid WHERE g.parent_uid IS NOT NULL), \
               given (skill_uid, bound_group, via, own) AS (\
               SELECT skill_uid, NULL, NULL, 0 FROM default_skills \
               UNION ALL SELECT skill_uid, NULL, NULL, 1 FROM user_skills WHERE user_uid = $1 \
               UNION ALL SELECT b.skill_uid, g.name, v.name, 0 FROM up JOIN group_skills b ON b.group_uid = up.uid \
               JOIN user_groups g ON g.uid = up.uid JOIN user_groups v ON v.uid = up.via_uid) \
               SELECT s.name AS skill, sv.digest, sv.version, sv.description, sv.file_count, sv.size, given.bound_group, given.via, CAST(given.own AS BIGINT) AS own \
               FROM given JOIN skills s ON s.uid = given.skill_uid JOIN skill_versions sv ON sv.skill_uid = s.uid AND sv.number = s.number \
               ORDER BY s.name_key, given.own, given.bound_group, given.via";
}

/// Whom a skill is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'a> {
    /// A group: its members, and those of the groups below it.
    Group(&'a Uid),
    /// A user.
    User(&'a Uid),
}

/// Binds a skill. `None` when it is bound already.
pub async fn bind(
    tx: &mut Tx,
    skill: &Uid,
    subject: Subject<'_>,
) -> Result<Option<Impact>, DbError> {
    change(tx, skill, subject, [BIND_GROUP, BIND_USER]).await
}

/// Ends a binding. `None` when there is none.
pub async fn unbind(
    tx: &mut Tx,
    skill: &Uid,
    subject: Subject<'_>,
) -> Result<Option<Impact>, DbError> {
    change(tx, skill, subject, [UNBIND_GROUP, UNBIND_USER]).await
}

async fn change(
    tx: &mut Tx,
    skill: &Uid,
    subject: Subject<'_>,
    [of_group, of_user]: [&'static str; 2],
) -> Result<Option<Impact>, DbError> {
    let (statement, uid, scope) = match subject {
        Subject::Group(uid) => (of_group, uid, Scope::Skills(vec![skill.clone()])),
        Subject::User(uid) => (of_user, uid, Scope::Users(vec![uid.clone()])),
    };
    let before = impact::before(tx, scope).await?;
    if execute!(tx, statement, uid, skill)? == 0 {
        return Ok(None);
    }
    before.settle(tx).await.map(Some)
}

/// Ends all bindings of a user who is removed.
pub(crate) async fn forget_user(tx: &mut Tx, user: &Uid) -> Result<(), DbError> {
    execute!(tx, FORGET_USER, user)?;
    Ok(())
}

/// Ends all bindings of a skill: to groups, to users and to everybody. Returns how many they were.
pub async fn unbind_everywhere(tx: &mut Tx, skill: &Uid) -> Result<(u64, Impact), DbError> {
    let before = impact::before(tx, Scope::Skills(vec![skill.clone()])).await?;
    let mut ended = 0;
    for statement in [UNBIND_ALL, UNBIND_ALL_GROUPS, UNBIND_ALL_USERS] {
        ended += execute!(tx, statement, skill)?;
    }
    Ok((ended, before.settle(tx).await?))
}

/// Counts the bindings of a skill: to groups, to users and by default.
pub async fn count_bindings(connection: &mut Connection, skill: &Uid) -> Result<i64, DbError> {
    scalar!(connection, COUNT_BINDINGS, skill)
}

/// The skills that everybody gets.
pub async fn defaults(connection: &mut Connection) -> Result<Vec<(Uid, SkillName)>, DbError> {
    fetch_all!(connection, DEFAULTS)
}

/// Binds exactly the skills of these names to everybody. Called where the configuration key `skills.defaults` is saved.
pub(crate) async fn set_defaults(tx: &mut Tx, names: &[SkillName]) -> Result<Impact, DbError> {
    let mut skills = BTreeSet::new();
    let mut unknown = Vec::new();
    for name in names {
        let skill = query::find(tx, name).await?;
        match skill.filter(|skill| skill.deleted_at.is_none()) {
            Some(skill) => {
                skills.insert(skill.uid);
            }
            None => unknown.push(name.to_string()),
        }
    }
    if !unknown.is_empty() {
        return Err(DbError::UnknownSkills(unknown));
    }
    let now: BTreeSet<Uid> = defaults(tx)
        .await?
        .into_iter()
        .map(|(uid, _)| uid)
        .collect();
    let concerned = now.symmetric_difference(&skills).cloned().collect();
    let before = impact::before(tx, Scope::Skills(concerned)).await?;
    for skill in now.difference(&skills) {
        execute!(tx, UNBIND_ALL, skill)?;
    }
    for skill in skills.difference(&now) {
        execute!(tx, BIND_ALL, skill)?;
    }
    before.settle(tx).await
}

/// Everything that gives a user a skill, ordered by skill: one row for each way.
pub async fn bindings(connection: &mut Connection, user: &Uid) -> Result<Vec<Binding>, DbError> {
    fetch_all!(connection, OF_USER, user)
}
