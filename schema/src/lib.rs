//! Everything Agentyard keeps at rest: the database, the data directory, package formats and keys.
//!
//! This crate talks to no service. Reconcilers and the API never see each other; they meet in
//! the tables defined here.

pub mod adapter;
pub mod clock;
pub mod condition;
pub mod config;
pub mod fault;
pub mod home;
pub mod ids;
pub mod secrets;
