//! Text on the screen: reading it, finding it, and clicking it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::pointer;
use crate::mcp::tools::CallResult;
use crate::mcp::tools::text;
use crate::mcp::tools::turn::{Arguments, Stop, Turn, arguments, only, typed};

/// How many places are told when nothing is said.
const USUAL: usize = 10;

/// A piece of text on the screen.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Piece {
    text: String,
    #[serde(default)]
    confidence: f64,
    center_x: f64,
    center_y: f64,
    #[serde(flatten)]
    rest: Arguments,
}

impl Piece {
    fn line(&self) -> String {
        format!("{} at {:.0},{:.0}", self.text, self.center_x, self.center_y)
    }
}

async fn pieces(turn: &mut Turn<'_>, given: &Arguments) -> Result<Vec<Piece>, Stop> {
    #[derive(Deserialize)]
    struct Answer {
        elements: Vec<Piece>,
    }
    pointer::region(given)?;
    let answer: Answer = turn
        .read("computer_screen_text", &only(given, &["region"]))
        .await?;
    Ok(answer.elements)
}

/// Those that have a text in them.
fn matching(pieces: Vec<Piece>, text: &str, exact: bool) -> Vec<Piece> {
    let wanted = text.trim().to_lowercase();
    let matches = |piece: &Piece| match exact {
        true => piece.text.trim() == text.trim(),
        false => piece.text.to_lowercase().contains(&wanted),
    };
    pieces.into_iter().filter(matches).collect()
}

fn told(pieces: &[Piece]) -> CallResult {
    let facts = json!({"elements": pieces, "count": pieces.len()});
    if pieces.is_empty() {
        return CallResult::text("there is no such text on the screen").with(&facts);
    }
    let lines: Vec<_> = pieces.iter().map(Piece::line).collect();
    let part = text::part(&lines.join("\n"), (0, text::USUAL));
    let cut = part
        .next
        .is_some()
        .then(|| "The list is cut: give region or contains.".to_owned());
    CallResult::quoting(cut, &part.text).with(&facts)
}

pub(super) async fn read(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let mut found = pieces(turn, given).await?;
    if let Some(text) = given.get("contains").and_then(Value::as_str) {
        found = matching(found, text, false);
    }
    if let Some(least) = given.get("minConfidence").and_then(Value::as_f64) {
        found.retain(|piece| piece.confidence >= least);
    }
    Ok(told(&found))
}

#[derive(Deserialize)]
struct Wanted {
    text: String,
    #[serde(default)]
    exact: bool,
    #[serde(default)]
    limit: Option<usize>,
    #[serde(default)]
    nth: usize,
}

pub(super) async fn find(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let wanted: Wanted = typed(given)?;
    let found = pieces(turn, given).await?;
    let mut found = matching(found, &wanted.text, wanted.exact);
    found.truncate(wanted.limit.unwrap_or(USUAL));
    Ok(told(&found))
}

pub(super) async fn click(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let wanted: Wanted = typed(given)?;
    let found = matching(pieces(turn, given).await?, &wanted.text, wanted.exact);
    let Some(piece) = found.get(wanted.nth) else {
        return Err(Stop::said(match found.len() {
            0 => "text: it is not on the screen; nothing was clicked".to_owned(),
            count => format!(
                "nth: it is on the screen {count} times, and nth counts from 0; nothing was clicked"
            ),
        }));
    };
    #[allow(clippy::cast_possible_truncation)] // Saturating.
    let (x, y) = (piece.center_x.round() as i64, piece.center_y.round() as i64);
    let mut asked = arguments(json!({"x": x, "y": y}));
    for field in ["button", "clicks"] {
        if let Some(value) = given.get(field) {
            asked.insert(field.to_owned(), value.clone());
        }
    }
    let done = turn.result("computer_mouse_click", &asked).await?;
    if done.is_error {
        return Ok(done);
    }
    let facts = json!({"ok": true, "x": x, "y": y, "matched": piece.text});
    Ok(CallResult::quoting(Some(format!("clicked at {x},{y}, on:")), &piece.text).with(&facts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(text: &str) -> Piece {
        Piece {
            text: text.to_owned(),
            confidence: 0.9,
            center_x: 1.0,
            center_y: 2.0,
            rest: Arguments::new(),
        }
    }

    #[test]
    fn text_is_found_in_any_case_or_exactly() {
        let all = || vec![piece("Save as"), piece("save"), piece("Cancel")];
        let texts = |found: Vec<Piece>| found.into_iter().map(|it| it.text).collect::<Vec<_>>();
        assert_eq!(texts(matching(all(), "SAVE", false)), ["Save as", "save"]);
        assert_eq!(texts(matching(all(), " save ", true)), ["save"]);
        assert!(matching(all(), "Open", false).is_empty());
    }
}
