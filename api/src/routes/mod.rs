//! The handlers, a module for each section of the HTTP contract.

pub mod basic;
pub mod containers;
mod fleet;
pub mod health;
mod live;
mod log_lines;
pub mod own_container;
mod page;
mod params;
pub mod reconcile;
pub mod tasks;
#[cfg(test)]
pub(crate) mod test_support;
pub mod users;

pub use fleet::bind_fleet;
