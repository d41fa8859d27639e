//! `agentyard events`: what happened, the newest last.

use std::collections::{HashMap, HashSet};
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
/// What was stamped earlier than the newest may be recorded this much later.
const OVERLAP: Duration = Duration::from_secs(10);
/// Most of one page.
const PAGE_SIZE: usize = 200;
/// Most pages that one look of a watch reads.
const MOST_PAGES: u64 = 50;

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
    fn path(&self, how_many: &str) -> String {
        let mut path = format!("/api/admin/events?{how_many}");
        if let Some(object) = &self.object {
            path += &format!("&object={}", admin::escaped(object));
        }
        if let Some(since) = self.since {
            path += &format!("&since={}", admin::escaped(&since.to_rfc3339()));
        }
        path
    }

    /// The newest, oldest first, as a log is read; with the id to watch from.
    async fn newest(&self, server: &Server) -> Result<(Vec<Value>, Option<String>), Failure> {
        let path = self.path(&format!("limit={}", self.limit));
        let mut body = admin::get(&server.settings, &path).await?;
        let id = body
            .get("watch_id")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let mut events = listed(&mut body)?;
        events.reverse();
        Ok((events, id))
    }

    /// All of them, oldest first.
    async fn all(&self, server: &Server) -> Result<Vec<Value>, Failure> {
        let read = read_pages(async |page| {
            let path = self.path(&format!("page={page}&page_size={PAGE_SIZE}"));
            admin::get(&server.settings, &path).await
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

fn listed(body: &mut Value) -> Result<Vec<Value>, Failure> {
    match body.get_mut("events").map(Value::take) {
        Some(Value::Array(events)) => Ok(events),
        _ => Err(Failure::Failed(
            "the server's answer has no events".to_owned(),
        )),
    }
}

/// Reads page by page; gives the events, oldest first, and whether these are all. What happens
/// meanwhile pushes events to later pages, never to earlier ones, so that one may come twice.
async fn read_pages(
    mut ask: impl AsyncFnMut(u64) -> Result<Value, Failure>,
) -> Result<(Vec<Value>, bool), Failure> {
    let mut events = Vec::new();
    let mut ids = HashSet::new();
    for page in 1..=MOST_PAGES {
        let mut body = ask(page).await?;
        let number = |key: &str| body.get(key).and_then(Value::as_u64);
        let last = number("total_pages").is_none_or(|pages| pages <= page);
        for event in listed(&mut body)? {
            if ids.insert(event.get("id").and_then(Value::as_i64)) {
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
    let (events, watch_id) = query.newest(server).await?;
    let full = events.len() >= usize::from(query.limit);
    if full {
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
    let newest = newest(&events);
    seen.new_of(events, &mut query);
    let mut bell = Watch::since(server, watch_id);
    if full {
        seen.pass_over(query.all(server).await?, newest);
    }
    loop {
        // Whatever it says, or nothing: events are looked at.
        if let Ok(change) = timeout(LOOK_AGAIN, bell.next()).await {
            change?;
        }
        let events = bell.patiently(async || query.all(server).await).await?;
        let new = seen.new_of(events, &mut query);
        printer.print(&new)?;
    }
}

fn newest(events: &[Value]) -> Option<Timestamp> {
    let moments = events.iter().filter_map(|event| moment(event, "last_at"));
    moments.max()
}

fn number(event: &Value, key: &str) -> Option<i64> {
    event.get(key).and_then(Value::as_i64)
}

/// How often each was seen to have happened: repeats are merged into one event that counts.
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
            let (Some(id), Some(count)) = (number(&event, "id"), number(&event, "count")) else {
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

    /// Those up to that moment were not asked for and are not told later, either.
    fn pass_over(&mut self, events: Vec<Value>, until: Option<Timestamp>) {
        for event in events {
            if let (Some(id), Some(count)) = (number(&event, "id"), number(&event, "count"))
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
    fn an_event_is_told_once_each_time_it_happens() {
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
    fn an_event_that_was_recorded_after_a_later_one_is_told_too() {
        let mut query = everything();
        let mut seen = Seen::default();
        seen.new_of(vec![event(2, 1, 111)], &mut query);
        let late = seen.new_of(vec![event(1, 1, 105), event(2, 1, 111)], &mut query);
        assert_eq!(ids(late), [1]);
        let again = seen.new_of(vec![event(1, 1, 105), event(2, 1, 111)], &mut query);
        assert_eq!(ids(again), [0; 0]);
    }

    #[test]
    fn what_a_limit_or_a_time_left_out_is_not_told_by_the_watch() {
        let mut query = everything();
        let mut seen = Seen::default();
        let begin = Some(Timestamp::from_secs(108));
        query.since = begin;
        let first = vec![event(2, 1, 111)];
        let until = newest(&first);
        seen.new_of(first, &mut query);
        assert_eq!(query.since, begin, "not before the wanted time");
        let all = || vec![event(1, 1, 109), event(2, 1, 111), event(3, 1, 112)];
        seen.pass_over(all(), until);
        assert_eq!(ids(seen.new_of(all(), &mut query)), [3]);
    }

    #[tokio::test]
    async fn a_watch_reads_all_pages_and_tells_none_twice() {
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
