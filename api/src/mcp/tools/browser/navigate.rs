//! `browser_navigate`: opens an address, and says what is there.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;
use url::Url;

use super::look;
use super::page::{self, Failed, Script};
use crate::mcp::tools::result::read;
use crate::mcp::tools::turn::{Arguments, Stop, Turn};
use crate::mcp::tools::{CallResult, text};

/// The controlled tab.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Tab {
    #[serde(default)]
    pub(super) id: Option<i64>,
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
    let answer = turn.parse_answer(CURRENT_TAB, outcome, |tool, outcome| {
        read::<Answer>(tool, &outcome)
    });
    Ok(answer.await?.tab)
}

/// Longest time for this report.
const ARRIVAL: Duration = Duration::from_secs(5);
/// Tolerance between the clocks of page and service.
const CLOCKS: Duration = Duration::from_millis(50);

/// Report of a page on how it was opened.
#[derive(Deserialize)]
struct Arrival {
    url: String,
    title: String,
    state: String,
    /// Milliseconds since it was asked for.
    age: f64,
    /// 0: not known.
    status: u16,
    /// The browser shows this in its place.
    error: Option<String>,
}

impl Arrival {
    /// Checks that the page is older than the call, which has asked for another address.
    fn is_older(&self, begun: Instant, asked: &str) -> bool {
        let page = |url: &str| Url::parse(url).map(|url| (url.origin(), url.path().to_owned()));
        // A place in the same document makes no new page.
        let same = page(asked).is_ok_and(|asked| page(&self.url) == Ok(asked));
        let elapsed = (begun.elapsed() + CLOCKS).as_secs_f64() * 1000.0;
        !same && self.age > elapsed
    }

    fn render_load(&self, call: Option<(Instant, &str)>) -> CallResult {
        let line = |said: &str| text::part(said, (0, LINE)).text;
        if let Some(error) = &self.error {
            let ours = "the address was not opened: its name is unknown, or nothing answers there. The browser says:";
            return CallResult::quoting(Some(ours.to_owned()), &line(error)).failed_if(true);
        }
        let older = call.is_some_and(|(begun, asked)| self.is_older(begun, asked));
        let status = match self.status {
            0 => "HTTP status unknown".to_owned(),
            status => format!("HTTP {status}"),
        };
        let loaded = match self.state.as_str() {
            "complete" => "loaded",
            _ => "still loading",
        };
        let ours = match older {
            true => {
                "The tab shows the page from before: the address is a download, was answered without a page, or it has not answered yet.".to_owned()
            }
            false => format!("The controlled tab ({status}, {loaded}):"),
        };
        let said = format!("{}\n{}", line(&self.url), line(&self.title));
        CallResult::quoting(Some(ours), &said)
    }
}

/// The page in the tab, and how it has come there; `call` is the one that asked for it, and for which address.
pub(super) async fn arrived(turn: &mut Turn<'_>, call: Option<(Instant, &str)>) -> CallResult {
    let whole = turn.until;
    turn.until = whole.min(Instant::now() + ARRIVAL);
    let nothing = serde_json::json!({});
    let arrival = page::run(turn, Script::Arrival, nothing, |it: Arrival| it).await;
    turn.until = whole;
    let why = match arrival {
        Ok(arrival) => return arrival.render_load(call),
        Err(Failed::Blocked) => {
            "Its Content-Security-Policy lets no script run, so its HTTP status is not known. "
        }
        Err(Failed::Stop(Stop::Denied(why))) => &format!("{why}. "),
        Err(Failed::Stop(_)) => {
            "The page answers no script: it may not be loaded, and be the browser's own error page. "
        }
    };
    match tab(turn).await {
        Some(tab) => tab.told(why),
        None => CallResult::text(why.trim_end()),
    }
}

pub(super) async fn run(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let mut asked = given.clone();
    let snapshot = asked.remove("snapshot") == Some(serde_json::Value::Bool(true));
    let begun = Instant::now();
    let mut result = turn.result("browser_navigate", &asked).await?;
    if result.is_error {
        return Ok(result);
    }
    let url = asked.get("url").and_then(serde_json::Value::as_str);
    let arrived = arrived(turn, Some((begun, url.unwrap_or_default()))).await;
    if arrived.is_error {
        return Ok(arrived);
    }
    result.add(arrived);
    if snapshot {
        let shown = look::snapshot(turn, &Arguments::new()).await;
        result.add(shown.map_err(|stop| stop.after(OPENED))?);
    }
    Ok(result)
}
