//! Giving a user's directory the user's new name.
//!
//! Each interruption leaves what the next call goes on from: the marker of the new name is written first, the directory is
//! renamed, and the marker of the old name goes last.

use rustix::io::Errno;

use super::ensure::{Found, not_a_directory};
use super::error::HomeError;
use super::{Homes, marker};
use crate::fault;
use crate::ids::{Uid, UserName};

impl Homes {
    /// Renames a user's directory, so that it is `users/<to>` and nothing of the user's is left under the name `from`. Without a
    /// directory there is nothing to do.
    ///
    /// # Errors
    /// [`HomeError::Conflict`] if the new place belongs to another account or is not empty, or something else lies at the old
    /// one; no file was touched then. [`HomeError::Io`].
    pub fn rename(&self, from: &UserName, to: &UserName, uid: &Uid) -> Result<(), HomeError> {
        let Some(marker) = self.owner_of(from)?.filter(|marker| marker.uid == *uid) else {
            return Ok(());
        };
        let (old, new) = (self.path_of(from), self.path_of(to));
        match self.found(from)? {
            Found::Directory(_) | Found::Locked => {
                if self.claimed(to, uid)?.is_none() {
                    marker::write(&self.users.owners, to.as_str(), &marker)
                        .map_err(HomeError::io("marking", &new))?;
                    fault::point("home.rename.after_marker");
                }
                // A directory replaces nothing but an empty one.
                match rustix::fs::renameat(
                    &self.users.fd,
                    from.as_str(),
                    &self.users.fd,
                    to.as_str(),
                ) {
                    Ok(()) => {}
                    Err(Errno::NOTEMPTY | Errno::EXIST) => {
                        return Err(HomeError::Conflict(format!(
                            "{} is the user's directory, and {}, its new place, is not empty; move one of them away",
                            old.display(),
                            new.display()
                        )));
                    }
                    Err(Errno::NOTDIR) => return Err(HomeError::Conflict(not_a_directory(&new))),
                    Err(errno) => return Err(HomeError::io("renaming", &old)(errno)),
                }
                rustix::fs::fsync(&self.users.fd).map_err(HomeError::io("renaming", &old))?;
                fault::point("home.rename.after_home");
            }
            // Renamed already, or never made.
            Found::Nothing => {}
            Found::Other => return Err(HomeError::Conflict(not_a_directory(&old))),
        }
        marker::remove(&self.users.owners, from.as_str())
            .map_err(HomeError::io("removing the owner of", &old))
    }
}
