//! Events of owned containers.

/// Something happened to an owned container: observe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineEvent {
    /// The uid label of the container.
    pub uid: String,
    /// The engine's word for what happened, for logs only.
    pub action: String,
}
