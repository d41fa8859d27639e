//! `agentyard pod wait-closed`.

use std::io::Write;
use std::time::Duration;

use clap::Args;
use engine_kubernetes::pod::wait_closed;

use crate::cli::Result;

/// For what, and for how long without a word.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// Seconds after which it is said what is not closed
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Addresses, HOST:PORT
    #[arg(required = true)]
    addresses: Vec<String>,
}

/// Waits for as long as it takes.
pub fn wait_until_closed(args: &WaitArgs) -> Result {
    wait_closed(&args.addresses, Duration::from_secs(args.seconds), |open| {
        let open: Vec<&str> = open.iter().map(|address| address.as_str()).collect();
        let open = open.join(", ");
        // The log of a container that waits is all that it has.
        let _ = writeln!(
            std::io::stderr(),
            "still reached, so the agent does not start: {open}"
        );
    });
    Ok(())
}
