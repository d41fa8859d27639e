//! Reconcilers: loops that compare desired state in the database with the real world and converge.

pub mod adapter;
pub mod agent_config;
pub mod archive;
pub mod container;
pub mod directory;
pub mod drivers;
pub mod engine;
pub mod fault;
pub mod image;
pub mod register;
pub mod rollout;
pub mod runtime;
pub mod shared;
pub mod skill;
pub mod skill_repository;
pub mod skill_set;
pub mod stores;
pub mod usage;
pub mod user;
