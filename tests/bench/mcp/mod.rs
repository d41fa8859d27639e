//! Tool calls from a client to an executor and back, against a bare relay of the same hops: a process that passes what is posted
//! to it on over a WebSocket, and posts back what comes. And what connections cost that do nothing.
//!
//! Goals: 0.3 ms more at the median and 2 ms at the 99th percentile at 100 calls a second, 10,000 calls a second on two cores, 5 ms
//! more for a screenshot of 1 MB; at most 30 KB for a stream of HTTP+SSE and 12 KB for a WebSocket. Clients and executors share the
//! cores with both relays.

pub mod bare;
mod idle;
mod lane;

use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use self::bare::Bare;
use self::lane::Lane;
use crate::support::{Client, McpUser, Service, Stage};

/// Users that call, each with an executor.
const USERS: usize = 16;
/// Calls of one user at once.
const AT_ONCE: usize = 4;
/// Calls at a fixed rate, and the time between two.
const CALLS: usize = 1_000;
const TICK: Duration = Duration::from_millis(10);
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(4);
const SCREENSHOTS: usize = 60;
const SCREENSHOT: usize = 1_000_000;

/// A tool that only looks, and one whose answer is large.
const SMALL: (&str, &str) = ("browser", "browser_current_tab");
const LARGE: (&str, &str) = ("computer", "computer_screenshot");

pub async fn run() {
    let stage = Stage::new();
    let service = stage
        .alone()
        .set("container.autostart", "false")
        // All clients come from one address.
        .set("web.trusted_proxies", r#"["127.0.0.1"]"#)
        .start()
        .await;
    let admin = service.admin().await;
    let bench = Bench::open(&service, &admin).await;
    bench.latency().await;
    bench.throughput().await;
    bench.screenshots().await;
    drop(bench);
    idle::run(&service, &admin).await;
}

struct Bench<'a> {
    service: &'a Service,
    bare: Bare,
    users: Vec<McpUser>,
    _executors: JoinSet<()>,
}

impl<'a> Bench<'a> {
    async fn open(service: &'a Service, admin: &Client) -> Self {
        let bare = Bare::start().await;
        let mut users = Vec::new();
        let mut executors = JoinSet::new();
        for number in 0..USERS {
            let user = McpUser::create(service, admin, &format!("bench{number}")).await;
            executors.spawn(execute(user.executor(SMALL.0).await.socket));
            executors.spawn(execute(bare.executor(number).await));
            users.push(user);
        }
        executors.spawn(execute(users[0].executor(LARGE.0).await.socket));
        Self {
            service,
            bare,
            users,
            _executors: executors,
        }
    }

    /// A connection of a user's client for calls of a tool, and one to the bare relay that carries the same.
    async fn lanes(&self, user: usize, (kind, tool): (&str, &str)) -> [Lane; 2] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": {}}});
        let token = &self.users[user].token;
        let path = format!("/api/mcp/sse/{kind}");
        let ours = Lane::open(self.service.address(), &path, token, &message).await;
        let path = format!("/{user}");
        let bare = Lane::open(self.bare.address, &path, token, &message).await;
        [ours, bare]
    }

    async fn latency(&self) {
        let mut lanes = Vec::new();
        for user in 0..USERS {
            lanes.push(self.lanes(user, SMALL).await);
        }
        let mut times = [Vec::new(), Vec::new()];
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for number in 0..CALLS {
            ticks.tick().await;
            // Neither always has the other's wake.
            let order = if number % 2 == 0 { [0, 1] } else { [1, 0] };
            for which in order {
                let begin = Instant::now();
                lanes[number % USERS][which].call().await;
                times[which].push(begin.elapsed());
            }
        }
        println!("mcp: {CALLS} calls, 100 a second");
        shown(times, "0.3", "2");
    }

    async fn throughput(&self) {
        let mut best = [0.0_f64; 2];
        let mut processor = Duration::MAX;
        for _ in 0..ROUNDS {
            for which in [1, 0] {
                let before = self.service.processor_time();
                let begin = Instant::now();
                let mut lanes = JoinSet::new();
                for user in 0..USERS {
                    for _ in 0..AT_ONCE {
                        let [ours, bare] = self.lanes(user, SMALL).await;
                        let mut lane = if which == 0 { ours } else { bare };
                        lanes.spawn(async move {
                            let mut calls = 0_u32;
                            while begin.elapsed() < ROUND {
                                lane.call().await;
                                calls += 1;
                            }
                            calls
                        });
                    }
                }
                let calls: u32 = lanes.join_all().await.iter().sum();
                let rate = f64::from(calls) / begin.elapsed().as_secs_f64();
                best[which] = best[which].max(rate);
                if which == 0 {
                    let used = self.service.processor_time() - before;
                    processor = processor.min(used / calls);
                }
            }
        }
        println!("mcp: {} calls at once", USERS * AT_ONCE);
        println!("  bare relay  {:>8.0}/s", best[1]);
        println!(
            "  agentyard   {:>8.0}/s   ratio {:.2}",
            best[0],
            best[1] / best[0]
        );
        println!(
            "  processor time of a call {:.0} µs: two cores of its own carry {:.0}/s (goal 10000)",
            processor.as_secs_f64() * 1e6,
            2.0 / processor.as_secs_f64()
        );
    }

    async fn screenshots(&self) {
        let mut lanes = self.lanes(0, LARGE).await;
        let mut times = [Vec::new(), Vec::new()];
        for number in 0..2 * SCREENSHOTS {
            let which = number % 2;
            let begin = Instant::now();
            assert!(lanes[which].call().await > SCREENSHOT);
            times[which].push(begin.elapsed());
        }
        println!("mcp: {SCREENSHOTS} screenshots of {SCREENSHOT} bytes, one after another");
        shown(times, "5", "-");
    }
}

/// Medians and 99th percentiles of ours and of the bare relay.
fn shown(mut times: [Vec<Duration>; 2], median_goal: &str, goal: &str) {
    let [ours, bare] = [0, 1].map(|which| {
        let times = &mut times[which];
        times.sort();
        [times.len() / 2, times.len() * 99 / 100].map(|at| times[at].as_secs_f64() * 1e3)
    });
    let line = |name: &str, [median, high]: [f64; 2]| {
        println!("  {name:<10}  p50 {median:>7.3} ms   p99 {high:>7.3} ms");
    };
    line("bare relay", bare);
    line("agentyard", ours);
    println!(
        "  more        p50 {:>7.3} ms (goal {median_goal})   p99 {:>7.3} ms (goal {goal})",
        ours[0] - bare[0],
        ours[1] - bare[1]
    );
}

/// Answers at once whatever is asked.
async fn execute<S>(mut socket: WebSocketStream<S>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let image = "A".repeat(SCREENSHOT);
    let image = format!(
        r#"{{"content":[{{"type":"text","text":"1920x1080"}},{{"type":"image","mimeType":"image/png","data":"{image}"}}]}}"#
    );
    let tab = r#"{"success":true,"tab":{"id":7,"url":"https://example.org/","title":"Example"}}"#;
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else {
            continue;
        };
        // Questions begin with their number.
        let Some((id, rest)) = text
            .strip_prefix("{\"id\":")
            .and_then(|t| t.split_once(','))
        else {
            continue;
        };
        let result = if rest.contains(LARGE.1) { &image } else { tab };
        let answer = format!("{{\"id\":{id},\"result\":{result}}}");
        if socket.send(Message::Text(answer.into())).await.is_err() {
            return;
        }
    }
}
