//! What a commit holds, as `git ls-tree -r -t -z -l --full-tree` lists it (git-ls-tree(1)). The limits hold while it is
//! read, so a tree that was made to have no end ends early.
//!
//! A path that the store of skills could not take is skipped and reported: people who only use a repository cannot rename what is
//! in it. A path that leads elsewhere, which no program of Git writes, refuses the whole.

use schema::skill_store::{SkipReason, Skipped, find_objection};

use super::{GitError, Limits};

/// Longest record: mode, type, object, size and path.
const RECORD: usize = 16 * 1024;
/// Most bytes of paths that are skipped.
const SKIPPED: usize = 16 * 1024 * 1024;

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blob {
    /// Its path: plain names only.
    pub(super) path: String,
    /// Its object.
    pub(super) id: String,
    /// Its bytes.
    pub(super) size: u64,
    /// Whether its mode is 0755 instead of 0644.
    pub(super) executable: bool,
}

/// What was read of a listing so far.
#[derive(Debug)]
pub(super) struct Listing {
    limits: Limits,
    record: Vec<u8>,
    entries: usize,
    pub(super) blobs: Vec<Blob>,
    pub(super) bytes: u64,
    pub(super) skipped: Vec<Skipped>,
    /// The length of their paths.
    skipped_bytes: usize,
}

impl Listing {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            record: Vec::new(),
            entries: 0,
            blobs: Vec::new(),
            bytes: 0,
            skipped: Vec::new(),
            skipped_bytes: 0,
        }
    }

    /// Takes the next bytes of the listing.
    pub(super) fn add(&mut self, mut bytes: &[u8]) -> Result<(), GitError> {
        while let Some(end) = bytes.iter().position(|byte| *byte == 0) {
            let (piece, rest) = bytes.split_at(end);
            self.record.extend_from_slice(piece);
            let record = std::mem::take(&mut self.record);
            self.entry(&record)?;
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.record.extend_from_slice(bytes);
        match self.record.len() > RECORD {
            true => Err(GitError::Hostile("a path without end".to_owned())),
            false => Ok(()),
        }
    }

    fn entry(&mut self, record: &[u8]) -> Result<(), GitError> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(GitError::TooMuch {
                most: u64::try_from(self.limits.entries).unwrap_or(u64::MAX),
                what: "files and directories",
            });
        }
        let path = record
            .split(|byte| *byte == b'\t')
            .next()
            .map(|head| record.get(head.len() + 1..));
        let path = path.flatten().unwrap_or_default();
        if let Some(why) = find_danger(path) {
            return Err(GitError::Hostile(format!("the path {} {why}", shown(path))));
        }
        let head = record.split(|byte| *byte == b'\t').next();
        let head = std::str::from_utf8(head.unwrap_or_default()).unwrap_or_default();
        let mut words = head.split_ascii_whitespace();
        let (mode, _, id, size) = (words.next(), words.next(), words.next(), words.next());
        match mode {
            Some("040000") => {}
            Some("120000") => self.skip(path, SkipReason::Link)?,
            Some("160000") => self.skip(path, SkipReason::Submodule)?,
            // Old programs wrote other modes of files than the two.
            Some(mode @ ("100600" | "100640" | "100644" | "100664" | "100755" | "100775")) => {
                if let Some(objection) = find_objection(path) {
                    return self.skip(path, SkipReason::Path(objection));
                }
                let size: Option<u64> = size.and_then(|size| size.parse().ok());
                let path = std::str::from_utf8(path).unwrap_or_default();
                let (Some(id), Some(size)) = (id, size) else {
                    return Err(GitError::Hostile(format!("{path} has no content")));
                };
                self.bytes = self.bytes.saturating_add(size);
                if self.bytes > self.limits.unpacked {
                    return Err(GitError::TooMuch {
                        most: self.limits.unpacked,
                        what: "bytes in its files",
                    });
                }
                self.blobs.push(Blob {
                    path: path.to_owned(),
                    id: id.to_owned(),
                    size,
                    executable: mode.starts_with("1007"),
                });
            }
            _ => {
                return Err(GitError::Hostile(format!(
                    "{} is neither file, directory, link nor submodule",
                    shown(path)
                )));
            }
        }
        Ok(())
    }

    fn skip(&mut self, path: &[u8], why: SkipReason) -> Result<(), GitError> {
        self.skipped_bytes += path.len();
        if self.skipped_bytes > SKIPPED {
            return Err(GitError::TooMuch {
                most: u64::try_from(SKIPPED).unwrap_or(u64::MAX),
                what: "bytes in the paths of links, submodules and files that cannot be stored",
            });
        }
        let path = path.into();
        self.skipped.push(Skipped { path, why });
        Ok(())
    }
}

/// Reason for refusing a path that was made to lead elsewhere.
fn find_danger(path: &[u8]) -> Option<&'static str> {
    path.split(|&byte| byte == b'/').find_map(|name| {
        // As other file systems read it, too.
        let end = name.iter().rposition(|byte| !matches!(byte, b'.' | b' '));
        let plain = name.get(..end.map_or(0, |end| end + 1)).unwrap_or_default();
        match name {
            b"" => Some("has an empty part"),
            b"." | b".." => Some("leads elsewhere"),
            _ if plain.eq_ignore_ascii_case(b".git") || plain.eq_ignore_ascii_case(b"git~1") => {
                Some("is one of git's own")
            }
            _ => None,
        }
    })
}

/// A path for people: whatever it has in it, and not all of it.
fn shown(path: &[u8]) -> String {
    let path = path.get(..100).unwrap_or(path);
    path.escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789012345678901234567890123456789";

    fn record(mode: &str, size: &str, path: &str) -> Vec<u8> {
        format!("{mode} blob {ID} {size:>7}\t{path}\0").into_bytes()
    }

    fn listing(limits: Limits, records: &[Vec<u8>]) -> Result<Listing, GitError> {
        let mut listing = Listing::new(limits);
        // In pieces as a pipe may give them.
        for piece in records.concat().chunks(7) {
            listing.add(piece)?;
        }
        Ok(listing)
    }

    #[test]
    fn files_are_listed_and_what_is_skipped_is_counted() {
        let seen = listing(
            Limits::default(),
            &[
                record("040000", "-", "a"),
                record("100644", "3", "a/b c"),
                record("100755", "4", "a/run\u{e4}"),
                record("120000", "9", "a/link"),
                record("160000", "-", "a/module"),
            ],
        )
        .unwrap();
        let files: Vec<_> = seen
            .blobs
            .iter()
            .map(|blob| (blob.path.as_str(), blob.size, blob.executable))
            .collect();
        assert_eq!(files, [("a/b c", 3, false), ("a/run\u{e4}", 4, true)]);
        assert!(seen.blobs.iter().all(|blob| blob.id == ID));
        assert_eq!(seen.bytes, 7);
        assert_eq!(
            seen.skipped,
            [
                skipped(b"a/link", SkipReason::Link),
                skipped(b"a/module", SkipReason::Submodule)
            ]
        );
    }

    #[test]
    fn l28_no_path_leads_out_or_into_git_itself() {
        for path in [
            "",
            "/a",
            "a/",
            "a//b",
            "..",
            "../a",
            "a/../../b",
            ".",
            "a/.",
            ".git",
            ".GIT/hooks/x",
            "a/.Git/x",
            ".git. /x",
            "git~1/x",
        ] {
            let seen = listing(Limits::default(), &[record("100644", "1", path)]);
            assert!(
                matches!(seen, Err(GitError::Hostile(_))),
                "{path:?}: {seen:?}"
            );
        }
        for path in [
            ".gitignore",
            ".github/x",
            "a..b",
            "...",
            "-rf",
            "con",
            "a b",
            &["d"; 32].join("/"),
        ] {
            assert!(
                listing(Limits::default(), &[record("100644", "1", path)]).is_ok(),
                "{path:?}"
            );
        }
        for mode in ["104755", "060000", "x"] {
            assert!(listing(Limits::default(), &[record(mode, "1", "a")]).is_err());
        }
        assert!(listing(Limits::default(), &[vec![b'x'; RECORD + 1]]).is_err());
        assert!(listing(Limits::default(), &[b"\0".to_vec()]).is_err());
    }

    fn skipped(path: &[u8], why: SkipReason) -> Skipped {
        let path = path.into();
        Skipped { path, why }
    }

    #[test]
    fn paths_that_cannot_be_stored_are_skipped_with_reason() {
        let (long, deep) = ("n".repeat(256), ["d"; 33].join("/"));
        for (path, reason) in [
            ("a\\b", "has a \\"),
            ("Icon\r", "has a control character"),
            ("a\u{7f}b", "has a control character"),
            ("C:/b", "has a drive letter"),
            (&long, "is too long"),
            (&"n/".repeat(600), "is too long"),
            (&deep, "is deeper than 32 levels"),
        ] {
            let path = path.trim_end_matches('/');
            let records = [record("100644", "1", path), record("100755", "2", "good")];
            let seen = listing(Limits::default(), &records).unwrap();
            let why = SkipReason::Path(reason);
            assert_eq!(seen.skipped, [skipped(path.as_bytes(), why)], "{path:?}");
            assert_eq!((seen.blobs.len(), seen.bytes), (1, 2));
        }
        let mut bytes = record("100644", "1", "a?b");
        let at = bytes.iter().position(|byte| *byte == b'?').unwrap();
        bytes[at] = 0xff;
        let seen = listing(Limits::default(), &[bytes]).unwrap();
        let why = SkipReason::Path("is not UTF-8");
        assert_eq!(seen.skipped, [skipped(b"a\xffb", why)]);
    }

    #[test]
    fn l27_the_limits_hold_while_it_is_read() {
        let limits = Limits {
            entries: 2,
            unpacked: 10,
            ..Limits::default()
        };
        let file = |size: &str, path: &str| record("100644", size, path);
        assert!(listing(limits, &[file("5", "a"), file("5", "b")]).is_ok());
        for records in [
            vec![file("1", "a"), file("1", "b"), file("1", "c")],
            vec![
                record("040000", "-", "a"),
                record("120000", "1", "b"),
                record("160000", "-", "c"),
            ],
            vec![file("6", "a"), file("5", "b")],
            vec![
                file("18446744073709551615", "a"),
                file("18446744073709551615", "b"),
            ],
        ] {
            let seen = listing(limits, &records);
            assert!(matches!(seen, Err(GitError::TooMuch { .. })), "{seen:?}");
        }
    }
}
