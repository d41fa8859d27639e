//! What an identity provider says of somebody who signs in.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A sign-in on its way through the browser: what only this service and the provider may know of it, in one place or the
/// other. It is kept by the browser, sealed.
#[derive(Clone, Serialize, Deserialize)]
pub struct PendingSignIn {
    /// Comes back with the browser (RFC 6749 §10.12).
    pub state: String,
    /// Comes back in the ID token (OpenID Connect Core §3.1.2.1).
    pub nonce: String,
    /// Shows that whoever redeems the code has asked for it (RFC 7636).
    pub verifier: String,
}

/// Without what nobody may read.
impl fmt::Debug for PendingSignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingSignIn").finish_non_exhaustive()
    }
}

/// Somebody whom an identity provider has signed in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProvidedIdentity {
    /// The issuer and its subject: forever one person's (OpenID Connect Core §2).
    pub subject: String,
    /// The user name, as the provider writes it.
    pub name: String,
    /// The names of the groups; `None`: the provider has not said, which is not the same as none.
    pub groups: Option<BTreeSet<String>>,
    /// Values of groups that were not taken, each with the reason and the remedy: sentences for administrators.
    pub left_out: Vec<String>,
    /// Groups that have another name here: sentences for administrators.
    pub renamed: Vec<String>,
}

/// Why nobody was signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderFailure {
    /// The provider cannot be asked, or does not do what it is set up for: a sentence for administrators.
    Unavailable(String),
    /// It does not say what somebody is called: a sentence for administrators.
    Nameless(String),
    /// What it has sent proves nothing: a sentence for administrators.
    Refused(String),
}
