//! Statements on accounts.

use std::collections::BTreeSet;

use secrecy::{ExposeSecret, SecretString};

use super::model::{NewUser, Role, Source, User, UserRow};
use crate::condition::Reason;
use crate::config::history::SavedBy;
use crate::config::query as config;
use crate::connection::Connection;
use crate::container;
use crate::db::{ObservedTx, Tx};
use crate::error::{DbError, unless_gone};
use crate::ids::{Generation, Kind, Timestamp, Uid, UserName};
use crate::secrets::MasterKey;
use crate::statement::{
    execute, fetch_all, fetch_optional, insert_rows, scalar, scalar_optional, scalars, statements,
};
use crate::{agent_config, event, group, meta, object, session, skill_set, whitelist};

/// Columns of an account.
macro_rules! select_user {
    ($rest:literal) => {
        concat!(
            "SELECT u.uid, u.name, u.role, u.source, u.password_hash, u.disabled, u.created_at, u.last_login_at, u.mcp_token_version, o.deleted_at \
             FROM users u LEFT JOIN objects o ON o.kind = 'user' AND o.uid = u.uid ",
            $rest
        )
    };
}

/// Columns for the user reconciler.
macro_rules! select_user_row {
    ($rest:literal) => {
        concat!(
            "SELECT o.uid, u.name, u.previous_name, u.previous_released, o.generation, o.deleted_at, u.archive_batch, CASE WHEN z.name IS NULL THEN 0 ELSE 1 END AS has_finalizer, a.generation AS adapter_generation, \
             coalesce(w.quota_state, 0) AS quota_state, coalesce(w.quota_stops, 0) AS quota_stops, coalesce(w.quota_note, '') AS quota_note \
             FROM objects o JOIN users u ON u.uid = o.uid CROSS JOIN adapter_state a \
             LEFT JOIN finalizers z ON z.kind = 'user' AND z.uid = o.uid AND z.name = 'user' \
             LEFT JOIN workspace_usage w ON w.uid = o.uid \
             WHERE o.kind = 'user' ",
            $rest
        )
    };
}

/// Inserts an account.
macro_rules! insert_user {
    ($rest:literal) => {
        concat!(
            "INSERT INTO users (uid, name, name_key, role, source, password_hash, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
            $rest
        )
    };
}

statements! {
    /// One user, for its reconciler.
    ROW = select_user_row!("AND o.uid = $1");
    /// All users, for their reconciler, in one scan.
    ROWS = select_user_row!("ORDER BY o.uid");
    /// Finds an account by the lower-case form of its name.
    FIND = select_user!("WHERE u.name_key = $1");
    /// All superadmins.
    LIST_SUPERADMINS = select_user!("WHERE u.role = 'superadmin' ORDER BY u.name_key");
    /// How many superadmins there are.
    COUNT_SUPERADMINS = "SELECT count(*) FROM users WHERE role = 'superadmin'";
    /// Records an account.
    INSERT = insert_user!("");
    /// The same unless the name is taken; gives who was inserted.
    INSERT_FREE = insert_user!(" ON CONFLICT (name_key) DO NOTHING RETURNING uid");
    /// Sets the password.
    SET_PASSWORD = "UPDATE users SET password_hash = $2 WHERE uid = $1";
    /// Sets the password, only if the caller verified the present one.
    REPLACE_PASSWORD = "UPDATE users SET password_hash = $3 WHERE uid = $1 AND password_hash = $2";
    /// Where ordinary users come from; no row: it was never set.
    AUTH_MODE = "SELECT value FROM config_values WHERE key = 'web.auth_mode'";
    /// Notes a sign-in.
    SET_LAST_LOGIN = "UPDATE users SET last_login_at = $2 WHERE uid = $1";
    /// Allows or forbids signing in.
    SET_DISABLED = "UPDATE users SET disabled_at = CASE WHEN (disabled & 1) = $2 THEN disabled_at END, disabled = (disabled & 2) | $2 WHERE uid = $1";
    /// Author and time of the first ban, until it is allowed.
    RECORD_DISABLING = "UPDATE users SET disabled_by = CASE WHEN disabled_at IS NULL THEN $3 ELSE disabled_by END, disabled_at = coalesce(disabled_at, $2) WHERE uid = $1 AND (disabled & 1) = 1";
    /// Notes whether somebody is missing from where users come from.
    SET_MISSING = "UPDATE users SET disabled = (disabled & 1) | $2 WHERE uid = $1";
    /// Makes a user's MCP token another one.
    ROTATE_MCP_TOKEN = "UPDATE users SET mcp_token_version = mcp_token_version + 1 WHERE uid = $1";
    /// Names whose directories are still to get other ones.
    PREVIOUS_NAMES = "SELECT previous_name FROM users WHERE previous_name IS NOT NULL";
    /// Gives an ordinary user another name, unless that happens already or the user is going; gives the name before.
    RENAME = "UPDATE users SET previous_name = name, previous_released = 0, name = $2, name_key = $3 WHERE uid = $1 AND role = 'user' AND previous_name IS NULL \
              AND EXISTS (SELECT 1 FROM objects o WHERE o.kind = 'user' AND o.uid = users.uid AND o.deleted_at IS NULL) RETURNING previous_name";
    /// The same for the user's objects.
    RENAME_OBJECTS = "UPDATE objects SET name = $2 WHERE uid = $1 AND kind IN ('user', 'container', 'agent-config', 'skill-set')";
    /// No container has a name of before any more.
    RELEASE_PREVIOUS_NAME = "UPDATE users SET previous_released = 1 WHERE uid = $1 AND previous_name = $2";
    /// The user's directory has the new name.
    END_RENAME = "UPDATE users SET previous_name = NULL, previous_released = 0 WHERE uid = $1 AND previous_name = $2";
    /// A name of before that is whose MCP tokens may still have it.
    REMEMBER_NAME = "INSERT INTO former_names (name_key, uid) VALUES ($1, $2) ON CONFLICT (name_key) DO UPDATE SET uid = excluded.uid";
    /// Names that somebody has are nobody's former ones.
    FORGET_TAKEN_NAMES = "DELETE FROM former_names WHERE name_key IN (SELECT name_key FROM users)";
    /// Removes an account's row.
    DELETE = "DELETE FROM users WHERE uid = $1";
}

/// Finds an account by its name, case-insensitively. Accounts that are being removed are found too.
pub async fn find(connection: &mut Connection, name: &UserName) -> Result<Option<User>, DbError> {
    fetch_optional!(connection, FIND, name.key())
}

/// Where ordinary users come from now.
pub(crate) async fn auth_mode(connection: &mut Connection) -> Result<Source, DbError> {
    let value: Option<Option<String>> = scalar_optional!(connection, AUTH_MODE)?;
    let Some(value) = value.flatten() else {
        return Ok(Source::Local);
    };
    serde_json::from_str(&value).map_err(|error| DbError::Corrupt(error.to_string()))
}

async fn insert(
    tx: &mut Tx,
    uid: &Uid,
    name: &UserName,
    role: Role,
    source: Source,
    password_hash: Option<&SecretString>,
    now: Timestamp,
) -> Result<(), DbError> {
    // The guard orders two creations of one name, so that the second finds the first and fails.
    meta::take_guard(tx, "names").await?;
    // Under the guard, which a change of the mode takes, too: nobody comes in by the old one after it.
    if role == Role::User && auth_mode(tx).await? != source {
        return Err(DbError::WrongState("the authentication mode has changed"));
    }
    if let Some(holder) = find(tx, name).await? {
        return Err(if holder.deleted_at.is_some() {
            DbError::NameBeingRemoved
        } else {
            DbError::NameTaken
        });
    }
    if previous_names(tx).await?.contains(&name.key()) {
        return Err(DbError::NameBeingRemoved);
    }
    execute!(
        tx,
        INSERT,
        uid,
        name,
        name.key(),
        role,
        source,
        password_hash.map(|hash| hash.expose_secret().to_owned()),
        now
    )?;
    execute!(tx, FORGET_TAKEN_NAMES)?;
    Ok(())
}

/// The names, in lower case, of users who were renamed and whose directories still have them.
async fn previous_names(connection: &mut Connection) -> Result<BTreeSet<String>, DbError> {
    let names: Vec<UserName> = scalars!(connection, PREVIOUS_NAMES)?;
    Ok(names.iter().map(UserName::key).collect())
}

/// Gives an ordinary user another name. Container, files and directory follow by their reconcilers; sessions end, because cookies
/// bear the name. The configuration must have been locked: rules for the user are in it.
///
/// # Errors
/// [`DbError::NameTaken`], [`DbError::NameBeingRemoved`] while the account or the directory of another user has the name, or the
/// directory of this one still has the name before; [`DbError::NotFound`] if the user is going.
pub(crate) async fn rename(
    tx: &mut Tx,
    master_key: &MasterKey,
    uid: &Uid,
    name: &UserName,
    now: Timestamp,
) -> Result<(), DbError> {
    meta::take_guard(tx, "names").await?;
    match find(tx, name).await? {
        Some(holder) if holder.deleted_at.is_none() => return Err(DbError::NameTaken),
        Some(_) => return Err(DbError::NameBeingRemoved),
        None => {}
    }
    let present = row(tx, uid).await?.ok_or(DbError::NotFound("account"))?;
    if present.previous_name.is_some() || previous_names(tx).await?.contains(&name.key()) {
        return Err(DbError::NameBeingRemoved);
    }
    let before: Option<UserName> = scalar_optional!(tx, RENAME, uid, name, name.key())?;
    let before = before.ok_or(DbError::NotFound("account"))?;
    execute!(tx, RENAME_OBJECTS, uid, name)?;
    execute!(tx, REMEMBER_NAME, before.key(), uid)?;
    execute!(tx, FORGET_TAKEN_NAMES)?;
    whitelist::rename(tx, &before, name).await?;
    let by = SavedBy::directory(now);
    config::rename_in_policy(tx, master_key, &before, name, by).await?;
    // A cookie of an earlier bearer of the new name must not find one of these.
    session::revoke_all(tx, uid, None).await?;
    for kind in [
        Kind::User,
        Kind::Container,
        Kind::AgentConfig,
        Kind::SkillSet,
    ] {
        object::bump_in_bulk(tx, kind, uid).await?;
    }
    let said = format!("renamed from {before} to {name}");
    event::record(tx, Kind::User, uid, Reason::Renamed, "", &said, now).await
}

/// Records that no container of a renamed user has the previous name any more.
pub async fn release_previous_name(
    tx: &mut ObservedTx,
    uid: &Uid,
    name: &UserName,
) -> Result<(), DbError> {
    if execute!(tx, RELEASE_PREVIOUS_NAME, uid, name)? > 0 {
        unless_gone(object::bump_in_bulk(tx, Kind::User, uid).await)?;
    }
    Ok(())
}

/// Records that the directory of a renamed user has the new name.
pub async fn end_rename(tx: &mut ObservedTx, uid: &Uid, name: &UserName) -> Result<(), DbError> {
    execute!(tx, END_RENAME, uid, name)?;
    Ok(())
}

/// Creates an ordinary user with its container, in one transaction. Returns the container's generation.
pub async fn create(tx: &mut Tx, new: &NewUser, now: Timestamp) -> Result<Generation, DbError> {
    insert(
        tx,
        &new.uid,
        &new.name,
        Role::User,
        new.source,
        new.password_hash.as_ref(),
        now,
    )
    .await?;
    provide(tx, &[new], now).await
}

/// Gives new ordinary users what each has. Returns the generation of their containers.
async fn provide(tx: &mut Tx, users: &[&NewUser], now: Timestamp) -> Result<Generation, DbError> {
    let named = users.iter().map(|user| (&user.uid, user.name.as_str()));
    let named: Vec<_> = named.collect();
    for kind in [Kind::User, Kind::AgentConfig, Kind::SkillSet] {
        object::insert_many(tx, kind, &named, now).await?;
    }
    container::create_many(tx, users).await?;
    object::insert_many(tx, Kind::Container, &named, now).await
}

/// Creates ordinary users of a source with their containers: as [`create`] for each, in few statements. Whose name is taken, or
/// still being removed, is left out. Returns who was created.
pub(crate) async fn create_many<'a>(
    tx: &mut Tx,
    source: Source,
    users: &'a [NewUser],
    now: Timestamp,
) -> Result<Vec<&'a NewUser>, DbError> {
    meta::take_guard(tx, "names").await?;
    if auth_mode(tx).await? != source {
        return Err(DbError::WrongState("the authentication mode has changed"));
    }
    let previous = previous_names(tx).await?;
    let free = users
        .iter()
        .filter(|user| !previous.contains(&user.name.key()));
    let users: Vec<&NewUser> = free.collect();
    let role = Role::User;
    let hash = |user: &NewUser| {
        let hash = user.password_hash.as_ref();
        hash.map(|hash| hash.expose_secret().to_owned())
    };
    let inserted: Vec<Uid> = insert_rows!(
        tx,
        INSERT_FREE,
        users,
        |user| &user.uid,
        &user.name,
        user.name.key(),
        role,
        source,
        hash(user),
        now
    )?;
    execute!(tx, FORGET_TAKEN_NAMES)?;
    let inserted: BTreeSet<_> = inserted.into_iter().collect();
    let created = users.into_iter();
    let created = created.filter(|user| inserted.contains(&user.uid));
    let created: Vec<&NewUser> = created.collect();
    provide(tx, &created, now).await?;
    Ok(created)
}

/// Creates a superadmin.
pub async fn create_superadmin(
    tx: &mut Tx,
    name: &UserName,
    password_hash: &SecretString,
    now: Timestamp,
) -> Result<Uid, DbError> {
    let uid = Uid::random();
    insert(
        tx,
        &uid,
        name,
        Role::Superadmin,
        Source::Local,
        Some(password_hash),
        now,
    )
    .await?;
    Ok(uid)
}

/// Removes a superadmin, unless it is the last. Decided under a guard row, so that two concurrent
/// removals cannot take the last two.
pub async fn delete_superadmin(tx: &mut Tx, name: &UserName) -> Result<(), DbError> {
    meta::take_guard(tx, "superadmins").await?;
    let account = find(tx, name)
        .await?
        .filter(|account| account.role == Role::Superadmin)
        .ok_or(DbError::NotFound("superadmin"))?;
    if superadmin_count(tx).await? <= 1 {
        return Err(DbError::LastSuperadmin);
    }
    remove_row(tx, &account.uid).await
}

/// How many superadmins there are.
pub async fn superadmin_count(connection: &mut Connection) -> Result<i64, DbError> {
    scalar!(connection, COUNT_SUPERADMINS)
}

/// All superadmins.
pub async fn list_superadmins(connection: &mut Connection) -> Result<Vec<User>, DbError> {
    fetch_all!(connection, LIST_SUPERADMINS)
}

/// Asks for the removal of an ordinary user and everything that is theirs. Sessions end at once;
/// container and directory go when their reconcilers have cleaned up. Returns the user's generation.
pub async fn delete(tx: &mut Tx, uid: &Uid, now: Timestamp) -> Result<Generation, DbError> {
    // Memberships and bindings end: before any row is taken, as wherever they change.
    group::lock(tx).await?;
    let generation = object::delete(tx, Kind::User, uid, now).await?;
    unless_gone(object::delete(tx, Kind::Container, uid, now).await)?;
    agent_config::delete(tx, uid, now).await?;
    session::revoke_all(tx, uid, None).await?;
    // The next bearer of the name has none of them (L6).
    skill_set::delete(tx, uid, now).await?;
    group::forget_user(tx, uid).await?;
    Ok(generation)
}

/// Removes the last trace of a deleted user, if no finalizer is left. Returns whether it did.
pub async fn purge(tx: &mut ObservedTx, uid: &Uid) -> Result<bool, DbError> {
    if !object::purge_if_finalized(tx, Kind::User, uid).await? {
        return Ok(false);
    }
    agent_config::purge(tx, uid).await?;
    skill_set::purge(tx, uid).await?;
    remove_row(tx, uid).await?;
    Ok(true)
}

async fn remove_row(tx: &mut ObservedTx, uid: &Uid) -> Result<(), DbError> {
    execute!(tx, DELETE, uid)?;
    Ok(())
}

/// Sets the password and ends the account's sessions except `keep` (the caller's own).
pub async fn set_password(
    tx: &mut Tx,
    uid: &Uid,
    hash: &SecretString,
    keep: Option<i64>,
) -> Result<(), DbError> {
    execute!(tx, SET_PASSWORD, uid, hash.expose_secret())?;
    session::revoke_all(tx, uid, keep).await?;
    Ok(())
}

/// Sets the password if `old` is still the stored hash, and ends the account's sessions except
/// `keep`. `None` when the password was changed meanwhile, or else how many sessions ended.
pub async fn replace_password(
    tx: &mut Tx,
    uid: &Uid,
    old: &SecretString,
    new: &SecretString,
    keep: i64,
) -> Result<Option<u64>, DbError> {
    let (old, new) = (old.expose_secret(), new.expose_secret());
    if execute!(tx, REPLACE_PASSWORD, uid, old, new)? == 0 {
        return Ok(None);
    }
    session::revoke_all(tx, uid, Some(keep)).await.map(Some)
}

/// Notes a sign-in, and a new hash when the parameters of hashing changed.
pub async fn set_last_login(
    tx: &mut Tx,
    uid: &Uid,
    now: Timestamp,
    rehashed: Option<&SecretString>,
) -> Result<(), DbError> {
    execute!(tx, SET_LAST_LOGIN, uid, now)?;
    if let Some(hash) = rehashed {
        execute!(tx, SET_PASSWORD, uid, hash.expose_secret())?;
    }
    Ok(())
}

/// Allows or forbids signing in. Forbidding ends all sessions and stops the container. Returns the
/// container's generation.
pub async fn set_disabled(
    tx: &mut Tx,
    uid: &Uid,
    disabled: bool,
    expected: Option<Generation>,
) -> Result<Generation, DbError> {
    // Whoever takes many users at once takes this first: two that wait for each other's rows are one of them refused.
    group::lock(tx).await?;
    let generation = object::bump(tx, Kind::Container, uid, expected).await?;
    write_disabled(tx, uid, disabled).await?;
    Ok(generation)
}

/// The same without a new generation.
pub(super) async fn write_disabled(tx: &mut Tx, uid: &Uid, disabled: bool) -> Result<(), DbError> {
    execute!(tx, SET_DISABLED, uid, i64::from(disabled))?;
    if disabled {
        session::revoke_all(tx, uid, None).await?;
    }
    Ok(())
}

/// Records who has disabled an account, and when; nothing if it is enabled.
pub async fn record_disabling(tx: &mut Tx, uid: &Uid, by: SavedBy<'_>) -> Result<(), DbError> {
    execute!(tx, RECORD_DISABLING, uid, by.at, by.actor)?;
    Ok(())
}

/// Notes that somebody is missing from where users come from, or is back. Who is missing may not sign in, and the container
/// is stopped. Returns the container's generation.
pub(crate) async fn set_missing(
    tx: &mut Tx,
    uid: &Uid,
    missing: bool,
) -> Result<Generation, DbError> {
    let generation = object::bump(tx, Kind::Container, uid, None).await?;
    execute!(tx, SET_MISSING, uid, if missing { 2 } else { 0 })?;
    if missing {
        session::revoke_all(tx, uid, None).await?;
    }
    Ok(generation)
}

/// Gives a user another MCP token: the present one ends, and the agent's files get the new one. Returns the generation of what the
/// agent is configured with.
pub async fn rotate_mcp_token(
    tx: &mut Tx,
    uid: &Uid,
    expected: Option<Generation>,
) -> Result<Generation, DbError> {
    let generation = object::bump(tx, Kind::AgentConfig, uid, expected).await?;
    execute!(tx, ROTATE_MCP_TOKEN, uid)?;
    Ok(generation)
}

/// One user, for its reconciler.
pub async fn row(connection: &mut Connection, uid: &Uid) -> Result<Option<UserRow>, DbError> {
    fetch_optional!(connection, ROW, uid)
}

/// All users, for their reconciler, in one scan.
pub async fn rows(connection: &mut Connection) -> Result<Vec<UserRow>, DbError> {
    fetch_all!(connection, ROWS)
}
