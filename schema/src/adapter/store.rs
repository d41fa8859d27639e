//! Which packages are known, which of them is in effect, and what is remembered of their source.
//!
//! Packages are kept by digest. Kept are the active one, the one before it, and the base: the one that the
//! service was started with. Whoever switches takes the guard, so that switches happen one after the other.

mod cache;
mod model;

use std::collections::BTreeMap;

use serde_json::Value;

pub use cache::{ActiveAdapter, AdapterCache};
pub use model::{AdapterFacts, AdapterState, KnownAdapter, Source};

use super::{Adapter, AdapterVersion};
use crate::config::history::SavedBy;
use crate::connection::Connection;
use crate::db::{ObservedTx, Tx};
use crate::error::{DbError, unless_gone};
use crate::ids::{Generation, Kind, Timestamp, Uid};
use crate::rollout::RolloutKind;
use crate::rollout::held::{self, Affected};
use crate::statement::{
    execute, fetch_all, fetch_one, fetch_optional, scalar, scalar_optional, statements,
};
use crate::{meta, object};

statements! {
    /// The state.
    STATE = "SELECT generation, active, previous, activated_at, refresh_token FROM adapter_state WHERE id = 1";
    /// How often the active adapter changed.
    GENERATION = "SELECT generation FROM adapter_state WHERE id = 1";
    /// The active package, with the generation it belongs to.
    ACTIVE = "SELECT s.generation, a.files FROM adapter_state s JOIN adapters a ON a.digest = s.active WHERE s.id = 1";
    /// The version of the active package.
    ACTIVE_VERSION = "SELECT a.version FROM adapter_state s JOIN adapters a ON a.digest = s.active WHERE s.id = 1";
    /// All packages that are known, without their files.
    KNOWN = "SELECT a.digest, a.version, a.source, a.added_at, CASE WHEN a.digest = s.active THEN 1 ELSE 0 END AS active, \
             CASE WHEN a.digest = s.previous THEN 1 ELSE 0 END AS previous \
             FROM adapters a CROSS JOIN adapter_state s ORDER BY a.added_at DESC, a.digest";
    /// The files of all packages that are known: three at most.
    FILES = "SELECT files FROM adapters";
    /// Keeps a package. One that is there already keeps its files, and is no longer the base when somebody
    /// brought it.
    PUT = "INSERT INTO adapters (digest, version, source, files, added_at) VALUES ($1, $2, $3, $4, $5) \
           ON CONFLICT (digest) DO UPDATE SET source = excluded.source WHERE excluded.source <> 'base'";
    /// Puts another package into effect.
    ACTIVATE = "UPDATE adapter_state SET generation = generation + 1, previous = active, active = $1, activated_at = $2 \
                WHERE id = 1 RETURNING generation";
    /// Puts another package into effect in the place of the active one.
    REPLACE = "UPDATE adapter_state SET generation = generation + 1, active = $1, activated_at = $2 WHERE id = 1 RETURNING generation";
    /// Forgets what is neither in effect, nor was before, nor is the base.
    PRUNE = "DELETE FROM adapters WHERE source <> 'base' \
             AND NOT EXISTS (SELECT 1 FROM adapter_state s WHERE s.active = adapters.digest OR s.previous = adapters.digest)";
    /// Forgets former bases.
    PRUNE_BASES = "DELETE FROM adapters WHERE source = 'base' AND digest <> $1 \
                   AND NOT EXISTS (SELECT 1 FROM adapter_state s WHERE s.active = adapters.digest OR s.previous = adapters.digest)";
    /// A new request to ask the source.
    REQUEST_REFRESH = "UPDATE adapter_state SET refresh_token = $1 WHERE id = 1";
    /// What is remembered of the source.
    FACTS = "SELECT source_url, etag, last_modified, seen_generation, offered, invalid, update_changes, checked_at, refresh_token FROM adapter_facts WHERE id = 1";
    /// Digest of the package of a source that came into effect last.
    INSTALLED = "SELECT installed FROM adapter_facts WHERE id = 1";
    /// Another one did.
    SET_INSTALLED = "UPDATE adapter_facts SET installed = $1 WHERE id = 1";
    /// Remembers something else of the source.
    SAVE_FACTS = "UPDATE adapter_facts SET source_url = $1, etag = $2, last_modified = $3, seen_generation = CAST($4 AS BIGINT), \
                  checked_at = CAST($5 AS BIGINT), refresh_token = $6, offered = $7, invalid = $8, update_changes = $9 WHERE id = 1";
}

/// The uid and name of the one adapter object.
pub const OBJECT_NAME: &str = "active";

/// The uid of the one adapter object.
pub fn object_uid() -> Uid {
    Uid::singleton(OBJECT_NAME)
}

/// What came of putting a package into effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activated {
    /// Generation of the active adapter.
    pub generation: i64,
    /// Another package is active than before.
    pub changed: bool,
    /// The rollout in which agents that are ready get it; `None` when there are none.
    pub rollout: Option<Uid>,
}

/// Why the active adapter cannot be rolled back.
pub const NOTHING_BEFORE: &str = "there is no previous adapter";

/// Which package is in effect, and what was asked for.
pub async fn state(connection: &mut Connection) -> Result<AdapterState, DbError> {
    fetch_one!(connection, STATE)
}

/// How often the active adapter changed.
pub async fn generation(connection: &mut Connection) -> Result<i64, DbError> {
    scalar!(connection, GENERATION)
}

/// The active adapter, with the generation it belongs to. The package is read off the async threads: it may
/// be large. Most callers want an [`AdapterCache`].
pub async fn active(connection: &mut Connection) -> Result<(i64, Adapter), DbError> {
    let row: Option<(i64, String)> = fetch_optional!(connection, ACTIVE)?;
    let (generation, files) = row.ok_or(DbError::NotFound("active adapter"))?;
    let corrupt = |problem: String| DbError::Corrupt(format!("active adapter: {problem}"));
    let read = tokio::task::spawn_blocking(move || Adapter::from_stored(&files)).await;
    let adapter = read
        .map_err(|e| corrupt(e.to_string()))?
        .map_err(|invalid| corrupt(invalid.brief()))?;
    Ok((generation, adapter))
}

/// All packages that are known, newest first.
pub async fn known(connection: &mut Connection) -> Result<Vec<KnownAdapter>, DbError> {
    fetch_all!(connection, KNOWN)
}

/// Names that the known packages give to agents' settings files, relative to the directory of an agent.
pub async fn settings_files(connection: &mut Connection) -> Result<Vec<String>, DbError> {
    let packages: Vec<(String,)> = fetch_all!(connection, FILES)?;
    let read = tokio::task::spawn_blocking(move || {
        let packages = packages.iter();
        packages
            .flat_map(|(files,)| name_settings_files(files))
            .collect()
    });
    read.await
        .map_err(|error| DbError::Corrupt(format!("adapters: {error}")))
}

fn name_settings_files(package: &str) -> Vec<String> {
    let files: BTreeMap<String, String> = serde_json::from_str(package).unwrap_or_default();
    let index = files.get("index.json").map(String::as_str);
    let index: Value = serde_json::from_str(index.unwrap_or_default()).unwrap_or_default();
    ["/agent/config_file", "/agent/security_file"]
        .into_iter()
        .filter_map(|place| index.pointer(place)?.as_str().map(str::to_owned))
        .collect()
}

/// Takes the switch for the rest of the transaction: whoever decides by what is in effect takes it first.
pub async fn lock(tx: &mut ObservedTx) -> Result<(), DbError> {
    meta::take_guard(tx, "adapter").await?;
    Ok(())
}

/// The generation of the adapter object. With `expected`, whoever switches learns that it is another one before
/// anything happens. Takes the switch.
///
/// # Errors
/// [`DbError::StaleGeneration`].
pub async fn object_generation(
    tx: &mut Tx,
    expected: Option<Generation>,
) -> Result<Generation, DbError> {
    lock(tx).await?;
    let object = object::get(tx, Kind::Adapter, &object_uid()).await?;
    // Before the first start there is no such object yet.
    let actual = object.map_or(Generation(0), |object| object.generation);
    match expected {
        Some(expected) if expected != actual => Err(DbError::StaleGeneration { actual: actual.0 }),
        _ => Ok(actual),
    }
}

async fn put(
    tx: &mut Tx,
    adapter: &Adapter,
    source: Source,
    now: Timestamp,
) -> Result<(), DbError> {
    let files = serde_json::to_string(adapter.files())?;
    execute!(
        tx,
        PUT,
        &adapter.digest,
        adapter.index.adapter_version.as_str(),
        source,
        files,
        now
    )?;
    Ok(())
}

/// Points to another package. Everything that is made by the adapter is reconciled again: whoever waits for
/// something else comes first.
async fn switch(
    tx: &mut Tx,
    statement: &'static str,
    digest: &str,
    by: SavedBy<'_>,
) -> Result<Activated, DbError> {
    let version = |known: Option<String>| known.unwrap_or_else(|| "none".to_owned());
    let from: Option<String> = scalar_optional!(tx, ACTIVE_VERSION)?;
    let generation: i64 = scalar!(tx, statement, digest, by.at)?;
    let to: Option<String> = scalar_optional!(tx, ACTIVE_VERSION)?;
    execute!(tx, PRUNE)?;
    // The package says to whom users' directories belong. A user comes before its container wherever both are changed; the guards
    // are taken in the order of all.
    meta::take_guard(tx, "rollouts").await?;
    object::bump_all(tx, Kind::User).await?;
    // A container comes before its files wherever both are changed, or two transactions could wait for each
    // other.
    let change = held::Change {
        kind: RolloutKind::Adapter,
        to: format!("adapter {}", version(to)),
        from: format!("adapter {}", version(from)),
        affected: Affected::ALL,
        kinds: &[Kind::Container, Kind::AgentConfig],
    };
    let rollout = held::change_in_steps(tx, &change, by).await?;
    // Before the first start there is no such object yet.
    unless_gone(object::bump(tx, Kind::Adapter, &object_uid(), None).await)?;
    Ok(Activated {
        generation,
        changed: true,
        rollout,
    })
}

/// Puts a package into effect that somebody brought. Nothing happens when it is in effect already.
pub async fn activate(
    tx: &mut Tx,
    adapter: &Adapter,
    source: Source,
    by: SavedBy<'_>,
) -> Result<Activated, DbError> {
    lock(tx).await?;
    put(tx, adapter, source, by.at).await?;
    let state = state(tx).await?;
    if state.active.as_ref() == Some(&adapter.digest) {
        return Ok(Activated {
            generation: state.generation,
            changed: false,
            rollout: None,
        });
    }
    switch(tx, ACTIVATE, &adapter.digest, by).await
}

/// What may become of a newer package that the source gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// It waits until somebody activates it.
    Manual,
    /// It comes into effect, unless somebody has left it.
    Automatic,
    /// Somebody asked for it: it comes into effect.
    Requested,
}

/// What came of a package that the source gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installed {
    /// It is in effect now.
    Newer,
    /// It is not newer than the one in effect.
    NotNewer,
    /// It is newer, and waits for its activation.
    Waits,
    /// It was in effect before, and somebody left it for the one that is.
    LeftBefore,
}

/// Puts a package of the source into effect if it is newer than the one in effect, and may come into effect.
pub async fn install(
    tx: &mut Tx,
    adapter: &Adapter,
    activation: Activation,
    by: SavedBy<'_>,
) -> Result<Installed, DbError> {
    lock(tx).await?;
    let known = known(tx).await?;
    let active = known.iter().find(|known| known.active);
    // A stored version went through the same checks; one that cannot be read any more is older than any.
    let in_effect = active.and_then(|active| active.version.parse::<AdapterVersion>().ok());
    if in_effect.is_some_and(|in_effect| adapter.index.adapter_version <= in_effect) {
        return Ok(Installed::NotNewer);
    }
    let previous = |known: &KnownAdapter| known.previous && known.digest == adapter.digest;
    // It may have been left long ago, for several others.
    let installed: Option<String> = scalar!(tx, INSTALLED)?;
    let left = installed.as_ref() == Some(&adapter.digest) || known.iter().any(previous);
    match activation {
        Activation::Requested => {}
        Activation::Manual | Activation::Automatic if left => return Ok(Installed::LeftBefore),
        Activation::Manual => return Ok(Installed::Waits),
        Activation::Automatic => {}
    }
    activate(tx, adapter, Source::Refresh, by).await?;
    execute!(tx, SET_INSTALLED, &adapter.digest)?;
    Ok(Installed::Newer)
}

/// Puts the package into effect that was before. Done twice, it goes back and forth.
///
/// # Errors
/// [`DbError::WrongState`] when there was none.
pub async fn roll_back(tx: &mut Tx, by: SavedBy<'_>) -> Result<Activated, DbError> {
    lock(tx).await?;
    let state = state(tx).await?;
    let previous = state.previous.ok_or(DbError::WrongState(NOTHING_BEFORE))?;
    switch(tx, ACTIVATE, &previous, by).await
}

/// Makes a package the base: it is in effect as long as nobody brought another one. Returns whether it was put
/// into effect now.
pub async fn ensure_base(tx: &mut Tx, adapter: &Adapter, by: SavedBy<'_>) -> Result<bool, DbError> {
    lock(tx).await?;
    put(tx, adapter, Source::Base, by.at).await?;
    let before = state(tx).await?;
    let known = known(tx).await?;
    let active = known.iter().find(|known| known.active);
    let outdated = active
        .is_none_or(|active| active.source == Source::Base && active.digest != adapter.digest);
    if outdated {
        // A former base is not something to go back to: the next start would bring this one again.
        let statement = match before.previous.as_ref() == Some(&adapter.digest) {
            true => ACTIVATE,
            false => REPLACE,
        };
        switch(tx, statement, &adapter.digest, by).await?;
    }
    execute!(tx, PRUNE_BASES, &adapter.digest)?;
    if object::get(tx, Kind::Adapter, &object_uid())
        .await?
        .is_none()
    {
        object::insert(tx, Kind::Adapter, &object_uid(), OBJECT_NAME, by.at).await?;
    }
    Ok(outdated)
}

/// Asks to read the source now, known by its token. Returns the generation of the adapter object.
pub async fn request_refresh(
    tx: &mut Tx,
    token: &str,
    expected: Option<Generation>,
) -> Result<Generation, DbError> {
    // Whoever switches changes the state before the object: the guard keeps the two apart.
    lock(tx).await?;
    let generation = object::bump(tx, Kind::Adapter, &object_uid(), expected).await?;
    execute!(tx, REQUEST_REFRESH, token)?;
    Ok(generation)
}

/// What the reconciler remembers of the source.
pub async fn facts(connection: &mut Connection) -> Result<AdapterFacts, DbError> {
    fetch_one!(connection, FACTS)
}

/// Saves what the reconciler remembers of the source.
pub async fn save_facts(tx: &mut ObservedTx, facts: &AdapterFacts) -> Result<(), DbError> {
    execute!(
        tx,
        SAVE_FACTS,
        &facts.source_url,
        &facts.etag,
        &facts.last_modified,
        facts.seen_generation,
        facts.checked_at,
        &facts.refresh_token,
        &facts.offered,
        &facts.invalid,
        &facts.update_changes
    )?;
    Ok(())
}
