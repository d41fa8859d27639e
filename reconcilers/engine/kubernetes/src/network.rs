//! What agents reach: their Pods bear labels by which policies select them.

/// Label of Pods: what runs in them.
pub(crate) const ROLE: &str = "agentyard.io/role";
/// Value of [`ROLE`] of an agent's Pod.
pub(crate) const AGENT: &str = "agent";
/// Value of [`ROLE`] of a Pod that brings an image to a node.
pub(crate) const PULLER: &str = "puller";
