//! One call of a tool, from its arguments to its result.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};

use super::arguments::{self, Read};
use super::catalogue::{AFTER_A_WAIT, Class, Tool, WAIT};
use super::turn::{Arguments, Stop, Turn};
use super::{CallResult, batch, browser, computer, status};
use crate::auth::Account;
use crate::executors::{Key, Lane, Service};
use crate::mcp::answer::RpcError;
use crate::mcp::audit::{Origin, Record};
use crate::mcp::policy::Admitted;
use crate::mcp::{CALLS, Mcp, limits};

/// Longest a client may have the service wait.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How long a call waits for room in the audit trail.
const ROOM: Duration = Duration::from_secs(5);
/// What is said when there is none.
const NO_ROOM: &str = "the call cannot be recorded now; nothing was done, try again later";

/// Who calls, and what an answer may be.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The user of the token.
    pub account: Account,
    /// Which of the user's tokens it is.
    pub token: i64,
    /// What is called.
    pub service: Service,
    /// What an answer may be.
    pub bounds: Bounds,
    /// Where the call comes from.
    pub origin: Origin,
}

/// What an answer may be.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Longest time until there is one.
    pub time: Duration,
    /// Most bytes that it has.
    pub bytes: usize,
}

impl Caller {
    pub(crate) fn key(&self) -> Key {
        Key {
            user: self.account.uid.clone(),
            service: self.service,
        }
    }
}

#[derive(Deserialize)]
struct Params {
    name: String,
    #[serde(default)]
    arguments: Option<Value>,
}

/// A call whose arguments are right.
pub(super) struct Call<'a> {
    /// The tool that is carried out, which may be another than the one that was named.
    pub(super) tool: &'a Tool,
    pub(super) arguments: Arguments,
    /// The tool that was named.
    named: &'a str,
    /// Its places are those of a screenshot of usual size.
    pub(super) in_usual_pictures: bool,
    /// A sentence for each value that was read as something else than it was sent as.
    pub(super) notes: Vec<String>,
}

impl<'a> Call<'a> {
    /// # Errors
    /// The field and the rule.
    pub(super) fn new(
        mcp: &'a Mcp,
        service: Service,
        tool: &'a Tool,
        arguments: &Value,
    ) -> Result<Self, String> {
        let Read {
            mut arguments,
            notes,
        } = arguments::read(tool, arguments)?;
        browser::resolve_refs(&mut arguments);
        let Some(other) = computer::stands_for(&tool.name, &arguments)? else {
            return Ok(Self {
                tool,
                arguments,
                named: &tool.name,
                in_usual_pictures: false,
                notes,
            });
        };
        let named = &tool.name;
        let tool = mcp.catalogue.find(service, other.tool);
        let tool = tool.ok_or_else(|| format!("there is no tool {}", other.tool))?;
        let read = arguments::read(tool, &Value::Object(other.arguments))?;
        Ok(Self {
            tool,
            arguments: read.arguments,
            named,
            in_usual_pictures: other.in_usual_pictures,
            notes,
        })
    }

    /// The record of this call, once there is room for it.
    ///
    /// # Errors
    /// Why it is not to be made.
    pub(super) async fn recorded(
        &self,
        mcp: &Mcp,
        caller: &Caller,
        until: Instant,
    ) -> Result<Record, &'static str> {
        let arguments = Value::Object(self.arguments.clone());
        let record = recorded(mcp, caller, &self.tool.name, &arguments, until).await?;
        if self.named != self.tool.name {
            record.called_as(self.named);
        }
        Ok(record)
    }

    /// # Errors
    /// When the policy does not let it be done.
    pub(super) async fn admitted<'m>(
        &self,
        mcp: &'m Mcp,
        caller: &Caller,
    ) -> Result<Admitted<'m>, Stop> {
        // A batch changes what its steps change, which are judged one by one.
        let reads = self.tool.lane == Lane::Read || self.tool.class == Class::Batch;
        let admitted = mcp.admit(
            caller,
            [&self.tool.name, self.named],
            reads,
            &self.arguments,
        );
        admitted.await.map_err(Stop::Denied)
    }
}

impl Mcp {
    /// Calls a tool at this replica.
    ///
    /// # Errors
    /// When there is no such tool. Everything else that goes wrong is a result, so that whoever called can mend it.
    pub async fn call_tool_here(
        &self,
        caller: &Caller,
        params: Option<&RawValue>,
    ) -> Result<CallResult, RpcError> {
        let until = Instant::now() + caller.bounds.time;
        let params = params.and_then(|raw| serde_json::from_str::<Params>(raw.get()).ok());
        let Some(Params { name, arguments }) = params else {
            let rule = "params is an object with name and arguments";
            return Err(RpcError::new(RpcError::PARAMS, rule));
        };
        let Some(tool) = self.catalogue.find(caller.service, &name) else {
            let shown: String = name.chars().take(64).collect();
            let said = format!("there is no tool {shown}; tools/list names all");
            return Err(RpcError::new(RpcError::PARAMS, said));
        };
        let arguments = arguments.unwrap_or_else(|| Value::Object(Map::new()));
        let key = caller.key();
        let full = || format!("{CALLS} calls are under way already; try again when some are done");
        let mut place = self.under_way.enter(&key).ok_or_else(full);
        if place.is_ok() {
            let wait = until.min(Instant::now() + limits::LONGEST_WAIT);
            if let Err(over) = self.limits.call(&key, wait).await {
                place = Err(over);
            }
        }
        if let Err(why) = &place
            && !self.limits.is_recorded(&key)
        {
            return Ok(CallResult::error(why));
        }
        let call = Call::new(self, caller.service, tool, &arguments);
        let record = match &call {
            Ok(call) => call.recorded(self, caller, until).await,
            Err(_) => recorded(self, caller, &tool.name, &arguments, until).await,
        };
        let record = match record {
            Ok(record) => Arc::new(record),
            Err(full) => return Ok(CallResult::error(full)),
        };
        let notes = call.as_ref().map(|call| call.notes.clone());
        let notes = notes.unwrap_or_default();
        let done = match (place, call) {
            (Err(why), _) => Err(Stop::Denied(why)),
            (_, Err(wrong)) => Err(Stop::Said(wrong)),
            (Ok(_place), Ok(call)) => self.carry_out(caller, &call, &record, until).await,
        };
        if let Err(stop) = &done {
            stop.note(&record);
        }
        let result = done.unwrap_or_else(|stop| stop.result(self, caller));
        let result = result.noting(notes);
        record.end(&result);
        Ok(result)
    }

    async fn carry_out(
        &self,
        caller: &Caller,
        call: &Call<'_>,
        record: &Arc<Record>,
        until: Instant,
    ) -> Result<CallResult, Stop> {
        match self.once(caller, call, record, until).await {
            // Looking twice does no harm. Anything else whoever calls has to decide.
            Err(stop) if stop.is_lost() && call.tool.lane == Lane::Read => {
                self.once(caller, call, record, until).await
            }
            done => done,
        }
    }

    async fn once(
        &self,
        caller: &Caller,
        call: &Call<'_>,
        record: &Arc<Record>,
        until: Instant,
    ) -> Result<CallResult, Stop> {
        let admitted = call.admitted(self, caller).await?;
        if call.tool.class == Class::Service {
            let key = caller.key();
            let left = until.saturating_duration_since(Instant::now());
            return Ok(serve(self, &key, call, &admitted, left).await);
        }
        let steps = match call.tool.class {
            Class::Batch => Some(batch::steps(self, caller, &call.arguments)?),
            _ => None,
        };
        let entered = (admitted, Arc::clone(record));
        let mut turn = Turn::wait(self, caller, call.tool.lane, entered, until).await?;
        let mut result = match steps {
            Some(steps) => batch::run(&mut turn, &steps, &call.arguments).await,
            None => within(&mut turn, call).await,
        }?;
        result.share = turn.share;
        Ok(result)
    }
}

/// Does what needs no executor.
async fn serve(
    mcp: &Mcp,
    key: &Key,
    call: &Call<'_>,
    admitted: &Admitted<'_>,
    longest: Duration,
) -> CallResult {
    match call.tool.name.as_str() {
        "computer_wait" => wait(&call.arguments, longest).await,
        _ => status::of(&mcp.hub, key, admitted.mode()),
    }
}

async fn wait(arguments: &Arguments, left: Duration) -> CallResult {
    let asked = arguments.get("ms").and_then(Value::as_u64).unwrap_or(0);
    let asked = Duration::from_millis(asked).min(LONGEST_WAIT);
    let time = asked.min(left);
    tokio::time::sleep(time).await;
    let (waited, whole) = (time.as_millis(), asked.as_millis());
    let said = match time == asked {
        true => format!("waited {waited} ms"),
        false => format!("waited only {waited} of {whole} ms: no time is left"),
    };
    let result = CallResult::text(said).with(&json!({ "waitedMs": waited }));
    result.failed_if(time < asked)
}

/// The record of a call that is about to be made, once there is room for it.
///
/// # Errors
/// Why it is not to be made.
async fn recorded(
    mcp: &Mcp,
    caller: &Caller,
    tool: &str,
    arguments: &Value,
    until: Instant,
) -> Result<Record, &'static str> {
    let until = until.min(Instant::now() + ROOM);
    let record = timeout_at(until, mcp.audit.begin(caller, tool, arguments)).await;
    record.unwrap_or(Err(NO_ROOM))
}

/// Makes a call, which is no batch, within a turn.
///
/// # Errors
/// Why it has come to its end early.
pub(super) async fn within(turn: &mut Turn<'_>, call: &Call<'_>) -> Result<CallResult, Stop> {
    if call.tool.class != Class::Composed {
        return alone(turn, call).await;
    }
    let whole = turn.until;
    turn.until = whole.min(Instant::now() + call.tool.limit(&call.arguments));
    let done = alone(turn, call).await;
    turn.until = whole;
    done
}

async fn alone(turn: &mut Turn<'_>, call: &Call<'_>) -> Result<CallResult, Stop> {
    let name = call.tool.name.as_str();
    if call.tool.class == Class::Service {
        if turn.left().is_zero() {
            return Err(turn.no_time());
        }
        let key = turn.caller.key();
        return Ok(serve(turn.mcp, &key, call, turn.admitted(), turn.left()).await);
    }
    if call.tool.class == Class::Composed {
        let done = match turn.caller.service {
            Service::Browser => browser::run(turn, name, &call.arguments).await,
            Service::Computer => computer::run(turn, call).await,
        };
        if let Some(done) = done {
            return done;
        }
    }
    let mut asked = call.arguments.clone();
    if name == "browser_wait" {
        // So that it says that it has found nothing, instead of nothing. And 0 means the usual time to executors.
        let most = turn.left().saturating_sub(AFTER_A_WAIT).as_millis();
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let wait = asked.get("timeout").and_then(Value::as_u64).unwrap_or(WAIT);
        asked.insert("timeout".to_owned(), wait.min(most).max(1).into());
        if turn.is_plain_browser() {
            return browser::for_element(turn, &asked).await;
        }
    }
    turn.result(name, &asked).await
}

#[cfg(test)]
mod tests {
    use super::super::turn::arguments;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_for_which_no_time_is_left_has_failed() {
        let asked = arguments(json!({"ms": 1500}));
        for (left, is_error, said) in [
            (2000, false, "waited 1500 ms"),
            (1000, true, "waited only 1000 of 1500 ms"),
            (0, true, "waited only 0 of 1500 ms"),
        ] {
            let result = wait(&asked, Duration::from_millis(left)).await;
            assert_eq!(result.is_error, is_error);
            let told = serde_json::to_string(&result).unwrap();
            assert!(told.contains(said), "{told}");
        }
    }
}
