//! A user talks to the agent, in Chromium.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::json;

use super::Viewer;
use crate::chat::Talk;
use crate::support::node::Models;
use crate::support::seconds;

const FIELD: &str = "textarea[aria-label='Message to your agent']";
const QUESTION: &str = "Which of the invoices in my workspace is not paid yet?";
const SCRIPT: &str = "THINK The user asks about invoices, so I look at the files.\nCALL list_dir {\"path\":\".\"}\nTHEN\nSAY There are two files. **invoice-0412.pdf** is marked as paid, this one is not:\\n\\n| Invoice | Customer | Due |\\n|---|---|---|\\n| 0415 | Miller & Sons | 30 November |\\n\\nShall I write a reminder?";
/// Bytes of an attachment.
const LARGE: usize = 20 * 1024 * 1024;

impl Viewer {
    async fn say(&mut self, text: &str) {
        self.browser.fill(FIELD, text).await;
        self.browser.does("press", json!([FIELD, "Enter"])).await;
    }

    async fn wait_for_answer(&mut self, text: &str) {
        self.wait_for(&format!("[data-kind=answer]:has-text('{text}')"))
            .await;
    }

    async fn evaluate(&mut self, expression: &str) -> serde_json::Value {
        self.browser.does("own", expression).await["value"].clone()
    }
}

#[tokio::test]
async fn engine_user_talks_to_the_agent_on_the_page() {
    let script = format!("{QUESTION}={SCRIPT}");
    let talk = Talk::with(Models::with_scripts(&[&script]).await);
    let service = talk.launch().start().await;
    let (_, password) = talk.user(&service, "ann").await;
    let mut viewer = Viewer::open(format!("http://{}", service.address())).await;
    viewer.open_page("/", "/login").await;
    viewer.sign_in("ann", &password).await;
    viewer.wait_for(FIELD).await;
    viewer.check_access("no conversation").await;

    viewer.say(QUESTION).await;
    viewer.wait_for_answer("There are two files").await;
    viewer.wait_for("[data-kind=answer] >> strong").await;
    viewer
        .wait_for("[data-kind=tools] >> text=Looked into a folder")
        .await;
    viewer.wait_for("[data-kind=thought]").await;
    viewer.check_access("an answer").await;
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("console");
    std::fs::create_dir_all(&folder).unwrap();
    let picture = folder.join("chat-light.png");
    viewer
        .browser
        .does("screenshot", picture.to_str().unwrap())
        .await;

    // Reloaded, and in a second tab.
    let address = viewer.evaluate("location.href").await;
    let address = address.as_str().unwrap().to_owned();
    viewer.browser.goto(&address).await;
    viewer.wait_for_answer("There are two files").await;
    viewer.browser.does("tabs", json!([1, address])).await;
    viewer.wait_for(FIELD).await;
    viewer.say("hello from the first tab").await;
    let answer = "[data-kind=answer]:has-text('You said: hello from the first tab')";
    viewer.browser.does("everywhere", answer).await;

    // What a model writes stays text.
    viewer.say("MARKDOWN").await;
    viewer
        .wait_for("[data-kind=answer] >> role=heading[name='A heading']")
        .await;
    viewer
        .wait_for("[data-kind=answer] >> text=window.scriptRan = true")
        .await;
    let ran = "[window.scriptRan, window.imageRan, document.querySelectorAll('[data-kind=answer] iframe, [data-kind=answer] img').length]";
    assert_eq!(viewer.evaluate(ran).await, json!([null, null, 0]));
    viewer.check_access("Markdown").await;

    viewer.say("STREAM 400").await;
    viewer.wait_for_answer("one two three").await;
    viewer.click_on("role=button[name='Stop']").await;
    viewer
        .wait_for("[data-kind=notice]:has-text('You stopped')")
        .await;

    let files = json!([
        "input[aria-label='Attach files']",
        [["large.txt", "x".repeat(LARGE)]]
    ]);
    viewer.browser.does("choose", files).await;
    viewer.wait_for("text=large.txt").await;
    viewer.browser.fill(FIELD, "read it").await;
    viewer.click_on("role=button[name='Send']").await;
    viewer.wait_for_answer("uploads/large.txt").await;
    let uploaded = talk
        .stage
        .data()
        .join("users/ann/.agent/workspace/uploads/large.txt");
    assert_eq!(std::fs::metadata(uploaded).unwrap().len(), LARGE as u64);

    viewer.say("STREAM 400").await;
    viewer
        .wait_for("[data-kind=answer] >> nth=-1 >> text=one two three")
        .await;
    let container = talk.engine.the_running("ann").id;
    talk.engine.docker(&["kill", &container]);
    viewer
        .wait_for("text=The agent restarted in the middle of the answer")
        .await;
    viewer.say("are you back?").await;
    viewer.wait_for_answer("You said: are you back?").await;
    viewer.check_access("after a restart").await;
    let dark = json!({"scheme": "dark", "width": 390, "locale": "zh-CN"});
    viewer.browser.does("look", dark).await;
    viewer.browser.goto(&address).await;
    viewer.wait_for_answer("You said: are you back?").await;
    viewer.check_access("dark, narrow, Chinese").await;
    assert_eq!(viewer.read_complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn engine_user_reads_a_conversation_of_2000_messages() {
    let talk = Talk::new().await;
    let service = talk.launch().start().await;
    let (ann, password) = talk.user(&service, "ann").await;
    let created = ann
        .post("/api/agent/chat/create", &[("title", "long")])
        .await;
    let id = created.expect(200)["conversation"]["id"].clone();
    let id = id.as_str().unwrap();
    let mut lines = String::new();
    for number in 1..=1000 {
        let at = "2026-05-11T11:46:40Z";
        let asked = json!({"id": 2 * number - 1, "at": at, "kind": "user", "text": format!("question {number}"), "status": "sent"});
        let said = json!({"id": 2 * number, "at": at, "kind": "answer", "text": format!("answer *{number}*")});
        writeln!(lines, "{asked}\n{said}").unwrap();
    }
    let workspace = talk.stage.data().join("users/ann/.agent/workspace");
    let file = workspace.join(format!("conversations/{id}/entries.jsonl"));
    std::fs::write(file, lines).unwrap();
    let mut viewer = Viewer::open(format!("http://{}", service.address())).await;
    viewer.open_page("/", "/login").await;
    viewer.sign_in("ann", &password).await;
    viewer.wait_for_answer("answer 1000").await;
    let deadline = tokio::time::Instant::now() + seconds(90);
    while viewer
        .evaluate("document.querySelector('[role=log] [data-id=\"1\"]') !== null")
        .await
        != json!(true)
    {
        let reached = tokio::time::Instant::now() < deadline;
        assert!(reached, "the beginning is not reached");
        viewer
            .evaluate("document.querySelector('[role=log]').scrollTo(0, 0)")
            .await;
        // A change of the network fails a request; the page shows a button then.
        viewer
            .evaluate("[...document.querySelectorAll('[role=log] button')].find((it) => it.innerText === 'Show earlier messages')?.click()")
            .await;
        tokio::time::sleep(seconds(1) / 5).await;
    }
    viewer.say("and now").await;
    viewer.wait_for_answer("You said: and now").await;
    let asked = viewer.browser.does("asked", true).await;
    let paint = asked["paint"].as_f64().unwrap();
    eprintln!("2,000 messages: longest time to the next paint {paint} ms");
    assert_eq!(viewer.read_complaints().await, Vec::<String>::new());
}
