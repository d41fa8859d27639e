//! Names, labels and annotations of our objects in the cluster.
//!
//! A container's name and labels have characters and lengths that Kubernetes forbids in names and labels, so annotations hold them
//! as they are, and labels hold what objects are selected by.

use std::collections::BTreeMap;

use engine::{ContainerSettings, EngineError, LABEL_OWNER, LABEL_UID};
use sha2::{Digest, Sha256};

/// Label: the instance that owns the object.
pub(crate) const OWNER: &str = "agentyard.io/owner";
/// Label: the user whose agent it is.
pub(crate) const UID: &str = "agentyard.io/uid";
/// Label of templates: a digest of the container's name.
pub(crate) const NAME_DIGEST: &str = "agentyard.io/name-digest";
/// Label of Pods that run an errand of the service: which one.
pub(crate) const ERRAND: &str = "agentyard.io/errand";
/// Label: the program that made the object.
pub(crate) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Label of Pods that bring an image to a node: the pull that they belong to.
pub(crate) const PULL: &str = "agentyard.io/pull";
/// Annotation: the container's name.
pub(crate) const NAME: &str = "agentyard.io/name";
/// Annotation: the container's labels, as JSON.
pub(crate) const LABELS: &str = "agentyard.io/labels";
/// Annotation: settings that a Pod cannot hold as they were given, as JSON.
pub(crate) const SETTINGS: &str = "agentyard.io/settings";
/// Annotation: the time of the last start.
pub(crate) const STARTED: &str = "agentyard.io/started";
/// Annotation: the end of the last run, as JSON.
pub(crate) const LAST_RUN: &str = "agentyard.io/last-run";
/// Selects all objects of all instances.
pub(crate) const SELECTOR: &str = OWNER;

/// Longest value of a label.
const LONGEST_LABEL: usize = 63;
/// Longest name of a container.
const LONGEST_NAME: usize = 253;

/// Identity of a container: the name and the uid of its template. A later template of the same name is another container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Id {
    /// Name of the template.
    pub(crate) template: String,
    /// Its uid, which the cluster never gives again.
    pub(crate) uid: String,
}

impl Id {
    /// Reads an id; `None`: it is none of ours.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (template, uid) = text.split_once('.')?;
        let known = template.starts_with("agent-") && is_label(uid) && is_object_name(template);
        known.then(|| Self {
            template: template.to_owned(),
            uid: uid.to_owned(),
        })
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.template, self.uid)
    }
}

/// Checks a container's name as the engine of reference does.
///
/// # Errors
/// [`EngineError::Refused`]: it has other characters than letters, digits, `_`, `.` and `-`, or a bad length.
pub(crate) fn check_name(name: &str) -> Result<(), EngineError> {
    let mut characters = name.chars();
    let first = characters.next().is_some_and(|c| c.is_ascii_alphanumeric());
    let rest = characters.all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    if first && rest && (2..=LONGEST_NAME).contains(&name.len()) {
        return Ok(());
    }
    Err(EngineError::Refused(format!(
        "{name:?} is no container name: letters, digits, '_', '.' and '-', at least two, beginning with a letter or digit"
    )))
}

/// A text as the value of a label: itself where it can be one, else a digest of it.
pub(crate) fn label_value(text: &str) -> String {
    if is_label(text) {
        return text.to_owned();
    }
    format!("x{}", digest([text]))
}

/// The value of [`NAME_DIGEST`] of a container's name.
pub(crate) fn name_digest(name: &str) -> String {
    digest([name])
}

/// The one name that Pods of a container with these labels have: the cluster refuses a second one beside it.
pub(crate) fn pod_name(labels: &BTreeMap<String, String>) -> String {
    let uid = labels.get(LABEL_UID).map_or("", String::as_str);
    let owner = labels.get(LABEL_OWNER).map_or("", String::as_str);
    if !uid.is_empty() && uid.len() <= 40 && is_object_name(uid) {
        format!("agent-{uid}")
    } else {
        format!("agent-x{}", digest([owner, uid]))
    }
}

/// The name of the template of a container. Equal requests have equal names, so that the cluster refuses all but one; `attempt`
/// tells them apart from a template that was made by an equal request and has another name now.
pub(crate) fn template_name(name: &str, settings: &ContainerSettings, attempt: u32) -> String {
    let mut hash = Sha256::new();
    hash.update(name.as_bytes());
    hash.update([0]);
    // Every field, labels included.
    hash.update(format!("{settings:?}"));
    hash.update(attempt.to_be_bytes());
    let digest = hex::encode(hash.finalize());
    let short = digest.get(..8).unwrap_or(&digest);
    format!("{}-{short}", pod_name(&settings.labels))
}

/// The labels of an object of a container.
pub(crate) fn object_labels(labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let value = |key: &str| label_value(labels.get(key).map_or("", String::as_str));
    BTreeMap::from([
        (OWNER.to_owned(), value(LABEL_OWNER)),
        (UID.to_owned(), value(LABEL_UID)),
        (MANAGED_BY.to_owned(), "agentyard".to_owned()),
    ])
}

/// A selector for the objects of an owner, and of one user of it.
pub(crate) fn selector(owner: &str, uid: Option<&str>) -> String {
    let owner = label_value(owner);
    match uid {
        Some(uid) => format!("{OWNER}={owner},{UID}={}", label_value(uid)),
        None => format!("{OWNER}={owner}"),
    }
}

fn digest<const N: usize>(parts: [&str; N]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    let digest = hex::encode(hash.finalize());
    digest.get(..40).unwrap_or(&digest).to_owned()
}

/// Returns true if a text can be the value of a label and is not empty.
fn is_label(text: &str) -> bool {
    let outer = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= LONGEST_LABEL
        && outer(text.chars().next())
        && outer(text.chars().next_back())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}

/// Returns true if a text can be a part of an object's name (RFC 1123).
pub(crate) fn is_object_name(text: &str) -> bool {
    let outer = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    text.len() <= LONGEST_LABEL
        && outer(text.chars().next())
        && outer(text.chars().next_back())
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(uid: &str) -> ContainerSettings {
        ContainerSettings {
            labels: BTreeMap::from([(LABEL_UID.to_owned(), uid.to_owned())]),
            ..ContainerSettings::default()
        }
    }

    #[test]
    fn id_is_read_back_and_other_texts_are_none() {
        let id = Id {
            template: "agent-u1-0123abcd".to_owned(),
            uid: "6c2e3b5a-0000-4000-8000-000000000001".to_owned(),
        };
        assert_eq!(Id::parse(&id.to_string()), Some(id));
        for other in [
            "agentyard-alice",
            "alice.next-",
            &"f".repeat(64),
            "agent-x.",
            "a/b.c",
        ] {
            assert_eq!(Id::parse(other), None, "{other}");
        }
    }

    #[rstest::rstest]
    #[case("agentyard-alice.next-", true)]
    #[case("Alice_B.2", true)]
    #[case("x", false)]
    #[case("-option", false)]
    #[case(".hidden", false)]
    #[case("a b", false)]
    #[case("", false)]
    fn names_are_those_of_the_reference(#[case] name: &str, #[case] good: bool) {
        assert_eq!(check_name(name).is_ok(), good);
    }

    #[rstest::rstest]
    #[case("0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdef")]
    #[case("alice@example.org", "x")]
    #[case("", "x")]
    #[case(&"f".repeat(64), "x")]
    fn label_value_is_the_text_or_a_digest(#[case] text: &str, #[case] begin: &str) {
        let value = label_value(text);
        assert!(value.starts_with(begin) && is_label(&value), "{value}");
        assert_eq!(value == text, begin.len() > 1);
    }

    #[test]
    fn pods_of_one_user_have_one_name() {
        let name = |uid: &str| pod_name(&settings(uid).labels);
        assert_eq!(name("u1"), "agent-u1");
        assert_eq!(name("Alice@x"), name("Alice@x"));
        assert_ne!(name("Alice@x"), name("alice@x"));
        for uid in ["u1", "Alice@x", "", &"a".repeat(300)] {
            let longest = template_name("n", &settings(uid), 7);
            assert!(is_object_name(&longest), "{longest}");
        }
    }

    #[test]
    fn template_name_depends_on_all_of_the_request() {
        let plain = settings("u1");
        let mut labelled = settings("u1");
        labelled.labels.insert("token".to_owned(), "2".to_owned());
        let mut limited = settings("u1");
        limited.memory_bytes = 1;
        let names = [
            template_name("a", &plain, 0),
            template_name("b", &plain, 0),
            template_name("a", &plain, 1),
            template_name("a", &labelled, 0),
            template_name("a", &limited, 0),
        ];
        let different: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len());
        assert_eq!(template_name("a", &plain, 0), names[0]);
    }
}
