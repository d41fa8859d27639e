//! The file of `--engine-options`.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::options::Options;

/// Most bytes of the file.
const LONGEST: u64 = 1 << 20;

/// Reason for which the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// It cannot be read.
    #[error("{}: the file cannot be read: {}", .0.display(), .1)]
    Unreadable(PathBuf, #[source] std::io::Error),
    /// It is longer than any such file.
    #[error("{}: the file has more than 1 MiB", .0.display())]
    TooLong(PathBuf),
    /// A field has a value that cannot be used, or lacks; the text names field, place and what it must be.
    #[error("{}: {}; correct the file", .0.display(), .1)]
    Wrong(PathBuf, String),
}

impl Options {
    /// Reads the file. The second part names fields in it that are not known.
    ///
    /// # Errors
    /// See [`OptionsError`].
    pub fn read(path: &Path) -> Result<(Self, Vec<String>), OptionsError> {
        let unreadable = |error| OptionsError::Unreadable(path.to_owned(), error);
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut text = String::new();
        let mut part = file.take(LONGEST + 1);
        part.read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > LONGEST {
            return Err(OptionsError::TooLong(path.to_owned()));
        }
        parse_options(&text)
            .map_err(|error| OptionsError::Wrong(path.to_owned(), error.to_string()))
    }
}

fn parse_options(text: &str) -> Result<(Options, Vec<String>), serde_yaml::Error> {
    let mut unknown = Vec::new();
    let note = |path: serde_ignored::Path<'_>| unknown.push(path.to_string().replace(".?", ""));
    let options = serde_ignored::deserialize(serde_yaml::Deserializer::from_str(text), note)?;
    Ok((options, unknown))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str =
        "image: a/b:1\ndata: { claim: data }\nnetwork: { serviceUrl: 'http://x:8081' }\n";

    #[test]
    fn unknown_fields_are_named() {
        let text = format!(
            "{LEAST}imgae: x\npods:\n  overlay:\n    spec:\n      nodeSelector: {{ a: b }}\n      nodeSelectors: {{}}\n"
        );
        let (options, unknown) = parse_options(&text).unwrap();
        assert_eq!(unknown, ["imgae", "pods.overlay.spec.nodeSelectors"]);
        let spec = options.pods.overlay.spec.unwrap();
        assert_eq!(spec.node_selector.unwrap()["a"], "b");
        assert_eq!(options.pods.requested_percent, 50);
    }

    #[rstest::rstest]
    #[case("image: a\ndata: {}\n", &["data", "claim", "line 2"])]
    #[case("image: a\ndata:\n  claim: Data\n", &["data.claim", "line 3", "lower-case"])]
    #[case("image: a\ndata:\n  claim: data\n  path: /x\n", &["data.path", "line 4", "without a slash"])]
    #[case("image: ' '\n", &["image", "line 1", "give a value"])]
    #[case("network:\n  serviceUrl: x:8081\n", &["network.serviceUrl", "line 2", "give a URL"])]
    #[case("network:\n  serviceUrl: http://x\n  closed:\n  - 10.0.0.0/8\n  - here\n", &["network.closed[1]", "line 5", "give a network"])]
    #[case("network:\n  serviceUrl: http://x\n  nameServers: [here]\n", &["network.nameServers[0]", "line 3"])]
    #[case("network:\n  serviceUrl: http://x\n  proxy: here\n", &["network.proxy", "line 3"])]
    #[case("pods:\n  requestedPercent: 200\n", &["pods.requestedPercent", "line 2", "1 to 100"])]
    #[case("pods:\n  overlay:\n    spec: 7\n", &["pods.overlay.spec", "line 3"])]
    #[case("image: [\n", &["image", "line 1"])]
    #[case("", &["missing field"])]
    fn wrong_value_is_refused_with_its_place(#[case] text: &str, #[case] parts: &[&str]) {
        let error = parse_options(text).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn file_that_is_missing_or_too_long_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("options.yaml");
        let said = |path: &Path| Options::read(path).unwrap_err().to_string();
        assert!(said(&path).contains("cannot be read"));
        std::fs::write(&path, "#".repeat(2 << 20)).unwrap();
        assert!(said(&path).contains("more than 1 MiB"));
        std::fs::write(&path, LEAST).unwrap();
        assert_eq!(Options::read(&path).unwrap().1, Vec::<String>::new());
    }
}
