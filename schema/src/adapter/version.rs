//! Version numbers of agents and adapters.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// The version of an agent: `MAJOR.MINOR.PATCH`, with or without `v`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// Raised by incompatible changes.
    pub major: u32,
    /// Raised by additions.
    pub minor: u32,
    /// Raised by corrections.
    pub patch: u32,
}

/// A text that is no version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a version such as 1.2.3 or v1.2.3")]
pub struct InvalidVersion;

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut numbers = text
            .strip_prefix('v')
            .unwrap_or(text)
            .split('.')
            .map(number);
        match (
            numbers.next(),
            numbers.next(),
            numbers.next(),
            numbers.next(),
        ) {
            (Some(Some(major)), Some(Some(minor)), Some(Some(patch)), None) => Ok(Self {
                major,
                minor,
                patch,
            }),
            _ => Err(InvalidVersion),
        }
    }
}

impl Version {
    /// The version that an image tag begins with, such as `v0.2.9-alpine`; `None` when it begins
    /// with none.
    pub fn of_tag(tag: &str) -> Option<Self> {
        tag.split(['-', '+', '_'])
            .next()
            .and_then(|start| start.parse().ok())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

fn number(text: &str) -> Option<u32> {
    // u32 would also take "+1".
    (!text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

/// The version of an adapter: dotted numbers, any count; `1.0` equals `1` and precedes `1.10`.
#[derive(Debug, Clone)]
pub struct AdapterVersion {
    text: String,
    numbers: Vec<u32>,
}

/// A text that is no adapter version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be dotted numbers such as 1.4 or 2026.05.1")]
pub struct InvalidAdapterVersion;

impl AdapterVersion {
    /// As it is written in the package.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for AdapterVersion {
    type Err = InvalidAdapterVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text
            .split('.')
            .map(number)
            .collect::<Option<Vec<_>>>()
            .filter(|numbers| numbers.len() <= 8)
            .ok_or(InvalidAdapterVersion)?;
        Ok(Self {
            text: text.to_owned(),
            numbers,
        })
    }
}

impl fmt::Display for AdapterVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Ord for AdapterVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        let length = self.numbers.len().max(other.numbers.len());
        let padded = |numbers: &[u32]| {
            let zeros = std::iter::repeat_n(0, length - numbers.len());
            numbers.iter().copied().chain(zeros).collect::<Vec<_>>()
        };
        padded(&self.numbers).cmp(&padded(&other.numbers))
    }
}

impl PartialOrd for AdapterVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for AdapterVersion {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for AdapterVersion {}
