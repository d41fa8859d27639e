//! `browser_wait_for`: looks again and again until a condition holds.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::page::{self, Failed, Script};
use super::{look, navigate};
use crate::executors::Failure;
use crate::mcp::tools::CallResult;
use crate::mcp::tools::result::read;
use crate::mcp::tools::turn::{Arguments, Stop, Turn, arguments, typed};

/// How long is waited if nothing else is asked for.
const USUAL: Duration = Duration::from_secs(10);
/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(250);
/// How much longer than everything a look may take.
const LOOK: Duration = Duration::from_secs(2);
/// What is left for the answer.
const ANSWER: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    text_gone: Option<String>,
    #[serde(default)]
    selector: Option<String>,
    #[serde(default)]
    state: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    time_ms: Option<u64>,
    #[serde(default)]
    timeout_ms: Option<u64>,
}

/// An executor's answer to `browser_wait`.
#[derive(Deserialize)]
struct Found {
    found: bool,
}

/// `browser_wait`, with a timeout.
pub(in crate::mcp::tools) async fn for_element(
    turn: &mut Turn<'_>,
    asked: &Arguments,
) -> Result<CallResult, Stop> {
    let said = format!(
        "no element matches {} after {} ms",
        asked["selector"].as_str().unwrap_or_default(),
        asked["timeout"]
    );
    let outcome = turn.ask("browser_wait", asked).await?;
    turn.parse_answer("browser_wait", outcome, move |tool, outcome| {
        Ok(match read(tool, &outcome) {
            Ok(Found { found: false }) => CallResult::error(said).with(&json!({ "found": false })),
            _ => CallResult::of(tool, outcome),
        })
    })
    .await
}

impl Given {
    fn asks_the_page(&self) -> bool {
        self.text.is_some() || self.text_gone.is_some() || self.selector.is_some()
    }

    async fn holds(&self, turn: &mut Turn<'_>, whole: &Arguments) -> Result<bool, Stop> {
        if let Some(wanted) = &self.url {
            let tab = match navigate::current_tab(turn).await {
                Ok(tab) => Some(tab),
                Err(stop) if stop.is_lost() => return Err(stop),
                // Between two pages it may have none.
                Err(_) => None,
            };
            if !tab.is_some_and(|tab| tab.url.contains(wanted.as_str())) {
                return Ok(false);
            }
        }
        if !self.asks_the_page() {
            return Ok(true);
        }
        let asked = Value::Object(whole.clone());
        match page::run(turn, Script::Condition, asked, |holds| holds).await {
            Ok(holds) => Ok(holds),
            Err(Failed::Blocked) => self.holds_without_scripts(turn).await,
            Err(Failed::Stop(stop)) => Err(stop),
        }
    }

    /// By the executor's own tools.
    async fn holds_without_scripts(&self, turn: &mut Turn<'_>) -> Result<bool, Stop> {
        if let Some(selector) = &self.selector {
            if self
                .state
                .as_deref()
                .is_some_and(|state| state != "attached")
            {
                return Err(Failed::Blocked.stop());
            }
            // 0 means the usual time to executors.
            let asked = arguments(json!({"selector": selector, "timeout": 1}));
            let found = |it: Found| it.found;
            if !turn.read("browser_wait", &asked, found).await? {
                return Ok(false);
            }
        }
        if self.text.is_none() && self.text_gone.is_none() {
            return Ok(true);
        }
        let (text, gone) = (self.text.clone(), self.text_gone.clone());
        let holds = move |said: &str| {
            let there = |text: Option<String>| text.map(|text| said.contains(&text));
            there(text) != Some(false) && there(gone) != Some(true)
        };
        look::visible_text(turn, &Arguments::new(), holds).await
    }
}

pub(super) async fn run(turn: &mut Turn<'_>, whole: &Arguments) -> Result<CallResult, Stop> {
    let given: Given = typed(whole)?;
    if !given.asks_the_page() && given.url.is_none() && given.time_ms.is_none() {
        return Err(Stop::said(
            "browser_wait_for: give text, textGone, selector, url or timeMs",
        ));
    }
    let begin = Instant::now();
    let left = turn.left().saturating_sub(ANSWER);
    if let Some(time) = given.time_ms {
        sleep(Duration::from_millis(time).min(left)).await;
    }
    let limit = given.timeout_ms.map_or(USUAL, Duration::from_millis);
    let until = Instant::now() + limit.min(turn.left().saturating_sub(ANSWER));
    turn.until = turn.until.min(until + LOOK);
    // Between two pages a tab answers nothing: what it says then is told only if it goes on.
    let mut trouble = None;
    let met = loop {
        match given.holds(turn, whole).await {
            Ok(true) => break true,
            // A page that shows a dialog answers nothing.
            Ok(false) | Err(Stop::Failed(Failure::TimedOut, _) | Stop::NoTime { .. }) => {
                trouble = None;
            }
            Err(Stop::Quoted(said)) if !said.starts_with("selector:") => trouble = Some(said),
            Err(stop) => return Err(stop),
        }
        let now = Instant::now();
        if now >= until {
            break false;
        }
        sleep(PAUSE.min(until - now)).await;
    };
    let elapsed = begin.elapsed().as_millis();
    if let (false, Some(said)) = (met, trouble) {
        return Err(Stop::Quoted(said));
    }
    let facts = json!({"met": met, "elapsedMs": elapsed});
    let said = match met {
        true => format!("it holds, after {elapsed} ms"),
        false => format!("it does not hold after {elapsed} ms"),
    };
    Ok(CallResult::text(said).with(&facts).failed_if(!met))
}
