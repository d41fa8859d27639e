//! Reconcilers and drivers against doubles, one action at a time, so that a test can stop the service anywhere.

// Test code, although its functions bear no test attribute.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod adapter;
mod adapter_source;
mod agent_config;
mod archive;
mod container;
mod directory;
mod engine_view;
mod image;
mod model_probe;
mod pulls;
mod registry;
mod rollout;
mod skill;
mod skill_repository;
mod skill_set;
mod skill_yard;
mod usage;
mod user;
