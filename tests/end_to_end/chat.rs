//! Conversations with an agent in its container, over the WebSocket of pages.

use serde_json::{Value, json};

use crate::support::chat::Page;
use crate::support::node::Models;
use crate::support::postgres::Database;
use crate::support::service::Launch;
use crate::support::{Client, Engine, Service, Stage, seconds};

/// A service with agents that talk, and the model that they ask.
pub(crate) struct Talk {
    pub(crate) engine: Engine,
    pub(crate) stage: Stage,
    models: Models,
}

impl Talk {
    pub(crate) async fn new() -> Self {
        Self::with(Models::start().await)
    }

    pub(crate) fn with(models: Models) -> Self {
        Self {
            engine: Engine::claim(),
            stage: Stage::new(),
            models,
        }
    }

    pub(crate) fn launch(&self) -> Launch {
        let agent = json!({
            "defaults": {"model": "fake"},
            "models": [{"name": "fake", "model": "fake", "api_base": self.models.address(), "streaming": true}],
        });
        let launch = self.stage.serve_with(&self.engine, "chat");
        let launch = match self.engine.is_cluster() {
            true => launch.set("container.lan_access", crate::support::cluster::BESIDE),
            false => launch,
        };
        launch
            .args(&["--adapter", "echo"])
            .set("container.host_access", "open")
            .set("agent", &agent.to_string())
            .set(
                "security",
                &json!({"models": {"fake": {"api_keys": [Models::KEY]}}}).to_string(),
            )
    }

    /// Creates a user whose agent runs; returns the user's client and the password.
    pub(crate) async fn user(&self, service: &Service, name: &str) -> (Client, String) {
        let admin = service.admin().await;
        let password = admin.create_user(name).await;
        admin.status(name, "running", seconds(40)).await;
        (service.client().signed_in(name, &password).await, password)
    }
}

async fn create(user: &Client) -> String {
    let created = user.post("/api/agent/chat/create", &[]).await.expect(200);
    created["conversation"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn engine_chat_answers_in_all_tabs_and_after_a_reload() {
    let talk = Talk::new().await;
    let service = talk.launch().start().await;
    let (ann, _) = talk.user(&service, "ann").await;
    let id = create(&ann).await;
    let mut page = Page::open(&service, &ann, &id).await;
    let mut tab = Page::open(&service, &ann, &id).await;
    page.say("m1", "THINK I look.\nCALL list_dir {\"path\":\".\"}")
        .await;
    page.until_text("answer", "The tool said:").await;
    page.until_quiet().await;
    tab.until_text("answer", "The tool said:").await;
    let shown = page.shown();
    assert!(shown[0].starts_with("user: THINK"), "{shown:?}");
    assert_eq!(shown[1..3], ["thought: I look.", "tools: list_dir"]);
    tab.until_quiet().await;
    assert_eq!(tab.shown(), shown);
    // A page repeats a message whose acknowledgement it missed.
    page.say("m1", "THINK I look.").await;
    page.say("m2", "hello").await;
    page.until_text("answer", "You said: hello").await;
    page.until_quiet().await;
    let shown = page.shown();
    assert_eq!(shown[4..], ["user: hello", "answer: You said: hello"]);

    // A page that comes back gets what it has missed.
    let more = format!("&epoch={}&after={}", tab.epoch, tab.number);
    let mut back = Page::try_open(&service, &ann, &id, &more, None)
        .await
        .unwrap();
    back.until_text("answer", "You said: hello").await;
    assert_eq!(back.resets, 0);
    let fresh = Page::open(&service, &ann, &id).await;
    assert_eq!(fresh.resets, 1);

    let listed = ann.get("/api/agent/chat").await.expect(200);
    assert_eq!(listed["chat"]["state"], "on", "{listed}");
    assert_eq!(
        listed["conversations"][0]["title"], "THINK I look.",
        "{listed}"
    );
    let text = ann
        .get(&format!("/api/agent/chat/export?id={id}"))
        .await
        .text();
    assert!(text.contains("You said: hello"), "{text}");

    // Other sites and other users get nothing.
    let foreign = Page::try_open(&service, &ann, &id, "", Some("https://evil.example")).await;
    assert_eq!(foreign.err(), Some(403));
    let (bob, _) = talk.user(&service, "bob").await;
    assert_eq!(
        Page::try_open(&service, &bob, &id, "", None).await.err(),
        Some(404)
    );
    let refused = ann.get(&format!("/api/agent/chat/ws?id={id}")).await;
    refused.refused(400, "invalid_request");

    ann.post("/api/agent/chat/delete", &[("id", &id)])
        .await
        .expect(200);
    page.until_end().await;
    assert_eq!(page.ended.unwrap()["code"], "deleted");
    assert_eq!(
        Page::try_open(&service, &ann, &id, "", None).await.err(),
        Some(404)
    );
    let log = service.log();
    assert!(
        !log.contains(Models::KEY) && !log.contains("You said"),
        "{log}"
    );
}

#[tokio::test]
async fn engine_chat_files_pictures_and_failures_arrive() {
    let talk = Talk::new().await;
    let service = talk.launch().start().await;
    let (ann, _) = talk.user(&service, "ann").await;
    let id = create(&ann).await;
    let workspace = talk.stage.data().join("users/ann/.agent/workspace");
    std::fs::write(workspace.join("note.txt"), "a note").unwrap();
    std::fs::write(workspace.join("evil.svg"), "<svg onload='alert(1)'/>").unwrap();
    let pixel = base64::Engine::decode(
        &base64::engine::general_purpose::STANDARD,
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
    );
    std::fs::write(workspace.join("dot.png"), pixel.unwrap()).unwrap();
    let mut page = Page::open(&service, &ann, &id).await;
    for (number, (name, picture)) in [("note.txt", false), ("evil.svg", false), ("dot.png", true)]
        .iter()
        .enumerate()
    {
        page.say(
            &format!("f{number}"),
            &format!("CALL send_file {{\"path\":\"{name}\"}}"),
        )
        .await;
        page.until("the file is fetched", |page| {
            page.entries.values().any(|entry| {
                let file = &entry["files"][0];
                file["name"] == *name && (file["file"].is_string() || file["error"].is_string())
            })
        })
        .await;
        page.until_quiet().await;
        let entry = page.until_text("files", name).await;
        let file = &entry["files"][0];
        assert_eq!(file["picture"], *picture, "{file}");
        let stored = file["file"].as_str().unwrap_or_else(|| panic!("{file}"));
        let answer = ann
            .get(&format!("/api/agent/chat/file?id={id}&file={stored}"))
            .await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        let disposition = answer.headers["content-disposition"].to_str().unwrap();
        assert_eq!(disposition.starts_with("inline"), *picture, "{disposition}");
    }

    let attachments = json!([{"path": "dot.png", "picture": true}, {"path": "note.txt"}]);
    page.send(
        &json!({"type": "send", "client_id": "p1", "text": "see", "attachments": attachments}),
    )
    .await;
    let answer = page.until_text("answer", "with 1 picture").await;
    assert!(
        answer["text"].as_str().unwrap().contains("- note.txt"),
        "{answer}"
    );
    page.send(&json!({"type": "send", "client_id": "p2", "text": "", "attachments": [{"path": "../../config.json"}]})).await;
    page.until("the refusal", |page| !page.refused.is_empty())
        .await;
    assert_eq!(page.refused[0]["code"], "bad_attachment");

    page.say("x1", "FAIL 401 no such key").await;
    let failure = page.until_text("failure", "no such key").await;
    assert_eq!(failure["code"], "key");
    let text = failure.to_string();
    assert!(
        !text.contains("sk-test") && !text.contains("10.88.0.1"),
        "{text}"
    );
}

#[tokio::test]
async fn engine_chat_stops_joins_and_waits() {
    let talk = Talk::new().await;
    let service = talk.launch().start().await;
    let (ann, _) = talk.user(&service, "ann").await;
    let (first, second) = (create(&ann).await, create(&ann).await);
    let mut page = Page::open(&service, &ann, &first).await;
    let mut other = Page::open(&service, &ann, &second).await;
    page.say("a1", "WAIT 4\nSAY slow").await;
    page.until("the turn runs", |page| !page.state["turn"].is_null())
        .await;
    other.say("b1", "quick").await;
    other
        .until("the other one waits", |page| page.state["other"] == true)
        .await;
    page.say("a2", "joined").await;
    page.until_text("user", "joined").await;
    page.until_quiet().await;
    assert_eq!(
        page.shown(),
        [
            "user: WAIT 4\nSAY slow",
            "user: joined",
            "answer: You said: joined"
        ]
    );
    assert_eq!(page.entries[&2]["status"], "joined");
    other.until_text("answer", "You said: quick").await;

    page.say("a3", "STREAM 200").await;
    page.until_text("answer", "one two").await;
    page.send(&json!({"type": "stop"})).await;
    page.until_text("notice", "stopped").await;
    page.until_quiet().await;
    let partial = page
        .entries
        .values()
        .rfind(|entry| entry["kind"] == "answer")
        .unwrap();
    assert_eq!(partial["streaming"], false);
    page.say("a4", "after").await;
    page.until_text("answer", "You said: after").await;

    page.say("a5", "WAIT 3\nSAY end").await;
    page.until("the turn runs", |page| !page.state["turn"].is_null())
        .await;
    for number in 0..11 {
        page.say(&format!("w{number}"), &format!("more {number}"))
            .await;
    }
    page.until("one too many", |page| !page.refused.is_empty())
        .await;
    assert_eq!(page.refused[0]["code"], "too_many_waiting");
    page.until_quiet().await;
}

#[tokio::test]
async fn engine_chat_says_that_agent_or_service_restarted() {
    let talk = Talk::new().await;
    let service = talk.launch().start().await;
    let (ann, password) = talk.user(&service, "ann").await;
    let id = create(&ann).await;
    let mut page = Page::open(&service, &ann, &id).await;
    page.say("a1", "STREAM 400").await;
    page.until_text("answer", "one two").await;
    let container = talk.engine.the_running("ann").id;
    talk.engine.by_hand(&["kill", &container]);
    page.until("the restart is said", |page| {
        let notices = page
            .entries
            .values()
            .filter(|entry| entry["kind"] == "notice");
        notices
            .into_iter()
            .any(|entry| entry["code"] == "agent_restarted")
    })
    .await;
    page.until("the agent is back", |page| {
        page.state["agent"] == "connected"
    })
    .await;
    page.say("a2", "again").await;
    page.until_text("answer", "You said: again").await;

    page.until_quiet().await;
    page.say("a3", "WAIT 5\nSAY late").await;
    page.until("the turn runs", |page| !page.state["turn"].is_null())
        .await;
    service.kill9().await;
    let service = talk.launch().start().await;
    let ann = service.client().signed_in("ann", &password).await;
    let mut page = Page::open(&service, &ann, &id).await;
    page.until("the restart is said", |page| {
        page.shown()
            .last()
            .is_some_and(|it| it == "notice: service_restarted")
    })
    .await;
    let shown = page.shown();
    assert!(
        shown.contains(&"answer: You said: again".to_owned()),
        "{shown:?}"
    );
    assert_eq!(
        shown.last().unwrap(),
        "notice: service_restarted",
        "{shown:?}"
    );
    page.until("the agent is back", |page| {
        page.state["agent"] == "connected"
    })
    .await;
    page.say("a4", "and again").await;
    page.until_text("answer", "You said: and again").await;
}

#[tokio::test]
async fn engine_chat_is_held_by_one_replica() {
    let talk = Talk::new().await;
    let database = Database::create().await;
    let launch = |name: &str| {
        let socket = talk.stage.path().join(format!("{name}.sock"));
        talk.launch()
            .arg("--database-url")
            .arg(database.url())
            .arg("--admin-socket")
            .arg(socket.display().to_string())
    };
    let mut first = launch("first").start().await;
    let second = launch("second").start().await;
    let (ann, _) = talk.user(&first, "ann").await;
    let at_second = ann.at(&second.client());
    let id = create(&ann).await;
    let mut page = Page::open(&first, &ann, &id).await;
    page.say("m1", "hello").await;
    page.until_text("answer", "You said: hello").await;
    page.until_quiet().await;

    let address = format!("/api/agent/chat/ws?id={id}");
    let refused = at_second.get(&address).await;
    refused.refused(409, "held_elsewhere");
    let refused = Page::try_open(&second, &at_second, &id, "", None).await;
    assert_eq!(refused.err(), Some(409));
    let form = [("id", id.as_str())];
    let deletion = at_second.post("/api/agent/chat/delete", &form).await;
    deletion.refused(409, "held_elsewhere");
    // Another conversation of the user is free.
    let other = create(&at_second).await;
    Page::open(&second, &at_second, &other).await;

    first.terminate();
    page.until_end().await;
    assert_eq!(page.ended.unwrap()["code"], "service_stopping");
    first.ended().await;
    let mut page = Page::open(&second, &at_second, &id).await;
    page.until_text("answer", "You said: hello").await;
    assert_eq!(page.shown(), ["user: hello", "answer: You said: hello"]);
    page.say("m2", "again").await;
    page.until_text("answer", "You said: again").await;

    drop(second);
    database.drop().await;
}

#[tokio::test]
async fn engine_chat_bounds_an_agent_that_misbehaves() {
    let talk = Talk::new().await;
    let service = talk.launch().start().await;
    let (ann, _) = talk.user(&service, "ann").await;
    let id = create(&ann).await;
    let quirks = talk.stage.data().join("users/ann/.agent/chat-quirks.json");
    let mut page = Page::open(&service, &ann, &id).await;
    let set = |value: Value| std::fs::write(&quirks, value.to_string()).unwrap();
    set(json!({"malformed": true}));
    page.say("q1", "one").await;
    page.until_text("answer", "You said: one").await;
    page.until_quiet().await;
    set(json!({"oversized": 12 * 1024 * 1024}));
    page.say("q2", "two").await;
    page.until_text("notice", "longer than 2 MiB").await;
    set(json!({"endless": 1}));
    page.until("the agent is back", |page| {
        page.state["agent"] == "connected"
    })
    .await;
    let before = service.memory();
    page.say("q3", "three").await;
    page.until_text("answer", "").await;
    tokio::time::sleep(seconds(3)).await;
    let grown = service.memory().saturating_sub(before);
    assert!(
        grown < 64 * 1024 * 1024,
        "the service has grown by {grown} bytes"
    );
    set(json!({}));
    page.send(&json!({"type": "stop"})).await;
    page.until_quiet().await;
}
