//! MCP clients and executors over real connections: what a client asks for, the executor of the same user is asked, and nobody else's.

mod clients;
mod conformance;
mod desktop;
mod go_sdk;
mod pages;
mod recorded;
pub mod support;
mod wire;

use std::time::Duration;

use reqwest::header::ACCEPT;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::Stage;
use support::{Events, Yard, answer, ended, facts, question, refused};

#[tokio::test]
async fn a_client_lists_the_tools_and_calls_one_in_its_users_browser() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;

    let begun = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let answered = alice.post("browser", begun).await;
    let session = answered.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let said: Value = answered.json().await.unwrap();
    assert_eq!(said["result"]["protocolVersion"], "2025-06-18");
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(
        alice.post("browser", note).await.status(),
        StatusCode::ACCEPTED
    );

    let tools = alice.ask("browser", "tools/list", json!({})).await;
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    assert_eq!(tools[0]["name"], "browser_navigate");
    let described = |tool: &Value| !tool["description"].as_str().unwrap().is_empty();
    assert!(tools.len() >= 20 && tools.iter().all(described));

    let missing = alice
        .call("browser", "browser_current_tab", json!({}))
        .await;
    assert_eq!(missing["isError"], true, "{missing}");
    assert_eq!(facts(&missing)["connected"], false, "{missing}");
    let mut executor = alice.executor("browser").await;
    let status = alice.call("browser", "browser_status", json!({})).await;
    assert_eq!(status["structuredContent"]["connected"], true, "{status}");

    let arguments = json!({"url": "https://example.org/"});
    let called = alice.call("browser", "browser_navigate", arguments.clone());
    let executed = async {
        let asked = question(&mut executor).await;
        assert_eq!(
            (&asked["tool"], &asked["params"]),
            (&json!("browser_navigate"), &arguments)
        );
        answer(&mut executor, &asked, json!({"success": true})).await;
        let asked = question(&mut executor).await;
        assert_eq!(asked["tool"], "browser_current_tab");
        let tab = json!({"url": "https://example.org/", "title": "An example"});
        answer(&mut executor, &asked, json!({"tab": tab})).await;
        let asked = question(&mut executor).await;
        assert_eq!(asked["tool"], "browser_execute");
        let arrival = json!({"ok": {"url": "https://example.org/", "title": "An example", "state": "complete", "age": 1, "status": 200}});
        answer(
            &mut executor,
            &asked,
            json!({"result": arrival.to_string()}),
        )
        .await;
    };
    let (result, ()) = tokio::join!(called, executed);
    assert_eq!(facts(&result), &json!({"success": true}));
    let shown = result["content"][1]["text"].as_str().unwrap();
    assert!(shown.contains("An example"), "{shown}");
    assert_eq!(result.get("isError"), None);

    let wrong = alice.call("browser", "browser_navigate", json!({})).await;
    let said = wrong["content"][0]["text"].as_str().unwrap();
    assert!(wrong["isError"] == true && said.contains("url"), "{said}");
    let unknown = alice
        .ask("browser", "tools/call", json!({"name": "no_such"}))
        .await;
    assert_eq!(unknown["error"]["code"], -32602);

    let end = |session: &str| {
        let request = alice.request(Method::DELETE, "browser");
        request.header("mcp-session-id", session.to_owned()).send()
    };
    assert_eq!(
        end(&session).await.unwrap().status(),
        StatusCode::NO_CONTENT
    );
    assert_eq!(end(&session).await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_old_transport_answers_on_its_stream() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let url = format!(
        "http://{}/api/mcp/sse/computer?token={}",
        alice.address, alice.token
    );
    let stream = alice
        .http
        .get(&url)
        .header(ACCEPT, "text/event-stream")
        .send()
        .await
        .unwrap();
    let mut events = Events::new(stream);
    let (name, endpoint) = events.next().await;
    assert_eq!(name, "endpoint");
    let post = async |message: Value| {
        let url = format!("http://{}{endpoint}", alice.address);
        alice
            .http
            .post(url)
            .json(&message)
            .send()
            .await
            .unwrap()
            .status()
    };
    // Whoever comes back from a lost connection does not begin anew.
    let list = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"});
    assert_eq!(post(list).await, StatusCode::ACCEPTED);
    let (name, data) = events.next().await;
    let answered: Value = serde_json::from_str(&data).unwrap();
    assert_eq!((name.as_str(), &answered["id"]), ("message", &json!(7)));
    assert_eq!(
        answered["result"]["tools"][0]["name"],
        "computer_screenshot"
    );
    let unknown = format!("http://{}/api/mcp/sse/computer?sessionId=x", alice.address);
    let request = alice
        .http
        .post(unknown)
        .bearer_auth(&alice.token)
        .json(&json!({}));
    assert_eq!(
        request.send().await.unwrap().status(),
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn the_old_transport_leads_through_the_proxy_that_it_came_through() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    for (sent, begins) in [("/agents/", "/agents/api/"), ("//evil.example", "/api/")] {
        let request = alice.request(Method::GET, "browser");
        let opened = request.header("x-forwarded-prefix", sent).send().await;
        let (name, endpoint) = Events::new(opened.unwrap()).next().await;
        assert_eq!(name, "endpoint");
        assert!(endpoint.starts_with(begins), "{sent}: {endpoint}");
    }
}

#[tokio::test]
async fn a_rotated_token_ends_sockets_and_streams_and_opens_nothing() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let mut alice = yard.person("alice").await;
    let bob = yard.person("bob").await;
    let (mut socket, mut others) = (
        alice.executor("browser").await,
        bob.executor("browser").await,
    );
    let opened = alice.request(Method::GET, "browser").send().await.unwrap();
    let mut stream = Events::new(opened);
    assert_eq!(stream.next().await.0, "endpoint");

    let rotated = tokio::time::Instant::now();
    let answer_to = alice
        .browser
        .post("/api/mcp/token/rotate", &[("wait", "0")])
        .await;
    assert_eq!(answer_to.status, 202);
    assert_eq!(ended(&mut socket).await, 4403);
    assert!(stream.ends().await);
    assert!(
        rotated.elapsed() < Duration::from_secs(3),
        "{:?}",
        rotated.elapsed()
    );
    assert_eq!(refused(alice.try_connect("browser", None).await), 401);
    let denied = alice.post("browser", json!({})).await;
    assert_eq!(denied.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(denied.headers()["www-authenticate"], "Bearer");

    alice.read_token().await;
    let _connected = alice.executor("browser").await;
    // Somebody else's goes on.
    let called = bob.call("browser", "browser_current_tab", json!({}));
    let executed = async {
        let asked = question(&mut others).await;
        answer(&mut others, &asked, json!({"tab": {"id": 1}})).await;
    };
    let (result, ()) = tokio::join!(called, executed);
    assert_eq!(facts(&result)["tab"]["id"], 1, "{result}");
}

#[tokio::test]
async fn an_account_that_is_disabled_or_deleted_loses_what_is_open() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let bob = yard.person("bob").await;
    let _others = bob.executor("browser").await;
    for (name, action) in [("alice", "disable"), ("carol", "delete")] {
        let person = yard.person(name).await;
        let mut socket = person.executor("computer").await;
        let opened = person.request(Method::GET, "computer").send().await;
        let mut stream = Events::new(opened.unwrap());
        assert_eq!(stream.next().await.0, "endpoint");
        let begun = tokio::time::Instant::now();
        let path = format!("/api/admin/users/{action}");
        let form = [("username", name), ("wait", "0")];
        let answered = yard.admin.post(&path, &form).await;
        assert!(answered.status.is_success(), "{}", answered.text());
        assert_eq!(ended(&mut socket).await, 4403, "{action}");
        assert!(stream.ends().await, "{action}");
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(3), "{action}: {took:?}");
        let denied = person.post("computer", json!({})).await.status();
        assert!([401, 403].contains(&denied.as_u16()), "{action}: {denied}");
    }
    assert_eq!(yard.executors().await, ["bob"]);
}

#[tokio::test]
async fn foreign_pages_strangers_and_superadmins_get_nothing() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let mut alice = yard.person("alice").await;
    for (origin, status) in [("https://evil.example", 403), ("null", 403)] {
        assert_eq!(
            refused(alice.try_connect("browser", Some(origin)).await),
            status
        );
        let request = alice
            .request(Method::POST, "browser")
            .header("origin", origin);
        let answer = request.json(&json!({})).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status);
        let said: Value = answer.json().await.unwrap();
        assert_eq!(said["jsonrpc"], "2.0");
    }
    assert!(
        alice
            .try_connect("browser", Some("http://localhost:3000"))
            .await
            .is_ok()
    );
    let elsewhere = format!("http://{}/api/mcp/sse/printer", alice.address);
    let answer = alice.http.put(elsewhere).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    alice.token = alice.token.replace("alice:", "root:");
    assert_eq!(refused(alice.try_connect("computer", None).await), 401);
}

#[tokio::test]
async fn a_page_of_this_machine_may_be_a_client() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let origin = "http://localhost:6274";
    let preflight = alice
        .http
        .request(Method::OPTIONS, alice.url("browser"))
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization")
        .send();
    let preflight = preflight.await.unwrap();
    assert_eq!(preflight.status(), StatusCode::NO_CONTENT);
    assert_eq!(preflight.headers()["access-control-allow-origin"], origin);
    let allowed = &preflight.headers()["access-control-allow-headers"];
    assert!(allowed.to_str().unwrap().contains("mcp-session-id"));

    let begun = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}});
    let request = alice.request(Method::POST, "browser");
    let request = request.header("origin", origin).json(&begun);
    let answered = request.send().await.unwrap();
    assert_eq!(answered.headers()["access-control-allow-origin"], origin);
    let readable = &answered.headers()["access-control-expose-headers"];
    assert!(readable.to_str().unwrap().contains("mcp-session-id"));
}

/// Clients look there for a sign-in, and must find that there is none.
#[tokio::test]
async fn no_sign_in_is_offered_to_clients() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    for path in [
        "oauth-protected-resource",
        "oauth-protected-resource/api/mcp/sse/browser",
        "oauth-authorization-server",
        "oauth-authorization-server/api/mcp/sse/browser",
        "openid-configuration",
        "openid-configuration/api/mcp/sse/browser",
    ] {
        let url = format!("http://{}/.well-known/{path}", alice.address);
        let page = alice.http.get(url).header(ACCEPT, "text/html, */*");
        let answered = page.send().await.unwrap();
        assert_eq!(answered.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(answered.headers()["content-type"], "application/json");
    }
}

#[tokio::test]
async fn an_administrator_sees_executors_and_disconnects_one() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let mut socket = alice.executor("computer").await;
    // It is there a moment after its handshake.
    let seen = loop {
        let seen = yard.admin.get("/api/admin/executors").await.expect(200);
        if seen["executors"] != json!([]) {
            break seen;
        }
    };
    let executor = &seen["executors"][0];
    assert_eq!(
        (&executor["username"], &executor["service"]),
        (&json!("alice"), &json!("computer"))
    );
    let own = alice.browser.get("/api/user/executors").await.expect(200);
    assert_eq!(own["executors"].as_array().unwrap().len(), 1);
    let id = executor["id"].to_string();
    let form = [("id", id.as_str())];
    yard.admin
        .post("/api/admin/executors/disconnect", &form)
        .await
        .expect(200);
    assert_eq!(ended(&mut socket).await, 1000);
    let gone = yard
        .admin
        .post("/api/admin/executors/disconnect", &form)
        .await;
    gone.refused(404, "not_found");
}

#[tokio::test]
async fn a_stopping_service_says_that_it_restarts() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let mut socket = alice.executor("browser").await;
    yard.service.terminate();
    assert_eq!(ended(&mut socket).await, 1012);
}

#[tokio::test]
async fn sessions_that_are_not_ours_are_each_users_own() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let (alice, bob) = (yard.person("alice").await, yard.person("bob").await);
    let end = alice.request(Method::DELETE, "browser");
    let ended = end.header("mcp-session-id", "test-session").send().await;
    assert_eq!(ended.unwrap().status(), StatusCode::NO_CONTENT);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for (person, expected) in [(&alice, StatusCode::NOT_FOUND), (&bob, StatusCode::OK)] {
        let request = person.request(Method::POST, "browser").json(&list);
        let answer = request
            .header("mcp-session-id", "test-session")
            .send()
            .await;
        assert_eq!(answer.unwrap().status(), expected);
    }
}

#[tokio::test]
async fn what_is_no_request_is_an_error_of_json_rpc_and_not_of_http() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let (known, unknown) = (json!(1), Value::Null);
    for (body, status, code) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}"#,
            200,
            Some((&known, -32600)),
        ),
        (r#"{"id":1,"method":"ping"}"#, 200, Some((&known, -32600))),
        ("7", 200, Some((&unknown, -32600))),
        ("{", 400, Some((&unknown, -32700))),
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, 202, None),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/unknown","params":[]}"#,
            202,
            None,
        ),
    ] {
        let request = alice.request(Method::POST, "browser").body(body);
        let answer = request
            .header("content-type", "application/json")
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status().as_u16(), status, "{body}");
        if let Some((id, code)) = code {
            let said: Value = answer.json().await.unwrap();
            assert_eq!(
                (&said["id"], &said["error"]["code"]),
                (id, &json!(code)),
                "{body}"
            );
        }
    }
}
