//! Configuration: the registry of keys, and their stored values.

pub mod query;
