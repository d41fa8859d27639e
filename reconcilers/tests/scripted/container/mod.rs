//! The container reconciler against a real database and the engine in memory.

mod converge;
mod ends;
mod faults;
mod golden;
mod images;
mod properties;
mod quota;
mod starting;
pub mod support;
