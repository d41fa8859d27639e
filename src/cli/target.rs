//! `kind/name` and lengths of time, as they are typed.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::kinds::{self, KindInfo};

/// Reads a length of time.
///
/// # Errors
/// What to type instead.
pub fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "use 90s or 5m".to_owned())
}

/// Reads the name of an account, also as `get users -o name` and `get containers -o name` print it.
///
/// # Errors
/// The name of another kind.
pub fn bare_name(text: &str) -> Result<String, String> {
    let Some((kind, name)) = text.split_once('/') else {
        return Ok(text.to_owned());
    };
    match kinds::named(kind).map(|kind| kind.singular) {
        Some("user" | "container" | "superadmin") => Ok(name.to_owned()),
        _ => Err("use NAME or user/NAME".to_owned()),
    }
}

/// One thing of any kind.
#[derive(Debug, Clone)]
pub struct Thing {
    /// Its kind.
    pub kind: &'static KindInfo,
    /// Its name.
    pub name: String,
}

impl Thing {
    fn read(
        text: &str,
        kind: fn(&str) -> Result<&'static KindInfo, String>,
    ) -> Result<Self, String> {
        let (kind_name, name) = text
            .split_once('/')
            .filter(|(_, name)| !["", ".", ".."].contains(name))
            .ok_or_else(|| {
                let example = if kinds::named(text).is_some() {
                    format!("{text}/NAME")
                } else {
                    format!("container/{text}")
                };
                format!("use kind/name, such as {example}")
            })?;
        let kind = kind(kind_name)?;
        // `get objects` names its objects by kind and name already.
        if kind.singular == "object" && name.contains('/') {
            return Self::read(name, kinds::parse);
        }
        Ok(Self {
            kind,
            name: name.to_owned(),
        })
    }
}

impl FromStr for Thing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::read(text, kinds::parse)
    }
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.singular, self.name)
    }
}

/// One reconciled object.
#[derive(Debug, Clone)]
pub struct Object(pub Thing);

impl FromStr for Object {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Thing::read(text, kinds::parse_object).map(Self)
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_kind_is_accepted() {
        for text in ["container/alice", "containers/alice", "c/alice"] {
            assert_eq!(
                text.parse::<Object>().unwrap().to_string(),
                "container/alice"
            );
        }
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(duration("soon"), Err("use 90s or 5m".to_owned()));
        for text in ["alice", "user/alice", "c/alice"] {
            assert_eq!(bare_name(text), Ok("alice".to_owned()));
        }
        assert!(bare_name("group/alice").is_err());
        assert_eq!("t/1/2".parse::<Thing>().unwrap().name, "1/2");
        for (text, part) in [
            ("alice", "container/alice"),
            ("container", "container/NAME"),
            ("container/", "kind/name"),
            ("container/..", "kind/name"),
            ("usr/alice", "\"user\""),
            ("task/1", "not reconciled"),
        ] {
            let error = text.parse::<Object>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
