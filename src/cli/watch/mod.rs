//! Changes reported by a running server, across its restarts.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};

use super::admin::escaped;
use super::output::screen;
use super::server::Server;
use super::sse::{Event, Events};
use super::{Failure, Result};

const PATH: &str = "/api/admin/watch";
/// How often what the server does not report is read again.
const POLL: Duration = Duration::from_secs(1);
/// No two connections in less.
const SHORTEST: Duration = Duration::from_millis(500);
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(5);

/// What may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// This object, `kind/name`.
    Object(String),
    /// Everything: what happened meanwhile is not known.
    Everything,
}

/// A watch. It never ends by itself: when the server is gone, it waits for it.
pub struct Watch<'a> {
    server: &'a Server,
    mode: Mode,
    path: String,
    /// The last change that was reported: `<instance>-<n>`.
    last_id: Option<String>,
    patience: Patience,
    /// When the server answered last.
    opened_at: Option<Instant>,
}

enum Mode {
    Off,
    On(Box<Events>),
    Polling,
}

impl<'a> Watch<'a> {
    /// Continues from a list that the server gave together with this id.
    pub fn since(server: &'a Server, watch_id: Option<String>) -> Self {
        Self {
            server,
            mode: Mode::Off,
            path: PATH.to_owned(),
            last_id: watch_id,
            patience: Patience::default(),
            opened_at: None,
        }
    }

    /// Polls what the server does not report.
    pub fn polling(server: &'a Server) -> Self {
        Self {
            mode: Mode::Polling,
            ..Self::since(server, None)
        }
    }

    /// Reports one object only.
    pub fn of_object(mut self, address: &str) -> Self {
        self.path = format!("{PATH}?object={}", escaped(address));
        self
    }

    /// Reports one kind of objects only.
    pub fn of_kind(mut self, kind: &str) -> Self {
        self.path = format!("{PATH}?kind={}", escaped(kind));
        self
    }

    /// The next change.
    ///
    /// # Errors
    /// When the server refuses; one that is gone is waited for.
    pub async fn next(&mut self) -> Result<Change> {
        loop {
            match &mut self.mode {
                Mode::Polling => {
                    sleep(POLL).await;
                    return Ok(Change::Everything);
                }
                Mode::Off => {
                    // One that answers and closes at once is not asked without a pause.
                    if let Some(opened_at) = self.opened_at {
                        sleep_until(opened_at + SHORTEST).await;
                    }
                    match self.connect().await {
                        Ok(mode) => {
                            self.mode = mode;
                            self.opened_at = Some(Instant::now());
                            self.patience.is_back();
                        }
                        Err(Failure::Unavailable(why)) => self.patience.wait(&why).await,
                        Err(failure) => return Err(failure),
                    }
                }
                Mode::On(events) => match events.next().await? {
                    None => self.mode = Mode::Off,
                    Some(event) => {
                        if let Some(change) = self.understood(event)? {
                            return Ok(change);
                        }
                    }
                },
            }
        }
    }

    async fn connect(&self) -> Result<Mode> {
        let request = self.server.request(Method::GET, &self.path);
        let mut request = request.header("accept", "text/event-stream");
        if let Some(id) = &self.last_id {
            request = request.header("last-event-id", id);
        }
        let answer = self.server.open(request).await?;
        match answer.status().as_u16() {
            200 => Ok(Mode::On(Box::new(Events::of(answer)))),
            // An older server: it is polled instead.
            404 => Ok(Mode::Polling),
            status @ 500.. => Err(Failure::Unavailable(format!(
                "the server answered {status}"
            ))),
            status => match self.server.read(answer).await {
                Ok(_) => Err(Failure::Failed(format!("the server answered {status}"))),
                Err(failure) => Err(failure),
            },
        }
    }

    fn understood(&mut self, event: Event) -> Result<Option<Change>> {
        let Some(data) = event.data else {
            self.remember(event.id);
            return Ok(None);
        };
        match event.name.as_str() {
            "open" => Ok(self.opened(event.id)),
            "resync" => {
                self.remember(event.id);
                Ok(Some(Change::Everything))
            }
            _ => {
                let data: Value = serde_json::from_str(&data)
                    .map_err(|_| Failure::Failed("the server sent a change without JSON".into()))?;
                self.remember(event.id);
                let object = data.get("object").and_then(Value::as_str);
                Ok(object.map(|object| Change::Object(object.to_owned())))
            }
        }
    }

    fn remember(&mut self, id: String) {
        if !id.is_empty() {
            self.last_id = Some(id);
        }
    }

    /// What is missing between the last id and this one comes next, unless it is of another history,
    /// or there was nothing to go on from.
    fn opened(&mut self, id: String) -> Option<Change> {
        let goes_on = self
            .last_id
            .as_deref()
            .is_some_and(|last| instance(last) == instance(&id));
        if goes_on {
            return None;
        }
        self.remember(id);
        Some(Change::Everything)
    }

    /// Does something again until a server answers. What was begun before it went is not given up.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn patiently<T>(&mut self, mut work: impl AsyncFnMut() -> Result<T>) -> Result<T> {
        loop {
            match work().await {
                Err(Failure::Unavailable(why)) => self.patience.wait(&why).await,
                other => {
                    self.patience.is_back();
                    return other;
                }
            }
        }
    }
}

fn instance(id: &str) -> &str {
    id.rsplit_once('-').map_or(id, |(instance, _)| instance)
}

/// Waits for a server that is gone, and says so once.
#[derive(Debug, Default)]
struct Patience {
    delay: Option<Duration>,
    noted: bool,
}

impl Patience {
    async fn wait(&mut self, why: &str) {
        let delay = self.delay.unwrap_or(FIRST_DELAY);
        // A restart that takes a moment is not worth a word.
        if delay > FIRST_DELAY * 4 && !self.noted {
            self.noted = true;
            screen::note(&format!("waiting for the server: {why}"));
        }
        sleep(delay).await;
        self.delay = Some((delay * 2).min(LONGEST_DELAY));
    }

    fn is_back(&mut self) {
        self.delay = None;
        if std::mem::take(&mut self.noted) {
            screen::note("the server answers again");
        }
    }
}

#[cfg(test)]
mod tests;
