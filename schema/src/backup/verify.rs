//! Verifying a backup: it is restored to a scratch directory, and what is there then is compared with the manifest.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::checked::{NOT_OPENED, read_sealed};
use super::content;
use super::directory::Directory;
use super::keys::Keys;
use super::manifest::{EntryKind, Line, escape};
use super::place::{Owners, Placed, SealedFiles, Selection};
use super::read::Backup;
use super::{BackupError, Progress, Watch};
use crate::home::beneath;
use crate::ids::Timestamp;

/// Most differences that are told.
const MOST: usize = 20;

/// An entry that is not as the manifest says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its path, escaped.
    pub path: String,
    /// The difference, in words.
    pub detail: String,
}

impl Backup {
    /// Restores everything to a new directory in `scratch`, calls `check` with the copy of the database there, compares all
    /// entries with the manifest, and removes the directory. Tells the first differences. Sealed files stay sealed there; with `keys`
    /// they are opened in memory.
    ///
    /// # Errors
    /// When that cannot be done. A backup whose manifest is damaged is [`BackupError::NotABackup`].
    pub fn verify(
        &self,
        scratch: &Directory,
        now: Timestamp,
        keys: Option<&Keys>,
        check: impl FnOnce(&Path) -> Result<(), String>,
        watch: Watch<'_>,
    ) -> Result<(Placed, Vec<Difference>), BackupError> {
        let (top, name) = scratch.make_scratch(now)?;
        let place = scratch.path().join(&name);
        let verified = self.verify_in(&top, &place, keys, check, watch);
        let removed = scratch.remove_own(&name);
        let verified = verified?;
        removed?;
        Ok(verified)
    }

    fn verify_in(
        &self,
        top: &OwnedFd,
        place: &Path,
        keys: Option<&Keys>,
        check: impl FnOnce(&Path) -> Result<(), String>,
        watch: Watch<'_>,
    ) -> Result<(Placed, Vec<Difference>), BackupError> {
        let mut differences = Vec::new();
        let database = &self.head.database.file;
        let mut differs = |path: &str, detail: String| {
            if differences.len() < MOST {
                let path = path.to_owned();
                differences.push(Difference { path, detail });
            }
        };
        match self.place_database(top, Path::new(database)) {
            Ok(_) => {
                if let Err(why) = check(&place.join(database)) {
                    differs(database, why);
                }
            }
            Err(BackupError::NotABackup { detail, .. }) => differs(database, detail),
            Err(error) => return Err(error),
        }
        let placed = self.place(
            &Selection::all(),
            top,
            Owners::Caller,
            SealedFiles::Keep,
            watch,
        )?;
        for damaged in &placed.damaged_names {
            let (path, why) = damaged.rsplit_once(": ").unwrap_or((damaged, "damaged"));
            differs(path, why.to_owned());
        }
        let mut progress = Progress {
            section: "comparing".to_owned(),
            ..Progress::default()
        };
        for line in self.lines()? {
            let line = line?;
            progress.entries += 1;
            progress.bytes = progress.bytes.saturating_add(line.size);
            if !watch(&progress) {
                return Err(BackupError::Stopped);
            }
            let path = line.to_path();
            if let Some(detail) = difference(top, &path, &line, keys, line.path == *database) {
                // A damaged file is missing, which was told.
                if !is_told(&placed, &line.path) {
                    differs(&line.path, detail);
                }
            }
        }
        Ok((placed, differences))
    }
}

fn is_told(placed: &Placed, path: &str) -> bool {
    let names = placed.damaged_names.iter();
    let mut rests = names.filter_map(|name| name.strip_prefix(path));
    rests.any(|rest| rest.starts_with(": "))
}

/// Difference between an entry and its line.
fn difference(
    top: &OwnedFd,
    path: &Path,
    line: &Line,
    keys: Option<&Keys>,
    is_database: bool,
) -> Option<String> {
    let inspect = || -> io::Result<Option<String>> {
        let parent: PathBuf = path.parent().map(Path::to_owned).unwrap_or_default();
        let dir = match parent.as_os_str().is_empty() {
            true => rustix::io::fcntl_dupfd_cloexec(top, 0)?,
            false => beneath::open_dir(top, &parent)?,
        };
        let name = path.file_name().unwrap_or_default();
        let stat = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Some(EntryKind::File),
            FileType::Directory => Some(EntryKind::Dir),
            FileType::Symlink => Some(EntryKind::Link),
            _ => None,
        };
        if kind != Some(line.kind) {
            return Ok(Some("it is of another kind".to_owned()));
        }
        match line.kind {
            EntryKind::Link => {
                use std::os::unix::ffi::OsStrExt;
                let target = rustix::fs::readlinkat(&dir, name, Vec::new())?;
                let target = std::ffi::OsStr::from_bytes(target.to_bytes());
                let same = line.target.as_deref() == Some(&*escape(Path::new(target)));
                return Ok((!same).then(|| "its target differs".to_owned()));
            }
            EntryKind::Dir => {}
            EntryKind::File => {
                let flags = OFlags::RDONLY | OFlags::NONBLOCK;
                let file = File::from(beneath::open(&dir, Path::new(name), flags, Mode::empty())?);
                if line.sealed
                    && let Some(keys) = keys
                {
                    let opened = read_sealed(&file, line)?.map(|sealed| {
                        let opened = keys.open(&line.path, &sealed);
                        opened.err().map(|_| NOT_OPENED.to_owned())
                    });
                    if let Some(problem) = opened.unwrap_or_else(|why| Some(why.to_owned())) {
                        return Ok(Some(problem));
                    }
                }
                let size = content::size_of(&stat);
                let read = content::copy(&file, size, line.sparse, |_, _| Ok(()), &mut |_| true);
                let same = read.is_ok_and(|(size, digest)| {
                    size == line.size && line.sha256 == Some(hex::encode(digest))
                });
                if !same {
                    return Ok(Some("its content differs".to_owned()));
                }
            }
        }
        let same = is_database || (stat.st_mode ^ line.mode_bits()) & 0o777 == 0;
        Ok((!same).then(|| "its mode differs".to_owned()))
    };
    match inspect() {
        Ok(difference) => difference,
        Err(error) => Some(error.to_string()),
    }
}
