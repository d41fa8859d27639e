//! `browser_navigate`: opens an address, and says what is there.

use std::time::Duration;

use serde::Deserialize;

use super::look;
use crate::mcp::tools::result::read;
use crate::mcp::tools::turn::{Arguments, Stop, Turn, made_of};
use crate::mcp::tools::{CallResult, text};

/// The controlled tab.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Tab {
    #[serde(default)]
    pub(super) url: String,
    #[serde(default)]
    pub(super) title: String,
    /// Whether it is the one that its window shows.
    #[serde(default)]
    pub(super) active: Option<bool>,
    #[serde(default, rename = "windowId")]
    pub(super) window_id: Option<i64>,
}

impl Tab {
    /// Address and title, which the page has chosen.
    pub(super) fn told(&self, ours: &str) -> CallResult {
        let line = |said: &str| text::part(said, (0, LINE)).text;
        let said = format!("{}\n{}", line(&self.url), line(&self.title));
        CallResult::quoting(Some(format!("{ours}The controlled tab:")), &said)
    }
}

/// Most characters of an address, and of a title.
const LINE: usize = 500;
/// What is said where the second half has failed: whoever opens it again may do twice what opening it does.
const OPENED: &str = "the page was opened; then: ";
/// How long an executor may take to say which tab that is.
const TAB: Duration = Duration::from_secs(5);

/// Which tool says it.
const CURRENT_TAB: &str = "browser_current_tab";

/// The controlled tab, if it can be had: it is only told beside what was asked for.
pub(super) async fn tab(turn: &mut Turn<'_>) -> Option<Tab> {
    current_tab(turn).await.ok()
}

/// The controlled tab.
///
/// # Errors
/// Why it cannot be had.
pub(super) async fn current_tab(turn: &mut Turn<'_>) -> Result<Tab, Stop> {
    #[derive(Deserialize)]
    struct Answer {
        tab: Tab,
    }
    let nothing = Arguments::new();
    let outcome = turn.ask_within(TAB, CURRENT_TAB, &nothing).await?;
    let answer = made_of(CURRENT_TAB, outcome, |tool, outcome| {
        read::<Answer>(tool, &outcome)
    });
    Ok(answer.await?.tab)
}

pub(super) async fn run(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let mut asked = given.clone();
    let snapshot = asked.remove("snapshot") == Some(serde_json::Value::Bool(true));
    let mut result = turn.result("browser_navigate", &asked).await?;
    if result.is_error {
        return Ok(result);
    }
    let shown = match snapshot {
        true => {
            let shown = look::snapshot(turn, &Arguments::new()).await;
            Some(shown.map_err(|stop| stop.after(OPENED))?)
        }
        false => tab(turn).await.map(|tab| tab.told("")),
    };
    if let Some(shown) = shown {
        result.content.extend(shown.content);
        result.untrusted = true;
    }
    Ok(result)
}
