//! The MCP endpoint, and the WebSockets of executors.

use http::StatusCode;
use schema::config::policy::Mode;
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::answer::{Answers, Body};
use crate::auth::mcp_token::Bearer;
use crate::deps::Deps;
use crate::error::{ApiError, Result};
use crate::executors::{About, Key, Service};
use crate::input::{Input, Nothing};
use crate::limits::{EXECUTOR_SOCKETS, MCP_STREAMS};
use crate::mcp::{self, Denied, Request};
use crate::openapi::Schemas;
use crate::reply::Reply;
use crate::route::{Area, Failure, Route};
use crate::routes::websocket::{Switching, accept_websocket};

/// Longest message of a client, in bytes.
const LONGEST: u64 = 4 * 1024 * 1024;

/// Longest value of a header `Host` that is remembered, in characters.
const LONGEST_HOST: usize = 300;

const ORIGIN: Failure = Failure(403, "origin_refused", "the request comes from another site");
const DISABLED: Failure = Failure(403, "account_disabled", "the account is disabled");
const NOT_LISTED: Failure = Failure(
    403,
    "not_whitelisted",
    "the account is not on the whitelist",
);
const SWITCHED_OFF: Failure = Failure(
    403,
    "switched_off",
    "mcp.policy has switched the service off for the user",
);
const SOCKETS: Failure = Failure(
    429,
    "too_many_streams",
    "the user already has 24 WebSockets of the service",
);
const DISPLACED: Failure = Failure(
    429,
    "executors_displaced",
    "executors of the user displaced each other 5 times in 30 s; each pause (`Retry-After`) is twice the one before",
);
const STREAMS: Failure = Failure(
    429,
    "too_many_streams",
    "the user already has 64 open streams",
);
const NO_SESSION: Failure = Failure(
    404,
    "not_found",
    "the session has ended, is somebody else's, or is not known and `mcp.session_strict` is set",
);

const ABOUT: &str = "\
    The Model Context Protocol (https://modelcontextprotocol.io), revisions 2024-11-05 to 2026-07-28, over HTTP+SSE and \
    Streamable HTTP. Failures of requests are JSON-RPC errors with status 200, unless the revision demands another one. What `mcp.policy` \
    and the limits (10 calls a second, 120 a minute that change something) refuse is a result with `isError`. With `mcp.get_stream` = \
    `refuse`, the GET of Streamable HTTP is 405.";

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    let endpoint = |route: Route, title: &'static str| {
        route
            .title(Area::Mcp, title)
            .about(ABOUT)
            .for_agents()
            .holds(&MCP_STREAMS)
            .fails(&[ORIGIN, DISABLED, NOT_LISTED, NO_SESSION, STREAMS])
    };
    vec![
        endpoint(
            Route::get("mcp_browser_open", "/api/mcp/sse/browser", open_browser),
            "Open a stream of the browser's MCP endpoint",
        ),
        endpoint(
            Route::get("mcp_computer_open", "/api/mcp/sse/computer", open_computer),
            "Open a stream of the desktop's MCP endpoint",
        ),
        endpoint(
            Route::post("mcp_browser_send", "/api/mcp/sse/browser", send_browser),
            "Send a message to the browser's MCP endpoint",
        )
        .message(LONGEST),
        endpoint(
            Route::post("mcp_computer_send", "/api/mcp/sse/computer", send_computer),
            "Send a message to the desktop's MCP endpoint",
        )
        .message(LONGEST),
        endpoint(
            Route::delete("mcp_browser_end", "/api/mcp/sse/browser", end_browser),
            "End a session of the browser's MCP endpoint",
        ),
        endpoint(
            Route::delete("mcp_computer_end", "/api/mcp/sse/computer", end_computer),
            "End a session of the desktop's MCP endpoint",
        ),
        executor(Route::get("browser_ws", "/api/browser/ws", connect_browser))
            .title(Area::Mcp, "Connect a browser as executor"),
        executor(Route::get(
            "computer_ws",
            "/api/computer/ws",
            connect_computer,
        ))
        .title(Area::Mcp, "Connect a desktop as executor"),
    ]
}

fn executor(route: Route) -> Route {
    route
        .about("A WebSocket (RFC 6455). A token that ends, and a policy that switches the service off, close it with 4403.")
        .for_extensions()
        .holds(&EXECUTOR_SOCKETS)
        .fails(&[
            ORIGIN,
            DISABLED,
            NOT_LISTED,
            SWITCHED_OFF,
            SOCKETS,
            DISPLACED,
            Failure(400, "invalid_request", "the request opens no WebSocket"),
        ])
}

/// What stands in the address of a message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stream {
    /// The stream on which it is answered, in HTTP+SSE.
    session_id: Option<String>,
}

/// An answer of the endpoint: JSON-RPC, a stream of it, or nothing.
pub struct Answered(Reply);

impl Answers for Answered {
    fn into_reply(self) -> Reply {
        self.0
    }

    fn describe(_: &mut Schemas) -> Vec<Body> {
        vec![
            Body::json(json!({
                "type": ["object", "array"],
                "items": {},
                "description": "JSON-RPC 2.0",
            })),
            Body::events(),
            Body {
                content_type: "",
                ..Body::text(StatusCode::ACCEPTED)
            },
            Body {
                content_type: "",
                ..Body::text(StatusCode::NO_CONTENT)
            },
        ]
    }
}

fn request<T>(bearer: Bearer, input: &Input<T>, deps: Deps, service: Service) -> Request {
    Request {
        deps,
        bearer,
        service,
        prefix: input.meta.prefix.clone(),
        headers: input.meta.headers.clone(),
        origin: mcp::Origin {
            address: input.meta.client,
            request_id: input.meta.request_id.to_string(),
            session: None,
        },
        memory: input.message.share.clone(),
    }
}

/// `GET /api/mcp/sse/browser`.
///
/// # Errors
/// 405 for clients that only post; 429 for too many streams.
async fn open_browser(who: Bearer, input: Input<Nothing>, deps: Deps) -> Result<Answered> {
    mcp::get(request(who, &input, deps, Service::Browser)).map(Answered)
}

/// `GET /api/mcp/sse/computer`.
///
/// # Errors
/// As [`open_browser`].
async fn open_computer(who: Bearer, input: Input<Nothing>, deps: Deps) -> Result<Answered> {
    mcp::get(request(who, &input, deps, Service::Computer)).map(Answered)
}

/// `POST /api/mcp/sse/browser`.
///
/// # Errors
/// None of its own: what is wrong is said in JSON-RPC.
async fn send_browser(who: Bearer, input: Input<Stream>, deps: Deps) -> Result<Answered> {
    send(who, input, deps, Service::Browser).await
}

/// `POST /api/mcp/sse/computer`.
///
/// # Errors
/// As [`send_browser`].
async fn send_computer(who: Bearer, input: Input<Stream>, deps: Deps) -> Result<Answered> {
    send(who, input, deps, Service::Computer).await
}

async fn send(who: Bearer, input: Input<Stream>, deps: Deps, service: Service) -> Result<Answered> {
    let request = request(who, &input, deps, service);
    let stream = input.params.session_id.as_deref();
    let body = input.message.bytes.clone();
    Ok(Answered(mcp::post(request, stream, body).await))
}

/// `DELETE /api/mcp/sse/browser`.
///
/// # Errors
/// 400 without a session, 405 for clients of a revision that has none.
async fn end_browser(who: Bearer, input: Input<Nothing>, deps: Deps) -> Result<Answered> {
    mcp::end_session(&request(who, &input, deps, Service::Browser)).map(Answered)
}

/// `DELETE /api/mcp/sse/computer`.
///
/// # Errors
/// As [`end_browser`].
async fn end_computer(who: Bearer, input: Input<Nothing>, deps: Deps) -> Result<Answered> {
    mcp::end_session(&request(who, &input, deps, Service::Computer)).map(Answered)
}

/// `GET /api/browser/ws`.
///
/// # Errors
/// 400 when no WebSocket is asked for; 403 when the policy has switched it off; 429 for too many, and when they displace each other.
async fn connect_browser(who: Bearer, input: Input<Nothing>, deps: Deps) -> Result<Switching> {
    connect(who, input, &deps, Service::Browser).await
}

/// `GET /api/computer/ws`.
///
/// # Errors
/// As [`connect_browser`].
async fn connect_computer(who: Bearer, input: Input<Nothing>, deps: Deps) -> Result<Switching> {
    connect(who, input, &deps, Service::Computer).await
}

async fn connect(
    who: Bearer,
    input: Input<Nothing>,
    deps: &Deps,
    service: Service,
) -> Result<Switching> {
    let header = |name: &str| input.meta.headers.get(name).and_then(|it| it.to_str().ok());
    let (upgrade, switching) = accept_websocket(&input.meta.headers, input.upgrade)?;
    let about = About {
        user: who.account.name.clone(),
        address: input.meta.client,
        token: who.version,
        user_agent: header("user-agent")
            .unwrap_or_default()
            .chars()
            .take(200)
            .collect(),
        since: deps.clock.now(),
        host: header("host").map(|host| host.chars().take(LONGEST_HOST).collect()),
    };
    let key = Key {
        user: who.account.uid.clone(),
        service,
    };
    if deps.mcp.rules(&key, &about.user).await?.mode == Mode::Off {
        return Err(ApiError::SwitchedOff(Denied::Off(service).to_string()));
    }
    let refused = mcp::connect_executor(deps, &who, key, about, upgrade).await?;
    Ok(refused.map_or(switching, Switching::refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_names_the_limit_of_websockets() {
        let Failure(_, _, text) = SOCKETS;
        let limit = format!(" {} WebSockets", mcp::SOCKETS);
        assert!(text.contains(&limit), "{text}: {limit}");
    }
}
