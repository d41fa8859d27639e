//! What the service costs, as ratios against the same work done bare beside it.
//!
//! `make bench` runs it on the real engine of the test services. Nothing here is a timed test: it
//! prints, and people read. `AGENTYARD_BENCH_USERS` changes the number of users (50).

#![allow(
    dead_code, // Of the support, a part is used here.
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods
)]

mod burst;
#[cfg(feature = "kubernetes")]
mod cluster;
mod converge;
mod directory;
mod files;
mod http;
mod idle;
#[path = "../support/in_process.rs"]
mod in_process;
mod mcp;
mod no_op;
mod rollout;
mod skills;
#[path = "../../reconcilers/tests/ldap/server.rs"]
mod slapd;
#[path = "../support/mod.rs"]
#[allow(unused_imports)]
mod support;
mod usage;

fn main() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    // `cargo bench` hands over a flag; a word that is left chooses one benchmark.
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let chosen = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    if chosen("http") {
        runtime.block_on(http::run());
    }
    if chosen("no_op") {
        runtime.block_on(no_op::run());
    }
    if chosen("idle") {
        runtime.block_on(idle::run());
    }
    if chosen("converge") {
        runtime.block_on(converge::run());
    }
    if chosen("burst") {
        runtime.block_on(burst::run());
    }
    if chosen("rollout") {
        runtime.block_on(rollout::run());
    }
    if chosen("directory") {
        runtime.block_on(directory::run());
    }
    if let Some(part) = wanted.as_deref().and_then(|wanted| wanted.parse().ok()) {
        runtime.block_on(directory::part(part));
    }
    if chosen("files") {
        runtime.block_on(files::run());
    }
    if chosen("usage") {
        usage::run();
    }
    if chosen("skills") {
        skills::run();
    }
    if chosen("mcp") {
        runtime.block_on(mcp::run());
    }
    #[cfg(feature = "kubernetes")]
    if chosen("cluster") {
        runtime.block_on(cluster::run());
    }
    #[cfg(feature = "kubernetes")]
    if wanted.as_deref() == Some(cluster::WORD) {
        let place = std::env::args().next_back().unwrap();
        runtime.block_on(cluster::serve(place.as_ref()));
    }
    if wanted.as_deref() == Some(mcp::bare::WORD) {
        runtime.block_on(mcp::bare::serve());
    }
}

/// Seconds, for people.
fn seconds(duration: std::time::Duration) -> String {
    format!("{:.3} s", duration.as_secs_f64())
}
