//! The work of this replica for another one. Nothing here is passed on.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::upgrade::OnUpgrade;
use schema::ids::Timestamp;
use serde_json::value::RawValue;

use super::call::{Call, NewExecutor, Told};
use super::listener::{PROTOCOL, refusal};
use crate::auth::session::SessionClaims;
use crate::chat;
use crate::deps::Deps;
use crate::dispatch::Session;
use crate::error::ApiError;
use crate::executors::{Close, ConnectionId};
use crate::mcp;
use crate::reply::Reply;

type Answer = Response<Full<Bytes>>;

fn json(text: Bytes) -> Answer {
    Response::new(Full::new(text))
}

/// An answer of a handler; those of replicas are short.
async fn handed_over(deps: &Deps, reply: Reply) -> Answer {
    let failed = || refusal(StatusCode::INTERNAL_SERVER_ERROR);
    let Ok(response) = reply.into_response(&deps.shutdown) else {
        return failed();
    };
    let (head, body) = response.into_parts();
    match body.collect().await {
        Ok(body) => Response::from_parts(head, Full::new(body.to_bytes())),
        Err(_) => failed(),
    }
}

async fn refused(deps: &Deps, error: &ApiError) -> Answer {
    error.log();
    handed_over(deps, error.to_reply()).await
}

/// Answers a call.
pub(super) async fn answer(deps: &Deps, call: Call, body: Bytes) -> Answer {
    match call {
        Call::Tool {
            client,
            time,
            bytes,
            epoch,
        } => {
            if !deps.replicas.has(&client.key(), epoch) {
                return refusal(StatusCode::MISDIRECTED_REQUEST);
            }
            let bounds = (Duration::from_millis(time), bytes);
            match mcp::call_for_replica(deps, client, bounds, &body).await {
                Some(text) => json(text),
                None => refusal(StatusCode::BAD_REQUEST),
            }
        }
        Call::Message { client, stream } => {
            let reply = mcp::take_for_replica(deps, client, &stream, body).await;
            match reply {
                Some(reply) => handed_over(deps, reply).await,
                None => refusal(StatusCode::BAD_REQUEST),
            }
        }
        Call::Cancel { session } => {
            if let Ok(id) = serde_json::from_slice::<Box<RawValue>>(&body) {
                deps.mcp.cancel(&session, &id);
            }
            refusal(StatusCode::OK)
        }
        Call::EndSession { session } => {
            deps.mcp.end_session(session);
            refusal(StatusCode::OK)
        }
        Call::Executors { user } => {
            let mut all = deps.mcp.hub.connected();
            all.retain(|one| user.as_ref().is_none_or(|user| one.key.user == *user));
            let told: Vec<Told> = all.into_iter().map(Told::from).collect();
            json(serde_json::to_vec(&told).unwrap_or_default().into())
        }
        Call::Disconnect { connection } => {
            let connection = ConnectionId(connection);
            deps.mcp.hub.dismiss(connection, Close::Dismissed);
            refusal(StatusCode::OK)
        }
        Call::Conversation {
            user,
            conversation,
            title,
        } => {
            let (Some(account), Ok(id)) = (user.account(), conversation.parse()) else {
                return refusal(StatusCode::BAD_REQUEST);
            };
            match title {
                Some(title) => deps.chats.rename(deps, &account, id, title),
                None => {
                    if let Err(error) = deps.chats.close(deps, &account, id).await {
                        return refused(deps, &error).await;
                    }
                }
            }
            refusal(StatusCode::OK)
        }
        Call::Executor(_) | Call::Page { .. } => refusal(StatusCode::BAD_REQUEST),
    }
}

/// Takes a connection that goes on as a WebSocket.
pub(super) async fn open(deps: &Deps, call: Call, upgrade: OnUpgrade) -> Answer {
    match call {
        Call::Executor(executor) => open_executor(deps, executor, upgrade).await,
        Call::Page {
            user,
            issued_at,
            conversation,
            resumes,
        } => {
            let (Some(account), Ok(id)) = (user.account(), conversation.parse()) else {
                return refusal(StatusCode::BAD_REQUEST);
            };
            let issued_at = Timestamp::from_secs(issued_at);
            let claims = SessionClaims::new(account.name.clone(), issued_at);
            match deps.chats.open(deps, &account, id).await {
                Ok(opened) => {
                    let session = Session { account, claims };
                    chat::serve_page(deps, session, opened, resumes, upgrade);
                    switching()
                }
                Err(error) if chat::is_held_elsewhere(&error) => {
                    refusal(StatusCode::MISDIRECTED_REQUEST)
                }
                Err(error) => refused(deps, &error).await,
            }
        }
        _ => refusal(StatusCode::BAD_REQUEST),
    }
}

async fn open_executor(deps: &Deps, executor: NewExecutor, upgrade: OnUpgrade) -> Answer {
    let (key, epoch) = (executor.key(), executor.epoch);
    let Some(place) = deps.replicas.enter_here(&key, epoch) else {
        return refusal(StatusCode::MISDIRECTED_REQUEST);
    };
    let Some((bearer, about)) = executor.connecting() else {
        return refusal(StatusCode::BAD_REQUEST);
    };
    match mcp::admit_executor(deps, &bearer, key, about, Some(place)) {
        Ok(admitted) => {
            admitted.serve(deps, upgrade);
            switching()
        }
        Err(error) => refused(deps, &error).await,
    }
}

fn switching() -> Answer {
    let mut response = refusal(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
    response
}
