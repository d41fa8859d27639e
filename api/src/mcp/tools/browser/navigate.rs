//! `browser_navigate`: opens an address, and says what is there.

use std::time::Duration;

use serde::Deserialize;

use super::look;
use crate::mcp::tools::CallResult;
use crate::mcp::tools::turn::{Arguments, Stop, Turn};

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
    pub(super) fn told(&self) -> CallResult {
        let said = format!("{}\n{}", self.url, self.title);
        CallResult::quoting(Some("The controlled tab:".to_owned()), &said)
    }
}

/// How long an executor may take to say which tab that is.
const TAB: Duration = Duration::from_secs(5);

/// The controlled tab, if it can be had: it is only told beside what was asked for.
pub(super) async fn tab(turn: &mut Turn<'_>) -> Option<Tab> {
    #[derive(Deserialize)]
    struct Answer {
        tab: Tab,
    }
    let nothing = Arguments::new();
    let asked = turn.read_within::<Answer>(TAB, "browser_current_tab", &nothing);
    Some(asked.await.ok()?.tab)
}

pub(super) async fn run(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let mut asked = given.clone();
    let snapshot = asked.remove("snapshot") == Some(serde_json::Value::Bool(true));
    let mut result = turn.result("browser_navigate", &asked).await?;
    if result.is_error {
        return Ok(result);
    }
    let shown = match snapshot {
        true => Some(look::snapshot(turn, &Arguments::new()).await?),
        false => tab(turn).await.map(|tab| tab.told()),
    };
    if let Some(shown) = shown {
        result.content.extend(shown.content);
        result.untrusted = true;
    }
    Ok(result)
}
