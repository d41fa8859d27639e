//! Drivers against real servers, and reconcilers against doubles.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod engine_contract;
mod engine_images;
mod engine_restart;
mod firewall;
mod git;
mod layers;
mod ldap;
mod oidc;
mod real;
mod real_inputs;
mod registry;
mod scripted;
