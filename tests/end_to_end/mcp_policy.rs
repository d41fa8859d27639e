//! What an administrator's policy, the limits and the audit trail mean for calls of tools, over real connections.

use std::net::SocketAddr;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use reqwest::header::{ACCEPT, ALLOW, AUTHORIZATION};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::support::mcp::no_scripts;
use crate::support::service::Launch;
use crate::support::{Client, Service, Stage, seconds, until};

const SOON: Duration = crate::support::PATIENCE;
const PAGE: &str = "https://example.org/";

struct Yard {
    launch: Launch,
    service: Service,
    admin: Client,
}

struct Person {
    token: String,
    address: SocketAddr,
    http: reqwest::Client,
}

struct Executor(WebSocketStream<TcpStream>);

impl Yard {
    async fn open(stage: &Stage) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let launch = stage.alone().set("container.autostart", "false");
        let service = launch.clone().start().await;
        let admin = service.admin().await;
        Self {
            launch,
            service,
            admin,
        }
    }

    async fn person(&self, name: &str) -> Person {
        let form = [("username", name), ("wait", "0")];
        let answer = self.admin.post("/api/admin/users/create", &form).await;
        let password = answer.expect(202)["password"].as_str().unwrap().to_owned();
        let browser = self.service.client().signed_in(name, &password).await;
        let answer = browser.get("/api/mcp/token").await.expect(200);
        Person {
            token: answer["token"].as_str().unwrap().to_owned(),
            address: self.service.address(),
            http: reqwest::Client::new(),
        }
    }

    async fn save(&self, config: Value) {
        let config = config.to_string();
        let saved = self
            .admin
            .post("/api/config", &[("config", &*config)])
            .await;
        saved.expect(200);
    }

    async fn policy(&self, policy: Value) {
        self.save(json!({"mcp.policy": policy})).await;
    }
}

impl Person {
    fn request(&self, method: Method, service: &str) -> RequestBuilder {
        let url = format!("http://{}/api/mcp/sse/{service}", self.address);
        self.http
            .request(method, url)
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .header(ACCEPT, "application/json, text/event-stream")
    }

    /// Calls a tool, as soon as the limit by the second allows it.
    async fn call(&self, service: &str, tool: &str, arguments: Value) -> Value {
        loop {
            let result = self.call_once(service, tool, arguments.clone()).await;
            if !result.to_string().contains("calls in a second") {
                return result;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn call_once(&self, service: &str, tool: &str, arguments: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
        let answer = self.request(Method::POST, service).json(&message);
        let answer = answer.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        answer.json::<Value>().await.unwrap()["result"].clone()
    }

    /// The call is refused, with a text that says this.
    async fn refused(&self, service: &str, tool: &str, arguments: Value, said: &str) {
        let result = self.call(service, tool, arguments).await;
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(result["isError"] == true && text.contains(said), "{text}");
    }

    async fn try_connect(&self, service: &str) -> Result<Executor, Error> {
        let (address, token) = (self.address, &self.token);
        let url = format!("ws://{address}/api/{service}/ws?token={token}");
        let request = url.into_client_request().unwrap();
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (socket, _) = client_async(request, stream).await?;
        Ok(Executor(socket))
    }

    async fn executor(&self, service: &str) -> Executor {
        self.try_connect(service).await.unwrap()
    }
}

impl Executor {
    async fn answer(&mut self, expected: &str, result: Value) -> Value {
        let question = self.question(expected).await;
        self.reply(&question, result).await;
        question
    }

    async fn question(&mut self, expected: &str) -> Value {
        loop {
            let message = timeout(SOON, self.0.next())
                .await
                .expect("a question comes");
            let Message::Text(text) = message.unwrap().unwrap() else {
                continue;
            };
            let question: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(question["tool"], expected);
            return question;
        }
    }

    async fn reply(&mut self, question: &Value, result: Value) {
        let frame = json!({"id": question["id"], "result": result}).to_string();
        self.0.send(Message::Text(frame.into())).await.unwrap();
    }

    /// Answers these whenever they are asked, and is asked nothing else.
    async fn answers(&mut self, results: &[(&str, Value)]) {
        while let Some(Ok(message)) = self.0.next().await {
            let Message::Text(text) = message else {
                continue;
            };
            let question: Value = serde_json::from_str(&text).unwrap();
            let known = results.iter().find(|(tool, _)| question["tool"] == *tool);
            let (_, result) = known.unwrap_or_else(|| panic!("{question}"));
            let frame = json!({"id": question["id"], "result": result}).to_string();
            self.0.send(Message::Text(frame.into())).await.unwrap();
        }
    }

    /// The page that is in the tab, when it is asked for.
    async fn shows(&mut self, url: &str) {
        let tab = json!({"tab": {"id": 1, "url": url}});
        self.answer("browser_current_tab", tab).await;
    }

    /// With what code it is ended.
    async fn ended(&mut self) -> u16 {
        loop {
            match timeout(SOON, self.0.next()).await.expect("it ends") {
                Some(Ok(Message::Close(Some(frame)))) => return frame.code.into(),
                Some(Ok(_)) => {}
                other => panic!("no code: {other:?}"),
            }
        }
    }
}

fn status(result: Result<Executor, Error>) -> u16 {
    match result {
        Ok(_) => 101,
        Err(Error::Http(answer)) => answer.status().as_u16(),
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_is_switched_off_is_closed_and_refused_until_it_is_switched_on() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let (alice, bob) = (yard.person("alice").await, yard.person("bob").await);
    let (mut browser, mut desktop) = (
        alice.executor("browser").await,
        alice.executor("computer").await,
    );
    let mut others = bob.executor("browser").await;
    yard.policy(json!({"users": {"alice": {"browser": {"mode": "off"}}}}))
        .await;
    assert_eq!(browser.ended().await, 4403);
    assert_eq!(status(alice.try_connect("browser").await), 403);
    let said = "an administrator has switched off the browser tools";
    alice
        .refused("browser", "browser_current_tab", json!({}), said)
        .await;
    let told = alice.call("browser", "browser_status", json!({})).await;
    assert_eq!(told["structuredContent"]["policy"], json!({"mode": "off"}));

    // The other service and the other user go on.
    let called = alice.call("computer", "computer_screen_size", json!({}));
    let (result, _) = tokio::join!(called, desktop.answer("computer_screen_size", json!("ok")));
    assert_eq!(result.get("isError"), None, "{result}");
    let called = bob.call("browser", "browser_current_tab", json!({}));
    let (result, ()) = tokio::join!(called, others.shows(PAGE));
    assert_eq!(result.get("isError"), None, "{result}");

    yard.policy(json!({})).await;
    assert_eq!(status(alice.try_connect("browser").await), 101);
}

#[tokio::test]
async fn read_only_refuses_what_changes_something_and_groups_and_devices_count() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let mut desktop = alice.executor("computer").await;
    yard.policy(json!({"groups": {"Interns": {"computer": {"mode": "read-only"}}}}))
        .await;
    let click = json!({"x": 10, "y": 20});
    let called = alice.call("computer", "computer_mouse_click", click.clone());
    let executed = async {
        desktop.answer("computer_screen_size", json!("ok")).await;
        desktop.answer("computer_mouse_click", json!("ok")).await
    };
    let (result, _) = tokio::join!(called, executed);
    assert_eq!(result.get("isError"), None, "{result}");

    // Members of a group are members of those above it.
    for (name, parent) in [("interns", ""), ("summer", "interns")] {
        let form = [("name", name), ("parent_id", parent)];
        let created = yard.admin.post("/api/admin/groups/create", &form).await;
        created.expect(200);
    }
    let form = [("group_name", "summer"), ("usernames", "alice")];
    let added = yard
        .admin
        .post("/api/admin/groups/members/add", &form)
        .await;
    assert!(added.status.is_success(), "{}", added.text());
    until("the group counts", seconds(15), async || {
        let told = alice.call("computer", "computer_status", json!({})).await;
        told["structuredContent"]["policy"]["mode"] == "read-only"
    })
    .await;
    let said = "only tools that change nothing";
    alice
        .refused("computer", "computer_mouse_click", click, said)
        .await;
    let called = alice.call("computer", "computer_screen_size", json!({}));
    let (result, _) = tokio::join!(called, desktop.answer("computer_screen_size", json!("ok")));
    assert_eq!(result.get("isError"), None, "{result}");

    // Whoever comes into a group that has none loses the one that is connected.
    let bob = yard.person("bob").await;
    let mut others = bob.executor("computer").await;
    yard.policy(json!({"groups": {"night": {"computer": {"mode": "off"}}}}))
        .await;
    let form = [("name", "night")];
    let created = yard.admin.post("/api/admin/groups/create", &form).await;
    created.expect(200);
    let form = [("group_name", "night"), ("usernames", "bob")];
    let added = yard
        .admin
        .post("/api/admin/groups/members/add", &form)
        .await;
    assert!(added.status.is_success(), "{}", added.text());
    assert_eq!(others.ended().await, 4403);
    let called = alice.call("computer", "computer_screen_size", json!({}));
    let (result, _) = tokio::join!(called, desktop.answer("computer_screen_size", json!("ok")));
    assert_eq!(result.get("isError"), None, "{result}");

    yard.policy(json!({"computer": {"devices": ["another"]}}))
        .await;
    let said = "does not allow the desktop that is connected";
    alice
        .refused("computer", "computer_screen_size", json!({}), said)
        .await;
}

#[tokio::test]
async fn denied_pages_are_refused_before_the_browser_is_asked_and_after_it_was_led_there() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let mut browser = alice.executor("browser").await;
    yard.policy(json!({"browser": {"urls": {"deny": ["*.bank.example"]}}}))
        .await;
    let own = format!("http://{}/api/mcp/token", alice.address);
    for url in [
        "https://my.bank.example/",
        &own,
        "https://accounts.google.com/",
        "file:///etc/passwd",
        "nonsense",
    ] {
        for tool in ["browser_navigate", "browser_tab_new"] {
            let said = "Nothing was done";
            alice
                .refused("browser", tool, json!({"url": url}), said)
                .await;
        }
    }
    // The next question is the first that the browser sees. It leads elsewhere than it says.
    let called = alice.call("browser", "browser_navigate", json!({"url": PAGE}));
    let executed = async {
        let asked = browser.answer("browser_navigate", json!("ok")).await;
        browser.shows(PAGE).await;
        let arrival =
            json!({"ok": {"url": PAGE, "title": "", "state": "complete", "age": 1, "status": 200}});
        let arrival = json!({"result": arrival.to_string()});
        browser.answer("browser_execute", arrival).await;
        asked
    };
    let (_, asked) = tokio::join!(called, executed);
    assert_eq!(asked["params"]["url"], PAGE);
    let click = json!({"selector": "#pay"});
    let said = "(my.bank.example): an administrator does not allow this address";
    let denied = alice.refused("browser", "browser_click", click.clone(), said);
    tokio::join!(denied, browser.shows("https://my.bank.example/pay"));
    // What an acting call has learnt is not kept. What a reading one has, is: within a second the browser is not asked again.
    let read = alice.refused("browser", "browser_get_content", json!({}), said);
    tokio::join!(read, browser.shows("https://my.bank.example/pay"));
    alice
        .refused("browser", "browser_get_content", json!({}), said)
        .await;
    let unknown = alice.refused("browser", "browser_click", click.clone(), "cannot be read");
    tokio::join!(
        unknown,
        browser.answer("browser_current_tab", json!({"tab": null}))
    );
    let called = alice.call("browser", "browser_go_back", json!({}));
    let executed = async {
        browser.answer("browser_execute", no_scripts()).await;
        browser.answer("browser_go_back", json!("ok")).await
    };
    let (result, _) = tokio::join!(called, executed);
    assert_eq!(result.get("isError"), None, "{result}");
    let called = alice.call("browser", "browser_click", click);
    let executed = async {
        browser.shows(PAGE).await;
        browser.answer("browser_execute", no_scripts()).await;
        browser.shows(PAGE).await;
        browser.answer("browser_click", json!("clicked")).await
    };
    let (result, _) = tokio::join!(called, executed);
    assert_eq!(result["content"][0]["text"], "clicked");
}

#[tokio::test]
async fn what_is_read_while_another_call_leads_to_a_denied_page_is_not_told() {
    const BANK: &str = "https://my.bank.example/accounts";
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    yard.policy(json!({"browser": {"urls": {"deny": ["*.bank.example"]}}}))
        .await;
    let alice = yard.person("alice").await;
    let mut browser = alice.executor("browser").await;
    let tab = |url: &str| json!({"tab": {"id": 1, "url": url}});
    let select = || alice.call("browser", "browser_tab_select", json!({"tabId": 2}));
    let denied = "(my.bank.example): an administrator does not allow this address";

    // The tab is selected between the look at its address and what is read.
    let read = alice.refused("browser", "browser_get_content", json!({}), denied);
    let executed = async {
        let looked = browser.question("browser_current_tab").await;
        let selected = async {
            let selected = browser.question("browser_tab_select").await;
            browser.reply(&looked, tab(PAGE)).await;
            let read = browser.question("browser_get_content").await;
            browser.reply(&selected, json!({"success": true})).await;
            browser
                .reply(&read, json!({"content": "balance: 12"}))
                .await;
            browser.shows(BANK).await;
        };
        tokio::join!(select(), selected);
    };
    tokio::join!(read, executed);

    // It is being selected when the look begins.
    let selected = select();
    let executed = async {
        let selected = browser.question("browser_tab_select").await;
        let read = alice.refused("browser", "browser_get_content", json!({}), denied);
        let executed = async {
            browser.shows(PAGE).await;
            let balance = json!({"content": "balance: 12"});
            browser.answer("browser_get_content", balance).await;
            browser.shows(BANK).await;
            browser.reply(&selected, json!({"success": true})).await;
        };
        tokio::join!(read, executed);
    };
    tokio::join!(selected, executed);

    // Where it has led to a page that may be read, that is what is told.
    let read = alice.call("browser", "browser_get_content", json!({}));
    let executed = async {
        let looked = browser.question("browser_current_tab").await;
        let selected = async {
            let selected = browser.question("browser_tab_select").await;
            browser.reply(&looked, tab(PAGE)).await;
            let read = browser.question("browser_get_content").await;
            browser.reply(&selected, json!({"success": true})).await;
            browser
                .reply(&read, json!({"content": "between two pages"}))
                .await;
            browser.shows(PAGE).await;
            let new = json!({"content": "the other page"});
            browser.answer("browser_get_content", new).await;
        };
        tokio::join!(select(), selected);
    };
    let (result, ()) = tokio::join!(read, executed);
    let told = result.to_string();
    assert!(
        told.contains("the other page") && !told.contains("between two"),
        "{told}"
    );

    // Nobody waits any more for its being selected: a client without a handshake cancels by going away.
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let select_and_go = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "browser_tab_select", "arguments": {"tabId": 2}, "_meta": meta}});
    let sent = alice
        .request(Method::POST, "browser")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "browser_tab_select")
        .json(&select_and_go)
        .send();
    let selected = tokio::select! {
        answered = sent => panic!("{answered:?}"),
        selected = browser.question("browser_tab_select") => selected,
    };
    tokio::time::sleep(Duration::from_millis(300)).await;
    let read = alice.refused("browser", "browser_get_content", json!({}), denied);
    let executed = async {
        browser.shows(PAGE).await;
        let balance = json!({"content": "balance: 12"});
        browser.answer("browser_get_content", balance).await;
        browser.shows(BANK).await;
        browser.reply(&selected, json!({"success": true})).await;
    };
    tokio::join!(read, executed);
}

#[tokio::test]
async fn calls_over_the_rate_wait_and_are_then_refused_with_a_time() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    // One after the other waits for its place.
    for _ in 0..12 {
        let result = alice
            .call_once("browser", "browser_status", json!({}))
            .await;
        assert_eq!(result.get("isError"), None, "{result}");
    }
    let calls = (0..30).map(|_| alice.call_once("browser", "browser_status", json!({})));
    let refused: Vec<_> = futures::future::join_all(calls).await;
    let refused = refused.iter().filter(|it| it["isError"] == true);
    let mut over = 0;
    for result in refused {
        let text = result["content"][0]["text"].as_str().unwrap();
        let full = text.contains("calls are under way already");
        let rate = text.contains("more than 10 calls in a second; nothing was done, try again in");
        assert!(full || rate, "{text}");
        over += 1;
    }
    assert!(over > 0);
    let other = alice.call("computer", "computer_status", json!({})).await;
    assert_eq!(other.get("isError"), None, "{other}");
    let held: Vec<_> =
        futures::future::join_all((0..40).map(|_| alice.try_connect("browser"))).await;
    let refused = held
        .iter()
        .filter(|it| matches!(it, Err(Error::Http(answer)) if answer.status() == 429));
    assert!(refused.count() >= 1);
}

#[tokio::test]
async fn each_call_leaves_an_entry_without_what_was_typed() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let mut browser = alice.executor("browser").await;
    let typed = json!({"selector": "#user", "text": "hunter2-typed"});
    let called = alice.call("browser", "browser_type", typed.clone());
    let executed = async {
        browser
            .shows("https://example.org/secret-path?q=hunter2-query")
            .await;
        let typed = json!({"result": "{\"ok\":{\"success\":true}}"});
        browser.answer("browser_execute", typed).await
    };
    tokio::join!(called, executed);
    let url = json!({"url": "https://accounts.google.com/hunter2-path"});
    alice
        .refused("browser", "browser_navigate", url, "refused")
        .await;
    alice
        .refused(
            "computer",
            "computer_mouse_click",
            json!({"x": 7, "y": 9}),
            "no desktop",
        )
        .await;
    alice.call("browser", "browser_status", json!({})).await;

    let mut entries = Vec::new();
    until("all are recorded", seconds(10), async || {
        let found = yard
            .admin
            .get("/api/admin/audit?action=mcp_call")
            .await
            .expect(200);
        entries = found["entries"].as_array().unwrap().clone();
        entries.len() == 4
    })
    .await;
    entries.reverse();
    let shown: Vec<_> = entries
        .iter()
        .map(|entry| [&entry["actor"], &entry["object"], &entry["outcome"]])
        .collect();
    let expected = json!([
        ["alice", "browser/browser_type", "ok"],
        ["alice", "browser/browser_navigate", "refused"],
        ["alice", "computer/computer_mouse_click", "failed"],
        ["alice", "browser/browser_status", "ok"],
    ]);
    assert_eq!(json!(shown), expected);
    let detail = |n: usize| entries[n]["detail"].as_str().unwrap();
    for part in [
        "outcome=ok",
        "host=example.org",
        "executor=",
        "arguments=",
        "bytes=",
    ] {
        assert!(detail(0).contains(part), "{}", detail(0));
    }
    assert!(
        detail(1).contains("host=accounts.google.com"),
        "{}",
        detail(1)
    );
    assert!(
        detail(2).contains("outcome=error") && detail(2).contains("at=7,9"),
        "{}",
        detail(2)
    );
    let all = json!(entries).to_string();
    assert!(
        !all.contains("hunter2") && !all.contains("secret-path"),
        "{all}"
    );
    let one = yard
        .admin
        .get("/api/admin/audit?object=browser/browser_type")
        .await
        .expect(200);
    assert_eq!(one["total"], 1);
    let verified = yard.admin.get("/api/admin/audit/verify").await.expect(200);
    assert_eq!(verified["valid"], true, "{verified}");
}

#[tokio::test]
async fn calls_under_way_at_the_end_of_the_service_are_recorded_too() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let mut desktop = alice.executor("computer").await;
    let called = alice.call("computer", "computer_screen_size", json!({}));
    tokio::join!(called, desktop.answer("computer_screen_size", json!("ok")));
    // Before what is gathered is written.
    let Yard {
        mut service,
        launch,
        ..
    } = yard;
    service.terminate();
    assert_eq!(service.ended().await.code(), Some(0));
    let service = launch.start().await;
    let admin = service.admin().await;
    let found = admin
        .get("/api/admin/audit?action=mcp_call")
        .await
        .expect(200);
    assert_eq!(found["total"], 1, "{found}");
}

#[tokio::test]
async fn streams_can_be_refused_and_sessions_of_others_too() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let open = |name: &'static str, value: String| {
        let request = alice.request(Method::GET, "browser");
        request.header(name, value).send()
    };
    let version = || open("mcp-protocol-version", "2025-06-18".to_owned());
    assert_eq!(version().await.unwrap().status(), StatusCode::OK);
    yard.save(json!({"mcp.get_stream": "refuse"})).await;
    let refused = version().await.unwrap();
    assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(refused.headers()[ALLOW], "POST, DELETE");
    let old = open("pragma", "no-cache".to_owned()).await.unwrap();
    assert_eq!(old.status(), StatusCode::OK);

    let begun = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}});
    let begun = alice.request(Method::POST, "browser").json(&begun);
    let begun = begun.send().await.unwrap();
    let session = begun.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let ping = async |session: Option<&str>| -> Response {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        let mut request = alice.request(Method::POST, "browser").json(&message);
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        request.send().await.unwrap()
    };
    assert_eq!(ping(Some("test-session")).await.status(), StatusCode::OK);
    yard.save(json!({"mcp.session_strict": true})).await;
    let unknown = ping(Some("test-session")).await;
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
    let said: Value = unknown.json().await.unwrap();
    assert_eq!(said["error"]["message"], "session not found");
    assert_eq!(ping(Some(&session)).await.status(), StatusCode::OK);
    assert_eq!(ping(None).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_superadmin_gets_no_token() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    yard.admin
        .get("/api/mcp/token")
        .await
        .refused(403, "wrong_role");
}

#[tokio::test]
async fn a_picture_is_taken_only_when_the_page_in_front_may_be_seen() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let mut browser = alice.executor("browser").await;
    yard.policy(json!({"browser": {"urls": {"deny": ["*.bank.example"]}}, "computer": {"tools": {"deny": ["computer"]}}}))
        .await;
    let bank = json!({"id": 2, "url": "https://my.bank.example/", "active": true, "windowId": 1});
    for (tab, tabs, said) in [
        (
            json!({"url": PAGE, "active": false, "windowId": 1}),
            json!([bank]),
            "(my.bank.example)",
        ),
        (
            json!({"url": PAGE, "active": false}),
            json!([bank]),
            "(my.bank.example)",
        ),
        (
            json!({"url": PAGE}),
            json!([]),
            "its address cannot be read",
        ),
    ] {
        let refused = alice.refused("browser", "browser_screenshot", json!({}), said);
        let tab = json!({ "tab": tab });
        let tabs = json!({ "tabs": tabs });
        let results = [("browser_current_tab", tab), ("browser_tabs_list", tabs)];
        tokio::select! {
            () = refused => {}
            () = browser.answers(&results) => panic!("it ends"),
        }
    }
    // A tool is also denied by the name under which it is called.
    let click = json!({"action": "left_click", "coordinate": [1, 2]});
    let said = "an administrator does not allow this tool";
    alice.refused("computer", "computer", click, said).await;
}
