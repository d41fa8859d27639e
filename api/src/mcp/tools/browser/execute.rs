//! `browser_execute`: a script of the caller, of whatever form.
//!
//! Some executors evaluate an expression and others a script, so what is sent is one expression that compiles the script itself.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::page::{self, Failed};
use crate::mcp::tools::bounded::Few;
use crate::mcp::tools::turn::{Arguments, Stop, Turn};
use crate::mcp::tools::{CallResult, text};

/// The tool.
const TOOL: &str = "browser_execute";

/// What a script brings.
#[derive(Deserialize)]
struct Brought {
    value: Box<RawValue>,
    notes: Few<String>,
}

pub(super) async fn run(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    // Executors that say what they can do run scripts as they please.
    if !turn.is_plain_browser() {
        return turn.result(TOOL, given).await;
    }
    let script = given.get("script").and_then(Value::as_str);
    let source = source(script.unwrap_or_default());
    let made = |brought: Brought| {
        let value = brought.value;
        let part = text::part(&format!("{{\"result\":{}}}", value.get()), (0, text::USUAL));
        let cut = part.next.map(|next| {
            format!(
                "The value is cut at {next} of {} characters: have the script return less.",
                part.length
            )
        });
        // Pages may write them as well.
        let notes = brought
            .notes
            .0
            .into_iter()
            .filter(|note| NOTES.contains(&note.as_str()));
        CallResult::quoting(cut, &part.text)
            .with(&json!({ "result": value }))
            .noting(notes.collect::<Vec<_>>())
    };
    let done = page::run_source(turn, source, made).await;
    done.map_err(Failed::stop)
}

/// The notes of the script that compiles others.
const NOTES: [&str; 3] = [
    "the value of the script is undefined",
    "a script of several statements with await has the value that it returns: add return",
    "the script is a function, which was called without arguments",
];

/// One expression that has the value of a script. Nothing but globals of the page is in the script's sight.
fn source(script: &str) -> String {
    let compiler = include_str!("page/evaluate.js").trim();
    let script = Value::from(script);
    format!("({compiler})({script}, function () {{ return eval(arguments[0]); }})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_those_of_the_page_script() {
        let compiler = include_str!("page/evaluate.js");
        for note in NOTES {
            assert!(compiler.contains(note), "{note}");
        }
        assert_eq!(compiler.matches("notes.push").count(), NOTES.len());
    }

    #[test]
    fn source_begins_where_a_return_would_take_it() {
        assert!(source("// 1\nlet a").starts_with("((code, evaluate) => {"));
    }
}
