//! Browsers of protocol 1, which say little when something fails: one answers `null`, another one `Uncaught`.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::executors::Outcome;
use crate::mcp::tools::text;
use crate::mcp::tools::turn::{Arguments, Stop};

/// Longest selector in a message, in characters.
const SELECTOR: usize = 100;
/// Messages of an executor that controls no tab, and of one whose tab was closed.
const NO_TAB: [&str; 2] = ["没有活动的标签页", "标签页已关闭"];
/// Message of an executor when an element did not come in time.
const NOT_IN_TIME: &str = "等待超时";

/// Detects an executor without a hold of the tab that it controls: it takes hold when it connects.
pub(in crate::mcp::tools) fn has_lost_tab(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Error(said) if said.starts_with("Debugger is not attached to the tab"))
}

/// Interprets an answer.
///
/// # Errors
/// The answer means that nothing was done; it gives no reason.
pub(in crate::mcp::tools) fn read_answer(
    tool: &str,
    arguments: &Arguments,
    outcome: Outcome,
) -> Result<Outcome, Stop> {
    let nothing = match &outcome {
        Outcome::Result(raw) => raw.get() == "null",
        Outcome::Error(said) if NO_TAB.contains(&said.as_str()) => {
            return Err(Stop::said(format!(
                "{tool}: the browser controls no tab, or it was closed. Open one with browser_tab_new, or choose one of \
                 browser_tabs_list with browser_tab_select"
            )));
        }
        Outcome::Error(said) => {
            said == "Uncaught" || (tool == "browser_wait" && said.contains(NOT_IN_TIME))
        }
    };
    if !nothing {
        return Ok(outcome);
    }
    if tool == "browser_wait" {
        let raw = RawValue::from_string(r#"{"found":false}"#.to_owned());
        return Ok(raw.map_or(outcome, Outcome::Result));
    }
    let selector = arguments.get("selector").and_then(Value::as_str);
    Err(Stop::said(match selector {
        Some(selector) => {
            let selector = text::part(selector, (0, SELECTOR)).text;
            format!(
                "{tool}: no element matches {selector}, or the page has failed at it; the browser says no more. Take a \
                 browser_snapshot to see what is there, and use its refs"
            )
        }
        None => format!(
            "{tool}: the page has failed at it, and the browser says no more. Take a browser_snapshot to see what is there"
        ),
    }))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::super::super::turn::arguments;
    use super::*;

    #[rstest]
    #[case(
        "browser_click",
        Ok("null"),
        Err("browser_click: no element matches #a, or the page")
    )]
    #[case(
        "browser_click",
        Err("Uncaught"),
        Err("browser_click: no element matches #a, or the page")
    )]
    #[case(
        "browser_click",
        Err("没有活动的标签页"),
        Err("browser_click: the browser controls no tab")
    )]
    #[case(
        "browser_click",
        Err("Cannot access contents of the page"),
        Ok("Cannot access")
    )]
    #[case("browser_click", Ok(r#"{"success":true}"#), Ok(r#"{"success":true}"#))]
    #[case("browser_wait", Ok("null"), Ok(r#"{"found":false}"#))]
    #[case(
        "browser_wait",
        Err("(in promise) Error: 等待超时: #a"),
        Ok(r#"{"found":false}"#)
    )]
    #[case("browser_wait", Ok(r#"{"found":true}"#), Ok(r#"{"found":true}"#))]
    fn answers_of_plain_browsers_mean(
        #[case] tool: &str,
        #[case] answer: Result<&str, &str>,
        #[case] expected: Result<&str, &str>,
    ) {
        let outcome = match answer {
            Ok(raw) => Outcome::Result(RawValue::from_string(raw.to_owned()).unwrap()),
            Err(said) => Outcome::Error(said.to_owned()),
        };
        let found = read_answer(tool, &arguments(json!({"selector": "#a"})), outcome);
        let found = match found {
            Ok(Outcome::Result(raw)) => Ok(raw.get().to_owned()),
            Ok(Outcome::Error(said)) => Ok(said),
            Err(Stop::Said(said)) => Err(said),
            Err(other) => panic!("{other:?}"),
        };
        match (&found, expected) {
            (Ok(found), Ok(expected)) | (Err(found), Err(expected)) => {
                assert!(found.starts_with(expected), "{found}");
            }
            _ => panic!("{found:?}"),
        }
    }
}
