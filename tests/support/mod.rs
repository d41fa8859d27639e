//! What the end-to-end tests stand on: the real program as a child process, a client for its HTTP
//! interface, the real engine with somebody's hands on it, and a proxy that breaks connections.
//!
//! Tests wait for what they want to see, each time with a deadline; none sleeps and hopes.

pub mod chat;
pub mod client;
pub mod cluster;
pub mod disk;
pub mod engine;
pub mod mcp;
pub mod node;
pub mod own_postgres;
pub mod postgres;
pub mod proxy;
pub mod service;
pub mod stage;
pub mod wait;

pub use client::Client;
pub use engine::Engine;
pub use mcp::McpUser;
pub use service::Service;
pub use stage::Stage;
pub use wait::{eventually, until};

use std::time::Duration;

/// Time after which a wait ends a test: long enough for any machine under any load.
pub const PATIENCE: Duration = seconds(300);

/// Whether the full scale is wanted (`make test-long`).
pub fn long() -> bool {
    std::env::var_os("AGENTYARD_TEST_LONG").is_some_and(|value| value != "0" && !value.is_empty())
}

/// Seconds, short to write.
pub const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}
