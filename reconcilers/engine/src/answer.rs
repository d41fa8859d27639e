//! Reading of an engine's answers.

use std::time::Duration;

use super::EngineError;

/// Longest text taken over from an engine, in bytes; it ends up in conditions and events.
pub const MESSAGE_LIMIT: usize = 1000;

/// Cuts a text at a character boundary.
pub fn shorten_text(text: &str, limit: usize) -> String {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

/// Turns "no such object" into `None`.
///
/// # Errors
/// Any other failure.
pub fn ignore_missing<T>(result: Result<T, EngineError>) -> Result<Option<T>, EngineError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(EngineError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Runs a call within a limit of time.
///
/// # Errors
/// [`EngineError::Timeout`], or that of the call.
pub async fn limit_time<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, EngineError> {
    match tokio::time::timeout(limit, call).await {
        Ok(result) => result,
        Err(_) => Err(EngineError::Timeout(limit)),
    }
}
