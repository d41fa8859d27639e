//! Calls of a tool whose executors are at another replica: they are carried out there as a whole, so that policy, limits, the audit trail
//! and the page in the tab are asked once.

use std::time::Duration;

use bytes::Bytes;
use schema::replica::Owner;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout};

use super::result::Received;
use super::turn::Stop;
use super::{Bounds, CallResult, Caller};
use crate::auth::mcp_token::Bearer;
use crate::executors::{Failure, Lane};
use crate::long_work::work_on;
use crate::mcp::Mcp;
use crate::mcp::answer::{Answer, RpcError};
use crate::mcp::handshake::Told;
use crate::replica::{Call, Client, Unsent};

/// Searches for the replica that has the executors.
const SEARCHES: usize = 2;
/// Time that an answer has for its way, beyond what the call has.
const WAY: Duration = Duration::from_secs(2);
/// Longest time until there is room in memory for an answer.
const ROOM: Duration = Duration::from_secs(5);
/// Longest answer, in bytes: that of the longest message of an executor, with room around it.
const LONGEST: usize = 48 * 1024 * 1024;

/// The outcome of a call, as replicas tell each other.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Sent {
    Result(Told),
    Error { code: i32, message: String },
}

/// The same, as it comes.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Came {
    Result(Received),
    Error { code: i32, message: String },
}

/// Reason why there is no outcome of another replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// It has done nothing.
    NotThere,
    /// It may have done something.
    Lost,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

impl Mcp {
    /// Calls a tool, at the replica that has the executors.
    ///
    /// # Errors
    /// As [`Mcp::call_tool_here`].
    pub async fn call_tool(
        &self,
        caller: &Caller,
        params: Option<&RawValue>,
    ) -> Result<CallResult, RpcError> {
        let key = caller.key();
        let until = Instant::now() + caller.bounds.time;
        let mut caller = caller.clone();
        for _ in 0..SEARCHES {
            let connected = !self.hub.of_key(&key).is_empty();
            let Some(owner) = self.replicas.owner(&key, connected).await else {
                break;
            };
            let asked = self.call_at(&owner, &caller, params).await;
            let missing = match asked {
                Ok(done) => return done,
                Err(missing) => missing,
            };
            self.replicas.forget_owner(&key);
            caller.bounds.time = until.saturating_duration_since(Instant::now());
            // Looking twice does no harm.
            if missing == Missing::Lost && !self.only_reads(&caller, params) {
                return Ok(Stop::Failed(Failure::Lost, WAY).result(self, &caller));
            }
        }
        self.call_tool_here(&caller, params).await
    }

    fn only_reads(&self, caller: &Caller, params: Option<&RawValue>) -> bool {
        let named = params.and_then(|raw| serde_json::from_str::<Named>(raw.get()).ok());
        let tool = named.and_then(|named| self.catalogue.find(caller.service, &named.name));
        tool.is_some_and(|tool| tool.lane == Lane::Read)
    }

    async fn call_at(
        &self,
        owner: &Owner,
        caller: &Caller,
        params: Option<&RawValue>,
    ) -> Result<Result<CallResult, RpcError>, Missing> {
        let Bounds { time, bytes } = caller.bounds;
        let call = Call::Tool {
            client: Client {
                bearer: Bearer {
                    account: caller.account.clone(),
                    version: caller.token,
                    in_query: None,
                },
                service: caller.service,
                origin: caller.origin.clone(),
            },
            time,
            bytes,
            epoch: owner.epoch,
        };
        let params = params.map_or("null", RawValue::get).as_bytes();
        let params = Bytes::copy_from_slice(params);
        let limit = time + WAY;
        let asked = self
            .replicas
            .ask_replica(&owner.replica, &call, params, limit);
        let answered = match asked.await {
            Ok(answered) if answered.is_misdirected() => return Err(Missing::NotThere),
            Ok(answered) if answered.is_success() => answered,
            Ok(_) | Err(Unsent::Lost) => return Err(Missing::Lost),
            Err(Unsent::Unreachable) => return Err(Missing::NotThere),
        };
        let length = answered.bytes();
        if length > LONGEST {
            return Err(Missing::Lost);
        }
        let room = self.hub.reserve(&caller.account.uid, length);
        let Ok(share) = timeout(ROOM, room).await else {
            let full = "the memory for answers is in use; what was asked may be done: look before you repeat it";
            return Ok(Ok(CallResult::error(full)));
        };
        let body = timeout(limit, answered.body(LONGEST)).await;
        let body = body.ok().flatten().ok_or(Missing::Lost)?;
        let user = &caller.account.uid;
        let came = work_on(user, body.len(), move || {
            serde_json::from_slice::<Came>(&body)
        });
        Ok(match came.await {
            Some(Ok(Came::Result(received))) => {
                let mut result = CallResult::from(received);
                result.share = share;
                Ok(result)
            }
            Some(Ok(Came::Error { code, message })) => Err(RpcError::new(code, message)),
            Some(Err(_)) | None => return Err(Missing::Lost),
        })
    }

    /// Calls a tool for another replica, which has its outcome as text.
    pub(in crate::mcp) async fn call_tool_told(
        &self,
        caller: &Caller,
        params: &RawValue,
    ) -> Answer {
        let params = (params.get() != "null").then_some(params);
        let (sent, share) = match self.call_tool_here(caller, params).await {
            Ok(mut result) => {
                let share = std::mem::take(&mut result.share);
                (Sent::Result(result.into()), share)
            }
            Err(RpcError { code, message, .. }) => {
                (Sent::Error { code, message }, Default::default())
            }
        };
        let text = serde_json::to_string(&sent).unwrap_or_default();
        Answer { text, share }
    }
}
