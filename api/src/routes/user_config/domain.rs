//! Domains of cookies.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest host name.
const MAX_LENGTH: usize = 253;
/// The longest part of one.
const MAX_LABEL: usize = 63;

/// A host name in lower case, with a dot in front when the cookies are for its subdomains, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct CookieDomain(String);

/// A text that is no such domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be a host name of at most 253 ASCII characters such as example.com or .example.com, \
     international names in their xn-- form"
)]
pub(super) struct InvalidDomain;

impl FromStr for CookieDomain {
    type Err = InvalidDomain;

    fn from_str(text: &str) -> Result<Self, InvalidDomain> {
        let host = text.strip_prefix('.').unwrap_or(text);
        if host.len() <= MAX_LENGTH && host.split('.').all(is_label) {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(InvalidDomain)
        }
    }
}

/// Browsers take underscores, too.
fn is_label(label: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=MAX_LABEL).contains(&label.len())
        && label.bytes().all(fits)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

impl TryFrom<String> for CookieDomain {
    type Error = InvalidDomain;

    fn try_from(text: String) -> Result<Self, InvalidDomain> {
        text.parse()
    }
}

impl From<CookieDomain> for String {
    fn from(domain: CookieDomain) -> Self {
        domain.0
    }
}

impl CookieDomain {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CookieDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_taken_in_lower_case() {
        let longest = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(61));
        assert_eq!(longest.len(), MAX_LENGTH);
        for (text, stored) in [
            ("example.com", "example.com"),
            (".Example.COM", ".example.com"),
            ("localhost", "localhost"),
            ("192.168.1.7", "192.168.1.7"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("my_app.example.com", "my_app.example.com"),
            (&*longest, &*longest),
        ] {
            let domain: CookieDomain = text.parse().unwrap();
            assert_eq!(domain.as_str(), stored);
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let too_long = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(62));
        for text in [
            "",
            ".",
            "..",
            "..example.com",
            "example.com.",
            "a..b",
            "-a.com",
            "a-.com",
            "a b.com",
            "a/b",
            "https://example.com",
            "example.com:443",
            "[::1]",
            "bücher.example",
            "a\u{0}b",
            "a\nb",
            "*.example.com",
            &"a".repeat(64),
            &too_long,
        ] {
            assert_eq!(text.parse::<CookieDomain>(), Err(InvalidDomain), "{text:?}");
        }
    }
}
