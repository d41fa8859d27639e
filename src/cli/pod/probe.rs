//! `agentyard pod probe`.

use clap::Args;
use engine_kubernetes::pod::{Target, probe as try_targets};

use super::print_line;
use crate::cli::{Result, failed};

/// Targets, each NAME=HOST:PORT.
#[derive(Debug, Args)]
pub struct ProbeArgs {
    /// Addresses that must not be reached
    #[arg(long)]
    closed: Vec<Target>,
    /// Addresses that may be reached, and are mentioned then
    #[arg(long)]
    tolerated: Vec<Target>,
    /// Addresses that must be reached
    #[arg(long)]
    open: Vec<Target>,
    /// Name servers that must answer
    #[arg(long)]
    name_server: Vec<Target>,
}

/// Tries all of them and tells what was found.
pub fn probe_targets(args: &ProbeArgs) -> Result {
    let found = try_targets(&args.closed, &args.tolerated, &args.open, &args.name_server);
    print_line(&serde_json::to_string(&found).map_err(failed)?)
}
