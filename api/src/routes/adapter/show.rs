//! Which adapter is in effect, and what it declares.

use std::sync::Arc;

use schema::adapter::store::{self, KnownAdapter, Source};
use schema::adapter::{Adapter, AgentVersion};
use schema::ids::{Generation, Kind, Timestamp};
use schema::object;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::Result;
use crate::input::{Input, Nothing};
use crate::route::{Area, Route, Tokens};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("adapter_show", "/api/admin/migration-rules", show)
            .tokens(Tokens::Read)
            .title(Area::Adapter, "Get the active adapter")
            .about(
                "What it declares: for each version of the agent the configuration version, and \
                 the migrations from the previous version.",
            ),
        Route::get("adapter_list", "/api/admin/adapters", list)
            .tokens(Tokens::Read)
            .title(Area::Adapter, "List retained adapters")
            .about(
                "The active one, the previous one, and the one that the service was started with; \
                 newest first.",
            ),
    ]
}

/// The version of the form that packages have.
const ADAPTER_SCHEMA_VERSION: u32 = 1;

/// The active adapter.
#[derive(Debug, Serialize, ToSchema)]
pub struct Shown {
    rules: Rules,
}

/// What the active adapter declares.
#[derive(Debug, Serialize, ToSchema)]
pub struct Rules {
    /// The agent's name, for people.
    agent: String,
    /// The package's version.
    #[schema(example = "1.4")]
    adapter_version: String,
    /// The version of the package's format.
    adapter_schema_version: u32,
    /// The newest configuration version that it knows.
    latest_supported_config_version: u32,
    /// The version assumed for images without one in their tag.
    untagged: String,
    /// The versions of the agent, oldest first.
    versions: Vec<VersionRules>,
    /// Where it came from.
    source: Source,
    /// SHA-256 over its files.
    digest: String,
    /// Since when it is active.
    updated_at: Option<Timestamp>,
    /// The generation that `if_generation` of an upload, refresh or rollback is compared with.
    generation: Generation,
}

/// What is declared for one version of the agent.
#[derive(Debug, Serialize, ToSchema)]
pub struct VersionRules {
    /// The version.
    #[schema(example = "0.2.9")]
    version: String,
    /// The configuration version that it reads.
    config_version: u32,
    /// Its configuration version differs from the previous version's.
    config_changed: bool,
    /// The previous version's configuration version; its own for the oldest.
    from_config: u32,
    /// This version's.
    to_config: u32,
    /// The migrations from the previous version to this one, in order.
    #[schema(value_type = Vec<Object>)]
    actions: Vec<Value>,
}

fn rules_of(adapter: &Adapter, before: Option<&AgentVersion>, of: &AgentVersion) -> VersionRules {
    let to = of.config_version;
    let from = before.map_or(to, |before| before.config_version);
    // Without a declared way nothing is done: such a user's files are refused.
    let chain = adapter.migration_chain(from, to).unwrap_or_default();
    let path = |from: u32, to: u32| {
        let mut files = adapter.index.migrations.iter();
        files.find(|file| file.from_config == from && file.to_config == to)
    };
    let documents = chain
        .iter()
        .filter_map(|step| path(step.from_config, step.to_config))
        .filter_map(|file| adapter.documents.get(&file.path));
    let actions = documents.filter_map(|document| document["actions"].as_array());
    VersionRules {
        version: of.version.to_string(),
        config_version: to,
        config_changed: from != to,
        from_config: from,
        to_config: to,
        actions: actions.flatten().cloned().collect(),
    }
}

/// `GET /api/admin/migration-rules`: the active adapter.
///
/// # Errors
/// None of its own.
async fn show(_: Superadmin, _: Input<Nothing>, deps: Deps) -> Result<Answer<Shown>> {
    let mut snapshot = deps.db.snapshot().await?;
    let state = store::state(&mut snapshot).await?;
    let known = store::known(&mut snapshot).await?;
    let object = object::get(&mut snapshot, Kind::Adapter, &store::object_uid()).await?;
    let mut adapter = deps.adapter.current_in(&mut snapshot).await?;
    if state.active.as_ref() != Some(&adapter.digest) {
        // What is kept is newer than this moment.
        adapter = Arc::new(store::active(&mut snapshot).await?.1);
    }
    drop(snapshot);
    let of_it = known.iter().find(|known| known.digest == adapter.digest);
    let index = &adapter.index;
    let mut versions = Vec::new();
    let mut before = None;
    for version in index.agent_versions.iter() {
        versions.push(rules_of(&adapter, before, version));
        before = Some(version);
    }
    let rules = Rules {
        agent: index.agent.name.clone(),
        adapter_version: index.adapter_version.to_string(),
        adapter_schema_version: ADAPTER_SCHEMA_VERSION,
        latest_supported_config_version: index.latest_supported_config_version,
        untagged: index.untagged.to_string(),
        versions,
        source: of_it.map_or(Source::Upload, |known| known.source),
        digest: adapter.digest.clone(),
        updated_at: state.activated_at,
        generation: object.map_or(Generation(0), |object| object.generation),
    };
    Ok(Answer::ok("", Shown { rules }))
}

/// The retained adapters.
#[derive(Debug, Serialize, ToSchema)]
pub struct Kept {
    adapters: Vec<KeptAdapter>,
}

/// A retained adapter.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeptAdapter {
    /// The package's version.
    #[schema(example = "1.4")]
    version: String,
    /// Where it came from.
    source: Source,
    /// SHA-256 over its files.
    digest: String,
    /// When it was added.
    added_at: Timestamp,
    /// It is active.
    active: bool,
    /// It was active before; a rollback activates it.
    previous: bool,
}

impl From<KnownAdapter> for KeptAdapter {
    fn from(known: KnownAdapter) -> Self {
        Self {
            version: known.version,
            source: known.source,
            digest: known.digest,
            added_at: known.added_at,
            active: known.active,
            previous: known.previous,
        }
    }
}

/// `GET /api/admin/adapters`: the active one, the one before, and the one that the service was started with.
///
/// # Errors
/// None of its own.
async fn list(_: Superadmin, _: Input<Nothing>, deps: Deps) -> Result<Answer<Kept>> {
    let known = store::known(&mut *deps.db.read().await?).await?;
    let adapters = known.into_iter().map(KeptAdapter::from).collect();
    Ok(Answer::ok("", Kept { adapters }))
}
