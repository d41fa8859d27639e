//! Docker Engine, by its HTTP API (1.41 and newer), and the packet filter of the host that it runs on.

mod archive;
mod connect;
mod convert;
mod dial;
mod exec;
mod failure;
mod firewall;
mod frames;
mod real;
mod request;
mod ssh;

pub use connect::{DockerHost, InvalidDockerHost, TlsFiles};
pub use firewall::Iptables;
pub use real::{DockerEngine, PULL_IDLE_TIMEOUT};

#[cfg(test)]
mod wire_tests;
