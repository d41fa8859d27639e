//! Requests that only one of two servers can answer: tool calls reach the executor at either of them, and pages the conversation.

use std::time::Duration;

use futures::StreamExt;
use reqwest::header::ACCEPT;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::chat::Talk;
use crate::support::chat::Page;
use crate::support::mcp::Executor;
use crate::support::postgres::Database;
use crate::support::service::Launch;
use crate::support::{Client, McpUser, PATIENCE, Service, Stage, eventually, seconds};

/// Adds the options of a server that other replicas reach.
fn with_replica_options(launch: Launch, stage: &Stage, database: &Database, name: &str) -> Launch {
    let socket = stage.path().join(format!("{name}.sock"));
    launch
        .arg("--database-url")
        .arg(database.url())
        .arg("--admin-socket")
        .arg(socket.display().to_string())
        .args(&["--replica-listen", "127.0.0.1:0"])
}

/// Two servers without an engine, and a user at both.
struct Pair {
    database: Database,
    first: Service,
    second: Service,
    admin: Client,
    /// The user at the first server, and at the second.
    alice: [McpUser; 2],
    browser: Client,
}

impl Pair {
    async fn start(stage: &Stage) -> Self {
        let database = Database::create().await;
        let launch = |name| {
            let launch = stage.alone().set("container.autostart", "false");
            with_replica_options(launch, stage, &database, name)
        };
        let first = launch("first").start().await;
        let second = launch("second").start().await;
        let admin = first.admin().await;
        let form = [("username", "alice"), ("wait", "0")];
        let created = admin.post("/api/admin/users/create", &form).await;
        let password = created.expect(202)["password"].as_str().unwrap().to_owned();
        let browser = first.client().signed_in("alice", &password).await;
        let at_second = browser.at(&second.client());
        let alice = [
            McpUser::signed_in(&first, "alice", &browser).await,
            McpUser::signed_in(&second, "alice", &at_second).await,
        ];
        Self {
            database,
            first,
            second,
            admin,
            alice,
            browser,
        }
    }

    async fn calls_in_audit(&self) -> u64 {
        let path = "/api/admin/audit?action=mcp_call";
        let page = self.admin.get(path).await.expect(200);
        page["total"].as_u64().unwrap()
    }
}

/// Closes a tab, through the executor that is asked.
async fn close_tab(client: &McpUser, executor: &mut Executor, tab: u64) {
    let called = client.call("browser", "browser_tab_close", json!({"tabId": tab}));
    let executed = async {
        let asked = executor.question().await;
        assert_eq!(asked["params"], json!({"tabId": tab}), "{asked}");
        executor.answer(&asked, json!({"success": true})).await;
    };
    let (result, ()) = tokio::join!(called, executed);
    assert_eq!(
        result["structuredContent"],
        json!({"success": true}),
        "{result}"
    );
}

async fn status(client: &McpUser) -> Value {
    client.call("browser", "browser_status", json!({})).await
}

/// The text of a result that is a failure.
fn failure(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap()
}

fn expect_replaced(ended: (Vec<Value>, u16, String)) {
    assert_eq!((ended.1, &*ended.2), (1000, "replaced"));
}

#[tokio::test]
async fn engine_postgres_call_reaches_the_executor_of_another_server() {
    let stage = Stage::new();
    let pair = Pair::start(&stage).await;
    let [at_first, at_second] = &pair.alice;
    let mut executor = at_first.executor("browser").await;
    close_tab(at_second, &mut executor, 1).await;
    close_tab(at_first, &mut executor, 2).await;
    let seen = status(at_second).await;
    assert_eq!(seen["structuredContent"]["connected"], true, "{seen}");
    let unknown = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "browser_fly"}});
    let answer = at_second.ask("browser", &unknown).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    // Policy and audit trail were asked once for each.
    eventually(
        "three calls are recorded",
        seconds(10),
        async || match pair.calls_in_audit().await {
            3 => Ok(()),
            other => Err(other.to_string()),
        },
    )
    .await;

    // Both know of the executor, and the one that does not have it ends its connection.
    let second = pair.admin.at(&pair.second.client());
    let listed = second.get("/api/admin/executors").await.expect(200);
    assert_eq!(listed["executors"].as_array().unwrap().len(), 1, "{listed}");
    let own = pair.browser.at(&pair.second.client());
    let own = own.get("/api/user/executors").await.expect(200);
    assert_eq!(own["executors"], listed["executors"], "{own}");
    let id = listed["executors"][0]["id"].to_string();
    let form = [("id", id.as_str())];
    let ended = second.post("/api/admin/executors/disconnect", &form).await;
    ended.expect(200);
    assert_eq!(executor.ended().await.2, "disconnected by an administrator");

    // An executor at the other server takes the place of the one before, as at the same server.
    let mut executor = at_first.executor("browser").await;
    let mut newer = at_second.executor("browser").await;
    expect_replaced(executor.ended().await);
    close_tab(at_first, &mut newer, 3).await;
    close_tab(at_second, &mut newer, 4).await;
    // A new token ends it.
    let rotated = second.post(
        "/api/admin/users/mcp-token/rotate",
        &[("username", "alice"), ("wait", "0")],
    );
    assert!(rotated.await.status.is_success());
    assert_eq!(newer.ended().await.1, 4403);
    pair.database.drop().await;
}

#[tokio::test]
async fn engine_postgres_executors_of_two_servers_displace_each_other() {
    let stage = Stage::new();
    let pair = Pair::start(&stage).await;
    let mut before: Option<Executor> = None;
    let mut connected = 0;
    let refused = loop {
        let client = &pair.alice[connected % 2];
        let Some(executor) = client.try_executor("browser").await else {
            break status(client).await;
        };
        if let Some(mut displaced) = before.replace(executor) {
            expect_replaced(displaced.ended().await);
        }
        connected += 1;
        assert!(connected < 10, "none is refused");
    };
    assert_eq!(connected, 6);
    assert!(
        refused["structuredContent"]["refusedForSeconds"].is_u64(),
        "{refused}"
    );
    let off = json!({"users": {"alice": {"browser": {"mode": "off"}}}});
    let config = json!({"mcp.policy": off}).to_string();
    let saved = pair.admin.at(&pair.second.client());
    let saved = saved.post("/api/config", &[("config", &config)]).await;
    saved.expect(200);
    assert_eq!(before.unwrap().ended().await.1, 4403);
    pair.database.drop().await;
}

#[tokio::test]
async fn engine_postgres_streams_and_cancellation_cross_servers() {
    let stage = Stage::new();
    let pair = Pair::start(&stage).await;
    let [at_first, at_second] = &pair.alice;
    let mut executor = at_first.executor("browser").await;
    let hello = json!({"type": "hello", "protocol": 2, "instance": "one", "features": ["cancel"]});
    executor.send(hello.to_string()).await;
    assert_eq!(executor.question().await["type"], "welcome");
    let http = reqwest::Client::new();
    let post = |server: &Service, query: &str, message: Value| {
        let url = format!("http://{}/api/mcp/sse/browser{query}", server.address());
        let request = http.post(url).bearer_auth(&at_first.token);
        request
            .header(ACCEPT, "application/json, text/event-stream")
            .json(&message)
    };
    let call = |id: u64| {
        let params = json!({"name": "browser_tab_close", "arguments": {"tabId": id}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };

    // The call comes to the second server, its cancellation to the first.
    let session = "mcp-session-id";
    let calling = post(&pair.second, "", call(7)).header(session, "s").send();
    let cancelling = async {
        let asked = executor.question().await;
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
        let sent = post(&pair.first, "", cancelled).header(session, "s").send();
        assert_eq!(sent.await.unwrap().status(), 202);
        let told = executor.question().await;
        assert_eq!(told, json!({"type": "cancel", "id": asked["id"]}));
    };
    let (answer, ()) = tokio::join!(calling, cancelling);
    let answer: Value = answer.unwrap().json().await.unwrap();
    assert_eq!(answer["error"]["message"], "cancelled", "{answer}");

    // A stream is at the second server, and what is posted beside it comes to the first.
    let url = format!("http://{}/api/mcp/sse/browser", pair.second.address());
    let stream = http.get(url).bearer_auth(&at_second.token).send().await;
    let mut stream = stream.unwrap().bytes_stream();
    let mut read = String::new();
    let mut until = async |wanted: &str| {
        while !read.contains(wanted) {
            let piece = timeout(PATIENCE, stream.next()).await.expect("it comes");
            read.push_str(&String::from_utf8_lossy(&piece.unwrap().unwrap()));
        }
        read.clone()
    };
    let endpoint = until("\n\n").await;
    let id = endpoint.split("sessionId=").nth(1).unwrap();
    let query = format!("?sessionId={}", id.trim());
    let sent = post(&pair.first, &query, call(8)).send().await.unwrap();
    assert_eq!(sent.status(), 202);
    let asked = executor.question().await;
    executor.answer(&asked, json!({"success": true})).await;
    until(r#""success":true"#).await;
    let ended = post(&pair.first, "?sessionId=r2-none", call(9)).send();
    assert_eq!(ended.await.unwrap().status(), 404);
    pair.database.drop().await;
}

#[tokio::test]
async fn engine_postgres_executor_of_a_dead_server_reconnects() {
    let stage = Stage::new();
    let pair = Pair::start(&stage).await;
    let [at_first, at_second] = &pair.alice;
    let mut executor = at_first.executor("browser").await;
    close_tab(at_second, &mut executor, 1).await;
    // A call that changes something is under way.
    let calling = at_second.call("browser", "browser_tab_close", json!({"tabId": 2}));
    let killing = async {
        executor.question().await;
        pair.first.kill9().await;
    };
    let (lost, ()) = tokio::join!(calling, killing);
    assert!(failure(&lost).contains("The outcome is unknown"), "{lost}");
    let calling = at_second.call("browser", "browser_tab_close", json!({"tabId": 3}));
    let missing = timeout(Duration::from_secs(10), calling).await.unwrap();
    assert!(
        failure(&missing).contains("no browser is connected"),
        "{missing}"
    );
    let mut executor = at_second.executor("browser").await;
    close_tab(at_second, &mut executor, 4).await;
    let admin = pair.second.admin().await;
    let listed = admin.get("/api/admin/executors").await.expect(200);
    assert_eq!(listed["executors"].as_array().unwrap().len(), 1, "{listed}");
    let log = pair.second.log();
    assert!(!log.contains(&at_second.token), "{log}");
    pair.database.drop().await;
}

#[tokio::test]
async fn engine_postgres_frozen_server_loses_its_executors() {
    let stage = Stage::new();
    let pair = Pair::start(&stage).await;
    let [at_first, at_second] = &pair.alice;
    let mut executor = at_first.executor("browser").await;
    close_tab(at_second, &mut executor, 1).await;
    pair.first.freeze();
    let mut newer = at_second.executor("browser").await;
    close_tab(at_second, &mut newer, 2).await;
    // It learns what has happened meanwhile.
    pair.first.thaw();
    expect_replaced(executor.ended().await);
    eventually("only the newer one is listed", seconds(20), async || {
        let listed = pair.admin.get("/api/admin/executors").await.expect(200);
        let ids = listed["executors"].as_array().unwrap().iter();
        let ids: Vec<u64> = ids.map(|one| one["id"].as_u64().unwrap()).collect();
        match ids[..] {
            [id] if id > u64::from(u32::MAX) => Ok(()),
            _ => Err(listed.to_string()),
        }
    })
    .await;
    close_tab(at_first, &mut newer, 3).await;
    close_tab(at_second, &mut newer, 4).await;
    pair.database.drop().await;
}

#[tokio::test]
async fn engine_postgres_replica_listener_requires_a_stamp() {
    let stage = Stage::new();
    let database = Database::create().await;
    let launch = with_replica_options(stage.alone(), &stage, &database, "first");
    let service = launch.start().await;
    let log = service.log();
    let address = log
        .split("address=")
        .find(|part| part.contains("http://127.0.0.1"));
    let address = address
        .unwrap()
        .split('"')
        .find(|part| part.contains("http"))
        .unwrap();
    let address = address.split_whitespace().next().unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::new();
    for (path, status) in [("/replica", 401), ("/api/health", 404), ("/replica?a", 404)] {
        let answer = http.get(format!("{address}{path}")).send().await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
        let request = http.post(format!("{address}{path}"));
        let request = request.header("agentyard-call", "e30").bearer_auth("a");
        let answer = request.body(vec![0; 10_000]).send().await;
        // The server may cut the connection before it has read the body.
        assert!(answer.is_err() || answer.unwrap().status() == status);
    }
    drop(service);
    database.drop().await;
}

#[tokio::test]
async fn engine_chat_goes_on_at_another_server() {
    let talk = Talk::new().await;
    let database = Database::create().await;
    let launch = |name| with_replica_options(talk.launch(), &talk.stage, &database, name);
    let first = launch("first").start().await;
    let second = launch("second").start().await;
    let (ann, _) = talk.user(&first, "ann").await;
    let at_second = ann.at(&second.client());
    let create = async || {
        let created = ann.post("/api/agent/chat/create", &[]).await.expect(200);
        created["conversation"]["id"].as_str().unwrap().to_owned()
    };
    let id = create().await;
    let mut page = Page::open(&first, &ann, &id).await;
    page.say("m1", "hello").await;
    page.until_text("answer", "You said: hello").await;
    page.until_quiet().await;

    let mut other = Page::open(&second, &at_second, &id).await;
    other.until_text("answer", "You said: hello").await;
    other.say("m2", "again").await;
    other.until_text("answer", "You said: again").await;
    page.until_text("answer", "You said: again").await;
    other.until_quiet().await;
    assert_eq!(other.shown(), page.shown());
    let not_a_socket = at_second.get(&format!("/api/agent/chat/ws?id={id}")).await;
    not_a_socket.refused(400, "invalid_request");

    // Deleted at one, it ends at the other.
    let gone = create().await;
    let mut open = Page::open(&first, &ann, &gone).await;
    let form = [("id", gone.as_str())];
    let deletion = at_second.post("/api/agent/chat/delete", &form).await;
    deletion.expect(200);
    open.until_end().await;
    assert_eq!(open.ended.unwrap()["code"], "deleted");

    // Its lock ends with the server that has it.
    first.kill9().await;
    other.until_end().await;
    let mut page = Page::open(&second, &at_second, &id).await;
    page.until_text("answer", "You said: again").await;
    page.say("m3", "once more").await;
    page.until_text("answer", "You said: once more").await;
    drop(second);
    database.drop().await;
}
