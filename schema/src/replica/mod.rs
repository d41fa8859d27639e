//! Replicas that pass requests on to each other. PostgreSQL only: on SQLite one process serves.
//!
//! A replica has a row with its address and a heartbeat. A place says at which replica the executors of a user and service are; its
//! epoch rises with each taking. The server's clock alone decides which heartbeat is old.

mod model;
pub(crate) mod query;
mod table;

pub use model::{Notice, Owner, PlaceKey, Replica};
pub use table::ReplicaTable;

/// The channel name on PostgreSQL: a notice says for which places something has changed.
pub const CHANNEL: &str = "agentyard_executors";
