//! Image references.

/// Returns true if two references are of one image: a mirror of a registry changes its address, not the digest or tag.
pub(crate) fn is_same(asked: &str, found: &str) -> bool {
    if asked == found {
        return true;
    }
    match (asked.split_once('@'), found.split_once('@')) {
        (Some((_, asked)), Some((_, found))) => asked == found,
        (None, None) => last_part(asked) == last_part(found),
        // A webhook may have resolved the tag.
        (None, Some((found, _))) => repository(last_part(asked)) == repository(last_part(found)),
        (Some(_), None) => false,
    }
}

/// The last step of the path, with its tag; one that is not written is `latest`.
fn last_part(reference: &str) -> (&str, &str) {
    let last = reference.rsplit('/').next().unwrap_or(reference);
    last.split_once(':').unwrap_or((last, "latest"))
}

fn repository<'a>(part: (&'a str, &'a str)) -> &'a str {
    part.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("r/agent:1", "r/agent:1", true)]
    #[case(
        "docker.io/library/busybox:1",
        "mirror:5000/hub/library/busybox:1",
        true
    )]
    #[case("busybox", "mirror/busybox:latest", true)]
    #[case("r/agent@sha256:aa", "mirror/agent@sha256:aa", true)]
    #[case("r/agent@sha256:aa", "r/agent@sha256:bb", false)]
    #[case("r/agent@sha256:aa", "r/agent:1", false)]
    #[case("r/agent:1", "r/agent:2", false)]
    #[case("r/agent:1", "r/other:1", false)]
    #[case("r/agent:1", "mirror/agent@sha256:aa", true)]
    #[case("r/agent:1", "mirror/other@sha256:aa", false)]
    fn mirror_changes_the_address_only(
        #[case] asked: &str,
        #[case] found: &str,
        #[case] same: bool,
    ) {
        assert_eq!(is_same(asked, found), same);
    }
}
