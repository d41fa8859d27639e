//! The official clients of MCP, each with what its library does by default: they list the tools, call one, get a tool's error and the
//! protocol's, cancel a call, and go on when the service has restarted. Programs are in `tests/services/mcp_clients`.

use std::process::{Output, Stdio};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ProtocolVersion,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, ClientServiceExt};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::support::{Performer, Person, SOON, Yard, node, python};
use crate::support::{PATIENCE, Stage, until};

/// The newest revision that begins with a handshake.
const HANDSHAKE: &str = "2025-11-25";
/// The revision without sessions.
const MODERN: &str = "2026-07-28";

/// With nothing of the environment that says how to get anywhere.
fn alone(mut command: Command, stage: &Stage, alice: &Person) -> Command {
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", stage.path())
        .env("URL", alice.url("browser"))
        .env("TOKEN", &alice.token)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// A client that tells what it sees.
struct Script {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Script {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            stdin,
            stdout,
        }
    }

    /// What it says next; its complaints when it has ended instead.
    async fn says(&mut self) -> String {
        let line = timeout(PATIENCE, self.stdout.next_line()).await;
        match line.expect("a client goes on").unwrap() {
            Some(line) => line,
            None => {
                let mut complaints = BufReader::new(self.child.stderr.take().unwrap()).lines();
                while let Some(line) = complaints.next_line().await.unwrap() {
                    eprintln!("{line}");
                }
                panic!("the client has ended");
            }
        }
    }

    async fn goes_on(&mut self) {
        self.stdin.write_all(b"\n").await.unwrap();
    }
}

/// Lets a client do everything, and looks at what it saw.
async fn exercise(command: Command, revision: &str) {
    let stage = Stage::new();
    let mut yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let tools = alice.tools("browser").await;
    let mut browser = Performer::start(alice.executor("browser").await);

    let mut client = Script::start(alone(command, &stage, &alice));
    assert_eq!(client.says().await, "cancel");
    browser.asked_for("browser_click").await;
    client.goes_on().await;
    assert_eq!(client.says().await, "restart");
    was_cancelled(&yard).await;
    yard.restart(&stage).await;
    browser.connect(alice.executor("browser").await);
    client.goes_on().await;

    let facts: Value = serde_json::from_str(&client.says().await).unwrap();
    look_at(&facts, &tools, revision);
}

/// The call that the client has given up is given up here, too.
async fn was_cancelled(yard: &Yard) {
    until("the call is recorded as cancelled", SOON, async || {
        let path = "/api/admin/audit?object=browser/browser_click";
        let found = yard.admin.get(path).await.expect(200);
        let detail = found["entries"][0]["detail"].as_str().unwrap_or_default();
        detail.contains("outcome=cancelled")
    })
    .await;
}

/// What each client has to have seen.
fn look_at(facts: &Value, tools: &[String], revision: &str) {
    assert_eq!(facts["revision"], revision, "{facts}");
    assert_eq!(facts["server"], "agentyard", "{facts}");
    assert_eq!(facts["tools"], json!(tools));
    for answer in ["called", "after", "again"] {
        let text = facts[answer].as_str().unwrap_or_default();
        assert!(
            text.contains("at https://example.org/"),
            "{answer}: {facts}"
        );
    }
    assert_eq!(facts["failed"][0], true, "{facts}");
    let failed = facts["failed"][1].as_str().unwrap();
    assert!(failed.contains("it threw"), "{facts}");
    assert_eq!(facts["unknown"], -32602, "{facts}");
    assert_eq!(facts["cancelled"], true, "{facts}");
}

fn typescript(sdk: &str, transport: &str) -> Command {
    let mut command = node("typescript.mjs");
    command.args([sdk, transport]);
    command
}

fn python_sdk(sdk: &str, transport: &str) -> Command {
    let mut command = python(sdk, "python.py");
    command.args([sdk, transport]);
    command
}

#[tokio::test]
async fn typescript_1_over_streamable_http() {
    exercise(typescript("v1", "http"), HANDSHAKE).await;
}

#[tokio::test]
async fn typescript_1_over_sse() {
    exercise(typescript("v1", "sse"), HANDSHAKE).await;
}

#[tokio::test]
async fn typescript_2_over_streamable_http() {
    exercise(typescript("v2", "http"), HANDSHAKE).await;
}

#[tokio::test]
async fn typescript_2_over_sse() {
    exercise(typescript("v2", "sse"), HANDSHAKE).await;
}

#[tokio::test]
async fn typescript_2_without_a_handshake() {
    exercise(typescript("v2", "auto"), MODERN).await;
}

#[tokio::test]
async fn mcp_remote_between_stdio_and_http() {
    exercise(typescript("v1", "remote"), HANDSHAKE).await;
}

#[tokio::test]
async fn python_1_over_streamable_http() {
    exercise(python_sdk("v1", "http"), HANDSHAKE).await;
}

#[tokio::test]
async fn python_1_over_sse() {
    exercise(python_sdk("v1", "sse"), HANDSHAKE).await;
}

#[tokio::test]
async fn python_2_over_streamable_http() {
    exercise(python_sdk("v2", "http"), HANDSHAKE).await;
}

#[tokio::test]
async fn python_2_over_sse() {
    exercise(python_sdk("v2", "sse"), HANDSHAKE).await;
}

#[tokio::test]
async fn python_2_without_a_handshake() {
    exercise(python_sdk("v2", "auto"), MODERN).await;
}

#[tokio::test]
async fn fastmcp_with_nothing_but_the_address() {
    exercise(python_sdk("v2", "fastmcp"), HANDSHAKE).await;
}

async fn inspect(transport: &str) {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let _browser = Performer::start(alice.executor("browser").await);
    let run = async |arguments: &[&str]| -> Output {
        let mut command =
            node("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
        let authorization = format!("Authorization: Bearer {}", alice.token);
        command
            .args(["--cli", &alice.url("browser"), "--transport", transport])
            .args(["--header", &authorization])
            .args(arguments);
        let running = alone(command, &stage, &alice).output();
        timeout(PATIENCE, running).await.unwrap().unwrap()
    };
    let read = |output: &Output| -> Value {
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    };
    let listed = read(&run(&["--method", "tools/list"]).await);
    let names: Vec<_> = listed["tools"].as_array().unwrap().iter().collect();
    let names: Vec<_> = names.into_iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(json!(names), json!(alice.tools("browser").await));
    let call = ["--method", "tools/call", "--tool-name"];
    let navigate = ["browser_navigate", "--tool-arg", "url=https://example.org/"];
    let called = read(&run(&[&call[..], &navigate].concat()).await);
    let text = called["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("at https://example.org/"), "{called}");
    let execute = ["browser_execute", "--tool-arg", "script=throw"];
    let failed = read(&run(&[&call[..], &execute].concat()).await);
    assert_eq!(failed["isError"], true, "{failed}");
    let unknown = run(&[&call[..], &["no_such_tool"]].concat()).await;
    assert!(!unknown.status.success(), "{unknown:?}");
}

#[tokio::test]
async fn the_inspector_over_streamable_http() {
    inspect("http").await;
}

#[tokio::test]
async fn the_inspector_over_sse() {
    inspect("sse").await;
}

/// rmcp, as Codex and others use it.
async fn rmcp(lifecycle: ClientLifecycleMode, revision: &str) {
    let stage = Stage::new();
    let mut yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let tools = alice.tools("browser").await;
    let mut browser = Performer::start(alice.executor("browser").await);

    let to = StreamableHttpClientTransportConfig::with_uri(alice.url("browser"))
        .auth_header(alice.token.clone());
    let transport = StreamableHttpClientTransport::from_config(to);
    let client = ().serve_with_lifecycle(transport, lifecycle).await.unwrap();
    let call = async |tool: &'static str, arguments: Value| {
        let arguments = arguments.as_object().unwrap().clone();
        let asked = CallToolRequestParams::new(tool).with_arguments(arguments);
        client.call_tool(asked).await
    };
    let text = |result: CallToolResult| result.content[0].as_text().unwrap().text.clone();
    let navigate = async || {
        let arguments = json!({"url": "https://example.org/"});
        text(call("browser_navigate", arguments).await.unwrap())
    };

    let listed = client.list_all_tools().await.unwrap();
    let called = navigate().await;
    let failed = call("browser_execute", json!({"script": "throw"})).await;
    let failed = failed.unwrap();
    let unknown = match call("no_such_tool", json!({})).await {
        Err(ServiceError::McpError(error)) => error.code.0,
        other => panic!("{other:?}"),
    };
    let click = CallToolRequestParams::new("browser_click")
        .with_arguments(json!({"selector": "#a"}).as_object().unwrap().clone());
    let click = ClientRequest::CallToolRequest(CallToolRequest::new(click));
    let options = PeerRequestOptions::no_options();
    let click = client
        .send_cancellable_request(click, options)
        .await
        .unwrap();
    browser.asked_for("browser_click").await;
    let cancelled = click.cancel(None).await.is_ok();
    was_cancelled(&yard).await;
    let after = navigate().await;
    yard.restart(&stage).await;
    browser.connect(alice.executor("browser").await);
    let again = navigate().await;

    let info = client.peer_info().unwrap();
    let facts = json!({
        "revision": info.protocol_version,
        "server": info.server_info.as_ref().unwrap().name,
        "tools": listed.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>(),
        "called": called,
        "failed": [failed.is_error, text(failed.clone())],
        "unknown": unknown,
        "cancelled": cancelled,
        "after": after,
        "again": again,
    });
    look_at(&facts, &tools, revision);
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn rmcp_with_a_handshake() {
    rmcp(ClientLifecycleMode::Initialize, HANDSHAKE).await;
}

#[tokio::test]
async fn rmcp_without_a_handshake() {
    let probing = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    rmcp(probing, MODERN).await;
}
