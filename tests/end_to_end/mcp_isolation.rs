//! Fifty users at once, each with a client and both executors: whatever executors do, nobody is asked for another user, and nobody
//! gets an answer of another user's executor (L54).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::chance::Chance;
use crate::support::mcp::Executor;
use crate::support::{McpUser, PATIENCE, Stage, long, seconds};

const USERS: usize = 50;
/// Calls of one user at one service that are under way at once.
const AT_ONCE: usize = 4;

fn name_of(number: usize) -> String {
    format!("person{number:02}")
}

/// Whether a text names a user other than `own`.
fn names_another(text: &str, own: &str) -> bool {
    let named = text.match_indices("person").map(|(at, _)| &text[at..]);
    let mut others = named.filter(|rest| !rest.starts_with(own));
    others.next().is_some()
}

/// What all users share.
struct Run {
    seed: u64,
    calls: usize,
    over: AtomicBool,
    /// How many calls of all users had an answer.
    answered: AtomicUsize,
    connections: AtomicUsize,
}

impl Run {
    fn check(&self, holds: bool, what: impl FnOnce() -> String) {
        assert!(holds, "seed {}: {}", self.seed, what());
    }
}

/// An executor that answers late, twice, in any order or not at all, says what nobody asked for, and comes and goes.
async fn execute(run: &Run, user: &McpUser, service: &str) {
    let by = format!("{}/{service}", user.name);
    let chance = Chance::new(run.seed, &by);
    let mut replaced: Option<Executor> = None;
    while !run.over.load(Ordering::Relaxed) {
        // On a busy machine the service sees the end of some only after their successors.
        let Some(mut executor) = user.try_executor(service).await else {
            drop(replaced.take());
            tokio::time::sleep(chance.some_time(50)).await;
            continue;
        };
        run.connections.fetch_add(1, Ordering::Relaxed);
        // Now and then the older one is still there when the newer one comes.
        drop(replaced.take());
        let end = Instant::now() + chance.millis(20, 600);
        // The questions that wait for an answer, and when each gets it.
        let mut due: BTreeMap<(Instant, u64), Value> = BTreeMap::new();
        loop {
            let next = due.keys().next().map_or(end, |(at, _)| (*at).min(end));
            tokio::select! {
                question = executor.next() => {
                    let Some(question) = question else { break };
                    let Some(id) = question["id"].as_u64() else { continue };
                    // Which says nothing of who asks.
                    if question["tool"] == "browser_current_tab" {
                        executor.answer(&question, json!({"tab": {"url": "https://example.org/"}})).await;
                        continue;
                    }
                    let text = question.to_string();
                    run.check(text.contains(&by), || format!("{by} is asked {text}"));
                    run.check(!names_another(&text, &user.name), || format!("{by} is asked {text}"));
                    due.insert((Instant::now() + chance.some_time(40), id), question);
                }
                () = sleep_until(next) => {
                    if Instant::now() >= end {
                        break;
                    }
                    let Some(((_, id), question)) = due.pop_first() else { continue };
                    let result = json!({"by": by, "echo": question["params"]});
                    let answer = json!({"id": id, "result": result}).to_string();
                    let forged = json!({"by": by, "forged": true});
                    let forged = json!({"id": chance.between(0, 40), "result": forged}).to_string();
                    let frames = match chance.below(10) {
                        0 => vec![],
                        1 => vec![answer.clone(), answer],
                        2 => vec![forged, answer],
                        _ => vec![answer],
                    };
                    for frame in frames {
                        executor.send(frame).await;
                    }
                }
            }
        }
        if chance.per_mille(300) {
            replaced = Some(executor);
        } else {
            drop(executor);
            tokio::time::sleep(chance.some_time(200)).await;
        }
    }
}

/// A client whose calls bear its user's name.
async fn call(run: &Run, user: &McpUser, service: &str) {
    let by = format!("{}/{service}", user.name);
    let lane = async |lane: usize| {
        for number in 0..run.calls / AT_ONCE {
            let mark = format!("{by}/{lane}/{number}");
            // One that looks and one that acts, in turn; at a desktop, which does one thing at a time, the same.
            let (tool, arguments) = match (service, number % 2) {
                ("browser", 0) => (
                    "browser_get_attribute",
                    json!({"selector": mark, "name": "id"}),
                ),
                ("browser", _) => ("browser_wait", json!({"selector": mark, "timeout": 100})),
                (_, 0) => ("computer_file_list", json!({"path": mark})),
                (_, _) => ("computer_file_write", json!({"path": mark, "content": "x"})),
            };
            let result = user.call(service, tool, arguments.clone()).await;
            let text = result.to_string();
            run.check(!names_another(&text, &user.name), || {
                format!("{by} gets {text}")
            });
            let answer = match &result["structuredContent"] {
                Value::Null => &result["_meta"]["agentyard/facts"],
                shown => shown,
            };
            if result["isError"] == true {
                run.check(!text.contains("person"), || format!("{by}: {text}"));
                continue;
            }
            run.answered.fetch_add(1, Ordering::Relaxed);
            run.check(answer["by"] == by, || format!("{by} gets {text}"));
            let own = answer["forged"] == true || answer["echo"] == arguments;
            run.check(own, || format!("{mark} gets {text}"));
        }
    };
    join_all((0..AT_ONCE).map(lane)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l54_fifty_users_at_once_meet_their_own_executors_alone() {
    let stage = Stage::new();
    // All of them come from one address, which therefore may have as many connections as it wants.
    let launch = stage
        .alone()
        .set("container.autostart", "false")
        .set("web.trusted_proxies", "[\"127.0.0.1\"]");
    let service = launch.start().await;
    let admin = service.admin().await;
    let mut users = Vec::new();
    for number in 0..USERS {
        users.push(McpUser::create(&service, &admin, &name_of(number)).await);
    }
    let seed = std::env::var("AGENTYARD_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok());
    let run = Arc::new(Run {
        seed: seed.unwrap_or_else(rand::random),
        calls: if long() { 400 } else { 8 },
        over: AtomicBool::new(false),
        answered: AtomicUsize::new(0),
        connections: AtomicUsize::new(0),
    });
    eprintln!("seed {}", run.seed);
    let (mut executors, mut clients) = (tokio::task::JoinSet::new(), tokio::task::JoinSet::new());
    for user in users {
        for service in ["browser", "computer"] {
            let (run, user) = (Arc::clone(&run), user.clone());
            let (run_too, user_too) = (Arc::clone(&run), user.clone());
            executors.spawn(async move { execute(&run, &user, service).await });
            clients.spawn(async move { call(&run_too, &user_too, service).await });
        }
    }
    let limit = seconds(if long() { 1200 } else { 300 });
    let all = async {
        loop {
            tokio::select! {
                // A client has come to its end, or has seen what must not be.
                Some(ended) = clients.join_next() => ended.unwrap(),
                // An executor only ends over that.
                Some(ended) = executors.join_next() => ended.unwrap(),
            }
            if clients.is_empty() {
                break;
            }
        }
    };
    let begin = Instant::now();
    let ended = tokio::time::timeout(limit, all).await;
    run.check(ended.is_ok(), || format!("not within {limit:?}"));
    run.over.store(true, Ordering::Relaxed);
    let rest = async {
        while let Some(ended) = executors.join_next().await {
            ended.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, rest).await.unwrap();

    let (answered, connections) = (
        run.answered.load(Ordering::Relaxed),
        run.connections.load(Ordering::Relaxed),
    );
    let calls = 2 * USERS * run.calls;
    eprintln!(
        "{answered} of {calls} calls answered, {connections} connections, {:?}",
        begin.elapsed()
    );
    // Enough of both happened for the rest to mean something.
    run.check(answered > calls / 4, || format!("only {answered} answers"));
    run.check(connections > 4 * USERS, || {
        format!("only {connections} connections")
    });
}
