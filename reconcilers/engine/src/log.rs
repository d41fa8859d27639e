//! Output of agents and of programs beside them.

/// A piece of log text; a line may be spread over several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogChunk {
    /// Standard error rather than standard output.
    pub stderr: bool,
    /// The bytes as the agent wrote them; at most 64 KiB.
    pub bytes: bytes::Bytes,
}
