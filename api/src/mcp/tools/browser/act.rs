//! Acting on a page: what executors do not do themselves, scripts do.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::page::{self, Script};
use crate::mcp::tools::CallResult;
use crate::mcp::tools::turn::{Arguments, Stop, Turn, arguments};

/// Fields of these are for scripts; without them, the executor's own tool does it.
fn asks_for_more(given: &Arguments, fields: &[&str]) -> bool {
    fields.iter().any(|field| given.contains_key(*field))
}

fn only(given: &Arguments, fields: &[&str]) -> Arguments {
    let wanted = given
        .iter()
        .filter(|(name, _)| fields.contains(&name.as_str()));
    wanted
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

async fn own(turn: &mut Turn<'_>, tool: &str, given: &Arguments) -> Result<CallResult, Stop> {
    Ok(CallResult::of(tool, turn.ask(tool, given).await?))
}

async fn scripted(
    turn: &mut Turn<'_>,
    script: Script,
    given: &Arguments,
) -> Result<CallResult, Stop> {
    let given = Value::Object(given.clone());
    let done: Value = page::run(turn, script, &given)
        .await
        .map_err(page::Failed::stop)?;
    Ok(CallResult::text(done.to_string()).with(&done))
}

pub(super) async fn click(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    match asks_for_more(given, &["button", "clicks", "modifiers"]) {
        true => scripted(turn, Script::Click, given).await,
        false => own(turn, "browser_click", given).await,
    }
}

pub(super) async fn type_text(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let flag = |name: &str| given.get(name) == Some(&Value::Bool(true));
    let typed = match flag("append") {
        true => scripted(turn, Script::Append, given).await?,
        false => own(turn, "browser_type", &only(given, &["selector", "text"])).await?,
    };
    if typed.is_error || !flag("submit") {
        return Ok(typed);
    }
    let mut enter = only(given, &["selector"]);
    enter.extend(arguments(json!({"key": "Enter"})));
    own(turn, "browser_key_press", &enter).await
}

pub(super) async fn hover(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    scripted(turn, Script::Hover, given).await
}

pub(super) async fn select_option(
    turn: &mut Turn<'_>,
    given: &Arguments,
) -> Result<CallResult, Stop> {
    scripted(turn, Script::SelectOption, given)
        .await
        .map(CallResult::marked)
}

/// What has become of a field.
#[derive(Debug, Serialize, Deserialize)]
struct Filled {
    field: String,
    ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) async fn fill_form(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let asked = Value::Object(given.clone());
    let done: Vec<Filled> = page::run(turn, Script::FillForm, &asked)
        .await
        .map_err(page::Failed::stop)?;
    let lines: Vec<String> = done
        .iter()
        .map(|it| match &it.error {
            None => format!("{}: filled in", it.field),
            Some(error) => format!("{}: {error}", it.field),
        })
        .collect();
    let failed = done.iter().any(|it| !it.ok);
    let result = CallResult {
        is_error: failed,
        ..CallResult::text(lines.join("\n"))
    };
    Ok(result.with(&json!({ "fields": done })))
}
