//! Seeds that once broke something, with what it was. They run always.
//!
//! Each still breaks when its mend is taken back. A change of the simulation itself can give a seed
//! another meaning; then its case goes, and the test beside the mend remains.

/// A run that once failed.
pub struct Case {
    pub seed: u64,
    /// What was wrong.
    pub what: &'static str,
}

pub const CASES: &[Case] = &[Case {
    seed: 1916,
    what: "a slow first scan of the database brought a purged user back, whose directory then stood \
               in the way of the next user of that name",
}];
