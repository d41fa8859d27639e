//! The adapter: what is in effect, and how another one comes into effect.
//!
//! An upload and a way back are done when they are committed; whatever is made by the adapter is brought up to it by
//! the reconcilers. A refresh is only asked for here.

mod channels;
mod show;
#[cfg(test)]
pub(in crate::routes) mod tests;
mod upload;

use schema::adapter::store;
use schema::audit::About;
use schema::config::history::SavedBy;
use schema::config::{Config, keys, query as config};
use schema::ids::{Generation, Kind, Uid};
use schema::rollout::{RolloutKind, held};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::{Input, Nothing};
use crate::route::{Area, Failure, Route, Tokens};
use crate::wait::{self, Change, Converging, Until};

/// The routes of this file, and of those below it.
pub(super) fn routes() -> Vec<Route> {
    let own = vec![
        Route::post(
            "adapter_refresh",
            "/api/admin/migration-rules/refresh",
            refresh,
        )
        .tokens(Tokens::Admin)
        .title(Area::Adapter, "Update the adapter from its source")
        .about(
            "Only a newer package replaces the active one. The answer waits 10 s unless \
                 `wait` says otherwise.",
        )
        .waits()
        .guarded()
        .fails(&[
            Failure(422, "no_adapter_source", "adapter.source_url is not set"),
            Failure(422, "adapter_invalid", "the source's package is not valid"),
            Failure(
                502,
                "adapter_source_failed",
                "the source returned no package",
            ),
        ]),
        Route::post(
            "adapter_rollback",
            "/api/admin/migration-rules/rollback",
            roll_back,
        )
        .tokens(Tokens::Admin)
        .title(Area::Adapter, "Roll back to the previous adapter")
        .about(
            "A second call switches back again. `if_generation` is compared with the \
                 `generation` that the GET returned.",
        )
        .guarded()
        .fails(&[Failure(409, "wrong_state", "there is no previous adapter")]),
    ];
    let files = [show::routes(), upload::routes(), own, channels::routes()];
    files.into_iter().flatten().collect()
}

fn about() -> About {
    About::object(Kind::Adapter, store::OBJECT_NAME)
}

/// `POST /api/admin/migration-rules/refresh`: the source is asked now.
///
/// # Errors
/// 422 `no_adapter_source` without one, 412 for a stale `if_generation`; within the wait 502 when the source fails,
/// 422 when what it gives is not valid.
async fn refresh(_: Superadmin, input: Input<Nothing>, deps: Deps) -> Result<Answer<Converging>> {
    let mut tx = input.meta.begin(&deps).await?;
    let (values, _) = config::load(&mut tx, &deps.master_key).await?;
    if Config::from_stored(values)
        .get(&keys::adapter::SOURCE_URL)
        .is_none()
    {
        let message = "no source of adapter packages; set adapter.source_url first";
        return Err(ApiError::unprocessable("no_adapter_source", message));
    }
    let token = Uuid::now_v7().simple().to_string();
    let generation = store::request_refresh(&mut tx, &token, input.if_generation).await?;
    let (uid, name) = (store::object_uid(), store::OBJECT_NAME);
    let change = Change::new(Kind::Adapter, uid, name, generation);
    tx.commit(change.about()).await?;
    let settled = wait::settle(&deps, &change, Until::Converged, input.wait).await;
    let version = &deps.adapter.current().await?.index.adapter_version;
    let mut connection = deps.db.read().await?;
    let task = held::unfinished(&mut connection, RolloutKind::Adapter).await?;
    drop(connection);
    let done = format!("the source was asked; adapter {version} is active");
    wait::reply(
        &change,
        settled,
        append_task(done, task.as_ref().map(Uid::as_str)),
        "requested; the source is being asked",
    )
}

/// The active adapter after a switch.
#[derive(Debug, Serialize, ToSchema)]
pub struct InEffect {
    /// The package's version.
    #[schema(example = "1.4")]
    adapter_version: String,
    /// SHA-256 over its files.
    digest: String,
    /// Another package is active than before.
    changed: bool,
    /// What was changed.
    #[schema(example = "adapter/active")]
    object: String,
    /// Its generation after it. The switch is complete: there is nothing to wait for.
    generation: Generation,
    /// The rollout in which agents that are ready get it, a few at a time (`container.max_unavailable`), and its task. Absent when
    /// there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, example = "01970a3e6f0c7d3b8a5b6b1d2c3e4f50")]
    task_id: Option<String>,
}

/// Says what puts a package into effect, and how it gets to the agents.
fn append_task(message: String, task: Option<&str>) -> String {
    match task {
        Some(task) => format!("{message}; agents get it in steps (task {task})"),
        None => message,
    }
}

fn object_name() -> String {
    format!("{}/{}", Kind::Adapter, store::OBJECT_NAME)
}

/// `POST /api/admin/migration-rules/rollback`: the package that was before is in effect again.
///
/// # Errors
/// 409 `wrong_state` when there was none, 412 for a stale `if_generation`.
async fn roll_back(
    Superadmin(actor): Superadmin,
    input: Input<Nothing>,
    deps: Deps,
) -> Result<Answer<InEffect>> {
    let mut tx = input.meta.begin(&deps).await?;
    store::object_generation(&mut tx, input.if_generation).await?;
    let by = SavedBy {
        actor: &actor.to_string(),
        at: deps.clock.now(),
    };
    let activated = store::roll_back(&mut tx, by).await?;
    let task_id = activated.rollout.as_ref().map(Uid::to_string);
    let generation = store::object_generation(&mut tx, None).await?;
    let known = store::known(&mut tx).await?;
    let active = known.into_iter().find(|known| known.active);
    let active = active.ok_or_else(|| ApiError::internal("no adapter is in effect"))?;
    let version = &active.version;
    tx.commit(about().detail(format!("back to version {version}")))
        .await?;
    let message = format!("adapter {version} is active again");
    let message = append_task(message, task_id.as_deref());
    Ok(Answer::ok(
        message,
        InEffect {
            adapter_version: active.version,
            digest: active.digest,
            changed: true,
            object: object_name(),
            generation,
            task_id,
        },
    ))
}
