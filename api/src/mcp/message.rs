//! JSON-RPC 2.0 messages (<https://www.jsonrpc.org/specification>), as MCP uses them. Ids are kept as they were sent: some are texts.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::answer::RpcError;

/// Deepest nesting of a message.
const DEPTH: usize = 64;
/// Most values of a message: each takes many times its length of memory.
const VALUES: usize = 50_000;
/// Most messages of a batch.
const BATCH: usize = 20;
/// Longest id, in bytes.
const ID: usize = 256;

/// A message of a client.
#[derive(Debug, Clone)]
pub enum Message {
    /// Something that is to be answered.
    Request {
        /// Its id, as it was sent.
        id: Box<RawValue>,
        /// What it asks for.
        method: String,
        /// With what.
        params: Option<Params>,
    },
    /// Something that is not.
    Notification {
        /// What it says.
        method: String,
        /// With what.
        params: Option<Box<RawValue>>,
    },
    /// An answer to something of ours.
    Response,
}

/// What a request is made with, which may be long: what is looked at before it is carried out is read once, with the message.
#[derive(Debug, Clone)]
pub struct Params {
    /// All of it: an object.
    pub raw: Box<RawValue>,
    /// The tool that is called.
    pub name: Option<String>,
    /// If that is a batch, the tools of its steps; `None` where they cannot be read.
    pub steps: Option<Vec<String>>,
    /// What is said about the request.
    pub meta: Meta,
}

/// Of `_meta`, what this service knows.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// The revision, of clients that begin without a handshake.
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    pub version: Option<Box<RawValue>>,
    /// What the client can do, which they say, too.
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    pub capabilities: Option<Box<RawValue>>,
    /// Under what name progress is to be told.
    #[serde(rename = "progressToken")]
    pub progress_token: Option<Box<RawValue>>,
}

impl Params {
    /// What cannot be read of it counts as not said.
    pub fn read(raw: Box<RawValue>) -> Self {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Fields<'a> {
            #[serde(borrow)]
            name: Option<&'a RawValue>,
            #[serde(borrow)]
            arguments: Option<&'a RawValue>,
            #[serde(borrow, rename = "_meta")]
            meta: Option<&'a RawValue>,
        }
        let fields: Fields<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
        let name: Option<String> = fields
            .name
            .and_then(|name| serde_json::from_str(name.get()).ok());
        let steps = fields
            .arguments
            .filter(|_| name.as_ref().is_some_and(|name| name.ends_with("_batch")))
            .and_then(steps);
        let meta = fields
            .meta
            .and_then(|meta| serde_json::from_str(meta.get()).ok());
        Self {
            name,
            meta: meta.unwrap_or_default(),
            steps,
            raw,
        }
    }
}

/// The tools that the arguments of a batch name.
fn steps(arguments: &RawValue) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct Arguments {
        steps: Vec<Step>,
    }
    #[derive(Deserialize)]
    struct Step {
        tool: String,
    }
    let arguments: Arguments = serde_json::from_str(arguments.get()).ok()?;
    Some(arguments.steps.into_iter().map(|step| step.tool).collect())
}

/// Why a body is no message.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Unreadable {
    /// It is not JSON (-32700).
    #[error("the body is not valid JSON")]
    NotJson,
    /// It is nested too deeply (-32700).
    #[error("the body is nested more than 64 levels deep")]
    TooDeep,
    /// It is an array that is none of messages (-32600).
    #[error("{0}")]
    NoBatch(&'static str),
    /// It has too many values (-32600).
    #[error("the body has more than 50,000 values")]
    TooMany,
    /// It is JSON, and no message (-32600). Its id, if it has one.
    #[error("{0}")]
    NoMessage(&'static str, Option<Box<RawValue>>),
}

impl Unreadable {
    /// Its code in JSON-RPC.
    pub fn code(&self) -> i32 {
        match self {
            Self::NotJson | Self::TooDeep => -32700,
            Self::TooMany | Self::NoBatch(_) | Self::NoMessage(..) => -32600,
        }
    }

    /// The same as an error of JSON-RPC.
    pub fn error(&self) -> RpcError {
        RpcError::new(self.code(), self.to_string())
    }

    /// The id of what was to be a request.
    pub fn id(&self) -> Option<&RawValue> {
        match self {
            Self::NoMessage(_, id) => id.as_deref(),
            Self::NotJson | Self::TooDeep | Self::TooMany | Self::NoBatch(_) => None,
        }
    }
}

/// What a body has in it.
#[derive(Debug)]
pub enum Body {
    /// One message.
    One(Message),
    /// Several, each of which may be none.
    Batch(Vec<Result<Message, Unreadable>>),
}

impl Body {
    /// Reads a body.
    ///
    /// # Errors
    /// [`Unreadable`] for what is no message, and for a batch that is empty or too long.
    pub fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        check_shape(bytes)?;
        let raw: &RawValue = serde_json::from_slice(bytes).map_err(|_| Unreadable::NotJson)?;
        if !raw.get().starts_with('[') {
            return Message::read(raw).map(Self::One);
        }
        let all: Vec<&RawValue> =
            serde_json::from_str(raw.get()).map_err(|_| Unreadable::NotJson)?;
        match all.len() {
            0 => Err(Unreadable::NoBatch("the batch is empty")),
            1..=BATCH => Ok(Self::Batch(all.into_iter().map(Message::read).collect())),
            _ => Err(Unreadable::NoBatch("the batch has more than 20 messages")),
        }
    }
}

impl Message {
    fn read(raw: &RawValue) -> Result<Self, Unreadable> {
        #[derive(Deserialize)]
        struct Fields<'a> {
            #[serde(default)]
            jsonrpc: Option<String>,
            #[serde(borrow, default)]
            id: Option<&'a RawValue>,
            #[serde(default)]
            method: Option<String>,
            #[serde(borrow, default)]
            params: Option<&'a RawValue>,
            #[serde(borrow, default, deserialize_with = "there")]
            result: Option<&'a RawValue>,
            #[serde(borrow, default)]
            error: Option<&'a RawValue>,
        }
        let no_message = |rule, id: Option<&RawValue>| {
            let id = id.filter(|id| is_id(id)).map(ToOwned::to_owned);
            Unreadable::NoMessage(rule, id)
        };
        const NONE: &str = "the body is not a JSON-RPC 2.0 message";
        let fields: Fields<'_> =
            serde_json::from_str(raw.get()).map_err(|_| no_message(NONE, None))?;
        if fields.jsonrpc.as_deref() != Some("2.0") {
            return Err(no_message(NONE, fields.id));
        }
        let params = fields.params.map(ToOwned::to_owned);
        let params = match params {
            Some(params) if !params.get().starts_with('{') => {
                // Whoever sends what needs no answer is never refused: some clients give up over it.
                if fields.id.is_some() {
                    return Err(no_message("params is not an object", fields.id));
                }
                None
            }
            params => params,
        };
        match (fields.method, fields.id) {
            (Some(_), Some(id)) if !is_id(id) => {
                let rule = "id is not a text or number of at most 256 bytes";
                Err(no_message(rule, None))
            }
            (Some(method), Some(id)) => Ok(Self::Request {
                id: id.to_owned(),
                method,
                params: params.map(Params::read),
            }),
            (Some(method), None) => Ok(Self::Notification { method, params }),
            (None, _) if fields.result.is_some() || fields.error.is_some() => Ok(Self::Response),
            (None, id) => Err(no_message(NONE, id)),
        }
    }
}

/// Also nothing is something, where it is said.
fn there<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// A text or a number, and not too long.
fn is_id(id: &RawValue) -> bool {
    let text = id.get();
    let plain = text.starts_with(|c: char| matches!(c, '"' | '-' | '0'..='9'));
    plain && text.len() <= ID
}

/// Refuses what is nested too deeply or has too many values, before anything is made of it.
pub(super) fn check_shape(bytes: &[u8]) -> Result<(), Unreadable> {
    let (mut depth, mut values) = (0_usize, 0_usize);
    let (mut in_text, mut escaped) = (false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => {
                depth += 1;
                values += 1;
                if depth > DEPTH {
                    return Err(Unreadable::TooDeep);
                }
            }
            // Each value but the first of a list or an object follows one.
            b',' => values += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    match values > VALUES {
        true => Err(Unreadable::TooMany),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn one(text: &str) -> Result<Message, Unreadable> {
        match Body::read(text.as_bytes())? {
            Body::One(message) => Ok(message),
            Body::Batch(_) => panic!("a batch"),
        }
    }

    #[rstest]
    #[case("1")]
    #[case("-7")]
    #[case(r#""server-discover-probe-1""#)]
    #[case("18446744073709551617")]
    fn ids_stay_as_they_were_sent(#[case] given: &str) {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{given},"method":"ping"}}"#);
        let Ok(Message::Request { id, method, .. }) = one(&text) else {
            panic!("no request");
        };
        assert_eq!((id.get(), method.as_str()), (given, "ping"));
    }

    #[test]
    fn what_has_no_id_is_not_answered() {
        let text = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert!(matches!(one(text), Ok(Message::Notification { .. })));
        let text = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert!(matches!(one(text), Ok(Message::Response)));
    }

    #[rstest]
    #[case("", -32700)]
    #[case("{", -32700)]
    #[case(r#"{"jsonrpc":"2.0","id":1,"method":"ping"} x"#, -32700)]
    #[case("{}", -32600)]
    #[case("1", -32600)]
    #[case("[]", -32600)]
    #[case(r#"{"id":1,"method":"ping"}"#, -32600)]
    #[case(r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600)]
    #[case(r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, -32600)]
    #[case(r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600)]
    #[case(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#, -32600)]
    #[case(r#"{"jsonrpc":"2.0","id":1}"#, -32600)]
    fn what_is_no_message_is_refused(#[case] text: &str, #[case] code: i32) {
        assert_eq!(one(text).unwrap_err().code(), code, "{text}");
    }

    #[test]
    fn nesting_and_batches_have_bounds() {
        let nested = |depth: usize| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            let params = format!(r#"{{"a":{open}{close}}}"#);
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{params}}}"#)
        };
        assert!(one(&nested(DEPTH - 2)).is_ok());
        assert!(matches!(one(&nested(DEPTH - 1)), Err(Unreadable::TooDeep)));
        // Brackets in texts are none.
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{}\""}}"#,
            "[".repeat(100)
        );
        assert!(one(&text).is_ok());
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let batch = |count: usize| format!("[{}]", vec![ping; count].join(","));
        let read = |text: String| Body::read(text.as_bytes());
        assert!(matches!(read(batch(BATCH)), Ok(Body::Batch(all)) if all.len() == BATCH));
        assert!(read(batch(BATCH + 1)).is_err());
    }

    #[test]
    fn l65_values_have_a_bound() {
        let message = |values: usize| {
            let list = vec!["0"; values].join(",");
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":[{list}]}}}}"#)
        };
        assert!(one(&message(VALUES - 10)).is_ok());
        assert!(matches!(
            one(&message(VALUES + 1)),
            Err(Unreadable::TooMany)
        ));
        // The worst that is refused: as many values as there can be in a body.
        let worst = message(2 * 1024 * 1024);
        assert!(matches!(one(&worst), Err(Unreadable::TooMany)));
        // Commas in texts are none.
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#,
            ",".repeat(VALUES + 1)
        );
        assert!(one(&text).is_ok());
    }

    #[test]
    fn what_is_no_message_keeps_its_id() {
        let id = |text: &str| one(text).unwrap_err().id().map(|id| id.get().to_owned());
        let params = r#"{"jsonrpc":"2.0","id":"a","method":"x","params":[1]}"#;
        assert_eq!(id(params).as_deref(), Some(r#""a""#));
        assert_eq!(
            id(r#"{"jsonrpc":"1.0","id":7,"method":"x"}"#).as_deref(),
            Some("7")
        );
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#), None);
    }
}
