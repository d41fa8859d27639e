//! Tool calls from a client to an executor and back, against a bare relay of the same hops: a process that passes what is posted
//! to it on over a WebSocket, and posts back what comes. And what connections cost that do nothing.
//!
//! Goals: 0.3 ms more at the median and 2 ms at the 99th percentile at 100 calls a second, 10,000 calls a second on two cores, 5 ms
//! more for a screenshot of 1 MB; at most 30 KB for a stream of HTTP+SSE and 12 KB for a WebSocket. Clients and executors share the
//! cores with both relays.

pub mod bare;
mod idle;
mod lane;

use std::io::Cursor;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::{SinkExt, StreamExt, stream};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use self::bare::Bare;
use self::lane::Lane;
use crate::support::{Client, McpUser, Service, Stage};

/// Users that call, each with both executors: of one user and service, ten calls a second are carried out.
const USERS: usize = 1_000;
/// Those that call at a fixed rate.
const FEW: usize = 16;
/// Connections to the bare relay for each of these.
const AT_ONCE: usize = 4;
/// Time between two calls of one user and service.
const PACE: Duration = Duration::from_millis(105);
/// Users that are created at once.
const CREATED: usize = 8;
/// Calls at a fixed rate, and the time between two.
const CALLS: usize = 1_000;
const TICK: Duration = Duration::from_millis(10);
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(4);
const SCREENSHOTS: usize = 60;
/// Most bytes of a picture that is passed on as it is.
const SCREENSHOT: usize = 1_000_000;

/// Tools that only look, and one whose answer is large.
const SMALL: (&str, &str) = ("browser", "browser_current_tab");
const SMALL_TOO: (&str, &str) = ("computer", "computer_screen_size");
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
        let create =
            async |number| McpUser::create(service, admin, &format!("bench{number}")).await;
        let users = stream::iter(0..USERS).map(create).buffered(CREATED);
        let users: Vec<McpUser> = users.collect().await;
        let mut executors = JoinSet::new();
        let picture: Arc<str> = picture().into();
        for user in &users {
            for kind in [SMALL.0, SMALL_TOO.0] {
                let socket = user.executor(kind).await.socket;
                executors.spawn(execute(socket, Arc::clone(&picture)));
            }
        }
        for number in 0..FEW {
            let socket = bare.executor(number).await;
            executors.spawn(execute(socket, Arc::clone(&picture)));
        }
        Self {
            service,
            bare,
            users,
            _executors: executors,
        }
    }

    /// A connection of a user's client for calls of a tool.
    async fn lane(&self, user: usize, (kind, tool): (&str, &str)) -> Lane {
        let path = format!("/api/mcp/sse/{kind}");
        Lane::open(
            self.service.address(),
            &path,
            &self.users[user].token,
            &calling(tool),
        )
        .await
    }

    /// One to the bare relay that carries the same.
    async fn bare_lane(&self, user: usize, (_, tool): (&str, &str)) -> Lane {
        let path = format!("/{user}");
        Lane::open(
            self.bare.address,
            &path,
            &self.users[user].token,
            &calling(tool),
        )
        .await
    }

    async fn latency(&self) {
        let mut lanes = Vec::new();
        for user in 0..FEW {
            lanes.push([
                self.lane(user, SMALL).await,
                self.bare_lane(user, SMALL).await,
            ]);
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
                lanes[number % FEW][which].call().await;
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
            let mut lanes = Vec::new();
            for user in 0..FEW {
                for _ in 0..AT_ONCE {
                    lanes.push(self.bare_lane(user, SMALL).await);
                }
            }
            let (_, rate) = round(lanes, Duration::ZERO).await;
            best[1] = best[1].max(rate);
            let mut lanes = Vec::new();
            for user in 0..USERS {
                lanes.push(self.lane(user, SMALL).await);
                lanes.push(self.lane(user, SMALL_TOO).await);
            }
            let before = self.service.processor_time();
            let (calls, rate) = round(lanes, PACE).await;
            best[0] = best[0].max(rate);
            let used = self.service.processor_time() - before;
            processor = processor.min(used / calls);
        }
        let offered = 2.0 * USERS as f64 / PACE.as_secs_f64();
        println!("mcp: as many calls as there can be, of {offered:.0} a second that are tried");
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
        let mut lanes = [self.lane(0, LARGE).await, self.bare_lane(0, LARGE).await];
        let mut times = [Vec::new(), Vec::new()];
        for number in 0..2 * SCREENSHOTS {
            let which = number % 2;
            sleep(PACE).await;
            let begin = Instant::now();
            assert!(lanes[which].call().await > SCREENSHOT);
            times[which].push(begin.elapsed());
        }
        println!("mcp: {SCREENSHOTS} screenshots of {SCREENSHOT} bytes, one after another");
        shown(times, "5", "-");
    }
}

fn calling(tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
}

/// How many calls all lanes together make, and how many in a second.
async fn round(lanes: Vec<Lane>, pace: Duration) -> (u32, f64) {
    let begin = Instant::now();
    let mut running = JoinSet::new();
    for mut lane in lanes {
        running.spawn(async move {
            let mut calls = 0_u32;
            while begin.elapsed() < ROUND {
                let next = sleep(pace);
                lane.call().await;
                calls += 1;
                next.await;
            }
            calls
        });
    }
    let calls: u32 = running.join_all().await.iter().sum();
    (calls, f64::from(calls) / begin.elapsed().as_secs_f64())
}

/// A picture of noise, whose bytes no format makes fewer.
fn picture() -> String {
    let side = 576;
    let noise = image::RgbImage::from_fn(side, side, |_, _| image::Rgb(rand::random()));
    let mut png = Cursor::new(Vec::new());
    noise.write_to(&mut png, image::ImageFormat::Png).unwrap();
    assert!(png.get_ref().len() <= SCREENSHOT);
    let data = STANDARD.encode(png.into_inner());
    format!(r#"{{"content":[{{"type":"image","mimeType":"image/png","data":"{data}"}}]}}"#)
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
async fn execute<S>(mut socket: WebSocketStream<S>, picture: Arc<str>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let small = r#"{"width":576,"height":576,"tab":{"id":7,"url":"https://example.org/","title":"Example"}}"#;
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
        let result = if rest.contains(LARGE.1) {
            &*picture
        } else {
            small
        };
        let answer = format!("{{\"id\":{id},\"result\":{result}}}");
        if socket.send(Message::Text(answer.into())).await.is_err() {
            return;
        }
    }
}
