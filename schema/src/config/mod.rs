//! The configuration: which keys there are, what they may hold, and what is in effect.
//!
//! Everything here is pure. [`keys`] has a row for each key; a request is parsed into a
//! [`Patch`], which is resolved against the [`Config`] in effect into the [`Changes`] to store.
//! Secrets leave only through typed accessors, never through documents, problems or `Debug`.

mod check;
mod document;
mod effective;
pub mod flags;
pub mod history;
mod host;
pub mod keys;
mod lan_access;
mod long_integer;
mod masking;
#[cfg(test)]
mod masking_tests;
mod patch;
pub mod policy;
pub mod query;
mod rules;
pub mod sealing;
mod setting;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use document::json_schema;
pub use effective::{AuthMode, Config, HostAccess, IMAGE_CAPABILITIES, LogLevel, PullPolicy};
pub use keys::{KEYS, find};
pub use lan_access::LanAccess;
pub use long_integer::check_integers;
pub use masking::{MASK, secret_texts};
pub use patch::{Change, Changes, Patch, is_loopback, parse_patch};
pub(crate) use rules::{Rule, text_rules};
pub use setting::{BelongsTo, DefaultValue, Effect, KeyDef, Secrets, Setting, Shape, ValueType};

/// Why a configuration value was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = ConfigProblem)]
pub struct Problem {
    /// The key as it was given, dotted.
    pub key: String,
    /// Stable, for programs.
    pub code: ProblemCode,
    /// A sentence. Names the key and the rule, and repeats a short value of a key that holds no secrets.
    pub message: String,
}

/// The kinds of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::Display, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(as = ConfigProblemCode)]
pub enum ProblemCode {
    /// There is no such key.
    UnknownKey,
    /// The key was given twice, nested and dotted.
    DuplicateKey,
    /// The value has another JSON type than the key.
    InvalidType,
    /// The value breaks the key's rule.
    InvalidValue,
    /// A stored secret belongs to a host that changes: it has to be sent again, or removed.
    SecretRequired,
    /// This release does not support the key, or this value of it, yet.
    NotAvailableYet,
}

impl Problem {
    fn new(key: &str, code: ProblemCode, message: String) -> Self {
        Self {
            key: key.to_owned(),
            code,
            message,
        }
    }
}
