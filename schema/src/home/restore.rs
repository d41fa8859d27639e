//! Copying the workspace of an archive into the workspace of a user.
//!
//! The copy is made in `users/.restoring/<uid>`, where no agent can reach it, and gets its name in the workspace complete.
//! One restore works at a time, in all processes: it holds the lock of that directory, so what it finds there was left by
//! one that was killed, and is removed.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode};
use rustix::io::Errno;

use super::archive::{ArchiveBatch, Shelf, Skipped};
use super::ensure::type_of;
use super::error::HomeError;
use super::marker::Marker;
use super::removal::{Archive, split};
use super::remove::remove_tree;
use super::rename::rename_to_free;
use super::restore_copy::{Copied, Unlocked, copy_for};
use super::skills::made_dir;
use super::user_home::UserHome;
use super::{AGENT_DIR, Homes, Owner, WORKSPACE_DIR, beneath, walk};
use crate::fault;
use crate::ids::{Uid, UserName};

/// Where workspaces are copied to first, beside users' directories: no user has such a name.
const RESTORING: &str = ".restoring";
/// Beginning of the names of what is restored.
pub(super) const RESTORED: &str = "restored-";
/// So many names are tried. A user who has taken them all is to remove some.
const MOST_NAMES: u32 = 1000;

/// What a restore has put into a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Its name in the workspace.
    pub directory: String,
    /// How many regular files there are, one with several names once.
    pub files: u64,
    /// What is in them.
    pub bytes: u64,
    /// Fifos, sockets and devices, which were left out.
    pub skipped: Skipped,
    /// Conversations, or the agent's history of them, were left out: they belong to another account.
    pub conversations_left_out: bool,
}

/// The user who gets a workspace.
pub(super) struct Recipient<'a> {
    pub uid: &'a Uid,
    /// Owner of the copy.
    pub owner: Owner,
    /// The archive is of the same user.
    pub is_same_user: bool,
}

/// Why nothing was restored. The workspace is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The archive is gone, or it is being removed.
    #[error("the archive is being removed, or was removed")]
    ArchiveGone,
    /// The user of the archive had no workspace.
    #[error("there is no workspace in the archive")]
    NoWorkspace,
    /// The user has no directory.
    #[error("the user has no directory")]
    NoHome,
    /// Another restore is under way.
    #[error("another restore is in progress")]
    Busy,
    /// All names are taken.
    #[error("{0} and all names like it are taken in the workspace")]
    NamesTaken(String),
    /// A directory cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
}

impl Homes {
    /// Copies the workspace of `archive` to `restored-<time of the archive>` in the workspace of this user, or to
    /// `restored-<time>-2` and so on: never over anything. All of it belongs to whom the workspace belongs to. The archive
    /// stays as it is. Conversations and the agent's history of its sessions are copied for the same user only: the same account, or
    /// after a mode switch the account of the same name.
    ///
    /// Interrupted at any step, nothing is in the workspace, or everything; called again, it makes another copy.
    ///
    /// # Errors
    /// See [`RestoreError`].
    pub fn restore(
        &self,
        archive: &Archive,
        name: &UserName,
        uid: &Uid,
    ) -> Result<Restored, RestoreError> {
        let source = self.open_archived(archive)?;
        let home = self.open_existing(name, uid)?.ok_or(RestoreError::NoHome)?;
        let restoring = self.restoring()?;
        let owner = home.workspace_owner()?;
        let has_switched = archive.mode_switch().is_some() && archive.user == *name;
        let recipient = Recipient {
            uid,
            owner,
            is_same_user: source.uid == *uid || has_switched,
        };
        let outcome = self.copy_and_place(archive, &source, &home, &restoring, &recipient);
        if outcome.is_err() {
            // What cannot be removed now is removed by the next one.
            let _ = self.sweep(&restoring);
        }
        outcome.map_err(|error| match self.is_archived(archive) {
            Ok(false) => RestoreError::ArchiveGone,
            _ => error,
        })
    }

    /// Returns true if the workspace of this user has what a restore of `archive` would put there first.
    ///
    /// # Errors
    /// [`HomeError`] when the workspace cannot be read.
    pub fn is_restored(
        &self,
        archive: &Archive,
        name: &UserName,
        uid: &Uid,
    ) -> Result<bool, HomeError> {
        let Some(home) = self.open_existing(name, uid)? else {
            return Ok(false);
        };
        let Some(workspace) = home.own_dir(WORKSPACE_DIR)? else {
            return Ok(false);
        };
        let found = type_of(&workspace, &first_name(archive));
        let failed = HomeError::io("inspecting", home.path().join(WORKSPACE_DIR));
        Ok(found.map_err(failed)?.is_some())
    }

    pub(super) fn copy_and_place(
        &self,
        archive: &Archive,
        source: &ArchivedWorkspace,
        home: &UserHome,
        restoring: &OwnedFd,
        recipient: &Recipient<'_>,
    ) -> Result<Restored, RestoreError> {
        let uid = recipient.uid;
        let failed = |action| HomeError::io(action, self.users.path.join(RESTORING));
        let made = rustix::fs::mkdirat(restoring, uid.as_str(), Mode::RWXU)
            .and_then(|()| beneath::open_dir(restoring, Path::new(uid.as_str())))
            .map_err(failed("working in"))?;
        fault::point("home.restore.begun");
        let again = |dir: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(dir, 0);
        let [from, to] = [again(source.dir()), again(&made)];
        let (from, to) = (
            from.map_err(failed("copying to"))?,
            to.map_err(failed("copying to"))?,
        );
        let copied = copy_for(from, to, recipient, &source.path)?;
        rustix::fs::syncfs(&made).map_err(failed("saving"))?;
        fault::point("home.restore.copied");
        // A removal begins with the marker: while that is there, nothing was missing.
        if !self.is_archived(archive)? {
            return Err(RestoreError::ArchiveGone);
        }
        let Copied {
            files,
            bytes,
            skipped,
            conversations_left_out,
        } = copied;
        let directory = place(archive, home, restoring, uid)?;
        fault::point("home.restore.placed");
        Ok(Restored {
            directory,
            files,
            bytes,
            skipped,
            conversations_left_out,
        })
    }

    /// The directory that copies are made in, empty and locked for as long as it is open.
    pub(super) fn restoring(&self) -> Result<OwnedFd, RestoreError> {
        let failed = |errno| HomeError::io("opening", self.users.path.join(RESTORING))(errno);
        let restoring = made_dir(&self.users.fd, RESTORING).map_err(failed)?;
        match rustix::fs::flock(&restoring, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(RestoreError::Busy),
            Err(errno) => return Err(failed(errno).into()),
        }
        self.sweep(&restoring)?;
        Ok(restoring)
    }

    fn sweep(&self, restoring: &OwnedFd) -> Result<(), HomeError> {
        let path = self.users.path.join(RESTORING);
        let left = walk::entries(restoring).map_err(HomeError::io("listing", &path))?;
        for (name, _) in left {
            remove_tree(restoring, &name, &path)?;
        }
        Ok(())
    }

    /// Where an archive is, its name there, and its marker; `None` when it is not there, or its removal was begun.
    fn find_archived<'a>(
        &self,
        archive: &'a Archive,
    ) -> Result<Option<(Shelf<'_>, &'a str, Marker)>, HomeError> {
        let (batch, name) = split(&archive.directory);
        let shelf = match batch.map(ArchiveBatch::read) {
            None => Some(Shelf::Main(&self.archive)),
            Some(Some(batch)) => self.present_shelf(&batch)?,
            Some(None) => None,
        };
        let Some(shelf) = shelf else {
            return Ok(None);
        };
        let marker = shelf.archive_marker(name)?;
        Ok(marker.map(|marker| (shelf, name, marker)))
    }

    pub(super) fn is_archived(&self, archive: &Archive) -> Result<bool, HomeError> {
        Ok(self.find_archived(archive)?.is_some())
    }

    /// The workspace of an archive.
    pub(super) fn open_archived(
        &self,
        archive: &Archive,
    ) -> Result<ArchivedWorkspace, RestoreError> {
        let (shelf, name, marker) = match self.find_archived(archive)? {
            Some(found) if !archive.removing => found,
            _ => return Err(RestoreError::ArchiveGone),
        };
        let path = shelf.archive_path(name);
        let open = |parent: &OwnedFd, name: &str| match Unlocked::open(parent, Path::new(name)) {
            Ok(dir) => Ok(Some(dir)),
            // The agent may have put anything there.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(HomeError::io("opening", path.join(name))(errno)),
        };
        let home = open(&shelf.fd, name)?.ok_or(RestoreError::ArchiveGone)?;
        let agent = open(&home.dir, AGENT_DIR)?.ok_or(RestoreError::NoWorkspace)?;
        let below = WORKSPACE_DIR.rsplit('/').next().unwrap_or_default();
        let workspace = open(&agent.dir, below)?.ok_or(RestoreError::NoWorkspace)?;
        Ok(ArchivedWorkspace {
            workspace,
            _above: [agent, home],
            uid: marker.uid,
            path: path.join(WORKSPACE_DIR),
        })
    }
}

/// The workspace of an archive, open for reading. What was changed for that is changed back, from the inside out.
pub(super) struct ArchivedWorkspace {
    workspace: Unlocked,
    _above: [Unlocked; 2],
    /// Account of the user whose it was.
    uid: Uid,
    /// For messages.
    pub path: PathBuf,
}

impl ArchivedWorkspace {
    pub(super) fn dir(&self) -> &OwnedFd {
        &self.workspace.dir
    }
}

fn first_name(archive: &Archive) -> String {
    format!("{RESTORED}{}", archive.archived_at.to_basic())
}

/// Gives the copy the first name that is free in the workspace.
fn place(
    archive: &Archive,
    home: &UserHome,
    restoring: &OwnedFd,
    uid: &Uid,
) -> Result<String, RestoreError> {
    let workspace = home.own_dir(WORKSPACE_DIR)?.ok_or(RestoreError::NoHome)?;
    let failed = |errno| HomeError::io("restoring to", home.path().join(WORKSPACE_DIR))(errno);
    let first = first_name(archive);
    for number in 1..=MOST_NAMES {
        let directory = match number {
            1 => first.clone(),
            number => format!("{first}-{number}"),
        };
        match rename_to_free(restoring, uid.as_str(), &workspace, &directory) {
            Ok(()) => {
                rustix::fs::fsync(workspace.as_fd()).map_err(failed)?;
                return Ok(directory);
            }
            Err(Errno::EXIST | Errno::NOTEMPTY) => {}
            Err(errno) => return Err(failed(errno).into()),
        }
    }
    Err(RestoreError::NamesTaken(first))
}
