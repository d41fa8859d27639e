//! The audit trail: who changed what, from where, when, and how it came out.
//!
//! Append-only. An entry is written in the transaction of the change it records, so neither is ever
//! there without the other. Each entry carries a hash, under a key derived from the master key, of
//! itself and of the entry before it; two authenticated rows, head and anchor, say where the chain
//! ends and what came before its oldest entry. So whoever can write to the database, but has not
//! the master key, can neither change, add, swap nor remove an entry (at the end neither) without
//! [`verify()`] naming the place. What it cannot detect is a database that was set back as a whole to an
//! earlier state: exports kept elsewhere show that.
//!
//! Calls of tools are many: beyond [`LISTED_A_DAY`] of one kind, one entry stands for all further ones of that day.
//!
//! [`Writer`] is the only way for requests to write at all: its transactions cannot be committed
//! without saying what they are about.

mod chain;
mod fold;
mod model;
pub(crate) mod query;
mod retention;
mod verify;
mod writer;

pub use chain::ChainKey;
pub(crate) use chain::Which;
pub use fold::{CALL, Calls, LISTED_A_DAY};
pub use model::{About, Author, Entry, Filter, Outcome, Record};
pub use query::{
    EXPORT_PAGE, append, bounds, changes, first_since, following, found, install, list,
};
pub use verify::{Problem, Verdict, verify};
pub use writer::{Audited, Writer};
