//! Messages of unmodified clients, replayed: the frames of the browser extensions 1.2.0 and 1.3.0 were recorded from them, in Chromium in
//! front of one site, and the messages of MCP clients come from reports about them.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::support::{Performer, Person, Socket, Yard, facts};
use crate::support::Stage;

const OLD: &str = include_str!("recorded/extension-1.2.0.jsonl");
const NEW: &str = include_str!("recorded/extension-1.3.0.jsonl");
const ARGUMENTS: &str = include_str!("recorded/arguments-as-text.jsonl");

fn lines(recorded: &str) -> Vec<Value> {
    let lines = recorded.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// An extension in front of a page, which answers as it did there.
struct Extension<'a> {
    alice: &'a Person,
    socket: Socket,
    recorded: Vec<Value>,
    page: &'static str,
}

impl<'a> Extension<'a> {
    async fn connect(alice: &'a Person, recorded: &str) -> Self {
        Self {
            alice,
            socket: alice.executor("browser").await,
            recorded: lines(recorded),
            page: "shop",
        }
    }

    /// The frame that it sent when it was asked this.
    fn frame(&self, question: &Value) -> Value {
        let is_it = |line: &&Value| {
            let asked = line["asked"].as_str().unwrap();
            let params = &question["params"];
            line["page"] == self.page
                && line["tool"] == question["tool"]
                && match params["script"].as_str() {
                    Some(script) => script.contains(asked),
                    None => serde_json::from_str::<Value>(asked).unwrap() == *params,
                }
        };
        let found = self.recorded.iter().find(is_it);
        let found = found.unwrap_or_else(|| panic!("{}: {question}", self.page));
        let (name, value) = match found.get("error") {
            Some(error) => ("error", error),
            None => ("result", &found["result"]),
        };
        json!({"id": question["id"], name: value})
    }

    /// The result of a call, and the tools that were asked for, but for the address of the tab.
    async fn call(&mut self, tool: &str, arguments: Value) -> (Value, Vec<String>) {
        let called = self.alice.call("browser", tool, arguments);
        tokio::pin!(called);
        let mut asked = Vec::new();
        loop {
            let message = tokio::select! {
                result = &mut called => return (result, asked),
                message = self.socket.next() => message,
            };
            match message {
                Some(Ok(Message::Text(text))) => {
                    let question: Value = serde_json::from_str(&text).unwrap();
                    let Some(tool) = question["tool"].as_str() else {
                        continue;
                    };
                    if tool != "browser_current_tab" {
                        asked.push(tool.trim_start_matches("browser_").to_owned());
                    }
                    let frame = self.frame(&question).to_string();
                    self.socket.send(Message::Text(frame.into())).await.unwrap();
                }
                Some(Ok(Message::Close(frame))) => {
                    asked.push(format!("closed {}", u16::from(frame.unwrap().code)));
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    self.socket = self.alice.executor("browser").await;
                    self.page = "connected again";
                }
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Calls tools on a page: what is said, after `!` in an error, and what was asked for.
    async fn try_all(&mut self, page: &'static str, calls: &[(&str, Value, &str, &str)]) {
        self.page = page;
        for (tool, arguments, said, asks) in calls {
            let (result, asked) = self.call(tool, arguments.clone()).await;
            let fails = said.starts_with('!');
            assert_eq!(result["isError"] == true, fails, "{page}: {tool}: {result}");
            let said = said.trim_start_matches('!');
            assert!(
                result.to_string().contains(said),
                "{page}: {tool}: {result}"
            );
            assert_eq!(asked.join(" "), *asks, "{page}: {tool} {arguments}");
        }
    }
}

const MISSING: &str = "!no element matches #none";

/// On pages that run scripts, both extensions are asked the same.
fn calls_with_scripts() -> Vec<(&'static str, Value, &'static str, &'static str)> {
    let none = || json!({"selector": "#none"});
    vec![
        ("browser_click", none(), MISSING, "execute"),
        (
            "browser_key_press",
            json!({"selector": "#none", "key": "Enter"}),
            MISSING,
            "execute",
        ),
        (
            "browser_type",
            json!({"selector": "#none", "text": "new", "submit": true}),
            MISSING,
            "execute",
        ),
        (
            "browser_type",
            json!({"selector": "#num", "text": "1,5"}),
            "!takes a text such as 3.5",
            "execute",
        ),
        (
            "browser_type",
            json!({"selector": "#mail", "text": "a@b.c"}),
            "success",
            "execute",
        ),
        (
            "browser_scroll",
            json!({"selector": "#none", "y": 10}),
            MISSING,
            "scroll",
        ),
        (
            "browser_get_attribute",
            json!({"selector": "#none", "name": "id"}),
            MISSING,
            "get_attribute",
        ),
        (
            "browser_get_content",
            none(),
            MISSING,
            "get_content execute",
        ),
        (
            "browser_wait",
            json!({"selector": "#none", "timeout": 300}),
            "!no element matches #none after 300 ms",
            "wait",
        ),
        (
            "browser_execute",
            json!({"script": "let a = 1; a + 1"}),
            "{\\\"result\\\":2}",
            "execute",
        ),
        (
            "browser_execute",
            json!({"script": "none.x"}),
            "!none is not defined",
            "execute",
        ),
        (
            "browser_get_links",
            json!({"contains": "needle"}),
            "needle <http://site.example/needle>",
            "execute",
        ),
    ]
}

#[tokio::test]
async fn failed_calls_of_extension_1_2_0_are_errors() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let mut extension = Extension::connect(&alice, OLD).await;
    extension.try_all("shop", &calls_with_scripts()).await;
    let typed = |selector: &str| json!({"selector": selector, "text": "new", "submit": true});
    let calls = [
        (
            "browser_click",
            json!({"selector": "#none"}),
            MISSING,
            "execute click",
        ),
        // Enter is not pressed on what was there before.
        ("browser_type", typed("#none"), MISSING, "execute type"),
        (
            "browser_type",
            typed("#name"),
            "success",
            "execute type get_content key_press",
        ),
    ];
    extension.try_all("strict", &calls).await;
    let field = extension
        .recorded
        .iter_mut()
        .find(|line| line["page"] == "strict" && line["tool"] == "browser_get_content");
    field.unwrap()["result"]["content"] = json!("old");
    let calls = [(
        "browser_type",
        typed("#name"),
        "!so Enter was not pressed",
        "execute type get_content",
    )];
    extension.try_all("strict", &calls).await;
    let calls = [(
        "browser_execute",
        json!({"script": "1"}),
        "!Content-Security-Policy",
        "execute",
    )];
    extension.try_all("trusted types", &calls).await;
}

#[tokio::test]
async fn extension_1_3_0_says_what_failed_and_takes_hold_of_tabs() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let mut extension = Extension::connect(&alice, NEW).await;
    extension.try_all("shop", &calls_with_scripts()).await;
    let nothing = || json!({});
    let back = [(
        "browser_go_back",
        nothing(),
        "http://site.example/shop",
        "execute execute",
    )];
    extension.try_all("history", &back).await;
    let calls = [
        (
            "browser_tab_new",
            json!({"url": "http://site.example/other"}),
            "tabId",
            "tab_new",
        ),
        (
            "browser_get_content",
            nothing(),
            "at /other",
            "get_content closed 1012 get_content",
        ),
    ];
    extension.try_all("new tab", &calls).await;
    let url = json!({"url": "http://site.example/shop"});
    let calls = [
        (
            "browser_get_content",
            nothing(),
            "!browser_tab_new and browser_tab_select",
            "",
        ),
        (
            "browser_navigate",
            url,
            "!choose one of browser_tabs_list",
            "navigate",
        ),
    ];
    // A state that was read a moment ago is trusted for a second.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    extension.try_all("closed", &calls).await;
}

#[tokio::test]
async fn two_browsers_behind_one_address_are_held_apart() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let mut connected = Vec::new();
    for _ in 0..6 {
        connected.push(alice.executor("browser").await);
    }
    for pause in 0..2 {
        let Err(Error::Http(answer)) = alice.try_connect("browser", None).await else {
            panic!("it is let in {pause}");
        };
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS.as_u16());
        let after: u64 = answer.headers()["retry-after"]
            .to_str()
            .unwrap()
            .parse()
            .unwrap();
        assert!((25..=31).contains(&after), "{after}");
    }
    let status = alice.call("browser", "browser_status", json!({})).await;
    assert_eq!(facts(&status)["connected"], true, "{status}");
    assert!(
        facts(&status)["refusedForSeconds"].as_u64() > Some(20),
        "{status}"
    );
    // The browser of another user, and the desktop of this one, are let in.
    let bob = yard.person("bob").await;
    bob.executor("browser").await;
    alice.executor("computer").await;
}

#[tokio::test]
async fn arguments_that_clients_send_as_texts_are_taken() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let _browser = Performer::start(alice.executor("browser").await);
    for case in lines(ARGUMENTS) {
        let tool = case["body"]["params"]["name"].as_str().unwrap();
        let service = tool.split('_').next().unwrap();
        let answer = alice.post(service, case["body"].clone()).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let answer: Value = answer.json().await.unwrap();
        let result = &answer["result"];
        assert_eq!(result.get("isError"), None, "{answer}");
        let parts = result["content"].as_array().unwrap().iter();
        let texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
        let note = texts.last().unwrap();
        assert!(
            note.starts_with("Note: ") && note.contains("sent as a text"),
            "{answer}"
        );
    }
    // A refusal says what to send, also in a step of a batch.
    for (tool, arguments, said) in [
        (
            "computer_wait",
            json!({"ms": "soon"}),
            r#"computer_wait: ms is "soon" (a text); it takes a whole number from 0 to 30000, such as 100"#,
        ),
        (
            "computer_wait",
            json!({"seconds": 1}),
            "computer_wait: seconds is not an argument; the tool takes ms",
        ),
        (
            "browser_batch",
            json!({"steps": [{"tool": "browser_click", "arguments": "{\"css\":\"#a\"}"}]}),
            "steps.0: browser_click: css is not an argument; the tool takes selector, button, clicks, dialog, modifiers, promptText, snapshot",
        ),
    ] {
        let service = tool.split('_').next().unwrap();
        let refused = alice.call(service, tool, arguments).await;
        assert_eq!(refused["isError"], true, "{refused}");
        assert_eq!(refused["content"][0]["text"], said);
    }
}
