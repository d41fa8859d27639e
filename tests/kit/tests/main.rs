//! The doubles against the contracts that the real parts keep.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod engine;
mod stores;
