//! What the service and executors say to each other (executors.md, 6.1 and 6.2).
//!
//! The service sends `{"id":n,"tool":"…","params":{…}}`, and executors answer `{"id":n,"result":…}` or
//! `{"id":n,"error":{"message":"…"}}`. Everything else has a `type`, and whoever does not know it ignores it.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What an executor has made of a question.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Its result, as it was sent.
    Result(Box<RawValue>),
    /// Why there is none.
    Error(String),
}

impl Outcome {
    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Result(raw) => raw.get().len(),
            Self::Error(message) => message.len(),
        }
    }
}

/// How an executor introduces itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Hello {
    /// Which installation it is.
    pub(super) instance: String,
    /// What its user calls it.
    #[serde(default)]
    pub(super) label: String,
    /// What it is.
    #[serde(default)]
    pub(super) client: Client,
    /// The tools that it knows.
    #[serde(default)]
    pub(super) tools: Vec<String>,
    /// What else it knows.
    #[serde(default)]
    pub(super) features: Vec<String>,
}

/// A program that is an executor.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
pub(super) struct Client {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) version: String,
    #[serde(default)]
    pub(super) platform: String,
}

/// Longest text of a `hello`, in bytes.
const LONGEST_TEXT: usize = 200;
/// Most tools, and most features.
const MOST: usize = 200;
/// Longest `hello`, in bytes.
const LONGEST_HELLO: usize = 64 * 1024;

/// A frame of an executor.
#[derive(Debug)]
pub(super) enum Frame {
    /// An answer.
    Answer {
        /// The number of the question.
        id: u64,
        /// What came of it.
        outcome: Outcome,
    },
    /// It says who it is.
    Hello(Box<Hello>),
    /// It means nothing to us.
    Other,
}

/// What a frame is, of which nothing is copied: however long it is and whatever is in it, finding that out takes no memory.
#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl Frame {
    /// Reads a frame. One that cannot be read means nothing.
    pub(super) fn read(text: &str) -> Self {
        let Ok(raw) = serde_json::from_str::<Raw<'_>>(text) else {
            return Self::Other;
        };
        match (raw.kind.map(RawValue::get), raw.id.and_then(number)) {
            (Some(r#""hello""#), _) if text.len() <= LONGEST_HELLO => {
                match serde_json::from_str::<Hello>(text) {
                    Ok(hello) if hello.is_sane() => Self::Hello(Box::new(hello)),
                    _ => Self::Other,
                }
            }
            (None, Some(id)) => Self::Answer {
                id,
                outcome: outcome(raw.result, raw.error),
            },
            _ => Self::Other,
        }
    }
}

/// Numbers come back as they were sent, by some as text.
fn number(id: &RawValue) -> Option<u64> {
    id.get().trim_matches('"').parse().ok()
}

fn outcome(result: Option<&RawValue>, error: Option<&RawValue>) -> Outcome {
    // One by one: what may be either would first be read into values, which take many times its length.
    #[derive(Deserialize)]
    struct Said {
        message: String,
    }
    if let Some(error) = error.map(RawValue::get) {
        let said = serde_json::from_str::<Said>(error).map(|said| said.message);
        let said = said.or_else(|_| serde_json::from_str(error));
        return Outcome::Error(said.unwrap_or_else(|_| error.to_owned()));
    }
    Outcome::Result(result.map_or_else(|| RawValue::NULL.to_owned(), ToOwned::to_owned))
}

impl Hello {
    fn is_sane(&self) -> bool {
        let Client {
            name,
            version,
            platform,
        } = &self.client;
        let lists = [&self.tools, &self.features];
        let texts = [&self.instance, &self.label, name, version, platform];
        !self.instance.is_empty()
            && !self.instance.contains(char::is_control)
            && lists.iter().all(|list| list.len() <= MOST)
            && (texts.into_iter())
                .chain(lists.into_iter().flatten())
                .all(|text| text.len() <= LONGEST_TEXT)
    }
}

/// Most bytes that the number of a question adds to it.
pub(super) const NUMBER: usize = 32;

/// A question without its number: that is known when it is sent.
pub(super) fn question(tool: &str, params: &RawValue) -> String {
    #[derive(Serialize)]
    struct Question<'a> {
        tool: &'a str,
        params: &'a RawValue,
    }
    let question = Question { tool, params };
    serde_json::to_string(&question).unwrap_or_default()
}

/// A question with its number.
pub(super) fn numbered(id: u64, question: &str) -> String {
    let rest = question.strip_prefix('{').unwrap_or(question);
    format!("{{\"id\":{id},{rest}")
}

/// That nobody waits for an answer any more.
pub(super) fn cancel(id: u64) -> String {
    serde_json::json!({ "type": "cancel", "id": id }).to_string()
}

/// That the connection is about to end, and why.
pub(super) fn bye(reason: &str) -> String {
    serde_json::json!({ "type": "bye", "reason": reason }).to_string()
}

/// The answer to a `hello`.
pub(super) fn welcome(longest_message: usize) -> String {
    let limits = serde_json::json!({ "message_bytes": longest_message });
    serde_json::json!({ "type": "welcome", "protocol": 2, "limits": limits }).to_string()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r#"{"id":7,"result":{"a":1}}"#, 7, Ok(r#"{"a":1}"#))]
    #[case(r#"{"id":"7","result":"x"}"#, 7, Ok(r#""x""#))]
    #[case(r#"{"id":7,"result":null}"#, 7, Ok("null"))]
    #[case(r#"{"id":7}"#, 7, Ok("null"))]
    #[case(r#"{"id":7,"error":{"message":"no such tab"}}"#, 7, Err("no such tab"))]
    #[case(r#"{"id":7,"error":"no such tab","result":1}"#, 7, Err("no such tab"))]
    #[case(r#"{"id":7,"error":{"code":4}}"#, 7, Err(r#"{"code":4}"#))]
    #[case(
        r#"{"id":7,"error":["no such tab",[]]}"#,
        7,
        Err(r#"["no such tab",[]]"#)
    )]
    #[case(r#"{"type":null,"id":7,"result":1}"#, 7, Ok("1"))]
    #[case(r#"{"id":7,"result":[1.10]}"#, 7, Ok("[1.10]"))]
    fn answers_are_read_as_they_were_sent(
        #[case] text: &str,
        #[case] number: u64,
        #[case] expected: Result<&str, &str>,
    ) {
        let Frame::Answer { id, outcome } = Frame::read(text) else {
            panic!("no answer");
        };
        assert_eq!(id, number);
        let found = match &outcome {
            Outcome::Result(value) => Ok(value.get()),
            Outcome::Error(message) => Err(message.as_str()),
        };
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case("")]
    #[case("null")]
    #[case("[1]")]
    #[case(r#"{"id":-1,"result":1}"#)]
    #[case(r#"{"id":1.5,"result":1}"#)]
    #[case(r#"{"id":{},"result":1}"#)]
    #[case(r#"{"type":"progress","id":1}"#)]
    #[case(r#"{"type":"hello"}"#)]
    #[case(r#"{"type":"hello","instance":""}"#)]
    #[case(r#"{"type":"hello","instance":"a\u001b[2J"}"#)]
    #[case("{\"id\":1,\"result\":1")]
    fn what_cannot_be_read_means_nothing(#[case] text: &str) {
        assert!(matches!(Frame::read(text), Frame::Other), "{text}");
    }

    #[test]
    fn questions_have_number_tool_and_parameters() {
        let params = RawValue::from_string(r#"{"url":"https://a/"}"#.to_owned()).unwrap();
        let question = numbered(7, &question("browser_navigate", &params));
        assert_eq!(
            question,
            r#"{"id":7,"tool":"browser_navigate","params":{"url":"https://a/"}}"#
        );
    }

    #[test]
    fn a_hello_that_is_too_long_means_nothing() {
        let long = "x".repeat(LONGEST_TEXT + 1);
        let hello = |label: &str| format!(r#"{{"type":"hello","instance":"a","label":"{label}"}}"#);
        assert!(matches!(Frame::read(&hello("mine")), Frame::Hello(_)));
        let fields = |fields: usize| {
            let rest = ",\"\":0".repeat(fields);
            format!(r#"{{"type":"hello","instance":"a"{rest}}}"#)
        };
        assert!(matches!(Frame::read(&fields(10_000)), Frame::Hello(_)));
        assert!(matches!(Frame::read(&fields(14_000)), Frame::Other));
        assert!(matches!(Frame::read(&hello(&long)), Frame::Other));
    }
}
