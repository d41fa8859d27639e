//! Frames of PicoClaw's web channel.

mod failure;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

pub(super) use failure::classify_failure;

use super::bounded::{MOST_PARTS, NAME, cut_json};
use super::protocol::ToolCall;
use crate::long_work::run_blocking;

/// Longest frame of an agent, in bytes.
pub(super) const LONGEST_FRAME: usize = 2 * 1024 * 1024;
/// Longest frame that is parsed on an async thread, in bytes.
const SHORT_FRAME: usize = 64 * 1024;
/// Longest text of one message that is kept, in bytes of JSON.
const LONGEST_TEXT: usize = 512 * 1024;
/// Longest id of a message, in bytes: that of a longer one is not known.
const LONGEST_ID: usize = 256;
/// Longest name, type or explanation, in characters.
const LONGEST_NAME: usize = 1000;
/// Number of characters at which PicoClaw cuts a tool's arguments.
const CUT_ARGUMENTS: usize = 300;
/// Beginning of a failure that arrives as an answer.
const FAILED: &str = "Error processing message: ";
/// Beginning of a tool call in versions without tool frames.
const TOOL_TEXT: &str = "\u{1f527} `";

/// A frame of an agent.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AgentFrame {
    /// A turn shows activity.
    TypingStart,
    /// It no longer does.
    TypingStop,
    /// A new message.
    Create(Message),
    /// The whole new content of a message.
    Update(Message),
    /// A message is gone.
    Delete(String),
    /// A message was refused.
    Refused {
        /// The id under which it was sent, if it is known.
        request: Option<String>,
        /// Cause and text.
        message: String,
    },
    /// The answer to a ping.
    Pong,
    /// A frame without meaning here.
    Other,
}

/// A message of an agent.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Message {
    /// Its id, where the version gives one.
    pub(super) id: Option<String>,
    /// Its kind.
    pub(super) kind: MessageKind,
    /// Its text.
    pub(super) text: String,
    /// The text was longer.
    pub(super) cut: bool,
    /// The model that wrote it.
    pub(super) model: Option<String>,
    /// It closes an answer; use of the model's context in percent.
    pub(super) usage: Option<u32>,
}

/// The kind of a message.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum MessageKind {
    /// Text for the user.
    #[default]
    Answer,
    /// A text that stands for the answer to come.
    Placeholder,
    /// A thought.
    Thought,
    /// Calls of tools.
    Tools(Vec<ToolCall>),
    /// Files.
    Files(Vec<AgentFile>),
    /// A failure, as the agent reports it.
    Failure,
}

/// A file of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AgentFile {
    /// Its name.
    pub(super) name: String,
    /// Its type, as the agent says.
    pub(super) content_type: String,
    /// Its path at the agent.
    pub(super) path: String,
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "type", default)]
    kind: Value,
    #[serde(default)]
    payload: Value,
}

/// Parses a frame as it came from the agent, a long one off the async threads.
pub(super) async fn parse_frame(frame: Bytes) -> AgentFrame {
    let length = frame.len();
    let parse = move || AgentFrame::from_json(&String::from_utf8_lossy(&frame));
    match length <= SHORT_FRAME {
        true => parse(),
        false => run_blocking(parse).await.unwrap_or(AgentFrame::Other),
    }
}

impl AgentFrame {
    /// Parses a frame; one that cannot be read, or is not known, is [`AgentFrame::Other`].
    pub(super) fn from_json(text: &str) -> Self {
        let Ok(Envelope { kind, payload }) = serde_json::from_str::<Envelope>(text) else {
            return Self::Other;
        };
        match kind.as_str().unwrap_or_default() {
            "typing.start" => Self::TypingStart,
            "typing.stop" => Self::TypingStop,
            "message.create" => Self::Create(Message::from_payload(&payload)),
            "message.update" => Self::Update(Message::from_payload(&payload)),
            "message.delete" => match text_of(&payload, "message_id") {
                Some(id) => Self::Delete(id),
                None => Self::Other,
            },
            "error" => {
                let part = |name| text_of(&payload, name).unwrap_or_default();
                Self::Refused {
                    request: text_of(&payload, "request_id"),
                    message: shorten_text(&format!("{}: {}", part("code"), part("message"))),
                }
            }
            "pong" => Self::Pong,
            _ => Self::Other,
        }
    }
}

impl Message {
    fn from_payload(payload: &Value) -> Self {
        let content = payload.get("content").and_then(Value::as_str);
        let (text, cut) = cut_text(content.unwrap_or_default());
        let usage = payload.get("context_usage").filter(|it| it.is_object());
        Self {
            id: text_of(payload, "message_id").filter(|id| (1..=LONGEST_ID).contains(&id.len())),
            kind: kind_of(payload, &text),
            model: text_of(payload, "model_name").filter(|name| !name.is_empty()),
            usage: usage.map(|usage| {
                let percent = usage.get("used_percent").and_then(Value::as_f64);
                // Out of range is clamped, not wrapped.
                percent.unwrap_or_default().clamp(0.0, 1000.0) as u32
            }),
            text,
            cut,
        }
    }
}

fn kind_of(payload: &Value, text: &str) -> MessageKind {
    let flag = |name| payload.get(name).and_then(Value::as_bool) == Some(true);
    let list = |name| payload.get(name).and_then(Value::as_array);
    let kind = payload.get("kind").and_then(Value::as_str);
    if flag("thought") || kind == Some("thought") {
        return MessageKind::Thought;
    }
    if let Some(calls) = list("tool_calls").filter(|calls| !calls.is_empty()) {
        return MessageKind::Tools(calls.iter().take(MOST_PARTS).map(tool_call).collect());
    }
    if let Some(files) = list("attachments").filter(|files| !files.is_empty()) {
        return MessageKind::Files(files.iter().take(MOST_PARTS).map(agent_file).collect());
    }
    if flag("placeholder") {
        return MessageKind::Placeholder;
    }
    if text.starts_with(FAILED) {
        return MessageKind::Failure;
    }
    match tool_of_text(text) {
        Some(call) => MessageKind::Tools(vec![call]),
        None => MessageKind::Answer,
    }
}

fn tool_call(call: &Value) -> ToolCall {
    let function = call.get("function").unwrap_or(&Value::Null);
    let arguments = text_of(function, "arguments").unwrap_or_default();
    let explanation = call
        .get("extra_content")
        .and_then(|extra| text_of(extra, "tool_feedback_explanation"));
    ToolCall {
        name: text_of(function, "name").unwrap_or_default(),
        cut: arguments.chars().count() >= CUT_ARGUMENTS
            && serde_json::from_str::<Value>(&arguments).is_err(),
        arguments,
        explanation: explanation.filter(|text| !text.trim().is_empty()),
    }
}

/// Reads a tool call that versions before 0.2.8 send as text: the name in backticks, then a code block.
fn tool_of_text(text: &str) -> Option<ToolCall> {
    let (name, rest) = text.strip_prefix(TOOL_TEXT)?.split_once('`')?;
    let block = rest.split_once("```").map_or(rest, |(_, block)| block);
    let block = block.strip_prefix("json").unwrap_or(block);
    let arguments = block.split_once("```").map_or(block, |(inner, _)| inner);
    let arguments = shorten_text(arguments.trim());
    Some(ToolCall {
        name: shorten_text(name),
        cut: serde_json::from_str::<Value>(&arguments).is_err(),
        arguments,
        explanation: None,
    })
}

fn agent_file(file: &Value) -> AgentFile {
    let part = |name| text_of(file, name).unwrap_or_default();
    AgentFile {
        name: part("filename"),
        content_type: part("content_type"),
        path: part("url"),
    }
}

fn text_of(value: &Value, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).map(shorten_text)
}

fn shorten_text(text: &str) -> String {
    let end = text.char_indices().nth(LONGEST_NAME).map(|(at, _)| at);
    let short = end.map_or(text, |end| text.get(..end).unwrap_or_default());
    cut_json(short, NAME).to_owned()
}

fn cut_text(text: &str) -> (String, bool) {
    let cut = cut_json(text, LONGEST_TEXT);
    (cut.to_owned(), cut.len() < text.len())
}

/// Writes the frame of a message without pictures to an agent.
pub(super) fn message_frame(id: &str, text: &str) -> String {
    json!({"type": "message.send", "id": id, "payload": {"content": text}}).to_string()
}

/// Writes the beginning of the frame of a message with pictures: data URLs, separated by `","`, and [`END_OF_PICTURES`] follow.
pub(super) fn begin_picture_frame(id: &str, text: &str) -> String {
    let (id, text) = (json!(id), json!(text));
    format!(r#"{{"type":"message.send","id":{id},"payload":{{"content":{text},"media":[""#)
}

/// What stands between two pictures of a frame.
pub(super) const BETWEEN_PICTURES: &str = "\",\"";
/// The end of a frame with pictures.
pub(super) const END_OF_PICTURES: &str = "\"]}}";

/// The answer of an agent to `/stop`.
pub(super) fn is_stop_answer(text: &str) -> bool {
    text.starts_with("Task stopped.") || text == "No active task to stop."
}

/// A remark of an agent after which its turn goes on.
pub(super) fn is_interim_remark(text: &str) -> bool {
    text.starts_with("Context window exceeded. Compressing history")
}
