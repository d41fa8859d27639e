//! The users' directories: the only code that opens them.
//!
//! ```text
//! <data>/users/.agentyard          whose root this is (instance)
//! <data>/users/.owners/<name>      whose directory users/<name> is (uid), and whether the image's home was copied
//! <data>/users/.restoring/<uid>/   what is being copied out of the archive for a user
//! <data>/users/.staging/<uid>/     skills that are being made for a user, records of those on their way out
//! <data>/users/<name>/             mounted as the home of the user's container
//! <data>/users/<name>/.agent/.agentyard-skill-<random>/  a skill on its way
//! <data>/users/<name>/.agent/workspace/
//! <data>/users/<name>/.agent/workspace/conversations/<id>/
//! <data>/users/<name>/.agent/workspace/skills/<skill>/
//! <data>/users/<name>/.agent/workspace/skills/.replaced/<skill>-<UTC time>/
//! <data>/archive/.agentyard
//! <data>/archive/.owners/<dir>     whose archive archive/<dir> is (uid)
//! <data>/archive/<name>-<UTC time>/
//! <data>/archive/<UTC time>-mode-<old>-to-<new>/  those who left when the authentication mode changed, as in the archive itself
//! <data>/archive/.removing-<dir>/  what is left of an archive that is being removed
//! ```
//!
//! The agent in the container owns everything inside its home and may plant links there, swap
//! directories while we read, or fill it with devices. So nothing that we rely on lies inside,
//! and every access goes through a directory handle, resolves beneath it and follows no link.
//!
//! All functions block; callers on async threads use `spawn_blocking`.

mod archive;
mod archive_contents;
mod archive_handle;
pub(crate) mod beneath;
mod bring_back;
pub mod conversations;
mod copy;
mod ensure;
mod error;
mod files;
mod hard_links;
mod look;
mod marker;
mod measure;
mod reading;
mod removal;
pub(crate) mod remove;
mod rename;
mod renamed;
mod restore;
mod restore_copy;
pub(crate) mod root;
mod seed;
mod skill_moves;
mod skills;
mod temporary;
#[cfg(test)]
mod tests;
mod user_home;
pub(crate) mod walk;
pub mod workspace;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use archive::{ArchiveBatch, ArchiveOutcome, Skipped, archive_names};
pub use archive_contents::{ArchiveContents, TopEntry};
pub use archive_handle::{HandleError, archive_by_handle, archive_handles};
pub use bring_back::{BringBackError, BroughtBack};
pub use ensure::HomeState;
pub use error::HomeError;
pub use files::{FoundFile, NewFile, Stamp};
pub use look::{HomeId, HomeLook};
pub use measure::{Measured, Measurement, Walked};
pub use reading::{FileNotes, LONG_READING, Note, READING_DIR, Readings, SetAside};
pub use removal::Archive;
pub use restore::{RestoreError, Restored};
pub use seed::{SeedLimits, Seeded};
pub use skills::{AskedSkill, FoundSkill, PreviousSkill, SeenSkills, SkillLook, SkillsLook};
pub(crate) use temporary::is_temporary;
pub use user_home::UserHome;

/// The directory of the agent's own files, inside the user's directory.
pub const AGENT_DIR: &str = ".agent";
/// The workspace, inside the user's directory: what the file endpoints serve.
pub const WORKSPACE_DIR: &str = ".agent/workspace";

/// The two roots of an installation: live directories and archived ones.
#[derive(Debug)]
pub struct Homes {
    users: root::Root,
    archive: root::Root,
    /// Where readings are noted, once that is known.
    readings: OnceLock<Readings>,
}

/// A user and group id, as the engine will run the container with.
pub type Owner = (u32, u32);

impl Homes {
    /// Opens `<data_dir>/users` and `<data_dir>/archive`, creating them (mode 0700) when missing.
    /// `data_dir` itself must exist.
    ///
    /// A root carries a marker file with the name of the instance. One that is not empty and has no
    /// marker, or the marker of another instance, is refused: whatever is archived or deleted later
    /// was created by this installation.
    ///
    /// # Errors
    /// [`HomeError::RefusedRoot`] when a root is not ours or `data_dir` is `/` or a person's home
    /// directory; [`HomeError::Io`].
    pub fn open(data_dir: &Path, instance_id: &str) -> Result<Self, HomeError> {
        Self::open_with(data_dir, instance_id, own_home().as_deref())
    }

    fn open_with(
        data_dir: &Path,
        instance_id: &str,
        own_home: Option<&Path>,
    ) -> Result<Self, HomeError> {
        let data_dir = std::fs::canonicalize(data_dir)
            .map_err(HomeError::io("opening the data directory", data_dir))?;
        root::refuse_precious(&data_dir, own_home)?;
        Ok(Self {
            users: root::Root::open(&data_dir, "users", instance_id)?,
            archive: root::Root::open(&data_dir, "archive", instance_id)?,
            readings: OnceLock::new(),
        })
    }

    /// Where a user's directory is, for handing it to the container engine. Never open it by this
    /// path.
    pub fn path_of(&self, name: &crate::ids::UserName) -> PathBuf {
        self.users.path.join(name.as_str())
    }
}

fn own_home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from)
}

/// Checks whether a data directory, which need not exist, may be used; writes nothing. `is_new`: there is no database yet.
///
/// # Errors
/// When it is a directory of the system or a person, or holds what this service has not made.
pub fn check_data_dir(data_dir: &Path, is_new: bool) -> Result<(), HomeError> {
    root::check_data_dir(data_dir, own_home().as_deref(), is_new)
}
