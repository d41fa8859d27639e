//! Flags of `serve` that reach agents. They are part of the effective configuration: a change by the process that leads is a revision,
//! and reaches agents that run in steps.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::history::{self, Changed, SavedBy};
use super::query::{bump_generation, generation, lock};
use crate::connection::Connection;
use crate::db::Tx;
use crate::error::DbError;
use crate::ids::{Kind, Uid};
use crate::meta;
use crate::rollout::RolloutKind;
use crate::rollout::held::{self, Affected};
use crate::secrets::MasterKey;

/// Name of the fact that holds the flags that agents have.
const FACT: &str = "agent_flags";
/// Flags that agents' files or containers follow from. Others are compared only.
const REACHING: [&str; 3] = ["agent-listen", "engine-data-dir", "engine-options"];
/// Longest text of a flag that is compared, in characters.
const LONGEST: usize = 300;

/// Flags by name, such as `agent-listen`, each with its effective value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentFlags(BTreeMap<String, String>);

impl AgentFlags {
    /// Flags with these values.
    pub fn new<const N: usize>(flags: [(&str, String); N]) -> Self {
        let cut = |text: String| text.chars().take(LONGEST).collect();
        Self(
            flags
                .map(|(name, value)| (name.to_owned(), cut(value)))
                .into(),
        )
    }

    /// Reads flags from a text of [`Self::to_text`]; none from any other text.
    pub fn from_text(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap_or_default())
    }

    /// Writes the flags as a JSON object.
    pub fn to_text(&self) -> String {
        Value::from_iter(self.0.clone()).to_string()
    }

    /// Lists flags that `other` has with another value: name, value here, value there. A flag that only one of them has is of another
    /// release.
    pub fn differences<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
        self.0.iter().filter_map(|(name, value)| {
            let theirs = other.0.get(name)?;
            (theirs != value).then_some((name.as_str(), value.as_str(), theirs.as_str()))
        })
    }

    /// Lists flags and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

/// Makes a short digest of the file that a flag names.
pub fn digest(file: &[u8]) -> String {
    let mut digest = hex::encode(Sha256::digest(file));
    digest.truncate(12);
    digest
}

/// A change of the flags that reach agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagsChanged {
    /// The changed flags, each in words.
    pub what: Vec<String>,
    /// The rollout in which agents that are ready get them; `None` when there are none.
    pub rollout: Option<Uid>,
}

/// Reads the flags that agents have; `None` before a process of this release has led.
pub async fn read(connection: &mut Connection) -> Result<Option<AgentFlags>, DbError> {
    let text = meta::get(connection, FACT).await?;
    Ok(text.map(|text| AgentFlags::from_text(&text)))
}

/// Records the flags of the process that leads. Agents that are ready get a change of those that reach them in steps, all others at once;
/// the first record changes nothing.
pub async fn apply(
    tx: &mut Tx,
    master_key: &MasterKey,
    flags: &AgentFlags,
    by: SavedBy<'_>,
) -> Result<Option<FlagsChanged>, DbError> {
    let former = read(tx).await?;
    if former.as_ref() == Some(flags) {
        return Ok(None);
    }
    lock(tx).await?;
    meta::remove(tx, FACT).await?;
    meta::ensure(tx, FACT, &flags.to_text()).await?;
    let former = former.unwrap_or_default();
    let reaching: Vec<_> = former
        .differences(flags)
        .filter(|(name, ..)| REACHING.contains(name))
        .collect();
    if reaching.is_empty() {
        return Ok(None);
    }
    let changes = reaching.iter().map(|(name, old, new)| Changed {
        key: format!("serve.{name}"),
        old: Value::from(*old),
        new: Value::from(*new),
    });
    let actual = generation(tx).await?;
    let new = bump_generation(tx).await?;
    history::record_changes(tx, master_key, new, changes.collect(), by).await?;
    let change = held::Change {
        kind: RolloutKind::Config,
        to: format!("configuration {new}"),
        from: format!("configuration {actual}"),
        affected: Affected::ALL,
        kinds: &[Kind::Container, Kind::AgentConfig],
    };
    let rollout = held::change_in_steps(tx, &change, by).await?;
    tx.ring_on_commit();
    let what = reaching
        .iter()
        .map(|(name, old, new)| format!("--{name} is {new}, was {old}"));
    Ok(Some(FlagsChanged {
        what: what.collect(),
        rollout,
    }))
}
