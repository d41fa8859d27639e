//! What happens to a pull, told to its log: from this process's own pulls when it runs here, else from
//! what its reconciler writes into the database.

use std::sync::Arc;

use futures::StreamExt;
use schema::condition::{self, ConditionStatus, ConditionType, Reason};
use schema::error::DbError;
use schema::ids::{Generation, Kind, Uid};
use schema::image::{self, ImageRow};
use schema::object::{self, ObjectRow};
use serde::Serialize;
use serde_json::{Value, json};

use crate::deps::Deps;
use crate::ports::{PullStream, PullUpdate};
use crate::pull_log::PullLog;
use crate::routes::images::list::size_text;
use crate::wait::Watch;

/// Longest text that is taken over, in characters.
const MAX_TEXT: usize = 1000;
/// What is told of a request that was taken back.
const CALLED_OFF: &str = "the pull was called off";

/// A request for a pull.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) uid: Uid,
    pub(super) reference: String,
    pub(super) token: String,
    pub(super) generation: Generation,
}

impl From<ImageRow> for Wanted {
    fn from(row: ImageRow) -> Self {
        Self {
            uid: row.uid,
            reference: row.reference,
            token: row.pull_token,
            generation: row.generation,
        }
    }
}

/// The log of a request; the first who asks begins it.
pub(super) fn log(deps: &Deps, wanted: Wanted) -> Arc<PullLog> {
    let (reference, token) = (wanted.reference.clone(), wanted.token.clone());
    deps.pull_logs.of(&reference, &token, |log| {
        let writer = Writer {
            deps: deps.clone(),
            wanted,
            log,
            percent: 0,
            told: String::new(),
        };
        deps.tasks.spawn(writer.run());
    })
}

/// The log of a request that nobody wants any more and whose own log is gone.
pub(super) fn called_off(request: &str) -> Arc<PullLog> {
    let log = PullLog::new(request);
    log.push(&error(CALLED_OFF));
    log.close();
    Arc::new(log)
}

fn error(message: &str) -> Value {
    json!({"status": "error", "error": bounded(message)})
}

/// What the engine is told to have said, with how far the whole is.
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
    /// No pass has seen the request.
    Unseen,
    /// A pass has, and has begun or not: the engine may be away.
    Seen { begun: bool, message: String },
    /// It was answered.
    Done(Option<String>),
    /// It failed.
    Failed(String),
    /// It was called off.
    CalledOff,
}

impl Standing {
    fn has_begun(&self) -> bool {
        match self {
            Self::Unseen | Self::CalledOff => false,
            Self::Seen { begun, .. } => *begun,
            Self::Done(_) | Self::Failed(_) => true,
        }
    }
}

/// Writes one log.
struct Writer {
    deps: Deps,
    wanted: Wanted,
    log: Arc<PullLog>,
    percent: u8,
    /// The newest message of the database that was told.
    told: String,
}

impl Writer {
    async fn run(mut self) {
        let (log, shutdown) = (self.log.clone(), self.deps.shutdown.clone());
        let (logs, reference) = (self.deps.pull_logs.clone(), self.wanted.reference.clone());
        let ended = tokio::select! {
            ended = self.tell() => ended,
            () = logs.abandoned(&reference, &log) => false,
            () = shutdown.cancelled() => false,
        };
        if !ended {
            logs.forget(&reference, &log);
        }
        log.close();
    }

    /// Tells everything to the end. False when the end is not known.
    async fn tell(&mut self) -> bool {
        self.progress("Waiting", None, None, 0);
        let mut looks = Watch::unending(&self.deps);
        let mut listened = false;
        loop {
            let standing = look(&self.deps, &self.wanted).await;
            let standing = standing.unwrap_or_else(|error| {
                let error = crate::error::chain(&error);
                tracing::warn!(%error, "cannot see how far a pull is; looking again");
                Standing::Unseen
            });
            // Once it has begun, what runs here is its answer, or a newer one's; before, what ended here
            // may be an older one's.
            if standing.has_begun()
                && !listened
                && let Some(pull) = self.deps.pulls.watch(&self.wanted.reference)
            {
                listened = true;
                if self.relay(pull).await {
                    return true;
                }
                continue;
            }
            if self.end(standing) {
                return true;
            }
            if !looks.next().await {
                return false;
            }
        }
    }

    /// Tells what this process's own pull says. False when it fell silent without a last word.
    async fn relay(&mut self, mut pull: PullStream) -> bool {
        while let Some(update) = pull.next().await {
            match update {
                PullUpdate::Progress {
                    status,
                    id,
                    current,
                    total,
                    percent,
                    ..
                } => {
                    let detail = current.zip(total);
                    self.progress(&status, id.as_deref(), detail, percent);
                }
                PullUpdate::Done { digest, .. } => return self.end(Standing::Done(digest)),
                PullUpdate::Error { message } => return self.end(Standing::Failed(message)),
            }
        }
        false
    }

    /// Tells how it stands; whether that is the end.
    fn end(&mut self, standing: Standing) -> bool {
        let last = match standing {
            Standing::Unseen => return false,
            Standing::Seen { message, .. } => {
                if self.told != message {
                    self.progress(&message, None, None, percent_in(&message));
                    self.told = message;
                }
                return false;
            }
            Standing::Done(digest) => json!({"status": "done", "digest": digest}),
            Standing::Failed(message) => error(&message),
            Standing::CalledOff => error(CALLED_OFF),
        };
        self.log.push(&last);
        true
    }

    fn progress(
        &mut self,
        status: &str,
        id: Option<&str>,
        detail: Option<(u64, u64)>,
        percent: u8,
    ) {
        self.percent = self.percent.max(percent.min(100));
        self.log.push(&Progress {
            status: bounded(status),
            id: id.map(bounded),
            progress: detail
                .map(|(current, total)| format!("{} / {}", size_text(current), size_text(total))),
            detail: detail.map(|(current, total)| Detail { current, total }),
            percent: self.percent,
        });
    }
}

fn bounded(text: &str) -> &str {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => text.get(..end).unwrap_or_default(),
        None => text,
    }
}

/// The percentage at the beginning of a message such as `45 %, 12.3 of 80.0 MB`.
fn percent_in(message: &str) -> u8 {
    let number = message.split_once('%').map(|(number, _)| number.trim());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

async fn look(deps: &Deps, wanted: &Wanted) -> Result<Standing, DbError> {
    let mut connection = deps.db.snapshot().await?;
    let object = object::get(&mut connection, Kind::Image, &wanted.uid).await?;
    let image = image::get(&mut connection, &wanted.uid).await?;
    Ok(match object.zip(image) {
        Some((object, image)) => judge(wanted, &object, &image),
        None => Standing::CalledOff,
    })
}

/// How the request stands. Tokens of later requests are greater.
fn judge(wanted: &Wanted, object: &ObjectRow, image: &ImageRow) -> Standing {
    let answered = image.facts.pull_token.as_deref();
    if answered >= Some(wanted.token.as_str()) {
        return Standing::Done(image.facts.digest.clone());
    }
    // A request is taken back by the token of the one before.
    if image.deleted_at.is_some() || image.pull_token < wanted.token {
        return Standing::CalledOff;
    }
    if object.status.observed_generation < wanted.generation {
        return Standing::Unseen;
    }
    let Some(ready) = condition::find(&object.status.conditions, ConditionType::Ready) else {
        return Standing::Unseen;
    };
    let failed = ready.status != ConditionStatus::True && ready.reason == Reason::ImagePullFailed;
    if failed {
        return Standing::Failed(ready.message.clone());
    }
    Standing::Seen {
        begun: ready.reason == Reason::ImagePulling,
        message: ready.message.clone(),
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

    fn wanted() -> Wanted {
        Wanted {
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
        Some(Condition::not_ready(Reason::ImagePullFailed, "no such tag"))
    }

    fn going(begun: bool, message: &str) -> Standing {
        let message = message.to_owned();
        Standing::Seen { begun, message }
    }

    fn away() -> Option<Condition> {
        let away = Condition::not_ready(Reason::EngineUnavailable, "away");
        Some(away)
    }

    fn pulling() -> Option<Condition> {
        Some(Condition::not_ready(Reason::ImagePulling, PULLING))
    }

    #[rstest]
    #[case::nobody_looked("5", None, 2, None, Standing::Unseen)]
    #[case::an_old_failure_is_none_of_ours("5", Some("4"), 2, failed(), Standing::Unseen)]
    #[case::under_way("5", Some("4"), 3, pulling(), going(true, PULLING))]
    #[case::the_engine_is_away("5", Some("4"), 3, away(), going(false, "away"))]
    #[case::failed("5", None, 3, failed(), Standing::Failed("no such tag".to_owned()))]
    #[case::done("5", Some("5"), 3, None, Standing::Done(Some("d".to_owned())))]
    #[case::a_newer_one_is_done("6", Some("6"), 4, None, Standing::Done(Some("d".to_owned())))]
    #[case::a_newer_one_is_under_way("6", Some("4"), 4, pulling(), going(true, PULLING))]
    #[case::taken_back("4", Some("4"), 4, None, Standing::CalledOff)]
    fn a_request_stands_as_the_database_says(
        #[case] token: &str,
        #[case] answered: Option<&str>,
        #[case] seen: i64,
        #[case] said: Option<Condition>,
        #[case] expected: Standing,
    ) {
        let standing = judge(&wanted(), &object(seen, said), &image(token, answered));
        assert_eq!(standing, expected);
    }

    #[test]
    fn a_request_whose_image_goes_is_called_off() {
        let mut going = image("5", None);
        going.deleted_at = Some(Timestamp::from_secs(1));
        let standing = judge(&wanted(), &object(3, pulling()), &going);
        assert_eq!(standing, Standing::CalledOff);
    }

    #[test]
    fn texts_of_the_world_are_bounded() {
        assert_eq!(bounded(&"ü".repeat(2000)).chars().count(), MAX_TEXT);
        assert_eq!(percent_in("45 %, 1 of 2 MB"), 45);
        assert_eq!(percent_in("no percent"), 0);
        assert_eq!(percent_in("999 %"), 0);
    }
}
