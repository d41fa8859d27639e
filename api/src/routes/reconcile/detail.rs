//! One object in full.

use std::time::Duration;

use schema::config::Config;
use schema::config::query as config_query;
use schema::container::{self, ContainerFacts, ContainerRow};
use schema::event::{self, Event};
use schema::ids::{Kind, Timestamp, UserName};
use schema::object::{self, ObjectRow};
use schema::user::{self, Role, Source, User};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::ToSchema;

use super::{Header, missing};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::ApiError;
use crate::input::Input;
use crate::ports::Plan;

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
    /// What the reconciler remembers of the world, if it does.
    observed: Option<ContainerFacts>,
    /// Null when nothing is desired and nothing is there.
    plan: Option<DryRun>,
    /// Who has something to clean up before the object is gone.
    finalizers: Vec<String>,
    /// The newest events.
    events: Vec<Event>,
}

/// What is wanted of an object.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ObjectDesired)]
#[serde(untagged)]
pub enum DesiredState {
    /// Of a container.
    #[schema(title = "container")]
    Container {
        /// Whether it shall run, all things considered.
        running: bool,
        desired: container::Desired,
        /// The user is disabled.
        disabled: bool,
        debug: bool,
        /// Another one asks for another restart.
        restart_token: String,
        image: String,
        /// Cores; null = as configured for everybody.
        cpu_limit: Option<f64>,
        /// MiB; null = as configured for everybody.
        memory_limit_mb: Option<i64>,
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
    facts: Option<ContainerFacts>,
    finalizers: Vec<String>,
    events: Vec<Event>,
}

/// `GET /api/admin/reconcile/objects/{kind}/{name}`: desired, observed, conditions with their
/// remedies, what the next pass would do, events.
///
/// # Errors
/// 404 without such an object.
pub async fn object(
    _: Superadmin,
    input: Input<Address>,
    deps: Deps,
) -> Result<Answer<Detail>, ApiError> {
    let Address { kind, name } = &input.params;
    let kind: Kind = kind
        .parse()
        .map_err(|_| ApiError::not_found("this kind of object"))?;
    // The connection is given back before the world is looked at.
    let stored = read(&deps, kind, name).await?;
    let plan = dry_run(&deps, kind, &stored.row).await;
    let message = format!("{kind}/{}", stored.row.name);
    let detail = Detail {
        header: Header::from(stored.row),
        desired: stored.desired,
        observed: stored.facts,
        plan,
        finalizers: stored.finalizers,
        events: stored.events,
    };
    Ok(Answer::ok(message, detail))
}

async fn read(deps: &Deps, kind: Kind, name: &str) -> Result<Stored, ApiError> {
    let mut connection = deps.db.snapshot().await?;
    let row = object::find_by_name(&mut connection, kind, name).await?;
    let row = row.ok_or_else(|| missing(kind, name))?;
    let (desired, facts) = match kind {
        Kind::Container => match container::get(&mut connection, &row.uid).await? {
            Some(container) => (Some(of_container(&container)), Some(container.facts)),
            None => (None, None),
        },
        Kind::User => {
            let name: UserName = row.name.parse().map_err(ApiError::internal)?;
            let account = user::find(&mut connection, &name).await?;
            (account.map(|account| of_user(&account)), None)
        }
        Kind::Engine => {
            let (values, _) = config_query::load(&mut connection, &deps.master_key).await?;
            let config = Config::from_stored(values);
            let network_subnet = config.text("container.network_subnet").to_owned();
            (Some(DesiredState::Engine { network_subnet }), None)
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

fn of_container(row: &ContainerRow) -> DesiredState {
    DesiredState::Container {
        running: row.shall_run(),
        desired: row.desired,
        disabled: row.disabled,
        debug: row.debug,
        restart_token: row.restart_token.clone(),
        image: row.image_ref.clone(),
        cpu_limit: row.cpu_limit,
        memory_limit_mb: row.memory_limit_mb,
    }
}

fn of_user(account: &User) -> DesiredState {
    DesiredState::User {
        role: account.role,
        source: account.source,
        disabled: account.disabled,
        directory: format!("users/{}", account.name),
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
