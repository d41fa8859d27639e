use std::collections::BTreeSet;
use std::time::Duration;

use schema::adapter::ChatFeature;
use schema::home::conversations::ConversationId;
use schema::ids::Timestamp;
use serde_json::{Value, json};

use tokio::time::Instant;

use super::*;
use crate::chat::pico::AgentFrame;
use crate::chat::protocol::{MOST_WAITING, RefusalCode};
use crate::chat::stored::{Log, Wanted};

mod memory;
mod recorded_scenes;

const ALL: [ChatFeature; 5] = [
    ChatFeature::Pictures,
    ChatFeature::Parallel,
    ChatFeature::Usage,
    ChatFeature::Files,
    ChatFeature::Stop,
];

/// A conversation whose time the test sets.
struct Scene {
    talk: Talk,
    begun: Instant,
    passed: Duration,
    sent: usize,
}

impl Scene {
    fn new(features: &[ChatFeature]) -> Self {
        Self::load(features, &[])
    }

    fn load(features: &[ChatFeature], lines: &[String]) -> Self {
        let mut log = Log::new(Wanted {
            before: u64::MAX,
            entries: KEPT,
            bytes: KEPT_BYTES,
        });
        for line in lines.iter().rev() {
            log.take_line(line);
        }
        let (entries, earlier) = log.into_entries();
        let begun = Instant::now();
        let conversation = Conversation {
            id: ConversationId::new(),
            title: String::new(),
            created_at: Timestamp::from_secs(0),
            last_used_at: Timestamp::from_secs(0),
        };
        let now = Now {
            instant: begun,
            wall: Timestamp::from_secs(0),
        };
        let mut talk = Talk::load("epoch".to_owned(), conversation, entries, earlier, now);
        talk.set_features(features.iter().copied().collect::<BTreeSet<_>>());
        talk.set_agent(AgentState::Connected, None, false);
        Self {
            talk,
            begun,
            passed: Duration::ZERO,
            sent: 0,
        }
    }

    fn newest() -> Self {
        Self::new(&ALL)
    }

    fn now(&self) -> Now {
        Now {
            instant: self.begun + self.passed,
            wall: Timestamp::from_secs(0).plus(self.passed),
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.passed += Duration::from_secs(seconds);
        let now = self.now();
        self.talk.tick(now);
        self.talk.dispatch_messages(now);
    }

    fn say(&mut self, text: &str) -> Result<(), RefusalCode> {
        self.sent += 1;
        let client_id = format!("c{}", self.sent);
        self.say_as(&client_id, text)
    }

    fn say_as(&mut self, client_id: &str, text: &str) -> Result<(), RefusalCode> {
        let now = self.now();
        let said = self
            .talk
            .accept_message(client_id.to_owned(), text.to_owned(), Vec::new(), now);
        self.talk.dispatch_messages(now);
        said.map_err(|(code, _)| code)
    }

    fn hear(&mut self, frame: Value) {
        let now = self.now();
        self.talk
            .take_frame(AgentFrame::from_json(&frame.to_string()), now);
        self.talk.dispatch_messages(now);
    }

    fn create(&mut self, id: &str, text: &str, more: Value) {
        let mut payload = json!({"message_id": id, "content": text});
        merge(&mut payload, more);
        self.hear(json!({"type": "message.create", "payload": payload}));
    }

    fn update(&mut self, id: &str, text: &str, more: Value) {
        let mut payload = json!({"message_id": id, "content": text});
        merge(&mut payload, more);
        self.hear(json!({"type": "message.update", "payload": payload}));
    }

    fn typing(&mut self, word: &str) {
        self.hear(json!({"type": format!("typing.{word}")}));
    }

    fn delivered(&mut self) -> Vec<String> {
        let effects = self.talk.take_effects().into_iter();
        let delivered = effects.filter_map(|effect| match effect {
            Effect::Deliver { entry } => self.talk.message_of(entry).map(|(text, _)| text),
            Effect::Stop => Some("/stop".to_owned()),
            _ => None,
        });
        delivered.collect()
    }

    /// Lines that are to be written.
    fn lines(&mut self) -> Vec<String> {
        let now = self.now();
        let lines = self.talk.take_lines(true, now);
        lines.iter().filter_map(Line::to_json).collect()
    }

    /// Frames that bring a page up to date.
    fn frames(&self, cursor: &mut Cursor, hello: bool) -> Vec<String> {
        let mut hello = hello;
        let mut frames = Vec::new();
        while let Some(frame) = self.talk.next_frame(cursor, std::mem::take(&mut hello)) {
            frames.push(frame.into_json());
            assert!(frames.len() < 1000, "{frames:?}");
        }
        frames
    }

    /// Kinds and texts of the entries, and whether a turn runs.
    fn shown(&self) -> Vec<String> {
        let entries = self.talk.items.values().map(|item| show(&item.entry.body));
        let running = self.talk.is_running().then(|| "running".to_owned());
        entries.chain(running).collect()
    }
}

fn merge(payload: &mut Value, more: Value) {
    if let (Value::Object(payload), Value::Object(more)) = (payload, more) {
        payload.extend(more);
    }
}

fn show(body: &Body) -> String {
    match body {
        Body::User { text, status, .. } => format!("user {status:?}: {text}"),
        Body::Answer {
            text, streaming, ..
        } => match streaming {
            true => format!("answer…: {text}"),
            false => format!("answer: {text}"),
        },
        Body::Thought { text, .. } => format!("thought: {text}"),
        Body::Tools { calls } => {
            let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
            format!("tools: {}", names.join(", "))
        }
        Body::Files { files, .. } => {
            let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
            format!("files: {}", names.join(", "))
        }
        Body::Failure { code, text } => format!("failure {code:?}: {text}"),
        Body::Notice { code, .. } => format!("notice {code:?}"),
    }
}

fn usage() -> Value {
    json!({"context_usage": {"used_percent": 4}})
}

fn tool() -> Value {
    json!({"kind": "tool_calls", "tool_calls": [{"id": "call_1", "function": {"name": "list_dir", "arguments": "{}"}}]})
}

#[test]
fn turn_ends_with_the_context_of_an_answer() {
    let mut scene = Scene::newest();
    scene.say("hello").unwrap();
    assert_eq!(scene.delivered(), ["hello"]);
    scene.typing("start");
    scene.typing("stop");
    assert_eq!(scene.shown(), ["user Sent: hello", "running"]);
    scene.create("m1", "You said: hello", usage());
    assert_eq!(
        scene.shown(),
        ["user Sent: hello", "answer: You said: hello"]
    );
}

#[test]
fn typing_stop_before_a_tool_does_not_end_the_turn() {
    let mut scene = Scene::newest();
    scene.say("look").unwrap();
    scene.typing("start");
    scene.typing("stop");
    scene.create("m1", "", tool());
    scene.pass(9 * 60);
    assert!(scene.talk.is_running());
    scene.create("m2", "done", usage());
    assert_eq!(
        scene.shown(),
        ["user Sent: look", "tools: list_dir", "answer: done"]
    );
}

#[test]
fn updates_replace_the_whole_text() {
    let mut scene = Scene::newest();
    scene.say("stream").unwrap();
    scene.typing("start");
    scene.create("m1", "one", json!({}));
    scene.update("m1", "one two", json!({}));
    assert_eq!(
        scene.shown(),
        ["user Sent: stream", "answer…: one two", "running"]
    );
    scene.update("m1", "one two three", usage());
    scene.typing("stop");
    assert_eq!(
        scene.shown(),
        ["user Sent: stream", "answer: one two three"]
    );
}

#[test]
fn deleted_messages_are_removed() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    scene.typing("start");
    scene.create("m1", "I will look", json!({}));
    scene.hear(json!({"type": "message.delete", "payload": {"message_id": "m1"}}));
    scene.create("m2", "", tool());
    assert_eq!(
        scene.shown(),
        ["user Sent: x", "tools: list_dir", "running"]
    );
}

#[test]
fn answer_in_place_of_a_placeholder_ends_the_turn() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    scene.typing("start");
    scene.create("m1", "One moment", json!({"placeholder": true}));
    scene.typing("stop");
    scene.update("m1", "here it is", json!({}));
    assert_eq!(scene.shown(), ["user Sent: x", "answer: here it is"]);
}

#[test]
fn left_placeholder_is_removed_at_the_end() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    scene.create("m1", "One moment", json!({"placeholder": true}));
    scene.create("m2", "answer", usage());
    assert_eq!(scene.shown(), ["user Sent: x", "answer: answer"]);
}

#[test]
fn failure_arrives_as_text_and_is_masked() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    scene.create(
        "m1",
        "Error processing message: LLM call failed after retries: API request failed:\n  Status: 401\n  Body: {\"error\": \"Incorrect API key provided: sk-abcdef0123456789\"} at http://10.0.0.7:8080/v1",
        json!({}),
    );
    let shown = scene.shown();
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(shown[1].starts_with("failure Key: "), "{shown:?}");
    assert!(
        !shown[1].contains("abcdef") && !shown[1].contains("10.0.0.7"),
        "{shown:?}"
    );
}

#[test]
fn joined_messages_have_one_answer() {
    let mut scene = Scene::newest();
    scene.say("one").unwrap();
    scene.typing("start");
    scene.say("two").unwrap();
    scene.typing("start");
    scene.typing("stop");
    assert_eq!(
        scene.shown(),
        ["user Sent: one", "user Joined: two", "running"]
    );
    assert!(scene.talk.state.typing);
    scene.typing("stop");
    assert!(!scene.talk.state.typing);
    scene.create("m1", "both", usage());
    assert_eq!(
        scene.shown(),
        ["user Sent: one", "user Joined: two", "answer: both"]
    );
}

#[test]
fn eleventh_waiting_message_is_refused() {
    let mut scene = Scene::newest();
    for number in 0..=MOST_WAITING {
        scene.say(&format!("{number}")).unwrap();
    }
    assert_eq!(scene.say("one too many"), Err(RefusalCode::TooManyWaiting));
    for _ in 0..=MOST_WAITING {
        scene.typing("start");
    }
    scene.create("m1", "all", usage());
    scene.say("now").unwrap();
}

#[test]
fn message_of_a_known_id_is_sent_once() {
    let mut scene = Scene::newest();
    scene.say_as("a", "hello").unwrap();
    let before = scene.talk.number();
    scene.say_as("a", "hello").unwrap();
    assert_eq!(scene.delivered(), ["hello"]);
    assert!(
        scene.talk.number() > before,
        "its entry is shown again as the acknowledgement"
    );
}

#[test]
fn message_shows_the_conversation_again() {
    let mut scene = Scene::newest();
    scene.say("one").unwrap();
    let mut cursor = Cursor::default();
    scene.frames(&mut cursor, true);
    scene.pass(90);
    scene.say("two").unwrap();
    let frames = scene.frames(&mut cursor, false);
    let used = Timestamp::from_secs(90).to_rfc3339();
    let shown = |frame: &&String| frame.contains("\"type\":\"conversation\"");
    let frame = frames.iter().find(shown).cloned().unwrap_or_default();
    assert!(frame.contains(&used), "{frames:?}");
}

#[test]
fn stop_takes_messages_back_and_ends_the_turn() {
    let mut scene = Scene::newest();
    scene.say("long").unwrap();
    scene.typing("start");
    scene.create("m1", "part", json!({}));
    scene.delivered();
    scene.say("/stop").unwrap();
    assert_eq!(scene.delivered(), ["/stop"]);
    scene.create("m2", "Task stopped. \"long\" was canceled.", json!({}));
    assert_eq!(
        scene.shown(),
        [
            "user Stopped: long",
            "answer: part",
            "user Sent: /stop",
            "notice Stopped"
        ]
    );
}

#[test]
fn stop_without_an_answer_ends_by_itself() {
    let mut scene = Scene::newest();
    scene.say("long").unwrap();
    let now = scene.now();
    scene.talk.stop_turn(now).unwrap();
    scene.pass(10);
    assert_eq!(
        scene.shown(),
        ["user Stopped: long", "notice StopUnconfirmed"]
    );
}

#[test]
fn stop_is_refused_by_versions_without_it() {
    let mut scene = Scene::new(&[ChatFeature::Usage]);
    scene.say("long").unwrap();
    assert_eq!(scene.say("/stop"), Err(RefusalCode::NotRunning));
    assert_eq!(Scene::newest().say("/stop"), Err(RefusalCode::NotRunning));
}

#[test]
fn message_tool_ends_the_turn_after_a_silence() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    scene.create("m1", "from the tool", json!({}));
    assert!(scene.talk.is_running());
    scene.pass(10);
    assert_eq!(scene.shown(), ["user Sent: x", "answer: from the tool"]);
}

#[test]
fn file_message_may_be_the_last() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    let attachments = json!({"attachments": [
        {"type": "file", "filename": "../note.txt", "url": "/pico/media/22d7"},
        {"type": "file", "filename": "evil", "url": "http://elsewhere/pico/media/1"},
    ]});
    scene.create("m1", "", attachments);
    let fetched: Vec<Effect> = scene.talk.take_effects();
    let fetched = fetched
        .iter()
        .filter(|effect| matches!(effect, Effect::Fetch { .. }));
    assert_eq!(fetched.count(), 1);
    scene.pass(10);
    assert_eq!(scene.shown(), ["user Sent: x", "files: note.txt, evil"]);
}

#[test]
fn later_tool_call_shows_that_the_turn_goes_on() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    scene.create("m1", "interim", json!({}));
    scene.pass(10);
    assert!(!scene.talk.is_running());
    scene.create("m2", "", tool());
    assert!(scene.talk.is_running());
    scene.create("m3", "end", usage());
    assert!(!scene.talk.is_running());
}

#[test]
fn unasked_message_is_shown_without_a_turn() {
    let mut scene = Scene::newest();
    scene.create("m1", "reminder", json!({}));
    assert_eq!(scene.shown(), ["answer: reminder"]);
}

#[test]
fn silent_turn_ends_after_ten_minutes() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    scene.typing("start");
    scene.pass(599);
    assert!(scene.talk.is_running());
    scene.pass(1);
    assert_eq!(scene.shown(), ["user Unanswered: x", "notice Silent"]);
}

#[test]
fn restart_of_the_agent_is_said() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    let now = scene.now();
    scene.talk.agent_disconnected(now);
    scene.talk.agent_connected(true, now);
    assert_eq!(
        scene.shown(),
        ["user Unanswered: x", "notice AgentRestarted"]
    );
}

#[test]
fn turn_survives_a_short_break_of_the_connection() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    scene.typing("start");
    let now = scene.now();
    scene.talk.agent_disconnected(now);
    scene.pass(29);
    let now = scene.now();
    scene.talk.agent_connected(false, now);
    scene.pass(60);
    scene.create("m1", "answer", usage());
    assert_eq!(scene.shown(), ["user Sent: x", "answer: answer"]);
}

#[test]
fn message_that_got_no_sign_is_lost_with_the_connection() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    let now = scene.now();
    scene.talk.agent_disconnected(now);
    scene.talk.agent_connected(false, now);
    assert_eq!(scene.shown(), ["user Unanswered: x", "notice Disconnected"]);
}

#[test]
fn message_that_was_not_sent_waits_again() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    let now = scene.now();
    scene.talk.take_back(1, now);
    assert_eq!(scene.shown(), ["user Waiting: x"]);
    scene.pass(0);
    assert_eq!(scene.delivered(), ["x", "x"]);
}

#[test]
fn lost_agent_ends_the_turn() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    let now = scene.now();
    scene.talk.agent_disconnected(now);
    scene.pass(30);
    assert_eq!(scene.shown(), ["user Unanswered: x", "notice Disconnected"]);
}

#[test]
fn refused_message_is_marked() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    scene.hear(json!({"type": "error", "payload": {"code": "invalid_media", "message": "too long", "request_id": "1"}}));
    assert_eq!(scene.shown(), ["user Failed: x", "notice RefusedByAgent"]);
}

#[test]
fn other_conversation_holds_messages_of_old_versions_back() {
    let mut scene = Scene::new(&[]);
    scene.talk.set_agent(AgentState::Connected, None, true);
    scene.say("x").unwrap();
    assert_eq!(scene.shown(), ["user Waiting: x"]);
    scene.talk.set_agent(AgentState::Connected, None, false);
    scene.pass(0);
    assert_eq!(scene.shown(), ["user Sent: x", "running"]);
}

#[test]
fn messages_wait_for_an_agent_that_starts() {
    let mut scene = Scene::newest();
    scene.talk.set_agent(AgentState::Starting, None, false);
    scene.say("x").unwrap();
    assert_eq!(scene.delivered(), Vec::<String>::new());
    assert_eq!(scene.talk.state.waiting, 1);
    scene.talk.set_agent(AgentState::Connected, None, false);
    scene.pass(0);
    assert_eq!(scene.delivered(), ["x"]);
}

#[test]
fn old_answer_without_marks_ends_after_a_short_silence() {
    let mut scene = Scene::new(&[]);
    scene.say("x").unwrap();
    scene.typing("start");
    scene.typing("stop");
    scene.hear(json!({"type": "message.create", "payload": {"content": "🔧 `list_dir`\n```\n{\"path\": \".\"}\n```"}}));
    assert!(scene.talk.is_running());
    scene.hear(json!({"type": "message.create", "payload": {"content": "answer"}}));
    scene.pass(2);
    assert_eq!(
        scene.shown(),
        ["user Sent: x", "tools: list_dir", "answer: answer"]
    );
}

#[test]
fn repeated_ids_of_tool_calls_are_two_entries() {
    let mut scene = Scene::newest();
    for id in ["m1", "m2"] {
        scene.create(id, "", tool());
    }
    assert_eq!(
        scene.shown(),
        ["tools: list_dir", "tools: list_dir", "running"]
    );
}

#[test]
fn late_answer_to_a_stop_is_left_out() {
    let mut scene = Scene::newest();
    scene.say("one").unwrap();
    scene.typing("start");
    let now = scene.now();
    scene.talk.stop_turn(now).unwrap();
    scene.create("m1", "made meanwhile", usage());
    scene.say("two").unwrap();
    scene.create("m2", "No active task to stop.", usage());
    assert_eq!(
        scene.shown(),
        [
            "user Sent: one",
            "answer: made meanwhile",
            "user Sent: two",
            "running"
        ]
    );
}

#[test]
fn message_that_crosses_the_answer_keeps_a_turn() {
    let mut scene = Scene::newest();
    scene.say("one").unwrap();
    scene.typing("start");
    scene.say("two").unwrap();
    scene.create("m1", "answer to one", usage());
    assert!(scene.talk.is_running());
    scene.typing("start");
    scene.create("m2", "answer to two", usage());
    assert!(!scene.talk.is_running());
}

#[test]
fn stopped_message_is_not_sent_later() {
    let mut scene = Scene::newest();
    scene.say("one").unwrap();
    scene.delivered();
    let now = scene.now();
    scene.talk.stop_turn(now).unwrap();
    scene.talk.take_back(1, now);
    scene.pass(0);
    assert_eq!(scene.delivered(), ["/stop"]);
    assert_eq!(scene.shown(), ["user Withdrawn: one"]);
}

#[test]
fn page_learns_what_the_agent_can_do() {
    let mut scene = Scene::new(&[]);
    let mut cursor = Cursor::default();
    scene.frames(&mut cursor, true);
    scene.talk.set_features(ALL.into_iter().collect());
    let frames = scene.frames(&mut cursor, false);
    assert!(
        frames[0].contains("\"reset\":false") && frames[0].contains("\"stop\":true"),
        "{frames:?}"
    );
}

#[test]
fn endless_agent_is_bounded() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    for number in 0..MOST_MADE + 50 {
        scene.create(&format!("m{number}"), "word", json!({}));
        let now = scene.now();
        scene.talk.take_lines(true, now);
    }
    assert!(scene.talk.items.len() <= KEPT + 10);
    let cut = scene
        .shown()
        .iter()
        .filter(|line| *line == "notice Cut")
        .count();
    assert_eq!(cut, 1);
}

#[test]
fn page_resumes_from_its_number() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    let mut cursor = Cursor::default();
    let first = scene.frames(&mut cursor, true);
    assert!(first[0].contains("\"reset\":true"), "{first:?}");
    scene.create("m1", "answer", usage());
    let mut resumed = cursor.clone();
    let next = scene.frames(&mut cursor, false);
    assert!(
        next.iter().all(|frame| !frame.contains("\"hello\"")),
        "{next:?}"
    );
    assert!(next[0].contains("answer"), "{next:?}");
    let again = scene.frames(&mut resumed, true);
    assert!(again[0].contains("\"reset\":false"), "{again:?}");
    assert_eq!(again[1..], next[..]);
    let mut other = Cursor::new(Some(("other".to_owned(), 3)));
    let reset = scene.frames(&mut other, false);
    assert!(reset[0].contains("\"reset\":true"), "{reset:?}");
}

#[test]
fn written_entries_are_read_again() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    scene.create("m1", "part", json!({}));
    scene.hear(json!({"type": "message.delete", "payload": {"message_id": "m1"}}));
    scene.create("m2", "answer", usage());
    let lines = scene.lines();
    let again = Scene::load(&ALL, &lines);
    assert_eq!(again.shown(), ["user Sent: x", "answer: answer"]);
}

#[test]
fn interrupted_turn_is_said_when_it_is_read_again() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    scene.typing("start");
    scene.create("m1", "", tool());
    let mut lines = scene.lines();
    lines.push("{\"id\": 7, \"nonsense\"".to_owned());
    lines.push("[]".to_owned());
    let again = Scene::load(&ALL, &lines);
    assert_eq!(
        again.shown(),
        [
            "user Unanswered: x",
            "tools: list_dir",
            "notice ServiceRestarted"
        ]
    );
}

#[test]
fn waiting_message_is_sent_after_a_restart_of_the_service() {
    let mut scene = Scene::newest();
    scene.talk.set_agent(AgentState::Starting, None, false);
    scene.say_as("a", "x").unwrap();
    let lines = scene.lines();
    let mut again = Scene::load(&ALL, &lines);
    again.pass(0);
    assert_eq!(again.delivered(), ["x"]);
    again.say_as("a", "x").unwrap();
    assert_eq!(again.delivered(), Vec::<String>::new());
}

/// Frames as a page gets and sends them, one of each kind.
pub(in crate::chat) fn frames_of_all_kinds() -> Vec<Value> {
    let mut scene = Scene::newest();
    let mut cursor = Cursor::default();
    scene.frames(&mut cursor, true);
    scene.say("x").unwrap();
    scene.create("m0", "gone", json!({}));
    let mut early = cursor.clone();
    scene.frames(&mut early, false);
    scene.hear(json!({"type": "message.delete", "payload": {"message_id": "m0"}}));
    scene.create("m1", "", tool());
    scene.create("m2", "t", json!({"kind": "thought"}));
    scene.create(
        "m3",
        "",
        json!({"attachments": [{"filename": "a", "url": "/pico/media/1"}]}),
    );
    scene.create("m4", "Error processing message: x", json!({}));
    scene.create("m5", "answer", usage());
    let now = scene.now();
    scene.talk.add_remark(NoticeCode::Cut, "left out", now);
    scene.talk.rename("title".to_owned());
    let mut frames = scene.frames(&mut Cursor::default(), true);
    frames.extend(scene.frames(&mut early, false));
    let refused = crate::chat::protocol::ServerFrame::Refused {
        client_id: None,
        code: RefusalCode::Empty,
        message: "m".to_owned(),
    };
    frames.push(serde_json::to_string(&refused).unwrap());
    frames.push(json!({"type": "pong"}).to_string());
    frames.push(json!({"type": "end", "code": "deleted", "message": "m"}).to_string());
    let attachments = json!([{"path": "a", "picture": true}]);
    frames.push(
        json!({"type": "send", "client_id": "a", "text": "b", "attachments": attachments})
            .to_string(),
    );
    frames.push(json!({"type": "stop"}).to_string());
    frames.push(json!({"type": "ping"}).to_string());
    let frames: Vec<Value> = frames
        .iter()
        .map(|text| serde_json::from_str(text).unwrap())
        .collect();
    for kind in ["hello", "entry", "remove", "state", "conversation"] {
        assert!(frames.iter().any(|frame| frame["type"] == kind), "{kind}");
    }
    frames
}
