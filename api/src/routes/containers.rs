//! Containers of users: what administrators want of them, and what they are doing.

use schema::config::history::SavedBy;
use schema::config::keys;
use schema::container::{self, Desired};
use schema::ids::UserName;
use schema::user::User;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use uuid::Uuid;

use super::live::{self, Log, LogParams, no_container};
use super::params::{Who, by_rule_of, enabled, ordinary_user, present_user};
use crate::answer::{Answer, Live};
use crate::deps::{Dependencies, Deps};
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::Input;
use crate::limits::FOLLOWS;
use crate::ports::{ContainerDetails, Usage};
use crate::route::{Area, Failure, Route, Tokens};
use crate::wait::{self, Change, Converging};

/// How starting a container fails.
const RUN_FAILURES: &[Failure] = &[Failure::NO_USER, Failure::REMOVED, Failure::DISABLED];

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("container_start", "/api/admin/container/start", start)
.tokens(Tokens::Admin)
            .title(Area::Containers, "Start a user's container")
            .about("Also ends debug mode.")
            .waits()
            .guarded()
            .fails(RUN_FAILURES),
        Route::post("container_stop", "/api/admin/container/stop", stop)
.tokens(Tokens::Admin)
            .title(Area::Containers, "Stop a user's container")
            .about("Removes the container; the user's directory is kept.")
            .waits()
            .guarded()
            .fails(&[Failure::NO_USER, Failure::REMOVED]),
        Route::post("container_restart", "/api/admin/container/restart", restart)
.tokens(Tokens::Admin)
            .title(Area::Containers, "Restart a user's container")
            .about("Recreates it once; a stopped container is started.")
            .waits()
            .guarded()
            .fails(RUN_FAILURES),
        Route::post("container_debug", "/api/admin/container/debug", debug)
.tokens(Tokens::Admin)
            .title(Area::Containers, "Run a user's container in debug mode")
            .about(
                "Recreates it with the adapter's debug command, until an administrator starts, restarts or stops it.",
            )
            .waits()
            .guarded()
            .fails(RUN_FAILURES),
        Route::post("container_limits", "/api/admin/container/limits", limits)
.tokens(Tokens::Admin)
            .title(Area::Containers, "Set the limits of a user's container")
            .about(
                "Sets both limits; one that is absent or empty returns to the configured default.",
            )
            .waits()
            .guarded()
            .fails(&[Failure::NO_USER, Failure::REMOVED]),
        Route::get("container_logs", "/api/admin/container/logs", logs).holds(&FOLLOWS)
.tokens(Tokens::Read)
            .title(Area::Containers, "Get the logs of a user's container")
            .about(live::LOG)
            .fails(live::LOG_FAILURES),
        Route::get("container_inspect", "/api/admin/container/inspect", inspect)
.tokens(Tokens::Read)
            .title(Area::Containers, "Inspect a container")
            .about("As the engine reports it now. Of the environment, names only.")
            .fails(&[Failure::NO_CONTAINER, Failure::ENGINE]),
        Route::get("container_stats", "/api/admin/container/stats", stats)
.tokens(Tokens::Read)
            .title(Area::Containers, "Get the resource use of a container")
            .about("One sample, taken now.")
            .fails(&[Failure::NO_CONTAINER, Failure::ENGINE]),
    ]
}

/// `POST /api/admin/container/start`: it is to run, and debug mode ends.
///
/// # Errors
/// 404 without such a user, 409 while it is disabled or being removed, 412 for a stale
/// `if_generation`; what the container fails with.
async fn start(_: Superadmin, input: Input<Who>, deps: Deps) -> Result<Answer<Converging>> {
    set_desired(input, &deps, Desired::Running).await
}

/// `POST /api/admin/container/stop`: nothing of it stays but the user's directory.
///
/// # Errors
/// As [`start`], but a disabled account is no obstacle.
async fn stop(_: Superadmin, input: Input<Who>, deps: Deps) -> Result<Answer<Converging>> {
    set_desired(input, &deps, Desired::Stopped).await
}

async fn set_desired(
    input: Input<Who>,
    deps: &Deps,
    desired: Desired,
) -> Result<Answer<Converging>> {
    let mut tx = input.meta.begin(deps).await?;
    let mut user = present_user(&mut tx, &input.params.username).await?;
    if desired == Desired::Running {
        user = enabled(user)?;
    }
    let expected = input.if_generation;
    let generation = container::set_desired(&mut tx, &user.uid, desired, false, expected).await?;
    let (actor, at) = tx.author();
    container::record_stop(&mut tx, &user.uid, SavedBy { actor: &actor, at }).await?;
    let change = Change::of_container(&user, generation);
    tx.commit(change.about()).await?;
    let done = format!("the container of {} is {desired}", user.name);
    wait::answer(deps, &change, input.wait, done).await
}

/// `POST /api/admin/container/restart`: replaces it by a fresh one, once; a stopped one is started.
///
/// # Errors
/// As [`start`].
async fn restart(_: Superadmin, input: Input<Who>, deps: Deps) -> Result<Answer<Converging>> {
    restart_named(input, &deps, false).await
}

/// `POST /api/admin/container/debug`: replaces it by one that runs the adapter's debug command,
/// until an administrator starts, restarts or stops it.
///
/// # Errors
/// As [`start`].
async fn debug(_: Superadmin, input: Input<Who>, deps: Deps) -> Result<Answer<Converging>> {
    restart_named(input, &deps, true).await
}

/// Gives a container a new restart token and waits until the fresh one is ready.
async fn restart_named(input: Input<Who>, deps: &Deps, debug: bool) -> Result<Answer<Converging>> {
    let mut tx = input.meta.begin(deps).await?;
    let user = enabled(present_user(&mut tx, &input.params.username).await?)?;
    let token = Uuid::new_v4().to_string();
    let expected = input.if_generation;
    let generation =
        container::request_restart(&mut tx, &user.uid, &token, debug, expected).await?;
    let change = Change::of_container(&user, generation);
    tx.commit(change.about()).await?;
    let how = if debug {
        "runs in debug mode"
    } else {
        "was restarted"
    };
    let done = format!("the container of {} {how}", user.name);
    wait::answer(deps, &change, input.wait, done).await
}

/// Limits of a container.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Limits {
    /// The account's name.
    username: UserName,
    /// Cores; 0 = no limit; absent or empty = as configured for everybody.
    #[schema(value_type = Option<f64>, example = 1.5)]
    cpu_limit: Option<String>,
    /// MiB; absent or empty = as configured for everybody.
    #[schema(value_type = Option<i64>, example = 2048)]
    memory_limit_mb: Option<String>,
}

impl Limits {
    fn cpu(&self, deps: &Deps) -> Result<Option<f64>> {
        let Some(text) = self.cpu_limit.as_deref().filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let cores: f64 = text
            .parse()
            .map_err(|_| ApiError::invalid("cpu_limit", "cpu_limit must be a number of cores"))?;
        by_rule_of(&keys::container::CPU_LIMIT, "cpu_limit", &json!(cores))?;
        match find_cpu_problem(deps, cores) {
            Some(rule) => Err(ApiError::invalid("cpu_limit", format!("cpu_limit: {rule}"))),
            None => Ok(Some(cores)),
        }
    }

    fn memory(&self) -> Result<Option<i64>> {
        const FIELD: &str = "memory_limit_mb";
        let Some(text) = self
            .memory_limit_mb
            .as_deref()
            .filter(|text| !text.is_empty())
        else {
            return Ok(None);
        };
        let megabytes: i64 = text.parse().map_err(|_| {
            ApiError::invalid(FIELD, "memory_limit_mb must be a whole number of MiB")
        })?;
        by_rule_of(&keys::container::MEMORY_LIMIT_MB, FIELD, &json!(megabytes))?;
        Ok(Some(megabytes))
    }
}

/// Says why the engine would refuse a container with so many cores, as far as its host is known.
pub(in crate::routes) fn find_cpu_problem(deps: &Dependencies, cores: f64) -> Option<String> {
    let cpus = deps.engine.cpus()?;
    let most = f64::from(cpus);
    (cores > most).then(|| {
        format!("{cores} cores are more than the engine's host has; set {cpus} or fewer, or 0 for no limit")
    })
}

/// The limits of one container.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ContainerLimits)]
pub struct Limited {
    #[serde(flatten)]
    converging: Converging,
    /// Cores; null = as configured for everybody.
    cpu_limit: Option<f64>,
    /// MiB; null = as configured for everybody.
    memory_limit_mb: Option<i64>,
}

/// `POST /api/admin/container/limits`: sets both limits; one that is absent or empty goes back to
/// what is configured for everybody.
///
/// # Errors
/// 400 for a limit outside the configuration's range; else as [`stop`].
async fn limits(_: Superadmin, input: Input<Limits>, deps: Deps) -> Result<Answer<Limited>> {
    let (cpu, memory) = (input.params.cpu(&deps)?, input.params.memory()?);
    let mut tx = input.meta.begin(&deps).await?;
    let user = present_user(&mut tx, &input.params.username).await?;
    let expected = input.if_generation;
    let generation = container::set_limits(&mut tx, &user.uid, cpu, memory, expected).await?;
    let change = Change::of_container(&user, generation);
    let detail = limits_text(cpu, memory);
    tx.commit(change.about().detail(detail)).await?;
    let done = format!("the container of {} has the new limits", user.name);
    let answer = wait::answer(&deps, &change, input.wait, done).await?;
    Ok(answer.map(|converging| Limited {
        converging,
        cpu_limit: cpu,
        memory_limit_mb: memory,
    }))
}

fn limits_text(cpu: Option<f64>, memory: Option<i64>) -> String {
    let cpu = cpu.map_or("as configured".to_owned(), |cores| cores.to_string());
    let memory = memory.map_or("as configured".to_owned(), |mib| format!("{mib} MiB"));
    format!("cpu: {cpu}, memory: {memory}")
}

/// Which part of whose log.
#[derive(Debug, Deserialize, ToSchema)]
pub struct LogsOf {
    /// The account's name.
    username: UserName,
    /// Number of newest lines (default 100), or `all`.
    #[schema(pattern = "^([0-9]{1,9}|all)?$", example = "100")]
    tail: Option<String>,
    /// Only lines from this time on: RFC 3339, or Unix seconds.
    #[schema(example = "2026-05-11T11:46:40Z")]
    since: Option<String>,
    /// Follow: answer with an event stream of new lines, too.
    follow: Option<bool>,
}

/// `GET /api/admin/container/logs`: the log, or an event stream with `follow=true`.
///
/// # Errors
/// 404 without such a user or container, 429 when too many logs are followed, 503 while the engine cannot be reached.
async fn logs(
    Superadmin(actor): Superadmin,
    input: Input<LogsOf>,
    deps: Deps,
) -> Result<Live<Log>> {
    let LogsOf {
        username,
        tail,
        since,
        follow,
    } = input.params;
    let user = find(&deps, &username).await?;
    let params = LogParams {
        tail,
        since,
        follow,
    };
    let whose = (&user.uid, &user.name);
    live::logs(&deps, &actor, whose, &params).await
}

/// A container as the engine reports it.
#[derive(Debug, Serialize, ToSchema)]
pub struct Inspected {
    /// The account's name.
    username: UserName,
    container: Reported,
}

/// What the engine reports of a container.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ContainerReport)]
struct Reported {
    #[serde(flatten)]
    details: ContainerDetails,
    /// Opaque; the restart that it was created for.
    restart_token: Option<String>,
    /// It runs the adapter's debug command.
    debug: bool,
}

/// `GET /api/admin/container/inspect`: what the engine knows of it.
///
/// # Errors
/// As [`logs`].
async fn inspect(_: Superadmin, input: Input<Who>, deps: Deps) -> Result<Answer<Inspected>> {
    let user = find(&deps, &input.params.username).await?;
    let details = deps.inspect.inspect(&user.uid).await?;
    let details = details.ok_or_else(|| no_container(&user.name))?;
    let inspected = Inspected {
        container: Reported {
            restart_token: details.container.restart_token().map(str::to_owned),
            debug: details.container.debug(),
            details,
        },
        username: user.name,
    };
    Ok(Answer::ok(
        "the container as the engine reports it",
        inspected,
    ))
}

/// What a container uses.
#[derive(Debug, Serialize, ToSchema)]
pub struct Stats {
    /// The account's name.
    username: UserName,
    stats: Usage,
}

/// `GET /api/admin/container/stats`: one sample of its resource use.
///
/// # Errors
/// As [`logs`].
async fn stats(_: Superadmin, input: Input<Who>, deps: Deps) -> Result<Answer<Stats>> {
    let user = find(&deps, &input.params.username).await?;
    let usage = deps.stats.stats(&user.uid).await?;
    let stats = Stats {
        stats: usage.ok_or_else(|| no_container(&user.name))?,
        username: user.name,
    };
    Ok(Answer::ok("resource use of the container", stats))
}

/// The user of a live read. The connection is given back before the engine is asked.
async fn find(deps: &Deps, name: &UserName) -> Result<User> {
    ordinary_user(&mut *deps.db.read().await?, name).await
}

#[cfg(test)]
mod tests;
