//! What every save changed, sealed. Secrets are never kept: values are as documents show them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::FromRow;
use zeroize::Zeroizing;

use super::query::{Values, generation};
use super::sealing::{save_place, seal};
use super::{Changes, find, keys, masking};
use crate::adapter::{SecretPaths, store as adapters};
use crate::connection::Connection;
use crate::db::Tx;
use crate::error::DbError;
use crate::ids::Timestamp;
use crate::secrets::MasterKey;
use crate::statement::{execute, fetch_all, like_pattern, scalar, statements};

/// Revisions that are kept; each save forgets what is older.
pub const KEPT: i64 = 1000;
/// Bytes of changes that are kept; each save forgets what is older, but never itself.
pub const KEPT_BYTES: i64 = 64 * 1024 * 1024;

statements! {
    /// Records what a save changed.
    INSERT = "INSERT INTO config_history (revision, at, actor, keys, changes, sealed) VALUES ($1, $2, $3, $4, '[]', $5)";
    /// Forgets what is too old.
    PRUNE = "DELETE FROM config_history WHERE revision <= $1";
    /// Forgets what is too much.
    PRUNE_BYTES = "DELETE FROM config_history WHERE revision < $1 AND revision <= (SELECT max(sums.revision) FROM \
                   (SELECT revision, sum(octet_length(changes) + coalesce(octet_length(sealed), 0)) OVER (ORDER BY revision DESC) AS bytes FROM config_history) sums \
                   WHERE sums.bytes > $2)";
    /// One page, newest first; `$1` is a LIKE pattern on actor and keys.
    LIST = "SELECT revision, at, actor, changes, sealed FROM config_history WHERE lower(actor) LIKE $1 ESCAPE '!' OR keys LIKE $1 ESCAPE '!' \
            ORDER BY revision DESC LIMIT $2 OFFSET $3";
    /// How many there are that fit.
    COUNT = "SELECT count(*) FROM config_history WHERE lower(actor) LIKE $1 ESCAPE '!' OR keys LIKE $1 ESCAPE '!'";
    /// How many are newer than one.
    COUNT_AFTER = "SELECT count(*) FROM config_history WHERE revision > $1";
    /// What was changed after one, the newest first.
    AFTER = "SELECT revision, at, actor, changes, sealed FROM config_history WHERE revision > $1 AND revision <= $2 ORDER BY revision DESC";
}

/// Who saves, and when.
#[derive(Debug, Clone, Copy)]
pub struct SavedBy<'a> {
    /// As the audit trail names them.
    pub actor: &'a str,
    /// When.
    pub at: Timestamp,
}

impl SavedBy<'_> {
    /// A change that a synchronisation with the directory makes.
    pub(crate) fn directory(at: Timestamp) -> Self {
        Self {
            actor: "system:directory",
            at,
        }
    }
}

/// The change of one key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = ConfigChange)]
pub struct Changed {
    /// The key.
    #[schema(example = "image.tag")]
    pub key: String,
    /// Its value before, secrets masked; null stands for the default.
    pub old: Value,
    /// Its value after, secrets masked; null stands for the default.
    pub new: Value,
}

/// One save.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = ConfigRevision)]
pub struct Revision {
    /// The configuration's generation after it.
    #[schema(example = 3)]
    pub revision: i64,
    /// When.
    pub at: Timestamp,
    /// Who.
    #[schema(example = "admin")]
    pub actor: String,
    /// The keys it changed.
    pub changes: Vec<Changed>,
}

/// What is needed to read saves.
#[derive(Debug, Clone, Copy)]
pub struct Access<'a> {
    /// They are sealed.
    pub master_key: &'a MasterKey,
    /// What is secret by now is masked, although it was not when it was saved.
    pub secret_paths: &'a SecretPaths,
}

/// A row.
#[derive(FromRow)]
struct Row {
    revision: i64,
    at: Timestamp,
    actor: String,
    /// Of a replica of an earlier release, which does not seal it.
    changes: String,
    sealed: Option<Vec<u8>>,
}

impl Row {
    fn open(self, access: Access<'_>) -> Result<Revision, DbError> {
        let place = save_place(self.revision);
        let opened = match &self.sealed {
            None => Zeroizing::new(self.changes.into_bytes()),
            Some(sealed) => {
                let opened = access.master_key.open(&place, sealed);
                opened.map_err(|e| DbError::Sealed(format!("{place}: {e}")))?
            }
        };
        let mut changes: Vec<Changed> = serde_json::from_slice(&opened)
            .map_err(|e| DbError::Corrupt(format!("{place}: {e}")))?;
        for changed in &mut changes {
            if let Some(def) = find(&changed.key) {
                for value in [&mut changed.old, &mut changed.new] {
                    *value = masking::mask(def, value.take(), access.secret_paths);
                }
            }
        }
        Ok(Revision {
            revision: self.revision,
            at: self.at,
            actor: self.actor,
            changes,
        })
    }
}

/// What the active adapter stores as secrets. It is read only for what it matters to.
async fn secret_paths(tx: &mut Tx, changes: &Changes) -> Result<Arc<SecretPaths>, DbError> {
    if !changes.has(&keys::AGENT) {
        return Ok(Arc::default());
    }
    match adapters::active(tx).await {
        Ok((_, adapter)) => Ok(adapter.secret_paths),
        // Before the first start there is none.
        Err(DbError::NotFound(_)) => Ok(Arc::default()),
        Err(error) => Err(error),
    }
}

/// Records what a save changed, and forgets what is too old.
pub(super) async fn record(
    tx: &mut Tx,
    master_key: &MasterKey,
    revision: i64,
    stored: &Values,
    changes: &Changes,
    by: SavedBy<'_>,
) -> Result<(), DbError> {
    let paths = secret_paths(tx, changes).await?;
    let mut list = Vec::with_capacity(changes.0.len());
    for (key, new) in &changes.0 {
        // What is no key is not known to be no secret.
        let Some(def) = find(key) else { continue };
        let shown = |value: Option<&Value>| {
            value.map_or(Value::Null, |value| {
                masking::mask(def, value.clone(), &paths)
            })
        };
        list.push(Changed {
            key: (*key).to_owned(),
            old: shown(stored.get(*key)),
            new: shown(new.as_ref()),
        });
    }
    record_changes(tx, master_key, revision, list, by).await
}

/// Records changes as they are shown, and forgets what is too old.
pub(super) async fn record_changes(
    tx: &mut Tx,
    master_key: &MasterKey,
    revision: i64,
    list: Vec<Changed>,
    by: SavedBy<'_>,
) -> Result<(), DbError> {
    let keys: Vec<&str> = list.iter().map(|changed| changed.key.as_str()).collect();
    let text = serde_json::to_string(&list)?;
    let sealed = seal(master_key, &save_place(revision), &text)?;
    let keys = keys.join(",");
    execute!(tx, INSERT, revision, by.at, by.actor, keys, sealed)?;
    execute!(tx, PRUNE, revision.saturating_sub(KEPT))?;
    execute!(tx, PRUNE_BYTES, revision, KEPT_BYTES)?;
    Ok(())
}

/// Saves, newest first, one page, with the total. An empty `search` fits all; others are found in actors and
/// keys.
pub async fn list(
    connection: &mut Connection,
    access: Access<'_>,
    search: &str,
    limit: i64,
    offset: i64,
) -> Result<(Vec<Revision>, i64), DbError> {
    let pattern = like_pattern(search);
    let total = scalar!(connection, COUNT, &pattern)?;
    let rows: Vec<Row> = fetch_all!(connection, LIST, &pattern, limit, offset)?;
    let revisions: Result<_, _> = rows.into_iter().map(|row| row.open(access)).collect();
    Ok((revisions?, total))
}

/// How the configuration was after a save.
#[derive(Debug, Clone, PartialEq)]
pub enum Past {
    /// What each key held then that has changed since, secrets masked; null stands for the default.
    Known(BTreeMap<String, Value>),
    /// There was no such save yet.
    NotYet,
    /// Of a save after it is not known what it changed: it is too old.
    Forgotten,
}

/// How the configuration was after a save: what has changed since is undone, the newest first.
pub async fn at(
    connection: &mut Connection,
    access: Access<'_>,
    revision: i64,
) -> Result<Past, DbError> {
    let newest = generation(connection).await?;
    if revision > newest {
        return Ok(Past::NotYet);
    }
    let known: i64 = scalar!(connection, COUNT_AFTER, revision)?;
    if revision < 1 || known < newest - revision {
        return Ok(Past::Forgotten);
    }
    let mut past = BTreeMap::new();
    let mut upto = newest;
    while upto > revision {
        // A save may hold a megabyte: a few at a time.
        let from = upto.saturating_sub(STEP).max(revision);
        let rows: Vec<Row> = fetch_all!(connection, AFTER, from, upto)?;
        for row in rows {
            for changed in row.open(access)?.changes {
                past.insert(changed.key, changed.old);
            }
        }
        upto = from;
    }
    Ok(Past::Known(past))
}

/// Saves that are read at a time.
const STEP: i64 = 20;
