//! What a tool does while it has its turn at an executor: it asks once, or several times.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

use super::picture::{Picture, Wanted};
use super::{CallResult, Caller, picture, text};
use crate::executors::{Ask, Failure, Job, Lane, Outcome, Refusal, Service, Share};
use crate::long_work::work_on;
use crate::mcp::Mcp;
use crate::mcp::audit::Record;
use crate::mcp::policy::{Admitted, NotAsked};

/// Most bytes of what stands beside a picture in an answer.
const BESIDE: usize = 64 * 1024;

/// Arguments of a call.
pub(super) type Arguments = Map<String, Value>;

/// A tool that has its turn.
pub(super) struct Turn<'a> {
    pub(super) mcp: &'a Mcp,
    pub(super) caller: &'a Caller,
    job: Job,
    admitted: Admitted<'a>,
    record: Arc<Record>,
    until: Instant,
    /// A part of it was done by the executor already, which changes something.
    acted: bool,
    /// How many pictures have to fit into the answer.
    pub(super) pictures: usize,
    /// What all answers so far take of the memory for them.
    pub(super) share: Share,
}

/// Why a tool has come to its end early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The policy does not let it be done.
    Denied(String),
    /// It had no turn.
    Refused(Refusal),
    /// There was no answer, in so long a time.
    Failed(Failure, Duration),
    /// What was asked is longer than so many bytes, which is all that the executor takes.
    TooLong(usize),
    /// The executor cannot do it, or the arguments are wrong.
    Said(String),
    /// The page says what is wrong.
    Quoted(String),
}

impl Stop {
    pub(super) fn said(text: impl Into<String>) -> Self {
        Self::Said(text.into())
    }

    /// The connection was lost with a question on its way.
    pub(super) fn is_lost(&self) -> bool {
        matches!(
            self,
            Self::Failed(Failure::Gone | Failure::Lost | Failure::Replaced, _)
        )
    }

    /// The same as a result.
    pub(super) fn result(self, service: Service) -> CallResult {
        let of = name(service);
        CallResult::error(match self {
            Self::Quoted(text) => {
                let part = text::part(&text, (0, text::USUAL));
                return CallResult {
                    is_error: true,
                    ..CallResult::quoting(None, &part.text)
                };
            }
            Self::Refused(refusal) => refused(refusal, service),
            Self::Failed(failure, limit) => failed(failure, of, limit),
            Self::TooLong(most) => {
                format!("the call is longer than the {most} bytes that {of} takes")
            }
            Self::Said(text) | Self::Denied(text) => text,
        })
    }

    /// Leaves in the audit trail how it has come to its end.
    pub(super) fn note(&self, record: &Record) {
        match self {
            Self::Denied(_) | Self::Refused(Refusal::NotAllowed) => record.refused(),
            Self::Failed(failure, _) => record.failed(*failure),
            Self::Refused(_) | Self::TooLong(_) | Self::Said(_) | Self::Quoted(_) => {}
        }
    }
}

impl<'a> Turn<'a> {
    /// Waits for a turn; everything has to be done `until` then.
    ///
    /// # Errors
    /// When there is none.
    pub(super) async fn wait(
        mcp: &'a Mcp,
        caller: &'a Caller,
        lane: Lane,
        (admitted, record): (Admitted<'a>, Arc<Record>),
        until: Instant,
    ) -> Result<Self, Stop> {
        let entered = mcp
            .hub
            .enter(caller.key(), caller.token, lane, admitted.devices());
        let entered = timeout_at(until, entered).await;
        let job = entered.unwrap_or(Err(Refusal::Busy));
        Ok(Self {
            mcp,
            caller,
            job: job.map_err(Stop::Refused)?,
            admitted,
            record,
            until,
            acted: false,
            pictures: 1,
            share: Share::default(),
        })
    }

    /// What follows is done for another call, which was admitted by itself.
    pub(super) fn go_on_for(&mut self, admitted: Admitted<'a>, record: Arc<Record>) {
        self.acted = false;
        self.admitted = admitted;
        self.record = record;
    }

    /// For what it has its turn.
    pub(super) fn admitted(&self) -> &Admitted<'a> {
        &self.admitted
    }

    /// Makes a picture fit.
    ///
    /// # Errors
    /// When it cannot be read, and when no time is left.
    pub(super) async fn fit(&self, data: String, wanted: Wanted) -> Result<Picture, Stop> {
        let fitted = timeout_at(self.until, picture::fit(data, wanted)).await;
        fitted.unwrap_or_else(|_| {
            Err(Stop::said(
                "there was no time left to make the picture fit; try again",
            ))
        })
    }

    /// How much time is left.
    pub(super) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Most characters of base64 that a picture may have: it has to fit into the answer with what stands beside it.
    pub(super) fn most_of_a_picture(&self) -> usize {
        let usual = picture::Wanted::default().most;
        let answer = self.caller.bounds.bytes.saturating_sub(BESIDE);
        usual.min(answer / self.pictures.max(1) / 4 * 4)
    }

    /// Has the executor do one of its own tools, as long as the catalogue gives it.
    ///
    /// # Errors
    /// When there is no answer.
    pub(super) async fn ask(&mut self, tool: &str, arguments: &Arguments) -> Result<Outcome, Stop> {
        self.ask_within(Duration::MAX, tool, arguments).await
    }

    async fn ask_within(
        &mut self,
        longest: Duration,
        tool: &str,
        arguments: &Arguments,
    ) -> Result<Outcome, Stop> {
        let found = self.mcp.catalogue.find(self.caller.service, tool);
        let limit = found.map_or(self.left(), |tool| tool.limit(arguments));
        let limit = limit.min(self.left()).min(longest);
        let params = encoded(arguments)?;
        let (job, record) = (&mut self.job, &self.record);
        let asked = self.admitted.ask(job, tool, &params, limit, record);
        match asked.await {
            Ok(answer) => {
                self.share.join(answer.share);
                self.acted |= self.admitted.acts();
                Ok(answer.outcome)
            }
            // Whoever has called is not to believe that nothing was done.
            Err(NotAsked::Denied(why)) if self.acted => Err(Stop::Denied(
                why.replace("Nothing was done", "Only the first part of it was done"),
            )),
            Err(NotAsked::Ask(Ask::Failed(Failure::Gone))) if self.acted => {
                Err(Stop::Failed(Failure::Lost, limit))
            }
            Err(NotAsked::Denied(why)) => Err(Stop::Denied(why)),
            Err(NotAsked::Ask(Ask::Failed(failure))) => Err(Stop::Failed(failure, limit)),
            Err(NotAsked::Ask(Ask::TooLong(most))) => Err(Stop::TooLong(most)),
        }
    }

    /// The same, and reads what is answered.
    ///
    /// # Errors
    /// When there is no answer, an error, or one that cannot be read.
    pub(super) async fn read<T: DeserializeOwned + Send + 'static>(
        &mut self,
        tool: &str,
        arguments: &Arguments,
    ) -> Result<T, Stop> {
        self.read_within(Duration::MAX, tool, arguments).await
    }

    /// The same, within a time.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(super) async fn read_within<T: DeserializeOwned + Send + 'static>(
        &mut self,
        longest: Duration,
        tool: &str,
        arguments: &Arguments,
    ) -> Result<T, Stop> {
        match self.ask_within(longest, tool, arguments).await? {
            Outcome::Error(message) => Err(Stop::Said(message)),
            Outcome::Result(raw) => {
                let read = work_on(raw.get().len(), move || {
                    serde_json::from_str(raw.get()).ok()
                });
                let read = read.await.flatten();
                read.ok_or_else(|| Stop::said(format!("the answer to {tool} cannot be read")))
            }
        }
    }

    /// Has the executor do one of its own tools, whose result it is.
    ///
    /// # Errors
    /// When there is no answer.
    pub(super) async fn result(
        &mut self,
        tool: &str,
        arguments: &Arguments,
    ) -> Result<CallResult, Stop> {
        let outcome = self.ask(tool, arguments).await?;
        made_of(tool, outcome, CallResult::of).await
    }
}

/// What is made of a tool's answer.
///
/// # Errors
/// When it cannot be read.
pub(super) async fn made_of<T: Send + 'static>(
    tool: &str,
    outcome: Outcome,
    make: impl FnOnce(&str, Outcome) -> T + Send + 'static,
) -> Result<T, Stop> {
    let (owned, bytes) = (tool.to_owned(), outcome.bytes());
    let made = work_on(bytes, move || make(&owned, outcome)).await;
    made.ok_or_else(|| Stop::said(format!("the answer to {tool} cannot be read")))
}

/// The arguments that are in `fields`.
pub(super) fn only(given: &Arguments, fields: &[&str]) -> Arguments {
    let mut rest = given.clone();
    rest.retain(|name, _| fields.contains(&name.as_str()));
    rest
}

fn encoded(arguments: &Arguments) -> Result<Box<RawValue>, Stop> {
    to_raw_value(arguments).map_err(|_| Stop::said("the arguments cannot be sent"))
}

/// Arguments of a call of ours.
pub(super) fn arguments(value: impl Serialize) -> Arguments {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        _ => Arguments::new(),
    }
}

/// Arguments as a type; the catalogue's schema has let them through.
///
/// # Errors
/// When they are none of it, all the same.
pub(super) fn typed<T: DeserializeOwned>(arguments: &Arguments) -> Result<T, Stop> {
    let typed = serde_json::from_value(Value::Object(arguments.clone()));
    typed.map_err(|error| Stop::said(error.to_string()))
}

fn name(service: Service) -> &'static str {
    match service {
        Service::Browser => "the browser",
        Service::Computer => "the desktop",
    }
}

fn refused(refusal: Refusal, service: Service) -> String {
    let of = name(service);
    match (refusal, service) {
        (Refusal::NotConnected, Service::Browser) => {
            "no browser is connected. Ask the user to open the browser extension, sign in and connect, then try again".to_owned()
        }
        (Refusal::NotConnected, Service::Computer) => {
            "no desktop is connected. Ask the user to start the desktop client and connect, then try again".to_owned()
        }
        (Refusal::NotAllowed, _) => format!("an administrator does not allow {of} that is connected; nothing was done"),
        (Refusal::Full, _) => format!("too many calls wait for {of}; try again when some are done"),
        (Refusal::Busy, _) => format!("{of} was busy with other calls; nothing was done, try again"),
        (Refusal::Closing, _) => "the service restarts; nothing was done, try again in a minute".to_owned(),
        (Refusal::Revoked, _) => "the token is no longer valid".to_owned(),
    }
}

fn failed(failure: Failure, of: &str, limit: Duration) -> String {
    match failure {
        Failure::Gone => {
            format!("{of} was disconnected before the call was sent; nothing was done")
        }
        Failure::NoTime => format!("no time was left to ask {of}; the call was not sent"),
        Failure::Held => format!(
            "{of} is still busy with what was asked of it before, so the call was not sent: look before you go on"
        ),
        Failure::TimedOut => format!(
            "{of} has not answered within {} seconds. It may still do what was asked: look before you repeat it",
            limit.as_secs()
        ),
        Failure::Lost => format!(
            "{of} was disconnected during the call. The outcome is unknown: look before you repeat it"
        ),
        Failure::Replaced => format!(
            "{of} was replaced by a newer connection during the call. The outcome is unknown: look before you repeat it"
        ),
    }
}
