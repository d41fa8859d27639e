//! Newtypes for identities, counters and moments.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use unicode_normalization::UnicodeNormalization;
use utoipa::ToSchema;

use crate::visible::{InvalidName, check_visible};

pub use crate::kind::Kind;

/// The identity of an object: 32 lower-case hex digits, random, never reused.
///
/// Names can be reused after deletion; a uid cannot, so everything that must not be inherited by
/// the next bearer of a name is keyed by uid.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(transparent)]
#[derive(sqlx::Type)]
#[sqlx(transparent)]
#[schema(example = "0f8b1c6de2a94d7c8a37f1d25c90b3e4")]
pub struct Uid(String);

impl Uid {
    /// A fresh random uid.
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().simple().to_string())
    }

    /// A fresh random uid of a part of all that there are: rows that are written together lie together in every index.
    pub fn random_in(part: UidPart) -> Self {
        let random = uuid::Uuid::new_v4().as_u128();
        let begin = ((part.number as u128) << 32) + (random >> 96);
        let first = begin / part.of as u128;
        let rest = random & (u128::MAX >> 32);
        let uuid = uuid::Uuid::from_u128((first << 96) | rest);
        Self(uuid.simple().to_string())
    }

    /// The fixed uid of a singleton object, such as the one engine.
    pub fn singleton(name: &'static str) -> Self {
        Self(name.to_owned())
    }

    /// The text form, as stored and as put in labels.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first six hex digits, used to distinguish container names that would collide.
    pub fn short(&self) -> &str {
        self.0.get(..6).unwrap_or(&self.0)
    }
}

/// One of equal parts of all uids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UidPart {
    number: usize,
    of: usize,
}

impl UidPart {
    /// All of them.
    pub const WHOLE: Self = Self { number: 0, of: 1 };

    /// So many parts, in order.
    pub fn all(of: usize) -> impl Iterator<Item = Self> {
        (0..of).map(move |number| Self { number, of })
    }
}

impl From<String> for Uid {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How often the desired state of an object was changed. Starts at 1.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(transparent)]
#[derive(sqlx::Type)]
#[sqlx(transparent)]
#[schema(example = 3)]
pub struct Generation(pub i64);

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a leadership. A takeover raises it; status writes carry it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
#[derive(sqlx::Type)]
#[sqlx(transparent)]
pub struct Epoch(pub i64);

/// An object by kind and name, as answers show it: `container/alice`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRef {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
}

/// A text that is not `kind/name`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an object is named as kind/name")]
pub struct InvalidObjectRef;

impl ObjectRef {
    /// The object of that kind and name.
    pub fn new(kind: Kind, name: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
        }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

impl FromStr for ObjectRef {
    type Err = InvalidObjectRef;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) = text.split_once('/').ok_or(InvalidObjectRef)?;
        let kind = kind.parse().map_err(|_| InvalidObjectRef)?;
        Ok(Self::new(kind, name))
    }
}

impl Serialize for ObjectRef {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ObjectRef {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A time, in milliseconds since the Unix epoch; RFC 3339 in UTC when written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, utoipa::ToSchema)]
#[schema(value_type = String, format = DateTime, example = "2026-05-11T11:46:40Z")]
#[derive(sqlx::Type)]
#[sqlx(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The moment `millis` milliseconds after the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// The moment `secs` seconds after the Unix epoch.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since the Unix epoch.
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Seconds since the Unix epoch, with fractions.
    #[allow(clippy::cast_precision_loss)]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// The moment `by` later.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// The moment `by` earlier.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// Time passed since `earlier`; zero when `earlier` is in the future.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// What is left of a delay that began at `begin`; `None` when it has passed. One that begins in the future
    /// has passed as well: the clock was set back, and nobody waits until it has caught up.
    pub fn left_of(self, begin: Self, delay: Duration) -> Option<Duration> {
        let left = delay.checked_sub(self.since(begin))?;
        (begin <= self && !left.is_zero()).then_some(left)
    }

    /// RFC 3339 in UTC with whole seconds or milliseconds, as every API answer shows time.
    pub fn to_rfc3339(self) -> String {
        self.to_datetime()
            .format(&Rfc3339)
            .unwrap_or_else(|_| String::from("1970-01-01T00:00:00Z"))
    }

    /// ISO 8601 in its basic format, in UTC with whole seconds: `20260511T114640Z`, as in names of directories.
    pub fn to_basic(self) -> String {
        let at = self.to_datetime();
        format!(
            "{:04}{:02}{:02}T{:02}{:02}{:02}Z",
            at.year(),
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute(),
            at.second()
        )
    }

    /// The same moment as a calendar date and time in UTC.
    pub fn to_datetime(self) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }

    /// Reads RFC 3339; `None` when the text is not a moment.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let moment = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        i64::try_from(moment.unix_timestamp_nanos() / 1_000_000)
            .ok()
            .map(Self)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_rfc3339())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse_rfc3339(&text)
            .ok_or_else(|| serde::de::Error::custom("not an RFC 3339 date and time"))
    }
}

/// A user name: 1 to 64 of `[A-Za-z0-9._@+-]`, first and last alphanumeric.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(
    value_type = String,
    min_length = 1,
    max_length = 64,
    pattern = "^[A-Za-z0-9]([A-Za-z0-9._@+-]*[A-Za-z0-9])?$",
    example = "alice"
)]
pub struct UserName(String);

/// The sentence that explains the rule for user names.
pub const USER_NAME_RULE: &str = "a user name has 1 to 64 characters of A-Z a-z 0-9 . _ @ + - and begins and ends with a letter or digit";

/// A text that is not a user name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{USER_NAME_RULE}")]
pub struct InvalidUserName;

impl UserName {
    /// The name as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The form under which names are unique: lower case.
    pub fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// The name of this user's container: `agentyard-` + the name with `@` and `+` replaced by `_`;
    /// when anything was replaced, `-` + the first six hex digits of the uid.
    pub fn container_name(&self, uid: &Uid) -> String {
        let replaced = self.0.replace(['@', '+'], "_");
        if replaced == self.0 {
            format!("agentyard-{replaced}")
        } else {
            format!("agentyard-{replaced}-{}", uid.short())
        }
    }
}

impl FromStr for UserName {
    type Err = InvalidUserName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = text.as_bytes();
        let fits = (1..=64).contains(&bytes.len())
            && bytes
                .iter()
                .all(|b| b.is_ascii_alphanumeric() || b"._@+-".contains(b))
            && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.last().is_some_and(u8::is_ascii_alphanumeric);
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidUserName)
        }
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for UserName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// The name of a group, a skill or a repository: NFC, unique without regard to case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[schema(value_type = String, min_length = 1, max_length = 128, example = "engineering")]
pub struct PlainName(String);

/// The sentence that explains the rule for names of groups, skills and repositories.
pub const PLAIN_NAME_RULE: &str = "a name has 1 to 128 characters, none of them / or \\, a control character, invisible or turning the direction of writing, no space at its beginning or end, and is neither . nor ..";

impl PlainName {
    /// The name as it is shown.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The form under which names are unique: lower case.
    pub fn key(&self) -> String {
        self.0.to_lowercase()
    }
}

impl PlainName {
    /// Reads a name that is in use already: in a row, or in a directory, where hidden characters occur.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn from_existing(text: &str) -> Result<Self, InvalidName> {
        // Composing makes nothing longer than its limit in bytes already is.
        if text.len() > 128 * 16 {
            return Err(InvalidName::Rule(PLAIN_NAME_RULE));
        }
        let name: String = text.nfc().collect();
        let fits = (1..=128).contains(&name.chars().count())
            && !name
                .chars()
                .any(|c| matches!(c, '/' | '\\') || c.is_control())
            && name.trim() == name
            && !matches!(name.as_str(), "." | "..");
        if fits {
            Ok(Self(name))
        } else {
            Err(InvalidName::Rule(PLAIN_NAME_RULE))
        }
    }
}

impl FromStr for PlainName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = Self::from_existing(text)?;
        check_visible(text, PLAIN_NAME_RULE)?;
        Ok(name)
    }
}

impl fmt::Display for PlainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for PlainName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// The name of a skill: one of [`PlainName`] that can be the name of a directory, too.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[schema(value_type = String, min_length = 1, max_length = 128, example = "pdf-forms")]
pub struct SkillName(PlainName);

/// The sentence that explains the rule for names of skills.
pub const SKILL_NAME_RULE: &str = "a skill's name has 1 to 128 characters (at most 200 bytes in UTF-8), none of them / or \\, a control character, invisible or turning the direction of writing, no space at its beginning or end, and no . at its beginning";

impl SkillName {
    /// Most bytes: what is left of the longest name of a directory (255) when a time is added.
    const LONGEST: usize = 200;

    /// The name as it is shown, and as its directories are called.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The form under which names are unique: lower case.
    pub fn key(&self) -> String {
        self.0.key()
    }
}

impl SkillName {
    /// Reads a name that is in use already: in a row, or in a directory, where hidden characters occur.
    pub(crate) fn from_existing(text: &str) -> Result<Self, InvalidName> {
        let invalid = InvalidName::Rule(SKILL_NAME_RULE);
        let name = PlainName::from_existing(text).map_err(|_| invalid)?;
        match name.as_str() {
            long if long.len() > Self::LONGEST => Err(invalid),
            hidden if hidden.starts_with('.') => Err(invalid),
            _ => Ok(Self(name)),
        }
    }
}

impl FromStr for SkillName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = Self::from_existing(text)?;
        check_visible(text, SKILL_NAME_RULE)?;
        Ok(name)
    }
}

impl fmt::Display for SkillName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for SkillName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_of_a_part_come_before_those_of_the_next() {
        for of in [1, 2, 3, 200, 100_000] {
            let uids =
                UidPart::all(of).flat_map(|part| [Uid::random_in(part), Uid::random_in(part)]);
            let uids: Vec<Uid> = uids.collect();
            for uid in &uids {
                let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
                assert!(
                    uid.as_str().len() == 32 && uid.as_str().chars().all(is_hex),
                    "{uid}"
                );
            }
            // Only the first digits are of the part: two parts may share one value of those.
            let first = |uid: &Uid| u32::from_str_radix(&uid.as_str()[..8], 16).unwrap();
            for (part, next) in uids.chunks(2).zip(uids.chunks(2).skip(1)) {
                assert!(
                    first(part.iter().max().unwrap()) <= first(next.iter().min().unwrap()),
                    "{part:?} {next:?} of {of}"
                );
            }
            let (least, most) = (first(&uids[0]), first(&uids[2 * of - 1]));
            if of > 2 {
                assert!(least <= u32::MAX / 2 && most >= u32::MAX / 2, "of {of}");
            }
        }
    }

    #[test]
    fn user_names_follow_the_rule() {
        for good in ["a", "A9", "john.doe@corp+x-1", &"a".repeat(64)] {
            assert!(good.parse::<UserName>().is_ok(), "{good}");
        }
        for bad in [
            "",
            ".a",
            "a.",
            "-a",
            "a b",
            "a:b",
            "a/b",
            "..",
            "ä",
            &"a".repeat(65),
            "a\n",
        ] {
            assert!(bad.parse::<UserName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn container_names_that_lose_characters_carry_the_uid() {
        let uid = Uid::from("0123456789abcdef".to_owned());
        let name = |n: &str| n.parse::<UserName>().unwrap().container_name(&uid);
        assert_eq!(name("john.doe"), "agentyard-john.doe");
        assert_eq!(name("a@b"), "agentyard-a_b-012345");
        assert_eq!(name("a+b"), "agentyard-a_b-012345");
    }

    #[test]
    fn timestamps_are_rfc3339_utc() {
        let moment = Timestamp::from_millis(1_778_500_000_123);
        assert_eq!(moment.to_rfc3339(), "2026-05-11T11:46:40.123Z");
        assert_eq!(Timestamp::parse_rfc3339(&moment.to_rfc3339()), Some(moment));
    }
}
