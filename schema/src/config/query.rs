//! Statements on configuration. What the keys are and mean is in [`keys`](super::keys).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::history::{self, SavedBy};
use super::keys::container::{CPU_LIMIT, MEMORY_LIMIT_MB};
use super::keys::mcp::POLICY;
use super::keys::skills::DEFAULTS;
use super::sealing::{seal, value_place};
use super::{Changes, Effect, KeyDef, find};
use crate::connection::Connection;
use crate::db::Tx;
use crate::error::{DbError, unless_gone};
use crate::ids::{Kind, Uid, UserName};
use crate::meta;
use crate::object;
use crate::rollout::RolloutKind;
use crate::rollout::held::{self, Affected};
use crate::secrets::MasterKey;
use crate::skill::{self, impact::Impact};
use crate::statement::{execute, fetch_all, scalar, statements};

statements! {
    /// All keys that have a value.
    ALL = "SELECT key, value, sealed FROM config_values ORDER BY key";
    /// How often configuration changed.
    GENERATION = "SELECT generation FROM config_state WHERE id = 1";
    /// One more change.
    BUMP = "UPDATE config_state SET generation = generation + 1 WHERE id = 1 RETURNING generation";
    /// Gives a key a value.
    PUT = "INSERT INTO config_values (key, value, sealed) VALUES ($1, $2, $3) \
           ON CONFLICT (key) DO UPDATE SET value = excluded.value, sealed = excluded.sealed";
    /// Returns a key to its default.
    RESET = "DELETE FROM config_values WHERE key = $1";
}

/// Keys with a value, secrets opened.
pub type Values = BTreeMap<String, Value>;

/// The name of the one engine, and its uid.
pub const ENGINE_NAME: &str = "local";

/// The uid of the one engine object.
pub fn engine_uid() -> Uid {
    Uid::singleton(ENGINE_NAME)
}

/// Reads all stored values and the generation they belong to.
pub async fn load(
    connection: &mut Connection,
    master_key: &MasterKey,
) -> Result<(Values, i64), DbError> {
    let generation = generation(connection).await?;
    let rows: Vec<(String, Option<String>, Option<Vec<u8>>)> = fetch_all!(connection, ALL)?;
    let mut values = Values::new();
    for (key, plain, sealed) in rows {
        let corrupt = |e: serde_json::Error| DbError::Corrupt(format!("{key}: {e}"));
        let value = match (plain, sealed) {
            (_, Some(sealed)) => {
                let text = master_key
                    .open(&value_place(&key), &sealed)
                    .map_err(|e| DbError::Sealed(format!("{key}: {e}")))?;
                serde_json::from_slice(&text).map_err(corrupt)?
            }
            (Some(text), None) => serde_json::from_str(&text).map_err(corrupt)?,
            (None, None) => continue,
        };
        values.insert(key, value);
    }
    Ok((values, generation))
}

/// How often configuration changed.
pub async fn generation(connection: &mut Connection) -> Result<i64, DbError> {
    scalar!(connection, GENERATION)
}

/// Counts one more change. Returns the new generation.
pub(super) async fn bump_generation(tx: &mut Tx) -> Result<i64, DbError> {
    scalar!(tx, BUMP)
}

/// Takes the configuration for writing: a second writer waits here, so that a change computed from
/// what [`load`] gives afterwards cannot lose another's.
pub async fn lock(tx: &mut Tx) -> Result<(), DbError> {
    meta::take_guard(tx, "config").await?;
    Ok(())
}

/// What was saved.
#[derive(Debug)]
pub struct Saved {
    /// The new generation, or the old one when there was nothing to change.
    pub generation: i64,
    /// What it means for the skills that users get.
    pub skills: Impact,
    /// The rollout in which agents that are ready get it; `None` when there are none.
    pub rollout: Option<Uid>,
}

/// Saves changes, records them in the history and bumps the objects whose desired state they are part of.
///
/// # Errors
/// [`DbError::StaleGeneration`]; [`DbError::UnknownSkills`] for `skills.defaults`.
pub async fn save(
    tx: &mut Tx,
    master_key: &MasterKey,
    changes: &Changes,
    expected: Option<i64>,
    by: SavedBy<'_>,
) -> Result<Saved, DbError> {
    let (stored, actual) = load(tx, master_key).await?;
    if expected.is_some_and(|expected| expected != actual) {
        return Err(DbError::StaleGeneration { actual });
    }
    if changes.0.is_empty() {
        return Ok(Saved {
            generation: actual,
            skills: Impact::default(),
            rollout: None,
        });
    }
    for (key, value) in &changes.0 {
        match value {
            None => {
                execute!(tx, RESET, *key)?;
            }
            Some(value) => {
                let text = value.to_string();
                let (plain, sealed) = if find(key).is_none_or(KeyDef::is_sealed) {
                    (None, Some(seal(master_key, &value_place(key), &text)?))
                } else {
                    (Some(text), None)
                };
                execute!(tx, PUT, *key, plain, sealed)?;
            }
        }
    }
    let generation = bump_generation(tx).await?;
    history::record(tx, master_key, generation, &stored, changes, by).await?;
    let rollout = match affected(changes) {
        Some(affected) => {
            let change = held::Change {
                kind: RolloutKind::Config,
                to: format!("configuration {generation}"),
                from: format!("configuration {actual}"),
                affected,
                kinds: &kinds_bumped(changes),
            };
            held::change_in_steps(tx, &change, by).await?
        }
        None => None,
    };
    let skills = match changes.get(&DEFAULTS) {
        Some(names) => skill::set_defaults(tx, &names).await?,
        None => Impact::default(),
    };
    for (kind, uid, _) in singles_touched(changes) {
        // Before the first start there is no such object yet; it begins with what is saved.
        unless_gone(object::bump(tx, kind, &uid, None).await)?;
    }
    tx.ring_on_commit();
    Ok(Saved {
        generation,
        skills,
        rollout,
    })
}

/// Gives the rules that `mcp.policy` has for a user the user's new name, in place of those that there are for that name. The
/// configuration must have been [locked](lock).
pub(crate) async fn rename_in_policy(
    tx: &mut Tx,
    master_key: &MasterKey,
    before: &UserName,
    name: &UserName,
    by: SavedBy<'_>,
) -> Result<(), DbError> {
    change_policy(tx, master_key, by, |users| {
        let place = |users: &Map<String, Value>, name: &UserName| {
            let mut names = users.keys();
            names.find(|it| it.to_lowercase() == name.key()).cloned()
        };
        let Some(rules) = place(users, before).and_then(|it| users.remove(&it)) else {
            return;
        };
        if let Some(other) = place(users, name) {
            users.remove(&other);
        }
        users.insert(name.to_string(), rules);
    })
    .await
}

/// Removes the rules that `mcp.policy` has for these users. The configuration must have been [locked](lock).
pub(crate) async fn remove_from_policy(
    tx: &mut Tx,
    master_key: &MasterKey,
    names: &[&UserName],
    by: SavedBy<'_>,
) -> Result<(), DbError> {
    let keys: BTreeSet<String> = names.iter().map(|name| name.key()).collect();
    let remove = |users: &mut Map<String, Value>| {
        users.retain(|name, _| !keys.contains(&name.to_lowercase()));
    };
    change_policy(tx, master_key, by, remove).await
}

/// Changes the rules that `mcp.policy` has for users, by name; nothing is saved if they stay as they are.
async fn change_policy(
    tx: &mut Tx,
    master_key: &MasterKey,
    by: SavedBy<'_>,
    change: impl FnOnce(&mut Map<String, Value>) + Send,
) -> Result<(), DbError> {
    let key = POLICY.row.key;
    let (mut stored, _) = load(tx, master_key).await?;
    let Some(mut policy) = stored.remove(key) else {
        return Ok(());
    };
    let Some(users) = policy.get_mut("users").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    let before = users.clone();
    change(users);
    if *users == before {
        return Ok(());
    }
    let changes = Changes([(key, Some(policy))].into());
    save(tx, master_key, &changes, None, by).await.map(drop)
}

/// The kinds of which all objects were touched by these changes.
pub fn kinds_touched(changes: &Changes) -> Vec<Kind> {
    let (containers, files) = (Effect::Containers, Effect::Files);
    let mut kinds = Vec::new();
    if changes.have(files) {
        kinds.push(Kind::AgentConfig);
    }
    // An agent runs with its files.
    if changes.have(containers) || changes.have(files) {
        kinds.push(Kind::Container);
    }
    if changes.has(&DEFAULTS) {
        kinds.push(Kind::SkillSet);
    }
    kinds
}

/// The single objects that were touched by these changes.
pub fn singles_touched(changes: &Changes) -> impl Iterator<Item = (Kind, Uid, &'static str)> {
    Kind::singles().filter(|(kind, ..)| changes.have(Effect::Object(*kind)))
}

/// The kinds of which a save bumps objects, containers before their files.
pub fn kinds_bumped(changes: &Changes) -> Vec<Kind> {
    let effects = [
        (Effect::Containers, Kind::Container),
        (Effect::Files, Kind::AgentConfig),
    ];
    let effects = effects
        .into_iter()
        .filter(|(effect, _)| changes.have(*effect));
    effects.map(|(_, kind)| kind).collect()
}

/// The agents that changes recreate: those made with a changed value, and all of them when the agents' files follow from
/// one. (An agent whose files come out unchanged keeps running.)
pub fn affected(changes: &Changes) -> Option<Affected> {
    let (cpu, memory) = (changes.has(&CPU_LIMIT), changes.has(&MEMORY_LIMIT_MB));
    let others = changes.with(Effect::Containers).count() > usize::from(cpu) + usize::from(memory);
    let all = others || changes.have(Effect::Files);
    (all || cpu || memory).then_some(Affected { all, cpu, memory })
}

/// Counts the containers that changes would recreate, and names the first of their users, at most `named`.
pub async fn restarts(
    connection: &mut Connection,
    changes: &Changes,
    named: i64,
) -> Result<(i64, Vec<String>), DbError> {
    let Some(affected) = affected(changes) else {
        return Ok((0, Vec::new()));
    };
    let count = held::count_affected(connection, affected).await?;
    let names = held::name_affected(connection, affected, named).await?;
    Ok((count, names))
}
