//! Text on the screen: reading it, finding it, and clicking it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::pointer;
use crate::mcp::tools::CallResult;
use crate::mcp::tools::bounded::Few;
use crate::mcp::tools::text;
use crate::mcp::tools::turn::{Arguments, Stop, Turn, arguments, typed};

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
    /// Its left and upper edge, if the desktop says them, and its size.
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    y: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    height: Option<f64>,
}

impl Piece {
    fn line(&self) -> String {
        format!("{} at {:.0},{:.0}", self.text, self.center_x, self.center_y)
    }

    fn is_in(&self, [x, y, width, height]: [u32; 4]) -> bool {
        let within = |at: f64, from: u32, length: u32| {
            (f64::from(from)..f64::from(from) + f64::from(length)).contains(&at)
        };
        within(self.center_x, x, width) && within(self.center_y, y, height)
    }
}

/// Makes something of the pieces that are in the region, if one is given. Desktop clients know none: they read the whole screen.
async fn pieces<R: Send + 'static>(
    turn: &mut Turn<'_>,
    given: &Arguments,
    make: impl FnOnce(Vec<Piece>) -> R + Send + 'static,
) -> Result<R, Stop> {
    #[derive(Deserialize)]
    struct Answer {
        elements: Few<Piece>,
    }
    let region = pointer::region(given)?;
    let made = move |Answer { elements }: Answer| {
        let mut found = elements.0;
        found.retain(|piece| region.is_none_or(|region| piece.is_in(region)));
        make(found)
    };
    turn.read("computer_screen_text", &Arguments::new(), made)
        .await
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
    let contains = given.get("contains").and_then(Value::as_str);
    let contains = contains.map(ToOwned::to_owned);
    let least = given.get("minConfidence").and_then(Value::as_f64);
    let made = move |mut found: Vec<Piece>| {
        if let Some(text) = contains {
            found = matching(found, &text, false);
        }
        found.retain(|piece| least.is_none_or(|least| piece.confidence >= least));
        told(&found)
    };
    pieces(turn, given, made).await
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
    let made = move |found| {
        let mut found = matching(found, &wanted.text, wanted.exact);
        found.truncate(wanted.limit.unwrap_or(USUAL));
        told(&found)
    };
    pieces(turn, given, made).await
}

pub(super) async fn click(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let wanted: Wanted = typed(given)?;
    let made = move |found| {
        let mut found = matching(found, &wanted.text, wanted.exact);
        let count = found.len();
        match wanted.nth < count {
            true => Ok(found.swap_remove(wanted.nth)),
            false => Err(count),
        }
    };
    let piece = pieces(turn, given, made).await?;
    let piece = piece.map_err(|count| {
        Stop::said(match count {
            0 => "text: it is not on the screen; nothing was clicked".to_owned(),
            1 => "nth: it is on the screen once, and nth counts from 0; nothing was clicked"
                .to_owned(),
            count => format!(
                "nth: it is on the screen {count} times, and nth counts from 0; nothing was clicked"
            ),
        })
    })?;
    #[allow(clippy::cast_possible_truncation)] // Saturating.
    let (x, y) = (piece.center_x.round() as i64, piece.center_y.round() as i64);
    let mut asked = arguments(json!({"x": x, "y": y}));
    for field in ["button", "clicks"] {
        if let Some(value) = given.get(field) {
            asked.insert(field.to_owned(), value.clone());
        }
    }
    turn.acts_at([x, y]);
    let done = turn.result("computer_mouse_click", &asked).await?;
    if done.is_error {
        return Ok(done);
    }
    let facts = json!({"ok": true, "x": x, "y": y, "matched": piece.text});
    let matched = text::part(&piece.text, (0, text::USUAL)).text;
    Ok(CallResult::quoting(Some(format!("clicked at {x},{y}, on:")), &matched).with(&facts))
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
            x: None,
            y: None,
            width: None,
            height: None,
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
