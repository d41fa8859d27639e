//! `agentyard pod read-nonce`.

use std::path::PathBuf;

use clap::Args;
use engine_kubernetes::pod::read_nonce;

use super::tell;
use crate::cli::{Failure, Result};

/// File to read.
#[derive(Debug, Args)]
pub struct ReadArgs {
    /// Path
    file: PathBuf,
}

/// Tells the content, or why it cannot be read.
pub fn read(args: &ReadArgs) -> Result {
    match read_nonce(&args.file) {
        Ok(text) => tell(&text),
        Err(error) => {
            let text = format!("{} cannot be read: {error}", args.file.display());
            tell(&text)?;
            Err(Failure::Failed(text))
        }
    }
}
