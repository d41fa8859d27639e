//! An engine that settings name, before anything is asked of it.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use schema::clock::SharedClock;

use super::{Compute, Digests, EngineError, EngineFacts, EngineInfo};

/// Parts of the service that an engine may need.
pub struct EngineContext {
    /// The instance id.
    pub owner: String,
    /// The clock of the service.
    pub clock: SharedClock,
    /// Asks registries.
    pub digests: Arc<dyn Digests>,
}

/// The way to an engine. It is connected to when it is first needed.
#[async_trait]
pub trait EngineAddress: Debug + Send + Sync + 'static {
    /// Returns the words of the engine, for people.
    fn facts(&self) -> EngineFacts;

    /// Returns files with certificates of the connection, of which `agentyard doctor` reads when they expire.
    fn certificates(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Returns true if [`check`](Self::check) finds what a running server does not report.
    fn checks_more_than_server(&self) -> bool {
        false
    }

    /// Checks the engine for `agentyard doctor`, with or without a running server.
    async fn check(&self) -> Result<EngineCheck, EngineError>;

    /// Makes the engine. To be called within a Tokio runtime.
    ///
    /// # Errors
    /// The way to it cannot be read.
    async fn compute(
        self: Box<Self>,
        context: EngineContext,
    ) -> Result<Compute, Box<dyn std::error::Error + Send + Sync>>;
}

/// Findings about an engine that answers.
#[derive(Debug)]
pub struct EngineCheck {
    /// Version and host facts.
    pub info: EngineInfo,
    /// Reason for which the service cannot work with it.
    pub fault: Option<EngineFault>,
    /// Sentences about parts that are off, and that the service can do without.
    pub absent: Vec<String>,
}

/// Reason for which the service cannot work with an engine.
#[derive(Debug)]
pub struct EngineFault {
    /// The reason.
    pub message: String,
    /// Remedy: an imperative without a full stop.
    pub remedy: &'static str,
}

impl From<EngineInfo> for EngineCheck {
    fn from(info: EngineInfo) -> Self {
        Self {
            info,
            fault: None,
            absent: Vec::new(),
        }
    }
}
