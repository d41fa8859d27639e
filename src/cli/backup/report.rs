//! Progress of backups and restores, on standard error.

use std::time::Duration;

use indicatif::ProgressBar;
use schema::backup::{LeftOut, Progress};
use schema::clock::{Clock, SystemClock};

use crate::cli::output::cell::counted;
use crate::cli::output::clean::clean;
use crate::cli::output::screen;

/// Time between two lines where no terminal is.
const EVERY: Duration = Duration::from_secs(30);
/// Time between two pictures on a terminal.
const REDRAW: Duration = Duration::from_millis(200);
/// So many of the entries that were left out are named.
const NAMED: usize = 10;

/// Tells progress: a line that changes on a terminal, and one now and then elsewhere.
pub struct Reporter {
    action: &'static str,
    bar: Option<ProgressBar>,
    told: Duration,
}

impl Reporter {
    /// Of this action.
    pub fn new(action: &'static str) -> Self {
        Self {
            action,
            bar: screen::bar(0, "{spinner} {msg}"),
            told: SystemClock.steady(),
        }
    }

    /// Tells it if it is time to. Always true: Ctrl-C ends the process, and what is left is removed by the next backup.
    pub fn tell(&mut self, progress: &Progress) -> bool {
        let now = SystemClock.steady();
        let every = if self.bar.is_some() { REDRAW } else { EVERY };
        if now.saturating_sub(self.told) < every {
            return true;
        }
        self.told = now;
        let text = format!(
            "{} {}: {} so far, {} read",
            self.action,
            clean(&progress.section),
            entries(progress.entries),
            size(progress.bytes)
        );
        match &self.bar {
            Some(bar) => bar.set_message(text),
            None => screen::note(&text),
        }
        true
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Tells what is not in a backup.
pub fn left_out(left: &LeftOut) {
    if left.total() == 0 {
        return;
    }
    let counts = left
        .counts
        .iter()
        .map(|(reason, count)| format!("{reason}: {count}"));
    let counts: Vec<String> = counts.collect();
    screen::note(&format!(
        "left out: {} ({}); the manifest names the first hundred",
        entries(left.total()),
        counts.join(", ")
    ));
    for name in left.names.iter().take(NAMED) {
        screen::note(&format!("  {}", clean(name)));
    }
}

/// A number of entries for people.
pub fn entries(count: u64) -> String {
    match count {
        1 => "1 entry".to_owned(),
        count => format!("{count} entries"),
    }
}

/// A number of bytes for people.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return counted(bytes, "byte");
    }
    let mut scaled = bytes;
    let mut unit = "bytes";
    for next in UNITS {
        if scaled < 1000 {
            break;
        }
        scaled /= 1000;
        unit = next;
    }
    format!("{scaled} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_one_unit() {
        for (bytes, text) in [
            (1, "1 byte"),
            (999, "999 bytes"),
            (1_000, "1 kB"),
            (999_999, "999 kB"),
            (5_400_000, "5 MB"),
            (7_000_000_000_000_000, "7000 TB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
