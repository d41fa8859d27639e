//! What a viewer of a pull reads: the log of the pull where it runs in this process, else what its
//! reconciler writes into the database.
//!
//! The id of an event names the request, what is read (a log, or the status), and its number there. A
//! viewer that comes back goes on in the log that it has read.

use std::str::FromStr;

use futures::{Stream, stream};
use schema::condition::{self, ConditionStatus, ConditionType, Reason};
use schema::error::DbError;
use schema::ids::{Generation, Kind, Uid};
use schema::image::{self, ImageRow, PullEvent, PullReader, PullUpdate};
use schema::object::{self, ObjectRow};
use serde::Serialize;
use serde_json::{Value, json};

use crate::deps::Deps;
use crate::error::{ApiError, Result};
use crate::reply::Event;
use crate::routes::images::list::size_text;
use crate::wait::Watch;

/// Longest text that is taken over, in characters.
const MAX_TEXT: usize = 1000;
/// What is shown of a request that was taken back.
const CANCELLED: &str = "the pull was cancelled";
/// Instead of the id of a log: the status in the database, and its end.
const STATUS: &str = "status";
const END: &str = "end";

/// A request for a pull.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) uid: Uid,
    pub(super) reference: String,
    pub(super) token: String,
    pub(super) generation: Generation,
}

impl From<ImageRow> for Request {
    fn from(row: ImageRow) -> Self {
        Self {
            uid: row.uid,
            reference: row.reference,
            token: row.pull_token,
            generation: row.generation,
        }
    }
}

/// The id of an event, as a viewer that comes back sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LastEvent {
    request: String,
    log: String,
    n: u64,
}

impl FromStr for LastEvent {
    type Err = ApiError;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            // A request may hold dashes itself.
            let (rest, n) = text.rsplit_once('-')?;
            let (request, log) = rest.rsplit_once('-')?;
            let (request, log) = (request.to_owned(), log.to_owned());
            let n = n.parse().ok()?;
            Some(Self { request, log, n })
        };
        parse().ok_or_else(|| {
            let rule = "Last-Event-ID is an id as this server has sent it";
            ApiError::invalid("last_event_id", rule)
        })
    }
}

/// What the engine reports, with how far the whole is.
#[derive(Serialize)]
struct Progress<'a> {
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(rename = "progressDetail", skip_serializing_if = "Option::is_none")]
    detail: Option<Detail>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<String>,
    percent: u8,
}

#[derive(Serialize)]
struct Detail {
    current: u64,
    total: u64,
}

/// How a pull stands by the database.
#[derive(Debug, PartialEq)]
enum Standing {
    /// The request was not observed yet.
    Pending,
    /// It was observed, and has begun or not: the engine may be away.
    Observed {
        begun: bool,
        message: String,
        percent: u8,
    },
    /// It was answered.
    Done(Option<String>),
    /// It failed.
    Failed(String),
    /// It was cancelled.
    Cancelled,
}

impl Standing {
    fn has_begun(&self) -> bool {
        match self {
            Self::Pending | Self::Cancelled => false,
            Self::Observed { begun, .. } => *begun,
            Self::Done(_) | Self::Failed(_) => true,
        }
    }
}

/// A viewer of a pull.
struct Viewer {
    deps: Deps,
    /// The request that it asked for.
    token: String,
    source: Source,
    /// The number of the newest event of the status.
    n: u64,
    percent: u8,
}

/// What a viewer reads.
enum Source {
    /// What the database says of a request.
    Status(Box<Status>),
    /// The log of this process's pull.
    Log(PullReader),
    /// That the request was cancelled.
    Cancelled,
    /// Nothing more.
    Ended,
}

/// What a viewer without a log reads.
struct Status {
    request: Request,
    watch: Watch,
    /// The newest message that was shown.
    shown: String,
}

/// The events of a new request.
pub(super) fn events(deps: &Deps, request: Request) -> impl Stream<Item = Event> + use<> {
    let token = request.token.clone();
    Viewer::new(deps, token, Source::status(deps, request)).events()
}

/// The events for a viewer that comes back: the rest of the log that it has read, else those of the
/// newest request, which answers its own as well. Coming back never requests a pull: a request that is
/// gone was cancelled.
pub(super) async fn resumed(
    deps: &Deps,
    reference: &str,
    last: LastEvent,
) -> Result<impl Stream<Item = Event> + use<>> {
    let log = deps.pulls.log(reference).filter(|log| log.id() == last.log);
    let mut viewer = Viewer::new(deps, last.request.clone(), Source::Ended);
    if let Some(log) = log {
        viewer.source = Source::Log(log.read(last.n));
    } else if last.log != END {
        let mut connection = deps.db.read().await?;
        let row = image::find(&mut connection, reference).await?;
        // A request is taken back by the token of the one before, which is smaller.
        match row.filter(|row| row.pull_token >= last.request) {
            Some(row) => {
                viewer.token.clone_from(&row.pull_token);
                viewer.source = Source::status(deps, row.into());
            }
            None => viewer.source = Source::Cancelled,
        }
        if last.log == STATUS {
            viewer.n = last.n;
        }
    }
    Ok(viewer.events())
}

impl Source {
    fn status(deps: &Deps, request: Request) -> Self {
        Self::Status(Box::new(Status {
            request,
            watch: Watch::unending(deps),
            shown: String::new(),
        }))
    }
}

impl Viewer {
    fn new(deps: &Deps, token: String, source: Source) -> Self {
        Self {
            deps: deps.clone(),
            token,
            source,
            n: 0,
            percent: 0,
        }
    }

    fn events(self) -> impl Stream<Item = Event> + use<> {
        stream::unfold(self, |mut viewer| async move {
            let event = viewer.next().await?;
            Some((event, viewer))
        })
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            match &mut self.source {
                Source::Ended => return None,
                Source::Cancelled => return self.end(Standing::Cancelled),
                Source::Log(reader) => {
                    let shutdown = self.deps.shutdown.clone();
                    let (n, update) = tokio::select! {
                        biased;
                        // Not the end of the request: it is resumed with the service.
                        () = shutdown.cancelled() => return None,
                        next = reader.next() => next?,
                    };
                    let place = reader.log().id().to_owned();
                    return match update {
                        PullUpdate::Progress { event, sum } => {
                            self.progress(&place, n, &event, sum.percent)
                        }
                        PullUpdate::Done { digest, .. } => self.last(&place, n, &done(digest)),
                        PullUpdate::Failed { message } => self.last(&place, n, &error(&message)),
                    };
                }
                Source::Status(_) if self.n == 0 => return self.status("Waiting", 0),
                Source::Status(status) => {
                    let standing = observe(&self.deps, &status.request).await;
                    let standing = standing.unwrap_or_else(|error| {
                        let error = crate::error::chain(&error);
                        tracing::warn!(%error, "cannot read the state of a pull; retrying");
                        Standing::Pending
                    });
                    // Once it has begun, what runs here is its answer, or a newer one's; before, what
                    // ended here may be an older one's.
                    if standing.has_begun()
                        && let Some(log) = self.deps.pulls.log(&status.request.reference)
                    {
                        self.source = Source::Log(log.read(0));
                        continue;
                    }
                    match standing {
                        Standing::Observed {
                            message, percent, ..
                        } if message != status.shown => {
                            status.shown.clone_from(&message);
                            return self.status(&message, percent);
                        }
                        Standing::Pending | Standing::Observed { .. } => {}
                        last => return self.end(last),
                    }
                    if !status.watch.next().await {
                        return None;
                    }
                }
            }
        }
    }

    fn status(&mut self, message: &str, percent: u8) -> Option<Event> {
        self.n = self.n.saturating_add(1);
        let event = PullEvent {
            status: message.to_owned(),
            ..PullEvent::default()
        };
        self.progress(STATUS, self.n, &event, percent)
    }

    fn end(&mut self, standing: Standing) -> Option<Event> {
        let last = match standing {
            Standing::Done(digest) => done(digest),
            Standing::Failed(message) => error(&message),
            Standing::Cancelled | Standing::Pending | Standing::Observed { .. } => error(CANCELLED),
        };
        self.last(END, self.n.saturating_add(1), &last)
    }

    fn progress(&mut self, place: &str, n: u64, event: &PullEvent, percent: u8) -> Option<Event> {
        self.percent = self.percent.max(percent.min(100));
        let detail = event.current.zip(event.total);
        self.event(
            place,
            n,
            &Progress {
                status: bounded(&event.status),
                id: event.id.as_deref().map(bounded),
                progress: detail.map(|(current, total)| {
                    format!("{} / {}", size_text(current), size_text(total))
                }),
                detail: detail.map(|(current, total)| Detail { current, total }),
                percent: self.percent,
            },
        )
    }

    fn last(&mut self, place: &str, n: u64, last: &Value) -> Option<Event> {
        self.source = Source::Ended;
        self.event(place, n, last)
    }

    fn event(&self, place: &str, n: u64, payload: &impl Serialize) -> Option<Event> {
        match Event::json(payload) {
            Ok(event) => Some(Event {
                id: Some(format!("{}-{place}-{n}", self.token)),
                ..event
            }),
            Err(error) => {
                error.log();
                None
            }
        }
    }
}

fn done(digest: Option<String>) -> Value {
    json!({"status": "done", "digest": digest})
}

fn error(message: &str) -> Value {
    json!({"status": "error", "error": bounded(message)})
}

fn bounded(text: &str) -> &str {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => text.get(..end).unwrap_or_default(),
        None => text,
    }
}

async fn observe(deps: &Deps, request: &Request) -> Result<Standing, DbError> {
    let mut connection = deps.db.snapshot().await?;
    let object = object::get(&mut connection, Kind::Image, &request.uid).await?;
    let image = image::get(&mut connection, &request.uid).await?;
    Ok(match object.zip(image) {
        Some((object, image)) => judge(request, &object, &image),
        None => Standing::Cancelled,
    })
}

/// How the request stands. Tokens of later requests are greater.
fn judge(request: &Request, object: &ObjectRow, image: &ImageRow) -> Standing {
    let answered = image.facts.pull_token.as_deref();
    if answered >= Some(request.token.as_str()) {
        return Standing::Done(image.facts.digest.clone());
    }
    // A request is taken back by the token of the one before.
    if image.deleted_at.is_some() || image.pull_token < request.token {
        return Standing::Cancelled;
    }
    if object.status.observed_generation < request.generation {
        return Standing::Pending;
    }
    let Some(ready) = condition::find(&object.status.conditions, ConditionType::Ready) else {
        return Standing::Pending;
    };
    let failed = [Reason::PullFailed, Reason::ImagePullFailed].contains(&ready.reason);
    if failed && ready.status != ConditionStatus::True {
        return Standing::Failed(ready.message.clone());
    }
    Standing::Observed {
        begun: ready.reason == Reason::ImagePulling,
        message: ready.message.clone(),
        percent: ready.percent.unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use schema::condition::Condition;
    use schema::ids::Timestamp;
    use schema::image::{DesiredImage, ImageFacts};
    use schema::object::StatusRow;

    use super::*;

    const UID: &str = "u";
    const PULLING: &str = "45 %, 1.0 of 2.0 MB";

    fn request() -> Request {
        Request {
            uid: Uid::from(UID.to_owned()),
            reference: "r.example/a:1".to_owned(),
            token: "5".to_owned(),
            generation: Generation(3),
        }
    }

    fn image(token: &str, answered: Option<&str>) -> ImageRow {
        ImageRow {
            uid: Uid::from(UID.to_owned()),
            reference: "r.example/a:1".to_owned(),
            desired: DesiredImage::Present,
            pull_token: token.to_owned(),
            generation: Generation(3),
            deleted_at: None,
            facts: ImageFacts {
                digest: Some("d".to_owned()),
                pull_token: answered.map(str::to_owned),
                ..ImageFacts::default()
            },
        }
    }

    fn object(seen: i64, said: Option<Condition>) -> ObjectRow {
        ObjectRow {
            kind: "image".to_owned(),
            uid: Uid::from(UID.to_owned()),
            name: "r.example/a:1".to_owned(),
            generation: Generation(3),
            deleted_at: None,
            paused: false,
            created_at: Timestamp::from_secs(0),
            status: StatusRow {
                observed_generation: Generation(seen),
                conditions: said.into_iter().collect(),
                ..StatusRow::default()
            },
        }
    }

    fn failed() -> Option<Condition> {
        Some(Condition::not_ready(Reason::PullFailed, "no such tag"))
    }

    fn going(begun: bool, message: &str, percent: u8) -> Standing {
        let message = message.to_owned();
        Standing::Observed {
            begun,
            message,
            percent,
        }
    }

    fn away() -> Option<Condition> {
        let away = Condition::not_ready(Reason::EngineUnavailable, "away");
        Some(away)
    }

    fn pulling() -> Option<Condition> {
        Some(Condition {
            percent: Some(45),
            ..Condition::not_ready(Reason::ImagePulling, PULLING)
        })
    }

    #[rstest]
    #[case::nobody_looked("5", None, 2, None, Standing::Pending)]
    #[case::an_old_failure_is_none_of_ours("5", Some("4"), 2, failed(), Standing::Pending)]
    #[case::under_way("5", Some("4"), 3, pulling(), going(true, PULLING, 45))]
    #[case::the_engine_is_away("5", Some("4"), 3, away(), going(false, "away", 0))]
    #[case::failed("5", None, 3, failed(), Standing::Failed("no such tag".to_owned()))]
    #[case::done("5", Some("5"), 3, None, Standing::Done(Some("d".to_owned())))]
    #[case::a_newer_one_is_done("6", Some("6"), 4, None, Standing::Done(Some("d".to_owned())))]
    #[case::a_newer_one_is_under_way("6", Some("4"), 4, pulling(), going(true, PULLING, 45))]
    #[case::taken_back("4", Some("4"), 4, None, Standing::Cancelled)]
    fn a_request_stands_as_the_database_says(
        #[case] token: &str,
        #[case] answered: Option<&str>,
        #[case] seen: i64,
        #[case] said: Option<Condition>,
        #[case] expected: Standing,
    ) {
        let standing = judge(&request(), &object(seen, said), &image(token, answered));
        assert_eq!(standing, expected);
    }

    #[test]
    fn a_request_whose_image_goes_is_cancelled() {
        let mut going = image("5", None);
        going.deleted_at = Some(Timestamp::from_secs(1));
        let standing = judge(&request(), &object(3, pulling()), &going);
        assert_eq!(standing, Standing::Cancelled);
    }

    #[test]
    fn texts_of_the_world_are_bounded() {
        assert_eq!(bounded(&"ü".repeat(2000)).chars().count(), MAX_TEXT);
    }

    #[test]
    fn ids_of_events_are_read_as_they_are_sent() {
        let last: LastEvent = "re-quest-0123456789ab-7".parse().unwrap();
        assert_eq!(
            (&*last.request, &*last.log, last.n),
            ("re-quest", "0123456789ab", 7)
        );
        for bad in ["", "x", "a-", "a-b", "a-1", "a-b-", "a-b--c"] {
            assert!(bad.parse::<LastEvent>().is_err(), "{bad}");
        }
    }
}
