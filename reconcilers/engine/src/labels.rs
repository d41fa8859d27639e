//! Labels by which objects on the engine are known.

/// Label: the instance of Agentyard that owns the object.
pub const LABEL_OWNER: &str = "io.agentyard.owner";
/// Label: the uid of the user.
pub const LABEL_UID: &str = "io.agentyard.uid";
/// Label: the generation for which the object was made.
pub const LABEL_GENERATION: &str = "io.agentyard.generation";
/// Label: the digest of the settings the object was made with.
pub const LABEL_SPEC_DIGEST: &str = "io.agentyard.spec-digest";
