//! Messages of clients that come to another replica than the one that has their stream or their call.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::value::RawValue;

use super::message::{Body, Unreadable};
use super::post::{Ended, Request};
use super::tools::{Bounds, Caller};
use super::{Mcp, old_sse};
use crate::deps::Deps;
use crate::long_work::work_on;
use crate::replica::{Call, Client};
use crate::reply::Reply;

/// Longest time until a message is taken.
const TAKEN: Duration = Duration::from_secs(10);

impl Mcp {
    /// Cancels a call of a session that is under way here. Returns false if there is none.
    pub(crate) fn cancel(&self, session: &str, id: &RawValue) -> bool {
        self.calls.cancel(session, id)
    }

    /// The same for a call that may be under way at any replica.
    pub(super) fn cancel_everywhere(&self, session: String, id: &RawValue) {
        if !self.cancel(&session, id) {
            let id = Bytes::copy_from_slice(id.get().as_bytes());
            self.replicas.tell_all(Call::Cancel { session }, id);
        }
    }

    /// Remembers that a session was ended by its client.
    pub(crate) fn end_session(&self, session: String) {
        self.ended.insert(session, ());
    }

    /// The same at all replicas.
    pub(super) fn end_everywhere(&self, session: String) {
        self.end_session(session.clone());
        self.replicas
            .tell_all(Call::EndSession { session }, Bytes::new());
    }
}

/// Gives a message to the replica that has the stream beside which it was posted; `None` when that is this one, or none.
pub(super) async fn pass_message(request: &Request, stream: &str, body: &Bytes) -> Option<Reply> {
    let replicas = &request.deps.replicas;
    let other = replicas.with_stream(stream).await?;
    let call = Call::Message {
        client: Client {
            bearer: request.bearer.clone(),
            service: request.service,
            origin: request.origin.clone(),
        },
        stream: stream.to_owned(),
    };
    let answered = replicas
        .ask_replica(&other, &call, body.clone(), TAKEN)
        .await;
    let reply = match answered {
        Ok(answered) => answered.reply().await,
        Err(_) => None,
    };
    Some(reply.unwrap_or_else(|| Ended.into()))
}

/// Takes a message for another replica.
pub(crate) async fn take_for_replica(
    deps: &Deps,
    client: Client,
    stream: &str,
    body: Bytes,
) -> Reply {
    let Client {
        bearer,
        service,
        origin,
    } = client;
    let request = Request {
        deps: deps.clone(),
        bearer,
        service,
        prefix: String::new(),
        headers: Arc::new(HeaderMap::new()),
        origin,
        memory: None,
    };
    let user = &request.bearer.account.uid;
    let read = work_on(user, body.len(), move || Body::read(&body)).await;
    let read = read.unwrap_or(Err(Unreadable::NotJson));
    old_sse::post(&request, stream, read).await
}

/// Calls a tool for another replica; `None` when the parameters are none, or the service ends.
pub(crate) async fn call_for_replica(
    deps: &Deps,
    client: Client,
    bounds: Bounds,
    params: &[u8],
) -> Option<Bytes> {
    let params: Box<RawValue> = serde_json::from_slice(params).ok()?;
    let Client {
        bearer,
        service,
        origin,
    } = client;
    let caller = Caller {
        account: bearer.account,
        token: bearer.version,
        service,
        bounds: Bounds {
            time: bounds.time.min(super::post::AS_EVENTS),
            ..bounds
        },
        origin,
    };
    tokio::select! {
        answer = deps.mcp.call_tool_told(&caller, &params) => Some(answer.into()),
        _ = super::post::last_moment(&deps.shutdown) => None,
    }
}
