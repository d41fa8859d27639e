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
use schema::config::{Config, keys, query as config};
use schema::ids::{Generation, Kind};
use serde::Serialize;
use serde_json::Map;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::access::Op;
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::{Binder, Superadmin};
use crate::error::ApiError;
use crate::input::{Input, Nothing};
use crate::wait::{self, Change, Converging};

/// Binds the handlers of the adapter.
pub fn bind(binder: Binder) -> Binder {
    binder
        .bind(Op::AdapterShow, show::show)
        .bind(Op::AdapterList, show::list)
        .bind(Op::AdapterRefresh, refresh)
        .bind(Op::AdapterUpload, upload::upload)
        .bind(Op::AdapterRollback, roll_back)
        .bind(Op::AdapterChannels, channels::channels)
}

fn about() -> About {
    About::object(Kind::Adapter, store::OBJECT_NAME)
}

/// `POST /api/admin/migration-rules/refresh`: the source is asked now.
///
/// # Errors
/// 422 `no_adapter_source` without one, 412 for a stale `if_generation`; within the wait 502 when the source fails,
/// 422 when what it gives is not valid.
pub async fn refresh(
    Superadmin(actor): Superadmin,
    input: Input<Nothing>,
    deps: Deps,
) -> Result<Answer<Converging>, ApiError> {
    let mut tx = input.meta.begin(&deps).await?;
    let (values, _) = config::load(&mut tx, &deps.master_key).await?;
    if Config::from_stored(values)
        .get(&keys::adapter::SOURCE_URL)
        .is_none()
    {
        return Err(ApiError::Unprocessable {
            code: "no_adapter_source",
            message: "there is no source of adapter packages; set adapter.source_url first"
                .to_owned(),
            extra: Map::new(),
        });
    }
    let token = Uuid::now_v7().simple().to_string();
    let generation = store::request_refresh(&mut tx, &token, input.if_generation).await?;
    tx.commit(about()).await?;
    tracing::info!(%actor, "a look at the source of adapter packages was asked for");
    let change = Change {
        kind: Kind::Adapter,
        uid: store::object_uid(),
        name: store::OBJECT_NAME.to_owned(),
        generation,
    };
    let settled = wait::settle(&deps, &change, input.wait).await;
    let version = &deps.adapter.current().await?.index.adapter_version;
    wait::reply(
        &change,
        settled,
        format!("the source was asked; adapter {version} is in effect"),
        "accepted; the source is being asked",
    )
}

/// What is in effect after a switch.
#[derive(Debug, Serialize, ToSchema)]
pub struct InEffect {
    /// What the package says of itself.
    #[schema(example = "1.4")]
    adapter_version: String,
    /// SHA-256 over its files.
    digest: String,
    /// Another package is in effect than before.
    changed: bool,
    /// What was changed.
    #[schema(example = "adapter/active")]
    object: String,
    /// Its generation after it. The switch is done when it is answered: there is nothing to wait for.
    generation: Generation,
}

fn object_name() -> String {
    format!("{}/{}", Kind::Adapter, store::OBJECT_NAME)
}

/// `POST /api/admin/migration-rules/rollback`: the package that was before is in effect again.
///
/// # Errors
/// 409 `wrong_state` when there was none, 412 for a stale `if_generation`.
pub async fn roll_back(
    Superadmin(actor): Superadmin,
    input: Input<Nothing>,
    deps: Deps,
) -> Result<Answer<InEffect>, ApiError> {
    let mut tx = input.meta.begin(&deps).await?;
    store::object_generation(&mut tx, input.if_generation).await?;
    store::roll_back(&mut tx, deps.clock.now()).await?;
    let generation = store::object_generation(&mut tx, None).await?;
    let known = store::known(&mut tx).await?;
    let active = known.into_iter().find(|known| known.active);
    let active = active.ok_or_else(|| ApiError::internal("no adapter is in effect"))?;
    let version = &active.version;
    tx.commit(about().detail(format!("back to version {version}")))
        .await?;
    tracing::info!(%actor, version, "the adapter was rolled back");
    let message = format!("adapter {version} is in effect again");
    Ok(Answer::ok(
        message,
        InEffect {
            adapter_version: active.version,
            digest: active.digest,
            changed: true,
            object: object_name(),
            generation,
        },
    ))
}
