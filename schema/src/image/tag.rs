//! The order of tags.

use std::cmp::Reverse;

use semver::Version;

/// A tag as a version; `v1.2` and `1` count as `1.2.0` and `1.0.0`.
fn version(tag: &str) -> Option<Version> {
    let bare = tag.strip_prefix('v').unwrap_or(tag);
    let dots = bare
        .split(['-', '+'])
        .next()
        .map_or(0, |core| core.matches('.').count());
    if dots >= 2 {
        return Version::parse(bare).ok();
    }
    let at = bare.find(['-', '+']).unwrap_or(bare.len());
    let (core, rest) = bare.split_at(at);
    Version::parse(&format!("{core}{}{rest}", ".0".repeat(2 - dots))).ok()
}

/// Sorts tags: versions by semantic versioning, newest first, then everything else by name.
pub fn sort_newest_first(tags: &mut [String]) {
    tags.sort_by_cached_key(|tag| match version(tag) {
        Some(version) => (0, Some(Reverse(version)), tag.clone()),
        None => (1, None, tag.clone()),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_newest_first_and_names_after_them() {
        let mut tags = [
            "latest",
            "v0.2.9",
            "v0.2.10",
            "v0.10.0-rc.1",
            "edge",
            "v0.10.0",
            "1",
            "v1.1",
            "0.2.9-debug",
        ]
        .map(str::to_owned);
        sort_newest_first(&mut tags);
        assert_eq!(
            tags,
            [
                "v1.1",
                "1",
                "v0.10.0",
                "v0.10.0-rc.1",
                "v0.2.10",
                "v0.2.9",
                "0.2.9-debug",
                "edge",
                "latest"
            ]
        );
    }
}
