//! Users' directories: a claim that the service and the agents mount, each agent with a path of its own.

use engine::EngineError;

/// A directory of a claim, as the source of a mount names it: `CLAIM:PATH`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClaimPath {
    /// Name of the claim.
    pub(crate) claim: String,
    /// Path in it; empty: all of it.
    pub(crate) path: String,
}

impl ClaimPath {
    /// Reads the source of a mount.
    ///
    /// # Errors
    /// [`EngineError::Refused`]: it names no directory of a claim.
    pub(crate) fn parse(source: &str) -> Result<Self, EngineError> {
        let refused = |why: &str| {
            Err(EngineError::Refused(format!(
                "the mount {source:?} {why}; a source is CLAIM:PATH on this engine"
            )))
        };
        let Some((claim, path)) = source.split_once(':') else {
            return refused("names no claim");
        };
        let is_claim = claim.len() <= 253 && claim.split('.').all(super::names::is_object_name);
        if !is_claim {
            return refused("names no claim");
        }
        let steps = path.split('/');
        if !path.is_empty()
            && steps
                .into_iter()
                .any(|step| matches!(step, "" | "." | ".."))
        {
            return refused("has a path that is not plain");
        }
        Ok(Self {
            claim: claim.to_owned(),
            path: path.to_owned(),
        })
    }
}

impl std::fmt::Display for ClaimPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.claim, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("data:users/alice", true)]
    #[case("data:users/Alice_B@x", true)]
    #[case("data:", true)]
    #[case("/var/lib/agentyard/users/alice", false)]
    #[case("data:/users/alice", false)]
    #[case("data:users/../bob", false)]
    #[case("data:users/./bob", false)]
    #[case("data:users//bob", false)]
    #[case(":users/alice", false)]
    #[case("Data:users/alice", false)]
    fn source_is_a_plain_path_of_a_claim(#[case] source: &str, #[case] good: bool) {
        match ClaimPath::parse(source) {
            Ok(path) => assert!(good && path.to_string() == source),
            Err(error) => assert!(!good && matches!(error, EngineError::Refused(_))),
        }
    }
}
