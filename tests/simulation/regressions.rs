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

pub const CASES: &[Case] = &[
    Case {
        seed: 1916,
        what: "a slow first scan of the database brought a purged user back, whose directory then stood \
               in the way of the next user of that name",
    },
    Case {
        seed: 6439,
        what: "a slow read of a row had seen more than a scan that began later and ended earlier; the \
               pass after it went by the scan, and told the older state of the newer generation",
    },
    Case {
        seed: 5303,
        what: "with the name of the previous container taken by somebody else's, a replacement stopped \
               the old one before it could not be put aside, again at every resync",
    },
];
