//! The rules for texts in a package's documents: each error is the rest of the sentence "`<field>` …".

use std::path::Path;

use super::model::RunAs;
use super::version::{AdapterVersion, Version};

/// A rule for a text: the rest of the sentence when it is broken.
pub(super) type Rule = fn(&str) -> Result<(), &'static str>;

/// Variables that the service sets itself.
const RESERVED_VARIABLES: &[&str] = &["HOME", "AGENT_DEBUG"];

fn check(fits: bool, otherwise: &'static str) -> Result<(), &'static str> {
    if fits { Ok(()) } else { Err(otherwise) }
}

pub(super) fn adapter_version(text: &str) -> Result<(), &'static str> {
    check(
        text.parse::<AdapterVersion>().is_ok(),
        "must be dotted numbers such as 1.4 or 2026.05.1",
    )
}

pub(super) fn version(text: &str) -> Result<(), &'static str> {
    check(
        text.parse::<Version>().is_ok(),
        "must be a version such as 1.2.3 or v1.2.3",
    )
}

pub(super) fn line(text: &str) -> Result<(), &'static str> {
    let fits = !text.trim().is_empty() && text.len() <= 128 && !text.chars().any(char::is_control);
    check(fits, "must be one line of 1 to 128 bytes")
}

pub(super) fn argument(text: &str) -> Result<(), &'static str> {
    check(!text.contains('\0'), "must not contain a NUL character")
}

pub(super) fn word(text: &str) -> Result<(), &'static str> {
    let fits = (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    check(fits, "must be 1 to 64 characters of A-Z a-z 0-9 _ -")
}

fn names_with_dots(text: &str) -> bool {
    let names = text.split('.');
    text.len() <= 255
        && !text.chars().any(char::is_control)
        && names.clone().count() <= 16
        && names.clone().all(|name| !name.is_empty())
}

pub(super) fn setting_path(text: &str) -> Result<(), &'static str> {
    check(
        names_with_dots(text) && !text.split('.').any(|name| name == "*"),
        "must be names separated by dots",
    )
}

fn is_plain(text: &str) -> bool {
    // Path::components() hides "." and "//".
    text.len() <= 255
        && !text.chars().any(char::is_control)
        && text
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..")
}

pub(super) fn plain_path(text: &str) -> Result<(), &'static str> {
    check(
        is_plain(text),
        "must be a plain path relative to the agent directory",
    )
}

/// The ending says how the file is written.
pub(super) fn settings_file(text: &str) -> Result<(), &'static str> {
    let known = [".json", ".yml", ".yaml"];
    check(
        is_plain(text) && known.iter().any(|ending| text.ends_with(ending)),
        "must be a plain path relative to the agent directory that ends in .json, .yml or .yaml",
    )
}

pub(super) fn home_path(text: &str) -> Result<(), &'static str> {
    let system = [
        "/proc", "/sys", "/dev", "/etc", "/bin", "/sbin", "/lib", "/usr",
    ];
    let path = Path::new(text);
    let fits = text.strip_prefix('/').is_some_and(is_plain)
        && !text.contains(':')
        && !system.iter().any(|system| path.starts_with(system));
    check(
        fits,
        "must be an absolute path in the container such as /root, not one of the system's",
    )
}

pub(super) fn url_path(text: &str) -> Result<(), &'static str> {
    let fits = text.starts_with('/')
        && text.len() <= 255
        && text.bytes().all(|b| b.is_ascii_graphic())
        && !text.contains('#');
    check(fits, "must be the path of an address, with / in front")
}

pub(super) fn run_as(text: &str) -> Result<(), &'static str> {
    text.parse::<RunAs>().map(drop)
}

pub(super) fn variable(name: &str) -> Result<(), &'static str> {
    let fits = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    check(fits, "is not the name of an environment variable")?;
    check(
        !RESERVED_VARIABLES.contains(&name),
        "is set by the service itself",
    )
}

pub(super) fn config_version(text: &str) -> Result<(), &'static str> {
    check(
        text.parse::<u32>().is_ok(),
        "must be named by a configuration version",
    )
}

/// A place that may stand for many: one of its names may be `*`.
pub(super) fn setting_pattern(text: &str) -> Result<(), &'static str> {
    let stars = text.split('.').filter(|name| *name == "*").count();
    check(
        names_with_dots(text) && stars <= 1,
        "must be names separated by dots, at most one of which is *",
    )
}

pub(super) fn setting_name(text: &str) -> Result<(), &'static str> {
    check(
        names_with_dots(text) && !text.contains('.') && text != "*",
        "must be one name, without dots",
    )
}
