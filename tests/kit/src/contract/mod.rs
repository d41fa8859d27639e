//! Suites for every implementation of a part.

pub mod engine;
