//! The manifest: a small head (`manifest.json`, written last) and a line for each entry (`manifest.jsonl`).
//!
//! The lines are in post-order: a directory follows what is in it, so that one pass restores owners, modes and times. The lines
//! of a section (a home, an archive, a root) lie together, and the head says where. `manifest.mac` authenticates both.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use percent_encoding::{
    AsciiSet, CONTROLS, percent_decode_str, percent_encode, utf8_percent_encode,
};
use rustix::fs::{Timespec, Timestamps};
use serde::{Deserialize, Serialize};

use super::BackupError;
use crate::ids::Timestamp;

/// The format that this release writes, and the newest that it reads.
///
/// Since 2 settings files of agents are sealed, and the manifest has a MAC.
pub const FORMAT: u32 = 2;
/// Name of the head.
pub const HEAD: &str = "manifest.json";
/// Name of the file with the lines.
pub const LINES: &str = "manifest.jsonl";
/// Name of the file with the MAC of head and lines.
pub const MAC: &str = "manifest.mac";
/// Longest head that is read.
const LONGEST_HEAD: u64 = 64 << 20;
/// Longest line that is read: two escaped paths and what is said of them.
pub(super) const LONGEST_LINE: u64 = 64 << 10;
/// Longest text of the head, but the path of the key.
const LONGEST_TEXT: usize = 200;
/// Longest path of the key in the head.
const LONGEST_KEY_PATH: usize = 4096;
/// Longest description of a fault, in characters: it may quote what strangers wrote.
const LONGEST_DETAIL: usize = 300;
/// So many entries that were left out are named.
const MOST_NAMED: usize = 100;
/// Most characters of such a name.
const LONGEST_NAMED: usize = 500;

/// Bytes that are escaped in paths: bytes that would break a line or a terminal, and the sign of escapes.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

/// The head of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Version of the format.
    pub format: u32,
    /// Release of Agentyard that made the backup.
    pub agentyard: String,
    /// Identity of the installation.
    pub instance: String,
    /// The database.
    pub database: DatabaseHead,
    /// The master key, which is not in the backup.
    pub key: KeyHead,
    /// User and group that the service runs as.
    pub service_user: (u32, u32),
    /// When it was begun. The database is as of this time, files are as of a later one.
    pub started_at: Timestamp,
    /// When it was complete.
    pub finished_at: Timestamp,
    /// Number of lines.
    pub entries: u64,
    /// Bytes in files, each name counted once.
    pub bytes: u64,
    /// Files that are shared with the backup before.
    pub shared: u64,
    /// Entries that are not in the backup.
    pub left_out: LeftOut,
    /// Digest of the lines.
    pub lines_sha256: String,
    /// Where the lines of each section begin.
    pub sections: Vec<Section>,
}

/// Facts of the database in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseHead {
    /// `sqlite` or `postgresql`.
    pub kind: String,
    /// Newest migration.
    pub schema: i64,
    /// Name of the copy, or the dump, in the backup.
    pub file: String,
}

/// Facts of the master key in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyHead {
    /// Its public name.
    pub fingerprint: String,
    /// Where it was when the backup was made.
    pub file: String,
}

/// Lines that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Path of the directory, escaped as in lines.
    pub path: String,
    /// Byte at which its lines begin.
    pub offset: u64,
    /// Number of its lines.
    pub lines: u64,
}

/// Reason of an entry that cannot be read.
pub(super) const NOT_READABLE: &str = "not readable";
/// Reason of a file of which the end cannot be read.
pub(super) const NOT_READ_TO_ITS_END: &str = "not readable to its end";
/// Reason of a directory of which the end cannot be read.
pub(super) const NOT_LISTED_TO_ITS_END: &str = "not listed to its end";
/// Reason of a settings file that is too long to be sealed. It is no reason to keep earlier backups: an agent could make such a file for
/// ever.
pub(super) const TOO_LARGE_TO_SEAL: &str = "larger than a settings file may be";
/// Reasons for which an earlier backup may have more.
const UNREAD: [&str; 3] = [NOT_READABLE, NOT_READ_TO_ITS_END, NOT_LISTED_TO_ITS_END];

/// Entries that are not in a backup, counted by reason; some are named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Number for each reason.
    pub counts: BTreeMap<String, u64>,
    /// The first hundred, with their reasons.
    pub names: Vec<String>,
}

impl LeftOut {
    /// Counts an entry.
    pub fn push(&mut self, reason: &str, path: &Path) {
        *self.counts.entry(reason.to_owned()).or_default() += 1;
        if self.names.len() < MOST_NAMED {
            let name: String = escape(path).chars().take(LONGEST_NAMED).collect();
            self.names.push(format!("{name}: {reason}"));
        }
    }

    /// Number of entries that could not be read, as on a failing disk: a backup that was made before may have them.
    pub fn unread(&self) -> u64 {
        let counts = UNREAD.iter().filter_map(|reason| self.counts.get(*reason));
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Number of entries that were left out.
    pub fn total(&self) -> u64 {
        let counts = self.counts.values();
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link; it is in the manifest only.
    Link,
}

/// An entry of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Path in the data directory, escaped.
    pub path: String,
    /// Its kind.
    pub kind: EntryKind,
    /// Permission bits, octal.
    pub mode: String,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Last modification: seconds and nanoseconds.
    pub mtime: (i64, i64),
    /// Bytes of a file.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub size: u64,
    /// Digest of a file's content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The digest covers the length, and each block of 64 KiB that is not all zeros after its offset.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sparse: bool,
    /// A settings file of an agent, sealed under the master key for its path. Size and digest are those of what lies in the backup.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sealed: bool,
    /// Another name of the same file, listed before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
    /// Target of a link, escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Identity of the original: inode, size and times. A file with the same one is shared by the next backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(size: &u64) -> bool {
    *size == 0
}

impl Line {
    /// The path.
    pub fn to_path(&self) -> PathBuf {
        unescape(&self.path)
    }

    /// The permission bits.
    pub fn mode_bits(&self) -> u32 {
        u32::from_str_radix(&self.mode, 8).unwrap_or(0o600) & 0o7777
    }

    /// Its times, which a file system takes.
    pub(super) fn times(&self) -> Timestamps {
        let at = Timespec {
            tv_sec: self.mtime.0,
            tv_nsec: self.mtime.1.clamp(0, 999_999_999),
        };
        Timestamps {
            last_access: at,
            last_modification: at,
        }
    }
}

/// Writes a path as text that names exactly these bytes.
pub fn escape(path: &Path) -> String {
    match path.to_str() {
        // Control characters beyond ASCII, too.
        Some(text) if !text.chars().any(|c| c.is_control() && !c.is_ascii()) => text
            .chars()
            .map(|c| match c.is_ascii() {
                true => utf8_percent_encode(c.encode_utf8(&mut [0; 4]), ESCAPED).to_string(),
                false => c.to_string(),
            })
            .collect(),
        _ => percent_encode(path.as_os_str().as_bytes(), ESCAPED).to_string(),
    }
}

/// Reads what [`escape`] has written.
pub fn unescape(text: &str) -> PathBuf {
    let bytes: Vec<u8> = percent_decode_str(text).collect();
    PathBuf::from(OsString::from_vec(bytes))
}

/// Reads the bytes of the head.
pub(super) fn read_head(file: File, place: &Path) -> Result<Vec<u8>, BackupError> {
    let mut text = Vec::new();
    let read = file.take(LONGEST_HEAD).read_to_end(&mut text);
    read.map_err(|error| damaged(place, format!("its {HEAD} cannot be read: {error}")))?;
    Ok(text)
}

pub(super) fn damaged(place: &Path, detail: String) -> BackupError {
    let plain = detail
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c });
    BackupError::NotABackup {
        path: place.to_owned(),
        detail: plain.take(LONGEST_DETAIL).collect(),
    }
}

/// Parses and checks the head.
pub(super) fn parse_head(text: &[u8], place: &Path) -> Result<Head, BackupError> {
    let not_understood = |detail: &dyn std::fmt::Display| {
        damaged(place, format!("its {HEAD} is not understood: {detail}"))
    };
    /// The version alone: the rest of a later format may be anything.
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let version: Version = serde_json::from_slice(text).map_err(|error| not_understood(&error))?;
    if version.format > FORMAT {
        return Err(damaged(
            place,
            format!(
                "its format {} is of a newer release; use that release",
                version.format
            ),
        ));
    }
    let head: Head = serde_json::from_slice(text).map_err(|error| not_understood(&error))?;
    match head.find_problem() {
        None => Ok(head),
        Some(problem) => Err(not_understood(&problem)),
    }
}

impl Head {
    /// Value that no release writes.
    fn find_problem(&self) -> Option<&'static str> {
        let is_plain =
            |text: &str, most: usize| text.len() <= most && !text.chars().any(char::is_control);
        let texts = [&self.agentyard, &self.instance, &self.key.fingerprint];
        let database = (&*self.database.kind, &*self.database.file);
        match () {
            () if !matches!(
                database,
                ("sqlite", "database.sqlite") | ("postgresql", "database.pgdump")
            ) =>
            {
                Some("its database is of an unknown kind or name")
            }
            () if !texts.into_iter().all(|text| is_plain(text, LONGEST_TEXT))
                || !is_plain(&self.key.file, LONGEST_KEY_PATH) =>
            {
                Some("a text is too long or has control characters")
            }
            () if self.service_user.0 == u32::MAX || self.service_user.1 == u32::MAX => {
                Some("its service_user is no user")
            }
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn every_name_survives_as_text() {
        for name in [
            &b"notes.txt"[..],
            b"100%",
            b"%41",
            b"line\nbreak\t\x1b[2J",
            "中文 и ё".as_bytes(),
            "next\u{85}line".as_bytes(),
            b"\xff\xfe\x80",
            b"mixed \xe4\xb8 %\n",
        ] {
            let path = Path::new(OsStr::from_bytes(name));
            let text = escape(path);
            assert_eq!(unescape(&text), path, "{text}");
            assert!(!text.chars().any(char::is_control), "{text}");
        }
        assert_eq!(escape(Path::new("中文/100%")), "中文/100%25");
    }

    #[test]
    fn left_out_entries_are_named_up_to_a_limit() {
        let mut left = LeftOut::default();
        for number in 0..250 {
            left.push("a socket", Path::new(&format!("s{number}")));
        }
        left.push("gone", Path::new(&"x".repeat(4000)));
        assert_eq!(left.total(), 251);
        assert_eq!(left.names.len(), MOST_NAMED);
        assert_eq!(left.counts["a socket"], 250);
    }
}
