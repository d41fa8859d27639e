//! What tests, benchmarks and simulations use instead of the world: the engine, the database, the data directory and
//! the source of adapter packages in memory, a scripted HTTP server, and the contracts that doubles and real parts both
//! keep. Never part of the service: a dev-dependency only.

// Test code, although its functions bear no test attribute; what a test of a contract shows is its name.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(missing_docs, async_fn_in_trait)]

pub mod adapter;
pub mod cluster;
#[macro_use]
pub mod contract;
mod data_dir;
mod directory;
pub mod engine;
mod firewall;
mod git;
pub mod http;
mod packages;
pub mod pass;
mod script;
pub mod store;
mod world;

pub use data_dir::MemoryDataDir;
pub use directory::FakeDirectory;
pub use engine::FakeEngine;
pub use firewall::FakeFirewall;
pub use git::{AskedGit, FakeGit, Files};
pub use packages::FakeSource;
pub use script::{Change, Pace};
pub use store::MemoryStore;
pub use world::{OWNER, START, options, world};
