//! Which directory a user's home is, and what lies in it, without reading a byte of it.
//!
//! A container mounts a directory, not a name: when somebody removes the directory and another one takes its place, the
//! container goes on in the one that is gone. So the directory itself is part of what is observed.

use std::fmt;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, StatxFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::Homes;
use super::error::HomeError;
use super::user_home::UserHome;
use crate::ids::{Uid, UserName};

/// Identity of a directory: its inode and its birth time, because inodes are reused. What is written in the directory
/// does not change it.
///
/// Where the file system has no birth times, it is the inode alone. A mount renumbers devices, and with FUSE file handles
/// too: as a part of the identity, each would recreate every agent after a remount. So a directory that gets the inode of
/// the one it replaces counts as that one there; ARCHITECTURE.md ("When a user's directory is replaced") has the effect.
///
/// Earlier builds put a device before an inode without a birth time. They wrote labels of containers, rows and markers that
/// are still compared, so the device does not count.
#[derive(Debug, Clone, Serialize, Deserialize, sqlx::Type)]
#[serde(transparent)]
#[sqlx(transparent)]
pub struct HomeId(String);

impl HomeId {
    /// As stored, and as put in labels.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Of an open directory.
    fn of(directory: impl AsFd) -> rustix::io::Result<Self> {
        let wanted = StatxFlags::INO | StatxFlags::BTIME;
        let directory = directory.as_fd();
        match rustix::fs::statx(directory, c"", AtFlags::EMPTY_PATH, wanted) {
            Ok(stat) => {
                let born = (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec);
                Ok(Self::from_parts(stat.stx_ino, born))
            }
            // Linux before 4.11, or a seccomp profile.
            Err(Errno::NOSYS | Errno::PERM) => {
                let stat = rustix::fs::fstat(directory)?;
                Ok(Self::from_parts(stat.st_ino, (0, 0)))
            }
            Err(errno) => Err(errno),
        }
    }
}

impl HomeId {
    fn from_parts(inode: u64, born: (i64, u32)) -> Self {
        Self(match born {
            // Not known.
            (0, 0) => format!("{inode:x}"),
            (seconds, nanoseconds) => format!("{inode:x}-{seconds:x}.{nanoseconds:x}"),
        })
    }

    /// The part that is compared. A device, `major.minor` or a single number, precedes a plain inode; a birth time,
    /// which has a point, follows one.
    fn without_device(&self) -> &str {
        match self.0.split_once('-') {
            Some((_device, inode)) if !inode.contains('.') => inode,
            _ => &self.0,
        }
    }
}

impl PartialEq for HomeId {
    fn eq(&self, other: &Self) -> bool {
        self.without_device() == other.without_device()
    }
}

impl Eq for HomeId {}

impl fmt::Display for HomeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for HomeId {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// A user's directory at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeLook {
    /// Which directory it is.
    pub id: HomeId,
    /// Which of the files that were asked for are there, in that order.
    pub files: Vec<bool>,
}

impl Homes {
    /// Looks at a user's directory; `None` when it is not there.
    ///
    /// # Errors
    /// As [`Homes::open_existing`] and [`UserHome::file_exists`].
    pub fn look(
        &self,
        name: &UserName,
        uid: &Uid,
        files: &[String],
    ) -> Result<Option<HomeLook>, HomeError> {
        let Some(home) = self.open_existing(name, uid)? else {
            return Ok(None);
        };
        let files = files.iter().map(|file| home.file_exists(file));
        Ok(Some(HomeLook {
            id: home.id()?,
            files: files.collect::<Result<_, _>>()?,
        }))
    }
}

impl UserHome {
    /// Which directory this is.
    ///
    /// # Errors
    /// [`HomeError::Io`].
    pub fn id(&self) -> Result<HomeId, HomeError> {
        HomeId::of(self.dir()).map_err(HomeError::io("inspecting", self.path()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_stored_in_these_forms() {
        let form = |inode, born| HomeId::from_parts(inode, born).to_string();
        assert_eq!(form(0xab_9c09, (0x6b0a, 5)), "ab9c09-6b0a.5");
        assert_eq!(form(0xab_9c09, (0, 5)), "ab9c09-0.5");
        assert_eq!(form(0xab_9c09, (-1, 5)), "ab9c09-ffffffffffffffff.5");
        assert_eq!(form(0xab_9c09, (0, 0)), "ab9c09");
    }

    #[test]
    fn device_does_not_count_inode_and_birth_time_do() {
        let id = |text: &str| HomeId::from(text.to_owned());
        for (one, other, is_same) in [
            // Without a birth time: this build's form, and the two of earlier ones.
            ("7", "7", true),
            ("7", "8", false),
            ("8.1-7", "7", true),
            ("8.1-7", "0.3d-7", true),
            ("8.1-7", "8.1-8", false),
            ("3d-7", "7", true),
            ("3d-7", "8.1-7", true),
            ("7-8", "7", false),
            // With one.
            ("7-6b0a.5", "7-6b0a.5", true),
            ("7-6b0a.5", "8-6b0a.5", false),
            ("7-6b0a.5", "7-6b0a.6", false),
            ("7-6b0a.5", "7-6b0b.5", false),
            // On one side only.
            ("7-6b0a.5", "7", false),
            ("7-6b0a.5", "8.1-7", false),
        ] {
            assert_eq!(id(one) == id(other), is_same, "{one} and {other}");
            assert_eq!(id(other) == id(one), is_same, "{other} and {one}");
        }
    }
}
