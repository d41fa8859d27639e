//! Scripts that run in the page, by the tool `browser_execute`.
//!
//! Every executor has that tool, so they bring what its other tools do not. Pages whose Content-Security-Policy forbids `eval` run none.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::executors::Outcome;
use crate::mcp::tools::bounded::{LONGEST, too_long};
use crate::mcp::tools::turn::{Stop, Turn, arguments};

/// The executor's tool.
const TOOL: &str = "browser_execute";
const LIBRARY: &str = include_str!("page/lib.js");
const ACTING: &str = include_str!("page/acting.js");
const SLICES: &str = include_str!("page/slices.js");
/// Most slices of a script: more than its budget gives, so that no page keeps the service asking.
const MOST_SLICES: usize = 10;
/// Longest answer in which a flag is looked for, in bytes.
const LONGEST_FLAGGED: usize = 64 * 1024;

/// A script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    Arrival,
    Click,
    Condition,
    Content,
    FillForm,
    Find,
    History,
    Hover,
    Html,
    Key,
    Links,
    Place,
    Query,
    SelectOption,
    Snapshot,
    Type,
}

impl Script {
    fn source(self) -> &'static str {
        match self {
            Self::Arrival => include_str!("page/arrival.js"),
            Self::Click => include_str!("page/click.js"),
            Self::Condition => include_str!("page/condition.js"),
            Self::Content => include_str!("page/content.js"),
            Self::FillForm => include_str!("page/fill_form.js"),
            Self::Find => include_str!("page/find.js"),
            Self::History => include_str!("page/history.js"),
            Self::Hover => include_str!("page/hover.js"),
            Self::Html => include_str!("page/html.js"),
            Self::Key => include_str!("page/key.js"),
            Self::Links => include_str!("page/links.js"),
            Self::Place => include_str!("page/place.js"),
            Self::Query => include_str!("page/query.js"),
            Self::SelectOption => include_str!("page/select_option.js"),
            Self::Snapshot => include_str!("page/snapshot.js"),
            Self::Type => include_str!("page/type.js"),
        }
    }

    /// Tells actions, whose effect is read after them, from what only reads.
    fn acts(self) -> bool {
        matches!(
            self,
            Self::Click
                | Self::FillForm
                | Self::Hover
                | Self::Key
                | Self::SelectOption
                | Self::Type
        )
    }

    /// One expression, whose value is a text. Pages are strangers, too: halves of characters are replaced, as no reader takes them, and the
    /// `toJSON` methods that pages give to lists and texts are passed over.
    fn with(self, given: &Value, token: &str) -> String {
        let source = self.source().trim();
        let run = match self.acts() {
            true => {
                let clicks = self == Self::Click;
                format!(
                    "{ACTING}\nconst run = acting({source}, {clicks});\nreturn driveActing(run({given}), '{token}');"
                )
            }
            false => format!("const run = {source};\nreturn drive(run({given}), '{token}');"),
        };
        format!(
            "(() => {{\nconst whole = function (key) {{ const it = this[key]; return typeof it === 'string' && it.toWellFormed ? it.toWellFormed() : it; }};\n\
             const tell = (make) => {{ try {{ return JSON.stringify(make(), whole); }} catch (error) {{ \
             return JSON.stringify({{ failed: String(error?.message ?? error) }}, whole); }} }};\n\
             try {{\n{SLICES}\n{LIBRARY}\n{run}\n\
             }} catch (error) {{ return tell(() => {{ throw error; }}); }}\n}})()"
        )
    }
}

/// The next slice of a script that has not come to its end.
fn next_slice(token: &str) -> String {
    format!(
        "(() => globalThis[Symbol.for('agentyard.slices')]?.get('{token}')?.() ?? \
         JSON.stringify({{ failed: 'the page was loaded anew while it was read; try again' }}))()"
    )
}

/// Why a script has brought nothing.
#[derive(Debug)]
pub(super) enum Failed {
    /// The page runs none.
    Blocked,
    /// Anything else.
    Stop(Stop),
}

impl From<Stop> for Failed {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl Failed {
    /// For what cannot be done in another way.
    pub(super) fn stop(self) -> Stop {
        match self {
            Self::Stop(stop) => stop,
            Self::Blocked => Stop::said(
                "the page's Content-Security-Policy lets no script run in it. Use browser_get_content, browser_get_links, \
                 browser_click, browser_type and browser_screenshot, which need none",
            ),
        }
    }
}

/// One of both. Pages decide what it is, so it is no enum that has all of it in memory first.
#[derive(Deserialize)]
struct Said<T> {
    ok: Option<T>,
    failed: Option<String>,
}

/// Runs a script in the controlled tab, and makes something of what it brings. It may take all the time that is left.
///
/// # Errors
/// When the page runs none, when there is no answer, and what the script itself says.
pub(super) async fn run<T: DeserializeOwned, R: Send + 'static>(
    turn: &mut Turn<'_>,
    script: Script,
    given: Value,
    make: impl FnOnce(T) -> R + Send + 'static,
) -> Result<R, Failed> {
    turn.watched = None;
    let token = uuid::Uuid::new_v4().simple().to_string();
    let mut source = script.with(&given, &token);
    let mut slices = 0;
    let outcome = loop {
        let outcome = ask(turn, source).await?;
        slices += 1;
        if slices == MOST_SLICES || !flag(&outcome, "later") {
            break outcome;
        }
        source = next_slice(&token);
    };
    if script.acts() && flag(&outcome, "watched") {
        turn.watched = Some(token);
    }
    let read = move |_: &str, outcome| Ok(brought(outcome).map(make));
    turn.parse_answer(TOOL, outcome, read).await?
}

async fn ask(turn: &mut Turn<'_>, source: String) -> Result<Outcome, Stop> {
    let asked = arguments(serde_json::json!({ "script": source }));
    turn.ask_within(turn.left(), TOOL, &asked).await
}

/// The same with the source of a script, which is one expression.
///
/// # Errors
/// As [`run`].
pub(super) async fn run_source<T: DeserializeOwned, R: Send + 'static>(
    turn: &mut Turn<'_>,
    source: String,
    make: impl FnOnce(T) -> R + Send + 'static,
) -> Result<R, Failed> {
    let outcome = ask(turn, source).await?;
    let read = move |_: &str, outcome| Ok(brought(outcome).map(make));
    turn.parse_answer(TOOL, outcome, read).await?
}

/// Reads the effect of the action with this token.
///
/// # Errors
/// The page does not report it.
pub(super) async fn effect<T: DeserializeOwned + Send + 'static>(
    turn: &mut Turn<'_>,
    limit: Duration,
    token: &str,
) -> Result<T, Stop> {
    let source = format!(
        "(() => globalThis[Symbol.for('agentyard.slices')]?.get('{token}')?.() ?? JSON.stringify({{ ok: {{ gone: true }} }}))()"
    );
    let asked = arguments(serde_json::json!({ "script": source }));
    let outcome = turn.ask_within(limit, TOOL, &asked).await?;
    let read = |_: &str, outcome| Ok(brought(outcome).map_err(Failed::stop));
    turn.parse_answer(TOOL, outcome, read).await?
}

/// Reads a flag that a script sets beside its value.
fn flag(outcome: &Outcome, name: &str) -> bool {
    #[derive(Deserialize)]
    struct Flags {
        #[serde(default)]
        later: bool,
        #[serde(default)]
        watched: bool,
    }
    let Outcome::Result(raw) = outcome else {
        return false;
    };
    if raw.get().len() > LONGEST_FLAGGED || !raw.get().contains(name) {
        return false;
    }
    let flags = said(raw.get()).map(|text| serde_json::from_str::<Flags>(&text));
    match (flags, name) {
        (Ok(Ok(flags)), "later") => flags.later,
        (Ok(Ok(flags)), _) => flags.watched,
        _ => false,
    }
}

/// What a script has brought.
fn brought<T: DeserializeOwned>(outcome: Outcome) -> Result<T, Failed> {
    let raw = match outcome {
        Outcome::Error(message) => return Err(failure(&message)),
        Outcome::Result(raw) => raw,
    };
    if raw.get().len() > LONGEST {
        return Err(Stop::said(too_long(TOOL)).into());
    }
    let text = said(raw.get()).map_err(|message| failure(&message))?;
    match serde_json::from_str(&text) {
        Ok(Said { ok: Some(ok), .. }) => Ok(ok),
        Ok(Said {
            failed: Some(failed),
            ..
        }) => Err(Stop::quoted(&failed).into()),
        // Neither a page nor an executor makes anything else of it.
        _ => Err(Stop::said("the page answers nothing that can be read").into()),
    }
}

fn failure(message: &str) -> Failed {
    let blocked = [
        "Content Security Policy",
        "unsafe-eval",
        "EvalError",
        "Evaluating a string as JavaScript violates",
        "trusted-types",
        "TrustedScript",
    ];
    match blocked.iter().any(|sign| message.contains(sign)) {
        true => Failed::Blocked,
        false => Failed::Stop(Stop::quoted(message)),
    }
}

/// The text that a script has made, in an executor's answer; or what went wrong.
fn said(raw: &str) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow, default)]
        result: Option<&'a RawValue>,
        #[serde(borrow, default)]
        error: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Message {
        message: String,
    }
    let text = |raw: &RawValue| serde_json::from_str::<String>(raw.get()).ok();
    let error = |raw: &RawValue| {
        let message = serde_json::from_str::<Message>(raw.get());
        text(raw).or(message.ok().map(|it| it.message))
    };
    if let Ok(text) = serde_json::from_str::<String>(raw) {
        return Ok(text);
    }
    let unreadable = |_| "the answer to browser_execute cannot be read".to_owned();
    let answer: Answer<'_> = serde_json::from_str(raw).map_err(unreadable)?;
    let nothing = || "the page answers nothing".to_owned();
    if let Some(raw) = answer.error {
        return Err(error(raw).unwrap_or_else(nothing));
    }
    let result = answer.result.ok_or_else(nothing)?;
    if let Some(text) = text(result) {
        return Ok(text);
    }
    let inner = serde_json::from_str::<Answer<'_>>(result.get());
    let inner = inner.ok().and_then(|inner| error(inner.error?));
    Err(inner.unwrap_or_else(nothing))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r#"{"result":"{}"}"#, Ok("{}"))]
    #[case(r#""{}""#, Ok("{}"))]
    #[case(r#"{"result":{"error":"EvalError: no"}}"#, Err("EvalError: no"))]
    #[case(r#"{"error":{"message":"no tab"}}"#, Err("no tab"))]
    #[case(r#"{"error":"no tab"}"#, Err("no tab"))]
    #[case(r#"{"result":null}"#, Err("the page answers nothing"))]
    #[case("7", Err("the answer to browser_execute cannot be read"))]
    fn answers_of_executors_are_read(#[case] raw: &str, #[case] expected: Result<&str, &str>) {
        let found = said(raw);
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[rstest]
    #[case(
        "EvalError: Evaluating a string as JavaScript violates the following Content Security Policy directive",
        true
    )]
    #[case(
        "Refused to evaluate a string as JavaScript because 'unsafe-eval' is not an allowed source of script",
        true
    )]
    #[case("This document requires 'TrustedScript' assignment.", true)]
    #[case(
        "Evaluating a string as JavaScript violates this document's Trusted Type assignment requirements.",
        true
    )]
    #[case("no tab is controlled", false)]
    fn blocked_scripts_are_known(#[case] message: &str, #[case] blocked: bool) {
        let found = failure(message);
        assert_eq!(matches!(found, Failed::Blocked), blocked);
    }
}
