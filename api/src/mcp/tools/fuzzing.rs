//! Properties of the arguments and results of tools.

#![allow(clippy::panic, reason = "a finding ends the target")]

use std::sync::LazyLock;

use serde_json::Value;

use super::Catalogue;
use super::arguments::read;
use super::bounded::MOST;
use super::catalogue::LONGEST;
use super::result::{CallResult, Content, Received};
use super::text::USUAL;
use crate::executors::{Outcome, Service};
use crate::mcp::handshake::Told;
use crate::mcp::message::Params;

/// Longest refusal of arguments, in characters.
const REFUSAL: usize = 4000;
/// Most characters that say of a text how much of it is left out.
const LEFT_OUT: usize = 60;

static CATALOGUE: LazyLock<Option<Catalogue>> = LazyLock::new(|| Catalogue::read().ok());

/// Reads the arguments of a call.
///
/// # Panics
/// When those that are taken are not taken as they are then, or a refusal is long.
pub(crate) fn check_arguments(call: &Params) {
    let (Some(name), Some(catalogue)) = (&call.name, CATALOGUE.as_ref()) else {
        return;
    };
    let params: Value = serde_json::from_str(call.raw.get()).unwrap_or_default();
    for service in [Service::Browser, Service::Computer] {
        let _ = catalogue.may_show(service, call);
        let Some(tool) = catalogue.find(service, name) else {
            continue;
        };
        match read(tool, &params["arguments"]) {
            Ok(taken) => {
                assert!(tool.limit(&taken.arguments) <= LONGEST);
                let arguments = Value::Object(taken.arguments);
                assert_eq!(tool.fault(&arguments), None);
                match read(tool, &arguments) {
                    Ok(again) => assert!(
                        Value::Object(again.arguments) == arguments && again.notes.is_empty()
                    ),
                    Err(refusal) => panic!("{arguments} was taken, and then: {refusal}"),
                }
            }
            Err(refusal) => {
                let length = refusal.chars().count();
                assert!((1..=REFUSAL).contains(&length), "{refusal}");
            }
        }
    }
}

/// Makes a result of what an executor has answered.
///
/// # Panics
/// When it is not bounded, or not the same after another replica has passed it on.
pub(crate) fn check_result(tool: &str, outcome: Outcome) {
    let (bytes, is_error) = (outcome.bytes(), matches!(outcome, Outcome::Error(_)));
    let result = CallResult::of(tool, outcome);
    assert!(result.is_error || !is_error);
    assert!(!result.is_error || result.untrusted);
    let (mut characters, mut texts) = (0, 0);
    for content in &result.content {
        if let Content::Text(text) | Content::Quoted(_, text) = content {
            characters += text.chars().count();
            texts += 1;
        }
    }
    assert!(result.content.len() <= MOST + 1);
    assert!(
        characters <= USUAL + texts * LEFT_OUT,
        "{characters} characters"
    );
    // The parts, and the whole as facts.
    assert!(result.bytes() <= 2 * bytes + (texts + 3) * LEFT_OUT);
    let sent = serde_json::to_string(&Told::from(result)).unwrap_or_default();
    let received: Option<Received> = serde_json::from_str(&sent).ok();
    let again = received.map(|received| Told::from(CallResult::from(received)));
    let again = again.and_then(|told| serde_json::to_string(&told).ok());
    assert_eq!(again.as_ref(), Some(&sent));
}
