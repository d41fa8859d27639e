//! Image references, read by the OCI's own library.

use std::fmt;
use std::str::FromStr;

use oci_spec::distribution::Reference;

/// The longest reference that is accepted: a name of 255 characters, a tag of 128 and a digest.
const LONGEST: usize = 512;

/// The full form of an image reference: registry, repository, and tag or digest.
///
/// The same image has one full form, however it was written: `busybox` and
/// `docker.io/library/busybox:latest` are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ImageReference(Reference);

/// A text that is not an image reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an image reference such as docker.io/sipeed/picoclaw:v0.2.9 or registry.example:5000/agent@sha256:…: {0}"
)]
pub struct InvalidImageReference(String);

/// Whether a text can be a tag.
pub fn is_tag(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut bytes = text.bytes();
    text.len() <= 128
        && bytes.next().is_some_and(word)
        && bytes.all(|byte| word(byte) || byte == b'.' || byte == b'-')
}

/// Returns true if an id begins with `beginning`, or its digest (`sha256:…`) does, where it names the repository first.
pub fn is_id(id: &str, beginning: &str) -> bool {
    let digest = id.split_once('@').map(|(_, digest)| digest);
    id.starts_with(beginning) || digest.is_some_and(|digest| digest.starts_with(beginning))
}

impl ImageReference {
    /// The registry, with its port if it names one: `docker.io`, `registry.example:5000`.
    pub fn registry(&self) -> &str {
        self.0.registry()
    }

    /// The name inside the registry, such as `library/busybox`.
    pub fn repository(&self) -> &str {
        self.0.repository()
    }

    /// The tag, if it has one. A text with neither tag nor digest means `latest`.
    pub fn tag(&self) -> Option<&str> {
        self.0.tag()
    }

    /// The digest (`sha256:…`), if it has one: then it never means anything else.
    pub fn digest(&self) -> Option<&str> {
        self.0.digest()
    }

    /// Registry and repository together, without tag and digest.
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry(), self.repository())
    }

    /// Whether both name the same repository.
    pub fn same_repository(&self, other: &Self) -> bool {
        self.registry() == other.registry() && self.repository() == other.repository()
    }

    /// The same repository with this tag.
    ///
    /// # Errors
    /// When it cannot be a tag.
    pub fn with_tag(&self, tag: &str) -> Result<Self, InvalidImageReference> {
        if !is_tag(tag) {
            let rule =
                "a tag is 1 to 128 characters of A-Z a-z 0-9 _ . - that begin with none of . -";
            return Err(InvalidImageReference(rule.to_owned()));
        }
        format!("{}:{tag}", self.name()).parse()
    }

    /// The parsed form, for a library that asks for it.
    pub fn as_oci(&self) -> &Reference {
        &self.0
    }
}

impl FromStr for ImageReference {
    type Err = InvalidImageReference;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > LONGEST {
            return Err(InvalidImageReference(format!(
                "longer than {LONGEST} characters"
            )));
        }
        // The library takes any letter of any script for a tag's; engines and registries do not.
        if !text.is_ascii() {
            return Err(InvalidImageReference("only ASCII is allowed".to_owned()));
        }
        let read = |text: &str| {
            text.parse()
                .map_err(|error: oci_spec::distribution::ParseError| {
                    InvalidImageReference(error.to_string())
                })
        };
        let parsed: Reference = read(text)?;
        // `A/b` is read as a registry of one word, and then put below docker.io, where it is no name.
        read(&parsed.whole())?;
        Ok(Self(parsed))
    }
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> ImageReference {
        text.parse().unwrap()
    }

    #[test]
    fn l38_ports_tags_and_digests_are_told_apart() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (text, registry, repository, tag, has_digest) in [
            (
                "busybox",
                "docker.io",
                "library/busybox",
                Some("latest"),
                false,
            ),
            (
                "sipeed/picoclaw:v1",
                "docker.io",
                "sipeed/picoclaw",
                Some("v1"),
                false,
            ),
            (
                "localhost:5000/agent",
                "localhost:5000",
                "agent",
                Some("latest"),
                false,
            ),
            (
                "localhost:5000/a/b:v1.2",
                "localhost:5000",
                "a/b",
                Some("v1.2"),
                false,
            ),
            (
                &format!("r.example:5000/a@{digest}"),
                "r.example:5000",
                "a",
                None,
                true,
            ),
            (
                &format!("a:1@{digest}"),
                "docker.io",
                "library/a",
                Some("1"),
                true,
            ),
        ] {
            let reference = parsed(text);
            assert_eq!(reference.registry(), registry, "{text}");
            assert_eq!(reference.repository(), repository, "{text}");
            assert_eq!(reference.tag(), tag, "{text}");
            assert_eq!(reference.digest().is_some(), has_digest, "{text}");
            assert_eq!(parsed(&reference.to_string()), reference, "{text}");
        }
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        let long = "a".repeat(600);
        for bad in [
            "",
            "A",
            "a b",
            "a:",
            "a@",
            "a@sha256:12",
            ":v1",
            "/a",
            "a//b",
            "A/b",
            "a:v 1",
            "http://a/b",
            "a:ü",
            "a:v\u{200d}1",
            "a:١",
            "ü/a:1",
            &long,
        ] {
            assert!(bad.parse::<ImageReference>().is_err(), "{bad:?}");
        }
        let digest = format!("1@sha256:{}", "a".repeat(64));
        for bad in [
            "",
            "-x",
            ".x",
            "ü",
            "1\u{200d}",
            "a/b",
            "a:b",
            &digest,
            &"a".repeat(129),
        ] {
            assert!(parsed("a").with_tag(bad).is_err(), "{bad:?}");
            assert!(!is_tag(bad), "{bad:?}");
        }
        for good in ["_", "v1.2-RC_3", &"a".repeat(128)] {
            assert_eq!(parsed("a").with_tag(good).unwrap().tag(), Some(good));
        }
        assert_eq!(
            parsed("localhost:5000/a:1")
                .with_tag("2")
                .unwrap()
                .to_string(),
            "localhost:5000/a:2"
        );
    }
}
