//! The operators' view: reconcilers, objects, events, and the switches on them.

use schema::change;
use schema::event::{self, Subject};
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::object::{self, ObjectRow, ReadyCount};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use strum::VariantArray;

use super::page::{Window, search, with_page};
use super::params;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::ApiError;
use crate::explain::{Explained, explained, explained_events};
use crate::input::{Input, Nothing, Paging};
use crate::reply::Reply;

mod detail;
mod guidance;
mod observed;
mod switches;

use guidance::Guidance;

pub use detail::object;
pub use switches::{pause, resume, retry};

/// Events shown when the client names no number.
const DEFAULT_EVENTS: i64 = 100;
/// Most events of one answer.
const MAX_EVENTS: i64 = 1000;
/// The service itself, as events name it.
const SERVICE_OBJECT: &str = "service/agentyard";
/// In the table of paused reconcilers: all of them.
const ALL: &str = "*";

/// `GET /api/admin/reconcile`: the leader, and numbers for each reconciler. Counts come from the
/// database and hold on every replica; what is live is this process's own.
///
/// # Errors
/// Only when the database fails.
pub async fn overview(_: Superadmin, _: Input<Nothing>, deps: Deps) -> Result<Reply, ApiError> {
    let mut connection = deps.db.snapshot().await?;
    let counts = object::ready_counts(&mut connection).await?;
    let paused = object::paused_reconcilers(&mut connection).await?;
    drop(connection);
    let reconcilers = merged(deps.reconcilers.summaries(), &counts, &paused);
    Ok(Reply::ok("reconcilers")
        .with("leader", deps.leadership.leader())
        .with("engine", deps.engine.engine())
        .with("health", deps.health.parts())
        .with("paused", paused.iter().any(|name| name == ALL))
        .with("reconcilers", reconcilers))
}

/// Live numbers and stored ones, in one object for each reconciler.
fn merged(live: Vec<Value>, counts: &[ReadyCount], paused: &[String]) -> Vec<Map<String, Value>> {
    let mut all: Vec<Map<String, Value>> = live
        .into_iter()
        .filter_map(|summary| match summary {
            Value::Object(summary) => Some(summary),
            _ => None,
        })
        .collect();
    for kind in Kind::VARIANTS {
        if !all
            .iter()
            .any(|summary| summary.get("name") == Some(&json!(kind)))
        {
            all.push(Map::from_iter([("name".to_owned(), json!(kind))]));
        }
    }
    for summary in &mut all {
        let name = summary
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let is_paused = paused.iter().any(|paused| paused == ALL || paused == name);
        let of_kind = counts.iter().filter(|count| count.kind == name);
        let (mut objects, mut ready, mut failing) = (0, 0, 0);
        for count in of_kind {
            objects += count.n;
            failing += count.failing;
            if count.ready == "True" {
                ready += count.n;
            }
        }
        summary.insert("objects".to_owned(), json!(objects));
        summary.insert("ready".to_owned(), json!(ready));
        summary.insert("not_ready".to_owned(), json!(objects - ready));
        summary.insert("failing".to_owned(), json!(failing));
        summary.insert("paused".to_owned(), json!(is_paused));
    }
    all
}

/// An object's header with its status.
#[derive(Debug, Serialize)]
struct Header<'a> {
    object: String,
    kind: &'a str,
    name: &'a str,
    uid: &'a Uid,
    generation: Generation,
    observed_generation: Generation,
    paused: bool,
    created_at: Timestamp,
    deleted_at: Option<Timestamp>,
    conditions: Vec<Explained<'a>>,
    failures: u32,
    next_attempt_at: Option<Timestamp>,
    #[serde(flatten)]
    guidance: Guidance,
}

impl<'a> Header<'a> {
    /// `paused`: names of paused reconcilers.
    fn of(deps: &Deps, row: &'a ObjectRow, paused: &[String]) -> Self {
        let is_paused = row.paused || paused.iter().any(|name| name == ALL || *name == row.kind);
        let look = deps.reconcilers.next_look(&row.kind, row.uid.as_str());
        Self {
            guidance: Guidance::of(row, is_paused, look),
            object: format!("{}/{}", row.kind, row.name),
            kind: &row.kind,
            name: &row.name,
            uid: &row.uid,
            generation: row.generation,
            observed_generation: row.status.observed_generation,
            paused: row.paused,
            created_at: row.created_at,
            deleted_at: row.deleted_at,
            conditions: explained(&row.status.conditions),
            failures: row.status.failures,
            next_attempt_at: row.status.next_attempt_at,
        }
    }
}

/// Which objects.
#[derive(Debug, Deserialize)]
pub struct Filter {
    reconciler: Option<String>,
    /// `true`, `false` or `unknown`.
    ready: Option<String>,
}

impl Filter {
    fn kind(&self) -> Result<Option<Kind>, ApiError> {
        match self.reconciler.as_deref() {
            None | Some("") => Ok(None),
            Some(name) => name.parse().map(Some).map_err(|_| {
                ApiError::invalid("reconciler", "reconciler is user, container or engine")
            }),
        }
    }

    fn ready(&self) -> Result<Option<&'static str>, ApiError> {
        match self
            .ready
            .as_deref()
            .map(str::to_ascii_lowercase)
            .as_deref()
        {
            None | Some("") => Ok(None),
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

/// `GET /api/admin/reconcile/objects`: objects with their conditions, each with its remedy, and for
/// what is not as desired: what is wrong, since when, what is tried next, and how to force it.
///
/// # Errors
/// 400 for an unknown reconciler or value of `ready`.
pub async fn objects(_: Superadmin, input: Input<Filter>, deps: Deps) -> Result<Reply, ApiError> {
    let (kind, ready) = (input.params.kind()?, input.params.ready()?);
    let paging = input.paging.as_ref();
    let mut connection = deps.db.snapshot().await?;
    let watch_id = change::position(&mut connection).await?;
    let Window { limit, offset } = Window::of(paging);
    let (mut rows, total) =
        object::list(&mut connection, kind, ready, search(paging), limit, offset).await?;
    if let Some(Window { limit, offset }) = Window::of(paging).corrected(paging, total) {
        (rows, _) =
            object::list(&mut connection, kind, ready, search(paging), limit, offset).await?;
    }
    let paused = object::paused_reconcilers(&mut connection).await?;
    drop(connection);
    let headers: Vec<Header<'_>> = rows
        .iter()
        .map(|row| Header::of(&deps, row, &paused))
        .collect();
    let reply = Reply::ok("objects")
        .with("objects", headers)
        .with("watch_id", watch_id);
    Ok(with_page(reply, paging, total))
}

/// Which events.
#[derive(Debug, Deserialize)]
pub struct EventFilter {
    /// `kind/name`; objects that are gone have events, too. `service/agentyard` is the service itself.
    object: Option<String>,
    /// Only those of objects of this kind.
    kind: Option<String>,
    /// Only those with this reason.
    reason: Option<String>,
    /// Only those that happened (again) from this moment on.
    since: Option<String>,
    /// Without a page: at most so many, newest first (default 100, at most 1000).
    limit: Option<i64>,
}

impl EventFilter {
    fn limit(&self) -> Result<i64, ApiError> {
        let limit = self.limit.unwrap_or(DEFAULT_EVENTS);
        if (1..=MAX_EVENTS).contains(&limit) {
            return Ok(limit);
        }
        let rule = format!("limit is a whole number from 1 to {MAX_EVENTS}");
        Err(ApiError::invalid("limit", rule))
    }

    fn filter(&self, search: &str) -> Result<event::Filter, ApiError> {
        let given = |text: &'_ Option<String>| text.clone().filter(|text| !text.is_empty());
        let (kind, name) = match (given(&self.object), given(&self.kind)) {
            (Some(object), None) if object == SERVICE_OBJECT => (Some(Subject::Service), None),
            (Some(object), None) => {
                let (kind, name) = params::object_address("object", &object)?;
                (Some(Subject::Object(kind)), Some(name))
            }
            (None, Some(kind)) if kind == event::SERVICE => (Some(Subject::Service), None),
            (None, Some(kind)) => (Some(Subject::Object(params::kind("kind", &kind)?)), None),
            (None, None) => (None, None),
            (Some(_), Some(_)) => {
                let rule = "kind is part of object; give one of them";
                return Err(ApiError::invalid("kind", rule));
            }
        };
        let reason = given(&self.reason).map(|reason| reason.parse());
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
            reason,
            search: search.to_owned(),
        })
    }
}

/// `GET /api/admin/events`: what happened to objects, newest first: one page, or without one the
/// newest.
///
/// # Errors
/// 400 for a bad object, kind, reason, time or limit.
pub async fn events(
    _: Superadmin,
    input: Input<EventFilter>,
    deps: Deps,
) -> Result<Reply, ApiError> {
    let paging = input.paging.as_ref();
    let filter = input.params.filter(search(paging))?;
    let newest = input.params.limit()?;
    let Window { limit, offset } = match paging {
        Some(_) => Window::of(paging),
        None => Window {
            limit: newest,
            offset: 0,
        },
    };
    let mut connection = deps.db.snapshot().await?;
    let watch_id = change::position(&mut connection).await?;
    let (mut events, total) = event::page(&mut connection, &filter, limit, offset).await?;
    if let Some(Window { limit, offset }) = Window::of(paging).corrected(paging, total) {
        (events, _) = event::page(&mut connection, &filter, limit, offset).await?;
    }
    drop(connection);
    let reply = Reply::ok("events, newest first")
        .with("events", explained_events(events))
        .with("watch_id", watch_id);
    Ok(match paging {
        Some(_) => with_page(reply, paging, total),
        // The newest are one page of as many as there may be.
        None => with_page(reply, Some(&first(newest)), total),
    })
}

/// The first page of this size.
fn first(page_size: i64) -> Paging {
    Paging {
        page: 1,
        page_size: u32::try_from(page_size).unwrap_or(1),
        search: String::new(),
    }
}

/// Finds an object by kind and name, whatever its state.
async fn find(deps: &Deps, kind: Kind, name: &str) -> Result<ObjectRow, ApiError> {
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
