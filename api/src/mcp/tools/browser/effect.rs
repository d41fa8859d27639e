//! The effect of an action, in its answer: where the tab is, what has become of the element, dialogs and new tabs.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::navigate::{self, Tab};
use super::page;
use crate::executors::Failure;
use crate::mcp::tools::bounded::Few;
use crate::mcp::tools::turn::{Arguments, Stop, Turn};
use crate::mcp::tools::{CallResult, text};

/// Time that a page has until its effect is read, and between two readings while it is left.
const SETTLE: Duration = Duration::from_millis(200);
/// Longest time for a page that is being left.
const LEAVING: Duration = Duration::from_secs(4);
/// Longest time for a tab that is being opened: a browser names it some time after the page has asked for it.
const OPENING: Duration = Duration::from_secs(2);
/// Longest time for one reading.
const READ: Duration = Duration::from_secs(3);
/// Most characters of one line.
const LINE: usize = 500;
/// Most tabs that are named.
const TABS: usize = 5;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Effect {
    /// The page was loaded anew, or another one.
    gone: bool,
    /// Another page is on its way.
    leaving: bool,
    url: String,
    title: String,
    /// The element's state.
    now: Option<String>,
    dialogs: Option<Few<Dialog>>,
    opened: Option<Few<String>>,
    /// Functions of the page that cannot be replaced while the call acts.
    uncovered: Option<Few<String>>,
    /// A page or a download was asked for, and no page has come.
    pending: bool,
    /// Another tab came to the front.
    behind: bool,
}

#[derive(Deserialize)]
struct Dialog {
    #[serde(rename = "type")]
    kind: String,
    message: String,
    answer: String,
}

/// The result of an action with its effect, if the page can say it.
pub(super) async fn add(turn: &mut Turn<'_>, mut result: CallResult) -> CallResult {
    let Some(token) = turn.watched.take() else {
        return result;
    };
    let until = Instant::now() + LEAVING;
    let effect = loop {
        sleep(SETTLE.min(turn.left())).await;
        match page::effect::<Effect>(turn, READ, &token).await {
            Ok(effect) if effect.leaving && Instant::now() < until => {}
            effect => break effect,
        }
    };
    match effect {
        Ok(effect) if effect.leaving => {
            result.add(CallResult::text("Another page is being loaded."));
        }
        Ok(effect) if effect.gone => result.add(navigate::arrived(turn, None).await),
        Ok(effect) => {
            result.add(render_effect(&effect));
            let opened = effect.opened.map_or_else(Vec::new, |few| few.0);
            if effect.behind || !opened.is_empty() {
                result.add(list_new_tabs(turn, opened).await);
            }
        }
        Err(Stop::Failed(Failure::TimedOut, _)) => result.add(CallResult::text(
            "The page has answered nothing since. It may show a dialog, which the user has to answer.",
        )),
        Err(stop) => {
            let why = stop.result(turn.mcp, turn.caller).failed_if(false);
            result.add(why.after("It was done; what came of it: "));
        }
    }
    result
}

fn render_effect(effect: &Effect) -> CallResult {
    let line = |said: &str| text::part(said, (0, LINE)).text;
    let mut lines = vec![format!("{} {}", line(&effect.url), line(&effect.title))];
    if let Some(now) = effect.now.as_ref().filter(|now| !now.is_empty()) {
        lines.push(format!("the element: {}", line(now)));
    }
    let mut dismissed = false;
    for dialog in effect.dialogs.iter().flat_map(|few| &few.0) {
        let Dialog {
            kind,
            message,
            answer,
        } = dialog;
        dismissed |= answer == "dismissed";
        let message = Value::from(line(message));
        lines.push(format!("{}: {message} {}", line(kind), line(answer)));
    }
    let opened = effect.opened.iter().flat_map(|few| &few.0);
    lines.extend(opened.map(|url| format!("opens a tab: {}", line(url))));
    let uncovered = effect.uncovered.iter().flat_map(|few| &few.0);
    lines.extend(uncovered.map(|name| {
        let name = line(name);
        format!("{name} is read-only on this page: what it shows is neither answered nor named")
    }));
    let mut ours = String::new();
    if effect.pending {
        ours.push_str("A page or a download was asked for, and no page has come yet. ");
    }
    if dismissed {
        ours.push_str(
            "A dialog was dismissed: to accept it, repeat the call with dialog \"accept\". ",
        );
    }
    ours.push_str("Now:");
    CallResult::quoting(Some(ours), &lines.join("\n"))
}

/// Lists the newest tabs, as far as the policy lets them be listed, when those that were `opened` are among them.
async fn list_new_tabs(turn: &mut Turn<'_>, opened: Vec<String>) -> CallResult {
    #[derive(Deserialize)]
    struct Answer {
        tabs: Few<Tab>,
    }
    const LIST: &str = "browser_tabs_list";
    let ours = "browser_tab_select controls another tab. The newest:".to_owned();
    let opened = Arc::new(opened);
    let until = Instant::now() + OPENING;
    while turn.admitted().lets_read(LIST) {
        let opened = Arc::clone(&opened);
        let made = move |Answer { tabs }: Answer| {
            let mut tabs = tabs.0;
            tabs.sort_by_key(|tab| std::cmp::Reverse(tab.id));
            let is_listed = |url: &String| {
                tabs.iter()
                    .any(|tab| tab.url == *url && !tab.title.is_empty())
            };
            (opened.iter().all(is_listed), render_tabs(&tabs))
        };
        match turn.read(LIST, &Arguments::new(), made).await {
            Ok((false, _)) if Instant::now() < until && turn.left() > SETTLE => sleep(SETTLE).await,
            Ok((_, said)) => return CallResult::quoting(Some(ours), &said),
            Err(_) => break,
        }
    }
    CallResult::text("browser_tabs_list names the tabs.")
}

fn render_tabs(tabs: &[Tab]) -> String {
    let lines = tabs.iter().take(TABS).map(|tab| {
        let id = tab.id.unwrap_or_default();
        let text = format!("tab {id}: {} {}", tab.url, tab.title);
        text::part(&text, (0, LINE)).text
    });
    lines.collect::<Vec<_>>().join("\n")
}
