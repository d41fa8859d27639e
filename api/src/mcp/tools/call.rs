//! One call of a tool, from its arguments to its result.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::catalogue::{AFTER_A_WAIT, Class, Tool, WAIT};
use super::turn::{Arguments, Stop, Turn};
use super::{CallResult, batch, browser, computer, status};
use crate::auth::Account;
use crate::executors::{Key, Lane, Service};
use crate::mcp::answer::RpcError;
use crate::mcp::audit::{Origin, Record};
use crate::mcp::policy::Admitted;
use crate::mcp::{CALLS, Mcp};

/// Longest a client may have the service wait.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

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
}

impl<'a> Call<'a> {
    /// # Errors
    /// The field and the rule.
    pub(super) fn new(
        mcp: &'a Mcp,
        service: Service,
        tool: &'a Tool,
        arguments: Value,
    ) -> Result<Self, String> {
        tool.check(&arguments)?;
        let Value::Object(mut arguments) = arguments else {
            return Err(format!("{}: arguments is an object", tool.name));
        };
        browser::resolve_refs(&mut arguments);
        let Some(other) = computer::stands_for(&tool.name, &arguments)? else {
            return Ok(Self {
                tool,
                arguments,
                named: &tool.name,
                in_usual_pictures: false,
            });
        };
        let named = &tool.name;
        let tool = mcp.catalogue.find(service, other.tool);
        let tool = tool.ok_or_else(|| format!("there is no tool {}", other.tool))?;
        tool.check(&Value::Object(other.arguments.clone()))?;
        Ok(Self {
            tool,
            arguments: other.arguments,
            named,
            in_usual_pictures: other.in_usual_pictures,
        })
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
    /// Calls a tool.
    ///
    /// # Errors
    /// When there is no such tool. Everything else that goes wrong is a result, so that whoever called can mend it.
    pub async fn call_tool(
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
        let limited = self.limits.call(&caller.key()).err();
        if let Some(limited) = &limited
            && !self.limits.is_recorded(&caller.key())
        {
            return Ok(CallResult::error(limited));
        }
        let record = match self.audit.begin(caller, &tool.name, &arguments).await {
            Ok(record) => Arc::new(record),
            Err(full) => return Ok(CallResult::error(full)),
        };
        let done = match limited {
            Some(limited) => Err(Stop::Denied(limited)),
            None => {
                self.carry_out(caller, tool, arguments, &record, until)
                    .await
            }
        };
        if let Err(stop) = &done {
            stop.note(&record);
        }
        let result = done.unwrap_or_else(|stop| stop.result(caller.service));
        record.end(&result);
        Ok(result)
    }

    async fn carry_out(
        &self,
        caller: &Caller,
        tool: &Tool,
        arguments: Value,
        record: &Arc<Record>,
        until: Instant,
    ) -> Result<CallResult, Stop> {
        let call = Call::new(self, caller.service, tool, arguments).map_err(Stop::Said)?;
        let Some(_place) = self.under_way.enter(&caller.key(), CALLS) else {
            let said = format!("{CALLS} calls are under way already; try again when some are done");
            return Err(Stop::Denied(said));
        };
        match self.once(caller, &call, record, until).await {
            // Looking twice does no harm. Anything else whoever calls has to decide.
            Err(stop) if stop.is_lost() && call.tool.lane == Lane::Read => {
                self.once(caller, &call, record, until).await
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
            return Ok(serve(self, &key, call, &admitted, caller.bounds.time).await);
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
    }
    let result = turn.result(name, &asked).await?;
    Ok(match call.tool.untrusted {
        true => result.marked(),
        false => result,
    })
}
