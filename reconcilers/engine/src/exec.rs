//! Programs in containers, beside their main processes.

use std::pin::Pin;

use tokio::io::AsyncWrite;

use super::{EngineStream, LogChunk};

/// A program that runs in a container.
pub struct Exec {
    /// Its id.
    pub id: String,
    /// Its input; shutting it down is the end of it.
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
    /// Its output, in bounded pieces; ends with it. All of it is standard output if it has a terminal.
    pub output: EngineStream<LogChunk>,
}

impl std::fmt::Debug for Exec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exec")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
