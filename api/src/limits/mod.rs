//! Bounds of what is held for accounts, and the only makers of queues, semaphores and caches in this crate.
//!
//! Each queue, semaphore, cache and memory budget is made from a [`Bound`], a row of `bounds.rs` that says how much one account and
//! all together may hold. `clippy.toml` refuses other ways to make them, and the table of the security model is made from the rows.

mod bound;
mod bounds;
mod incoming;
mod keyed_counter;
mod memory;
mod per_owner;
mod rate;
#[cfg(test)]
mod tests;

pub(crate) use bound::{All, Bound, Each, Unit};
pub(crate) use bounds::*;
pub use incoming::Received;
pub(crate) use incoming::{FREE, Incoming, Metered};
pub(crate) use keyed_counter::{KeyedCounter, Place};
pub(crate) use memory::{Memory, Share};
pub(crate) use per_owner::PerOwner;
pub(crate) use rate::Rate;
