//! What is answered to JSON-RPC requests, as text that is ready to be sent.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::executors::Share;

/// An error of JSON-RPC, which ends a request without a result.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// Its code.
    pub code: i32,
    /// What is wrong.
    pub message: String,
    /// What a program may want to know about it.
    pub data: Option<Value>,
}

impl RpcError {
    /// The message cannot be read (-32700).
    pub const UNREADABLE: i32 = -32700;
    /// It is none that is allowed here (-32600).
    pub const INVALID_REQUEST: i32 = -32600;
    /// Nothing of that name is served (-32601).
    pub const METHOD: i32 = -32601;
    /// Its parameters are not what the method takes (-32602).
    pub const PARAMS: i32 = -32602;
    /// It was given up (-32603).
    pub const INTERNAL: i32 = -32603;
    /// A header is missing, or says other than the body (revision 2026-07-28).
    pub const HEADERS: i32 = -32020;
    /// The revision is not spoken here (revision 2026-07-28).
    pub const REVISION: i32 = -32022;

    /// An error without data.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }
}

/// An answer that is ready to be sent.
#[derive(Debug)]
pub struct Answer {
    /// JSON.
    pub text: String,
    /// What it takes of the memory for answers of executors, until it is sent.
    pub share: Share,
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self {
            text,
            share: Share::default(),
        }
    }
}

impl From<Answer> for Bytes {
    fn from(answer: Answer) -> Self {
        answer.share.held_by(Self::from(answer.text))
    }
}

#[derive(Serialize)]
struct Success<'a, T> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: &'a T,
}

/// A request's result. `None` when it has no JSON form, which ours have.
pub fn success(id: &RawValue, result: &impl Serialize) -> Option<String> {
    let answer = Success {
        jsonrpc: "2.0",
        id,
        result,
    };
    serde_json::to_string(&answer).ok()
}

/// A request's error; without its id when that could not be read.
pub fn failure(id: Option<&RawValue>, error: &RpcError) -> String {
    let mut said = json!({"code": error.code, "message": error.message});
    if let Some(data) = &error.data {
        said["data"] = data.clone();
    }
    let id = id.map_or("null", RawValue::get);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{said}}}"#)
}

/// Something that needs no answer.
pub fn notification(method: &str, params: Option<&Value>) -> String {
    let mut message = json!({"jsonrpc": "2.0", "method": method});
    if let Some(params) = params {
        message["params"] = params.clone();
    }
    message.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn answers_have_the_id_as_it_was_sent() {
        let result = raw(r#"{"a":1.10}"#);
        let sent = success(&raw(r#""x-1""#), &result).unwrap();
        assert_eq!(sent, r#"{"jsonrpc":"2.0","id":"x-1","result":{"a":1.10}}"#);
        let error = RpcError::new(RpcError::METHOD, "no such method");
        let sent = failure(Some(&raw("18446744073709551617")), &error);
        let expected = r#"{"jsonrpc":"2.0","id":18446744073709551617,"error":{"code":-32601,"message":"no such method"}}"#;
        assert_eq!(sent, expected);
        let sent: Value = serde_json::from_str(&failure(None, &error)).unwrap();
        assert_eq!(sent["id"], Value::Null);
    }
}
