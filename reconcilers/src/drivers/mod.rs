//! The doors to the world: each is a trait with a real implementation and a scripted fake.

pub mod adapter_source;
pub mod docker;
pub mod firewall;
pub mod git;
pub mod ldap;
pub mod registry;
pub mod zone;
