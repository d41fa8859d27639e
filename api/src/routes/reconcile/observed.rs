//! Desired and observed state of one object side by side, in the same words, so that a difference is seen.

use std::collections::BTreeMap;
use std::time::Duration;

use schema::agent_config::AgentConfigRow;
use schema::condition::{self, ConditionStatus, ConditionType, Reason};
use schema::config::Config;
use schema::container::{ContainerFacts, ContainerRow, Desired};
use schema::ids::{Generation, Timestamp};
use schema::image::{DesiredImage, ImageFacts, ImageRow};
use schema::object::ObjectRow;
use schema::rollout::{DesiredRollout, Phase, RolloutRow, RolloutTarget};
use schema::user::{Role, Source, User};
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::deps::Deps;
use crate::error::chain;
use crate::ports::{AgentNetwork, ContainerDetails};

/// Longest time the engine may take to tell of one container.
const INSPECT_TIME: Duration = Duration::from_secs(5);
/// Nanoseconds of processor time a second that are one core.
const NANOS: f64 = 1e9;
const MEBIBYTE: i64 = 1024 * 1024;

/// What is wanted of an object.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ObjectDesired)]
#[serde(untagged)]
pub enum DesiredState {
    /// Of a container. Limits are those in force: its own, or the configured ones.
    #[schema(title = "container")]
    Container {
        /// Whether it shall run, all things considered.
        running: bool,
        desired: Desired,
        /// The user is disabled.
        disabled: bool,
        debug: bool,
        /// Another one asks for another restart.
        restart_token: String,
        image: String,
        /// The image's id on the engine, once it is known.
        image_id: Option<String>,
        /// Cores; 0 = no limit.
        cpu_limit: f64,
        /// MiB; 0 = no limit.
        memory_limit_mb: i64,
        network: &'static str,
    },
    /// Of a user.
    #[schema(title = "user")]
    User {
        role: Role,
        source: Source,
        /// Nobody can sign in.
        disabled: bool,
        /// Below the data directory.
        directory: String,
    },
    /// Of the engine.
    #[schema(title = "engine")]
    Engine {
        /// Addresses of the agent network.
        network_subnet: String,
    },
    /// Of an image.
    #[schema(title = "image")]
    Image {
        /// The full reference, or an id that shall be absent.
        image: String,
        desired: DesiredImage,
        /// Another one asks the registry once more.
        pull_token: String,
    },
    /// Of a rollout.
    #[schema(title = "rollout")]
    Rollout {
        /// The full reference of the new image.
        image: String,
        desired: DesiredRollout,
        /// How many users may be under way at once.
        max_unavailable: u32,
        /// Whether a failure ends the move of others until somebody resumes it.
        pause_on_failure: bool,
        /// How long a user's new container may take to become ready, in seconds.
        health_timeout_s: u64,
        /// Raised by each resume.
        attempt: i64,
    },
    /// Of a user's agent files: what they follow from, without values.
    #[schema(title = "agent-config")]
    Config {
        /// Its tag says which agent reads the files; null once the container is gone.
        #[schema(required = true)]
        image: Option<String>,
        /// Raised by each renewal of the user's MCP token.
        mcp_token_version: i64,
        /// How often the global configuration changed.
        configuration_generation: i64,
        /// How often the active adapter changed.
        adapter_generation: i64,
    },
}

impl DesiredState {
    pub(super) fn container(row: &ContainerRow, config: &Config) -> Self {
        let nanos = config.cpu_limit_nanos().unwrap_or(0);
        let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
        let memory = i64::try_from(config.memory_limit_bytes()).unwrap_or(i64::MAX);
        Self::Container {
            running: row.shall_run(),
            desired: row.desired,
            disabled: row.disabled,
            debug: row.debug,
            restart_token: row.restart_token.clone(),
            image: row.image_ref.clone(),
            image_id: row.pinned_image().map(str::to_owned),
            cpu_limit: row.cpu_limit.unwrap_or_else(|| cores(nanos)),
            memory_limit_mb: row.memory_limit_mb.unwrap_or(memory / MEBIBYTE),
            network: "agentyard",
        }
    }

    pub(super) fn image(row: &ImageRow) -> Self {
        Self::Image {
            image: row.reference.clone(),
            desired: row.desired,
            pull_token: row.pull_token.clone(),
        }
    }

    pub(super) fn rollout(row: &RolloutRow) -> Self {
        Self::Rollout {
            image: row.reference.clone(),
            desired: row.desired,
            max_unavailable: row.max_unavailable,
            pause_on_failure: row.pause_on_failure,
            health_timeout_s: row.health_timeout.as_secs(),
            attempt: row.attempt,
        }
    }

    pub(super) fn config(row: &AgentConfigRow) -> Self {
        Self::Config {
            image: row.image_ref.clone(),
            mcp_token_version: row.mcp_token_version,
            configuration_generation: row.config_generation,
            adapter_generation: row.adapter_generation,
        }
    }

    pub(super) fn user(account: &User) -> Self {
        Self::User {
            role: account.role,
            source: account.source,
            disabled: account.disabled,
            directory: format!("users/{}", account.name),
        }
    }
}

/// What is known of an object.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ObjectObserved)]
#[serde(untagged)]
pub enum ObservedState {
    /// Of a container: what the reconciler remembers, and what the engine says now.
    #[schema(title = "container")]
    Container(Box<ObservedContainer>),
    /// Of a user.
    #[schema(title = "user")]
    User {
        /// Below the data directory; null while it is not as it should be.
        #[schema(required = true)]
        directory: Option<String>,
    },
    /// Of the engine.
    #[schema(title = "engine")]
    Engine {
        available: bool,
        /// Its version, or why it cannot be used.
        engine: String,
        /// Addresses of the agent network.
        network_subnet: Option<String>,
        network: Option<AgentNetwork>,
    },
    /// Of an image: what its reconciler remembers.
    #[schema(title = "image")]
    Image {
        /// The full reference, or an id that shall be absent.
        reference: String,
        #[serde(flatten)]
        facts: ImageFacts,
    },
    /// Of a rollout.
    #[schema(title = "rollout")]
    Rollout {
        /// The full reference of the new image.
        image: String,
        /// What it was resolved to.
        image_id: Option<String>,
        phase: Phase,
        message: String,
        finished_at: Option<Timestamp>,
        /// How many users are how far.
        users: BTreeMap<String, usize>,
    },
    /// Of a user's agent files: what was written last, without values.
    #[schema(title = "agent-config")]
    Config {
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
        /// Another one restarts the agent.
        #[schema(required = true)]
        restart_digest: Option<String>,
    },
}

/// What is known of a container.
#[derive(Debug, Serialize, ToSchema)]
pub struct ObservedContainer {
    #[serde(flatten)]
    facts: ContainerFacts,
    /// Why the engine could not be asked; what it would have told is absent then.
    engine_error: Option<String>,
    #[serde(flatten)]
    live: Option<Live>,
}

/// The engine's facts in the words of the desired state; all but the first two are null when there is
/// no container.
#[derive(Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = ContainerNow)]
struct Live {
    running: bool,
    /// `none` when there is no container.
    #[schema(example = "running")]
    state: String,
    /// Its name on the engine.
    container: Option<String>,
    debug: Option<bool>,
    restart_token: Option<String>,
    /// Cores; 0 = no limit.
    cpu_limit: Option<f64>,
    /// MiB; 0 = no limit.
    memory_limit_mb: Option<i64>,
    /// Its networks, with commas between.
    network: Option<String>,
    exit_code: Option<i64>,
    /// The engine's own words when a start failed.
    error: Option<String>,
}

impl ObservedState {
    pub(super) async fn container(deps: &Deps, row: &ContainerRow) -> Self {
        let asked = timeout(INSPECT_TIME, deps.inspect.inspect(&row.uid)).await;
        let (live, engine_error) = match asked {
            Ok(Ok(container)) => (Some(container), None),
            Ok(Err(error)) => (None, Some(chain(&error))),
            Err(_) => (None, Some("the engine does not answer in time".to_owned())),
        };
        let mut facts = row.facts.clone();
        if let Some(Some(container)) = &live {
            facts.image_id = Some(container.image.clone());
        }
        Self::Container(Box::new(ObservedContainer {
            facts,
            engine_error,
            live: live.map(Live::of),
        }))
    }

    pub(super) fn image(row: &ImageRow) -> Self {
        Self::Image {
            reference: row.reference.clone(),
            facts: row.facts.clone(),
        }
    }

    pub(super) fn rollout((row, targets): &(RolloutRow, Vec<RolloutTarget>)) -> Self {
        let mut users = BTreeMap::new();
        for target in targets {
            let state: &str = target.state.into();
            *users.entry(state.to_owned()).or_default() += 1;
        }
        Self::Rollout {
            image: row.reference.clone(),
            image_id: row.facts.image_id.clone(),
            phase: row.phase(),
            message: row.facts.message.clone(),
            finished_at: row.facts.finished_at,
            users,
        }
    }

    pub(super) fn config(row: &AgentConfigRow) -> Self {
        let applied = row.facts.applied.as_ref();
        let places = applied.map(|applied| {
            let managed = &applied.managed;
            managed.config.values.len() + managed.security.values.len()
        });
        Self::Config {
            files_generation: row.facts.generation,
            refused: row.facts.refused,
            config_version: applied.map(|applied| applied.config_version),
            places: places.unwrap_or(0),
            restart_digest: row.facts.restart_digest.clone(),
        }
    }

    pub(super) fn user(row: &ObjectRow) -> Self {
        let ready = condition::find(&row.status.conditions, ConditionType::Ready);
        let there = ready.is_some_and(|ready| ready.status == ConditionStatus::True);
        Self::User {
            directory: there.then(|| format!("users/{}", row.name)),
        }
    }

    pub(super) fn engine(deps: &Deps) -> Self {
        let engine = deps.engine.engine();
        let network = deps.engine.network();
        Self::Engine {
            available: engine.available,
            engine: engine.message,
            network_subnet: network.as_ref().and_then(|network| network.subnet.clone()),
            network,
        }
    }
}

impl Live {
    fn of(container: Option<ContainerDetails>) -> Self {
        let Some(container) = container else {
            return Self {
                state: "none".to_owned(),
                ..Self::default()
            };
        };
        let networks: Vec<&str> = container.networks.keys().map(String::as_str).collect();
        Self {
            running: container.state == "running",
            container: Some(container.name),
            debug: Some(container.debug),
            restart_token: container.restart_token,
            cpu_limit: Some(cores(container.cpu_limit_nanos)),
            memory_limit_mb: Some(container.memory_limit_bytes / MEBIBYTE),
            network: Some(networks.join(",")),
            exit_code: container.exit_code,
            error: Some(container.error).filter(|error| !error.is_empty()),
            state: container.state,
        }
    }
}

#[allow(clippy::cast_precision_loss)] // A number of cores needs no more than 52 bits.
fn cores(nanos: i64) -> f64 {
    nanos as f64 / NANOS
}
