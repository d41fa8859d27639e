//! The HTTP API: records desired state, reads status, and never touches the world itself.
//!
//! A request passes `server` (connections, headers, panics, access log), `dispatch` (route, caller,
//! CSRF, fields) and one handler. A [`route::Route`] beside each handler says who may use it and how.

mod accept_encoding;
pub mod answer;
pub mod auth;
mod budget;
pub mod chat;
pub mod console;
pub mod deps;
pub mod dispatch;
pub mod error;
pub mod exec;
pub mod executors;
pub mod explain;
pub mod files;
pub mod follows;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod housekeeping;
pub mod input;
mod limits;
mod long_work;
pub mod mcp;
pub mod openapi;
mod pieces;
pub mod plans;
pub mod ports;
pub mod quota;
pub mod replica;
pub mod reply;
pub mod route;
pub mod routes;
pub mod server;
pub mod settings;
pub mod tag_cache;
pub mod wait;
pub mod watch;

#[cfg(test)]
mod testing;
