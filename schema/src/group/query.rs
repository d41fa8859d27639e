//! Statements on groups.

use std::collections::BTreeMap;

use super::model::{Group, GroupListing, Member, NewGroup};
use crate::connection::Connection;
use crate::db::Tx;
use crate::error::DbError;
use crate::ids::{PlainName, Timestamp, Uid};
use crate::meta;
use crate::skill::impact::{self, Impact, Scope};
use crate::statement::{
    execute, fetch_all, fetch_optional, finish, like_pattern, scalar, scalars, statements,
};
use crate::user;

/// Columns of a group.
macro_rules! select_group {
    ($more:literal, $rest:literal) => {
        concat!(
            "SELECT g.uid, g.name, g.parent_uid, g.source, g.description, g.created_at",
            $more,
            " FROM user_groups g ",
            $rest
        )
    };
}

/// A group and everything below it. Whatever the rows say, each is found once (L14).
macro_rules! below {
    ($rest:literal) => {
        concat!(
            "WITH RECURSIVE below (uid) AS (SELECT uid FROM user_groups WHERE uid = $1 UNION SELECT g.uid FROM user_groups g JOIN below b ON g.parent_uid = b.uid) ",
            $rest
        )
    };
}

/// So many users one statement asks for.
const USERS: usize = 50;

statements! {
    /// Finds a group by the key of its name.
    FIND = select_group!("", "WHERE g.name_key = $1");
    /// One page of groups; `$1` is a LIKE pattern on the key of the name.
    LIST = select_group!(", (SELECT p.name FROM user_groups p WHERE p.uid = g.parent_uid) AS parent, \
                        (SELECT count(*) FROM group_members m WHERE m.group_uid = g.uid) AS member_count, \
                        (SELECT count(*) FROM group_skills b WHERE b.group_uid = g.uid) AS skill_count",
                         "WHERE g.name_key LIKE $1 ESCAPE '!' ORDER BY g.name_key LIMIT $2 OFFSET $3");
    /// How many groups `LIST` would give without paging.
    COUNT = "SELECT count(*) FROM user_groups WHERE name_key LIKE $1 ESCAPE '!'";
    /// Finds a group by its identity.
    GET = select_group!("", "WHERE g.uid = $1");
    /// Records a group.
    INSERT = "INSERT INTO user_groups (uid, name, name_key, parent_uid, source, description, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)";
    /// A group gets another parent.
    SET_PARENT = "UPDATE user_groups SET parent_uid = $2 WHERE uid = $1";
    /// Whether `$2` is a group or below it.
    IS_BELOW = below!("SELECT count(*) FROM below WHERE uid = $2");
    /// The skills that a group and those above it are bound to.
    SKILLS_ABOVE = "WITH RECURSIVE up (uid) AS (SELECT uid FROM user_groups WHERE uid = $1 UNION SELECT g.parent_uid FROM up JOIN user_groups g ON g.uid = up.uid WHERE g.parent_uid IS NOT NULL) \
                    SELECT DISTINCT b.skill_uid FROM up JOIN group_skills b ON b.group_uid = up.uid ORDER BY b.skill_uid";
    /// The names of the groups that some users are in, and of those above them.
    NAMES_ABOVE = "WITH RECURSIVE up (user_uid, uid) AS (SELECT user_uid, group_uid FROM group_members WHERE user_uid IN (\
                    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, \
                    $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, \
                    $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, \
                    $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50) \
                   UNION SELECT up.user_uid, g.parent_uid FROM up JOIN user_groups g ON g.uid = up.uid WHERE g.parent_uid IS NOT NULL) \
                   SELECT up.user_uid, g.name FROM up JOIN user_groups g ON g.uid = up.uid ORDER BY up.user_uid, g.name_key";
    /// The groups in a group become top-level groups.
    RELEASE_CHILDREN = "UPDATE user_groups SET parent_uid = NULL WHERE parent_uid = $1";
    /// Removes a group and its memberships.
    DELETE = "DELETE FROM user_groups WHERE uid = $1";
    /// A user becomes a member.
    ADD_MEMBER = "INSERT INTO group_members (group_uid, user_uid) VALUES ($1, $2) ON CONFLICT (group_uid, user_uid) DO NOTHING";
    /// A user is no member any more.
    REMOVE_MEMBER = "DELETE FROM group_members WHERE group_uid = $1 AND user_uid = $2";
    /// A user is in no group any more.
    FORGET_USER = "DELETE FROM group_members WHERE user_uid = $1";
    /// The members of a group and of those below it, with the group that they are in themselves.
    MEMBERS = below!("SELECT u.name AS username, g.name AS via FROM below b JOIN group_members m ON m.group_uid = b.uid \
                      JOIN user_groups g ON g.uid = b.uid JOIN users u ON u.uid = m.user_uid ORDER BY u.name_key, g.name_key");
    /// The users who are in a group themselves.
    DIRECT_MEMBERS = "SELECT user_uid FROM group_members WHERE group_uid = $1";
    /// The users of a group and of those below it, each once.
    USERS_BELOW = below!("SELECT DISTINCT m.user_uid FROM below b JOIN group_members m ON m.group_uid = b.uid ORDER BY m.user_uid");
    /// Of all users the names of the groups that they are in themselves.
    NAMES_OF_USERS = "SELECT m.user_uid, g.name FROM group_members m JOIN user_groups g ON g.uid = m.group_uid ORDER BY g.name_key";
}

/// Finds a group by its name, without regard to case.
pub async fn find(connection: &mut Connection, name: &PlainName) -> Result<Option<Group>, DbError> {
    fetch_optional!(connection, FIND, name.key())
}

/// Finds a group by its identity.
pub async fn get(connection: &mut Connection, uid: &Uid) -> Result<Option<Group>, DbError> {
    fetch_optional!(connection, GET, uid)
}

/// One page of groups, with the total. `search` is a case-insensitive substring.
pub async fn list(
    connection: &mut Connection,
    search: &str,
    limit: i64,
    offset: i64,
) -> Result<(Vec<GroupListing>, i64), DbError> {
    let pattern = like_pattern(&search.to_lowercase());
    let total = scalar!(connection, COUNT, &pattern)?;
    let rows = fetch_all!(connection, LIST, &pattern, limit, offset)?;
    Ok((rows, total))
}

/// The names of the groups that users are in, and of those above them, each with the user.
pub async fn names_above(
    connection: &mut Connection,
    users: &[Uid],
) -> Result<Vec<(Uid, PlainName)>, DbError> {
    let mut found = Vec::new();
    for some in users.chunks(USERS) {
        let mut query = sqlx::query_as(NAMES_ABOVE);
        // A value for each place: the first user fills those that are left.
        for index in 0..USERS {
            query = query.bind(some.get(index).or(some.first()));
        }
        let mut names: Vec<(Uid, PlainName)> = finish!(query.fetch_all(&mut *connection))?;
        found.append(&mut names);
    }
    Ok(found)
}

/// Records a group.
///
/// # Errors
/// [`DbError::NameTaken`].
pub async fn create(tx: &mut Tx, new: &NewGroup, now: Timestamp) -> Result<Uid, DbError> {
    // Orders two creations of one name, and changes of the tree.
    meta::take_guard(tx, "groups").await?;
    // Under the guard, which a change of the mode takes, too.
    if user::query::auth_mode(tx).await? != new.source {
        return Err(DbError::WrongState("the authentication mode has changed"));
    }
    if find(tx, &new.name).await?.is_some() {
        return Err(DbError::NameTaken);
    }
    let uid = Uid::random();
    execute!(
        tx,
        INSERT,
        &uid,
        &new.name,
        new.name.key(),
        &new.parent_uid,
        new.source,
        &new.description,
        now
    )?;
    Ok(uid)
}

/// Takes groups, bindings and what follows from them for the rest of the transaction: before anything is read that a change
/// of them follows from, and before any row is written. Where the configuration or the guard of skills is taken, too, they come first.
pub async fn lock(tx: &mut Tx) -> Result<(), DbError> {
    meta::take_guard(tx, "groups").await?;
    Ok(())
}

/// A number that is another one after each change of groups, their members and bindings.
pub async fn revision(connection: &mut Connection) -> Result<i64, DbError> {
    meta::guard(connection, "groups").await
}

/// Removes a group, its memberships and its bindings; those in it become top-level groups.
pub async fn delete(tx: &mut Tx, uid: &Uid) -> Result<Impact, DbError> {
    lock(tx).await?;
    let skills = skills_above(tx, uid).await?;
    let before = impact::before(tx, Scope::Skills(skills)).await?;
    execute!(tx, RELEASE_CHILDREN, uid)?;
    if execute!(tx, DELETE, uid)? == 0 {
        return Err(DbError::NotFound("group"));
    }
    before.settle(tx).await
}

/// Puts a group into another one, or at the top.
///
/// # Errors
/// [`DbError::GroupCycle`] when that one is in it.
pub async fn set_parent(tx: &mut Tx, uid: &Uid, parent: Option<&Uid>) -> Result<Impact, DbError> {
    // Orders changes of the tree, so that two of them together make no circle either (L14).
    meta::take_guard(tx, "groups").await?;
    let mut skills = skills_above(tx, uid).await?;
    if let Some(parent) = parent {
        let below: i64 = scalar!(tx, IS_BELOW, uid, parent)?;
        if below > 0 {
            return Err(DbError::GroupCycle);
        }
        skills.extend(skills_above(tx, parent).await?);
    }
    let before = impact::before(tx, Scope::Skills(skills)).await?;
    execute!(tx, SET_PARENT, uid, parent)?;
    before.settle(tx).await
}

/// Makes users members; who is one stays one. Returns how many were none, too.
pub async fn add_members(
    tx: &mut Tx,
    group: &Uid,
    users: Vec<Uid>,
) -> Result<(u64, Impact), DbError> {
    let before = impact::before(tx, Scope::Users(users.clone())).await?;
    let mut added = 0;
    for user in &users {
        added += execute!(tx, ADD_MEMBER, group, user)?;
    }
    Ok((added, before.settle(tx).await?))
}

/// Ends memberships. Returns the number of ended ones, too.
///
/// # Errors
/// [`DbError`].
pub async fn remove_members(
    tx: &mut Tx,
    group: &Uid,
    users: Vec<Uid>,
) -> Result<(u64, Impact), DbError> {
    let before = impact::before(tx, Scope::Users(users.clone())).await?;
    let mut removed = 0;
    for user in &users {
        removed += execute!(tx, REMOVE_MEMBER, group, user)?;
    }
    Ok((removed, before.settle(tx).await?))
}

/// Ends a membership; `None` when there was none.
pub async fn remove_member(
    tx: &mut Tx,
    group: &Uid,
    user: &Uid,
) -> Result<Option<Impact>, DbError> {
    let (removed, impact) = remove_members(tx, group, vec![user.clone()]).await?;
    Ok((removed > 0).then_some(impact))
}

async fn skills_above(tx: &mut Tx, group: &Uid) -> Result<Vec<Uid>, DbError> {
    scalars!(tx, SKILLS_ABOVE, group)
}

/// Ends all memberships of a user who is removed.
pub async fn forget_user(tx: &mut Tx, user: &Uid) -> Result<(), DbError> {
    execute!(tx, FORGET_USER, user)?;
    Ok(())
}

/// The members of a group and of those below it; somebody in several is named for each.
pub async fn members(connection: &mut Connection, group: &Uid) -> Result<Vec<Member>, DbError> {
    fetch_all!(connection, MEMBERS, group)
}

/// The users who are in a group themselves.
pub async fn direct_members(connection: &mut Connection, group: &Uid) -> Result<Vec<Uid>, DbError> {
    scalars!(connection, DIRECT_MEMBERS, group)
}

/// The users of a group and of those below it.
pub async fn with_descendants(
    connection: &mut Connection,
    group: &Uid,
) -> Result<Vec<Uid>, DbError> {
    scalars!(connection, USERS_BELOW, group)
}

/// The names of the groups that users are in themselves, by user: one scan.
pub async fn names_of_users(
    connection: &mut Connection,
) -> Result<BTreeMap<Uid, Vec<PlainName>>, DbError> {
    let rows: Vec<(Uid, PlainName)> = fetch_all!(connection, NAMES_OF_USERS)?;
    let mut names: BTreeMap<Uid, Vec<PlainName>> = BTreeMap::new();
    for (user, group) in rows {
        names.entry(user).or_default().push(group);
    }
    Ok(names)
}
