//! Statements on users' agent configuration.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use zeroize::Zeroizing;

use super::kept::FORGET_KEPT;
use super::model::{AgentConfigFacts, AgentConfigRow, Cookie, UserValues, Values};
use crate::adapter::Applied;
use crate::connection::Connection;
use crate::db::{ObservedTx, Tx};
use crate::error::{DbError, unless_gone};
use crate::home::HomeId;
use crate::ids::{Generation, Kind, Timestamp, Uid};
use crate::object;
use crate::secrets::MasterKey;
use crate::statement::{
    execute, fetch_all, fetch_optional, scalar, scalar_optional, scalars, statements,
};

/// Columns of a user's agent configuration.
macro_rules! select_config {
    ($rest:literal) => {
        concat!(
            "SELECT o.uid, u.name, o.generation, o.deleted_at, c.image_ref, u.mcp_token_version, g.generation AS config_generation, \
             a.generation AS adapter_generation, coalesce(f.generation, 0) AS facts_generation, f.refused, f.applied, f.restart_digest, f.home, coalesce(f.put_back, 0) AS put_back, h.rollout_uid AS held_by \
             FROM objects o JOIN users u ON u.uid = o.uid CROSS JOIN config_state g CROSS JOIN adapter_state a \
             LEFT JOIN containers c ON c.uid = o.uid LEFT JOIN agent_config_facts f ON f.uid = o.uid \
             LEFT JOIN objects oc ON oc.kind = 'container' AND oc.uid = o.uid \
             LEFT JOIN held_agents h ON h.uid = o.uid AND h.container_generation = oc.generation AND h.files_generation = o.generation \
             WHERE o.kind = 'agent-config' ",
            $rest
        )
    };
}

statements! {
    /// Reads one.
    GET = select_config!("AND o.uid = $1");
    /// Reads all, in one scan.
    ALL = select_config!("ORDER BY o.uid");
    /// A user's values of all channels.
    CHANNELS = "SELECT channel, sealed FROM channel_values WHERE uid = $1 ORDER BY channel";
    /// Channels of which a user has set something.
    CHANNEL_NAMES = "SELECT channel FROM channel_values WHERE uid = $1 ORDER BY channel";
    /// A user's values of one channel.
    CHANNEL = "SELECT channel, sealed FROM channel_values WHERE uid = $1 AND channel = $2";
    /// Sets a user's values of one channel.
    PUT_CHANNEL = "INSERT INTO channel_values (uid, channel, sealed, updated_at) VALUES ($1, $2, $3, $4) \
                   ON CONFLICT (uid, channel) DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at";
    /// Forgets a user's values of all channels.
    FORGET_CHANNELS = "DELETE FROM channel_values WHERE uid = $1";
    /// A user's cookies.
    COOKIES = "SELECT domain, sealed, updated_at FROM cookies WHERE uid = $1 ORDER BY domain";
    /// Domains a user has cookies of.
    COOKIE_DOMAINS = "SELECT domain, updated_at FROM cookies WHERE uid = $1 ORDER BY domain";
    /// Sets a user's cookies of one domain.
    PUT_COOKIE = "INSERT INTO cookies (uid, domain, sealed, updated_at) VALUES ($1, $2, $3, $4) \
                  ON CONFLICT (uid, domain) DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at";
    /// Whether a user has cookies of one domain.
    HAS_COOKIE = "SELECT count(*) FROM cookies WHERE uid = $1 AND domain = $2";
    /// Forgets a user's cookies of one domain.
    DELETE_COOKIE = "DELETE FROM cookies WHERE uid = $1 AND domain = $2";
    /// Forgets all of a user's cookies.
    FORGET_COOKIES = "DELETE FROM cookies WHERE uid = $1";
    /// What the reconciler remembers; nothing happens when the account is gone.
    SAVE_FACTS = "INSERT INTO agent_config_facts (uid, generation, refused, applied, restart_digest, home, put_back) \
                  SELECT uid, CAST($2 AS BIGINT), $3, $4, $5, $6, CAST($7 AS BIGINT) FROM users WHERE uid = $1 \
                  ON CONFLICT (uid) DO UPDATE SET generation = excluded.generation, refused = excluded.refused, \
                  applied = excluded.applied, restart_digest = excluded.restart_digest, home = excluded.home, \
                  put_back = excluded.put_back \
                  WHERE agent_config_facts.generation <= excluded.generation";
    /// What the service has set in a user's files.
    APPLIED = "SELECT applied FROM agent_config_facts WHERE uid = $1";
    /// The digest that is remembered.
    RESTART_DIGEST = "SELECT restart_digest FROM agent_config_facts WHERE uid = $1";
    /// The directory that is remembered.
    HOME = "SELECT home FROM agent_config_facts WHERE uid = $1";
    /// Whether the files were last changed together with many others'.
    IN_BULK = "SELECT CASE WHEN bulk_generation = generation THEN 1 ELSE 0 END FROM objects WHERE kind = 'agent-config' AND uid = $1";
}

fn channel_context(uid: &Uid, channel: &str) -> String {
    format!("channel_values/{uid}/{channel}")
}

fn cookie_context(uid: &Uid, domain: &str) -> String {
    format!("cookies/{uid}/{domain}")
}

pub(super) fn open(
    key: &MasterKey,
    context: &str,
    sealed: &[u8],
) -> Result<Zeroizing<Vec<u8>>, DbError> {
    key.open(context, sealed)
        .map_err(|e| DbError::Sealed(format!("{context}: {e}")))
}

pub(super) fn seal(key: &MasterKey, context: &str, text: &[u8]) -> Result<Vec<u8>, DbError> {
    key.seal(context, text)
        .map_err(|e| DbError::Sealed(format!("{context}: {e}")))
}

/// Asks for the removal of a user's agent-config object; what the user set is forgotten at once.
pub(crate) async fn delete(tx: &mut Tx, uid: &Uid, now: Timestamp) -> Result<(), DbError> {
    // The object comes first, as wherever what a user has set changes.
    unless_gone(object::delete(tx, Kind::AgentConfig, uid, now).await)?;
    for statement in [FORGET_CHANNELS, FORGET_COOKIES, FORGET_KEPT] {
        execute!(tx, statement, uid)?;
    }
    Ok(())
}

/// Removes a deleted user's agent-config object. It has nothing to clean up beside the user's directory, so nobody
/// waits for it.
pub(crate) async fn purge(tx: &mut ObservedTx, uid: &Uid) -> Result<bool, DbError> {
    object::purge_if_finalized(tx, Kind::AgentConfig, uid).await
}

/// Reads one user's.
pub async fn get(
    connection: &mut Connection,
    uid: &Uid,
) -> Result<Option<AgentConfigRow>, DbError> {
    fetch_optional!(connection, GET, uid)
}

/// Reads all, in one scan.
pub async fn all(connection: &mut Connection) -> Result<Vec<AgentConfigRow>, DbError> {
    fetch_all!(connection, ALL)
}

fn channel(
    key: &MasterKey,
    uid: &Uid,
    channel: &str,
    sealed: &[u8],
) -> Result<BTreeMap<String, Value>, DbError> {
    let context = channel_context(uid, channel);
    let text = open(key, &context, sealed)?;
    serde_json::from_slice(&text).map_err(|e| DbError::Corrupt(format!("{context}: {e}")))
}

/// Everything a user has set, opened.
pub async fn values(
    connection: &mut Connection,
    key: &MasterKey,
    uid: &Uid,
) -> Result<UserValues, DbError> {
    let rows: Vec<(String, Vec<u8>)> = fetch_all!(connection, CHANNELS, uid)?;
    let mut channels = Values::new();
    for (name, sealed) in rows {
        let opened = channel(key, uid, &name, &sealed)?;
        channels.insert(name, opened);
    }
    let cookies = cookies(connection, key, uid).await?.into_iter();
    Ok(UserValues {
        channels,
        cookies: cookies
            .map(|cookie| (cookie.domain, cookie.value.expose_secret().to_owned()))
            .collect(),
    })
}

/// The token that the chat of a user's agent takes; `None` while the account is being removed or gone. It belongs in
/// no answer.
pub async fn chat_token(
    connection: &mut Connection,
    key: &MasterKey,
    uid: &Uid,
) -> Result<Option<SecretString>, DbError> {
    let row = get(connection, uid).await?;
    let present = row.filter(|row| row.deleted_at.is_none());
    Ok(present.map(|row| row.chat_token(key)))
}

/// Names of the channels that a user has set.
pub async fn set_channels(connection: &mut Connection, uid: &Uid) -> Result<Vec<String>, DbError> {
    scalars!(connection, CHANNEL_NAMES, uid)
}

/// What a user has set for one channel, opened; empty when there is nothing.
pub async fn channel_values(
    connection: &mut Connection,
    key: &MasterKey,
    uid: &Uid,
    name: &str,
) -> Result<BTreeMap<String, Value>, DbError> {
    let row: Option<(String, Vec<u8>)> = fetch_optional!(connection, CHANNEL, uid, name)?;
    match row {
        Some((name, sealed)) => channel(key, uid, &name, &sealed),
        None => Ok(BTreeMap::new()),
    }
}

/// Sets what a user has set for one channel, as a whole. Whoever changes a part reads it in the same
/// transaction, after [`object::bump`] has taken the user's agent-config object.
pub async fn set_channel_values(
    tx: &mut Tx,
    key: &MasterKey,
    uid: &Uid,
    name: &str,
    values: &BTreeMap<String, Value>,
    now: Timestamp,
) -> Result<(), DbError> {
    let context = channel_context(uid, name);
    let text = Zeroizing::new(serde_json::to_vec(values)?);
    execute!(tx, PUT_CHANNEL, uid, name, seal(key, &context, &text)?, now)?;
    Ok(())
}

/// A user's cookies, opened.
pub async fn cookies(
    connection: &mut Connection,
    key: &MasterKey,
    uid: &Uid,
) -> Result<Vec<Cookie>, DbError> {
    let rows: Vec<(String, Vec<u8>, Timestamp)> = fetch_all!(connection, COOKIES, uid)?;
    let mut cookies = Vec::with_capacity(rows.len());
    for (domain, sealed, updated_at) in rows {
        let context = cookie_context(uid, &domain);
        let text = open(key, &context, &sealed)?;
        let value =
            std::str::from_utf8(&text).map_err(|e| DbError::Corrupt(format!("{context}: {e}")))?;
        cookies.push(Cookie {
            domain,
            updated_at,
            value: SecretString::from(value),
        });
    }
    Ok(cookies)
}

/// Domains a user has cookies of, and when they were last stored.
pub async fn list_cookies(
    connection: &mut Connection,
    uid: &Uid,
) -> Result<Vec<(String, Timestamp)>, DbError> {
    fetch_all!(connection, COOKIE_DOMAINS, uid)
}

/// Stores a user's cookies of one domain and bumps the agent-config object. Returns its generation.
pub async fn set_cookies(
    tx: &mut Tx,
    key: &MasterKey,
    uid: &Uid,
    domain: &str,
    value: &SecretString,
    now: Timestamp,
) -> Result<Generation, DbError> {
    let generation = object::bump(tx, Kind::AgentConfig, uid, None).await?;
    let context = cookie_context(uid, domain);
    execute!(
        tx,
        PUT_COOKIE,
        uid,
        domain,
        seal(key, &context, value.expose_secret().as_bytes())?,
        now
    )?;
    Ok(generation)
}

/// Forgets a user's cookies of one domain. `None` when there were none; then nothing is changed, or the caller
/// leaves the transaction, because another one was faster.
pub async fn delete_cookies(
    tx: &mut Tx,
    uid: &Uid,
    domain: &str,
) -> Result<Option<Generation>, DbError> {
    let there: i64 = scalar!(tx, HAS_COOKIE, uid, domain)?;
    if there == 0 {
        return Ok(None);
    }
    let generation = object::bump(tx, Kind::AgentConfig, uid, None).await?;
    let deleted = execute!(tx, DELETE_COOKIE, uid, domain)?;
    Ok((deleted > 0).then_some(generation))
}

/// What the service has set in a user's files; `None` when nothing was written yet.
pub async fn applied(connection: &mut Connection, uid: &Uid) -> Result<Option<Applied>, DbError> {
    let applied: Option<Option<Applied>> = scalar_optional!(connection, APPLIED, uid)?;
    Ok(applied.flatten())
}

/// Saves what the reconciler remembers, and bumps the container when what a running agent must be restarted
/// for has changed, or when the files are in another directory than before, in the same transaction. Nothing happens when the account is gone. Returns whether the
/// container was bumped.
pub async fn save_facts(
    tx: &mut ObservedTx,
    uid: &Uid,
    facts: &AgentConfigFacts,
) -> Result<bool, DbError> {
    let before: Option<Option<String>> = scalar_optional!(tx, RESTART_DIGEST, uid)?;
    let home: Option<Option<HomeId>> = scalar_optional!(tx, HOME, uid)?;
    let applied = facts.applied.as_ref().map(serde_json::to_string);
    let saved = execute!(
        tx,
        SAVE_FACTS,
        uid,
        facts.generation,
        facts.refused,
        applied.transpose()?,
        &facts.restart_digest,
        &facts.home,
        i64::from(facts.put_back)
    )?;
    let moved = home.flatten().is_some_and(|home| facts.home != Some(home));
    let changed = moved || before.flatten() != facts.restart_digest;
    if saved == 0 || !changed {
        return Ok(false);
    }
    // Ten thousand restarts of one change stand behind the one that somebody waits for.
    let in_bulk: Option<i64> = scalar_optional!(tx, IN_BULK, uid)?;
    let bumped = if in_bulk == Some(1) {
        object::bump_in_bulk(tx, Kind::Container, uid).await
    } else {
        object::bump(tx, Kind::Container, uid, None).await
    };
    Ok(unless_gone(bumped)?.is_some())
}
