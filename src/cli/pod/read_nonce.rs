//! `agentyard pod read-nonce`.

use std::path::PathBuf;

use clap::Args;
use engine_kubernetes::pod::read_nonce;

use super::print_line;
use crate::cli::{Failure, Result};

/// File to read.
#[derive(Debug, Args)]
pub struct ReadArgs {
    /// Path
    file: PathBuf,
}

/// Tells the content, or why it cannot be read.
pub fn print_nonce(args: &ReadArgs) -> Result {
    match read_nonce(&args.file) {
        Ok(text) => print_line(&text),
        Err(error) => {
            let text = format!("{} cannot be read: {error}", args.file.display());
            print_line(&text)?;
            Err(Failure::Failed(text))
        }
    }
}
