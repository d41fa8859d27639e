//! One call of a tool, from its arguments to its result.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::catalogue::{Class, Tool};
use super::turn::{Arguments, Stop, Turn};
use super::{CallResult, batch, browser, computer, status};
use crate::auth::Account;
use crate::executors::{Key, Lane, Service};
use crate::mcp::answer::RpcError;
use crate::mcp::{CALLS, Mcp};

/// Longest a client may have the service wait.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Who calls, and what an answer may be.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The user of the token.
    pub account: Account,
    /// What is called.
    pub service: Service,
    /// What an answer may be.
    pub limits: Limits,
}

/// What an answer may be.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
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
    /// Its places are those of a screenshot of usual size.
    pub(super) in_usual_pictures: bool,
}

impl<'a> Call<'a> {
    /// # Errors
    /// The field and the rule.
    pub(super) fn new(
        mcp: &'a Mcp,
        service: Service,
        tool: &'a Tool,
        arguments: Option<Value>,
    ) -> Result<Self, String> {
        let arguments = arguments.unwrap_or_else(|| Value::Object(Map::new()));
        tool.check(&arguments)?;
        let Value::Object(mut arguments) = arguments else {
            return Err(format!("{}: arguments is an object", tool.name));
        };
        browser::resolve_refs(&mut arguments);
        let Some(other) = computer::stands_for(&tool.name, &arguments)? else {
            return Ok(Self {
                tool,
                arguments,
                in_usual_pictures: false,
            });
        };
        let tool = mcp.catalogue.find(service, other.tool);
        let tool = tool.ok_or_else(|| format!("there is no tool {}", other.tool))?;
        tool.check(&Value::Object(other.arguments.clone()))?;
        Ok(Self {
            tool,
            arguments: other.arguments,
            in_usual_pictures: other.in_usual_pictures,
        })
    }
}

impl Mcp {
    /// Calls a tool.
    ///
    /// # Errors
    /// When there is no such tool. Everything else that goes wrong is a result, so that whoever called can mend it.
    pub async fn call_tool(
        &self,
        caller: &Caller,
        params: Option<&RawValue>,
    ) -> Result<CallResult, RpcError> {
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
        let call = match Call::new(self, caller.service, tool, arguments) {
            Ok(call) => call,
            Err(wrong) => return Ok(CallResult::error(wrong)),
        };
        let Some(_place) = self.under_way.enter(&caller.key(), CALLS) else {
            let said = format!("{CALLS} calls are under way already; try again when some are done");
            return Ok(CallResult::error(said));
        };
        let done = match call.tool.class {
            Class::Service => Ok(self.serve(caller, &call).await),
            _ => self.at_executor(caller, &call).await,
        };
        Ok(done.unwrap_or_else(|stop| stop.result(caller.service)))
    }

    async fn at_executor(&self, caller: &Caller, call: &Call<'_>) -> Result<CallResult, Stop> {
        let until = Instant::now() + caller.limits.time;
        match self.once(caller, call, until).await {
            // Looking twice does no harm. Anything else whoever calls has to decide.
            Err(stop) if stop.is_lost() && call.tool.lane == Lane::Read => {
                self.once(caller, call, until).await
            }
            done => done,
        }
    }

    async fn once(
        &self,
        caller: &Caller,
        call: &Call<'_>,
        until: Instant,
    ) -> Result<CallResult, Stop> {
        let steps = match call.tool.class {
            Class::Batch => Some(batch::steps(self, caller, &call.arguments)?),
            _ => None,
        };
        let mut turn = Turn::wait(self, caller, call.tool.lane, until).await?;
        let mut result = match steps {
            Some(steps) => batch::run(&mut turn, &steps, &call.arguments).await,
            None => within(&mut turn, call).await,
        }?;
        result.share = turn.share;
        Ok(result)
    }

    async fn serve(&self, caller: &Caller, call: &Call<'_>) -> CallResult {
        match call.tool.name.as_str() {
            "computer_wait" => wait(&call.arguments, caller.limits.time).await,
            _ => status::of(&self.hub, &caller.key()),
        }
    }
}

async fn wait(arguments: &Arguments, longest: Duration) -> CallResult {
    let time = arguments.get("ms").and_then(Value::as_u64).unwrap_or(0);
    let time = Duration::from_millis(time).min(LONGEST_WAIT).min(longest);
    tokio::time::sleep(time).await;
    CallResult::text(format!("waited {} ms", time.as_millis())).with(
        &serde_json::json!({ "waitedMs": u64::try_from(time.as_millis()).unwrap_or(u64::MAX) }),
    )
}

/// Makes a call, which is no batch, within a turn.
///
/// # Errors
/// Why it has come to its end early.
pub(super) async fn within(turn: &mut Turn<'_>, call: &Call<'_>) -> Result<CallResult, Stop> {
    let name = call.tool.name.as_str();
    if call.tool.class == Class::Service {
        return Ok(match name {
            "computer_wait" => wait(&call.arguments, turn.left()).await,
            _ => status::of(&turn.mcp.hub, &turn.caller.key()),
        });
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
    let result = CallResult::of(name, turn.ask(name, &call.arguments).await?);
    Ok(match call.tool.untrusted {
        true => result.marked(),
        false => result,
    })
}
