//! Objects on the engine that have a name of ours and another owner.

use std::collections::BTreeMap;

use super::LABEL_OWNER;

/// Owner of an object that this installation does not own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignOwner {
    /// Another installation of Agentyard.
    Agentyard,
    /// Anything else.
    Unknown,
}

impl ForeignOwner {
    /// The owner of an object with these labels, which are not those of `owner`.
    pub fn of(labels: &BTreeMap<String, String>, owner: &str) -> Self {
        match labels.get(LABEL_OWNER) {
            Some(other) if other != owner => Self::Agentyard,
            _ => Self::Unknown,
        }
    }

    /// Says whose an object is, such as a `network` of this name.
    pub fn describe(self, kind: &str, name: &str) -> String {
        match self {
            Self::Agentyard => format!(
                "the {kind} {name} belongs to another Agentyard, which uses this engine or did; two of them cannot share one"
            ),
            Self::Unknown => {
                format!("a {kind} named {name} exists that Agentyard does not own")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_installation_is_told_by_its_label() {
        let label = |owner: &str| BTreeMap::from([(LABEL_OWNER.to_owned(), owner.to_owned())]);
        for (labels, expected) in [
            (label("other"), ForeignOwner::Agentyard),
            (label("me"), ForeignOwner::Unknown),
            (BTreeMap::new(), ForeignOwner::Unknown),
        ] {
            assert_eq!(ForeignOwner::of(&labels, "me"), expected, "{labels:?}");
        }
    }
}
