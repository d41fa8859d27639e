//! The rules for texts in a package's documents: each error is the rest of the sentence "`<field>` …".

use std::path::Path;

use super::model::RunAs;
use super::version::{AdapterVersion, Version};
use crate::config::text_rules;

/// Variables that the service sets itself.
const RESERVED_VARIABLES: &[&str] = &["HOME", "AGENT_DEBUG"];
/// Folders of the container's system.
const SYSTEM: &[&str] = &[
    "/proc", "/sys", "/dev", "/etc", "/bin", "/sbin", "/lib", "/usr",
];

text_rules! {
    /// The version of a package.
    adapter_version(text) = text.parse::<AdapterVersion>().is_ok(),
        "must be dotted numbers such as 1.4 or 2026.05.1";

    /// The version of an agent.
    version(text) = text.parse::<Version>().is_ok(),
        "must be a version such as 1.2.3 or v1.2.3";

    /// Something that people read.
    line(text) = !text.trim().is_empty() && text.len() <= 128 && !text.chars().any(char::is_control),
        "must be one line of 1 to 128 bytes";

    /// An argument of a command.
    argument(text) = !text.contains('\0'),
        "must not contain a NUL character";

    /// Something that programs read.
    word(text) = (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)),
        "must be 1 to 64 characters of A-Z a-z 0-9 _ -";

    /// A place in a file.
    setting_path(text) = names_with_dots(text) && !text.split('.').any(|name| name == "*"),
        "must be names separated by dots";

    /// A place that may stand for many: one of its names may be `*`.
    setting_pattern(text) = names_with_dots(text) && text.split('.').filter(|name| *name == "*").count() <= 1,
        "must be names separated by dots, at most one of which is *";

    /// One name of a place.
    setting_name(text) = names_with_dots(text) && !text.contains('.') && text != "*",
        "must be one name, without dots";

    /// A path in the agent directory.
    plain_path(text) = is_plain(text),
        "must be a plain path relative to the agent directory";

    /// One of the agent's two files. The ending says how it is written.
    settings_file(text) = is_plain(text) && [".json", ".yml", ".yaml"].iter().any(|ending| text.ends_with(ending)),
        "must be a plain path relative to the agent directory that ends in .json, .yml or .yaml";

    /// The agent's home in the container.
    home_path(text) = text.strip_prefix('/').is_some_and(is_plain)
        && !text.contains(':')
        && !SYSTEM.iter().any(|system| Path::new(text).starts_with(system)),
        "must be an absolute path in the container such as /root, not one of the system's";

    /// Where a container says that it is ready.
    url_path(text) = text.starts_with('/')
        && text.len() <= 255
        && text.bytes().all(|b| b.is_ascii_graphic())
        && !text.contains('#'),
        "must be the path of an address, with / in front";

    /// A configuration version as a name.
    config_version(text) = text.parse::<u32>().is_ok(),
        "must be named by a configuration version";

    /// What an environment variable may be called.
    variable_name(text) = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'),
        "is not the name of an environment variable";

    /// What is left to packages.
    free_variable(text) = !RESERVED_VARIABLES.contains(&text),
        "is set by the service itself";
}

pub(super) fn variable(text: &str) -> Result<String, &'static str> {
    variable_name(text).and_then(|text| free_variable(&text))
}

pub(super) fn run_as(text: &str) -> Result<String, &'static str> {
    text.parse::<RunAs>().map(|_| text.to_owned())
}

fn names_with_dots(text: &str) -> bool {
    let names = text.split('.');
    text.len() <= 255
        && !text.chars().any(char::is_control)
        && names.clone().count() <= 16
        && names.clone().all(|name| !name.is_empty())
}

fn is_plain(text: &str) -> bool {
    // Path::components() hides "." and "//".
    text.len() <= 255
        && !text.chars().any(char::is_control)
        && text
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..")
}
