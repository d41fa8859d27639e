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

/// The identity of a directory: its inode, and when it was made, because inodes are used again. Another directory in its
/// place has another one; what is written in it does not change it. Its device is part of it only where the file system
/// does not know when it was made: devices are numbered anew by a mount or a start of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, sqlx::Type)]
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
                let device = (stat.stx_dev_major, stat.stx_dev_minor);
                Ok(Self::from_parts(device, stat.stx_ino, born))
            }
            // Linux before 4.11, or a seccomp profile.
            Err(Errno::NOSYS | Errno::PERM) => {
                let stat = rustix::fs::fstat(directory)?;
                Ok(Self(format!("{:x}-{:x}", stat.st_dev, stat.st_ino)))
            }
            Err(errno) => Err(errno),
        }
    }
}

impl HomeId {
    fn from_parts((major, minor): (u32, u32), inode: u64, born: (i64, u32)) -> Self {
        Self(match born {
            // Not known.
            (0, 0) => format!("{major:x}.{minor:x}-{inode:x}"),
            (seconds, nanoseconds) => format!("{inode:x}-{seconds:x}.{nanoseconds:x}"),
        })
    }
}

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
    fn a_device_that_is_numbered_anew_makes_no_other_home() {
        let of = HomeId::from_parts;
        let home = of((8, 1), 7, (1_778_500_000, 5));
        assert_eq!(of((0, 61), 7, (1_778_500_000, 5)), home);
        assert_ne!(of((8, 1), 8, (1_778_500_000, 5)), home);
        assert_ne!(of((8, 1), 7, (1_778_500_000, 6)), home);
        // Where nobody knows when it was made, the device is all there is.
        assert_ne!(of((8, 1), 7, (0, 0)), of((8, 2), 7, (0, 0)));
    }
}
