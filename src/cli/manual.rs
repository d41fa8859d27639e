//! `agentyard completions`, `agentyard man`.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::output::screen;
use super::{Cli, Failure};

/// For which shell.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints a shell's completions.
///
/// # Errors
/// When the output cannot be written.
pub fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "agentyard", &mut text);
    screen::print_raw(&text)
}

/// Where to.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write one page for each subcommand into this directory instead
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints the manual page, or writes all of them.
///
/// # Errors
/// When they cannot be written.
pub fn man(args: &ManArgs) -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::Failed(format!("no manual page was made: {error}"));
    if let Some(dir) = &args.dir {
        std::fs::create_dir_all(dir).map_err(failed)?;
        return clap_mangen::generate_to(Cli::command(), dir).map_err(failed);
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(Cli::command())
        .render(&mut text)
        .map_err(failed)?;
    screen::print_raw(&text)
}
