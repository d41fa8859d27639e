//! What happened in a run: every line for its hash, the last ones for people.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

/// Lines that are shown of a failing run.
const SHOWN: usize = 120;

/// The trace of one run.
#[derive(Debug, Default)]
pub struct Trace {
    hash: u64,
    lines: VecDeque<String>,
    keep_all: bool,
    /// How often what happened, over the whole run.
    pub tally: BTreeMap<&'static str, u64>,
}

impl Trace {
    /// `keep_all`: keeps every line, not only the last ones.
    pub fn new(keep_all: bool) -> Self {
        Self {
            keep_all,
            ..Self::default()
        }
    }

    /// Notes a line; `millis` is the virtual time since the start of the run.
    pub fn line(&mut self, millis: u64, text: &str) {
        let line = format!("{:>8}.{:03} {text}", millis / 1000, millis % 1000);
        for byte in line.bytes() {
            // FNV-1a.
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.lines.push_back(line);
        if !self.keep_all && self.lines.len() > SHOWN {
            self.lines.pop_front();
        }
    }

    /// Counts something that must happen now and then for the simulation to be worth anything.
    pub fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    /// Two runs of one seed have the same.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }
}

/// How a run of one seed ended.
#[derive(Debug)]
pub struct Outcome {
    pub seed: u64,
    /// What was broken, if anything was.
    pub violation: Option<String>,
    pub trace: Trace,
}

impl Outcome {
    /// What is printed of a failing run.
    pub fn report(&self) -> String {
        let mut text = String::new();
        for line in self.trace.lines() {
            let _ = writeln!(text, "{line}");
        }
        let _ = writeln!(
            text,
            "\nseed {}: {}\nrepeat it with: AGENTYARD_SEED={} target/tools/bin/cargo-nextest nextest run --test simulation --no-capture seeds",
            self.seed,
            self.violation.as_deref().unwrap_or("nothing was broken"),
            self.seed,
        );
        text
    }
}
