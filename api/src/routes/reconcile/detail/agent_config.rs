//! Users' agent files, without values.

use schema::agent_config;
use schema::condition::Reason;
use schema::ids::Generation;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Reading, Sections};
use crate::error::Result;

/// What a user's agent files follow from.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DesiredAgentConfig)]
pub struct Desired {
    /// Its tag says which agent reads the files; null once the container is gone.
    #[schema(required = true)]
    image: Option<String>,
    /// Raised by each renewal of the user's MCP token.
    mcp_token_version: i64,
    /// How often the global configuration changed.
    configuration_generation: i64,
    /// How often the active adapter changed.
    adapter_generation: i64,
}

/// What was last written to a user's agent files.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ObservedAgentConfig)]
pub struct Observed {
    /// The newest generation that the files were brought to, or refused for.
    files_generation: Generation,
    /// Why they were not brought to it.
    #[schema(required = true)]
    refused: Option<Reason>,
    /// The configuration version of the files; null before they were written.
    #[schema(required = true)]
    config_version: Option<u32>,
    /// How many places in the files the service has set.
    places: usize,
    /// Opaque; a new value restarts the agent.
    #[schema(required = true)]
    restart_digest: Option<String>,
}

pub(super) async fn read(at: &mut Reading<'_>) -> Result<Sections<Desired, Observed>> {
    let Some(row) = agent_config::get(at.connection, &at.row.uid).await? else {
        return Ok(Sections::none());
    };
    let applied = row.facts.applied.as_ref();
    let places = applied.map(|applied| {
        let managed = &applied.managed;
        managed.config.values.len() + managed.security.values.len()
    });
    let observed = Observed {
        files_generation: row.facts.generation,
        refused: row.facts.refused,
        config_version: applied.map(|applied| applied.config_version),
        places: places.unwrap_or(0),
        restart_digest: row.facts.restart_digest,
    };
    let desired = Desired {
        image: row.image_ref,
        mcp_token_version: row.mcp_token_version,
        configuration_generation: row.config_generation,
        adapter_generation: row.adapter_generation,
    };
    Ok(Sections::known(Some(desired), Some(observed)))
}
