//! Images on the engine and in registries, and moving users between them.

mod bind;
mod control;
mod delete;
mod list;
mod local;
mod names;
mod progress;
mod pull;
mod registry;
mod rollouts;
mod start;
mod users;

pub(in crate::routes) use self::bind::bind_images;
pub(in crate::routes) use self::control::{Noted, call_off_pull, cancel as cancel_rollout, noted};
pub(in crate::routes) use self::pull::is_open as is_open_pull;

#[cfg(test)]
mod tests;
