//! One object in full.

use std::time::Duration;

use schema::config::Config;
use schema::config::query as config_query;
use schema::container;
use schema::event::{self, Event};
use schema::ids::{Kind, Timestamp, UserName};
use schema::object::{self, ObjectRow};
use schema::user;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Header, missing};
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::ApiError;
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
    facts: Value,
    finalizers: Vec<String>,
    events: Vec<Event>,
}

/// `GET /api/admin/reconcile/objects/{kind}/{name}`: desired, observed, conditions with their
/// remedies, what the next pass would do, events.
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
    let header = serde_json::to_value(Header::from(&stored.row)).map_err(ApiError::internal)?;
    let mut reply = Reply::ok(format!("{kind}/{}", stored.row.name));
    if let Value::Object(header) = header {
        reply = reply.with_all(header);
    }
    Ok(reply
        .with("desired", stored.desired)
        .with("observed", stored.facts)
        .with("plan", plan)
        .with("finalizers", stored.finalizers)
        .with("events", stored.events))
}

async fn read(deps: &Deps, kind: Kind, name: &str) -> Result<Stored, ApiError> {
    let mut connection = deps.db.snapshot().await?;
    let row = object::find_by_name(&mut connection, kind, name).await?;
    let row = row.ok_or_else(|| missing(kind, name))?;
    let (desired, facts) = match kind {
        Kind::Container => match container::get(&mut connection, &row.uid).await? {
            Some(container) => (
                json!({
                    "running": container.shall_run(),
                    "desired": container.desired,
                    "disabled": container.disabled,
                    "debug": container.debug,
                    "restart_token": container.restart_token,
                    "image": container.image_ref,
                    "cpu_limit": container.cpu_limit,
                    "memory_limit_mb": container.memory_limit_mb,
                }),
                json!(container.facts),
            ),
            None => (Value::Null, Value::Null),
        },
        Kind::User => {
            let name: UserName = row.name.parse().map_err(ApiError::internal)?;
            let account = user::find(&mut connection, &name).await?;
            let desired = account.map(|account| {
                json!({
                    "role": account.role,
                    "source": account.source,
                    "disabled": account.disabled,
                    "directory": format!("users/{}", account.name),
                })
            });
            (json!(desired), Value::Null)
        }
        Kind::Engine => {
            let (values, _) = config_query::load(&mut connection, &deps.master_key).await?;
            let subnet = Config::from_stored(values).text("container.network_subnet");
            (json!({ "network_subnet": subnet }), Value::Null)
        }
    };
    let epoch = Timestamp::from_millis(0);
    Ok(Stored {
        finalizers: object::finalizers(&mut connection, kind, &row.uid).await?,
        events: event::list(&mut connection, Some(kind), Some(&row.uid), epoch, EVENTS).await?,
        desired,
        facts,
        row,
    })
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
