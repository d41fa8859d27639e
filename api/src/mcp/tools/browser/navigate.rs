//! `browser_navigate`: opens an address, and says what is there.

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
}

/// The controlled tab, if it can be had.
pub(super) async fn tab(turn: &mut Turn<'_>) -> Result<Option<Tab>, Stop> {
    #[derive(Deserialize)]
    struct Answer {
        tab: Tab,
    }
    match turn
        .read::<Answer>("browser_current_tab", &Arguments::new())
        .await
    {
        Ok(answer) => Ok(Some(answer.tab)),
        // It is only told beside what was asked for.
        Err(Stop::Said(_)) => Ok(None),
        Err(stop) => Err(stop),
    }
}

pub(super) async fn run(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let mut asked = given.clone();
    let snapshot = asked.remove("snapshot") == Some(serde_json::Value::Bool(true));
    let outcome = turn.ask("browser_navigate", &asked).await?;
    let result = CallResult::of("browser_navigate", outcome);
    if result.is_error {
        return Ok(result);
    }
    if snapshot {
        return look::snapshot(turn, &Arguments::new()).await;
    }
    let Some(tab) = tab(turn).await? else {
        return Ok(result);
    };
    let said = format!("{}\n{}", tab.url, tab.title);
    let facts = result.structured_content;
    Ok(CallResult {
        structured_content: facts,
        ..CallResult::quoting(Some("The tab shows:".to_owned()), &said)
    })
}
