//! Properties of messages of hostile clients and executors.

#![allow(clippy::panic, reason = "a finding ends the target")]

use serde_json::json;

use super::answer::{failure, success};
use super::message::{Body, Message, Unreadable};
use super::tools::fuzzing::{check_arguments, check_result};
use crate::executors::fuzzing::check_frame;

/// Longest id of a request, in bytes.
const ID: usize = 256;
/// Most messages of a batch.
const BATCH: usize = 20;
/// Longest answer that refuses a message, in bytes.
const REFUSAL: usize = 512;
/// Tools whose results differ in form.
const TOOLS: [&str; 3] = [
    "browser_read_page",
    "browser_execute",
    "computer_files_read",
];

/// Reads an input as the body of a client, and as the frame of an executor.
///
/// # Panics
/// When what is taken is not bounded, or not the same after it was written again.
pub fn check_messages(input: &[u8]) {
    match Body::read(input) {
        Ok(Body::One(message)) => check_message(&message),
        Ok(Body::Batch(all)) => {
            assert!((1..=BATCH).contains(&all.len()));
            for message in all {
                match message {
                    Ok(message) => check_message(&message),
                    Err(unreadable) => check_refusal(&unreadable),
                }
            }
        }
        Err(unreadable) => check_refusal(&unreadable),
    }
    let text = String::from_utf8_lossy(input);
    for tool in TOOLS {
        if let Some(outcome) = check_frame(&text) {
            check_result(tool, outcome);
        }
    }
}

fn check_message(message: &Message) {
    let (id, method, params) = match message {
        Message::Request { id, method, params } => {
            let params = params.as_ref();
            (Some(id), method, params.map(|params| params.raw.get()))
        }
        Message::Notification { method, params } => {
            (None, method, params.as_ref().map(|params| params.get()))
        }
        Message::Response => return,
    };
    let mut written = format!(r#"{{"jsonrpc":"2.0","method":{}"#, json!(method));
    for (name, value) in [("id", id.map(|id| id.get())), ("params", params)] {
        if let Some(value) = value {
            written.push_str(&format!(r#","{name}":{value}"#));
        }
    }
    written.push('}');
    let again = match Body::read(written.as_bytes()) {
        Ok(Body::One(again)) => again,
        other => panic!("{written}: {other:?}"),
    };
    // The fields have no other form.
    assert_eq!(format!("{again:?}"), format!("{message:?}"));
    if let Message::Request { id, params, .. } = message {
        assert!(id.get().len() <= ID);
        let answer = params.as_ref().and_then(|params| success(id, &params.raw));
        let answer = answer.map(|answer| Body::read(answer.as_bytes()).is_ok());
        assert_ne!(answer, Some(false));
        if let Some(params) = params {
            check_arguments(params);
        }
    }
}

fn check_refusal(unreadable: &Unreadable) {
    let said = failure(unreadable.id(), &unreadable.error());
    assert!(said.len() <= REFUSAL, "{said}");
    let read = Body::read(said.as_bytes());
    assert!(matches!(read, Ok(Body::One(Message::Response))), "{said}");
}
