//! The whitelist: who may sign in where it is enabled. Enabled and empty, it lets nobody in.

pub(crate) mod query;

pub(crate) use query::rename;
pub use query::{add, has, is_empty, list, remove, replace, revision};
