//! One call of a tool, from its arguments to its result.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::catalogue::{Class, Tool};
use super::{CallResult, status};
use crate::auth::Account;
use crate::executors::{Ask, Failure, Key, Refusal, Service};
use crate::mcp::answer::RpcError;
use crate::mcp::{CALLS, Mcp};

/// Longest a client may have the service wait.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Who calls, and how long an answer may take.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The user of the token.
    pub account: Account,
    /// What is called.
    pub service: Service,
    /// Longest time until there is an answer.
    pub longest: Duration,
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
        let arguments = arguments.unwrap_or_else(|| Value::Object(Map::new()));
        if let Err(wrong) = tool.check(&arguments) {
            return Ok(CallResult::error(wrong));
        }
        let Value::Object(arguments) = arguments else {
            return Ok(CallResult::error(format!("{name}: arguments is an object")));
        };
        let Some(_place) = self.under_way.enter(&caller.key(), CALLS) else {
            let said = format!("{CALLS} calls are under way already; try again when some are done");
            return Ok(CallResult::error(said));
        };
        Ok(match tool.class {
            Class::Native => self.ask(caller, tool, &arguments).await,
            Class::Service => self.serve(caller, tool, &arguments).await,
        })
    }

    async fn serve(
        &self,
        caller: &Caller,
        tool: &Tool,
        arguments: &Map<String, Value>,
    ) -> CallResult {
        if tool.name == "computer_wait" {
            let time = arguments.get("ms").and_then(Value::as_u64).unwrap_or(0);
            let time = Duration::from_millis(time).min(LONGEST_WAIT);
            tokio::time::sleep(time.min(caller.longest)).await;
            return CallResult::text(format!("waited {} ms", time.as_millis()));
        }
        status::of(&self.hub, &caller.key())
    }

    async fn ask(
        &self,
        caller: &Caller,
        tool: &Tool,
        arguments: &Map<String, Value>,
    ) -> CallResult {
        let of = of(caller.service);
        let until = Instant::now() + caller.longest;
        let mut job = match self.hub.enter(caller.key(), tool.lane).await {
            Ok(job) => job,
            Err(refusal) => return CallResult::error(refused(refusal, caller.service)),
        };
        let left = until.saturating_duration_since(Instant::now());
        let limit = tool.limit(arguments).min(left);
        let Ok(params) = serde_json::value::to_raw_value(arguments) else {
            return CallResult::error(format!("{}: the arguments cannot be sent", tool.name));
        };
        match job.ask(&tool.name, &params, limit).await {
            Ok(answer) => {
                let result = CallResult::of(&tool.name, answer.outcome);
                match tool.untrusted {
                    true => result.marked(),
                    false => result,
                }
            }
            Err(Ask::TooLong(most)) => CallResult::error(format!(
                "the call is longer than the {most} bytes that {of} takes"
            )),
            Err(Ask::Failed(failure)) => CallResult::error(failed(failure, of, limit)),
        }
    }
}

fn of(service: Service) -> &'static str {
    match service {
        Service::Browser => "the browser",
        Service::Computer => "the desktop",
    }
}

fn refused(refusal: Refusal, service: Service) -> String {
    let of = of(service);
    match (refusal, service) {
        (Refusal::NotConnected, Service::Browser) => {
            "no browser is connected. Ask the user to open the browser extension, sign in and connect, then try again".to_owned()
        }
        (Refusal::NotConnected, Service::Computer) => {
            "no desktop is connected. Ask the user to start the desktop client and connect, then try again".to_owned()
        }
        (Refusal::Full, _) => format!("too many calls wait for {of}; try again when some are done"),
        (Refusal::Busy, _) => format!("{of} was busy with other calls for 15 seconds; nothing was done, try again"),
        (Refusal::Revoked, _) => "the token is no longer valid".to_owned(),
    }
}

fn failed(failure: Failure, of: &str, limit: Duration) -> String {
    match failure {
        Failure::Gone => {
            format!("{of} was disconnected before the call was sent; nothing was done")
        }
        Failure::TimedOut => format!(
            "{of} has not answered within {} seconds. It may still do what was asked: look before you repeat it",
            limit.as_secs()
        ),
        Failure::Lost => format!(
            "{of} was disconnected during the call. The outcome is unknown: look before you repeat it"
        ),
        Failure::Replaced => format!(
            "{of} was replaced by a newer connection during the call. The outcome is unknown: look before you repeat it"
        ),
    }
}
