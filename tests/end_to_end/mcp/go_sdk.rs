//! What the Go SDK sends, which agents are built on, message by message as it was recorded: that of version 1.6 with a handshake, and
//! that of 1.7 without. It gives up a session for good over one HTTP error where it expects none.

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::support::{Events, Performer, Person, Yard};
use crate::support::Stage;

/// How long the headers of a stream may take: the SDK is not connected before.
const AT_ONCE: Duration = Duration::from_secs(2);
const CALL: &str = "tools/call";
const CANCELLED: &str = "notifications/cancelled";

/// A session of version 1.6.
struct Session<'a> {
    alice: &'a Person,
    id: String,
}

impl Session<'_> {
    async fn begin(alice: &Person) -> Session<'_> {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "capabilities": {"roots": {"listChanged": true}},
            "clientInfo": {"name": "picoclaw", "version": "1.0.0"}, "protocolVersion": "2025-11-25"}});
        let answered = alice.post("browser", message).await;
        assert_eq!(answered.status(), 200);
        let id = answered.headers()["mcp-session-id"].to_str().unwrap();
        let id = id.to_owned();
        let said: Value = answered.json().await.unwrap();
        assert_eq!(said["result"]["protocolVersion"], "2025-11-25");
        Session { alice, id }
    }

    fn request(&self, method: Method) -> reqwest::RequestBuilder {
        self.alice
            .request(method, "browser")
            .header("mcp-session-id", &self.id)
            .header("mcp-protocol-version", "2025-11-25")
    }

    /// Opens the stream; the id of its first event, which counts as progress.
    async fn listen(&self, last: Option<&str>) -> (Events, String) {
        let mut request = self.request(Method::GET);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let opened = timeout(AT_ONCE, request.send());
        let mut events = Events::new(opened.await.expect("headers come at once").unwrap());
        let first = events.frame().await;
        let id = first.strip_prefix("id: ").unwrap();
        let id = id.strip_suffix("\ndata:").unwrap().to_owned();
        assert!(id.starts_with("s."), "{first}");
        (events, id)
    }

    async fn post(&self, message: &Value) -> Response {
        let request = self.request(Method::POST).json(message);
        request.send().await.unwrap()
    }

    async fn ask(&self, id: u32, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let answered = self.post(&message).await;
        assert_eq!(answered.status(), 200, "{message}");
        answered.json().await.unwrap()
    }

    async fn note(&self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let answered = self.post(&message).await;
        assert_eq!(answered.status(), 202, "{message}");
        assert_eq!(answered.text().await.unwrap(), "");
    }
}

fn navigate() -> Value {
    json!({"name": "browser_navigate", "arguments": {"url": "https://example.org/"}})
}

#[tokio::test]
async fn version_1_6_keeps_its_session_over_lost_streams_errors_and_cancelled_calls() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let mut browser = Performer::start(alice.executor("browser").await);

    let session = Session::begin(&alice).await;
    let (mut stream, mut last) = session.listen(None).await;
    session.note("notifications/initialized", json!({})).await;
    // After the sixth without an event between, the SDK would give up.
    for _ in 0..6 {
        drop(stream);
        let (again, next) = session.listen(Some(&last)).await;
        assert_ne!(next, last);
        (stream, last) = (again, next);
    }
    browser.connect(alice.executor("browser").await);
    let (_, changed) = stream.next().await;
    assert!(changed.contains("notifications/tools/list_changed"));

    let wrong = [
        ("no/such", json!({}), -32601),
        ("resources/list", json!({}), -32601),
        (CALL, json!({"name": "no_such", "arguments": {}}), -32602),
        (CALL, json!({}), -32602),
        ("tools/list", json!({"cursor": "x"}), -32602),
    ];
    for (id, (method, params, code)) in (2..).zip(wrong) {
        let answered = session.ask(id, method, params).await;
        assert_eq!(answered["error"]["code"], code, "{method}: {answered}");
        assert_eq!(answered["id"], id);
    }
    let bad = json!({"name": "browser_navigate", "arguments": {"url": 1}});
    assert_eq!(session.ask(10, CALL, bad).await["result"]["isError"], true);
    assert_eq!(
        session.ask(11, "ping", json!({})).await["result"],
        json!({})
    );

    // A call is given up: the POST is closed, and then that is said, too.
    let click = json!({"jsonrpc": "2.0", "id": 12, "method": CALL,
        "params": {"name": "browser_click", "arguments": {"selector": "#a"}}});
    tokio::select! {
        answered = session.post(&click) => panic!("{answered:?}"),
        () = browser.asked_for("browser_click") => {}
    }
    let why = json!({"reason": "context canceled", "requestId": 12});
    session.note(CANCELLED, why).await;
    let never = json!({"reason": "context canceled", "requestId": 99});
    session.note(CANCELLED, never).await;
    session.note(CANCELLED, json!({})).await;
    let after = session.ask(13, CALL, navigate()).await;
    assert_eq!(after["result"].get("isError"), None, "{after}");

    let ended = session.request(Method::DELETE).send().await.unwrap();
    assert_eq!(ended.status(), 204);
    let gone = session.request(Method::GET).send().await.unwrap();
    assert_eq!(gone.status(), 404);
    assert!(gone.text().await.unwrap().contains("session not found"));
}

#[tokio::test]
async fn a_session_outlives_one_stream_too_many() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let session = Session::begin(&alice).await;
    let mut streams = Vec::new();
    for _ in 0..64 {
        streams.push(session.listen(None).await);
    }
    let another = session.request(Method::GET).send().await.unwrap();
    assert_eq!(another.status(), 200);
    let sent = timeout(AT_ONCE, another.text()).await.expect("it ends");
    let sent = sent.unwrap();
    assert!(sent.starts_with("retry: 5000\nid: s."), "{sent}");
    // Whoever has no session yet is told why.
    let old = alice.request(Method::GET, "browser").send().await.unwrap();
    assert_eq!(old.status(), 429);
}

#[tokio::test]
async fn version_1_7_asks_what_is_spoken_and_may_send_notifications_of_the_other_era() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let mut browser = Performer::start(alice.executor("browser").await);

    let post = async |method: &str, message: Value| {
        let mut request = alice
            .request(Method::POST, "browser")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method);
        if let Some(name) = message["params"]["name"].as_str() {
            request = request.header("mcp-name", name);
        }
        request.json(&message).send().await.unwrap()
    };
    let request = |id: u32, method: &str, mut params: Value| {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "picoclaw", "version": "1.0.0"},
            "io.modelcontextprotocol/clientCapabilities": {"roots": {"listChanged": true}}});
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    };
    let ask = async |id: u32, method: &str, params: Value| -> Value {
        let answered = post(method, request(id, method, params)).await;
        assert_eq!(answered.status(), 200);
        assert!(!answered.headers().contains_key("mcp-session-id"));
        answered.json().await.unwrap()
    };

    let found = ask(1, "server/discover", json!({})).await;
    let versions = found["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")), "{found}");
    let listed = ask(2, "tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"][0]["name"], "browser_navigate");
    let called = ask(3, CALL, navigate()).await;
    assert_eq!(called["result"]["resultType"], "complete", "{called}");

    let click = json!({"name": "browser_click", "arguments": {"selector": "#a"}});
    tokio::select! {
        answered = post(CALL, request(4, CALL, click)) => panic!("{answered:?}"),
        () = browser.asked_for("browser_click") => {}
    }
    // Without `_meta`, as in the other era.
    let why = json!({"jsonrpc": "2.0", "method": CANCELLED,
        "params": {"reason": "context canceled", "requestId": 4}});
    assert_eq!(post(CANCELLED, why).await.status(), 202);
    // The closed POST alone has cancelled it.
    let after = ask(5, CALL, navigate()).await;
    assert_eq!(after["result"].get("isError"), None, "{after}");

    let opened = alice
        .request(Method::GET, "browser")
        .header("mcp-protocol-version", "2026-07-28");
    let refused = opened.send().await.unwrap();
    assert_eq!(refused.status(), 405);
    assert_eq!(refused.headers()["allow"], "POST");
}

#[tokio::test]
async fn a_slow_answer_comes_as_an_event() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let wait = json!({"jsonrpc": "2.0", "id": "w", "method": CALL,
        "params": {"name": "computer_wait", "arguments": {"ms": 21_000}}});
    let answered = alice.post("computer", wait).await;
    assert_eq!(answered.headers()[CONTENT_TYPE], "text/event-stream");
    let (name, data) = Events::new(answered).next().await;
    let said: Value = serde_json::from_str(&data).unwrap();
    assert_eq!((name.as_str(), &said["id"]), ("message", &json!("w")));
    assert_eq!(said["result"].get("isError"), None, "{said}");
}
