//! Failures of calls: from the API server's answers to errors of an engine.

use engine::EngineError;
pub(crate) use engine::{ignore_missing, limit_time};
use kube::core::Status;

use super::reason::{MESSAGE_LIMIT, shorten_text};

/// An answer that says that the API server, or what is behind it, is not there.
#[derive(Debug, thiserror::Error)]
#[error("status {0}: {1}")]
pub(crate) struct AwayAnswer(u16, String);

/// Translates a failure of the client library.
pub(crate) fn from_client(error: kube::Error) -> EngineError {
    match error {
        kube::Error::Api(status) => from_status(&status),
        kube::Error::SerdeError(error) if !error.is_eof() && !error.is_io() => {
            EngineError::Internal(shorten_text(&error.to_string(), MESSAGE_LIMIT))
        }
        kube::Error::BuildRequest(error) => {
            EngineError::Refused(shorten_text(&error.to_string(), MESSAGE_LIMIT))
        }
        other => EngineError::Unavailable(Box::new(other)),
    }
}

/// Translates a refusal of the API server.
pub(crate) fn from_status(status: &Status) -> EngineError {
    let text = match status.message.is_empty() {
        true => status.reason.clone(),
        false => status.message.clone(),
    };
    let text = shorten_text(&text, MESSAGE_LIMIT);
    let away = |text| EngineError::Unavailable(Box::new(AwayAnswer(status.code, text)));
    if text.contains("database space exceeded") || text.contains("no space left on device") {
        return EngineError::StorageFull(text);
    }
    match status.code {
        401 => away(text),
        403 => from_forbidden(text),
        404 => EngineError::NotFound(text),
        409 if status.reason == "AlreadyExists" => EngineError::NameTaken(text),
        409 | 410 => EngineError::Conflict(text),
        // Tried again by the client already, for as long as the server asked for it.
        408 | 425 | 429 => EngineError::Internal(text),
        400..=499 => EngineError::Refused(text),
        502 | 503 => away(text),
        _ => EngineError::Internal(text),
    }
}

/// One status code stands for rights, quotas, admission and namespaces that go away.
fn from_forbidden(text: String) -> EngineError {
    let words = text.to_ascii_lowercase();
    if words.contains("exceeded quota") || words.contains("failed quota") {
        return EngineError::QuotaExceeded(text);
    }
    // "User \"x\" cannot create resource \"pods\" in API group \"\" in the namespace \"y\""
    let no_right = words.contains(" cannot ") && words.contains(" resource ");
    if no_right || words.contains("is being terminated") {
        return EngineError::Forbidden(text);
    }
    EngineError::Refused(text)
}
