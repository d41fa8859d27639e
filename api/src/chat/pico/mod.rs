//! Frames of PicoClaw's web channel.

mod failure;

use bytes::Bytes;
use schema::ids::Uid;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::RawValue;

pub(super) use failure::classify_failure;

use super::bounded::{First, MOST_PARTS, NAME, cut_json};
use super::protocol::ToolCall;
use crate::long_work::run_long_work;

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

/// A value that is read when its use is known; one of another type than expected counts as absent. It is a part of the frame, so that
/// a frame of any shape takes no memory of its own.
type Raw<'a> = Option<&'a RawValue>;

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "type", borrow)]
    kind: Raw<'a>,
    #[serde(borrow)]
    payload: Raw<'a>,
}

#[derive(Default, Deserialize)]
struct Payload<'a> {
    #[serde(borrow)]
    attachments: Raw<'a>,
    #[serde(borrow)]
    code: Raw<'a>,
    #[serde(borrow)]
    content: Raw<'a>,
    #[serde(borrow)]
    context_usage: Raw<'a>,
    #[serde(borrow)]
    kind: Raw<'a>,
    #[serde(borrow)]
    message: Raw<'a>,
    #[serde(borrow)]
    message_id: Raw<'a>,
    #[serde(borrow)]
    model_name: Raw<'a>,
    #[serde(borrow)]
    placeholder: Raw<'a>,
    #[serde(borrow)]
    request_id: Raw<'a>,
    #[serde(borrow)]
    thought: Raw<'a>,
    #[serde(borrow)]
    tool_calls: Raw<'a>,
}

#[derive(Deserialize)]
struct Usage<'a> {
    #[serde(borrow)]
    used_percent: Raw<'a>,
}

#[derive(Default, Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    function: Raw<'a>,
    #[serde(borrow)]
    extra_content: Raw<'a>,
}

#[derive(Default, Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Raw<'a>,
    #[serde(borrow)]
    arguments: Raw<'a>,
}

#[derive(Default, Deserialize)]
struct Extra<'a> {
    #[serde(borrow)]
    tool_feedback_explanation: Raw<'a>,
}

#[derive(Default, Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    filename: Raw<'a>,
    #[serde(borrow)]
    content_type: Raw<'a>,
    #[serde(borrow)]
    url: Raw<'a>,
}

/// Parses a frame of a user's agent, a long one off the async threads.
pub(super) async fn parse_frame(user: &Uid, frame: Bytes) -> AgentFrame {
    let length = frame.len();
    let parse = move || AgentFrame::from_json(&String::from_utf8_lossy(&frame));
    match length <= SHORT_FRAME {
        true => parse(),
        false => run_long_work(user, parse)
            .await
            .unwrap_or(AgentFrame::Other),
    }
}

impl AgentFrame {
    /// Parses a frame; one that cannot be read, or is not known, is [`AgentFrame::Other`].
    pub(super) fn from_json(text: &str) -> Self {
        let Ok(Envelope { kind, payload }) = serde_json::from_str::<Envelope<'_>>(text) else {
            return Self::Other;
        };
        let payload: Payload<'_> = parse(payload).unwrap_or_default();
        match parse::<String>(kind).unwrap_or_default().as_str() {
            "typing.start" => Self::TypingStart,
            "typing.stop" => Self::TypingStop,
            "message.create" => Self::Create(Message::from_payload(&payload)),
            "message.update" => Self::Update(Message::from_payload(&payload)),
            "message.delete" => match parse_text(payload.message_id) {
                Some(id) => Self::Delete(id),
                None => Self::Other,
            },
            "error" => {
                let part = |part| parse_text(part).unwrap_or_default();
                let (code, message) = (part(payload.code), part(payload.message));
                Self::Refused {
                    request: parse_text(payload.request_id),
                    message: shorten_text(&format!("{code}: {message}")),
                }
            }
            "pong" => Self::Pong,
            _ => Self::Other,
        }
    }
}

impl Message {
    fn from_payload(payload: &Payload<'_>) -> Self {
        let content: String = parse(payload.content).unwrap_or_default();
        let (text, cut) = cut_text(&content);
        Self {
            id: parse_text(payload.message_id).filter(|id| (1..=LONGEST_ID).contains(&id.len())),
            kind: kind_of(payload, &text),
            model: parse_text(payload.model_name).filter(|name| !name.is_empty()),
            usage: parse::<Usage<'_>>(payload.context_usage).map(|usage| {
                let percent: Option<f64> = parse(usage.used_percent);
                // Out of range is clamped, not wrapped.
                percent.unwrap_or_default().clamp(0.0, 1000.0) as u32
            }),
            text,
            cut,
        }
    }
}

fn kind_of(payload: &Payload<'_>, text: &str) -> MessageKind {
    type Parts<'a> = First<&'a RawValue, MOST_PARTS>;
    let flag = |flag| parse::<bool>(flag) == Some(true);
    if flag(payload.thought) || parse_text(payload.kind).as_deref() == Some("thought") {
        return MessageKind::Thought;
    }
    let First(calls) = parse::<Parts<'_>>(payload.tool_calls).unwrap_or_default();
    if !calls.is_empty() {
        return MessageKind::Tools(calls.into_iter().map(tool_call).collect());
    }
    let First(files) = parse::<Parts<'_>>(payload.attachments).unwrap_or_default();
    if !files.is_empty() {
        return MessageKind::Files(files.into_iter().map(agent_file).collect());
    }
    if flag(payload.placeholder) {
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

fn tool_call(call: &RawValue) -> ToolCall {
    let call: Call<'_> = parse(Some(call)).unwrap_or_default();
    let function: Function<'_> = parse(call.function).unwrap_or_default();
    let extra: Extra<'_> = parse(call.extra_content).unwrap_or_default();
    let arguments = parse_text(function.arguments).unwrap_or_default();
    ToolCall {
        name: parse_text(function.name).unwrap_or_default(),
        cut: arguments.chars().count() >= CUT_ARGUMENTS
            && serde_json::from_str::<IgnoredAny>(&arguments).is_err(),
        arguments,
        explanation: parse_text(extra.tool_feedback_explanation)
            .filter(|text| !text.trim().is_empty()),
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
        cut: serde_json::from_str::<IgnoredAny>(&arguments).is_err(),
        arguments,
        explanation: None,
    })
}

fn agent_file(file: &RawValue) -> AgentFile {
    let file: File<'_> = parse(Some(file)).unwrap_or_default();
    let part = |part| parse_text(part).unwrap_or_default();
    AgentFile {
        name: part(file.filename),
        content_type: part(file.content_type),
        path: part(file.url),
    }
}

fn parse<'a, T: Deserialize<'a>>(value: Raw<'a>) -> Option<T> {
    serde_json::from_str(value?.get()).ok()
}

fn parse_text(value: Raw<'_>) -> Option<String> {
    parse::<String>(value).map(|text| shorten_text(&text))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_of_another_type_counts_as_absent() {
        let parse = |payload: &str| {
            let frame = format!(r#"{{"type":"message.create","payload":{payload},"more":[1]}}"#);
            match AgentFrame::from_json(&frame) {
                AgentFrame::Create(message) => message,
                other => panic!("{other:?}"),
            }
        };
        let nothing = Message::default();
        for payload in [
            "null",
            "7",
            "{}",
            r#"{"content":{"a":[]}}"#,
            r#"{"content":null}"#,
        ] {
            assert_eq!(parse(payload), nothing, "{payload}");
        }
        let odd = r#"{"content":"x","message_id":5,"tool_calls":"no","attachments":{"a":1},
            "thought":"yes","model_name":[],"context_usage":[],"placeholder":1,"kind":{}}"#;
        let text = "x".to_owned();
        assert_eq!(parse(odd).text, text);
        assert_eq!(parse(odd).kind, MessageKind::Answer);
        let calls =
            r#"{"tool_calls":[7,{"function":{"name":"a","arguments":{}}},{"function":[]}]}"#;
        let MessageKind::Tools(calls) = parse(calls).kind else {
            panic!("no calls");
        };
        let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["", "a", ""]);
        for frame in [
            "",
            "[]",
            "{}",
            r#"{"type":5}"#,
            r#"{"type":"message.delete","payload":{"message_id":5}}"#,
        ] {
            assert_eq!(AgentFrame::from_json(frame), AgentFrame::Other, "{frame}");
        }
    }

    #[test]
    fn many_parts_are_cut_at_their_bound() {
        let parts = vec!["{}"; 10_000].join(",");
        let frame = format!(r#"{{"type":"message.update","payload":{{"tool_calls":[{parts}]}}}}"#);
        let AgentFrame::Update(message) = AgentFrame::from_json(&frame) else {
            panic!("no update");
        };
        let MessageKind::Tools(calls) = message.kind else {
            panic!("no calls");
        };
        assert_eq!(calls.len(), MOST_PARTS);
    }
}
