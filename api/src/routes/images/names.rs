//! How clients name images.

use schema::config::{Config, keys, query};
use schema::image::{self, ImageReference};
use schema::reader::Connection;

use crate::deps::Deps;
use crate::error::{ApiError, Result};

/// The shortest piece of an id that is taken for one, as people know it from the engine.
const SHORTEST_ID: usize = 12;
/// Digits of a whole id.
const WHOLE_ID: usize = 64;
const ALGORITHM: &str = "sha256:";

/// An image as a client names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::routes) struct Named {
    /// The beginning of an id (`sha256:…`), if the text can be one.
    id: Option<String>,
    /// What else it can be.
    reference: Option<ImageReference>,
}

/// The configuration in effect with its generation, and the repository that is managed: that of
/// `image.name`.
pub(super) async fn settings(
    connection: &mut Connection,
    deps: &Deps,
) -> Result<(Config, i64, ImageReference)> {
    let (values, generation) = query::load(connection, &deps.master_key).await?;
    let config = Config::from_stored(values);
    let managed = config.get(&keys::image::NAME).parse();
    Ok((config, generation, managed.map_err(ApiError::internal)?))
}

/// The repository that is managed.
pub(in crate::routes) async fn managed(
    connection: &mut Connection,
    deps: &Deps,
) -> Result<ImageReference> {
    Ok(settings(connection, deps).await?.2)
}

/// A reference, or a tag of the managed repository. A text without `/`, `:` and `@` that can be a tag
/// is one: `v1.2`, but also `latest`; the image `busybox` of docker.io is `library/busybox`.
pub(super) fn reference(
    field: &str,
    text: &str,
    managed: &ImageReference,
) -> Result<ImageReference> {
    let text = text.trim();
    let bare = !text.contains(['/', ':', '@']);
    if let (true, Ok(tagged)) = (bare, managed.with_tag(text)) {
        return Ok(tagged);
    }
    text.parse().map_err(|error| {
        let rule = format!("{field} is a tag of image.name or a reference; {error}");
        ApiError::invalid(field, rule)
    })
}

impl From<ImageReference> for Named {
    fn from(reference: ImageReference) -> Self {
        Self {
            id: None,
            reference: Some(reference),
        }
    }
}

impl Named {
    /// Reads a reference, a tag, or an id: whole, or its first 12 digits or more.
    pub(in crate::routes) fn read(
        field: &str,
        text: &str,
        managed: &ImageReference,
    ) -> Result<Self> {
        let text = text.trim();
        let digits = text.strip_prefix(ALGORITHM).unwrap_or(text);
        let is_id = (SHORTEST_ID..=WHOLE_ID).contains(&digits.len())
            && digits
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let id = is_id.then(|| format!("{ALGORITHM}{digits}"));
        if id.is_some() && text.starts_with(ALGORITHM) {
            return Ok(Self {
                id,
                reference: None,
            });
        }
        let reference = match reference(field, text, managed) {
            Ok(reference) => Some(reference),
            Err(_) if id.is_some() => None,
            Err(error) => return Err(error),
        };
        Ok(Self { id, reference })
    }

    /// The beginning of an id, if the text can be one.
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The reference, unless it can only be an id.
    pub(super) fn reference(&self) -> Option<&ImageReference> {
        self.reference.as_ref()
    }

    /// Whether this id is meant.
    pub(super) fn is_id(&self, id: &str) -> bool {
        let prefix = self.id.as_deref();
        prefix.is_some_and(|prefix| image::is_id(id, prefix))
    }

    /// The whole id, if it was given as such.
    pub(super) fn whole_id(&self) -> Option<&str> {
        let id = self.id.as_deref();
        id.filter(|id| self.reference.is_none() && id.len() == ALGORITHM.len() + WHOLE_ID)
    }
}

/// The full form of a reference as it is stored with a user; what cannot be read stays as it is.
pub(super) fn full(reference: &str) -> String {
    let parsed: Result<ImageReference, _> = reference.parse();
    parsed.map_or_else(|_| reference.to_owned(), |parsed| parsed.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn managed() -> ImageReference {
        "registry.example:5000/agent".parse().unwrap()
    }

    #[test]
    fn l38_a_tag_is_one_of_the_managed_repository_and_all_else_a_reference() {
        for (text, expected) in [
            ("v1.2", "registry.example:5000/agent:v1.2"),
            (" latest ", "registry.example:5000/agent:latest"),
            ("library/busybox", "docker.io/library/busybox:latest"),
            ("busybox:1", "docker.io/library/busybox:1"),
            ("localhost:5000/a", "localhost:5000/a:latest"),
        ] {
            let read = reference("image", text, &managed()).unwrap();
            assert_eq!(read.to_string(), expected, "{text}");
        }
        for text in [
            "",
            " ",
            "-x",
            "a b",
            "A/b",
            "a@sha256:12",
            "http://a/b",
            "a:b:c",
        ] {
            let error = reference("image", text, &managed()).unwrap_err();
            assert_eq!(error.code(), "invalid_parameter", "{text}");
            assert!(error.to_string().starts_with("image is "), "{error}");
        }
    }

    #[test]
    fn an_id_is_known_by_its_first_digits() {
        let id = format!("sha256:{}", "ab".repeat(32));
        let read = |text: &str| Named::read("image", text, &managed()).unwrap();
        for text in [&id[..], &id[7..], &id[7..19], &id[..19]] {
            assert!(read(text).is_id(&id), "{text}");
            assert!(!read(text).is_id("sha256:cdef"), "{text}");
        }
        assert!(!read("abab").is_id(&id), "too short");
        assert_eq!(read(&id).reference(), None);
        assert_eq!(read(&id).whole_id(), Some(&*id));
        assert_eq!(read(&id[..19]).whole_id(), None);
        // It may be a tag, too.
        assert!(read(&id[7..19]).reference().is_some());
        assert_eq!(read("v1").whole_id(), None);
    }
}
