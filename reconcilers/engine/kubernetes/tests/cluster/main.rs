//! The driver against a real cluster, as a service account that has only the rights of `role.yaml`.
//!
//! Needs the test cluster; without it the tests fail, and say how to get it. They never skip.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contract;
mod ends;
mod exec;
mod homes;
mod images;
mod isolation;
mod outages;
mod refusals;
mod stage;
mod waits;
