//! Standard output and standard error.

use std::io::{self, ErrorKind, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressStyle};

use super::clean::clean_lines;
use crate::cli::{Failure, Result};

/// Prints text for people; its colours are taken away where no terminal is, or `NO_COLOR` is set.
///
/// # Errors
/// When nobody reads any more, or it cannot be written.
pub fn print(text: &str) -> Result {
    let mut out = anstream::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Prints bytes for programs, as they are.
///
/// # Errors
/// When nobody reads any more, or it cannot be written.
pub fn print_raw(bytes: &[u8]) -> Result {
    let mut out = io::stdout().lock();
    written(out.write_all(bytes).and_then(|()| out.flush()))
}

/// Writes a note to standard error. Nothing depends on its being read.
pub fn note(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{}", clean_lines(text));
}

/// A progress bar, where a terminal is.
pub fn bar(length: u64, template: &str) -> Option<ProgressBar> {
    let style = ProgressStyle::with_template(template);
    let bar = ProgressBar::new(length);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    io::stderr().is_terminal().then_some(bar)
}

fn written(result: io::Result<()>) -> Result {
    result.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::PipeClosed,
        _ => Failure::Failed(format!("the output cannot be written: {error}")),
    })
}
