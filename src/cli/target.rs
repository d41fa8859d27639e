//! `kind/name`, as it is typed.

use std::fmt;
use std::str::FromStr;

use super::kinds::{self, KindInfo};

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
            .filter(|(_, name)| !name.is_empty())
            .ok_or_else(|| {
                let example = if kinds::named(text).is_some() {
                    format!("{text}/NAME")
                } else {
                    format!("container/{text}")
                };
                format!("give kind and name, such as {example}")
            })?;
        let kind = kind(kind_name)?;
        // `get objects` calls its objects by kind and name already.
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
    fn any_name_of_a_kind_will_do() {
        for text in ["container/alice", "containers/alice", "c/alice"] {
            assert_eq!(
                text.parse::<Object>().unwrap().to_string(),
                "container/alice"
            );
        }
        assert_eq!("t/1/2".parse::<Thing>().unwrap().name, "1/2");
        for (text, part) in [
            ("alice", "container/alice"),
            ("container", "container/NAME"),
            ("container/", "kind and name"),
            ("usr/alice", "\"user\""),
            ("task/1", "not reconciled"),
        ] {
            let error = text.parse::<Object>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
