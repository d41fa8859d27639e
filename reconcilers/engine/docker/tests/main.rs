//! The driver and the packet filter against real ones.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod engine_contract;
mod engine_restart;
mod firewall;
mod real;
