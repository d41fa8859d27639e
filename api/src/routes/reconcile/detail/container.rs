//! Containers.

use std::time::Duration;

use futures::FutureExt;
use schema::config::Config;
use schema::container::{self, ContainerEnd, ContainerFacts, ContainerRow};
use schema::ids::Timestamp;
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::{Reading, Sections};
use crate::deps::Deps;
use crate::error::{Result, chain};
use crate::ports::{ContainerDetails, ContainerState};

/// Longest time the engine may take to report one container.
const INSPECT_TIME: Duration = Duration::from_secs(5);
/// Nanoseconds of processor time a second that are one core.
const NANOS: f64 = 1e9;
const MEBIBYTE: i64 = 1024 * 1024;

/// What is desired of a container. Limits are those in force: its own, or the configured ones.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DesiredContainer)]
pub struct Desired {
    /// True if it is to run: that is desired, its user is not disabled, and the quota does not stop it.
    running: bool,
    /// The desired state; stopped while the user is disabled.
    desired: container::Desired,
    /// The user is disabled.
    disabled: bool,
    /// Whether it is to run the adapter's debug command.
    debug: bool,
    /// Opaque; a new value requests a restart.
    restart_token: String,
    /// The full reference of its image.
    image: String,
    /// The image's id on the engine, once it is known.
    image_id: Option<String>,
    /// Cores; 0 = no limit.
    cpu_limit: f64,
    /// MiB; 0 = no limit.
    memory_limit_mb: i64,
    /// The network that it is attached to.
    network: &'static str,
}

impl Desired {
    fn of(row: &ContainerRow, config: &Config) -> Self {
        let nanos = config.cpu_limit_nanos().unwrap_or(0);
        let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
        let memory = i64::try_from(config.memory_limit_bytes()).unwrap_or(i64::MAX);
        Self {
            running: row.desired_running(),
            desired: match row.disabled {
                true => container::Desired::Stopped,
                false => row.desired,
            },
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
}

/// What was observed of a container: what the reconciler remembers, and what the engine reports now.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ObservedContainer)]
pub struct Observed {
    /// The engine's id of the container last observed ready.
    engine_id: Option<String>,
    /// The reference that `image_id` was resolved from.
    image_ref: Option<String>,
    /// The image of the container on the engine, or else the one that this user is pinned to.
    image_id: Option<String>,
    /// Its repository digest, when it has one.
    image_digest: Option<String>,
    /// Address in the agent network.
    ip: Option<String>,
    /// When that container was started.
    started_at: Option<Timestamp>,
    /// When it was first observed ready after that start.
    ready_at: Option<Timestamp>,
    /// Unexpected exits in a row; after ten minutes without one they no longer count.
    crash_count: u32,
    /// The restart token for which they were counted; a new one resets the count.
    crash_token: String,
    /// When the newest of them happened.
    last_exit_at: Option<Timestamp>,
    /// Its exit code.
    last_exit_code: Option<i64>,
    /// Cause, in a clause.
    #[schema(example = "exit code 137, out of memory")]
    last_exit_cause: Option<String>,
    /// Digest of the settings whose replacement container did not become ready.
    failed_digest: Option<String>,
    /// When that was.
    failed_at: Option<Timestamp>,
    /// How often in a row.
    failed_count: u32,
    /// Cause, in a clause.
    #[schema(example = "the replacement ended with exit code 1, 5 s after it was ready")]
    failure: Option<String>,
    /// The last lines of its log, at most 20, without control characters and known secrets.
    failure_log: Vec<String>,
    /// Its last three ends that were not asked for, and failed replacements; newest first.
    ends: Vec<End>,
    /// Why the engine could not be asked; what it would have reported is absent then.
    engine_error: Option<String>,
    #[serde(flatten)]
    live: Option<Live>,
}

/// An end of a container that was not asked for, or a replacement that failed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ContainerEnd)]
struct End {
    /// Time of it.
    at: Timestamp,
    /// Exit code of the process; null when there is none, such as of a container that was removed by hand.
    exit_code: Option<i64>,
    /// Cause, in a clause.
    #[schema(example = "exit code 137, out of memory")]
    cause: String,
    /// The last lines of its log, at most 20, without control characters and known secrets.
    log: Vec<String>,
}

impl From<ContainerEnd> for End {
    fn from(end: ContainerEnd) -> Self {
        Self {
            at: end.at,
            exit_code: end.exit_code,
            cause: end.cause,
            log: end.log.lines().map(str::to_owned).collect(),
        }
    }
}

/// What the engine reports, in the fields of the desired state; all but the first two are null when
/// there is no container.
#[derive(Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = ContainerNow)]
struct Live {
    /// It runs.
    running: bool,
    /// `none` when there is no container.
    #[schema(example = "running")]
    state: String,
    /// Name on the engine.
    container: Option<String>,
    /// It runs the adapter's debug command.
    debug: Option<bool>,
    /// Opaque; the restart that it was created for.
    restart_token: Option<String>,
    /// Cores; 0 = no limit.
    cpu_limit: Option<f64>,
    /// MiB; 0 = no limit.
    memory_limit_mb: Option<i64>,
    /// Its networks, separated by commas.
    network: Option<String>,
    /// Exit code of its last exit; null while it runs.
    exit_code: Option<i64>,
    /// The engine's error when a start failed.
    error: Option<String>,
}

pub(super) async fn read(at: &mut Reading<'_>) -> Result<Sections<Desired, Observed>> {
    let Some(row) = container::get(at.connection, &at.row.uid).await? else {
        return Ok(Sections::none());
    };
    let desired = Desired::of(&row, at.config);
    let ends = container::list_ends(at.connection, &at.row.uid).await?;
    let observed = observe(at.deps.clone(), row, ends).map(Some).boxed();
    Ok(Sections {
        desired: Some(desired),
        observed,
    })
}

async fn observe(deps: Deps, row: ContainerRow, ends: Vec<ContainerEnd>) -> Observed {
    let asked = timeout(INSPECT_TIME, deps.inspect.inspect(&row.uid)).await;
    let (live, engine_error) = match asked {
        Ok(Ok(container)) => (Some(container), None),
        Ok(Err(error)) => (None, Some(chain(&error))),
        Err(_) => (None, Some("the engine does not answer in time".to_owned())),
    };
    let crash_count = row.facts.crashes_in_a_row(deps.clock.now());
    let now = live.iter().flatten().next();
    let image = now.map(|now| now.container.image_id.clone());
    let ContainerFacts {
        engine_id,
        image_ref,
        image_id,
        image_digest,
        ip,
        started_at,
        ready_at,
        crash_count: _,
        crash_token,
        last_exit_at,
        last_exit_code,
        last_exit_cause,
        failed_digest,
        failed_at,
        failed_count,
        failure,
        failure_log,
    } = row.facts;
    Observed {
        engine_id,
        image_ref,
        image_id: image.or(image_id),
        image_digest,
        ip,
        started_at,
        ready_at,
        crash_count,
        crash_token,
        last_exit_at,
        last_exit_code,
        last_exit_cause,
        failed_digest,
        failed_at,
        failed_count,
        failure,
        failure_log: failure_log
            .map_or_else(Vec::new, |log| log.lines().map(str::to_owned).collect()),
        ends: ends.into_iter().map(End::from).collect(),
        engine_error,
        live: live.map(Live::of),
    }
}

impl Live {
    fn of(container: Option<ContainerDetails>) -> Self {
        let Some(details) = container else {
            return Self {
                state: "none".to_owned(),
                ..Self::default()
            };
        };
        let ContainerDetails {
            container,
            settings,
            ..
        } = details;
        let networks: Vec<&str> = container.networks.keys().map(String::as_str).collect();
        Self {
            running: container.state == ContainerState::Running,
            state: container.state.to_string(),
            debug: Some(container.debug()),
            restart_token: container.restart_token().map(str::to_owned),
            cpu_limit: Some(cores(settings.nano_cpus)),
            memory_limit_mb: Some(settings.memory_bytes / MEBIBYTE),
            network: Some(networks.join(",")),
            exit_code: details.exit_code,
            error: Some(details.error).filter(|error| !error.is_empty()),
            container: Some(container.name),
        }
    }
}

#[allow(clippy::cast_precision_loss)] // A number of cores needs no more than 52 bits.
fn cores(nanos: i64) -> f64 {
    nanos as f64 / NANOS
}
