//! API tokens as values.

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sqlx::FromRow;
use utoipa::ToSchema;

use crate::ids::{Timestamp, Uid};
use crate::secrets::{SecretsError, random_secret};

/// First characters of every API token: an MCP token has a colon in their place.
pub const PREFIX: &str = "agy_api_";

/// Longest name of a token, in bytes.
pub const LONGEST_NAME: usize = 63;

/// Requests that a token may make.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    ToSchema,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[schema(as = ApiTokenRole)]
pub enum Role {
    /// Reads.
    Read,
    /// Reads and changes.
    Admin,
}

/// A token to be stored.
#[derive(Debug)]
pub struct NewApiToken {
    /// Its name, which follows [`is_name`].
    pub name: String,
    /// Requests that it may make.
    pub role: Role,
    /// The last moment at which it is valid.
    pub expires_at: Timestamp,
    /// The actor that creates it.
    pub created_by: String,
}

/// A stored token.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct ApiToken {
    /// Identity: a later token of the same name has another one.
    pub uid: Uid,
    /// Its name.
    pub name: String,
    /// Requests that it may make.
    pub role: Role,
    /// The actor that created it.
    pub created_by: String,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// The last moment at which it is valid.
    pub expires_at: Timestamp,
    /// Time of its last use, to the minute; `None` before the first.
    pub last_used_at: Option<Timestamp>,
}

impl ApiToken {
    /// Reports that it is past its time.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now > self.expires_at
    }
}

/// The result of a search for a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// It is valid.
    Valid(ApiToken),
    /// It was valid.
    Expired(ApiToken),
    /// There is none: it never was, or it was revoked.
    Unknown,
}

/// Reports that a text may name a token: 1 to 63 lower-case letters, digits, dots, hyphens and underscores, of which the first
/// is a letter or a digit.
pub fn is_name(text: &str) -> bool {
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= LONGEST_NAME
        && text.bytes().next().is_some_and(plain)
        && text.bytes().all(|c| plain(c) || b".-_".contains(&c))
}

/// Generates a token of 256 random bits.
pub(super) fn generate() -> Result<SecretString, SecretsError> {
    let secret = random_secret()?;
    Ok(format!("{PREFIX}{}", secret.expose_secret()).into())
}

/// Returns what is stored of a token. It has 256 random bits, so a plain digest cannot be reversed by trying.
pub fn digest(token: &SecretString) -> String {
    hex::encode(Sha256::digest(token.expose_secret()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for good in ["a", "ci", "backup-2.night_x", &"a".repeat(63)] {
            assert!(is_name(good), "{good}");
        }
        for bad in [
            "",
            "A",
            "-a",
            ".",
            "a b",
            "a/b",
            "a:b",
            "ä",
            &"a".repeat(64),
        ] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn tokens_differ_and_are_not_mcp_tokens() {
        let [one, other] = [generate().unwrap(), generate().unwrap()];
        let text = one.expose_secret();
        assert!(text.starts_with(PREFIX) && text.len() == PREFIX.len() + 64);
        assert!(!text.contains(':'));
        assert_ne!(digest(&one), digest(&other));
        assert!(!digest(&one).contains(&text[PREFIX.len()..]));
    }
}
