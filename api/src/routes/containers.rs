//! Containers of users: what administrators want of them, and what they are doing.

use std::time::Duration;

use schema::audit::{About, Audited};
use schema::container::{self, Desired};
use schema::ids::{Generation, Kind, UserName};
use schema::user::{self, User};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::live::{self, LogParams, no_container};
use super::params::{Who, by_rule_of, enabled, ordinary_user, present_user};
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::ApiError;
use crate::input::Input;
use crate::reply::Reply;
use crate::wait::{self, Change};

/// `POST /api/admin/container/start`: it shall run, and ends debugging.
///
/// # Errors
/// 404 without such a user, 409 while it is disabled or being removed, 412 for a stale
/// `if_generation`; what the container fails with.
pub async fn start(
    Superadmin(actor): Superadmin,
    input: Input<Who>,
    deps: Deps,
) -> Result<Reply, ApiError> {
    let name = &input.params.username;
    let mut tx = input.meta.begin(&deps).await?;
    let user = enabled(present_user(user::find(&mut tx, name).await?, name)?)?;
    let expected = input.if_generation;
    let generation =
        container::set_desired(&mut tx, &user.uid, Desired::Running, false, expected).await?;
    tx.commit(About::object(Kind::Container, &user.name))
        .await?;
    tracing::info!(%actor, user = %user.name, "container start");
    let done = format!("the container of {} is running", user.name);
    wait::answer(
        &deps,
        &Change::of_container(&user, generation),
        input.wait,
        done,
    )
    .await
}

/// `POST /api/admin/container/stop`: nothing of it stays but the user's directory.
///
/// # Errors
/// As [`start`], but a disabled account is no obstacle.
pub async fn stop(
    Superadmin(actor): Superadmin,
    input: Input<Who>,
    deps: Deps,
) -> Result<Reply, ApiError> {
    let name = &input.params.username;
    let mut tx = input.meta.begin(&deps).await?;
    let user = present_user(user::find(&mut tx, name).await?, name)?;
    let expected = input.if_generation;
    let generation =
        container::set_desired(&mut tx, &user.uid, Desired::Stopped, false, expected).await?;
    tx.commit(About::object(Kind::Container, &user.name))
        .await?;
    tracing::info!(%actor, user = %user.name, "container stop");
    let done = format!("the container of {} is stopped", user.name);
    wait::answer(
        &deps,
        &Change::of_container(&user, generation),
        input.wait,
        done,
    )
    .await
}

/// `POST /api/admin/container/restart`: replaces it by a fresh one, once; a stopped one is started.
///
/// # Errors
/// As [`start`].
pub async fn restart(
    Superadmin(actor): Superadmin,
    input: Input<Who>,
    deps: Deps,
) -> Result<Reply, ApiError> {
    let name = &input.params.username;
    let mut tx = input.meta.begin(&deps).await?;
    let user = present_user(user::find(&mut tx, name).await?, name)?;
    let how = (input.if_generation, input.wait);
    restart_container(&deps, tx, user, &actor.to_string(), false, how).await
}

/// `POST /api/admin/container/debug`: replaces it by one that runs the adapter's debug command,
/// until the next start or restart.
///
/// # Errors
/// As [`start`].
pub async fn debug(
    Superadmin(actor): Superadmin,
    input: Input<Who>,
    deps: Deps,
) -> Result<Reply, ApiError> {
    let name = &input.params.username;
    let mut tx = input.meta.begin(&deps).await?;
    let user = present_user(user::find(&mut tx, name).await?, name)?;
    let how = (input.if_generation, input.wait);
    restart_container(&deps, tx, user, &actor.to_string(), true, how).await
}

/// Gives a container a new restart token and waits until the fresh one is ready.
pub(super) async fn restart_container(
    deps: &Deps,
    mut tx: Audited,
    user: User,
    actor: &str,
    debug: bool,
    (expected, wait): (Option<Generation>, Option<Duration>),
) -> Result<Reply, ApiError> {
    let user = enabled(user)?;
    let token = Uuid::new_v4().to_string();
    let generation =
        container::request_restart(&mut tx, &user.uid, &token, debug, expected).await?;
    tx.commit(About::object(Kind::Container, &user.name))
        .await?;
    let how = if debug {
        "runs in debug mode"
    } else {
        "was restarted"
    };
    tracing::info!(actor, user = %user.name, how, "container restart");
    let done = format!("the container of {} {how}", user.name);
    wait::answer(deps, &Change::of_container(&user, generation), wait, done).await
}

/// Own limits of one container.
#[derive(Debug, Deserialize)]
pub struct Limits {
    username: UserName,
    /// Cores; 0 = no limit; absent or empty = as configured for everybody.
    cpu_limit: Option<String>,
    /// MiB; absent or empty = as configured for everybody.
    memory_limit_mb: Option<String>,
}

impl Limits {
    fn cpu(&self) -> Result<Option<f64>, ApiError> {
        let Some(text) = self.cpu_limit.as_deref().filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let cores: f64 = text
            .parse()
            .map_err(|_| ApiError::invalid("cpu_limit", "cpu_limit must be a number of cores"))?;
        by_rule_of("container.cpu_limit", "cpu_limit", &json!(cores))?;
        Ok(Some(cores))
    }

    fn memory(&self) -> Result<Option<i64>, ApiError> {
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
        by_rule_of("container.memory_limit_mb", FIELD, &json!(megabytes))?;
        Ok(Some(megabytes))
    }
}

/// `POST /api/admin/container/limits`: sets both limits; one that is absent or empty goes back to
/// what is configured for everybody.
///
/// # Errors
/// 400 for a limit outside the configuration's range; else as [`stop`].
pub async fn limits(
    Superadmin(actor): Superadmin,
    input: Input<Limits>,
    deps: Deps,
) -> Result<Reply, ApiError> {
    let name = &input.params.username;
    let (cpu, memory) = (input.params.cpu()?, input.params.memory()?);
    let mut tx = input.meta.begin(&deps).await?;
    let user = present_user(user::find(&mut tx, name).await?, name)?;
    let expected = input.if_generation;
    let generation = container::set_limits(&mut tx, &user.uid, cpu, memory, expected).await?;
    let about = About::object(Kind::Container, &user.name);
    tx.commit(about.detail(limits_text(cpu, memory))).await?;
    tracing::info!(%actor, user = %user.name, ?cpu, ?memory, "container limits");
    let change = Change::of_container(&user, generation);
    let done = format!("the container of {} has these limits", user.name);
    let reply = wait::answer(&deps, &change, input.wait, done).await?;
    Ok(reply.with("cpu_limit", cpu).with("memory_limit_mb", memory))
}

fn limits_text(cpu: Option<f64>, memory: Option<i64>) -> String {
    let cpu = cpu.map_or("as configured".to_owned(), |cores| cores.to_string());
    let memory = memory.map_or("as configured".to_owned(), |mib| format!("{mib} MiB"));
    format!("cpu: {cpu}, memory: {memory}")
}

/// Which part of whose log.
#[derive(Debug, Deserialize)]
pub struct LogsOf {
    username: UserName,
    tail: Option<String>,
    since: Option<String>,
    follow: Option<bool>,
}

/// `GET /api/admin/container/logs`: the log, or an event stream with `follow=true`.
///
/// # Errors
/// 404 without such a user or container, 429 when too many logs are followed, 503 while the engine cannot be reached.
pub async fn logs(
    Superadmin(actor): Superadmin,
    input: Input<LogsOf>,
    deps: Deps,
) -> Result<Reply, ApiError> {
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
    live::logs(&deps, actor.session(), whose, &params).await
}

/// `GET /api/admin/container/inspect`: what the engine knows of it.
///
/// # Errors
/// As [`logs`].
pub async fn inspect(_: Superadmin, input: Input<Who>, deps: Deps) -> Result<Reply, ApiError> {
    let user = find(&deps, &input.params.username).await?;
    let facts = deps.inspect.inspect(&user.uid).await?;
    let facts = facts.ok_or_else(|| no_container(&user.name))?;
    Ok(Reply::ok("what the engine knows of the container")
        .with("username", &user.name)
        .with("container", facts))
}

/// `GET /api/admin/container/stats`: one sample of its resource use.
///
/// # Errors
/// As [`logs`].
pub async fn stats(_: Superadmin, input: Input<Who>, deps: Deps) -> Result<Reply, ApiError> {
    let user = find(&deps, &input.params.username).await?;
    let usage = deps.stats.stats(&user.uid).await?;
    let usage = usage.ok_or_else(|| no_container(&user.name))?;
    Ok(Reply::ok("resource use of the container")
        .with("username", &user.name)
        .with("stats", usage))
}

/// The user of a live read. The connection is given back before the engine is asked.
async fn find(deps: &Deps, name: &UserName) -> Result<User, ApiError> {
    let mut connection = deps.db.read().await?;
    ordinary_user(user::find(&mut connection, name).await?, name)
}

#[cfg(test)]
mod tests;
