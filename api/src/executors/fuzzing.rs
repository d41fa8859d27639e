//! Properties of frames of hostile executors.

#![allow(clippy::panic, reason = "a finding ends the target")]

use serde_json::value::RawValue;

use super::frame::{Frame, Outcome, numbered, question};

/// Longest text of a `hello`, in bytes, and most of its texts.
const HELLO: (usize, usize) = (200, 405);

/// Reads a frame, and returns what came of a question.
///
/// # Panics
/// When an answer is longer than its frame or not JSON, or a `hello` is not bounded.
pub(crate) fn check_frame(text: &str) -> Option<Outcome> {
    match Frame::read(text) {
        Frame::Answer { id, outcome } => {
            assert!(outcome.bytes() <= text.len().max("null".len()));
            let answer = match &outcome {
                Outcome::Result(raw) => format!(r#"{{"id":{id},"result":{raw}}}"#),
                Outcome::Error(message) => {
                    let message = serde_json::json!({ "message": message });
                    format!(r#"{{"id":{id},"error":{message}}}"#)
                }
            };
            let Frame::Answer {
                id: same,
                outcome: again,
            } = Frame::read(&answer)
            else {
                panic!("no answer: {answer}");
            };
            assert_eq!(said(&again), said(&outcome));
            assert_eq!(same, id);
            if let Outcome::Result(params) = &outcome {
                check_question(id, params);
            }
            Some(outcome)
        }
        Frame::Hello(hello) => {
            let (longest, most) = HELLO;
            let texts = [&hello.instance, &hello.label, &hello.client.name];
            let texts = texts.into_iter().chain(&hello.tools).chain(&hello.features);
            let texts: Vec<&String> = texts.collect();
            assert!(texts.len() <= most);
            assert!(texts.iter().all(|text| text.len() <= longest));
            None
        }
        Frame::Other => None,
    }
}

fn check_question(id: u64, params: &RawValue) {
    let asked = numbered(id, &question("browser_navigate", params));
    assert!(serde_json::from_str::<&RawValue>(&asked).is_ok(), "{asked}");
}

fn said(outcome: &Outcome) -> (bool, &str) {
    match outcome {
        Outcome::Result(raw) => (true, raw.get()),
        Outcome::Error(message) => (false, message),
    }
}
