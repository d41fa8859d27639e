//! The conformance suite of the Model Context Protocol, for both of its eras.
//!
//! The suite calls tools by names of its own and can send no token everywhere. Between it and the service is therefore a proxy on
//! loopback, here and not in the program: it adds the token, and to calls of `test_…` gives the name of a tool that there is, whose
//! executor then answers what the scenario wants. All else passes as it is, so that what answers is the service itself. What does not
//! apply stands in `tests/services/mcp_clients/conformance-*.yml`; the suite fails also when anything in there passes.

use std::convert::Infallible;
use std::process::Stdio;
use std::sync::Arc;

use bytes::Bytes;
use futures::{SinkExt, StreamExt, TryStreamExt};
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::support::{Person, Socket, Yard, answer, node};
use crate::support::{PATIENCE, Stage};

/// The suite's tools, each with the one of ours that stands for it.
const TOOLS: [(&str, &str); 8] = [
    ("test_simple_text", "browser_tabs_list"),
    ("test_image_content", "browser_screenshot"),
    ("test_audio_content", "browser_go_back"),
    ("test_embedded_resource", "browser_go_forward"),
    ("test_multiple_content_types", "browser_tab_new"),
    ("test_error_handling", "browser_get_links"),
    ("test_tool_with_progress", "browser_get_content"),
    ("test_trigger_tool_change", "browser_reload"),
];

/// A PNG of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// What the executor answers, of which the suite only looks at the shape.
fn content(tool: &str) -> Value {
    let text = json!({"type": "text", "text": "This is a text."});
    let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
    let audio = json!({"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"});
    let resource = json!({"type": "resource", "resource": {
        "uri": "test://resource", "mimeType": "text/plain", "text": "This is a resource."}});
    match tool {
        "browser_screenshot" => json!([image]),
        "browser_go_back" => json!([audio]),
        "browser_go_forward" => json!([resource]),
        "browser_tab_new" => json!([text, image, resource]),
        _ => json!([text]),
    }
}

/// The executor. What it can do changes, for all that the service knows, when it connects again.
async fn perform(alice: Arc<Person>, mut socket: Socket) {
    introduce(&mut socket).await;
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else {
            continue;
        };
        let asked: Value = serde_json::from_str(&text).unwrap();
        match asked["tool"].as_str() {
            None => {}
            Some("browser_get_links") => {
                let failed = json!({"id": asked["id"], "error": {"message": "It has failed."}});
                let frame = Message::Text(failed.to_string().into());
                socket.send(frame).await.unwrap();
            }
            Some("browser_current_tab") => {
                let tab = json!({"url": "https://example.org/", "active": true});
                answer(&mut socket, &asked, json!({"tab": tab})).await;
            }
            Some(tool) => {
                answer(&mut socket, &asked, json!({"content": content(tool)})).await;
                if tool == "browser_reload" {
                    socket = alice.executor("browser").await;
                    introduce(&mut socket).await;
                }
            }
        }
    }
}

/// One that says who it is does all of its tools itself.
async fn introduce(socket: &mut Socket) {
    let hello = json!({"type": "hello", "instance": "suite"});
    let frame = Message::Text(hello.to_string().into());
    socket.send(frame).await.unwrap();
}

/// The proxy's way to the service.
#[derive(Clone)]
struct Upstream {
    http: reqwest::Client,
    address: String,
    authorization: HeaderValue,
}

fn ours(name: &str) -> Option<&'static str> {
    TOOLS
        .iter()
        .find_map(|(theirs, ours)| (*theirs == name).then_some(*ours))
}

impl Upstream {
    async fn pass(
        self,
        request: Request<Incoming>,
    ) -> Result<Response<impl Body<Data = Bytes, Error = reqwest::Error>>, Infallible> {
        let (mut head, body) = request.into_parts();
        let mut body = body.collect().await.unwrap().to_bytes();
        if let Ok(mut message) = serde_json::from_slice::<Value>(&body)
            && message["method"] == "tools/call"
            && let Some(name) = message["params"]["name"].as_str().and_then(ours)
        {
            message["params"]["name"] = json!(name);
            body = message.to_string().into();
        }
        if let Some(header) = head.headers.get_mut("mcp-name")
            && let Some(name) = header.to_str().ok().and_then(ours)
        {
            *header = HeaderValue::from_static(name);
        }
        head.headers.remove(CONTENT_LENGTH);
        head.headers.remove(CONNECTION);
        head.headers
            .insert("authorization", self.authorization.clone());
        let url = format!("http://{}{}", self.address, head.uri);
        let sent = self.http.request(head.method, url).headers(head.headers);
        let answered = sent.body(body).send().await.unwrap();
        let mut response = Response::builder().status(answered.status());
        let headers = response.headers_mut().unwrap();
        headers.extend(answered.headers().clone());
        headers.remove(TRANSFER_ENCODING);
        let frames = answered.bytes_stream().map_ok(Frame::data);
        Ok(response.body(StreamBody::new(frames)).unwrap())
    }

    /// Where it listens; as long as `tasks` is there.
    async fn listen(self, tasks: &mut JoinSet<()>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let upstream = self.clone();
                let service = service_fn(move |request| upstream.clone().pass(request));
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                connections.spawn(async move { drop(connection.await) });
            }
        });
        address.to_string()
    }
}

/// Runs the suite, and says what it has printed.
async fn suite(arguments: &[&str], baseline: &str) -> String {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = Arc::new(yard.person("alice").await);
    let mut tasks = JoinSet::new();
    let browser = alice.executor("browser").await;
    tasks.spawn(perform(Arc::clone(&alice), browser));
    let upstream = Upstream {
        http: alice.http.clone(),
        address: alice.address.to_string(),
        authorization: format!("Bearer {}", alice.token).parse().unwrap(),
    };
    let proxy = upstream.listen(&mut tasks).await;

    let mut command = node("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    command
        .args([
            "server",
            "--url",
            &format!("http://{proxy}/api/mcp/sse/browser"),
        ])
        .args(arguments)
        .args(["--expected-failures", baseline])
        .arg("--output-dir")
        .arg(stage.path().join("results"))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let run = timeout(PATIENCE, command.output()).await;
    let run = run.expect("the suite comes to its end").unwrap();
    let printed = String::from_utf8_lossy(&run.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{printed}\n{complaints}");
    printed
}

/// Scenarios that the suite runs and does not count, because they are newer than its set.
fn passed_besides(printed: &str, scenario: &str) {
    let line = printed
        .lines()
        .find(|line| line.contains(&format!("✓ {scenario}: ")));
    let passed = line.is_some_and(|line| !line.contains(": 0 passed"));
    assert!(passed, "{scenario}: {printed}");
}

#[tokio::test]
async fn the_suite_of_the_revision_with_a_handshake() {
    let asked = ["--requirements", "2025-11-25"];
    let printed = suite(&asked, "conformance-2025-11-25.yml").await;
    passed_besides(&printed, "server-session-lifecycle");
}

#[tokio::test]
async fn the_suite_of_the_revision_without_sessions() {
    let asked = ["--requirements", "2026-07-28"];
    let printed = suite(&asked, "conformance-2026-07-28.yml").await;
    passed_besides(&printed, "http-header-validation");
}
