//! Acting on a page: what executors do not do themselves, scripts do.

use serde::Deserialize;
use serde_json::{Value, json};

use super::page::{self, Script};
use crate::mcp::tools::bounded::Few;
use crate::mcp::tools::turn::{Arguments, Stop, Turn, arguments, only};
use crate::mcp::tools::{CallResult, text};

/// Fields of these are for scripts; without them, the executor's own tool does it.
fn asks_for_more(given: &Arguments, fields: &[&str]) -> bool {
    fields.iter().any(|field| given.contains_key(*field))
}

/// What is said where the second half of `browser_type` has failed: who types again has the text twice.
const TYPED: &str = "the text was typed; then: ";
/// Most characters of what a page says of one field.
const LINE: usize = 500;

async fn scripted(
    turn: &mut Turn<'_>,
    script: Script,
    given: &Arguments,
) -> Result<CallResult, Stop> {
    let given = Value::Object(given.clone());
    let done = page::run(turn, script, given, |done: Done| done.success);
    let done = done.await.map_err(page::Failed::stop)?;
    let done = json!({ "success": done });
    Ok(CallResult::text(done.to_string()).with(&done))
}

#[derive(Deserialize)]
struct Done {
    success: bool,
}

pub(super) async fn click(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    match asks_for_more(given, &["button", "clicks", "modifiers", "dialog"]) {
        true => scripted(turn, Script::Click, given).await,
        false => {
            turn.result("browser_click", &only(given, &["selector"]))
                .await
        }
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
    match turn.result("browser_key_press", &enter).await {
        Ok(pressed) if pressed.is_error => Ok(pressed.after(TYPED)),
        Ok(pressed) => Ok(pressed),
        Err(stop) => Err(stop.after(TYPED)),
    }
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
        selected: Few<String>,
    }
    let given = Value::Object(given.clone());
    let made = |Done { selected }: Done| {
        let said = text::part(&selected.0.join("\n"), (0, text::USUAL));
        let result = CallResult::quoting(Some("selected:".to_owned()), &said.text);
        result.with(&json!({ "selected": selected }))
    };
    let done = page::run(turn, Script::SelectOption, given, made);
    done.await.map_err(page::Failed::stop)
}

/// What has become of a field. Which one it is we know ourselves.
#[derive(Deserialize)]
struct Filled {
    ok: bool,
    #[serde(default)]
    error: Option<String>,
}

pub(super) async fn fill_form(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let asked = Value::Object(given.clone());
    let fields = given.get("fields").and_then(Value::as_array);
    let selectors: Vec<String> = fields
        .into_iter()
        .flatten()
        .map(|field| field["selector"].as_str().unwrap_or_default().to_owned())
        .collect();
    let made = move |Few(done): Few<Filled>| filled(&selectors, &done);
    let done = page::run(turn, Script::FillForm, asked, made);
    let done = done.await.map_err(page::Failed::stop)?;
    done.ok_or_else(|| Stop::said("the page does not say what has become of each field"))
}

/// `None`: the page speaks of other fields.
fn filled(selectors: &[String], done: &[Filled]) -> Option<CallResult> {
    if selectors.len() != done.len() {
        return None;
    }
    let (mut lines, mut facts) = (Vec::new(), Vec::new());
    for (selector, it) in selectors.iter().zip(done) {
        if it.ok {
            lines.push(format!("{selector}: filled in"));
            facts.push(json!({"field": selector, "ok": true}));
        } else {
            let error = it.error.as_deref().unwrap_or("not filled in");
            let error = text::part(error, (0, LINE)).text;
            lines.push(format!("{selector}: {error}"));
            facts.push(json!({"field": selector, "ok": false, "error": error}));
        }
    }
    let said = text::part(&lines.join("\n"), (0, text::USUAL)).text;
    let failed = done.iter().any(|it| !it.ok);
    let result = match failed {
        true => CallResult::quoting(None, &said),
        false => CallResult::text(said),
    };
    let result = result.with(&json!({ "fields": facts }));
    Some(result.failed_if(failed))
}
