//! Programs in containers, beside their main processes.

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::io::AsyncWrite;

use super::{EngineError, EngineStream, ExecSettings, LogChunk};

/// Returns the variable, with its value, by which the processes of a program with this mark are found.
pub fn mark_variable(mark: &str) -> String {
    format!("AGENTYARD_EXEC={mark}")
}

/// Returns the variables of a program, as `NAME=value`.
pub fn exec_variables(settings: &ExecSettings) -> Vec<String> {
    let mut variables = settings.environment.clone();
    variables.push(mark_variable(&settings.mark));
    variables
}

/// A program that runs in a container. Dropping it does not end the program.
pub struct Exec {
    /// Its input; shutting it down is the end of it.
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
    /// Its output, in bounded pieces; ends with it. All of it is standard output if it has a terminal.
    pub output: EngineStream<LogChunk>,
    /// The rest of it.
    pub control: Arc<dyn ExecControl>,
}

impl std::fmt::Debug for Exec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exec").finish_non_exhaustive()
    }
}

/// Size of the terminal and end of a program.
#[async_trait]
pub trait ExecControl: Send + Sync + 'static {
    /// Gives the terminal of the program another size.
    async fn resize(&self, columns: u16, rows: u16) -> Result<(), EngineError>;

    /// The code with which the program has ended; `None` while it runs.
    async fn exit_code(&self) -> Result<Option<i64>, EngineError>;
}
