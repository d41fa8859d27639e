//! What goes into agents' files, in memory.

use std::collections::BTreeMap;

use schema::adapter::Applied;
use schema::agent_config::{AgentConfigFacts, AgentConfigRow, KeptFiles, UserValues};
use schema::container::AgentFiles;
use schema::error::DbError;
use schema::ids::{Generation, Kind, Uid};
use serde_json::Value;

use super::MemoryStore;
use super::tables::Tables;

/// What goes into one user's files, and what is remembered of them.
#[derive(Debug, Default)]
pub(super) struct AgentConfig {
    values: UserValues,
    /// How often the user's MCP token was recreated; its version is one more.
    token_changes: i64,
    facts: Option<AgentConfigFacts>,
    kept: Option<KeptFiles>,
}

impl Tables {
    pub(super) fn create_config(&mut self, uid: &Uid) {
        self.create(Kind::AgentConfig, uid);
        self.agent_configs
            .insert(uid.clone(), AgentConfig::default());
    }

    /// What a user has set is forgotten as soon as the account is going.
    pub(super) fn forget_values(&mut self, uid: &Uid) {
        if let Some(config) = self.agent_configs.get_mut(uid) {
            config.values = UserValues::default();
            config.kept = None;
        }
    }

    pub(super) fn config_row(&self, uid: &Uid) -> Option<AgentConfigRow> {
        let object = self.object(Kind::AgentConfig, uid)?;
        let account = self.accounts.get(uid)?;
        let config = self.agent_configs.get(uid)?;
        Some(AgentConfigRow {
            uid: uid.clone(),
            name: account.name.clone(),
            generation: object.generation,
            deleted_at: object.deleted_at,
            image_ref: self.specs.get(uid).map(|spec| spec.image_ref.clone()),
            mcp_token_version: config.token_changes + 1,
            config_generation: self.config_generation(),
            adapter_generation: self.adapter_generation(),
            held_by: self.held_by(uid),
            facts: config.facts.clone().unwrap_or_default(),
        })
    }

    pub(super) fn config_rows(&self) -> Vec<AgentConfigRow> {
        let uids = self.agent_configs.keys();
        uids.filter_map(|uid| self.config_row(uid)).collect()
    }

    pub(super) fn user_values(&self, uid: &Uid) -> UserValues {
        let config = self.agent_configs.get(uid);
        config
            .map(|config| config.values.clone())
            .unwrap_or_default()
    }

    /// Nothing happens when the user is gone or going.
    pub(super) fn keep_files(&mut self, uid: &Uid, files: &KeptFiles) {
        let object = self.object(Kind::AgentConfig, uid);
        if object.is_some_and(|object| object.deleted_at.is_none())
            && let Some(config) = self.agent_configs.get_mut(uid)
        {
            config.kept = Some(files.clone());
        }
    }

    pub(super) fn kept_files(&self, uid: &Uid) -> Option<KeptFiles> {
        self.agent_configs.get(uid)?.kept.clone()
    }

    pub(super) fn applied(&self, uid: &Uid) -> Option<Applied> {
        let facts = self.agent_configs.get(uid)?.facts.as_ref();
        facts?.applied.clone()
    }

    /// How the files are, as the container's row tells it.
    pub(super) fn agent_files(&self, uid: &Uid) -> AgentFiles {
        let config = self.object(Kind::AgentConfig, uid);
        let is_paused = self.paused.contains(&(Kind::AgentConfig, uid.clone()));
        let wanted = config
            .map(|config| config.generation)
            .filter(|_| !is_paused);
        let facts = self.agent_configs.get(uid).and_then(|c| c.facts.clone());
        let facts = facts.unwrap_or_default();
        AgentFiles {
            pending: wanted.unwrap_or_default() > facts.generation,
            refused: facts.refused,
            restart_digest: facts.restart_digest,
            home: facts.home.filter(|_| !is_paused),
        }
    }

    /// Tells the generation that the container got by it, if it is to be restarted.
    pub(super) fn save_config_facts(
        &mut self,
        uid: &Uid,
        facts: &AgentConfigFacts,
    ) -> Result<Option<Generation>, DbError> {
        let Some(config) = self.agent_configs.get_mut(uid) else {
            return Ok(None);
        };
        let before = config.facts.clone().unwrap_or_default();
        if before.generation > facts.generation {
            return Ok(None);
        }
        config.facts = Some(facts.clone());
        let moved = before.home.is_some() && before.home != facts.home;
        if !moved && before.restart_digest == facts.restart_digest {
            return Ok(None);
        }
        let in_bulk = self
            .object(Kind::AgentConfig, uid)
            .is_some_and(|object| object.bulk_generation == object.generation);
        let bumped = if in_bulk {
            self.bump_in_bulk(Kind::Container, uid)
        } else {
            self.bump(Kind::Container, uid)
        };
        match bumped {
            Ok(generation) => Ok(Some(generation)),
            Err(DbError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn change_config(
        &mut self,
        uid: &Uid,
        change: impl FnOnce(&mut AgentConfig),
    ) -> Result<Generation, DbError> {
        let generation = self.bump(Kind::AgentConfig, uid)?;
        if let Some(config) = self.agent_configs.get_mut(uid) {
            change(config);
        }
        Ok(generation)
    }
}

impl MemoryStore {
    /// A user saves a channel: the files follow, and the agent is restarted if it shall run. Returns the
    /// container's generation.
    ///
    /// # Errors
    /// When the user is gone or going.
    pub fn save_channel(
        &self,
        uid: &Uid,
        channel: &str,
        values: &BTreeMap<String, Value>,
        token: &str,
    ) -> Result<Generation, DbError> {
        self.write(|tables| {
            let container = tables.object(Kind::Container, uid);
            if container.is_none_or(|object| object.deleted_at.is_some()) {
                return Err(DbError::NotFound("object"));
            }
            tables.change_config(uid, |config| {
                let channels = &mut config.values.channels;
                channels.insert(channel.to_owned(), values.clone());
            })?;
            let generation = tables.bump(Kind::Container, uid)?;
            if let Some(spec) = tables.specs.get_mut(uid) {
                token.clone_into(&mut spec.restart_token);
            }
            Ok(generation)
        })
    }

    /// A user's cookies of one domain.
    ///
    /// # Errors
    /// When the user is gone or going.
    pub fn set_cookies(&self, uid: &Uid, domain: &str, value: &str) -> Result<Generation, DbError> {
        self.write(|tables| {
            tables.change_config(uid, |config| {
                let cookies = &mut config.values.cookies;
                cookies.insert(domain.to_owned(), value.to_owned());
            })
        })
    }

    /// The agent's configuration of a user, at once.
    pub fn peek_agent_config(&self, uid: &Uid) -> Option<(AgentConfigRow, UserValues)> {
        let tables = self.tables();
        Some((tables.config_row(uid)?, tables.user_values(uid)))
    }
}
