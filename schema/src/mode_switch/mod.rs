//! A change of the authentication mode: everybody who came with the old one leaves, with what is theirs.
//!
//! [`begin`] is a part of the transaction that saves the new mode: from its commit on nobody of the old mode is signed in,
//! and whoever is left is on the way out. The finalizers of users and containers do the rest, in any order and however often
//! they are interrupted. Superadmins, the whitelist, skills and the configuration stay.

pub(crate) mod query;

pub use query::{Purge, begin, purge};
