//! `agentyard logs`.

use std::time::Duration;

use clap::Args;
use reqwest::{Method, StatusCode};
use schema::clock::{Clock, SystemClock};
use schema::ids::Timestamp;
use serde_json::Value;

use super::admin::escaped;
use super::kinds::{self, KindInfo};
use super::output::cell::{at, cleaned, plain, text};
use super::output::clean::clean;
use super::output::screen;
use super::output::time::{moment, relative};
use super::server::Server;
use super::sse::Events;
use super::target::{bare_name, duration};
use super::{Failure, Result, pages};

const PATH: &str = "/api/admin/container/logs";

/// Part of a log.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Name of the user, or container/NAME
    #[arg(value_name = "USER", value_parser = bare_name)]
    name: String,
    /// Follow the log until the container stops, or until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// Number of newest lines, or `all`
    #[arg(long, value_name = "N", default_value = "100", value_parser = tail)]
    tail: Tail,
    /// Show only lines newer than this, such as 10m
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    since: Option<Duration>,
    /// Show the last lines before the container's last unexpected end
    #[arg(short, long, conflicts_with_all = ["follow", "since", "timestamps"])]
    previous: bool,
    /// Show the time of each line
    #[arg(long)]
    timestamps: bool,
}

/// Number of lines; `None` = all.
#[derive(Debug, Clone, Copy)]
struct Tail(Option<u32>);

fn tail(text: &str) -> Result<Tail, String> {
    match text.parse() {
        _ if text == "all" => Ok(Tail(None)),
        Ok(number @ 0..=999_999_999) => Ok(Tail(Some(number))),
        _ => Err("use a number of lines, or all".to_owned()),
    }
}

/// Prints the log of a user's container.
///
/// # Errors
/// There is no such user or container, no server answers, or reading fails; Ctrl-C while it is followed.
pub async fn logs(server: &Server, args: LogsArgs) -> Result {
    if args.previous {
        return print_previous(server, &args).await;
    }
    let mut path = format!("{PATH}?username={}", escaped(&args.name));
    path += &match args.tail {
        Tail(Some(number)) => format!("&tail={number}"),
        Tail(None) => "&tail=all".to_owned(),
    };
    if let Some(ago) = args.since {
        let since = SystemClock.now().minus(ago);
        path += &format!("&since={}", escaped(&since.to_rfc3339()));
    }
    if args.follow {
        path += "&follow=true";
        return tokio::select! {
            ended = follow(server, &args, &path) => ended,
            _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
        };
    }
    let answer = match server.get(&path).await {
        Err(Failure::NotFound(_)) => return Err(explain_absence(server, &args.name).await),
        answer => answer?,
    };
    if answer["truncated"] == true {
        screen::note("some lines are left out; --tail and --since show fewer");
    }
    let text = text(&answer, "logs");
    let lines = text.lines().map(|line| format_line(line, args.timestamps));
    screen::print(&lines.collect::<String>())
}

async fn follow(server: &Server, args: &LogsArgs, path: &str) -> Result {
    let answer = server.open(server.request(Method::GET, path)).await?;
    match answer.status() {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND => return Err(explain_absence(server, &args.name).await),
        _ => return server.read(answer).await.map(drop),
    }
    let mut events = Events::of(answer);
    while let Some(event) = events.next().await? {
        let data = event.data.unwrap_or_default();
        match event.name.as_str() {
            "end" => {
                screen::note("the log has ended: the container has stopped");
                return Ok(());
            }
            "error" => {
                let error: Value = serde_json::from_str(&data).unwrap_or_default();
                return Err(Failure::Unavailable(cleaned(&error, "error")));
            }
            _ => screen::print(&format_line(&data, args.timestamps))?,
        }
    }
    let text = "the server ended the log; repeat the command with --since";
    Err(Failure::Unavailable(text.to_owned()))
}

/// A line for a terminal. The server begins each with its time.
fn format_line(line: &str, timestamps: bool) -> String {
    let time = |text: &str| text.contains('T') && Timestamp::parse_rfc3339(text).is_some();
    let line = match line.split_once(' ') {
        Some((at, rest)) if !timestamps && time(at) => rest,
        None if !timestamps && time(line) => "",
        _ => line,
    };
    clean(line) + "\n"
}

fn users() -> Result<&'static KindInfo> {
    kinds::parse("user").map_err(Failure::Failed)
}

/// Says whether there is no user, or only no container.
async fn explain_absence(server: &Server, name: &str) -> Failure {
    let kind = match users() {
        Ok(kind) => kind,
        Err(failure) => return failure,
    };
    match pages::find(server, kind, name).await {
        Err(failure) => failure,
        Ok((None, _)) => pages::missing(server, kind, name).await,
        Ok((Some(_), _)) => Failure::NotFound(format!(
            "container/{name} does not exist at present; `{0} describe container/{name}` shows the reason, and `{0} logs {name} --previous` the last lines before an unexpected end",
            server.command
        )),
    }
}

/// The lines that were kept of the last end.
async fn print_previous(server: &Server, args: &LogsArgs) -> Result {
    let name = &args.name;
    let path = format!("/api/admin/reconcile/objects/container/{}", escaped(name));
    let object = match server.get(&path).await {
        Err(Failure::NotFound(_)) => return Err(pages::missing(server, users()?, name).await),
        answer => answer?,
    };
    let ends = at(&object, "observed.ends").as_array();
    let Some(end) = ends.and_then(|ends| ends.first()) else {
        return Err(Failure::NotFound(format!(
            "no unexpected end of container/{name} is recorded; `{} logs {name}` shows its current log",
            server.command
        )));
    };
    let (about, lines) = last_lines(end, SystemClock.now(), args.tail);
    screen::note(&about);
    screen::print(&lines)
}

fn last_lines(end: &Value, now: Timestamp, Tail(tail): Tail) -> (String, String) {
    let since = moment(end, "at").map_or_else(String::new, |at| relative(now, at));
    let log = end["log"].as_array().map(Vec::as_slice).unwrap_or_default();
    let skipped = tail.map_or(0, |tail| log.len().saturating_sub(tail as usize));
    let lines = log.iter().skip(skipped);
    let lines: String = lines.map(|line| clean(&plain(line)) + "\n").collect();
    let what = match log.is_empty() {
        true => "; its log could not be read",
        false => "; the last lines of its log:",
    };
    (format!("{since}: {}{what}", cleaned(end, "cause")), lines)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_clean_and_timed_on_request() {
        let line = "2026-05-11T11:46:40.123456789Z a\u{1b}[2Jb\tc";
        assert_eq!(format_line(line, false), "a\\u{1b}[2Jb c\n");
        assert!(format_line(line, true).starts_with("2026-05-11T11:46:40.123456789Z a"));
        assert_eq!(format_line("2026-05-11T11:46:40Z ", false), "\n");
        assert_eq!(format_line("2026-05-11T11:46:40Z", false), "\n");
        // The rest of a line that was too long for one.
        assert_eq!(format_line("no time here", false), "no time here\n");
    }

    #[test]
    fn last_lines_of_an_end_are_shown_with_its_cause() {
        let now = Timestamp::from_secs(1_778_500_000);
        let mut end = json!({"at": "2026-05-11T11:41:40Z", "cause": "exit code 3", "log": ["one", "two\u{1b}"]});
        let (about, lines) = last_lines(&end, now, Tail(Some(1)));
        assert_eq!(
            about,
            "5m ago (2026-05-11T11:41:40Z): exit code 3; the last lines of its log:"
        );
        assert_eq!(lines, "two\\u{1b}\n");
        assert_eq!(last_lines(&end, now, Tail(None)).1.lines().count(), 2);
        end["log"] = json!([]);
        let (about, lines) = last_lines(&end, now, Tail(Some(100)));
        assert!(about.ends_with("could not be read") && lines.is_empty());
    }

    #[test]
    fn tail_is_a_number_or_all() {
        assert_eq!(tail("20").unwrap().0, Some(20));
        assert_eq!(tail("all").unwrap().0, None);
        assert!(tail("-1").is_err() && tail("some").is_err());
    }
}
