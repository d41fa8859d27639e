//! Tokens with which programs use the administration API.
//!
//! A token belongs to the installation: it stays when the account that created it goes. Only its digest is stored.

mod model;
pub(crate) mod query;

pub use model::{ApiToken, LONGEST_NAME, Lookup, NewApiToken, PREFIX, Role, digest, is_name};
pub use query::{create, find, first_to_end, is_live, list, mark_used, revoke};
