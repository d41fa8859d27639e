//! `agentyard events`: events, newest last.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use clap::Args;
use schema::clock::{Clock, SystemClock};
use schema::event::{SERVICE, SERVICE_NAME};
use schema::ids::Timestamp;
use serde_json::Value;
use tokio::time::timeout;

use super::admin::escaped;
use super::kinds::EVENTS;
use super::output::cell::number;
use super::output::items::{Amount, Printer};
use super::output::time::moment;
use super::output::{OutputArgs, screen};
use super::server::Server;
use super::target::{Object, duration};
use super::watch::Watch;
use super::{Failure, Result};

/// Most that the server gives at once.
const MOST: u16 = 1000;
/// Events come without a change of status, too.
const POLL: Duration = Duration::from_secs(2);
/// What was stamped earlier than the newest may be recorded this much later.
const OVERLAP: Duration = Duration::from_secs(10);
/// Most of one page.
const PAGE_SIZE: usize = 200;
/// Most pages that a watch reads at once.
const MOST_PAGES: u64 = 50;

/// Which events.
#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Show only events of this object, even if it is deleted; service/agentyard is the service itself
    #[arg(long, value_name = "KIND/NAME", value_parser = subject)]
    object: Option<String>,
    /// Show only events newer than this, such as 15m or 2h
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    since: Option<Duration>,
    /// Show the newest N
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST)))]
    limit: u16,
    #[command(flatten)]
    output: OutputArgs,
    /// Follow new events until interrupted
    #[arg(short, long)]
    watch: bool,
}

impl EventsArgs {
    /// All events, for `agentyard get events`.
    pub fn all(output: OutputArgs, watch: bool) -> Self {
        Self {
            object: None,
            since: None,
            limit: MOST,
            output,
            watch,
        }
    }
}

/// Reads an object, or the service itself.
fn subject(text: &str) -> std::result::Result<String, String> {
    if text == format!("{SERVICE}/{SERVICE_NAME}") {
        return Ok(text.to_owned());
    }
    text.parse::<Object>().map(|object| object.to_string())
}

/// Prints events.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn events(server: &Server, args: EventsArgs) -> Result {
    let mut query = Query {
        object: args.object,
        since: args.since.map(|ago| SystemClock.now().minus(ago)),
        limit: args.limit,
    };
    let amount = if args.watch {
        Amount::Endless
    } else {
        Amount::List
    };
    let mut printer = Printer::new(&EVENTS, args.output, amount);
    let (events, watch_id) = query.newest(server).await?;
    let full = events.len() >= usize::from(query.limit);
    if full {
        screen::note(&format!(
            "only the newest {} are shown; use --limit and --since for others",
            query.limit
        ));
    }
    printer.print(&events)?;
    printer.end()?;
    if !args.watch {
        return Ok(());
    }
    let mut seen = Seen::default();
    let newest = newest(&events);
    seen.new_of(events, &mut query);
    let mut bell = Watch::since(server, watch_id);
    if full {
        seen.pass_over(query.all(server).await?, newest);
    }
    loop {
        // Whatever it says, or nothing: events are read.
        if let Ok(change) = timeout(POLL, bell.next()).await {
            change?;
        }
        let events = bell.patiently(async || query.all(server).await).await?;
        let new = seen.new_of(events, &mut query);
        printer.print(&new)?;
    }
}

struct Query {
    object: Option<String>,
    since: Option<Timestamp>,
    limit: u16,
}

impl Query {
    fn path(&self, how_many: &str) -> String {
        let mut path = format!("/api/admin/events?{how_many}");
        if let Some(object) = &self.object {
            path += &format!("&object={}", escaped(object));
        }
        if let Some(since) = self.since {
            path += &format!("&since={}", escaped(&since.to_rfc3339()));
        }
        path
    }

    /// The newest, oldest first, as a log is read; with the id to watch from.
    async fn newest(&self, server: &Server) -> Result<(Vec<Value>, Option<String>)> {
        let path = self.path(&format!("limit={}", self.limit));
        let mut body = server.get(&path).await?;
        let id = body["watch_id"].as_str().map(str::to_owned);
        let mut events = listed(&mut body)?;
        events.reverse();
        Ok((events, id))
    }

    /// All of them, oldest first.
    async fn all(&self, server: &Server) -> Result<Vec<Value>> {
        let read = read_pages(async |page| {
            let path = self.path(&format!("page={page}&page_size={PAGE_SIZE}"));
            server.get(&path).await
        });
        let (events, whole) = read.await?;
        if !whole {
            screen::note(&format!(
                "more than {} events at once; the oldest of them are not shown",
                events.len()
            ));
        }
        Ok(events)
    }
}

fn listed(body: &mut Value) -> Result<Vec<Value>> {
    match body.get_mut("events").map(Value::take) {
        Some(Value::Array(events)) => Ok(events),
        _ => Err(Failure::Failed(
            "the server's answer has no events".to_owned(),
        )),
    }
}

/// Reads page by page; gives the events, oldest first, and whether these are all. What happens
/// meanwhile pushes events to later pages, never to earlier ones, so that one may come twice.
async fn read_pages(mut ask: impl AsyncFnMut(u64) -> Result<Value>) -> Result<(Vec<Value>, bool)> {
    let mut events = Vec::new();
    let mut ids = HashSet::new();
    for page in 1..=MOST_PAGES {
        let mut body = ask(page).await?;
        let last = number(&body, "total_pages") <= page;
        for event in listed(&mut body)? {
            if ids.insert(event["id"].as_i64()) {
                events.push(event);
            }
        }
        if last {
            events.reverse();
            return Ok((events, true));
        }
    }
    events.reverse();
    Ok((events, false))
}

fn newest(events: &[Value]) -> Option<Timestamp> {
    let moments = events.iter().filter_map(|event| moment(event, "last_at"));
    moments.max()
}

/// The id and count of an event.
fn key(event: &Value) -> Option<(i64, i64)> {
    Some((event["id"].as_i64()?, event["count"].as_i64()?))
}

/// The count of each event that was shown: repeats are merged into one event that counts.
#[derive(Default)]
struct Seen(HashMap<i64, i64>);

impl Seen {
    /// Those that are new or have happened again. From now on only what is about as new as the newest
    /// of them is asked for, and remembered.
    fn new_of(&mut self, events: Vec<Value>, query: &mut Query) -> Vec<Value> {
        let Some(newest) = newest(&events) else {
            return Vec::new();
        };
        query.since = query.since.max(Some(newest.minus(OVERLAP)));
        let before = std::mem::take(&mut self.0);
        let mut new = Vec::new();
        for event in events {
            let Some((id, count)) = key(&event) else {
                continue;
            };
            if moment(&event, "last_at") >= query.since {
                self.0.insert(id, count);
            }
            if before.get(&id).is_none_or(|seen| *seen < count) {
                new.push(event);
            }
        }
        new
    }

    /// Those up to that moment were not asked for and are not shown later, either.
    fn pass_over(&mut self, events: Vec<Value>, until: Option<Timestamp>) {
        for event in events {
            if let Some((id, count)) = key(&event)
                && moment(&event, "last_at") <= until
            {
                self.0.entry(id).or_insert(count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(id: i64, count: i64, second: i64) -> Value {
        let at = Timestamp::from_secs(second).to_rfc3339();
        json!({"id": id, "count": count, "last_at": at})
    }

    fn ids(events: Vec<Value>) -> Vec<i64> {
        let ids = events.iter().map(|event| event["id"].as_i64().unwrap());
        ids.collect()
    }

    fn everything() -> Query {
        Query {
            object: None,
            since: None,
            limit: 100,
        }
    }

    #[test]
    fn events_of_the_service_itself_can_be_named() {
        assert_eq!(subject("service/agentyard").unwrap(), "service/agentyard");
        assert_eq!(subject("c/alice").unwrap(), "container/alice");
        assert!(subject("service/other").is_err());
    }

    #[test]
    fn an_event_is_shown_once_each_time_it_happens() {
        let mut query = everything();
        let mut seen = Seen::default();
        let first = seen.new_of(vec![event(1, 1, 100), event(2, 1, 111)], &mut query);
        assert_eq!(ids(first), [1, 2]);
        assert_eq!(query.since, Some(Timestamp::from_secs(101)));
        // The newest is answered again; nothing is new.
        assert_eq!(ids(seen.new_of(vec![event(2, 1, 111)], &mut query)), [0; 0]);
        // One of the same moment, and a repeat.
        let next = seen.new_of(vec![event(3, 1, 111), event(2, 1, 111)], &mut query);
        assert_eq!(ids(next), [3]);
        let repeat = seen.new_of(vec![event(3, 1, 111), event(2, 2, 115)], &mut query);
        assert_eq!(ids(repeat), [2]);
        assert_eq!(ids(seen.new_of(Vec::new(), &mut query)), [0; 0]);
        let again = vec![event(3, 1, 111), event(2, 2, 115)];
        assert_eq!(ids(seen.new_of(again, &mut query)), [0; 0]);
        // What is too old to be asked for is forgotten.
        seen.new_of(vec![event(9, 1, 200)], &mut query);
        assert_eq!(seen.0.len(), 1);
    }

    #[test]
    fn an_event_that_was_recorded_after_a_later_one_is_shown_too() {
        let mut query = everything();
        let mut seen = Seen::default();
        seen.new_of(vec![event(2, 1, 111)], &mut query);
        let late = seen.new_of(vec![event(1, 1, 105), event(2, 1, 111)], &mut query);
        assert_eq!(ids(late), [1]);
        let again = seen.new_of(vec![event(1, 1, 105), event(2, 1, 111)], &mut query);
        assert_eq!(ids(again), [0; 0]);
    }

    #[test]
    fn what_a_limit_or_a_time_left_out_is_not_shown_by_the_watch() {
        let mut query = everything();
        let mut seen = Seen::default();
        let begin = Some(Timestamp::from_secs(108));
        query.since = begin;
        let first = vec![event(2, 1, 111)];
        let until = newest(&first);
        seen.new_of(first, &mut query);
        assert_eq!(query.since, begin, "not before the requested time");
        let all = || vec![event(1, 1, 109), event(2, 1, 111), event(3, 1, 112)];
        seen.pass_over(all(), until);
        assert_eq!(ids(seen.new_of(all(), &mut query)), [3]);
    }

    #[tokio::test]
    async fn a_watch_reads_all_pages_and_shows_none_twice() {
        // A new event has come between the two pages.
        let pages = [
            vec![event(4, 1, 9), event(3, 1, 8)],
            vec![event(3, 1, 8), event(2, 1, 7)],
        ];
        let read = read_pages(async |page| {
            let events = pages[usize::try_from(page).unwrap() - 1].clone();
            Ok(json!({"events": events, "page": page, "total_pages": 2}))
        });
        let (events, whole) = read.await.unwrap();
        assert_eq!((ids(events), whole), (vec![2, 3, 4], true));
        let endless = read_pages(async |page| {
            let id = i64::try_from(page).unwrap();
            Ok(json!({"events": [event(id, 1, 9)], "total_pages": 1_000_000}))
        });
        let (events, whole) = endless.await.unwrap();
        assert_eq!((events.len(), whole), (50, false));
    }
}
