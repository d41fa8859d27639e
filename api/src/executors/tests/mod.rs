//! The hub with real WebSockets over connections in memory: scripted executors of the first kind, with the faults that such have.

mod rules;

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use schema::ids::{Timestamp, Uid};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::frame::Outcome;
use super::*;
use crate::long_work::run_blocking;

/// Which of the user's tokens everybody shows.
const TOKEN: i64 = 3;
const LIMIT: Duration = Duration::from_secs(30);
const MIB: usize = 1024 * 1024;

fn key(user: u8, service: Service) -> Key {
    let user = Uid::from(format!("{user:032x}"));
    Key { user, service }
}

/// An executor that is connected, and takes what it is told.
pub(crate) fn connected(hub: &Hub, key: Key, about: About) -> ConnectionId {
    let (connection, orders) = hub.connect(key, about);
    std::mem::forget(orders);
    connection
}

/// A hub that keeps its times.
struct Yard {
    hub: Hub,
    shutdown: CancellationToken,
    running: JoinHandle<()>,
}

impl Yard {
    fn new() -> Self {
        let (hub, shutdown) = (Hub::default(), CancellationToken::new());
        let running = TaskTracker::new().spawn(hub.clone().run(shutdown.clone()));
        Self {
            hub,
            shutdown,
            running,
        }
    }

    /// An executor that is connected.
    async fn executor(&self, key: &Key) -> Executor {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let about = About {
            user: "alice".parse().unwrap(),
            address: Some(std::net::Ipv4Addr::LOCALHOST.into()),
            token: TOKEN,
            user_agent: "test".to_owned(),
            since: Timestamp::from_secs(1_778_500_000),
            host: None,
        };
        let before = self.hub.of_key(key).first().map(|first| first.connection);
        let served = TaskTracker::new().spawn(serve(
            ours,
            expect(self.hub.clone(), key.clone(), about).unwrap(),
        ));
        let config = WebSocketConfig::default()
            .max_message_size(None)
            .max_frame_size(None);
        let socket = WebSocketStream::from_raw_socket(theirs, Role::Client, Some(config)).await;
        let connected = async {
            while self.hub.of_key(key).first().map(|first| first.connection) == before {
                tokio::task::yield_now().await;
            }
        };
        connected.await;
        Executor { socket, served }
    }

    async fn call(&self, key: &Key, tool: &str, params: Value) -> Result<Outcome, Ask> {
        let mut job = self
            .hub
            .enter(key.clone(), TOKEN, Lane::Act, None)
            .await
            .unwrap();
        let params = serde_json::value::to_raw_value(&params).unwrap();
        let answer = job.ask(tool, &params, LIMIT).await;
        answer.map(|answer| answer.outcome)
    }
}

/// The other end.
struct Executor {
    socket: WebSocketStream<DuplexStream>,
    served: JoinHandle<()>,
}

impl Executor {
    /// The next question: its number and the whole frame.
    async fn question(&mut self) -> (u64, Value) {
        loop {
            match self.socket.next().await.unwrap().unwrap() {
                Message::Text(text) => {
                    let frame: Value = serde_json::from_str(&text).unwrap();
                    return (frame["id"].as_u64().unwrap(), frame);
                }
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn send(&mut self, text: impl Into<String>) {
        let text: String = text.into();
        self.socket.send(Message::Text(text.into())).await.unwrap();
    }

    /// How the other side ends it: what it says before, the code and the reason.
    async fn ended(mut self) -> (Vec<Value>, Option<(u16, String)>) {
        let mut said = Vec::new();
        let mut close = None;
        while let Some(Ok(message)) = self.socket.next().await {
            match message {
                Message::Text(text) => said.push(serde_json::from_str(&text).unwrap()),
                Message::Close(frame) => {
                    close = frame.map(|frame| (frame.code.into(), frame.reason.to_string()));
                }
                _ => {}
            }
        }
        self.served.await.unwrap();
        (said, close)
    }
}

fn value(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Result(value) => serde_json::from_str(value.get()).unwrap(),
        Outcome::Error(message) => panic!("{message}"),
    }
}

#[tokio::test]
async fn questions_go_out_and_answers_come_back_whatever_else_is_said() {
    let yard = Yard::new();
    let key = key(1, Service::Browser);
    let mut executor = yard.executor(&key).await;
    let asked = async {
        let params = json!({ "url": "https://a/" });
        yard.call(&key, "browser_navigate", params).await.unwrap()
    };
    let answered = async {
        let (id, frame) = executor.question().await;
        let expected =
            json!({ "id": 1, "tool": "browser_navigate", "params": { "url": "https://a/" } });
        assert_eq!(frame, expected);
        executor.send("").await;
        executor.send("no JSON").await;
        executor.send(r#"{"id":77,"result":"of nobody"}"#).await;
        executor
            .send(format!(r#"{{"id":"{id}","result":{{"success":true}}}}"#))
            .await;
    };
    let (outcome, ()) = tokio::join!(asked, answered);
    assert_eq!(value(&outcome), json!({ "success": true }));
    let connected = yard.hub.connected();
    assert_eq!((connected.len(), connected[0].late), (1, 0));
}

#[tokio::test]
async fn an_error_is_its_message() {
    let yard = Yard::new();
    let key = key(1, Service::Browser);
    let mut executor = yard.executor(&key).await;
    let answered = async {
        let (id, _) = executor.question().await;
        executor
            .send(format!(
                r#"{{"id":{id},"error":{{"message":"no such tab"}}}}"#
            ))
            .await;
    };
    let (outcome, ()) = tokio::join!(yard.call(&key, "t", json!({})), answered);
    let Outcome::Error(message) = outcome.unwrap() else {
        panic!("no error");
    };
    assert_eq!(message, "no such tab");
}

#[tokio::test]
async fn l52_a_screenshot_of_five_mebibytes_comes_whole_and_one_of_forty_ends_the_connection() {
    let yard = Yard::new();
    let key = key(1, Service::Computer);
    let mut executor = yard.executor(&key).await;
    let image = "x".repeat(5 * MIB);
    let answered = async {
        let (id, _) = executor.question().await;
        executor
            .send(format!(r#"{{"id":{id},"result":{{"image":"{image}"}}}}"#))
            .await;
    };
    let (outcome, ()) = tokio::join!(yard.call(&key, "computer_screenshot", json!({})), answered);
    let found = value(&outcome.unwrap());
    assert_eq!(found["image"].as_str().unwrap().len(), 5 * MIB);

    let answered = async {
        let (id, _) = executor.question().await;
        let image = "x".repeat(40 * MIB);
        let text = format!(r#"{{"id":{id},"result":"{image}"}}"#);
        // It is cut off while it sends.
        let _ = executor.socket.send(Message::Text(text.into())).await;
    };
    let (outcome, ()) = tokio::join!(yard.call(&key, "computer_screenshot", json!({})), answered);
    assert_eq!(outcome.err(), Some(Ask::Failed(Failure::Lost)));
    assert!(yard.hub.connected().is_empty());
}

#[tokio::test]
async fn pings_are_answered_while_a_long_answer_waits_to_be_parsed_and_it_arrives_before_the_end() {
    // Both places for long texts are taken.
    let mut places = Vec::new();
    for _ in 0..2 {
        let (release, held) = std::sync::mpsc::channel::<()>();
        let (begun, beginning) = tokio::sync::oneshot::channel();
        TaskTracker::new().spawn(run_blocking(move || {
            let _ = begun.send(());
            let _ = held.recv();
        }));
        beginning.await.unwrap();
        places.push(release);
    }
    let yard = Yard::new();
    let key = key(1, Service::Computer);
    let mut executor = yard.executor(&key).await;
    let answered = async {
        let (id, _) = executor.question().await;
        let text = "x".repeat(MIB);
        executor
            .send(format!(r#"{{"id":{id},"result":"{text}"}}"#))
            .await;
        executor.send("").await;
        let ping = Message::Ping(vec![7].into());
        executor.socket.send(ping).await.unwrap();
        let pong = timeout(LIMIT, executor.socket.next()).await;
        let pong = pong.expect("it is answered").unwrap().unwrap();
        assert_eq!(pong, Message::Pong(vec![7].into()));
        assert_eq!(yard.hub.connected()[0].calls, 1, "it is not parsed yet");
        executor.socket.close(None).await.unwrap();
        drop(places);
    };
    let (outcome, ()) = tokio::join!(yard.call(&key, "t", json!({})), answered);
    assert_eq!(value(&outcome.unwrap()).as_str().unwrap().len(), MIB);
}

#[tokio::test]
async fn l48_the_newer_connection_is_asked_and_the_older_is_told() {
    let yard = Yard::new();
    let key = key(1, Service::Browser);
    let mut older = yard.executor(&key).await;
    let call = {
        let (hub, key) = (yard.hub.clone(), key.clone());
        TaskTracker::new().spawn(async move {
            let mut job = hub.enter(key, TOKEN, Lane::Act, None).await.unwrap();
            job.ask("t", RawValue::NULL, LIMIT).await.err()
        })
    };
    older.question().await;
    let mut newer = yard.executor(&key).await;
    assert_eq!(call.await.unwrap(), Some(Ask::Failed(Failure::Replaced)));
    let (said, close) = older.ended().await;
    assert_eq!(said, [json!({ "type": "bye", "reason": "replaced" })]);
    assert_eq!(close, Some((1000, "replaced".to_owned())));
    let answered = async {
        let (id, _) = newer.question().await;
        assert_eq!(id, 1, "numbers are the connection's own");
        newer.send(r#"{"id":1,"result":null}"#).await;
    };
    let (outcome, ()) = tokio::join!(yard.call(&key, "t", json!({})), answered);
    assert_eq!(value(&outcome.unwrap()), Value::Null);
}

#[tokio::test]
async fn a_frame_that_the_desktop_would_not_survive_is_not_sent() {
    let yard = Yard::new();
    let key = key(1, Service::Computer);
    let mut executor = yard.executor(&key).await;
    let content = "x".repeat(MIB);
    let outcome = yard
        .call(&key, "computer_file_write", json!({ "content": content }))
        .await;
    assert_eq!(outcome.err(), Some(Ask::TooLong(MIB)));
    let content = "x".repeat(MIB - 200);
    let answered = async {
        let Some(Ok(Message::Text(text))) = executor.socket.next().await else {
            panic!("no question");
        };
        assert!((MIB - 200..=MIB).contains(&text.len()), "{}", text.len());
        executor.send(r#"{"id":1,"result":{"ok":true}}"#).await;
    };
    let call = yard.call(&key, "computer_file_write", json!({ "content": content }));
    let (outcome, ()) = tokio::join!(call, answered);
    outcome.unwrap();
}

#[tokio::test(start_paused = true)]
async fn l50_a_peer_that_says_nothing_is_given_up_and_pinged_before() {
    let yard = Yard::new();
    let key = key(1, Service::Browser);
    let executor = yard.executor(&key).await;
    // Nobody reads at the other end, so no ping is answered.
    tokio::time::sleep(Duration::from_secs(74)).await;
    assert_eq!(yard.hub.connected().len(), 1);
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert!(yard.hub.connected().is_empty());
    // Nobody hears the goodbye, and it is not waited for.
    timeout(Duration::from_secs(5), executor.served)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_that_answers_pings_or_sends_its_empty_text_stays() {
    let yard = Yard::new();
    let (browser, computer) = (key(1, Service::Browser), key(1, Service::Computer));
    let mut extension = yard.executor(&browser).await;
    let mut desktop = yard.executor(&computer).await;
    // The desktop answers pings by reading; the extension does so, too, and says that it is there.
    let reading = TaskTracker::new()
        .spawn(async move { while let Some(Ok(_)) = desktop.socket.next().await {} });
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_secs(20)).await;
        extension.send("").await;
    }
    assert_eq!(yard.hub.connected().len(), 2);
    reading.abort();
}

#[tokio::test(start_paused = true)]
async fn l49_a_call_ends_at_its_time_and_the_answer_that_comes_then_harms_nobody() {
    let yard = Yard::new();
    let key = key(1, Service::Browser);
    let mut executor = yard.executor(&key).await;
    let begin = tokio::time::Instant::now();
    let outcome = yard.call(&key, "t", json!({})).await;
    assert_eq!(outcome.err(), Some(Ask::Failed(Failure::TimedOut)));
    assert_eq!(begin.elapsed().as_secs(), LIMIT.as_secs());
    let (id, _) = executor.question().await;
    executor
        .send(format!(r#"{{"id":{id},"result":"late"}}"#))
        .await;
    let answered = async {
        let (id, _) = executor.question().await;
        executor
            .send(format!(r#"{{"id":{id},"result":"in time"}}"#))
            .await;
    };
    let (outcome, ()) = tokio::join!(yard.call(&key, "t", json!({})), answered);
    assert_eq!(value(&outcome.unwrap()), "in time");
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_room_for_the_next() {
    let yard = Yard::new();
    let key = key(1, Service::Browser);
    let mut executor = yard.executor(&key).await;
    let short = Duration::from_millis(50);
    assert!(
        timeout(short, yard.call(&key, "t", json!({})))
            .await
            .is_err()
    );
    let answered = async {
        executor.question().await;
        let (id, _) = executor.question().await;
        executor.send(format!(r#"{{"id":{id},"result":1}}"#)).await;
    };
    let (outcome, ()) = tokio::join!(yard.call(&key, "t", json!({})), answered);
    assert_eq!(value(&outcome.unwrap()), 1);
}

#[tokio::test]
async fn a_revoked_token_ends_the_connections_of_its_user_alone() {
    let yard = Yard::new();
    let first = yard.executor(&key(1, Service::Browser)).await;
    let _second = yard.executor(&key(2, Service::Browser)).await;
    let user = key(1, Service::Browser).user;
    yard.hub.revoke(&user, TOKEN - 1);
    assert_eq!(yard.hub.connected().len(), 2);
    yard.hub.revoke(&user, TOKEN);
    let (_, close) = first.ended().await;
    assert_eq!(close.map(|(code, _)| code), Some(4403));
    let connected = yard.hub.connected();
    assert_eq!(connected.len(), 1);
    assert_eq!(connected[0].key, key(2, Service::Browser));
}

#[tokio::test]
async fn at_the_end_of_the_service_all_are_told() {
    let yard = Yard::new();
    let executor = yard.executor(&key(1, Service::Browser)).await;
    yard.shutdown.cancel();
    yard.running.await.unwrap();
    let (_, close) = executor.ended().await;
    assert_eq!(close.map(|(code, _)| code), Some(1012));
}

#[tokio::test]
async fn who_introduces_itself_is_welcome_and_known_by_name() {
    let yard = Yard::new();
    let key = key(1, Service::Browser);
    let mut executor = yard.executor(&key).await;
    let hello = json!({
        "type": "hello", "protocol": 2, "instance": "i-1", "label": "my laptop",
        "client": { "name": "extension", "version": "9", "platform": "linux" },
        "tools": ["browser_navigate"], "features": ["cancel"],
    });
    executor.send(hello.to_string()).await;
    let Some(Ok(Message::Text(text))) = executor.socket.next().await else {
        panic!("no welcome");
    };
    let welcome: Value = serde_json::from_str(&text).unwrap();
    let limits = json!({ "message_bytes": 8 * MIB });
    let expected = json!({ "type": "welcome", "protocol": 2, "limits": limits });
    assert_eq!(welcome, expected);
    let connected = yard.hub.connected();
    assert_eq!(connected[0].label.as_deref(), Some("my laptop"));
    // A second one changes nothing.
    let again = hello.to_string().replace("my laptop", "another");
    executor.send(again).await;
    // It is told when nobody waits any more.
    let short = Duration::from_millis(50);
    assert!(
        timeout(short, yard.call(&key, "t", json!({})))
            .await
            .is_err()
    );
    let (id, _) = executor.question().await;
    let (cancelled, frame) = executor.question().await;
    assert_eq!((cancelled, &frame["type"]), (id, &json!("cancel")));
}
