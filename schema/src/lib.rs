//! Everything Agentyard keeps at rest: the database, the data directory, package formats and keys.
//!
//! This crate talks to no service. Reconcilers and the API never see each other; they meet in
//! the tables defined here.

pub mod adapter;
pub mod agent_config;
pub mod api_token;
pub mod archive;
pub mod audit;
pub mod backup;
pub mod bell;
pub mod census;
pub mod change;
pub mod clock;
mod column;
pub mod condition;
pub mod config;
mod connection;
pub mod container;
pub mod db;
pub mod directory;
pub mod error;
pub mod event;
pub mod fault;
pub mod group;
pub mod home;
pub mod ids;
pub mod image;
pub mod kind;
pub mod lease;
mod link;
pub mod live;
pub mod mcp_token;
pub mod meta;
pub mod metric;
pub mod mode_switch;
pub mod object;
pub mod operation;
mod postgres;
mod private;
pub mod reader;
pub mod recorder;
pub mod replica;
pub mod rollout;
pub mod secrets;
pub mod session;
pub mod skill;
pub mod skill_repository;
pub mod skill_set;
pub mod skill_store;
pub mod statement;
pub mod transfer;
pub mod under_way;
pub mod usage;
pub mod user;
pub mod visible;
pub mod whitelist;
pub mod zone;
