//! Acting on a page: what executors do not do themselves, scripts do.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::page::{self, Script};
use crate::mcp::tools::turn::{Arguments, Stop, Turn, arguments, only};
use crate::mcp::tools::{CallResult, text};

/// Fields of these are for scripts; without them, the executor's own tool does it.
fn asks_for_more(given: &Arguments, fields: &[&str]) -> bool {
    fields.iter().any(|field| given.contains_key(*field))
}

async fn scripted(
    turn: &mut Turn<'_>,
    script: Script,
    given: &Arguments,
) -> Result<CallResult, Stop> {
    let given = Value::Object(given.clone());
    let done: Done = page::run(turn, script, &given)
        .await
        .map_err(page::Failed::stop)?;
    let done = json!({ "success": done.success });
    Ok(CallResult::text(done.to_string()).with(&done))
}

#[derive(Deserialize)]
struct Done {
    success: bool,
}

pub(super) async fn click(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    match asks_for_more(given, &["button", "clicks", "modifiers"]) {
        true => scripted(turn, Script::Click, given).await,
        false => turn.result("browser_click", given).await,
    }
}

pub(super) async fn type_text(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let flag = |name: &str| given.get(name) == Some(&Value::Bool(true));
    let typed = match flag("append") {
        true => scripted(turn, Script::Append, given).await?,
        false => {
            turn.result("browser_type", &only(given, &["selector", "text"]))
                .await?
        }
    };
    if typed.is_error || !flag("submit") {
        return Ok(typed);
    }
    let mut enter = only(given, &["selector"]);
    enter.extend(arguments(json!({"key": "Enter"})));
    turn.result("browser_key_press", &enter).await
}

pub(super) async fn hover(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    scripted(turn, Script::Hover, given).await
}

pub(super) async fn select_option(
    turn: &mut Turn<'_>,
    given: &Arguments,
) -> Result<CallResult, Stop> {
    #[derive(Deserialize)]
    struct Done {
        selected: Vec<String>,
    }
    let given = Value::Object(given.clone());
    let done: Done = page::run(turn, Script::SelectOption, &given)
        .await
        .map_err(page::Failed::stop)?;
    let said = text::part(&done.selected.join("\n"), (0, text::USUAL));
    let result = CallResult::quoting(Some("selected:".to_owned()), &said.text);
    Ok(result.with(&json!({ "selected": done.selected })))
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
    let fields = given.get("fields").and_then(Value::as_array);
    let selectors = fields
        .into_iter()
        .flatten()
        .map(|field| field["selector"].as_str());
    let lines: Vec<String> = (selectors.zip(&done))
        .map(|(selector, it)| {
            let selector = selector.unwrap_or_default();
            match &it.error {
                None => format!("{selector}: filled in"),
                Some(error) => format!("{selector}: {error}"),
            }
        })
        .collect();
    let said = text::part(&lines.join("\n"), (0, text::USUAL)).text;
    let failed = done.iter().any(|it| !it.ok);
    let result = match failed {
        true => CallResult::quoting(None, &said),
        false => CallResult::text(said),
    };
    let result = CallResult {
        is_error: failed,
        ..result
    };
    Ok(result.with(&json!({ "fields": done })))
}
