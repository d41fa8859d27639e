//! Reconcilers: loops that compare desired state in the database with the real world and converge.

pub mod drivers;
pub mod fault;
pub mod runtime;
