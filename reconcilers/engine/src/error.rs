//! Failures of engine calls.

use std::time::Duration;

/// A failed engine call.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The engine cannot be reached, or went away during the call.
    #[error("the container engine cannot be reached")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The call took longer than its limit.
    #[error("the container engine did not answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The object does not exist.
    #[error("the engine has no such object: {0}")]
    NotFound(String),
    /// The name belongs to another object.
    #[error("the name is already in use: {0}")]
    NameTaken(String),
    /// The object is in a state that forbids this, or another program changed it meanwhile.
    #[error("the engine reports a conflict: {0}")]
    Conflict(String),
    /// The engine refused the request as it is; repeating it changes nothing.
    #[error("the engine refused the request: {0}")]
    Refused(String),
    /// The service lacks a right on the engine, which the text names.
    #[error("the engine does not permit it: {0}")]
    Forbidden(String),
    /// A quota of the engine is used up.
    #[error("a quota of the engine is used up: {0}")]
    QuotaExceeded(String),
    /// No address is left in the network.
    #[error("the agent network has no free address")]
    NetworkFull,
    /// No space left where the engine or the data directory stores things.
    #[error("no space left: {0}")]
    StorageFull(String),
    /// A pull failed, in the registry's or engine's words.
    #[error("the image could not be pulled: {0}")]
    PullFailed(String),
    /// A pull failed for a reason that trying again does not mend: the registry has no such image, or
    /// does not give it to us.
    #[error("the image could not be pulled: {0}")]
    PullRefused(String),
    /// The registry did not say what an image is, so nothing is known of it. The engine itself is there.
    #[error("{0}")]
    RegistryFailed(String),
    /// The engine has no such verb, or not for this; the text is a sentence without a full stop.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The engine failed by itself.
    #[error("the engine failed: {0}")]
    Internal(String),
}
