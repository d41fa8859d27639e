//! Bringing a file or folder of a backup back into a user's home.
//!
//! As with archives, the copy is made in `users/.restoring/<uid>`, where no agent can reach it, and gets its name in the home
//! complete.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::error::HomeError;
use super::remove::remove_tree;
use super::rename::rename_beside_agent;
use super::restore::RestoreError;
use super::user_home::{UserHome, unsafe_path};
use super::{Homes, beneath};
use crate::backup::{
    Backup, BackupError, EntryKind, Owners, Placed, SealedFiles, Selection, Watch,
};
use crate::ids::{Timestamp, Uid, UserName};

/// So many names are tried beside one that is taken.
const MOST_NAMES: u32 = 1000;
/// Longest name of a file.
const LONGEST_NAME: usize = 255;

/// Result of a restore of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BroughtBack {
    /// Its path in the home.
    pub path: PathBuf,
    /// Counts of the copy.
    pub placed: Placed,
}

/// Reason for which nothing was brought back. The home is as it was, but for empty directories.
#[derive(Debug, thiserror::Error)]
pub enum BringBackError {
    /// The user has no home, or another restore is under way.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The backup cannot be read, or has no such entry.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The file is damaged in the backup.
    #[error("it is damaged in this backup: {0}; use an older one")]
    Damaged(String),
    /// The file is sealed under a master key that is not this installation's.
    #[error(
        "it is sealed in the backup under another master key; restore it with `agentyard restore BACKUP --to DIR --key-file FILE`"
    )]
    Sealed,
}

impl From<HomeError> for BringBackError {
    fn from(error: HomeError) -> Self {
        Self::Restore(error.into())
    }
}

impl Homes {
    /// Copies `users/<name>/<relative>` of a backup to `relative` in the home of this user. All of it belongs to whom the home
    /// belongs to. What has that name stays, and the copy gets the name `<name>.restored-<time of the backup>`; with `replace`, a
    /// file takes the place of a file. Sealed files are opened with `sealed`.
    ///
    /// # Errors
    /// See [`BringBackError`].
    pub fn bring_back(
        &self,
        backup: &Backup,
        (name, uid): (&UserName, &Uid),
        relative: &Path,
        replace: bool,
        sealed: SealedFiles<'_>,
        watch: Watch<'_>,
    ) -> Result<BroughtBack, BringBackError> {
        if !beneath::is_plain(relative) {
            return Err(unsafe_path(relative).into());
        }
        let home = self.open_existing(name, uid)?.ok_or(RestoreError::NoHome)?;
        let restoring = self.restoring()?;
        let failed = |action| HomeError::io(action, home.path().join(relative));
        let made = rustix::fs::mkdirat(&restoring, uid.as_str(), Mode::RWXU)
            .and_then(|()| beneath::open_dir(&restoring, Path::new(uid.as_str())))
            .map_err(failed("restoring"))?;
        let outcome = (|| {
            let stat = rustix::fs::fstat(home.dir()).map_err(failed("inspecting"))?;
            let selection = Selection {
                under: Path::new("users").join(name.as_str()).join(relative),
                to: PathBuf::from("entry"),
            };
            let owners = Owners::One(stat.st_uid, stat.st_gid);
            let placed = backup.place(&selection, &made, owners, sealed, watch)?;
            if placed.kind == Some(EntryKind::File) && placed.damaged > 0 {
                return Err(BringBackError::Damaged(placed.damaged_names.join(", ")));
            }
            if placed.kind == Some(EntryKind::File) && placed.sealed > 0 {
                return Err(BringBackError::Sealed);
            }
            rustix::fs::syncfs(&made).map_err(failed("saving"))?;
            let parent = parent_dir(&home, relative)?;
            let own = relative.file_name().unwrap_or_default();
            let given = give_name(&made, &parent, own, replace, backup.head.started_at);
            let given = given.map_err(failed("restoring"))?;
            rustix::fs::fsync(&parent).map_err(failed("saving"))?;
            let path = relative.with_file_name(given);
            Ok(BroughtBack { path, placed })
        })();
        // The next restore removes anything left here.
        let _ = remove_tree(&restoring, Path::new(uid.as_str()), &self.users.path);
        outcome
    }
}

/// Opens the directory of an entry of a home; what is missing of it is made, for whom the home belongs to.
fn parent_dir(home: &UserHome, relative: &Path) -> Result<OwnedFd, HomeError> {
    let refused = |errno| home.refused("opening the directory of", relative, errno);
    let mut dir = rustix::io::fcntl_dupfd_cloexec(home.dir(), 0).map_err(refused)?;
    for name in relative.parent().unwrap_or(Path::new("")).components() {
        let name = Path::new(name.as_os_str());
        let next = match beneath::open_dir(&dir, name) {
            Err(Errno::NOENT) => {
                let made = rustix::fs::mkdirat(&dir, name, Mode::RWXU)
                    .and_then(|()| beneath::open_dir(&dir, name));
                made.and_then(|made| home.give_to_owner(&made).map(|()| made))
            }
            opened => opened,
        };
        dir = next.map_err(refused)?;
    }
    Ok(dir)
}

/// Gives the copy its name, or one beside it.
fn give_name(
    made: &OwnedFd,
    parent: &OwnedFd,
    own: &OsStr,
    replace: bool,
    at: Timestamp,
) -> rustix::io::Result<OsString> {
    let entry = Path::new("entry");
    let is_file = |dir: &OwnedFd, name: &Path| {
        let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
    };
    if replace && is_file(made, entry) && is_file(parent, Path::new(own)) {
        rustix::fs::renameat(made, entry, parent, own)?;
        return Ok(own.to_owned());
    }
    let suffix = |number: u32| match number {
        1 => String::new(),
        2 => format!(".restored-{}", at.to_basic()),
        number => format!(".restored-{}-{}", at.to_basic(), number - 1),
    };
    for number in 1..=MOST_NAMES {
        let suffix = suffix(number);
        let name = beside(own, &suffix);
        match rename_beside_agent(made, entry, parent, Path::new(&name)) {
            Ok(()) => return Ok(name),
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::ISDIR | Errno::NOTDIR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::EXIST)
}

/// A name with a suffix, cut so that it stays a name.
fn beside(own: &OsStr, suffix: &str) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let most = LONGEST_NAME - suffix.len();
    let mut name: Vec<u8> = own.as_bytes().iter().copied().take(most).collect();
    // Not in the middle of a character.
    if own.to_str().is_some() {
        while std::str::from_utf8(&name).is_err() {
            name.pop();
        }
    }
    name.extend_from_slice(suffix.as_bytes());
    OsString::from_vec(name)
}
