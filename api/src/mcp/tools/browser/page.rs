//! Scripts that run in the page, by the tool `browser_execute`.
//!
//! Every executor has that tool, so they bring what its other tools do not. Pages whose Content-Security-Policy forbids `eval` run none.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::executors::Outcome;
use crate::long_work::work_on;
use crate::mcp::tools::turn::{Stop, Turn, arguments};

const LIBRARY: &str = include_str!("page/lib.js");

/// A script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    Append,
    Click,
    Condition,
    FillForm,
    Find,
    Hover,
    Html,
    Place,
    Query,
    SelectOption,
    Snapshot,
}

impl Script {
    fn source(self) -> &'static str {
        match self {
            Self::Append => include_str!("page/append.js"),
            Self::Click => include_str!("page/click.js"),
            Self::Condition => include_str!("page/condition.js"),
            Self::FillForm => include_str!("page/fill_form.js"),
            Self::Find => include_str!("page/find.js"),
            Self::Hover => include_str!("page/hover.js"),
            Self::Html => include_str!("page/html.js"),
            Self::Place => include_str!("page/place.js"),
            Self::Query => include_str!("page/query.js"),
            Self::SelectOption => include_str!("page/select_option.js"),
            Self::Snapshot => include_str!("page/snapshot.js"),
        }
    }

    /// One expression, whose value is a text. Pages are strangers, too: halves of characters are replaced, as no reader takes them.
    fn with(self, given: &Value) -> String {
        let source = self.source().trim();
        format!(
            "(() => {{\nconst whole = (key, it) => typeof it === 'string' && it.toWellFormed ? it.toWellFormed() : it;\n\
             try {{\n{LIBRARY}\nconst run = {source};\nreturn JSON.stringify({{ ok: run({given}) }}, whole);\n\
             }} catch (error) {{ return JSON.stringify({{ failed: String(error?.message ?? error) }}, whole); }}\n}})()"
        )
    }
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

#[derive(Deserialize)]
#[serde(untagged)]
enum Said<T> {
    Ok { ok: T },
    Failed { failed: String },
}

/// Runs a script in the controlled tab.
///
/// # Errors
/// When the page runs none, when there is no answer, and what the script itself says.
pub(super) async fn run<T: DeserializeOwned + Send + 'static>(
    turn: &mut Turn<'_>,
    script: Script,
    given: &Value,
) -> Result<T, Failed> {
    let source = script.with(given);
    let asked = arguments(serde_json::json!({ "script": source }));
    let raw = match turn.ask("browser_execute", &asked).await? {
        Outcome::Result(raw) => raw,
        Outcome::Error(message) => return Err(failure(message)),
    };
    let bytes = raw.get().len();
    let read = move || {
        let text = said(raw.get())?;
        // Neither a page nor an executor makes anything else of it.
        let nothing = |_| "the page answers nothing that can be read".to_owned();
        serde_json::from_str::<Said<T>>(&text).map_err(nothing)
    };
    match work_on(bytes, read).await {
        Some(Ok(Said::Ok { ok })) => Ok(ok),
        Some(Ok(Said::Failed { failed })) => Err(Failed::Stop(Stop::Quoted(failed))),
        Some(Err(message)) => Err(failure(message)),
        None => Err(Stop::said("the page answers nothing that can be read").into()),
    }
}

fn failure(message: String) -> Failed {
    let blocked = [
        "Content Security Policy",
        "unsafe-eval",
        "EvalError",
        "trusted-types",
        "TrustedScript",
    ];
    match blocked.iter().any(|sign| message.contains(sign)) {
        true => Failed::Blocked,
        false => Failed::Stop(Stop::Quoted(message)),
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
    #[case("no tab is controlled", false)]
    fn blocked_scripts_are_known(#[case] message: &str, #[case] blocked: bool) {
        let found = failure(message.to_owned());
        assert_eq!(matches!(found, Failed::Blocked), blocked);
    }
}
