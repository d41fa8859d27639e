//! `agentyard events`: what happened, the newest last.

use std::collections::HashMap;
use std::time::Duration;

use clap::Args;
use schema::clock::{Clock, SystemClock};
use schema::ids::Timestamp;
use serde_json::Value;
use tokio::time::timeout;

use super::output::items::{Amount, Printer};
use super::output::time::moment;
use super::output::{Format, screen};
use super::server::Server;
use super::target::Object;
use super::watch::Watch;
use super::{Failure, admin, kinds};

/// Most that the server gives at once.
const MOST: u16 = 1000;
/// Events come without a change of status, too.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Which events.
#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Only of this object; one that is gone has events, too
    #[arg(long, value_name = "KIND/NAME")]
    object: Option<Object>,
    /// Only what happened this long ago or later, such as 15m or 2h
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    since: Option<Duration>,
    /// At most so many, the newest
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST)))]
    limit: u16,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    /// Go on with what happens from now on, until interrupted
    #[arg(short, long)]
    watch: bool,
    /// No line with the columns' titles
    #[arg(long)]
    no_headers: bool,
}

/// Prints events.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn events(server: &Server, args: EventsArgs) -> Result<(), Failure> {
    let since = args.since.map(|ago| SystemClock.now().minus(ago));
    let query = Query {
        object: args.object.map(|object| object.to_string()),
        since,
        limit: args.limit,
    };
    print(server, query, args.output, args.watch, !args.no_headers).await
}

/// `agentyard get events`.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn of_all(
    server: &Server,
    format: Format,
    watch: bool,
    headers: bool,
) -> Result<(), Failure> {
    let query = Query {
        object: None,
        since: None,
        limit: MOST,
    };
    print(server, query, format, watch, headers).await
}

struct Query {
    object: Option<String>,
    since: Option<Timestamp>,
    limit: u16,
}

impl Query {
    /// Oldest first, as a log is read; with the id to watch from.
    async fn ask(&self, server: &Server) -> Result<(Vec<Value>, Option<String>), Failure> {
        let mut path = format!("/api/admin/events?limit={}", self.limit);
        if let Some(object) = &self.object {
            path += &format!("&object={}", admin::escaped(object));
        }
        if let Some(since) = self.since {
            path += &format!("&since={}", admin::escaped(&since.to_rfc3339()));
        }
        let mut body = admin::get(&server.settings, &path).await?;
        let id = body
            .get("watch_id")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let Some(Value::Array(mut events)) = body.get_mut("events").map(Value::take) else {
            return Err(Failure::Failed(
                "the server's answer has no events".to_owned(),
            ));
        };
        events.reverse();
        Ok((events, id))
    }
}

async fn print(
    server: &Server,
    mut query: Query,
    format: Format,
    watch: bool,
    headers: bool,
) -> Result<(), Failure> {
    let kind = kinds::parse("events").map_err(Failure::Failed)?;
    let amount = if watch { Amount::Endless } else { Amount::List };
    let mut printer = Printer::new(kind, format, amount, headers);
    let (events, watch_id) = query.ask(server).await?;
    if events.len() >= usize::from(query.limit) {
        screen::note(&format!(
            "only the newest {} are shown; --limit and --since choose others",
            query.limit
        ));
    }
    printer.print(&events)?;
    printer.end()?;
    if !watch {
        return Ok(());
    }
    let mut seen = Seen::default();
    seen.new_of(events, &mut query);
    query.limit = MOST;
    let mut bell = Watch::since(server, watch_id);
    loop {
        // Whatever it says, or nothing: events are looked at.
        if let Ok(change) = timeout(LOOK_AGAIN, bell.next()).await {
            change?;
        }
        let (events, _) = bell.patiently(async || query.ask(server).await).await?;
        let new = seen.new_of(events, &mut query);
        printer.print(&new)?;
    }
}

/// How often each was seen to have happened: repeats are merged into one event that counts.
#[derive(Default)]
struct Seen(HashMap<i64, i64>);

impl Seen {
    /// Those that are new or have happened again. From now on only what is as new as the newest of
    /// them is asked for, and remembered.
    fn new_of(&mut self, events: Vec<Value>, query: &mut Query) -> Vec<Value> {
        let number = |event: &Value, key: &str| event.get(key).and_then(Value::as_i64);
        let newest = events
            .iter()
            .filter_map(|event| moment(event, "last_at"))
            .max();
        let before = std::mem::take(&mut self.0);
        let mut new = Vec::new();
        for event in events {
            let (Some(id), Some(count)) = (number(&event, "id"), number(&event, "count")) else {
                continue;
            };
            if moment(&event, "last_at") >= newest {
                self.0.insert(id, count);
            }
            if before.get(&id).is_none_or(|seen| *seen < count) {
                new.push(event);
            }
        }
        if newest.is_some() {
            query.since = newest;
        } else {
            self.0 = before;
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_told_once_each_time_it_happens() {
        let mut query = Query {
            object: None,
            since: None,
            limit: 100,
        };
        let mut seen = Seen::default();
        let event = |id: i64, count: i64, second: i64| {
            let at = Timestamp::from_secs(second).to_rfc3339();
            json!({"id": id, "count": count, "last_at": at})
        };
        let ids = |events: Vec<Value>| -> Vec<i64> {
            events
                .iter()
                .map(|event| event["id"].as_i64().unwrap())
                .collect()
        };
        let first = seen.new_of(vec![event(1, 1, 10), event(2, 1, 11)], &mut query);
        assert_eq!(ids(first), [1, 2]);
        assert_eq!(query.since, Some(Timestamp::from_secs(11)));
        // The newest is answered again; nothing is new.
        assert_eq!(ids(seen.new_of(vec![event(2, 1, 11)], &mut query)), [0; 0]);
        // One of the same moment, and a repeat.
        let next = seen.new_of(vec![event(3, 1, 11), event(2, 1, 11)], &mut query);
        assert_eq!(ids(next), [3]);
        let repeat = seen.new_of(vec![event(3, 1, 11), event(2, 2, 15)], &mut query);
        assert_eq!(ids(repeat), [2]);
        assert_eq!(ids(seen.new_of(Vec::new(), &mut query)), [0; 0]);
        assert_eq!(ids(seen.new_of(vec![event(2, 2, 15)], &mut query)), [0; 0]);
    }
}
