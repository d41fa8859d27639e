//! Branches and tags.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use crate::visible::{InvalidName, check_visible};

/// Longest name in bytes.
const LONGEST: usize = 255;

/// What a [`GitRef`] names.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
    ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RefType {
    /// A branch: it moves.
    Branch,
    /// A tag: it stays, as a rule.
    Tag,
}

/// The name of a branch or tag, without `refs/heads/` or `refs/tags/`, by the rules of `git check-ref-format`
/// (git-check-ref-format(1)).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, min_length = 1, max_length = 255, example = "main")]
pub struct GitRef(String);

/// The sentence that explains the rule for names of branches and tags.
pub const GIT_REF_RULE: &str = "the short name of a branch or tag has 1 to 255 bytes, no space, control character, invisible character, one that turns the direction of writing or any of ~ ^ : ? * [ \\ in it, no .. or @{, begins with none of - / refs/, ends with none of / . and has no empty part, none that begins with . and none that ends with .lock";

impl GitRef {
    /// The short name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads a name that is in use already: in a row, or in a directory, where hidden characters occur.
    pub(crate) fn from_existing(text: &str) -> Result<Self, InvalidName> {
        match fits(text) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidName::Rule(GIT_REF_RULE)),
        }
    }

    /// The full name: `refs/heads/main`, `refs/tags/v1`.
    pub fn full_name(&self, ref_type: RefType) -> String {
        match ref_type {
            RefType::Branch => format!("refs/heads/{}", self.0),
            RefType::Tag => format!("refs/tags/{}", self.0),
        }
    }
}

fn is_part(part: &str) -> bool {
    !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock")
}

fn fits(text: &str) -> bool {
    let forbidden = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    text.len() <= LONGEST
        && text.split('/').all(is_part)
        && !text.contains(forbidden)
        && !text.contains("..")
        && !text.contains("@{")
        && !text.ends_with('.')
        && text != "@"
        // Git itself allows these two; the first could be an option, the second would name `refs/heads/refs/heads/…`.
        && !text.starts_with('-')
        && !text.starts_with("refs/")
}

impl FromStr for GitRef {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = Self::from_existing(text)?;
        check_visible(text, GIT_REF_RULE)?;
        Ok(name)
    }
}

impl fmt::Display for GitRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for GitRef {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_takes_is_taken() {
        let long = "a".repeat(255);
        for good in [
            "main",
            "feature/skills-2",
            "v1.2.3",
            "a@b",
            "@a",
            "a-",
            "Zürich",
            "x.lock.y",
            "HEAD",
            "{a}",
            "a$(touch)",
            &long,
        ] {
            let name: GitRef = good.parse().unwrap();
            assert_eq!(name.as_str(), good);
            assert_eq!(
                name.full_name(RefType::Branch),
                format!("refs/heads/{good}")
            );
            assert_eq!(name.full_name(RefType::Tag), format!("refs/tags/{good}"));
            let json = serde_json::to_value(&name).unwrap();
            assert_eq!(serde_json::from_value::<GitRef>(json).unwrap(), name);
        }
    }

    #[test]
    fn l28_what_is_no_name_or_could_be_an_option_is_refused() {
        let long = "a".repeat(256);
        for bad in [
            "",
            "--upload-pack=touch x",
            "--upload-pack=touch",
            "-x",
            "refs/heads/main",
            "/a",
            "a/",
            "a//b",
            ".a",
            "a/.b",
            "a.lock",
            "a.lock/b",
            "a..b",
            "a.",
            "@",
            "a@{1}",
            "a b",
            "a\tb",
            "a\nb",
            "a\0b",
            "a\u{7f}b",
            "a\u{85}b",
            "a~1",
            "a^{}",
            "a:b",
            "+a:b",
            "a?",
            "a*",
            "a[b",
            "a\\b",
            &long,
        ] {
            let refused = Err(InvalidName::Rule(GIT_REF_RULE));
            assert_eq!(bad.parse::<GitRef>(), refused, "{bad:?}");
            assert!(serde_json::from_value::<GitRef>(bad.into()).is_err());
        }
    }

    #[test]
    fn types_of_references_have_words() {
        for (word, ref_type) in [("branch", RefType::Branch), ("tag", RefType::Tag)] {
            assert_eq!(word.parse(), Ok(ref_type));
            assert_eq!(ref_type.to_string(), word);
        }
        assert!("commit".parse::<RefType>().is_err());
    }
}
