//! `browser_go_back` and `browser_go_forward`, by the page's own history: one executor takes numbers of entries for their ids.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::navigate;
use super::page::{self, Failed, Script};
use crate::mcp::tools::CallResult;
use crate::mcp::tools::turn::{Arguments, Stop, Turn};

/// How long it may take until the tab moves.
const MOVES: Duration = Duration::from_secs(3);
/// How long the page may take to load then.
const LOADS: Duration = Duration::from_secs(10);
/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Deserialize)]
struct Place {
    /// Which entry of the history it is.
    at: String,
    /// Whether its page is loaded.
    ready: bool,
}

pub(super) async fn go(turn: &mut Turn<'_>, tool: &str, by: i64) -> Result<CallResult, Stop> {
    if !turn.is_plain_browser() {
        return turn.result(tool, &Arguments::new()).await;
    }
    let before = match look(turn, json!({ "by": by })).await {
        Ok(before) => before,
        // What executors of pages without scripts do there.
        Err(Failed::Blocked) => return turn.result(tool, &Arguments::new()).await,
        Err(Failed::Stop(stop)) => return Err(stop),
    };
    let begin = Instant::now();
    let mut moved = false;
    loop {
        sleep(PAUSE.min(turn.left())).await;
        match look(turn, json!({})).await {
            Ok(place) if place.at != before.at => {
                moved = true;
                if place.ready {
                    break;
                }
            }
            Ok(_) => {}
            // Another page, which is there.
            Err(Failed::Blocked) => {
                moved = true;
                break;
            }
            Err(Failed::Stop(stop)) if stop.is_lost() => return Err(stop),
            // Between two pages a tab answers nothing.
            Err(Failed::Stop(_)) => {}
        }
        let longest = if moved { LOADS } else { MOVES };
        if begin.elapsed() >= longest || turn.left() <= PAUSE {
            break;
        }
    }
    let tab = navigate::tab(turn).await;
    // Where nothing can be run, the address tells it.
    moved |= tab
        .as_ref()
        .is_some_and(|tab| !before.at.contains(&tab.url));
    if !moved {
        let side = if by < 0 { "before" } else { "after" };
        return Err(Stop::said(format!(
            "the tab did not move: it has no page {side} this one, or the page keeps it"
        )));
    }
    let success = json!({ "success": true });
    Ok(match tab {
        Some(tab) => tab.told("").with(&success),
        None => CallResult::text(success.to_string()).with(&success),
    })
}

async fn look(turn: &mut Turn<'_>, given: Value) -> Result<Place, Failed> {
    page::run(turn, Script::History, given, |place: Place| place).await
}
