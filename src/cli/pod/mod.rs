//! `agentyard pod …`: what the program does in Pods beside agents. Nothing of it is for people.

mod probe;
mod read_nonce;
mod wait_closed;

use std::path::Path;

use clap::Subcommand;
use engine_kubernetes::pod::MESSAGE;

use super::{Result, failed};

/// Steps of the service inside Pods.
#[derive(Debug, Subcommand)]
pub enum PodCommand {
    /// Wait until addresses are closed
    WaitClosed(wait_closed::WaitArgs),
    /// Try what is reached from here
    Probe(probe::ProbeArgs),
    /// Tell the content of the file by which the data directory is proven
    ReadNonce(read_nonce::ReadArgs),
}

impl PodCommand {
    /// Runs it to its end.
    ///
    /// # Errors
    /// When it cannot be done or told.
    pub fn run(&self) -> Result {
        match self {
            Self::WaitClosed(args) => wait_closed::wait_until_closed(args),
            Self::Probe(args) => probe::probe_targets(args),
            Self::ReadNonce(args) => read_nonce::print_nonce(args),
        }
    }
}

/// Says something at the end of the Pod's container.
fn print_line(text: &str) -> Result {
    std::fs::write(Path::new(MESSAGE), text).map_err(failed)
}
