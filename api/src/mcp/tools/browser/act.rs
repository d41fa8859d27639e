//! Acting on a page: what executors do not do themselves, scripts do.

use serde::Deserialize;
use serde_json::{Value, json};

use super::look;
use super::page::{self, Failed, Script};
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
) -> Result<CallResult, Failed> {
    let given = Value::Object(given.clone());
    let Done {
        success,
        reformatted,
    } = page::run(turn, script, given, |done| done).await?;
    let done = json!({ "success": success });
    let note = "the field shows another text than was typed; its value is below".to_owned();
    let result = CallResult::text(done.to_string()).with(&done);
    Ok(result.noting(reformatted.then_some(note)))
}

/// By a script where the executor says little of its own tools (see [`super::plain`]), and where `more` is asked for than they do.
/// `None`: by the executor's own tool.
async fn scripted_or_native(
    turn: &mut Turn<'_>,
    script: Script,
    given: &Arguments,
    more: bool,
) -> Result<Option<CallResult>, Stop> {
    if !more && !turn.is_plain_browser() {
        return Ok(None);
    }
    match scripted(turn, script, given).await {
        Ok(done) => Ok(Some(done)),
        Err(Failed::Blocked) if !more => Ok(None),
        Err(failed) => Err(failed.stop()),
    }
}

#[derive(Deserialize)]
struct Done {
    success: bool,
    /// The page has given the typed text another form.
    #[serde(default)]
    reformatted: bool,
}

pub(super) async fn click(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let more = asks_for_more(given, &["button", "clicks", "modifiers", "dialog"]);
    match scripted_or_native(turn, Script::Click, given, more).await? {
        Some(done) => Ok(done),
        None => {
            turn.result("browser_click", &only(given, &["selector"]))
                .await
        }
    }
}

pub(super) async fn press_key(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    match scripted_or_native(turn, Script::Key, given, false).await? {
        Some(done) => Ok(done),
        None => turn.result("browser_key_press", given).await,
    }
}

pub(super) async fn type_text(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let flag = |name: &str| given.get(name) == Some(&Value::Bool(true));
    if let Some(done) = scripted_or_native(turn, Script::Type, given, flag("append")).await? {
        return Ok(done);
    }
    let typed = turn
        .result("browser_type", &only(given, &["selector", "text"]))
        .await?;
    if typed.is_error || !flag("submit") {
        return Ok(typed);
    }
    if turn.is_plain_browser() {
        has_text(turn, given).await?;
    }
    let mut enter = only(given, &["selector"]);
    enter.extend(arguments(json!({"key": "Enter"})));
    match turn.result("browser_key_press", &enter).await {
        Ok(pressed) if pressed.is_error => Ok(pressed.after(TYPED)),
        Ok(pressed) => Ok(pressed),
        Err(stop) => Err(stop.after(TYPED)),
    }
}

/// Checks that a field has the text that was typed into it, in whatever form, before Enter is pressed on something else.
///
/// # Errors
/// The field has another text.
async fn has_text(turn: &mut Turn<'_>, given: &Arguments) -> Result<(), Stop> {
    fn plain(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
    fn letters(text: &str) -> String {
        let letters = text.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    }
    let text = given.get("text").and_then(Value::as_str);
    let text = text.unwrap_or_default().to_owned();
    let made = move |found: &str| {
        let typed = letters(&text);
        plain(found).contains(&plain(&text))
            || (!typed.is_empty() && letters(found).contains(&typed))
    };
    match look::visible_text(turn, &only(given, &["selector"]), made).await? {
        true => Ok(()),
        false => Err(Stop::said(
            "browser_type: the field has not taken the text, so Enter was not pressed. Read it with browser_get_content",
        )),
    }
}

pub(super) async fn hover(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let done = scripted(turn, Script::Hover, given).await;
    done.map_err(Failed::stop)
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
    done.await.map_err(Failed::stop)
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
    let done = done.await.map_err(Failed::stop)?;
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
