//! Executors of the first generation, as the extension and the desktop client that are in use are: what an MCP client gets of them,
//! over real connections. Whatever has to do with time and order is tried in `api::executors`.

use std::io::Cursor;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::Message;

use crate::support::mcp::Executor;
use crate::support::{Client, McpUser, PATIENCE, Service, Stage, seconds};

const MIB: usize = 1024 * 1024;

async fn open(stage: &Stage) -> (Service, Client) {
    let launch = stage.alone().set("container.autostart", "false");
    let service = launch.start().await;
    let admin = service.admin().await;
    (service, admin)
}

/// The text of a result that is a failure.
fn failure(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn frames_are_those_that_executors_know_and_what_they_do_not_know_harms_nobody() {
    let stage = Stage::new();
    let (service, admin) = open(&stage).await;
    let alice = McpUser::create(&service, &admin, "alice").await;
    let mut browser = alice.executor("browser").await;
    // The extension says every 20 seconds that it is there.
    browser.send("").await;
    let executed = async {
        // Answers in the shapes that are in use: numbers come back as they were sent, by some as text.
        for (number, before, outcome) in [
            (1, vec![], r#""result":{"success":true}"#),
            (2, vec!["", "{", "[1]", "null"], r#""result":null"#),
            (
                3,
                vec![
                    r#"{"id":1,"result":"again"}"#,
                    r#"{"id":99,"result":"of nobody"}"#,
                ],
                r#""result":"3""#,
            ),
            (
                4,
                vec![r#"{"type":"progress","id":4}"#],
                r#""error":{"message":"no such tab"}"#,
            ),
            (5, vec![], r#""result":{"error":{"message":"nested"}}"#),
        ] {
            let asked = browser.question().await;
            let expected =
                json!({"id": number, "tool": "browser_tab_close", "params": {"tabId": number}});
            assert_eq!(asked, expected);
            for frame in before {
                browser.send(frame).await;
            }
            let id = if number % 2 == 0 {
                format!("\"{number}\"")
            } else {
                number.to_string()
            };
            browser.send(format!("{{\"id\":{id},{outcome}}}")).await;
        }
    };
    let called = async {
        let mut results = Vec::new();
        for number in 1..=5 {
            let arguments = json!({"tabId": number});
            results.push(alice.call("browser", "browser_tab_close", arguments).await);
        }
        results
    };
    let (results, ()) = tokio::join!(called, executed);
    assert_eq!(results[0]["structuredContent"], json!({"success": true}));
    assert!(failure(&results[1]).contains("the browser says no more"));
    assert_eq!(results[2]["content"][0]["text"], "3");
    assert!(failure(&results[3]).contains("\nno such tab\n"));
    assert!(failure(&results[4]).contains("\nnested\n"));
    // The second answer to the first question was too late; that of nobody was none.
    let seen = admin.get("/api/admin/executors").await.expect(200);
    assert_eq!(seen["executors"][0]["late_answers"], 1, "{seen}");
    assert!(
        seen["executors"][0]["calls_total"].as_u64() >= Some(1),
        "{seen}"
    );
}

#[tokio::test]
async fn l52_a_large_screenshot_passes_and_one_that_is_too_large_ends_the_connection_by_1009() {
    let stage = Stage::new();
    let (service, admin) = open(&stage).await;
    let alice = McpUser::create(&service, &admin, "alice").await;
    let mut desktop = alice.executor("computer").await;
    let screenshot = |bytes: usize| {
        let data = "A".repeat(bytes);
        json!({"content": [{"type": "image", "data": data, "mimeType": "image/png"}]})
    };
    // Noise, which takes as many bytes as it has.
    let noise = image::RgbImage::from_fn(1920, 1080, |_, _| image::Rgb(rand::random()));
    let mut png = Cursor::new(Vec::new());
    noise.write_to(&mut png, image::ImageFormat::Png).unwrap();
    let png = STANDARD.encode(png.into_inner());
    assert!(png.len() > 5 * MIB);
    let called = alice.call("computer", "computer_screenshot", json!({}));
    let executed = async {
        let asked = desktop.question().await;
        assert_eq!(asked["tool"], "computer_screen_size");
        desktop
            .answer(&asked, json!({"width": 1920, "height": 1080}))
            .await;
        let asked = desktop.question().await;
        let part = json!({"type": "image", "data": png, "mimeType": "image/png"});
        desktop.answer(&asked, json!({"content": [part]})).await;
    };
    let (result, ()) = tokio::join!(called, executed);
    let image = result["content"].as_array().unwrap();
    let image = image.iter().find(|part| part["type"] == "image").unwrap();
    let bytes = STANDARD.decode(image["data"].as_str().unwrap()).unwrap();
    assert!(bytes.len() <= 1_000_000, "{}", bytes.len());
    let seen = image::load_from_memory(&bytes).unwrap();
    assert_eq!(
        result["_meta"]["agentyard/facts"]["width"],
        seen.width(),
        "{result}"
    );

    let called = alice.call(
        "computer",
        "computer_keyboard_press",
        json!({"keys": ["a"]}),
    );
    let Executor { socket } = &mut desktop;
    let (mut writer, mut reader) = socket.split();
    let mut asked = None;
    let executed = async {
        let mut code = None;
        while let Some(Ok(message)) = reader.next().await {
            match message {
                Message::Text(text) if asked.is_none() => {
                    let question: Value = serde_json::from_str(&text).unwrap();
                    let answer = json!({"id": question["id"], "result": screenshot(33 * MIB)});
                    asked = Some(question);
                    // It is told while it sends.
                    let _ = writer.send(Message::Text(answer.to_string().into())).await;
                }
                Message::Close(frame) => code = frame.map(|frame| u16::from(frame.code)),
                _ => {}
            }
        }
        code
    };
    let both = async { tokio::join!(called, executed) };
    let (result, code) = timeout(PATIENCE, both).await.expect("it ends");
    assert!(failure(&result).contains("disconnected"), "{result}");
    assert_eq!(code, Some(1009));
    // The service is as well as before.
    let mut again = alice.executor("computer").await;
    let called = alice.call("computer", "computer_screen_size", json!({}));
    let executed = async {
        let asked = again.question().await;
        assert_eq!(asked["id"], 1);
        again.answer(&asked, json!({"width": 7, "height": 5})).await;
    };
    let (result, ()) = tokio::join!(called, executed);
    assert_eq!(result["structuredContent"]["width"], 7, "{result}");
}

#[tokio::test]
async fn what_the_desktop_would_not_survive_is_refused_with_its_limit() {
    let stage = Stage::new();
    let (service, admin) = open(&stage).await;
    let alice = McpUser::create(&service, &admin, "alice").await;
    let mut desktop = alice.executor("computer").await;
    let arguments = json!({"path": "/tmp/a", "content": "x".repeat(MIB)});
    let refused = alice
        .call("computer", "computer_file_write", arguments)
        .await;
    let said = failure(&refused);
    assert!(
        said.contains("1048576 bytes") && said.contains("the desktop"),
        "{said}"
    );
    // It heard nothing of it, and is there.
    let called = alice.call("computer", "computer_screen_size", json!({}));
    let executed = async {
        let asked = desktop.question().await;
        assert_eq!(asked["tool"], "computer_screen_size");
        desktop
            .answer(&asked, json!({"width": 1, "height": 1}))
            .await;
    };
    tokio::join!(called, executed);
}

#[tokio::test]
async fn l48_calls_at_a_replaced_executor_fail_at_once_and_the_newer_one_is_asked() {
    let stage = Stage::new();
    let (service, admin) = open(&stage).await;
    let alice = McpUser::create(&service, &admin, "alice").await;
    let mut older = alice.executor("browser").await;
    let called = alice.call("browser", "browser_tab_close", json!({"tabId": 1}));
    let replaced = async {
        older.question().await;
        let begin = Instant::now();
        let newer = alice.executor("browser").await;
        let bye = json!({"type": "bye", "reason": "replaced"});
        assert_eq!(
            older.ended().await,
            (vec![bye], 1000, "replaced".to_owned())
        );
        (newer, begin)
    };
    let (result, (mut newer, begin)) = tokio::join!(called, replaced);
    assert!(begin.elapsed() < seconds(5), "{:?}", begin.elapsed());
    let said = failure(&result);
    assert!(
        said.contains("replaced by a newer connection") && said.contains("unknown"),
        "{said}"
    );
    // The end of the older one takes nothing from the newer one.
    drop(older);
    let called = alice.call("browser", "browser_current_tab", json!({}));
    let executed = async {
        let asked = newer.question().await;
        newer.answer(&asked, json!({"tab": {"id": 2}})).await;
    };
    let (result, ()) = tokio::join!(called, executed);
    let facts = &result["_meta"]["agentyard/facts"];
    assert_eq!(facts["tab"]["id"], 2, "{result}");
}

#[tokio::test]
async fn pings_of_a_desktop_are_answered_while_it_is_asked_and_while_it_answers() {
    let stage = Stage::new();
    let (service, admin) = open(&stage).await;
    let alice = McpUser::create(&service, &admin, "alice").await;
    let mut desktop = alice.executor("computer").await;
    let called = alice.call("computer", "computer_active_window", json!({}));
    let executed = async {
        let asked = desktop.question().await;
        for number in 0..3_u8 {
            let ping = Message::Ping(vec![number].into());
            desktop.socket.send(ping).await.unwrap();
            let pong = timeout(PATIENCE, desktop.socket.next()).await;
            let pong = pong.expect("it is answered").unwrap().unwrap();
            assert_eq!(pong, Message::Pong(vec![number].into()));
        }
        desktop.answer(&asked, json!({"text": "done"})).await;
    };
    let (result, ()) = tokio::join!(called, executed);
    let facts = &result["_meta"]["agentyard/facts"];
    assert_eq!(facts["text"], "done", "{result}");
}

#[tokio::test]
async fn l49_an_answer_that_comes_when_its_time_is_up_is_counted_and_reaches_nobody() {
    let stage = Stage::new();
    let (service, admin) = open(&stage).await;
    let alice = McpUser::create(&service, &admin, "alice").await;
    let mut browser = alice.executor("browser").await;
    // What a caller says how long it may take, and five seconds.
    let arguments = json!({"selector": "#never", "timeout": 0});
    let begin = Instant::now();
    let called = alice.call("browser", "browser_wait", arguments);
    let executed = async {
        let asked = browser.question().await;
        assert_eq!(asked["tool"], "browser_current_tab");
        let tab = json!({"url": "https://example.org/"});
        browser.answer(&asked, json!({"tab": tab})).await;
    };
    let (result, ()) = tokio::join!(called, executed);
    let said = failure(&result);
    assert!(said.contains("not answered within 5 seconds"), "{said}");
    assert!(begin.elapsed() < seconds(10), "{:?}", begin.elapsed());
    let late = browser.question().await;
    browser.answer(&late, json!("late")).await;
    let called = alice.call("browser", "browser_tab_close", json!({"tabId": 2}));
    let executed = async {
        let asked = browser.question().await;
        assert_eq!(
            (&asked["id"], &asked["params"]),
            (&json!(3), &json!({"tabId": 2}))
        );
        browser.answer(&asked, json!("in time")).await;
    };
    let (result, ()) = tokio::join!(called, executed);
    assert_eq!(result["content"][0]["text"], "in time", "{result}");
    let seen = admin.get("/api/admin/executors").await.expect(200);
    assert_eq!(seen["executors"][0]["late_answers"], 1, "{seen}");
}

#[tokio::test]
async fn a_wait_for_an_address_ends_when_the_browser_is_gone() {
    let stage = Stage::new();
    let (service, admin) = open(&stage).await;
    let alice = McpUser::create(&service, &admin, "alice").await;
    let mut browser = alice.executor("browser").await;
    let arguments = json!({"url": "/done", "timeoutMs": 60_000});
    let waiting = alice.call("browser", "browser_wait_for", arguments);
    let gone = async {
        let tab = json!({"tab": {"id": 1, "url": "https://example.org/"}});
        let asked = browser.question().await;
        browser.answer(&asked, tab).await;
        drop(browser);
    };
    let (result, ()) = timeout(seconds(50), async { tokio::join!(waiting, gone) })
        .await
        .expect("it does not wait to its end");
    let said = failure(&result);
    assert!(said.contains("no browser is connected"), "{said}");
}
