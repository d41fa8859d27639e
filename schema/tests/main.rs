//! The public interface of this crate, on SQLite and PostgreSQL, and on real file systems.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

mod adapters;
mod api_tokens;
mod audit;
mod bulk;
mod changes;
mod config_history;
mod database;
mod directory;
mod dirty;
mod groups;
mod held;
mod home_survives_kill;
mod images;
mod own_settings;
mod picoclaw_adapter;
mod refusal;
mod sealing;
mod settings_are_read;
mod skill_guards;
mod skill_store_survives_kill;
mod skills_survive_kill;
mod skills_under_attack;
mod storage;
mod transfer;
mod usage;
mod workspace_under_attack;
