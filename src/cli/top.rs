//! `agentyard top`.

use std::io::IsTerminal;
use std::time::Duration;

use clap::{Args, ValueEnum};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::admin::escaped;
use super::kinds::{self, RESOURCE_USE};
use super::output::cell::{at, number, text};
use super::output::items::{Amount, Printer};
use super::output::{Format, OutputArgs, screen};
use super::server::Server;
use super::target::{Object, duration};
use super::{Failure, Result};

/// Samples asked for at once.
const AT_ONCE: usize = 8;
/// Shortest time between two rounds.
const SHORTEST: Duration = Duration::from_secs(5);

/// Agents and their order.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Containers, such as container/alice, or `containers` [default: running containers in order of name, up to --limit]
    #[arg(value_name = "containers|container/NAME", value_parser = which)]
    which: Vec<Which>,
    /// Filter by name
    #[arg(long, value_name = "TEXT", conflicts_with = "which")]
    search: Option<String>,
    /// Maximum number of containers shown, up to 200
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=200))]
    limit: u16,
    /// Order of the containers shown
    #[arg(long, value_name = "COLUMN", value_enum, default_value_t)]
    sort_by: Order,
    /// Repeat until interrupted
    #[arg(short, long)]
    watch: bool,
    /// Time between samples, at least 5s
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = interval, requires = "watch")]
    interval: Duration,
    #[command(flatten)]
    output: OutputArgs,
}

/// Order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Order {
    /// Name
    #[default]
    Name,
    /// CPU, highest first
    Cpu,
    /// Memory, highest first
    Memory,
}

#[derive(Debug, Clone)]
enum Which {
    Running,
    One(String),
}

fn which(text: &str) -> Result<Which, String> {
    let is_kind = kinds::named(text).is_some_and(|kind| kind.singular == "container");
    if is_kind {
        return Ok(Which::Running);
    }
    let Object(thing) = text.parse()?;
    match thing.kind.singular {
        "container" | "user" => Ok(Which::One(thing.name)),
        other => Err(format!(
            "a {other} has no CPU and memory; use container/NAME"
        )),
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration(text)?;
    match interval >= SHORTEST {
        true => Ok(interval),
        false => Err("use 5s or more: each sample costs the engine up to two seconds".to_owned()),
    }
}

/// Prints the resource use of agents.
///
/// # Errors
/// No server answers, it refuses, or a sample cannot be taken.
pub async fn top(server: &Server, args: TopArgs) -> Result {
    let clears = args.watch
        && std::io::stdout().is_terminal()
        && matches!(args.output.format, Format::Table | Format::Wide);
    loop {
        let began = Instant::now();
        match round(server, &args, clears).await {
            // The server may come back.
            Err(Failure::Unavailable(why)) if args.watch => screen::note(&why),
            Err(Failure::Reported) if args.watch => {}
            ended => ended?,
        }
        if !args.watch {
            return Ok(());
        }
        sleep_until(began + args.interval).await;
    }
}

/// Takes one sample of each agent and prints them.
async fn round(server: &Server, args: &TopArgs, clears: bool) -> Result {
    let names = names(server, args).await?;
    let asked = futures::stream::iter(names.iter()).map(|name| async move {
        let path = format!("/api/admin/container/stats?username={}", escaped(name));
        (name, server.get(&path).await)
    });
    let answers: Vec<_> = asked.buffered(AT_ONCE).collect().await;
    let mut rows = Vec::with_capacity(answers.len());
    let mut failures = Vec::new();
    for (name, answer) in answers {
        match answer {
            Ok(answer) => rows.push(json!({ "username": name, "stats": answer["stats"] })),
            Err(failure @ Failure::Unavailable(_)) => return Err(failure),
            Err(failure) if names.len() == 1 => return Err(failure),
            Err(failure) => failures.push(format!("error: container/{name}: {failure}")),
        }
    }
    sort(&mut rows, args.sort_by);
    let is_table = matches!(args.output.format, Format::Table | Format::Wide);
    if is_table {
        rows.iter_mut().for_each(add_texts);
    }
    if clears {
        screen::print("\x1b[H\x1b[2J")?;
    }
    let amount = match args.watch {
        true => Amount::Endless,
        false => Amount::List,
    };
    let mut printer = Printer::new(&RESOURCE_USE, args.output, amount);
    printer.print(&rows)?;
    printer.end()?;
    for failure in &failures {
        screen::note(failure);
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(Failure::Reported),
    }
}

/// Names of the agents to show.
async fn names(server: &Server, args: &TopArgs) -> Result<Vec<String>> {
    let named = args.which.iter().filter_map(|which| match which {
        Which::Running => None,
        Which::One(name) => Some(name.clone()),
    });
    let named: Vec<String> = named.collect();
    if !named.is_empty() {
        return Ok(named);
    }
    let mut path = format!(
        "/api/admin/users?status=running&page=1&page_size={}",
        args.limit
    );
    if let Some(search) = &args.search {
        path += &format!("&name={}", escaped(search));
    }
    let answer = server.get(&path).await?;
    let users = answer["users"].as_array().into_iter().flatten();
    let names: Vec<String> = users.map(|user| text(user, "username")).collect();
    let total = number(&answer, "total");
    if total > names.len() as u64 {
        screen::note(&format!(
            "{} of {total} running agents; --limit, --search or container/NAME shows others",
            names.len()
        ));
    }
    Ok(names)
}

fn sort(rows: &mut [Value], order: Order) {
    let cpu = |row: &Value| at(row, "stats.cpu_percent").as_f64().unwrap_or(0.0);
    match order {
        Order::Name => {}
        Order::Cpu => rows.sort_by(|a, b| cpu(b).total_cmp(&cpu(a))),
        Order::Memory => {
            rows.sort_by_key(|row| std::cmp::Reverse(number(row, "stats.memory_bytes")));
        }
    }
}

/// Adds the texts of the table's columns.
fn add_texts(row: &mut Value) {
    let stats = row["stats"].take();
    let (memory, limit) = (
        number(&stats, "memory_bytes"),
        number(&stats, "memory_limit_bytes"),
    );
    let cpu = at(&stats, "cpu_percent").as_f64().unwrap_or(0.0);
    let used = match limit {
        0 => String::new(),
        _ => format!("{}%", u128::from(memory) * 100 / u128::from(limit)),
    };
    let limit = match limit {
        0 => String::new(),
        _ => size(limit),
    };
    let of = |key: &str| at(&stats, key).as_u64().map(size);
    row["cpu"] = json!(format!("{cpu:.1}%"));
    row["memory"] = json!(size(memory));
    row["limit"] = json!(limit);
    row["used"] = json!(used);
    row["received"] = json!(of("network_rx_bytes"));
    row["sent"] = json!(of("network_tx_bytes"));
    row["stats"] = stats;
}

/// A size in one unit, with a decimal.
#[allow(clippy::cast_precision_loss)] // Three digits are shown.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64 / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    while value >= 1024.0
        && let Some(next) = units.next()
    {
        value /= 1024.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, cpu: f64, memory: u64) -> Value {
        json!({"username": name, "stats": {"cpu_percent": cpu, "memory_bytes": memory, "memory_limit_bytes": 1 << 30, "pids": 3}})
    }

    #[test]
    fn rows_are_sorted_highest_first() {
        let mut rows = [row("a", 1.0, 30), row("b", 20.5, 10), row("c", 3.0, 20)];
        let mut order = |by: Order| {
            sort(&mut rows, by);
            rows.iter()
                .map(|row| text(row, "username"))
                .collect::<String>()
        };
        assert_eq!(order(Order::Name), "abc");
        assert_eq!(order(Order::Cpu), "bca");
        assert_eq!(order(Order::Memory), "acb");
    }

    #[test]
    fn sizes_and_shares_are_texts() {
        let mut one = row("a", 12.34, 64 << 20);
        add_texts(&mut one);
        let shown = ["cpu", "memory", "limit", "used"].map(|key| text(&one, key));
        assert_eq!(shown, ["12.3%", "64.0 MiB", "1.0 GiB", "6%"]);
        assert_eq!(number(&one, "stats.pids"), 3);
        assert_eq!(size(512), "0.5 KiB");
        let mut unlimited = json!({"stats": {"memory_bytes": 1}});
        add_texts(&mut unlimited);
        assert_eq!(text(&unlimited, "used"), "");
    }

    #[test]
    fn agents_are_named_by_kind_or_singly() {
        assert!(matches!(which("containers"), Ok(Which::Running)));
        assert!(matches!(which("container/alice"), Ok(Which::One(name)) if name == "alice"));
        assert!(which("group/dev").is_err() && which("alice").is_err());
        assert!(interval("4s").is_err());
        assert_eq!(interval("1m"), Ok(Duration::from_secs(60)));
    }
}
