//! Sessions: the server side of the signed cookie.

pub(crate) mod query;

pub use query::{Live, SKEW, SessionRow, ahead, find_live, issue, list, prune, revoke, revoke_all};
