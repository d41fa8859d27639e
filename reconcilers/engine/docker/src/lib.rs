//! Docker Engine, by its HTTP API (1.41 and newer), and the packet filter of the host that it runs on.

mod address;
mod archive;
mod connect;
mod convert;
mod dial;
mod exec;
mod failure;
mod files;
mod firewall;
mod frames;
mod images;
mod network;
mod real;
mod request;
mod ssh;

use engine::{Compute, EngineFacts};

pub use address::DockerAddress;
pub use connect::{DockerHost, InvalidDockerHost, TlsFiles};
pub use firewall::Iptables;
pub use real::{DockerEngine, PULL_IDLE_TIMEOUT};

/// Words for people.
pub const FACTS: EngineFacts = EngineFacts {
    name: "Docker Engine",
    unreachable: "start the engine, or correct --docker-host; the server's user needs access to its socket",
    inventory: None,
    removal: None,
    foreign_network: Some(
        "if that one is gone, remove its containers (`docker ps --all --filter network=agentyard` lists them), then its network (`docker network rm agentyard`)",
    ),
};

/// The engine at `host`, behind TLS when certificates are given, with the packet filter of this host. `owner` is the instance
/// id, `data_dir` the data directory as the engine's host sees it. Connects at the first call.
pub fn compute(host: DockerHost, tls: Option<TlsFiles>, owner: &str, data_dir: &str) -> Compute {
    let engine = DockerEngine::new(host, tls).with_firewall(Iptables::new(owner));
    Compute::with_bind_homes(engine, owner, data_dir, FACTS)
}

#[cfg(test)]
mod wire_tests;
