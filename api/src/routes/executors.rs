//! Executors that are connected, for administrators and for their own users.

use schema::audit::About;
use schema::ids::{Kind, Timestamp, UserName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::{OrdinaryUser, Superadmin};
use crate::error::{ApiError, Result};
use crate::executors::{Connected, ConnectionId, Key, Protocol, Service};
use crate::input::{Input, Nothing};
use crate::replica;
use crate::route::{Area, Failure, Route, Tokens};
use crate::routes::page::{self, Page};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("executors_list", "/api/admin/executors", list)
.tokens(Tokens::Read)
            .title(Area::Mcp, "List connected executors")
            .about(
            "Browsers and desktops of all users, oldest connection first. `search` is part of a user's name, or the id of a \
             connection.",
        )
            .paged(),
        Route::post(
            "executors_disconnect",
            "/api/admin/executors/disconnect",
            disconnect,
        )
.tokens(Tokens::Admin)
        .title(Area::Mcp, "Disconnect an executor")
        .about("Its calls under way fail. It may connect again: to keep it away, set `mode` to `off` in `mcp.policy`.")
        .fails(&[Failure(404, "not_found", "no such executor is connected")]),
        Route::get("user_executors", "/api/user/executors", own)
            .title(Area::Account, "List my connected executors")
            .about("The caller's own browsers and desktops."),
        Route::post(
            "user_executors_disconnect",
            "/api/user/executors/disconnect",
            disconnect_own,
        )
        .title(Area::Account, "Disconnect my browser or desktop")
        .about("All of one kind, or the one with this id. Calls under way there fail. It may connect again.")
        .fails(&[Failure(404, "not_found", "no such executor is connected")]),
    ]
}

/// A connected executor.
#[derive(Debug, Serialize, ToSchema)]
pub struct Executor {
    /// Names its connection.
    id: u64,
    /// Whose it is.
    username: UserName,
    service: Service,
    /// When it connected.
    connected_at: Timestamp,
    /// Where it connects from.
    address: Option<String>,
    /// What it calls itself in its request.
    user_agent: String,
    /// What its user calls it, if it has said so.
    label: Option<String>,
    /// Its name, if it has said so.
    client: Option<String>,
    /// Its version, if it has said so.
    version: Option<String>,
    /// What it runs on, if it has said so.
    platform: Option<String>,
    /// Which installation it is, if it has said so.
    instance: Option<String>,
    /// Its tool calls under way.
    calls: usize,
    /// Its tool calls since it connected, those under way included.
    calls_total: u64,
    /// Answers received after the time limit of their call, or after it was cancelled.
    late_answers: u64,
}

impl From<Connected> for Executor {
    fn from(connected: Connected) -> Self {
        let [client, version, platform] = match connected.client {
            Some(said) => said.map(Some),
            None => [None, None, None],
        };
        Self {
            id: connected.connection.0,
            username: connected.about.user.clone(),
            service: connected.key.service,
            connected_at: connected.about.since,
            address: connected.about.address.map(|address| address.to_string()),
            user_agent: connected.about.user_agent.clone(),
            label: connected.label,
            client,
            version,
            platform,
            instance: match connected.protocol {
                Protocol::First => None,
                Protocol::Introduced { instance } => Some(instance),
            },
            calls: connected.calls,
            calls_total: connected.calls_total,
            late_answers: connected.late,
        }
    }
}

/// Connected executors.
#[derive(Debug, Serialize, ToSchema)]
pub struct Executors {
    executors: Vec<Executor>,
    #[serde(flatten)]
    page: Page,
}

/// Connected executors of one user.
#[derive(Debug, Serialize, ToSchema)]
pub struct OwnExecutors {
    executors: Vec<Executor>,
}

/// Which one.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Which {
    /// The id of its connection.
    id: u64,
}

/// `GET /api/admin/executors`.
///
/// # Errors
/// None of its own.
async fn list(_: Superadmin, input: Input<Nothing>, deps: Deps) -> Result<Answer<Executors>> {
    let all = replica::list_connected(&deps, None).await;
    let matches = |executor: &Connected, search: &str| {
        executor.about.user.key().contains(search) || search.parse() == Ok(executor.connection.0)
    };
    let (shown, page) = page::cut(all, input.paging.as_ref(), matches);
    let executors = shown.into_iter().map(Executor::from).collect();
    Ok(Answer::ok(
        "connected executors",
        Executors { executors, page },
    ))
}

/// `GET /api/user/executors`.
///
/// # Errors
/// None of its own.
async fn own(
    OrdinaryUser(session): OrdinaryUser,
    _: Input<Nothing>,
    deps: Deps,
) -> Result<Answer<OwnExecutors>> {
    let own = replica::list_connected(&deps, Some(&session.account.uid)).await;
    let executors = own.into_iter().map(Executor::from).collect();
    Ok(Answer::ok(
        "your connected executors",
        OwnExecutors { executors },
    ))
}

/// A kind of executors, as users call them.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ExecutorKind)]
enum OwnKind {
    /// Browsers.
    Browser,
    /// Desktops.
    #[serde(alias = "computer")]
    Desktop,
}

/// Executors to disconnect.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = OwnExecutorsDisconnect)]
pub struct OwnWhich {
    kind: OwnKind,
    /// Only the one with this id.
    id: Option<u64>,
}

/// Executors that were disconnected.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OwnExecutorsDisconnected)]
pub struct Disconnected {
    /// Number of disconnected executors.
    #[schema(example = 1)]
    disconnected: usize,
}

/// `POST /api/user/executors/disconnect`.
///
/// # Errors
/// 404 when none is connected.
async fn disconnect_own(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<OwnWhich>,
    deps: Deps,
) -> Result<Answer<Disconnected>> {
    let OwnWhich { kind, id } = input.params;
    let (service, called) = match kind {
        OwnKind::Browser => (Service::Browser, "browser"),
        OwnKind::Desktop => (Service::Computer, "desktop"),
    };
    let key = Key {
        user: session.account.uid,
        service,
    };
    let mut found = replica::list_connected(&deps, Some(&key.user)).await;
    found.retain(|executor| executor.key == key && id.is_none_or(|id| executor.connection.0 == id));
    if found.is_empty() {
        return Err(ApiError::not_found(format!("connected {called}")));
    }
    let ids: Vec<String> = found
        .iter()
        .map(|one| one.connection.0.to_string())
        .collect();
    let detail = format!("{service} executor {}", ids.join(", "));
    let about = About::object(Kind::User, &session.account.name).detail(detail);
    input.meta.begin(&deps).await?.commit(about).await?;
    for executor in &found {
        replica::disconnect_executor(&deps, executor.connection).await;
    }
    let disconnected = found.len();
    let message = format!("{called} disconnected");
    Ok(Answer::ok(message, Disconnected { disconnected }))
}

/// `POST /api/admin/executors/disconnect`.
///
/// # Errors
/// 404 when it is not connected.
async fn disconnect(_: Superadmin, input: Input<Which>, deps: Deps) -> Result<Answer> {
    let connection = ConnectionId(input.params.id);
    let all = replica::list_connected(&deps, None).await.into_iter();
    let mut found = all.filter(|executor| executor.connection == connection);
    let executor = found.next().ok_or_else(|| ApiError::NotFound {
        what: format!("executor {}", input.params.id),
    })?;
    let user = &executor.about.user;
    let about = About::object(Kind::User, user).detail(format!(
        "{} executor {}",
        executor.key.service, input.params.id
    ));
    input.meta.begin(&deps).await?.commit(about).await?;
    replica::disconnect_executor(&deps, connection).await;
    Ok(Answer::plain(format!(
        "executor {} of {user} disconnected",
        input.params.id
    )))
}
