//! JSON-RPC 2.0 messages (<https://www.jsonrpc.org/specification>), as MCP uses them. Ids are kept as they were sent: some are texts.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Deepest nesting of a message.
const DEPTH: usize = 64;
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
        params: Option<Box<RawValue>>,
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

/// Why a body is no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is not JSON (-32700).
    #[error("the body is not valid JSON")]
    NotJson,
    /// It is nested too deeply (-32700).
    #[error("the body is nested more than 64 levels deep")]
    TooDeep,
    /// It is JSON, and no message (-32600).
    #[error("{0}")]
    NoMessage(&'static str),
}

impl Unreadable {
    /// Its code in JSON-RPC.
    pub fn code(self) -> i32 {
        match self {
            Self::NotJson | Self::TooDeep => -32700,
            Self::NoMessage(_) => -32600,
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
        check_depth(bytes)?;
        let raw: &RawValue = serde_json::from_slice(bytes).map_err(|_| Unreadable::NotJson)?;
        if !raw.get().starts_with('[') {
            return Message::read(raw).map(Self::One);
        }
        let all: Vec<&RawValue> =
            serde_json::from_str(raw.get()).map_err(|_| Unreadable::NotJson)?;
        match all.len() {
            0 => Err(Unreadable::NoMessage("the batch is empty")),
            1..=BATCH => Ok(Self::Batch(all.into_iter().map(Message::read).collect())),
            _ => Err(Unreadable::NoMessage("the batch has more than 20 messages")),
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
        const NO_MESSAGE: Unreadable =
            Unreadable::NoMessage("the body is not a JSON-RPC 2.0 message");
        let fields: Fields<'_> = serde_json::from_str(raw.get()).map_err(|_| NO_MESSAGE)?;
        if fields.jsonrpc.as_deref() != Some("2.0") {
            return Err(NO_MESSAGE);
        }
        let params = fields.params.map(ToOwned::to_owned);
        let params = match params {
            Some(params) if !params.get().starts_with('{') => {
                // Whoever sends what needs no answer is never refused: some clients give up over it.
                if fields.id.is_some() {
                    return Err(Unreadable::NoMessage("params is not an object"));
                }
                None
            }
            params => params,
        };
        match (fields.method, fields.id) {
            (Some(method), Some(id)) => Ok(Self::Request {
                id: checked(id)?,
                method,
                params,
            }),
            (Some(method), None) => Ok(Self::Notification { method, params }),
            (None, _) if fields.result.is_some() || fields.error.is_some() => Ok(Self::Response),
            (None, _) => Err(NO_MESSAGE),
        }
    }
}

/// Also nothing is something, where it is said.
fn there<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

fn checked(id: &RawValue) -> Result<Box<RawValue>, Unreadable> {
    let text = id.get();
    let plain = text.starts_with('"')
        || text.starts_with('-')
        || text.starts_with(|c: char| c.is_ascii_digit());
    match plain && text.len() <= ID {
        true => Ok(id.to_owned()),
        false => Err(Unreadable::NoMessage(
            "id is not a text or number of at most 256 bytes",
        )),
    }
}

/// Refuses what is nested too deeply, before anything is made of it.
fn check_depth(bytes: &[u8]) -> Result<(), Unreadable> {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => {
                depth += 1;
                if depth > DEPTH {
                    return Err(Unreadable::TooDeep);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
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
        assert_eq!(one(&nested(DEPTH - 1)).unwrap_err(), Unreadable::TooDeep);
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
}
