//! Image references as engines take them.

use super::EngineError;

/// The reference with a tag or digest; the engine takes one without for "all tags" (L38: a port
/// is not a tag).
pub fn tagged(reference: &str) -> Result<String, EngineError> {
    if reference.starts_with("sha256:") {
        return Err(EngineError::PullFailed(format!(
            "{reference} is an id of this engine; no registry knows it"
        )));
    }
    let last = reference.rsplit('/').next().unwrap_or(reference);
    if last.contains([':', '@']) {
        Ok(reference.to_owned())
    } else {
        Ok(format!("{reference}:latest"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("busybox", "busybox:latest")]
    #[case("busybox:1", "busybox:1")]
    #[case("registry:5000/team/agent", "registry:5000/team/agent:latest")]
    #[case("registry:5000/team/agent:2", "registry:5000/team/agent:2")]
    #[case("agent@sha256:aa", "agent@sha256:aa")]
    fn l38_a_registry_port_is_not_a_tag(#[case] given: &str, #[case] expected: &str) {
        assert_eq!(tagged(given).unwrap(), expected);
    }

    #[test]
    fn an_id_is_never_pulled() {
        assert!(matches!(
            tagged("sha256:aa"),
            Err(EngineError::PullFailed(_))
        ));
    }
}
