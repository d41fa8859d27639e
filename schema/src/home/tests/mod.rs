mod archive;
mod ensure;
mod files;
mod large;
mod look;
mod measure;
mod reading;
mod removal;
mod rename;
mod restore;
mod root;
mod seed;
mod skills;
mod temporary;
mod user_home;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::root::Root;
use super::*;
use crate::ids::{Timestamp, Uid, UserName};

const INSTANCE: &str = "instance-1";

/// A data directory with its roots.
struct Yard {
    data: TempDir,
    homes: Homes,
}

impl Yard {
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let homes = Homes::open_with(data.path(), INSTANCE, None).unwrap();
        Self { data, homes }
    }

    fn users(&self, path: &str) -> PathBuf {
        self.data.path().join("users").join(path)
    }

    fn archive(&self, path: &str) -> PathBuf {
        self.data.path().join("archive").join(path)
    }
}

fn name(text: &str) -> UserName {
    text.parse().unwrap()
}

fn uid(digit: char) -> Uid {
    Uid::from(digit.to_string().repeat(32))
}

/// 2026-05-11T11:46:40Z
fn deleted_at() -> Timestamp {
    Timestamp::from_secs(1_778_500_000)
}

const STAMP: &str = "20260511T114640Z";

/// One entry of a tree: everything an archive must keep.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    mode: u32,
    owner: (u32, u32),
    modified: (i64, i64),
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Directory,
    File(Vec<u8>),
    Link(PathBuf),
    Other,
}

/// Every entry below and including `root`, links not followed.
fn snapshot(root: &Path) -> BTreeMap<PathBuf, Entry> {
    fn add(root: &Path, path: &Path, entries: &mut BTreeMap<PathBuf, Entry>) {
        let metadata = fs::symlink_metadata(path).unwrap();
        let kind = metadata.file_type();
        let content = if kind.is_dir() {
            Content::Directory
        } else if kind.is_symlink() {
            Content::Link(fs::read_link(path).unwrap())
        } else if kind.is_file() {
            Content::File(fs::read(path).unwrap())
        } else {
            Content::Other
        };
        let below = path.strip_prefix(root).unwrap().to_owned();
        entries.insert(
            below,
            Entry {
                mode: metadata.mode(),
                owner: (metadata.uid(), metadata.gid()),
                modified: (metadata.mtime(), metadata.mtime_nsec()),
                content,
            },
        );
        if kind.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                add(root, &entry.unwrap().path(), entries);
            }
        }
    }
    let mut entries = BTreeMap::new();
    add(root, root, &mut entries);
    entries
}

/// Fills a user's directory with what agents and people leave there.
fn fill(home: &Path, outside: &Path) {
    let workspace = home.join(WORKSPACE_DIR);
    fs::write(home.join(".agent/config.json"), b"{}\n").unwrap();
    fs::create_dir_all(workspace.join("a/b/c")).unwrap();
    fs::write(workspace.join("a/b/c/notes.txt"), b"remember").unwrap();
    fs::write(workspace.join("empty"), b"").unwrap();
    fs::write(workspace.join("big"), vec![7_u8; 200_000]).unwrap();
    let script = workspace.join("run.sh");
    fs::write(&script, b"#!/bin/sh\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o4755)).unwrap();
    fs::set_permissions(workspace.join("a/b"), fs::Permissions::from_mode(0o555)).unwrap();
    symlink("big", workspace.join("relative-link")).unwrap();
    symlink(outside, workspace.join("outside-link")).unwrap();
    symlink(
        outside.parent().unwrap(),
        workspace.join("outside-dir-link"),
    )
    .unwrap();
    symlink("nowhere", workspace.join("dangling")).unwrap();
    let old = fs::File::options()
        .write(true)
        .open(workspace.join("empty"))
        .unwrap();
    old.set_modified(std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000, 123_000_000))
        .unwrap();
}
