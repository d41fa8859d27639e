//! One object in full.

use std::time::Duration;

use schema::agent_config;
use schema::condition::{self, ConditionType, Reason};
use schema::config::Config;
use schema::config::query as config_query;
use schema::container::{self, ContainerRow};
use schema::event::{self, Event};
use schema::ids::{Kind, Timestamp, Uid, UserName};
use schema::image;
use schema::object::{self, ObjectRow};
use schema::rollout;
use schema::user;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::ToSchema;

use super::observed::{DesiredState, ObservedState};
use super::{Header, missing};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::ApiError;
use crate::explain::{ExplainedEvent, explained_events};
use crate::input::Input;
use crate::ports::Plan;
use crate::route::{Area, Failure, Route};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "reconcile_object",
            "/api/admin/reconcile/objects/{kind}/{name}",
            object,
        )
        .title(
            Area::Operators,
            "One object: desired, observed, plan, events",
        )
        .about(
            "Desired and observed state, conditions with their remedies, what the next pass \
                 would do, and the newest events.",
        )
        .fails(&[Failure::NO_OBJECT]),
    ]
}

/// Events shown with an object.
const EVENTS: i64 = 20;
/// Longest time a dry run may take to observe.
const DRY_RUN_TIME: Duration = Duration::from_secs(15);

/// Which object.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Address {
    #[schema(value_type = Kind)]
    kind: String,
    #[schema(example = "alice")]
    name: String,
}

/// One object in full.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ObjectDetail)]
pub struct Detail {
    #[serde(flatten)]
    header: Header,
    /// Null when the object has no desired state any more.
    desired: Option<DesiredState>,
    /// What is, in the same words, as far as it is known.
    observed: Option<ObservedState>,
    /// The object whose state this one waits for.
    waits_for: Option<Header>,
    /// Null when nothing is desired and nothing is there.
    plan: Option<DryRun>,
    /// Who has something to clean up before the object is gone.
    finalizers: Vec<String>,
    /// The newest events.
    events: Vec<ExplainedEvent>,
}

/// What the next pass would do, or why that cannot be said.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum DryRun {
    /// What it would do.
    Plan(Plan),
    /// Why that cannot be said.
    #[schema(title = "unknown")]
    Unknown {
        /// A sentence.
        error: String,
    },
}

/// What the database knows of an object.
struct Stored {
    row: ObjectRow,
    desired: Option<DesiredState>,
    container: Option<ContainerRow>,
    /// What its reconciler remembers, when that is all there is to tell.
    world: Option<ObservedState>,
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
async fn object(
    _: Superadmin,
    input: Input<Address>,
    deps: Deps,
) -> Result<Answer<Detail>, ApiError> {
    let Address { kind, name } = &input.params;
    let kind: Kind = kind
        .parse()
        .map_err(|_| ApiError::not_found("this kind of object"))?;
    // The connection is given back before the world is looked at.
    let mut stored = read(&deps, kind, name).await?;
    let plan = dry_run(&deps, kind, &stored.row).await;
    let observed = observed(&deps, kind, &mut stored).await;
    let awaited = stored.awaited;
    let waits_for = awaited.map(|row| Header::of(&deps, row, &stored.paused));
    let message = format!("{kind}/{}", stored.row.name);
    let detail = Detail {
        header: Header::of(&deps, stored.row, &stored.paused),
        desired: stored.desired,
        observed,
        waits_for,
        plan,
        finalizers: stored.finalizers,
        events: explained_events(stored.events),
    };
    Ok(Answer::ok(message, detail))
}

async fn read(deps: &Deps, kind: Kind, name: &str) -> Result<Stored, ApiError> {
    let mut connection = deps.db.snapshot().await?;
    let row = object::find_by_name(&mut connection, kind, name).await?;
    let row = row.ok_or_else(|| missing(kind, name))?;
    let (values, _) = config_query::load(&mut connection, &deps.master_key).await?;
    let config = Config::from_stored(values);
    let mut container = None;
    let mut world = None;
    let desired = match kind {
        Kind::Container => {
            container = container::get(&mut connection, &row.uid).await?;
            let row = container.as_ref();
            row.map(|row| DesiredState::container(row, &config))
        }
        Kind::User => {
            let name: UserName = row.name.parse().map_err(ApiError::internal)?;
            let account = user::find(&mut connection, &name).await?;
            account.as_ref().map(DesiredState::user)
        }
        Kind::Engine => Some(DesiredState::Engine {
            network_subnet: config.text("container.network_subnet").to_owned(),
        }),
        Kind::Image => {
            let image = image::get(&mut connection, &row.uid).await?;
            world = image.as_ref().map(ObservedState::image);
            image.as_ref().map(DesiredState::image)
        }
        Kind::Rollout => {
            let rollout = rollout::get(&mut connection, &row.uid).await?;
            world = rollout.as_ref().map(ObservedState::rollout);
            rollout
                .as_ref()
                .map(|(rollout, _)| DesiredState::rollout(rollout))
        }
        Kind::AgentConfig => {
            let config = agent_config::get(&mut connection, &row.uid).await?;
            world = config.as_ref().map(ObservedState::config);
            config.as_ref().map(DesiredState::config)
        }
        Kind::Adapter => None,
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
        world,
        awaited,
        row,
    })
}

/// What an object waits for: reconcilers wait for each other by observing.
fn awaited(kind: Kind, row: &ObjectRow) -> Option<(Kind, Uid)> {
    let ready = condition::find(&row.status.conditions, ConditionType::Ready)?;
    match (kind, ready.reason) {
        (Kind::Container | Kind::AgentConfig, Reason::HomeMissing) => {
            Some((Kind::User, row.uid.clone()))
        }
        (Kind::Container, Reason::ConfigPending | Reason::NoMigrationPath) => {
            Some((Kind::AgentConfig, row.uid.clone()))
        }
        (Kind::AgentConfig, Reason::EngineUnavailable | Reason::NetworkMissing) => {
            Some((Kind::Engine, config_query::engine_uid()))
        }
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
async fn observed(deps: &Deps, kind: Kind, stored: &mut Stored) -> Option<ObservedState> {
    match (kind, &stored.container) {
        (Kind::Container, Some(row)) => Some(ObservedState::container(deps, row).await),
        (Kind::Container, None) => None,
        (Kind::User, _) => Some(ObservedState::user(&stored.row)),
        (Kind::Engine, _) => Some(ObservedState::engine(deps)),
        (Kind::Image | Kind::Rollout | Kind::AgentConfig, _) => stored.world.take(),
        (Kind::Adapter, _) => None,
    }
}

/// What the next pass would do, or why that cannot be said.
async fn dry_run(deps: &Deps, kind: Kind, row: &ObjectRow) -> Option<DryRun> {
    let plan = deps.reconcilers.dry_run(kind.as_str(), row.uid.as_str());
    let error = match timeout(DRY_RUN_TIME, plan).await {
        Ok(Ok(plan)) => return plan.map(DryRun::Plan),
        Ok(Err(error)) => error,
        Err(_) => "the object could not be observed in time".to_owned(),
    };
    Some(DryRun::Unknown { error })
}
