//! The doors to the world: each is a trait with a real implementation and a scripted fake.

pub mod docker;
pub mod registry;
