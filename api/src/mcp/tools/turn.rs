//! What a tool does while it has its turn at an executor: it asks once, or several times.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep, timeout_at};

use super::picture::{Picture, Wanted};
use super::result::{picture_or_result, read};
use super::{CallResult, Caller, browser, picture, status, text};
use crate::executors::{Ask, Close, Failure, Job, Lane, Outcome, Refusal, Service, Share};
use crate::long_work::work_on;
use crate::mcp::Mcp;
use crate::mcp::audit::Record;
use crate::mcp::policy::{Admitted, NotAsked};

/// Most bytes of what stands beside a picture in an answer.
const BESIDE: usize = 64 * 1024;

/// Longest time until an executor connects again.
const RECONNECT: Duration = Duration::from_secs(10);
/// Time between two looks for it.
const RETRY: Duration = Duration::from_millis(250);
/// The message when it has not.
const NO_HOLD: &str = "the browser has no hold of the tab that it controls now, and did not connect again; nothing was done. Ask the \
                       user to connect in the browser extension, then try again";

/// Arguments of a call.
pub(super) type Arguments = Map<String, Value>;

/// A tool that has its turn.
pub(super) struct Turn<'a> {
    pub(super) mcp: &'a Mcp,
    pub(super) caller: &'a Caller,
    job: Job,
    lane: Lane,
    admitted: Admitted<'a>,
    record: Arc<Record>,
    /// When everything has to be done.
    pub(super) until: Instant,
    /// A part of it was done by the executor already, which changes something.
    acted: bool,
    /// The action whose effect is still to be read in the page.
    pub(super) watched: Option<String>,
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
    /// The executor or the page says what is wrong.
    Quoted(String),
    /// Its time is up, after a part of it was done, or before.
    NoTime { acted: bool },
    /// A part of it was done, which is said; then came what is in it.
    After(&'static str, Box<Stop>),
}

impl Stop {
    pub(super) fn said(text: impl Into<String>) -> Self {
        Self::Said(text.into())
    }

    /// The words of an executor or a page, as many of them as a result has.
    pub(super) fn quoted(text: &str) -> Self {
        Self::Quoted(text::part(text, (0, text::USUAL)).text)
    }

    /// The same, when something was done before.
    pub(super) fn after(self, done: &'static str) -> Self {
        Self::After(done, Box::new(self))
    }

    /// The connection was lost with a question on its way.
    pub(super) fn is_lost(&self) -> bool {
        matches!(
            self,
            Self::Failed(Failure::Gone | Failure::Lost | Failure::Replaced, _)
        )
    }

    /// The same as a result.
    pub(super) fn result(self, mcp: &Mcp, caller: &Caller) -> CallResult {
        let service = caller.service;
        let of = name(service);
        CallResult::error(match self {
            Self::Quoted(text) => {
                return CallResult::quoting(None, &text).failed_if(true);
            }
            Self::After(done, stop) => return stop.result(mcp, caller).after(done),
            Self::Refused(refusal @ (Refusal::NotConnected | Refusal::NotAllowed)) => {
                return status::why_not(&mcp.hub, &caller.key(), refused(refusal, service));
            }
            Self::Refused(refusal) => refused(refusal, service),
            Self::Failed(failure, limit) => failed(failure, service, limit),
            Self::TooLong(most) => {
                format!("the call is longer than the {most} bytes that {of} takes")
            }
            Self::NoTime { acted: false } => "no time is left; nothing was done".to_owned(),
            Self::NoTime { acted: true } => {
                "no time is left; only the first part of it was done".to_owned()
            }
            Self::Said(text) | Self::Denied(text) => text,
        })
    }

    /// Leaves in the audit trail how it has come to its end.
    pub(super) fn note(&self, record: &Record) {
        match self {
            Self::Denied(_) | Self::Refused(Refusal::NotAllowed) => record.refused(),
            Self::Failed(failure, _) => record.failed(*failure),
            Self::After(_, stop) => stop.note(record),
            Self::Refused(_)
            | Self::TooLong(_)
            | Self::Said(_)
            | Self::Quoted(_)
            | Self::NoTime { .. } => {}
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
            lane,
            admitted,
            record,
            until,
            acted: false,
            watched: None,
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

    /// It acts at this place of the screen, which its arguments do not say.
    pub(super) fn acts_at(&self, place: [i64; 2]) {
        self.record.at_place(place);
    }

    /// Makes a picture fit.
    ///
    /// # Errors
    /// When it cannot be read, and when no time is left.
    pub(super) async fn fit(&self, data: String, wanted: Wanted) -> Result<Picture, Stop> {
        let fitted = picture::fit(&self.caller.account.uid, data, wanted);
        let fitted = timeout_at(self.until, fitted).await;
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

    /// That nothing more can be asked.
    pub(super) fn no_time(&self) -> Stop {
        Stop::NoTime { acted: self.acted }
    }

    /// Has the executor do one of its own tools, as long as the catalogue gives it.
    ///
    /// # Errors
    /// When there is no answer.
    pub(super) async fn ask(&mut self, tool: &str, arguments: &Arguments) -> Result<Outcome, Stop> {
        let found = self.mcp.catalogue.find(self.caller.service, tool);
        let limit = found.map_or(Duration::MAX, |tool| tool.limit(arguments));
        self.ask_within(limit, tool, arguments).await
    }

    /// Tells a browser that has not introduced itself from all other executors.
    pub(super) fn is_plain_browser(&self) -> bool {
        let executor = self.job.executor();
        self.caller.service == Service::Browser
            && executor.is_some_and(|(_, instance)| instance.is_none())
    }

    /// The same, within a time that has nothing to do with what the catalogue gives.
    ///
    /// # Errors
    /// When there is no answer.
    pub(super) async fn ask_within(
        &mut self,
        limit: Duration,
        tool: &str,
        arguments: &Arguments,
    ) -> Result<Outcome, Stop> {
        let plain = self.is_plain_browser();
        let mut outcome = self.ask_once(limit, tool, arguments).await?;
        if plain && browser::plain::has_lost_tab(&outcome) {
            // Without a hold of the tab it has done nothing.
            self.reconnect().await?;
            outcome = self.ask_once(limit, tool, arguments).await?;
        }
        match plain {
            true => browser::plain::read_answer(tool, arguments, outcome),
            false => Ok(outcome),
        }
    }

    /// Has the executor connect again, which takes hold of the tab that it controls now, and waits for it.
    ///
    /// # Errors
    /// The executor does not connect in time.
    async fn reconnect(&mut self) -> Result<(), Stop> {
        if let Some((connection, _)) = self.job.executor() {
            self.mcp.hub.dismiss(connection, Close::Reattach);
        }
        let until = self.until.min(Instant::now() + RECONNECT);
        loop {
            let (key, token) = (self.caller.key(), self.caller.token);
            let entered = self
                .mcp
                .hub
                .enter(key, token, self.lane, self.admitted.devices());
            match timeout_at(until, entered).await {
                Ok(Ok(job)) => {
                    self.job = job;
                    return Ok(());
                }
                Ok(Err(Refusal::NotConnected)) => sleep(RETRY).await,
                Ok(Err(refusal)) => return Err(Stop::Refused(refusal)),
                Err(_) => return Err(Stop::said(NO_HOLD)),
            }
            if Instant::now() >= until {
                return Err(Stop::said(NO_HOLD));
            }
        }
    }

    async fn ask_once(
        &mut self,
        limit: Duration,
        tool: &str,
        arguments: &Arguments,
    ) -> Result<Outcome, Stop> {
        let found = self.mcp.catalogue.find(self.caller.service, tool);
        let acts = self.admitted.acts() && found.is_none_or(|tool| tool.lane == Lane::Act);
        let limit = limit.min(self.left());
        // What is sent now would be done, and nobody would hear of it.
        if limit.is_zero() {
            return Err(self.no_time());
        }
        let params = encoded(arguments)?;
        let (job, record) = (&mut self.job, &self.record);
        let asked = self.admitted.ask(job, tool, &params, limit, record);
        match asked.await {
            Ok(answer) => {
                self.share.join(answer.share);
                self.acted |= acts;
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
            Err(NotAsked::Changed) => Err(Stop::said(
                "other calls changed the page while it was read; try again when they are done",
            )),
            Err(NotAsked::Ask(Ask::Failed(Failure::NoTime))) => Err(self.no_time()),
            Err(NotAsked::Ask(Ask::Failed(failure))) => Err(Stop::Failed(failure, limit)),
            Err(NotAsked::Ask(Ask::TooLong(most))) => Err(Stop::TooLong(most)),
        }
    }

    /// The same as [`Self::ask`], and makes something of what is answered, which is read for that.
    ///
    /// # Errors
    /// When there is no answer, an error, or one that cannot be read.
    pub(super) async fn read<T: DeserializeOwned, R: Send + 'static>(
        &mut self,
        tool: &str,
        arguments: &Arguments,
        make: impl FnOnce(T) -> R + Send + 'static,
    ) -> Result<R, Stop> {
        let outcome = self.ask(tool, arguments).await?;
        self.parse_answer(tool, outcome, |tool, outcome| {
            Ok(make(read(tool, &outcome)?))
        })
        .await
    }

    /// Has the executor take a picture, which comes in base64; or the result, when it has none.
    ///
    /// # Errors
    /// When there is no answer.
    pub(super) async fn picture(&mut self, tool: &str) -> Result<Result<String, CallResult>, Stop> {
        let outcome = self.ask(tool, &Arguments::new()).await?;
        self.parse_answer(tool, outcome, |tool, outcome| {
            Ok(picture_or_result(tool, outcome))
        })
        .await
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
        let found = self.mcp.catalogue.find(self.caller.service, tool);
        let untrusted = found.is_none_or(|tool| tool.untrusted);
        self.parse_answer(tool, outcome, move |tool, outcome| {
            let result = CallResult::of(tool, outcome);
            Ok(if untrusted { result.marked() } else { result })
        })
        .await
    }

    /// Makes something of a tool's answer; a long one holds up nobody else.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) async fn parse_answer<T: Send + 'static>(
        &self,
        tool: &str,
        outcome: Outcome,
        make: impl FnOnce(&str, Outcome) -> Result<T, Stop> + Send + 'static,
    ) -> Result<T, Stop> {
        let (owned, bytes) = (tool.to_owned(), outcome.bytes());
        let user = &self.caller.account.uid;
        let made = work_on(user, bytes, move || make(&owned, outcome)).await;
        made.unwrap_or_else(|| Err(Stop::said(format!("the answer to {tool} cannot be read"))))
    }
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

fn failed(failure: Failure, service: Service, limit: Duration) -> String {
    let of = name(service);
    match failure {
        Failure::Gone => {
            format!("{of} was disconnected before the call was sent; nothing was done")
        }
        Failure::NoTime => format!("no time was left to ask {of}; the call was not sent"),
        Failure::Held => format!(
            "{of} is still busy with what was asked of it before, so the call was not sent: look before you go on"
        ),
        Failure::TimedOut => {
            let dialog = match service {
                Service::Browser => {
                    ". If the page shows a dialog, it answers nothing until the user has closed that"
                }
                Service::Computer => "",
            };
            format!(
                "{of} has not answered within {} seconds. It may still do what was asked: look before you repeat it{dialog}",
                limit.as_secs()
            )
        }
        Failure::Lost => format!(
            "{of} was disconnected during the call. The outcome is unknown: look before you repeat it"
        ),
        Failure::Replaced => format!(
            "{of} was replaced by a newer connection during the call. The outcome is unknown: look before you repeat it"
        ),
    }
}
