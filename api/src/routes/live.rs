//! Live reads of one user's container: what administrators and the user themselves see alike.

use std::time::Duration;

use futures::StreamExt;
use schema::ids::{Uid, UserName};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::{log_lines, params};
use crate::answer::{Answer, Events, Live};
use crate::deps::Deps;
use crate::dispatch::Actor;
use crate::error::{ApiError, Result};
use crate::follows::Following;
use crate::ports::{LogOptions, LogStream, PortError};
use crate::reply::Event;
use crate::route::Failure;

/// Lines shown when the client names no number.
const DEFAULT_TAIL: u32 = 100;
/// Most text of one answer, in bytes.
pub(super) const MAX_LOG: usize = 1024 * 1024;
/// Longest time to read a log that is not followed; what has come by then is the answer.
const READ_TIME: Duration = Duration::from_secs(30);

/// How often a followed log asks whether its reader may still read it.
const RECHECK: Duration = Duration::from_secs(15);

/// What is said of routes that show a log.
pub(super) const LOG: &str = "\
    The newest lines, at most 1 MiB. With `follow=true` an event stream: one event per \
    line, `end` when the log has ended, `error` with a JSON object of `error` and `code` when \
    reading failed. The stream ends with the session or the API token.";

/// How they fail.
pub(super) const LOG_FAILURES: &[Failure] = &[
    Failure::NO_CONTAINER,
    Failure::STREAMS,
    Failure::BUSY,
    Failure::ENGINE,
];

/// Which part of a log is asked for.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct LogParams {
    /// Number of newest lines (default 100), or `all`.
    #[schema(pattern = "^([0-9]{1,9}|all)?$", example = "100")]
    pub tail: Option<String>,
    /// Only lines from this time on: RFC 3339, or Unix seconds.
    #[schema(example = "2026-05-11T11:46:40Z")]
    pub since: Option<String>,
    /// Follow: answer with an event stream of new lines, too.
    pub follow: Option<bool>,
}

impl LogParams {
    fn query(&self) -> Result<LogOptions> {
        let tail = match self.tail.as_deref() {
            None | Some("") => Some(DEFAULT_TAIL),
            Some("all") => None,
            Some(number) => Some(number.parse().map_err(|_| {
                ApiError::invalid("tail", "tail is a whole number of lines, or all")
            })?),
        };
        Ok(LogOptions {
            tail,
            since: params::moment("since", self.since.as_deref())?,
            follow: self.follow.unwrap_or(false),
            timestamps: true,
        })
    }
}

/// The newest lines of a container's log.
#[derive(Debug, Serialize, ToSchema)]
pub struct Log {
    /// The account's name.
    username: UserName,
    /// Lines, each with its time, without escape sequences; at most 1 MiB.
    #[schema(example = "2026-05-11T11:46:40Z ready\n")]
    logs: String,
    /// Older lines were left out, or newer ones that did not arrive in time.
    truncated: bool,
}

/// The log of a user's container: as text, or line by line as an event stream, which lasts no longer
/// than the session or the token of the client.
pub(super) async fn logs(
    deps: &Deps,
    reader: &Actor,
    (uid, name): (&Uid, &UserName),
    params: &LogParams,
) -> Result<Live<Log>> {
    let query = params.query()?;
    let following = match query.follow {
        true => Some(deps.follows.begin(reader.account())?),
        false => None,
    };
    let log = deps.logs.logs(uid, query).await?;
    let log = log.ok_or_else(|| no_container(name))?;
    if let Some(following) = following {
        let dead = death(deps.clone(), reader.clone());
        return Ok(Live::Stream(follow(log, following, dead)));
    }
    let (logs, truncated) = log_lines::newest(log, MAX_LOG, READ_TIME).await?;
    let log = Log {
        username: name.clone(),
        logs,
        truncated,
    };
    Ok(Live::Now(Answer::ok("log of the container", log)))
}

/// Waits until the session or the token is dead: this process reports at once that it may be, others are asked now and then. The admin
/// socket has none to lose.
pub(crate) async fn death(deps: Deps, actor: Actor) {
    let Some(uid) = actor.account() else {
        return std::future::pending().await;
    };
    let mut ends = deps.session_ends.subscribe(uid);
    loop {
        let _ = timeout(RECHECK, ends.changed()).await;
        if !actor.lives(&deps).await {
            return;
        }
    }
}

/// One event for each line; `end` when the log has ended, `error` when reading failed. Nothing more
/// once the session is `dead`: whoever connects again gets the reason.
fn follow(
    log: LogStream,
    following: Following,
    dead: impl Future<Output = ()> + Send + 'static,
) -> Events {
    let lines = log_lines::lines(log).map(|line| match line {
        Ok(data) => Event {
            data,
            ..Event::default()
        },
        Err(error) => failure(error),
    });
    let end = Event {
        name: Some("end".to_owned()),
        ..Event::default()
    };
    let events = lines.chain(futures::stream::iter([end])).take_until(dead);
    // The right to follow is held by the stream, and given back with it.
    Events::new(events.inspect(move |_| {
        let _held = &following;
    }))
}

fn failure(error: PortError) -> Event {
    let error = ApiError::from(error);
    error.log();
    Event {
        name: Some("error".to_owned()),
        id: None,
        data: json!({ "error": error.to_string(), "code": error.code() }).to_string(),
    }
}

/// There is a user, but nothing to read from.
pub(super) fn no_container(name: &UserName) -> ApiError {
    ApiError::not_found(format!("running container of user {name}"))
}

#[cfg(test)]
mod tests;
