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

impl Tab {
    /// Address and title, which the page has chosen.
    pub(super) fn told(&self) -> CallResult {
        let said = format!("{}\n{}", self.url, self.title);
        CallResult::quoting(Some("The controlled tab:".to_owned()), &said)
    }
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
    let mut result = CallResult::of("browser_navigate", outcome);
    if result.is_error {
        return Ok(result);
    }
    let shown = match snapshot {
        true => Some(look::snapshot(turn, &Arguments::new()).await?),
        false => tab(turn).await?.map(|tab| tab.told()),
    };
    if let Some(shown) = shown {
        result.content.extend(shown.content);
        result.untrusted = true;
    }
    Ok(result)
}
