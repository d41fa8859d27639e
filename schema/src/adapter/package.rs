//! From a zip, a folder or memory to checked files: limits, safe paths, hashes, JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Cursor, Read};
use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};
use zip::ZipArchive;

use super::depth::{MAX_NODES, scan_json};
use super::{InvalidPackage, Problem, index, strict};

/// The files of a package by path.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

pub(super) const INDEX: &str = "index.json";
pub(super) const HASH: &str = "hash";
pub(super) const MAX_PACKED: u64 = 16 << 20;
pub(super) const MAX_UNPACKED: u64 = 16 << 20;
pub(super) const MAX_FILE: u64 = 4 << 20;
/// Most values of all files together.
pub(super) const MAX_VALUES: usize = 4 * MAX_NODES;
/// More than any adapter needs, and few enough to check quickly.
pub(super) const MAX_FILES: usize = 2000;

/// Most bytes of a stored package: earlier releases took more, and kept what no index names.
const MAX_STORED: u64 = 64 << 20;

/// Takes files in one by one, minding limits and paths.
struct Collector {
    files: Files,
    /// Paths in lower case: two that differ in case are one on some file systems.
    folded: BTreeSet<String>,
    total: u64,
    problems: Vec<Problem>,
    full: bool,
    /// Most bytes of all files.
    most: u64,
}

impl Collector {
    fn new(most: u64) -> Self {
        Self {
            most,
            files: Files::new(),
            folded: BTreeSet::new(),
            total: 0,
            problems: Vec::new(),
            full: false,
        }
    }

    /// Adds a file. Reads no more of `content` than the limits allow.
    fn add(&mut self, path: &str, content: impl Read) {
        if self.full {
            return;
        }
        if let Some(problem) = unsafe_path(path) {
            return self.problem(path, problem);
        }
        if !self.folded.insert(path.to_lowercase()) {
            return self.problem(path, "is in the package twice (letter case does not count)");
        }
        if self.files.len() >= MAX_FILES {
            self.full = true;
            return self.problem("", "the package has more than 2000 files");
        }
        let mut bytes = Vec::new();
        match content.take(MAX_FILE + 1).read_to_end(&mut bytes) {
            Ok(length) if length as u64 > MAX_FILE => {
                return self.problem(path, "is longer than 4 MiB");
            }
            Ok(length) => self.total += length as u64,
            Err(error) => return self.problem(path, format!("cannot be read: {error}")),
        }
        if self.total > self.most {
            self.full = true;
            return self.problem("", "the package is longer than 16 MiB unpacked");
        }
        self.files.insert(path.to_owned(), bytes);
    }

    fn problem(&mut self, path: &str, message: impl Into<String>) {
        self.problems.push(Problem::new(path, "", message));
    }

    fn finish(self) -> Result<Files, InvalidPackage> {
        if self.problems.is_empty() {
            Ok(self.files)
        } else {
            Err(InvalidPackage(self.problems))
        }
    }
}

/// What is wrong with a path: it must be relative, plain, and name a JSON file or the hash list.
pub(super) fn unsafe_path(path: &str) -> Option<&'static str> {
    let plain = |part: &str| {
        !part.is_empty()
            && part != "."
            && part != ".."
            && !part.contains(['\\', ':'])
            && !part.chars().any(char::is_control)
    };
    if path.len() > 255 || !path.split('/').all(plain) {
        Some("is not a safe relative path")
    } else if path != HASH && !path.ends_with(".json") {
        Some("is neither a .json file nor the file hash")
    } else {
        None
    }
}

fn broken(message: impl Into<String>) -> InvalidPackage {
    InvalidPackage(vec![Problem::new("", "", message)])
}

pub(super) fn from_memory(files: &[(&str, &[u8])]) -> Result<Files, InvalidPackage> {
    collect(files, MAX_UNPACKED)
}

pub(super) fn from_store(files: &[(&str, &[u8])]) -> Result<Files, InvalidPackage> {
    collect(files, MAX_STORED)
}

fn collect(files: &[(&str, &[u8])], most: u64) -> Result<Files, InvalidPackage> {
    let mut collector = Collector::new(most);
    for (path, content) in files {
        collector.add(path, *content);
    }
    collector.finish()
}

pub(super) fn from_folder(folder: &Path) -> Result<Files, InvalidPackage> {
    let mut collector = Collector::new(MAX_UNPACKED);
    let mut folders = vec![(folder.to_owned(), String::new())];
    while let Some((folder, prefix)) = folders.pop() {
        let listing = std::fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = match listing {
            Ok(entries) => entries,
            Err(error) => {
                collector.problem(&prefix, format!("cannot be listed: {error}"));
                continue;
            }
        };
        for entry in entries {
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            // Of the entry itself: links are not followed.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && prefix.matches('/').count() < 8 => {
                    folders.push((entry.path(), format!("{path}/")));
                }
                Ok(kind) if kind.is_file() => match std::fs::File::open(entry.path()) {
                    Ok(file) => collector.add(&path, file),
                    Err(error) => collector.problem(&path, format!("cannot be read: {error}")),
                },
                Ok(_) => collector.problem(&path, "is not a regular file"),
                Err(error) => collector.problem(&path, format!("cannot be read: {error}")),
            }
        }
    }
    collector.finish()
}

pub(super) fn from_zip(bytes: &[u8]) -> Result<Files, InvalidPackage> {
    if bytes.len() as u64 > MAX_PACKED {
        return Err(broken("the package is longer than 16 MiB packed"));
    }
    let mut archive = ZipArchive::new(Cursor::new(bytes))
        .map_err(|error| broken(format!("the package is not a zip file: {error}")))?;
    if archive.has_duplicate_names() {
        return Err(broken("the zip file has two entries of the same name"));
    }
    if archive.len() > MAX_FILES {
        return Err(broken("the package has more than 2000 files"));
    }
    // Entries that share bytes unpack to far more than they weigh.
    if archive.has_overlapping_files().unwrap_or(true) {
        return Err(broken("the zip file has overlapping entries"));
    }
    let mut collector = Collector::new(MAX_UNPACKED);
    for at in 0..archive.len() {
        let entry = match archive.by_index(at) {
            Ok(entry) => entry,
            Err(error) => {
                collector.problem("", format!("entry {at} of the zip file is broken: {error}"));
                continue;
            }
        };
        let Ok(name) = std::str::from_utf8(entry.name_raw()) else {
            collector.problem("", format!("the name of entry {at} is not UTF-8"));
            continue;
        };
        let name = name.to_owned();
        if entry.is_symlink() || entry.encrypted() {
            collector.problem(&name, "is a link or encrypted");
        } else if let Some(folder) = name.strip_suffix('/') {
            // Folders need no entry of their own; an odd name is still a sign of an attack.
            if unsafe_path(&format!("{folder}/x.json")).is_some() {
                collector.problem(&name, "is not a safe relative path");
            }
        } else {
            collector.add(&name, entry);
        }
    }
    collector.finish()
}

/// Checks the hash list: every file but itself, each once, each right. A `stored` package has no longer the files that its
/// index does not name.
pub(super) fn verify_hashes(files: &Files, stored: bool, problems: &mut Vec<Problem>) {
    let mut problem = |file: &str, message: String| {
        problems.push(Problem::new(file, "", message));
    };
    let Some(list) = files.get(HASH) else {
        return problem(HASH, "is missing".to_owned());
    };
    let Ok(list) = std::str::from_utf8(list) else {
        return problem(HASH, "is not UTF-8".to_owned());
    };
    let mut listed = BTreeSet::new();
    for (at, line) in list.lines().enumerate() {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let number = at + 1;
        let parsed = line.split_once("  ").filter(|(digest, _)| {
            digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit())
        });
        let Some((digest, path)) = parsed else {
            problem(
                HASH,
                format!("line {number} is not a SHA-256 digest, two spaces and a path"),
            );
            continue;
        };
        if !listed.insert(path) {
            problem(HASH, format!("line {number} lists {path} a second time"));
        }
        match files.get(path).filter(|_| path != HASH) {
            None if stored && path != HASH => {}
            None => problem(
                HASH,
                format!("line {number} lists {path}, which is not there"),
            ),
            Some(content) if !digest.eq_ignore_ascii_case(&sha256(content)) => {
                problem(
                    path,
                    "does not match its SHA-256 digest in the hash list".to_owned(),
                );
            }
            Some(_) => {}
        }
    }
    for path in files.keys().filter(|path| *path != HASH) {
        if !listed.contains(path.as_str()) {
            problem(path, "is not in the hash list".to_owned());
        }
    }
}

/// The parsed files, and how many values they may still have.
struct Parsed {
    documents: BTreeMap<String, Value>,
    left: usize,
}

impl Parsed {
    fn add(&mut self, path: &str, content: &[u8]) -> Result<(), String> {
        // A parser makes much of a few bytes.
        let nodes = scan_json(content).nodes;
        if nodes > MAX_NODES {
            return Err(format!("has more than {MAX_NODES} values"));
        }
        let Some(left) = self.left.checked_sub(nodes) else {
            return Err(format!(
                "is one file too many: the package has more than {MAX_VALUES} values"
            ));
        };
        self.left = left;
        let document =
            strict::from_json(content).map_err(|error| format!("is not JSON: {error}"))?;
        self.documents.insert(path.to_owned(), document);
        Ok(())
    }
}

/// Parses the index and every JSON file that it names, and forgets all others: what is not used costs nothing.
pub(super) fn parse(files: &mut Files, problems: &mut Vec<Problem>) -> BTreeMap<String, Value> {
    let mut parsed = Parsed {
        documents: BTreeMap::new(),
        left: MAX_VALUES,
    };
    let mut add = |parsed: &mut Parsed, path: &str, content: &[u8]| {
        if let Err(problem) = parsed.add(path, content) {
            problems.push(Problem::new(path, "", problem));
        }
    };
    if let Some(content) = files.get(INDEX) {
        add(&mut parsed, INDEX, content);
    }
    let named = parsed
        .documents
        .get(INDEX)
        .map(index::named)
        .unwrap_or_default();
    files.retain(|path, _| [INDEX, HASH].contains(&path.as_str()) || named.contains(path));
    for (path, content) in files.iter().filter(|(path, _)| named.contains(*path)) {
        add(&mut parsed, path, content);
    }
    parsed.documents
}

/// The files as texts. Their JSON and the hash list were read, so they are UTF-8 already.
pub(super) fn texts(files: Files) -> Result<BTreeMap<String, String>, InvalidPackage> {
    let text = |(path, content): (String, Vec<u8>)| match String::from_utf8(content) {
        Ok(text) => Ok((path, text)),
        Err(_) => Err(InvalidPackage(vec![Problem::new(
            &path,
            "",
            "is not UTF-8",
        )])),
    };
    files.into_iter().map(text).collect()
}

/// One digest for the whole package, independent of how it was packed. The hash list only repeats
/// what the files say and does not count.
pub(super) fn digest(files: &Files) -> String {
    let mut hash = Sha256::new();
    for (path, content) in files.iter().filter(|(path, _)| *path != HASH) {
        hash.update(format!("{}  {path}\n", sha256(content)));
    }
    hex::encode(hash.finalize())
}

fn sha256(content: &[u8]) -> String {
    hex::encode(Sha256::digest(content))
}
