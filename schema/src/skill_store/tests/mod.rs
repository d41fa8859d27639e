mod downloads;
mod front_matter;
mod garbage;
mod hostile;
mod imports;
mod listing;
mod memory;
mod races;
mod raw_zip;
mod real_zips;
mod trees;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use raw_zip::{Raw, zip};

/// A data directory with its store.
struct Yard {
    data: TempDir,
    store: SkillStore,
}

impl Yard {
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let store = SkillStore::open(data.path()).unwrap();
        Self { data, store }
    }

    fn skills(&self) -> PathBuf {
        self.data.path().join("skills")
    }

    fn import(&self, bytes: &[u8]) -> Result<Imported, ImportError> {
        self.store.import_zip(file_of(bytes), Some(&name("skill")))
    }

    fn tree(&self, imported: &Imported) -> BTreeMap<String, (u32, Vec<u8>)> {
        let dir = self.skills().join(imported.name.as_str());
        files_of(&dir.join(imported.digest.as_str()))
    }

    fn import_files(&self, files: &[(&str, &[u8])]) -> Imported {
        let files: Vec<Raw> = files
            .iter()
            .map(|(path, content)| Raw::file(*path, *content))
            .collect();
        self.import(&zip(&files)).unwrap()
    }

    /// What is below the root of the store, names and digests included.
    fn left(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut todo = vec![self.skills()];
        while let Some(dir) = todo.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    todo.push(entry.path());
                }
                found.push(entry.path());
            }
        }
        found
    }
}

fn name(text: &str) -> SkillName {
    text.parse().unwrap()
}

fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn open(dir: &Path) -> OwnedFd {
    OwnedFd::from(File::open(dir).unwrap())
}

/// Every file below a directory with its mode and content; nothing else may be there.
fn files_of(top: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut todo = vec![top.to_owned()];
    while let Some(dir) = todo.pop() {
        assert_eq!(
            fs::metadata(&dir).unwrap().permissions().mode() & 0o7777,
            0o755
        );
        let mut empty = true;
        for entry in fs::read_dir(&dir).unwrap() {
            empty = false;
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                todo.push(entry.path());
                continue;
            }
            assert!(kind.is_file(), "{entry:?}");
            let mode = entry.metadata().unwrap().permissions().mode() & 0o7777;
            let path = entry.path().strip_prefix(top).unwrap().to_owned();
            found.insert(
                path.into_os_string().into_string().unwrap(),
                (mode, fs::read(entry.path()).unwrap()),
            );
        }
        assert!(!empty, "{dir:?} is empty");
    }
    found
}

/// Which rule it was.
fn rule(error: &ImportError) -> String {
    match error {
        ImportError::Refused(refusal) => {
            let shown = format!("{refusal:?}");
            shown.split([' ', '(', '{']).next().unwrap().to_owned()
        }
        ImportError::Store(error) => format!("{error:?}"),
    }
}
