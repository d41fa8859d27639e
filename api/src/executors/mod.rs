//! Executors: the browser extensions and desktop clients of users, which do what the users' agents ask for.
//!
//! An executor connects by WebSocket with its user's MCP token. What it may be asked, and when, the `registry` decides; the `Hub`
//! carries it out.

mod changes;
mod frame;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod hub;
mod registry;
mod socket;
#[cfg(test)]
mod tests;
mod traffic;

pub use crate::limits::Received as Share;
pub use changes::{Change, Changes, Since};
pub use frame::Outcome;
pub use hub::{About, Answer, Ask, Connected, Hub, Job, News};
pub use registry::{Close, ConnectionId, Devices, Failure, Key, Lane, Protocol, Refusal, Service};
pub(crate) use socket::{Expected, Flapping, expect, serve};
#[cfg(test)]
pub(crate) use tests::connected;
