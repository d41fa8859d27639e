//! Drivers against real servers, and reconcilers against doubles.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod engine_images;
mod git;
mod layers;
mod ldap;
mod oidc;
mod real_inputs;
mod registry;
mod scripted;
