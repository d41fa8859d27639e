//! Making a user's directory, and observing whether it is made.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, Uid as UnixUid};
use rustix::io::Errno;

use super::error::HomeError;
use super::marker::{self, Marker};
use super::user_home::UserHome;
use super::{AGENT_DIR, Homes, Owner, WORKSPACE_DIR, beneath, root};
use crate::fault;
use crate::ids::{Uid, UserName};

/// What [`Homes::state`] observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HomeState {
    /// The directory, a part of it, or its ownership is missing: [`Homes::ensure`] makes it.
    Missing,
    /// Everything is as [`Homes::ensure`] leaves it.
    Ready,
    /// The directory cannot be used and will not be touched; the text says why.
    Conflict(String),
}

/// What lies at `users/<name>`.
pub(super) enum Found {
    Nothing,
    Directory(OwnedFd),
    /// A directory that we may not open as it is.
    Locked,
    Other,
}

impl Homes {
    /// Observes a user's directory without changing anything.
    ///
    /// # Errors
    /// [`HomeError::Io`] when it cannot be observed.
    pub fn state(
        &self,
        name: &UserName,
        uid: &Uid,
        owner: Option<Owner>,
    ) -> Result<HomeState, HomeError> {
        let home = match self.claimed(name, uid) {
            Ok(Some(Found::Directory(home))) => home,
            Ok(_) => return Ok(HomeState::Missing),
            Err(HomeError::Conflict(reason)) => return Ok(HomeState::Conflict(reason)),
            Err(error) => return Err(error),
        };
        let path = self.path_of(name);
        let mut ready = owned_by(&home, owner).map_err(HomeError::io("inspecting", &path))?;
        for part in [AGENT_DIR, WORKSPACE_DIR] {
            match beneath::open_dir(&home, Path::new(part)) {
                Ok(fd) => {
                    ready &= owned_by(&fd, owner)
                        .map_err(HomeError::io("inspecting", path.join(part)))?;
                }
                // Without permissions: `ensure` gives them back.
                Err(Errno::NOENT | Errno::ACCESS) => return Ok(HomeState::Missing),
                Err(Errno::LOOP | Errno::NOTDIR) => {
                    return Ok(HomeState::Conflict(not_a_directory(&path.join(part))));
                }
                Err(errno) => return Err(HomeError::io("opening", path.join(part))(errno)),
            }
        }
        Ok(if ready {
            HomeState::Ready
        } else {
            HomeState::Missing
        })
    }

    /// Makes a user's directory and the directories in it, all mode 0700, and opens it. What is
    /// there already stays as it is; when nothing is missing, nothing is written.
    ///
    /// `owner` is who the three directories are to belong to; `None` leaves that alone. Only a service
    /// that runs as root can give them to somebody else. Not to be called for an account that is
    /// being deleted: [`Homes::archive`] may just have cleared its place.
    ///
    /// # Errors
    /// [`HomeError::Conflict`] when the directory belongs to another account, is not empty and
    /// belongs to nobody, or is a link or a file; nothing was touched then. [`HomeError::Io`].
    pub fn ensure(
        &self,
        name: &UserName,
        uid: &Uid,
        owner: Option<Owner>,
    ) -> Result<UserHome, HomeError> {
        let path = self.path_of(name);
        let claimed = self.claimed(name, uid)?;
        if claimed.is_none() {
            // The marker comes first: a directory without one is never ours.
            marker::write(&self.users.owners, name.as_str(), &Marker::of(uid))
                .map_err(HomeError::io("marking", &path))?;
            fault::point("home.ensure.after_marker");
        }
        let home = ensure_part(&self.users.fd, Path::new(name.as_str()), owner, &path)?;
        fault::point("home.ensure.after_home");
        for part in [AGENT_DIR, WORKSPACE_DIR] {
            ensure_part(&home, Path::new(part), owner, &path.join(part))?;
            fault::point("home.ensure.after_part");
        }
        Ok(UserHome::new(home, path, self.notes_of(name, uid)))
    }

    /// Opens a user's directory when it is there; `None` when it is not.
    ///
    /// # Errors
    /// As [`Homes::ensure`].
    pub fn open_existing(&self, name: &UserName, uid: &Uid) -> Result<Option<UserHome>, HomeError> {
        if self.claimed(name, uid)?.is_none() {
            return Ok(None);
        }
        Ok(match self.found_unlocked(name)? {
            Found::Directory(home) => {
                let notes = self.notes_of(name, uid);
                Some(UserHome::new(home, self.path_of(name), notes))
            }
            Found::Nothing | Found::Locked | Found::Other => None,
        })
    }

    /// What lies at the user's place, if the place is theirs; `None` when it is free for them.
    pub(super) fn claimed(&self, name: &UserName, uid: &Uid) -> Result<Option<Found>, HomeError> {
        let path = self.path_of(name);
        let marker = self.owner_of(name)?;
        if let Some(marker) = &marker
            && marker.uid != *uid
        {
            return Err(HomeError::Conflict(format!(
                "{} belongs to another account of this name (uid {})",
                path.display(),
                marker.uid
            )));
        }
        let found = self.found(name)?;
        match (&found, marker) {
            (Found::Other, _) => Err(HomeError::Conflict(not_a_directory(&path))),
            (Found::Locked, None) => Err(HomeError::Conflict(not_ours(&path))),
            (Found::Directory(home), None)
                if !root::has_only(home, ".").map_err(HomeError::io("listing", &path))? =>
            {
                Err(HomeError::Conflict(not_ours(&path)))
            }
            (_, None) => Ok(None),
            (_, Some(_)) => Ok(Some(found)),
        }
    }

    /// Whose `users/<name>` is.
    pub(super) fn owner_of(&self, name: &UserName) -> Result<Option<Marker>, HomeError> {
        marker::read(&self.users.owners, name.as_str())
            .map_err(HomeError::io("reading the owner of", self.path_of(name)))
    }

    /// What lies at `users/<name>`.
    pub(super) fn found(&self, name: &UserName) -> Result<Found, HomeError> {
        match beneath::open_dir(&self.users.fd, Path::new(name.as_str())) {
            Ok(fd) => Ok(Found::Directory(fd)),
            Err(Errno::NOENT) => Ok(Found::Nothing),
            Err(Errno::LOOP | Errno::NOTDIR) => Ok(Found::Other),
            Err(Errno::ACCESS) => Ok(Found::Locked),
            Err(errno) => Err(HomeError::io("opening", self.path_of(name))(errno)),
        }
    }

    /// The same, with the permissions given back that the agent took from its own home: without
    /// them it can neither be read nor renamed.
    pub(super) fn found_unlocked(&self, name: &UserName) -> Result<Found, HomeError> {
        match self.found(name)? {
            Found::Locked | Found::Directory(_) => {
                let name = Path::new(name.as_str());
                beneath::open_dir_unlocked(&self.users.fd, name, Mode::RWXU)
                    .map(Found::Directory)
                    .map_err(HomeError::io("unlocking", self.users.path.join(name)))
            }
            found => Ok(found),
        }
    }
}

/// Opens the directory `relative` beneath `dir`, making it when it is missing.
fn ensure_part(
    dir: &OwnedFd,
    relative: &Path,
    owner: Option<Owner>,
    path: &PathBuf,
) -> Result<OwnedFd, HomeError> {
    let opened = match beneath::open_dir_unlocked(dir, relative, Mode::RWXU) {
        Err(Errno::NOENT) => make_part(dir, relative),
        outcome => outcome,
    };
    let fd = match opened {
        Ok(fd) => fd,
        Err(Errno::LOOP | Errno::NOTDIR) => {
            return Err(HomeError::Conflict(not_a_directory(path)));
        }
        Err(errno) => return Err(HomeError::io("making", path)(errno)),
    };
    if let Some((user, group)) = owner
        && !owned_by(&fd, owner).map_err(HomeError::io("inspecting", path))?
    {
        rustix::fs::fchown(
            &fd,
            Some(UnixUid::from_raw(user)),
            Some(Gid::from_raw(group)),
        )
        .map_err(HomeError::io("changing the owner of", path))?;
    }
    Ok(fd)
}

fn make_part(dir: &OwnedFd, relative: &Path) -> rustix::io::Result<OwnedFd> {
    // mkdirat follows links in all but the last component, so the parent is opened beneath first.
    let parent = match relative.parent().filter(|p| !p.as_os_str().is_empty()) {
        Some(parent) => Some(beneath::open_dir(dir, parent)?),
        None => None,
    };
    let parent = parent.as_ref().unwrap_or(dir).as_fd();
    let name = relative.file_name().ok_or(Errno::INVAL)?;
    match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
        Ok(()) => rustix::fs::fsync(parent)?,
        // Made by somebody else meanwhile; what it is, opening it shows.
        Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    beneath::open_dir(parent, Path::new(name))
}

fn owned_by(fd: &OwnedFd, owner: Option<Owner>) -> rustix::io::Result<bool> {
    let Some((user, group)) = owner else {
        return Ok(true);
    };
    let stat = rustix::fs::fstat(fd)?;
    Ok(stat.st_uid == user && stat.st_gid == group)
}

fn not_ours(path: &Path) -> String {
    format!(
        "{} is not empty and was not created for this account; move it away",
        path.display()
    )
}

pub(super) fn not_a_directory(path: &Path) -> String {
    format!(
        "{} is a link or a file where a directory must be; move it away",
        path.display()
    )
}

/// The type of what lies at `name` in `dir`, links not followed; `None` when there is nothing.
pub(super) fn type_of(dir: impl AsFd, name: &str) -> rustix::io::Result<Option<FileType>> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}
