//! What goes over the wire, rule by rule (executors.md, 2.1 to 2.7), where no official client shows it.

use std::time::Duration;

use reqwest::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::support::{Events, Person, SOON, Yard, answer, question};
use crate::support::{Stage, seconds, until};

const JSON: &str = "application/json; charset=utf-8";

impl Person {
    async fn sends(&self, kind: &'static str, body: impl Into<reqwest::Body>) -> Response {
        let request = self.request(Method::POST, "browser");
        let request = request.header(CONTENT_TYPE, kind).body(body);
        request.send().await.unwrap()
    }

    /// A stream of HTTP+SSE, and where is posted beside it.
    async fn stream(&self) -> (Events, String) {
        let opened = self.request(Method::GET, "browser").send().await.unwrap();
        let mut events = Events::new(opened);
        let (name, endpoint) = events.next().await;
        assert_eq!(name, "endpoint");
        (events, format!("http://{}{endpoint}", self.address))
    }

    async fn posts(&self, url: &str, body: String) -> Response {
        let request = self.http.post(url).bearer_auth(&self.token);
        let request = request.header(CONTENT_TYPE, JSON).body(body);
        request.send().await.unwrap()
    }
}

async fn error(response: Response) -> (u16, Value, Value) {
    let status = response.status().as_u16();
    let said: Value = response.json().await.unwrap();
    (status, said["error"]["code"].clone(), said["id"].clone())
}

#[tokio::test]
async fn bodies_have_a_type_a_length_and_a_shape() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let ping = r#"{"jsonrpc":"2.0","id":"p-1","method":"ping"}"#;
    assert_eq!(alice.sends(JSON, ping).await.status(), StatusCode::OK);
    for kind in ["text/plain", "application/x-www-form-urlencoded"] {
        let refused = alice.sends(kind, ping).await;
        assert_eq!(
            refused.status(),
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "{kind}"
        );
    }
    let long = format!("{ping}{}", " ".repeat(4 * 1024 * 1024));
    let refused = alice.sends(JSON, long).await;
    assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let with = |params: String| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{params}}}}}"#)
    };
    let deep = with(format!("{}{}", "[".repeat(100), "]".repeat(100)));
    assert_eq!(error(alice.sends(JSON, deep).await).await.1, -32700);
    // The slowest that is taken and the worst that is refused hold up nobody.
    let many = |values: usize| with(format!("[{}]", vec!["0"; values].join(",")));
    let taken = many(49_000);
    assert_eq!(alice.sends(JSON, taken).await.status(), StatusCode::OK);
    let worst = many(2_000_000);
    let begun = Instant::now();
    let (status, code, _) = error(alice.sends(JSON, worst).await).await;
    assert_eq!((status, code), (200, json!(-32600)));
    assert!(begun.elapsed() < seconds(5), "{:?}", begun.elapsed());
    let cut = error(alice.sends(JSON, "{").await).await;
    assert_eq!(cut, (400, json!(-32700), Value::Null));
    let params = r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":[1]}"#;
    let odd = error(alice.sends(JSON, params).await).await;
    assert_eq!(odd, (200, json!(-32600), json!("a")));
}

#[tokio::test]
async fn arrays_are_batches_of_one_revision_only() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let ping = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let send = async |version: Option<&'static str>, body: &Value| {
        let mut request = alice.request(Method::POST, "browser").json(body);
        if let Some(version) = version {
            request = request.header("mcp-protocol-version", version);
        }
        request.send().await.unwrap()
    };
    for version in [None, Some("2025-03-26")] {
        let answered = send(version, &json!([ping(1), note, ping(2)])).await;
        let mut answers: Vec<Value> = answered.json().await.unwrap();
        answers.sort_by_key(|answer| answer["id"].as_u64());
        let ids: Vec<_> = answers.iter().map(|answer| &answer["id"]).collect();
        assert_eq!(ids, [&json!(1), &json!(2)]);
        let noted = send(version, &json!([note, note])).await;
        assert_eq!(noted.status(), StatusCode::ACCEPTED);
    }
    let later = error(send(Some("2025-06-18"), &json!([ping(1)])).await).await;
    assert_eq!((later.0, later.1), (400, json!(-32600)));
    for count in [0, 21] {
        let all: Vec<_> = (0..count).map(ping).collect();
        let refused = error(send(None, &json!(all)).await).await;
        assert_eq!((refused.0, refused.1), (400, json!(-32600)), "{count}");
    }
}

#[tokio::test]
async fn only_what_opens_and_asks_is_a_method_here() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    for method in [Method::HEAD, Method::PUT, Method::PATCH] {
        let refused = alice.request(method.clone(), "browser").send().await;
        let refused = refused.unwrap();
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED, "{method}");
        assert_eq!(refused.headers()[ALLOW], "GET, POST, DELETE, OPTIONS");
    }
    // A client that sends without pause is told to slow down, and others are not.
    let flood = (0..400).map(|id| {
        let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        alice.request(Method::POST, "browser").json(&ping).send()
    });
    let answered = futures::future::join_all(flood).await;
    let refused: Vec<_> = answered
        .into_iter()
        .map(Result::unwrap)
        .filter(|answered| answered.status() == StatusCode::TOO_MANY_REQUESTS)
        .collect();
    assert!(!refused.is_empty());
    assert!(
        refused
            .iter()
            .all(|refused| refused.headers()[RETRY_AFTER] == "1")
    );
    let bob = yard.person("bob").await;
    let answered = bob.ask("browser", "ping", json!({})).await;
    assert_eq!(answered["result"], json!({}));
}

#[tokio::test]
async fn beside_a_stream_all_is_accepted_and_what_is_no_request_is_said_on_it() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let mut browser = alice.executor("browser").await;
    let (mut events, url) = alice.stream().await;
    let odd = r#"{"jsonrpc":"2.0","id":"odd","method":"ping","params":[1]}"#;
    let accepted = alice.posts(&url, odd.to_owned()).await;
    assert_eq!(accepted.status(), StatusCode::ACCEPTED);
    let said: Value = serde_json::from_str(&events.next().await.1).unwrap();
    assert_eq!(
        (&said["id"], &said["error"]["code"]),
        (&json!("odd"), &json!(-32600))
    );

    // What is cancelled is not answered, also when that was said in one piece.
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "browser_navigate", "arguments": {"url": "https://example.org/"}}});
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let accepted = alice.posts(&url, call.to_string()).await;
    assert_eq!(accepted.status(), StatusCode::ACCEPTED);
    let asked = question(&mut browser).await;
    assert_eq!(asked["tool"], "browser_navigate");
    for message in [&cancel, &ping] {
        let accepted = alice.posts(&url, message.to_string()).await;
        assert_eq!(accepted.status(), StatusCode::ACCEPTED);
    }
    let said: Value = serde_json::from_str(&events.next().await.1).unwrap();
    assert_eq!(said["id"], 2, "{said}");
    let both = json!([call, cancel, ping]).to_string();
    let accepted = alice.posts(&url, both).await;
    assert_eq!(accepted.status(), StatusCode::ACCEPTED);
    let said: Value = serde_json::from_str(&events.next().await.1).unwrap();
    assert_eq!(said["id"], 2, "{said}");
}

#[tokio::test]
async fn a_stream_that_takes_nothing_holds_no_more_than_its_places() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let (_events, url) = alice.stream().await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    // The system takes some megabytes for a client that does not read.
    for sent in 0..3_000 {
        let answered = alice.posts(&url, list.clone()).await;
        if answered.status() == StatusCode::TOO_MANY_REQUESTS {
            let said: Value = answered.json().await.unwrap();
            let said = said["error"].as_str().unwrap();
            assert!(said.contains("wait for their answers"), "{said}");
            assert!(sent >= 64, "{sent}");
            return;
        }
        assert_eq!(answered.status(), StatusCode::ACCEPTED, "{sent}");
        sleep(Duration::from_millis(12)).await;
    }
    panic!("all was taken");
}

#[tokio::test]
async fn a_client_of_a_handshake_that_goes_away_cancels_nothing() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let mut browser = alice.executor("browser").await;
    let arguments = json!({"tabId": 7});
    let called = alice.call("browser", "browser_tab_close", arguments);
    let gone = timeout(Duration::from_millis(500), called).await;
    assert!(gone.is_err());
    let asked = question(&mut browser).await;
    assert_eq!(asked["tool"], "browser_tab_close");
    sleep(Duration::from_millis(200)).await;
    answer(&mut browser, &asked, json!({"success": true})).await;
    until("the call is recorded", SOON, async || {
        let path = "/api/admin/audit?object=browser/browser_tab_close";
        let found = yard.admin.get(path).await.expect(200);
        found["entries"][0]["outcome"] == "ok"
    })
    .await;
}

#[tokio::test]
async fn at_the_end_of_the_service_answers_still_arrive_and_what_takes_too_long_is_told() {
    let stage = Stage::new();
    let mut yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let mut browser = alice.executor("browser").await;
    let (mut events, url) = alice.stream().await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "browser_tab_close", "arguments": {"tabId": 7}}});
    let accepted = alice.posts(&url, call.to_string()).await;
    assert_eq!(accepted.status(), StatusCode::ACCEPTED);
    let asked = question(&mut browser).await;
    // Of a client that begins without a handshake, which waits for nothing but time.
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let wait = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "computer_wait", "arguments": {"ms": 30_000}, "_meta": meta}});
    let waiting = alice
        .request(Method::POST, "computer")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "computer_wait")
        .json(&wait)
        .send();
    let ending = async {
        sleep(Duration::from_millis(300)).await;
        yard.service.terminate();
        sleep(Duration::from_millis(500)).await;
        answer(&mut browser, &asked, json!({"success": true})).await;
        let said: Value = serde_json::from_str(&events.next().await.1).unwrap();
        assert_eq!(
            (&said["id"], &said["error"]),
            (&json!(1), &Value::Null),
            "{said}"
        );
    };
    let begun = Instant::now();
    let (waited, ()) = tokio::join!(waiting, ending);
    let said: Value = waited.unwrap().json().await.unwrap();
    assert_eq!(said["error"]["message"], "the service restarts", "{said}");
    let ended = yard.service.ended_within(seconds(8)).await;
    assert_eq!(ended.code(), Some(0), "{ended}");
    assert!(begun.elapsed() < seconds(8), "{:?}", begun.elapsed());
}
