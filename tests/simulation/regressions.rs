//! Seeds that once broke something, with what it was. They run always.

/// A run that once failed.
pub struct Case {
    pub seed: u64,
    /// What was wrong.
    pub what: &'static str,
}

pub const CASES: &[Case] = &[];
