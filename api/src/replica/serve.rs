//! The work of this replica for another one. Nothing here is passed on.

use bytes::Bytes;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::upgrade::OnUpgrade;
use serde_json::value::RawValue;

use super::call::Call;
use super::listener::{PROTOCOL, refusal};
use crate::chat;
use crate::deps::Deps;
use crate::error::ApiError;
use crate::executors::{Close, Key};
use crate::mcp::{self, Bounds};
use crate::reply::Reply;

type Answer = Response<Full<Bytes>>;

fn json(text: Bytes) -> Answer {
    Response::new(Full::new(text))
}

/// An answer of a handler; those of replicas are short.
async fn hand_over(deps: &Deps, reply: Reply) -> Answer {
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

async fn refuse_call(deps: &Deps, error: &ApiError) -> Answer {
    error.log();
    hand_over(deps, error.to_reply()).await
}

/// Answers a call.
pub(super) async fn answer_call(deps: &Deps, call: Call, body: Bytes) -> Answer {
    match call {
        Call::Tool {
            client,
            time,
            bytes,
            epoch,
        } => {
            if !deps.replicas.has_place(&client.key(), epoch) {
                return refusal(StatusCode::MISDIRECTED_REQUEST);
            }
            match mcp::call_for_replica(deps, client, Bounds { time, bytes }, &body).await {
                Some(text) => json(text),
                None => refusal(StatusCode::BAD_REQUEST),
            }
        }
        Call::Message { client, stream } => {
            let reply = mcp::take_for_replica(deps, client, &stream, body).await;
            hand_over(deps, reply).await
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
            json(serde_json::to_vec(&all).unwrap_or_default().into())
        }
        Call::Disconnect { connection } => {
            deps.mcp.hub.dismiss(connection, Close::Dismissed);
            refusal(StatusCode::OK)
        }
        Call::Conversation {
            account,
            conversation,
            title,
        } => {
            match title {
                Some(title) => deps.chats.rename(deps, &account, conversation, title),
                None => {
                    if let Err(error) = deps.chats.close(deps, &account, conversation).await {
                        return refuse_call(deps, &error).await;
                    }
                }
            }
            refusal(StatusCode::OK)
        }
        Call::Executor { .. } | Call::Page { .. } => refusal(StatusCode::BAD_REQUEST),
    }
}

/// Takes a connection that goes on as a WebSocket.
pub(super) async fn open_stream(deps: &Deps, call: Call, upgrade: OnUpgrade) -> Answer {
    match call {
        Call::Executor {
            bearer,
            service,
            about,
            epoch,
        } => {
            let key = Key {
                user: bearer.account.uid.clone(),
                service,
            };
            let Some(place) = deps.replicas.enter_place_here(&key, epoch) else {
                return refusal(StatusCode::MISDIRECTED_REQUEST);
            };
            match mcp::admit_executor(deps, &bearer, key, about, Some(place)) {
                Ok(admitted) => {
                    admitted.serve_executor(deps, upgrade);
                    switch_protocols()
                }
                Err(error) => refuse_call(deps, &error).await,
            }
        }
        Call::Page {
            session,
            conversation,
            resumes,
        } => {
            let opened = deps.chats.open(deps, &session.account, conversation);
            match opened.await {
                Ok(opened) => {
                    chat::serve_page(deps, session, opened, resumes, upgrade);
                    switch_protocols()
                }
                Err(error) if chat::is_held_elsewhere(&error) => {
                    refusal(StatusCode::MISDIRECTED_REQUEST)
                }
                Err(error) => refuse_call(deps, &error).await,
            }
        }
        _ => refusal(StatusCode::BAD_REQUEST),
    }
}

fn switch_protocols() -> Answer {
    let mut response = refusal(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
    response
}
