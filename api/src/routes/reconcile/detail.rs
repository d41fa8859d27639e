//! One object in full.

mod agent_config;
mod archive;
mod container;
mod directory;
mod engine;
mod image;
mod rollout;
mod skill;
mod skill_repository;
mod skill_set;
mod user;

use std::future::ready;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use schema::condition::{self, ConditionType};
use schema::config::Config;
use schema::config::query as config_query;
use schema::event::{self, Event};
use schema::ids::{Kind, Timestamp};
use schema::object::{self, ObjectRow};
use schema::reader::Snapshot;
use schema::user::{self as user_query, Health, Standstill};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::ToSchema;

use super::{Header, missing};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::explain::{ExplainedEvent, explained_events};
use crate::input::Input;
use crate::ports::DryRun;
use crate::route::{Area, Failure, Route, Tokens};
use crate::routes::users::Standing;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "reconcile_object",
            "/api/admin/reconcile/objects/{kind}/{name}",
            object,
        )
        .tokens(Tokens::Read)
        .title(Area::Operators, "Describe an object")
        .about(
            "Desired and observed state, conditions with their remedies, what the next \
                 reconciliation would do, and the newest events.",
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
    /// The kind of the object.
    #[schema(value_type = Kind)]
    kind: String,
    /// The name of the object.
    #[schema(example = "alice")]
    name: String,
}

/// One object in full.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ObjectDetail)]
pub struct Detail {
    #[serde(flatten)]
    header: Header,
    /// Of a user: the health of the worst of container, configuration, skills and directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<Health>,
    /// Of a user: why the container is not to run, since when, and who has decided it.
    #[serde(skip_serializing_if = "Option::is_none")]
    standstill: Option<Standstill>,
    /// Null when the object has no desired state any more.
    desired: Option<Desired>,
    /// What was observed, in the same words, as far as it is known.
    observed: Option<Observed>,
    /// The object that this one waits for, the one which that one waits for, and so on.
    waits_for: Vec<Header>,
    /// Null when nothing is desired and nothing exists.
    plan: Option<Planned>,
    /// Reconcilers that have something to clean up before the object is removed.
    finalizers: Vec<String>,
    /// The newest events.
    events: Vec<ExplainedEvent>,
}

/// What the next reconciliation would do, or why that is unknown.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DryRun)]
#[serde(untagged)]
pub enum Planned {
    /// What it would do.
    Plan(DryRun),
    /// Why that is unknown.
    Unknown {
        /// A sentence.
        error: String,
    },
}

/// What a kind's sections are made from.
struct Reading<'a> {
    connection: &'a mut Snapshot,
    deps: &'a Deps,
    row: &'a ObjectRow,
    config: &'a Config,
}

/// What is desired of an object, and what was observed, which may be asked of the world after the
/// connection was given back.
struct Sections<D, O> {
    desired: Option<D>,
    observed: BoxFuture<'static, Option<O>>,
}

impl<D, O: Send + 'static> Sections<D, O> {
    fn none() -> Self {
        Self::known(None, None)
    }

    /// Nothing is left to ask.
    fn known(desired: Option<D>, observed: Option<O>) -> Self {
        let observed = ready(observed).boxed();
        Self { desired, observed }
    }
}

/// The kinds with sections of their own, each with its file.
macro_rules! kinds {
    ($($kind:ident => $file:ident,)*) => {
        /// What is desired of an object, by its kind.
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = ObjectDesired)]
        #[serde(untagged)]
        pub enum Desired { $($kind($file::Desired),)* }

        /// What was observed of an object, by its kind.
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = ObjectObserved)]
        #[serde(untagged)]
        pub enum Observed { $($kind(Box<$file::Observed>),)* }

        async fn sections(
            kind: Kind,
            at: &mut Reading<'_>,
        ) -> Result<Sections<Desired, Observed>> {
            match kind {
                $(Kind::$kind => {
                    let Sections { desired, observed } = $file::read(at).await?;
                    let observed = observed.map(|found| found.map(Box::new).map(Observed::$kind));
                    Ok(Sections {
                        desired: desired.map(Desired::$kind),
                        observed: observed.boxed(),
                    })
                })*
                _ => Ok(Sections::none()),
            }
        }
    };
}

kinds! {
    Container => container,
    AgentConfig => agent_config,
    Archive => archive,
    Directory => directory,
    Engine => engine,
    Image => image,
    Rollout => rollout,
    Skill => skill,
    SkillRepository => skill_repository,
    SkillSet => skill_set,
    User => user,
}

/// What the database knows of an object.
struct Stored {
    row: ObjectRow,
    health: Option<Health>,
    standstill: Option<Standstill>,
    sections: Sections<Desired, Observed>,
    /// What it waits for.
    chain: Vec<ObjectRow>,
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
async fn object(_: Superadmin, input: Input<Address>, deps: Deps) -> Result<Answer<Detail>> {
    let Address { kind, name } = &input.params;
    let kind: Kind = kind
        .parse()
        .map_err(|_| ApiError::not_found("kind of object"))?;
    // The connection is given back before the world is observed.
    let stored = read(&deps, kind, name).await?;
    let plan = dry_run(&deps, kind, &stored.row).await;
    let observed = stored.sections.observed.await;
    let chain = stored.chain.into_iter();
    let waits_for = chain.map(|row| Header::of(&deps, row, &stored.paused));
    let waits_for = waits_for.collect();
    let message = format!("{kind}/{}", stored.row.name);
    let detail = Detail {
        header: Header::of(&deps, stored.row, &stored.paused),
        health: stored.health,
        standstill: stored.standstill,
        desired: stored.sections.desired,
        observed,
        waits_for,
        plan,
        finalizers: stored.finalizers,
        events: explained_events(stored.events),
    };
    Ok(Answer::ok(message, detail))
}

async fn read(deps: &Deps, kind: Kind, name: &str) -> Result<Stored> {
    let mut connection = deps.db.snapshot().await?;
    let row = object::find_by_name(&mut connection, kind, name).await?;
    let row = row.ok_or_else(|| missing(kind, name))?;
    let (values, _) = config_query::load(&mut connection, &deps.master_key).await?;
    let config = Config::from_stored(values);
    let mut reading = Reading {
        connection: &mut connection,
        deps,
        row: &row,
        config: &config,
    };
    let sections = sections(kind, &mut reading).await?;
    let chain = chain(&mut connection, &row).await?;
    let epoch = Timestamp::from_millis(0);
    let paused = object::paused_reconcilers(&mut connection).await?;
    let standing = Standing {
        paused,
        grace: deps.settings().removal_grace,
    };
    let listing = match kind {
        Kind::User => user_query::listing(&mut connection, &row.uid).await?,
        _ => None,
    };
    let (health, standstill) = listing.map(|user| standing.of(&user)).unzip();
    Ok(Stored {
        health,
        standstill: standstill.flatten(),
        finalizers: object::finalizers(&mut connection, kind, &row.uid).await?,
        events: event::list(&mut connection, Some(kind), Some(&row.uid), epoch, EVENTS).await?,
        paused: standing.paused,
        sections,
        chain,
        row,
    })
}

/// What an object waits for, what that waits for, and so on to the end.
async fn chain(connection: &mut Snapshot, row: &ObjectRow) -> Result<Vec<ObjectRow>> {
    let mut chain: Vec<ObjectRow> = Vec::new();
    loop {
        let last = chain.last().unwrap_or(row);
        let ready = condition::find(&last.status.conditions, ConditionType::Ready);
        let Some(next) = ready.and_then(|ready| ready.waits_for.clone()) else {
            return Ok(chain);
        };
        // An image may be waited for that is no object: its condition names it.
        let Some(next) = object::find_by_name(connection, next.kind, &next.name).await? else {
            return Ok(chain);
        };
        let known = |other: &ObjectRow| other.kind == next.kind && other.uid == next.uid;
        if known(row) || chain.iter().any(known) {
            return Ok(chain);
        }
        chain.push(next);
    }
}

/// What the next reconciliation would do, or why that is unknown.
async fn dry_run(deps: &Deps, kind: Kind, row: &ObjectRow) -> Option<Planned> {
    let plan = deps.reconcilers.dry_run(kind.as_str(), row.uid.as_str());
    let error = match timeout(DRY_RUN_TIME, plan).await {
        Ok(Ok(plan)) => return plan.map(Planned::Plan),
        Ok(Err(error)) => error,
        Err(_) => "the object could not be observed in time".to_owned(),
    };
    Some(Planned::Unknown { error })
}
