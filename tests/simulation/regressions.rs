//! Seeds that once broke something, with what it was. They run always.

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
        seed: 2879,
        what: "a slow first scan of the database brought back the row of before a start, so that a \
               stopped container was reported for a generation that asked for a running one",
    },
    Case {
        seed: 2515,
        what: "a container was started by its name, which was a foreign one's by then",
    },
];
