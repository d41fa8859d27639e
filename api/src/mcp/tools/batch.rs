//! `browser_batch` and `computer_batch`: several calls in one turn.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{self, Call};
use super::result::Content;
use super::turn::{Arguments, Stop, Turn, typed};
use super::{CallResult, Caller};
use crate::mcp::Mcp;
use crate::mcp::audit::Record;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    steps: Vec<Step>,
    #[serde(default)]
    stop_on_error: Option<bool>,
}

#[derive(Deserialize)]
struct Step {
    tool: String,
    #[serde(default)]
    arguments: Option<Value>,
}

/// The calls of a batch, all of them checked before the first is made.
///
/// # Errors
/// What is wrong, and with which of them.
pub(super) fn steps<'a>(
    mcp: &'a Mcp,
    caller: &Caller,
    arguments: &Arguments,
) -> Result<Vec<Call<'a>>, Stop> {
    let given: Given = typed(arguments)?;
    let check = |(number, step): (usize, Step)| {
        let wrong = |said: &str| Stop::said(format!("steps.{number}: {said}"));
        let found = mcp.catalogue.find(caller.service, &step.tool);
        let tool = found.ok_or_else(|| {
            let shown: String = step.tool.chars().take(64).collect();
            wrong(&format!("tool: there is no tool {shown}"))
        })?;
        if tool.name.ends_with("_batch") {
            return Err(wrong("tool: a batch has no batches in it"));
        }
        let arguments = step.arguments.unwrap_or_else(|| json!({}));
        Call::new(mcp, caller.service, tool, &arguments).map_err(|said| wrong(&said))
    };
    given.steps.into_iter().enumerate().map(check).collect()
}

/// Makes the calls one after the other.
///
/// # Errors
/// When nothing more can be asked.
pub(super) async fn run(
    turn: &mut Turn<'_>,
    steps: &[Call<'_>],
    arguments: &Arguments,
) -> Result<CallResult, Stop> {
    let go_on = typed::<Given>(arguments)?.stop_on_error == Some(false);
    turn.pictures = steps.iter().filter(|step| step.tool.picture).count();
    let mut done = CallResult::text("");
    let mut told = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let mut record = None;
        let made = make(turn, step, &mut record).await;
        if let (Err(stop), Some(record)) = (&made, &record) {
            stop.note(record);
        }
        let result = match made {
            Ok(result) => result,
            // The others would fare no better.
            Err(stop @ (Stop::Refused(_) | Stop::Failed(..))) if told.is_empty() => {
                return Err(stop);
            }
            Err(stop) => stop.result(turn.mcp, turn.caller),
        };
        if let Some(record) = record {
            record.end(&result);
        }
        let failed = result.is_error;
        told.push(json!({"tool": step.tool.name, "isError": failed}));
        done.untrusted |= result.untrusted;
        done.is_error |= failed;
        let head = format!(
            "{}. {}: {}",
            number + 1,
            step.tool.name,
            if failed { "error" } else { "ok" }
        );
        done.content.push(Content::Text(head));
        done.content.extend(result.content);
        let notes = step.notes.iter();
        done = done.noting(notes.map(|note| format!("steps.{number}: {note}")));
        if failed && !go_on {
            break;
        }
    }
    done.content.remove(0);
    let left = steps.len() - told.len();
    if left > 0 {
        let calls = if left == 1 { "call was" } else { "calls were" };
        let said = format!("{left} more {calls} not made");
        done.content.push(Content::Text(said));
    }
    Ok(done.with_aside(&json!({ "steps": told, "notMade": left })))
}

/// Makes one of the calls. It counts like any other, is recorded and judged by itself.
async fn make(
    turn: &mut Turn<'_>,
    step: &Call<'_>,
    begun: &mut Option<Arc<Record>>,
) -> Result<CallResult, Stop> {
    let (mcp, caller) = (turn.mcp, turn.caller);
    let turned = mcp.limits.call(&caller.key(), turn.until).await;
    turned.map_err(Stop::Denied)?;
    let record = step.recorded(mcp, caller, turn.until).await;
    let record = Arc::new(record.map_err(Stop::said)?);
    *begun = Some(Arc::clone(&record));
    let admitted = step.admitted(mcp, caller).await?;
    turn.go_on_for(admitted, record);
    call::within(turn, step).await
}
