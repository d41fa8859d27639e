//! Which page an executor would act on. A page can lead anywhere by itself, so what a call was allowed to open says nothing about
//! where the next one acts.

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;
use url::Url;

use super::{Admitted, WITHOUT_PAGE};
use crate::executors::{
    Answer, Ask, Change, Changes, ConnectionId, Failure, Job, Outcome, Service,
};
use crate::mcp::audit::Record;

/// Tools that leave the page in the tab, by scripts that read nothing of it.
const LEAVES: [&str; 2] = ["browser_go_back", "browser_go_forward"];
/// Which tool says what is in the tab.
const CURRENT_TAB: &str = "browser_current_tab";
/// Longest answer to it, in bytes.
const LONGEST_ANSWER: usize = 64 * 1024;
/// How long that may take.
const LONGEST: Duration = Duration::from_secs(5);
/// How often something is read whose page is changed meanwhile.
const LOOKS: usize = 2;

/// Why an executor has not done what it was to do.
#[derive(Debug)]
pub(in crate::mcp) enum NotAsked {
    /// The policy keeps it from the page in the tab.
    Denied(String),
    /// Others have changed the page, again and again.
    Changed,
    /// It has no answer.
    Ask(Ask),
}

/// While a page is changed, what was read before is not believed, nor is it afterwards, even if the call is given up meanwhile.
pub(super) struct Changing<'a> {
    pages: &'a Cache<ConnectionId, Url>,
    connection: ConnectionId,
    /// It goes on after this is dropped while the executor has not answered.
    change: Arc<Change>,
}

impl<'a> Changing<'a> {
    pub(super) fn begin(
        pages: &'a Cache<ConnectionId, Url>,
        connection: ConnectionId,
        changes: &Arc<Changes>,
    ) -> Self {
        let change = changes.begin();
        pages.invalidate(&connection);
        Self {
            pages,
            connection,
            change,
        }
    }

    /// Asks what changes the page.
    async fn ask(
        &self,
        job: &mut Job,
        tool: &str,
        params: &RawValue,
        limit: Duration,
    ) -> Result<Answer, Ask> {
        let change = Some(Arc::clone(&self.change));
        job.ask_for(change, tool, params, limit).await
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.pages.invalidate(&self.connection);
    }
}

impl Admitted<'_> {
    /// Has the executor do one of its own tools for it, unless the page in the tab is denied.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(in crate::mcp) async fn ask(
        &self,
        job: &mut Job,
        tool: &str,
        params: &RawValue,
        limit: Duration,
        record: &Record,
    ) -> Result<Answer, NotAsked> {
        let until = Instant::now() + limit;
        let left = || until.saturating_duration_since(Instant::now());
        let executor = job.executor();
        record.at(executor.as_ref());
        let changes = job.changes();
        let changing = executor
            .filter(|_| self.acts)
            .map(|(connection, _)| Changing::begin(&self.mcp.gate.pages, connection, &changes));
        let needs_page = !WITHOUT_PAGE.contains(&tool) && !LEAVES.contains(&self.tool.as_str());
        if self.service != Service::Browser || !needs_page {
            let answer = match &changing {
                Some(changing) => changing.ask(job, tool, params, limit).await,
                None => job.ask(tool, params, limit).await,
            };
            return answer.map_err(NotAsked::Ask);
        }
        if let Some(changing) = &changing {
            self.on_page(job, left(), record).await?;
            let answer = changing.ask(job, tool, params, left()).await;
            return answer.map_err(NotAsked::Ask);
        }
        for _ in 0..LOOKS {
            let since = changes.now();
            self.on_page(job, left(), record).await?;
            let answer = job.ask(tool, params, left()).await;
            let answer = answer.map_err(NotAsked::Ask)?;
            // Readers look beside whoever acts, which may have led them to another page: what they saw there is not to be told.
            if since.was_changing() {
                self.on_page(job, left(), record).await?;
            }
            if !changes.went_on(since) {
                return Ok(answer);
            }
        }
        Err(NotAsked::Changed)
    }

    /// Whether it may be done on the page in the tab.
    async fn on_page(
        &self,
        job: &mut Job,
        limit: Duration,
        record: &Record,
    ) -> Result<(), NotAsked> {
        let url = self.page(job, limit.min(LONGEST)).await?;
        record.on(&url);
        self.on(&url).map_err(NotAsked::Denied)
    }

    /// Whether it may be done on a page.
    ///
    /// # Errors
    /// Why not, for whoever has called.
    pub(in crate::mcp) fn on(&self, url: &Url) -> Result<(), String> {
        let denied = |denied| {
            let host = url.host_str().unwrap_or("no web page");
            format!(
                "{} was refused on the page in the current tab ({host}): {denied}. Nothing was done. browser_navigate, browser_go_back \
                 and the tools for tabs still work",
                self.tool
            )
        };
        self.rules.page(url, &self.own).map_err(denied)
    }

    /// The page in the tab. Whoever only reads may be told of a page that was there a second ago, and tells others who do.
    async fn page(&self, job: &mut Job, limit: Duration) -> Result<Url, NotAsked> {
        let pages = &self.mcp.gate.pages;
        let connection = job.executor().map(|(connection, _)| connection);
        let changes = job.changes();
        let since = changes.now();
        let stays = || !since.was_changing() && !changes.went_on(since);
        if let Some(url) = connection
            .filter(|_| !self.acts && stays())
            .and_then(|it| pages.get(&it))
        {
            return Ok(url);
        }
        let unknown = |why: &str| {
            NotAsked::Denied(format!(
                "the address of the current tab cannot be read ({why}), so it is not known whether its page may be used. Nothing was done. \
                 browser_tab_new and browser_tab_select open or choose another tab"
            ))
        };
        let nothing = serde_json::from_str("{}").map_err(|_| unknown("internal error"))?;
        let answer = match job.ask(CURRENT_TAB, nothing, limit).await {
            Ok(answer) => answer,
            Err(Ask::Failed(Failure::TimedOut)) => return Err(unknown("no answer in time")),
            Err(error @ (Ask::Failed(Failure::NoTime | Failure::Held) | Ask::TooLong(_))) => {
                return Err(NotAsked::Ask(error));
            }
            // Of the call itself nothing was sent.
            Err(Ask::Failed(_)) => return Err(NotAsked::Ask(Ask::Failed(Failure::Gone))),
        };
        let url = match &answer.outcome {
            Outcome::Result(raw) => address(raw).ok_or_else(|| unknown("the answer has none"))?,
            // Its words are those of a stranger, who has nothing to tell in a refusal.
            Outcome::Error(_) => return Err(unknown("the executor has answered with an error")),
        };
        if !self.acts && stays() {
            pages.insert(answer.connection, url.clone());
            // A change that was begun meanwhile has forgotten what was known before, but not this.
            if !stays() {
                pages.invalidate(&answer.connection);
            }
        }
        Ok(url)
    }
}

/// The address in an executor's answer: of the tab, or in its text.
pub(super) fn address(raw: &RawValue) -> Option<Url> {
    // What is longer is no answer to this, and would take long to read.
    if raw.get().len() > LONGEST_ANSWER {
        return None;
    }
    let url = |value: &Value| {
        let found = [&value["url"], &value["tab"]["url"]];
        let text = found.into_iter().find_map(Value::as_str)?;
        Url::parse(text).ok()
    };
    let answer: Value = serde_json::from_str(raw.get()).ok()?;
    url(&answer).or_else(|| {
        let text = answer["content"][0]["text"].as_str()?;
        url(&serde_json::from_str(text).ok()?)
    })
}
