//! The operators' view: reconcilers, objects, events, and the switches on them.

use std::time::Duration;

use schema::api_token::{self, ApiToken};
use schema::change::{self, Position};
use schema::condition::{self, Condition, Reason};
use schema::config::{Config, query as config_query};
use schema::event::{self, EndCount, Subject};
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::object::{self, ObjectRow, ReadyCount};
use schema::reader::Connection;
use schema::usage::{self, QuotaUsers};
use serde::{Deserialize, Serialize};
use strum::VariantArray;
use utoipa::ToSchema;

use super::agent_model;
use super::auth::whitelist;
use super::page::{Page, read_page, search};
use super::params;
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::explain::{Explained, ExplainedEvent, explained, explained_events, explained_owned};
use crate::input::{Input, Nothing, Paging};
use crate::ports::{BackupState, EngineState, LeaderState, LiveNumbers, PartHealth};
use crate::route::{Area, Route, Tokens};

mod detail;
mod guidance;
mod switches;

use guidance::{Guidance, Paused};

/// The routes of this file, and of those below it.
pub(super) fn routes() -> Vec<Route> {
    let mut routes = vec![
        Route::get("reconcile", "/api/admin/reconcile", overview)
            .tokens(Tokens::Read)
            .title(Area::Operators, "Get the leader and the reconcilers")
            .about(
                "Counts come from the database and hold for every replica; live numbers are those \
                 of this process.",
            ),
        Route::get("reconcile_objects", "/api/admin/reconcile/objects", objects)
            .tokens(Tokens::Read)
            .title(Area::Operators, "List objects and their conditions")
            .about(
                "Each with the remedies of its conditions and, unless it is as desired: what is \
                 wrong, since when, what is tried next, and how to force it. `search` matches \
                 names.",
            )
            .paged(),
        Route::get("events", "/api/admin/events", events)
            .tokens(Tokens::Read)
            .title(Area::Operators, "List events")
            .about(
                "Newest first: one page, or without one the newest. Repeats within 5 minutes are \
                 one event. Removed objects have events, too.",
            )
            .paged(),
    ];
    routes.extend(detail::routes());
    routes.extend(switches::routes());
    routes
}

/// Events shown when the client names no number.
const DEFAULT_EVENTS: i64 = 100;
/// Most events of one answer.
const MAX_EVENTS: i64 = 1000;
/// The service itself, as events name it.
const SERVICE_OBJECT: &str = "service/agentyard";
/// Time before the end of an API token in which it should be replaced.
const TOKEN_RENEWAL: Duration = Duration::from_secs(21 * 24 * 60 * 60);
/// Time within which ends of containers are counted in a list.
const ENDS_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);
/// In the table of paused reconcilers: all of them.
const ALL: &str = "*";

/// The operators' overview.
#[derive(Debug, Serialize, ToSchema)]
pub struct Overview {
    /// Who runs the reconcilers.
    leader: LeaderState,
    /// The container engine.
    engine: EngineState,
    /// The parts of the service.
    health: Vec<PartHealth>,
    /// Conditions of `service/agentyard`: `Ready` is false with the fault of its worst part.
    conditions: Vec<Explained>,
    /// Warnings while the parts of the service are ready, each with its remedy.
    warnings: Vec<String>,
    /// Scheduled backups; null while there is no schedule.
    backup: Option<BackupState>,
    /// All reconcilers are paused.
    paused: bool,
    /// All reconcilers.
    reconcilers: Vec<Summary>,
}

/// Numbers of one reconciler.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReconcilerSummary)]
pub struct Summary {
    /// The kind of objects it is for.
    #[schema(value_type = Kind)]
    name: String,
    /// Objects it is for.
    objects: i64,
    /// Objects observed as desired.
    ready: i64,
    /// Objects that are not.
    not_ready: i64,
    /// Objects in back-off.
    failing: i64,
    /// It is paused, by itself or with all of them.
    paused: bool,
    #[serde(flatten)]
    live: LiveNumbers,
}

/// `GET /api/admin/reconcile`: the leader, and numbers for each reconciler. Counts come from the
/// database and hold on every replica; what is live is this process's own.
///
/// # Errors
/// Only when the database fails.
async fn overview(_: Superadmin, _: Input<Nothing>, deps: Deps) -> Result<Answer<Overview>> {
    let mut connection = deps.db.snapshot().await?;
    let counts = object::ready_counts(&mut connection).await?;
    let paused = object::paused_reconcilers(&mut connection).await?;
    let observed = observe_service(&mut connection, &deps).await?;
    drop(connection);
    let overview = Overview {
        leader: observed.leader,
        engine: observed.engine,
        conditions: observed.conditions,
        health: observed.health,
        warnings: observed.warnings,
        backup: deps.health.backup(),
        paused: paused.iter().any(|name| name == ALL),
        reconcilers: merged(deps.reconcilers.summaries(), &counts, &paused),
    };
    Ok(Answer::ok("reconcilers", overview))
}

/// The service itself, without its reconcilers.
pub(super) struct Observed {
    pub(super) leader: LeaderState,
    pub(super) engine: EngineState,
    pub(super) health: Vec<PartHealth>,
    /// Conditions of `service/agentyard`.
    pub(super) conditions: Vec<Explained>,
    /// Warnings while the parts of the service are ready.
    pub(super) warnings: Vec<String>,
}

/// Observes the service itself. The engine is not asked.
///
/// # Errors
/// Only when the database fails.
pub(super) async fn observe_service(connection: &mut Connection, deps: &Deps) -> Result<Observed> {
    let quota_users = usage::quota_users(connection).await?;
    let engine = object::get(connection, Kind::Engine, &config_query::engine_uid()).await?;
    let (values, _) = config_query::load(connection, &deps.master_key).await?;
    let adapter = deps.adapter.current_in(connection).await?;
    let mut warnings = list_engine_warnings(engine.as_ref());
    let proxies = &deps.unknown_proxies;
    warnings.extend(proxies.warnings(deps.clock.steady(), &deps.settings()));
    warnings.extend(quota_users.as_ref().map(format_quota_warning));
    let config = Config::from_stored(values);
    warnings.extend(agent_model::warning(&adapter, &config));
    warnings.extend(whitelist::warning(connection, &config).await?);
    warnings.extend(deps.health.backup_warning());
    warnings.extend(deps.processes.list_differences(connection).await?);
    warnings.extend(deps.health.certificate_warnings());
    let now = deps.clock.now();
    let token = api_token::first_to_end(connection, now).await?;
    warnings.extend(token.and_then(|token| describe_end(&token, now)));
    let health = deps.health.parts();
    Ok(Observed {
        leader: deps.leadership.leader(),
        engine: deps.engine.engine(),
        conditions: explained_owned(SERVICE_OBJECT, vec![of_service(&health)]),
        health,
        warnings,
    })
}

/// Warns of an API token that ends within three weeks, if that is the last third of its life.
fn describe_end(token: &ApiToken, now: Timestamp) -> Option<String> {
    let left = token.expires_at.since(now);
    let life = token.expires_at.since(token.created_at);
    (left < TOKEN_RENEWAL && left < life / 3).then(|| {
        let (name, end) = (&token.name, token.expires_at.to_rfc3339());
        format!(
            "the API token {name} ends at {end}; give its program another one (`agentyard api-token create`), then revoke it"
        )
    })
}

/// Number of users who use up their quota, or nearly.
fn format_quota_warning(users: &QuotaUsers) -> String {
    let QuotaUsers { name, near, beyond } = users;
    format!(
        "users beyond the quota of files: {beyond}, near it: {near}; see `agentyard describe user/{name}`, and raise files.quota_mb or files.quota_files, or have files removed"
    )
}

/// `Ready` of the service itself.
fn of_service(parts: &[PartHealth]) -> Condition {
    let faulty = parts
        .iter()
        .filter_map(|part| Some((&part.part, part.fault.as_ref()?)));
    match faulty.max_by_key(|(_, fault)| fault.fatal) {
        None => Condition::ready(Reason::Running, ""),
        Some((part, fault)) => Condition {
            last_transition_at: fault.since,
            ..Condition::not_ready(fault.reason, format!("{part}: {}", fault.message))
        },
    }
}

/// Warnings of the engine, as lines.
fn list_engine_warnings(engine: Option<&ObjectRow>) -> Vec<String> {
    let of = |engine: &ObjectRow| {
        let object = format!("{}/{}", engine.kind, engine.name);
        let warnings = condition::warnings(&engine.status.conditions);
        let lines =
            warnings.map(|one| format!("{object}: {}={}: {}", one.kind, one.status, one.message));
        lines.collect()
    };
    engine.map(of).unwrap_or_default()
}

/// Live numbers and stored ones, in one object for each reconciler.
fn merged(
    mut live: Vec<(&'static str, LiveNumbers)>,
    counts: &[ReadyCount],
    paused: &[String],
) -> Vec<Summary> {
    for kind in Kind::VARIANTS {
        if !live.iter().any(|(name, _)| *name == kind.as_str()) {
            live.push((kind.as_str(), LiveNumbers::default()));
        }
    }
    let summaries = live.into_iter().map(|(name, live)| {
        let of_kind = || counts.iter().filter(|count| count.kind == name);
        let objects = of_kind().map(|count| count.n).sum();
        let are_ready = of_kind().filter(|count| count.ready == "True");
        let ready = are_ready.map(|count| count.n).sum();
        Summary {
            name: name.to_owned(),
            objects,
            ready,
            not_ready: objects - ready,
            failing: of_kind().map(|count| count.failing).sum(),
            paused: paused.iter().any(|paused| paused == ALL || paused == name),
            live,
        }
    });
    summaries.collect()
}

/// An object's header with its status.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ObjectHeader)]
pub struct Header {
    /// `kind/name`.
    #[schema(example = "container/alice")]
    object: String,
    /// Its kind.
    #[schema(value_type = Kind)]
    kind: String,
    /// Its name within the kind.
    #[schema(example = "alice")]
    name: String,
    /// Its identity, which differs between objects of the same name.
    uid: Uid,
    /// How often its desired state was changed.
    generation: Generation,
    /// The generation that was last observed.
    observed_generation: Generation,
    /// The object itself is paused.
    paused: bool,
    /// When it was created.
    created_at: Timestamp,
    /// When its removal was requested.
    deleted_at: Option<Timestamp>,
    /// Its conditions, each with its remedy.
    conditions: Vec<Explained>,
    /// Failed reconciliations in a row.
    failures: u32,
    /// When the next attempt is due, while in back-off.
    next_attempt_at: Option<Timestamp>,
    /// In a list of containers: how often it ended without a request in the last 24 hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    ends: Option<i64>,
    #[serde(flatten)]
    guidance: Guidance,
}

impl Header {
    /// `paused`: names of paused reconcilers.
    fn of(deps: &Deps, mut row: ObjectRow, paused: &[String]) -> Self {
        let by = |wanted: &str| paused.iter().any(|name| name == wanted);
        let paused = if by(ALL) {
            Some(Paused::All)
        } else if by(&row.kind) {
            Some(Paused::Reconciler)
        } else {
            row.paused.then_some(Paused::Object)
        };
        // Where a whole reconciler is paused, no pass says so of its objects.
        if matches!(paused, Some(Paused::All | Paused::Reconciler)) {
            condition::not_observed(&mut row.status.conditions);
        }
        let look = deps
            .reconcilers
            .next_reconciliation(&row.kind, row.uid.as_str());
        let object = format!("{}/{}", row.kind, row.name);
        Self {
            guidance: Guidance::of(&row, paused, look),
            kind: row.kind,
            name: row.name,
            uid: row.uid,
            generation: row.generation,
            observed_generation: row.status.observed_generation,
            paused: row.paused,
            created_at: row.created_at,
            deleted_at: row.deleted_at,
            conditions: explained(&object, &row.status.conditions),
            object,
            failures: row.status.failures,
            next_attempt_at: row.status.next_attempt_at,
            ends: None,
        }
    }
}

/// Which objects.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Filter {
    /// Only objects of this kind.
    #[schema(value_type = Option<Kind>)]
    reconciler: Option<String>,
    /// Only objects whose `Ready` is `true`, `false` or `unknown`.
    #[schema(pattern = "^(true|false|unknown)?$", example = "false")]
    ready: Option<String>,
    /// Only objects that are not ready, or not observed since their last change. Not beside `ready`.
    #[serde(default, deserialize_with = "params::flag")]
    not_ready: bool,
}

impl Filter {
    fn kind(&self) -> Result<Option<Kind>> {
        params::given(&self.reconciler)
            .map(|name| params::kind("reconciler", name))
            .transpose()
    }

    fn ready(&self) -> Result<Option<&'static str>> {
        match self
            .ready
            .as_deref()
            .map(str::to_ascii_lowercase)
            .as_deref()
        {
            None | Some("") => Ok(self.not_ready.then_some(object::UNREADY)),
            Some(_) if self.not_ready => Err(ApiError::invalid(
                "not_ready",
                "ready and not_ready exclude each other: give one of them",
            )),
            Some("true") => Ok(Some("True")),
            Some("false") => Ok(Some("False")),
            Some("unknown") => Ok(Some("Unknown")),
            Some(_) => Err(ApiError::invalid(
                "ready",
                "ready is true, false or unknown",
            )),
        }
    }
}

/// Objects with their conditions.
#[derive(Debug, Serialize, ToSchema)]
pub struct Objects {
    objects: Vec<Header>,
    /// The id to start watching from, for changes after this list.
    #[schema(value_type = String, example = "5f0c2a-41")]
    watch_id: Position,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/reconcile/objects`: objects with their conditions, each with its remedy, and for
/// what is not as desired: what is wrong, since when, what is tried next, and how to force it.
///
/// # Errors
/// 400 for an unknown reconciler or value of `ready`.
async fn objects(_: Superadmin, input: Input<Filter>, deps: Deps) -> Result<Answer<Objects>> {
    let (kind, ready) = (input.params.kind()?, input.params.ready()?);
    let paging = input.paging.as_ref();
    let mut connection = deps.db.snapshot().await?;
    let watch_id = change::position(&mut connection).await?;
    let (rows, page) = read_page!(paging, window => {
        object::list(&mut connection, kind, ready, search(paging), window.limit, window.offset)
    });
    let paused = object::paused_reconcilers(&mut connection).await?;
    let ends = match (kind, rows.first(), rows.last()) {
        (Some(Kind::Container), Some(first), Some(last)) => {
            let since = deps.clock.now().minus(ENDS_WITHIN);
            let names = (first.name.as_str(), last.name.as_str());
            Some(event::count_ends(&mut connection, names, since).await?)
        }
        _ => None,
    };
    drop(connection);
    let headers = rows.into_iter().map(|row| {
        let of = |ends: &Vec<EndCount>| {
            let ends = ends.iter().find(|ends| ends.uid == row.uid);
            ends.map_or(0, |ends| ends.n)
        };
        let ends = ends.as_ref().map(of);
        Header {
            ends,
            ..Header::of(&deps, row, &paused)
        }
    });
    let objects = Objects {
        objects: headers.collect(),
        watch_id,
        page,
    };
    Ok(Answer::ok("objects", objects))
}

/// Which events.
#[derive(Debug, Deserialize, ToSchema)]
pub struct EventFilter {
    /// Only events of this object: `kind/name`, even if removed. `service/agentyard` is the service itself.
    #[schema(example = "container/alice")]
    object: Option<String>,
    /// Only events of what belongs, or belonged, to a user of this name: the account, its container, configuration and skills.
    #[schema(example = "alice")]
    user: Option<String>,
    /// Only events of objects of this kind.
    #[schema(example = "container")]
    kind: Option<String>,
    /// Only events with this reason.
    #[schema(example = "CrashLoop")]
    reason: Option<String>,
    /// Only events that happened (again) from this time on: RFC 3339, or Unix seconds.
    #[schema(example = "2026-05-11T11:46:40Z")]
    since: Option<String>,
    /// Without a page: the newest so many (default 100, at most 1000).
    #[schema(minimum = 1, maximum = 1000, example = 100)]
    limit: Option<i64>,
}

impl EventFilter {
    fn limit(&self) -> Result<i64> {
        let limit = self.limit.unwrap_or(DEFAULT_EVENTS);
        if (1..=MAX_EVENTS).contains(&limit) {
            return Ok(limit);
        }
        let rule = format!("limit is a whole number from 1 to {MAX_EVENTS}");
        Err(ApiError::invalid("limit", rule))
    }

    fn filter(&self, search: &str) -> Result<event::Filter> {
        let (kind, name) = match (params::given(&self.object), params::given(&self.kind)) {
            (Some(object), None) if object == SERVICE_OBJECT => (Some(Subject::Service), None),
            (Some(object), None) => {
                let (kind, name) = params::object_address("object", object)?;
                (Some(Subject::Object(kind)), Some(name))
            }
            (None, Some(kind)) if kind == event::SERVICE => (Some(Subject::Service), None),
            (None, Some(kind)) => (Some(Subject::Object(params::kind("kind", kind)?)), None),
            (None, None) => (None, None),
            (Some(_), Some(_)) => return Err(params::kind_beside_object()),
        };
        let reason = params::given(&self.reason).map(str::parse);
        let reason = reason.transpose().map_err(|_| {
            ApiError::invalid(
                "reason",
                "reason is a word such as ImageMissing or CrashLoop",
            )
        })?;
        let since = params::moment("since", self.since.as_deref())?;
        Ok(event::Filter {
            since: since.unwrap_or_default(),
            kind,
            name,
            user: params::given(&self.user).map(str::to_owned),
            reason,
            search: search.to_owned(),
        })
    }
}

/// Events, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventList {
    events: Vec<ExplainedEvent>,
    /// The id to start watching from, for changes after this list.
    #[schema(value_type = String, example = "5f0c2a-41")]
    watch_id: Position,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/events`: what happened to objects, newest first: one page, or without one the
/// newest.
///
/// # Errors
/// 400 for a bad object, kind, reason, time or limit.
async fn events(_: Superadmin, input: Input<EventFilter>, deps: Deps) -> Result<Answer<EventList>> {
    let paging = input.paging.as_ref();
    let filter = input.params.filter(search(paging))?;
    // Without a page, the newest are one of as many as there may be.
    let newest = first(input.params.limit()?);
    let mut connection = deps.db.snapshot().await?;
    let watch_id = change::position(&mut connection).await?;
    let paging = paging.unwrap_or(&newest);
    let (events, page) = read_page!(Some(paging), window => {
        event::page(&mut connection, &filter, window.limit, window.offset)
    });
    drop(connection);
    let list = EventList {
        events: explained_events(events),
        watch_id,
        page,
    };
    Ok(Answer::ok("events, newest first", list))
}

/// The first page of this size.
fn first(page_size: i64) -> Paging {
    Paging {
        page_size: u32::try_from(page_size).unwrap_or(1),
        ..Paging::default()
    }
}

/// Finds an object by kind and name, whatever its state.
async fn find(deps: &Deps, kind: Kind, name: &str) -> Result<ObjectRow> {
    let mut connection = deps.db.read().await?;
    let row = object::find_by_name(&mut connection, kind, name).await?;
    row.ok_or_else(|| missing(kind, name))
}

fn missing(kind: Kind, name: &str) -> ApiError {
    let name: String = name.chars().take(64).collect();
    ApiError::not_found(format!("{kind}/{name}"))
}

#[cfg(test)]
mod tests;
