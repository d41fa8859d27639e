//! One object in full.

use std::time::Duration;

use schema::condition::{self, ConditionType, Reason};
use schema::config::Config;
use schema::config::query as config_query;
use schema::container::{self, ContainerRow};
use schema::event::{self, Event};
use schema::ids::{Kind, Timestamp, Uid, UserName};
use schema::object::{self, ObjectRow};
use schema::user;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::observed::{desired_container, observed_container};
use super::{Header, missing};
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::ApiError;
use crate::explain::explained_events;
use crate::input::Input;
use crate::reply::Reply;

/// Events shown with an object.
const EVENTS: i64 = 20;
/// Longest time a dry run may take to observe.
const DRY_RUN_TIME: Duration = Duration::from_secs(15);

/// Which object.
#[derive(Debug, Deserialize)]
pub struct Address {
    kind: String,
    name: String,
}

/// What the database knows of an object.
struct Stored {
    row: ObjectRow,
    desired: Value,
    container: Option<ContainerRow>,
    /// The object whose state this one waits for.
    awaited: Option<ObjectRow>,
    /// Paused reconcilers.
    paused: Vec<String>,
    finalizers: Vec<String>,
    events: Vec<Event>,
}

/// `GET /api/admin/reconcile/objects/{kind}/{name}`: desired, observed, conditions with their
/// remedies, what is wrong and what is tried next, the object it waits for, what the next pass would
/// do, events.
///
/// # Errors
/// 404 without such an object.
pub async fn object(_: Superadmin, input: Input<Address>, deps: Deps) -> Result<Reply, ApiError> {
    let Address { kind, name } = &input.params;
    let kind: Kind = kind
        .parse()
        .map_err(|_| ApiError::not_found("this kind of object"))?;
    // The connection is given back before the world is looked at.
    let stored = read(&deps, kind, name).await?;
    let plan = dry_run(&deps, kind, &stored.row).await;
    let observed = observed(&deps, kind, &stored).await;
    let header = Header::of(&deps, &stored.row, &stored.paused);
    let header = serde_json::to_value(header).map_err(ApiError::internal)?;
    let awaited = stored.awaited.as_ref();
    let awaited = awaited.map(|row| Header::of(&deps, row, &stored.paused));
    let mut reply = Reply::ok(format!("{kind}/{}", stored.row.name));
    if let Value::Object(header) = header {
        reply = reply.with_all(header);
    }
    Ok(reply
        .with("desired", stored.desired)
        .with("observed", observed)
        .with("waits_for", awaited)
        .with("plan", plan)
        .with("finalizers", stored.finalizers)
        .with("events", explained_events(stored.events)))
}

async fn read(deps: &Deps, kind: Kind, name: &str) -> Result<Stored, ApiError> {
    let mut connection = deps.db.snapshot().await?;
    let row = object::find_by_name(&mut connection, kind, name).await?;
    let row = row.ok_or_else(|| missing(kind, name))?;
    let (values, _) = config_query::load(&mut connection, &deps.master_key).await?;
    let config = Config::from_stored(values);
    let mut container = None;
    let desired = match kind {
        Kind::Container => {
            container = container::get(&mut connection, &row.uid).await?;
            let desired = container.as_ref();
            json!(desired.map(|container| desired_container(container, &config)))
        }
        Kind::User => {
            let name: UserName = row.name.parse().map_err(ApiError::internal)?;
            let account = user::find(&mut connection, &name).await?;
            json!(account.map(|account| {
                json!({
                    "role": account.role,
                    "source": account.source,
                    "disabled": account.disabled,
                    "directory": format!("users/{}", account.name),
                })
            }))
        }
        Kind::Engine => json!({ "network_subnet": config.text("container.network_subnet") }),
    };
    let awaited = match awaited(kind, &row) {
        Some((kind, uid)) => object::get(&mut connection, kind, &uid).await?,
        None => None,
    };
    let epoch = Timestamp::from_millis(0);
    Ok(Stored {
        finalizers: object::finalizers(&mut connection, kind, &row.uid).await?,
        events: event::list(&mut connection, Some(kind), Some(&row.uid), epoch, EVENTS).await?,
        paused: object::paused_reconcilers(&mut connection).await?,
        desired,
        container,
        awaited,
        row,
    })
}

/// What an object waits for: reconcilers wait for each other by observing.
fn awaited(kind: Kind, row: &ObjectRow) -> Option<(Kind, Uid)> {
    let ready = condition::find(&row.status.conditions, ConditionType::Ready)?;
    match (kind, ready.reason) {
        (Kind::Container, Reason::HomeMissing) => Some((Kind::User, row.uid.clone())),
        (Kind::User, Reason::Terminating) => Some((Kind::Container, row.uid.clone())),
        (
            Kind::Container,
            Reason::EngineUnavailable
            | Reason::EngineTooOld
            | Reason::NetworkMissing
            | Reason::DataDirMismatch,
        ) => Some((Kind::Engine, config_query::engine_uid())),
        _ => None,
    }
}

/// What is, as far as it is known.
async fn observed(deps: &Deps, kind: Kind, stored: &Stored) -> Value {
    match (kind, &stored.container) {
        (Kind::Container, Some(container)) => observed_container(deps, container).await,
        (Kind::Container, None) => Value::Null,
        (Kind::User, _) => {
            let ready = condition::find(&stored.row.status.conditions, ConditionType::Ready);
            json!({ "directory": ready.map(|ready| &ready.message) })
        }
        (Kind::Engine, _) => {
            let engine = deps.engine.engine();
            let network = deps.engine.network();
            let subnet = network.as_ref().and_then(|network| network.get("subnet"));
            json!({
                "available": engine.available,
                "engine": engine.message,
                "network_subnet": subnet,
                "network": network,
            })
        }
    }
}

/// What the next pass would do, or why that cannot be said.
async fn dry_run(deps: &Deps, kind: Kind, row: &ObjectRow) -> Value {
    let plan = deps.reconcilers.dry_run(kind.as_str(), row.uid.as_str());
    match timeout(DRY_RUN_TIME, plan).await {
        Ok(Ok(plan)) => json!(plan),
        Ok(Err(error)) => json!({ "error": error }),
        Err(_) => json!({ "error": "the object could not be observed in time" }),
    }
}
