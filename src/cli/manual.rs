//! `agentyard completions`, `agentyard man`.

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use clap_complete::env::Shells;

use super::complete::VARIABLE;
use super::output::screen;
use super::{Cli, Failure, Result, failed};

/// For which shell.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints a shell's completions.
///
/// # Errors
/// When the output cannot be written.
pub fn completions(args: &CompletionsArgs) -> Result {
    let mut text = Vec::new();
    let shells = Shells::builtins();
    // These ask the program at each press of the key, and so know what the server has.
    match shells.completer(&args.shell.to_string()) {
        Some(shell) => {
            let name = "agentyard";
            let written = shell.write_registration(VARIABLE, name, name, name, &mut text);
            written.map_err(failed)?;
        }
        None => clap_complete::generate(args.shell, &mut Cli::command(), "agentyard", &mut text),
    }
    screen::print_raw(&text)
}

/// Where to.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write one page for each subcommand into this directory; created if missing
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// A name that is mistyped leaves no trail of directories.
fn make_dir(dir: &Path) -> std::io::Result<()> {
    match std::fs::create_dir(dir) {
        Err(_) if dir.is_dir() => Ok(()),
        other => other,
    }
}

/// Prints the manual page, or writes all of them.
///
/// # Errors
/// When they cannot be written.
pub fn man(args: &ManArgs) -> Result {
    let failed =
        |error: std::io::Error| Failure::Failed(format!("cannot write the manual page: {error}"));
    if let Some(dir) = &args.dir {
        make_dir(dir).map_err(|error| {
            Failure::Failed(format!(
                "cannot create the directory {}: {error}; its parent must exist",
                dir.display()
            ))
        })?;
        return clap_mangen::generate_to(Cli::command(), dir).map_err(failed);
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(Cli::command())
        .render(&mut text)
        .map_err(failed)?;
    screen::print_raw(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_created_but_no_parent() {
        let place = tempfile::tempdir().unwrap();
        let to = |path: &str| {
            man(&ManArgs {
                dir: Some(place.path().join(path)),
            })
        };
        to("man").unwrap();
        to("man").unwrap();
        assert!(place.path().join("man/agentyard.1").is_file());
        let refused = to("mistyped/man").unwrap_err().to_string();
        assert!(refused.contains("must exist"), "{refused}");
        assert!(!place.path().join("mistyped").exists());
    }
}
