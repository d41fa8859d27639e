//! Conversations of a user with the agent.
//!
//! ```text
//! <workspace>/conversations/<id>/meta.json      title and times
//! <workspace>/conversations/<id>/entries.jsonl  entries, one a line: of an `id` the last line counts
//! <workspace>/conversations/<id>/files/<name>   files that the agent has sent
//! ```
//!
//! One process at a time holds a conversation, by a lock on its folder, and adds to it. The agent owns all of it and may be
//! hostile: paths are resolved beneath the workspace, no link is followed, only regular files with one name are opened, and
//! all that is read is bounded.

mod compact;
mod folder;
mod id;
mod lines;
mod meta;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, FlockOperation, Mode};
use rustix::io::Errno;

pub use folder::{EntriesFile, Folder, HeldFolder, LONGEST};
pub use id::{CONVERSATION_ID_RULE, ConversationId, InvalidConversationId};
pub use lines::{LINE, MOST_LINES, MOST_UNREADABLE, Place, Scan, Verdict};
pub use meta::{LONGEST_TITLE, Meta, clean_title};

use super::beneath;
use super::restore::RESTORED;
use super::walk::for_each_until;
use super::workspace::{FileError, TRASH, Workspace, WorkspacePath, stat};
use folder::make_dir;

/// Directory of all conversations, in a workspace.
const CONVERSATIONS: &str = "conversations";
/// Directory in which an agent keeps the history of its sessions, in a workspace.
const SESSIONS: &str = "sessions";
/// Most conversations of a user, and most that are listed.
pub const MOST_CONVERSATIONS: usize = 500;
/// Most entries of their directory that are looked at: an agent may fill it as fast as it is read.
const MOST_SEARCHED: usize = 10_000;

/// The conversations of a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// Conversations, the one used last first; at most [`MOST_CONVERSATIONS`].
    pub conversations: Vec<(ConversationId, Meta)>,
    /// Number of those that are not listed.
    pub left_out: usize,
}

/// Outcome of an attempt to hold a conversation.
#[derive(Debug)]
pub enum Held {
    /// There is no such conversation.
    Missing,
    /// Another holder has it: in another process, or in this one.
    Elsewhere,
    /// It is held until this is dropped.
    Here(HeldFolder),
}

fn top() -> WorkspacePath {
    CONVERSATIONS.parse().unwrap_or_default()
}

fn path_of(id: &ConversationId) -> WorkspacePath {
    top().join(id.as_str()).unwrap_or_default()
}

impl Workspace {
    /// Lists conversations. Other entries of their directory are skipped; a conversation whose title and times cannot be read
    /// has no title and the times of its folder.
    ///
    /// # Errors
    /// [`FileError`] when the directory is none, or cannot be read.
    pub fn list_conversations(&self) -> Result<Listed, FileError> {
        let Some(directory) = self.conversations()? else {
            return Ok(Listed::default());
        };
        let (ids, _) = read_ids(&directory)?;
        let with_meta = |id: ConversationId| read_meta(&directory, &id).map(|meta| (id, meta));
        let mut found: Vec<_> = ids.into_iter().filter_map(with_meta).collect();
        found.sort_by(|(a, at), (b, bt)| {
            (Reverse(at.last_used_at), b).cmp(&(Reverse(bt.last_used_at), a))
        });
        let left_out = found.len().saturating_sub(MOST_CONVERSATIONS);
        found.truncate(MOST_CONVERSATIONS);
        Ok(Listed {
            conversations: found,
            left_out,
        })
    }

    /// Makes a conversation without entries.
    ///
    /// # Errors
    /// [`FileError::TooManyConversations`], [`FileError::Exists`], [`FileError::Full`]; otherwise [`FileError`].
    pub fn create_conversation(&self, id: &ConversationId, meta: &Meta) -> Result<(), FileError> {
        let directory = make_dir(&self.home, &self.top, CONVERSATIONS, &top())?;
        let (ids, is_complete) = read_ids(&directory)?;
        if ids.len() >= MOST_CONVERSATIONS || !is_complete {
            return Err(FileError::TooManyConversations {
                limit: MOST_CONVERSATIONS,
            });
        }
        let path = path_of(id);
        let made = rustix::fs::mkdirat(&directory, id.as_str(), Mode::from_raw_mode(0o755));
        made.map_err(FileError::of("making", &path))?;
        let written = self.fill_conversation(&directory, id, meta);
        if written.is_err() {
            // One without a title would be listed.
            let _ = self.remove(&path);
        }
        written
    }

    fn fill_conversation(
        &self,
        directory: &OwnedFd,
        id: &ConversationId,
        meta: &Meta,
    ) -> Result<(), FileError> {
        let path = path_of(id);
        let made = beneath::open_dir(directory, Path::new(id.as_str()))
            .and_then(|made| self.home.give_to_owner(&made).map(|()| made));
        let made = made.map_err(FileError::of("making", &path))?;
        Folder::new(&self.home, made, path.clone())?.write_meta(meta)?;
        rustix::fs::fsync(directory).map_err(FileError::of("making", &path))
    }

    /// Opens a conversation for reading, held or not; `None` when there is none.
    ///
    /// # Errors
    /// [`FileError::Link`], [`FileError::NotADirectory`]; otherwise [`FileError`].
    pub fn open_conversation(&self, id: &ConversationId) -> Result<Option<Folder>, FileError> {
        let path = path_of(id);
        match self.directory(&path) {
            Ok(dir) => Folder::new(&self.home, dir, path).map(Some),
            Err(FileError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a conversation to add to it, unless another holder has it. Waits for none.
    ///
    /// # Errors
    /// As [`Workspace::open_conversation`].
    pub fn hold_conversation(&self, id: &ConversationId) -> Result<Held, FileError> {
        let path = path_of(id);
        let Some(folder) = self.open_conversation(id)? else {
            return Ok(Held::Missing);
        };
        match rustix::fs::flock(&folder.dir, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(Held::Elsewhere),
            Err(errno) => return Err(FileError::of("locking", &path)(errno)),
        }
        // It may have been removed since it was opened, and another made.
        let locked = rustix::fs::fstat(&folder.dir).map_err(FileError::of("locking", &path))?;
        let named = match self.directory(&path) {
            Err(FileError::NotFound { .. }) => return Ok(Held::Missing),
            named => rustix::fs::fstat(named?).map_err(FileError::of("locking", &path))?,
        };
        match (named.st_dev, named.st_ino) == (locked.st_dev, locked.st_ino) {
            true => Ok(Held::Here(HeldFolder::new(folder))),
            false => Ok(Held::Missing),
        }
    }

    /// Gives a conversation, held or not, another title. Returns its new description; `None` when there is none.
    ///
    /// # Errors
    /// As [`Workspace::open_conversation`] and [`Folder::write_meta`].
    pub fn rename_conversation(
        &self,
        id: &ConversationId,
        title: &str,
    ) -> Result<Option<Meta>, FileError> {
        let Some(folder) = self.open_conversation(id)? else {
            return Ok(None);
        };
        let meta = Meta {
            title: clean_title(title),
            ..folder.meta()
        };
        folder.write_meta(&meta)?;
        Ok(Some(meta))
    }

    /// Removes a conversation, held or not, with its files, and not to the trash. Returns false when there is none.
    ///
    /// # Errors
    /// As [`Workspace::remove`]: after [`FileError::Partly`] it is to be removed again.
    pub fn remove_conversation(&self, id: &ConversationId) -> Result<bool, FileError> {
        match self.remove(&path_of(id)) {
            Ok(()) => Ok(true),
            Err(FileError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn conversations(&self) -> Result<Option<OwnedFd>, FileError> {
        match self.directory(&top()) {
            Ok(directory) => Ok(Some(directory)),
            Err(FileError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Returns true for the path, in a workspace, of a directory with conversations, or with the agent's history of them: in its own place,
/// in that of an earlier restore, or in the trash.
pub(super) fn has_conversations(path: &Path) -> bool {
    let mut names = path.iter().map(|name| name.to_str().unwrap_or_default());
    let mut is_trash = false;
    while let Some(name) = names.next() {
        match name {
            CONVERSATIONS | SESSIONS => return names.next().is_none(),
            TRASH => {
                // The time of the deletion.
                names.next();
                is_trash = true;
            }
            name if name.starts_with(RESTORED) => is_trash = false,
            name => {
                let is_id = name.parse::<ConversationId>().is_ok();
                return is_trash && is_id && names.next().is_none();
            }
        }
    }
    false
}

/// Reads the ids of conversations in their directory, and whether these are all.
fn read_ids(directory: &OwnedFd) -> Result<(Vec<ConversationId>, bool), FileError> {
    let (mut ids, mut seen) = (Vec::new(), 0_usize);
    let listed = for_each_until(directory, |name, kind| {
        seen += 1;
        if seen > MOST_SEARCHED {
            return ControlFlow::Break(());
        }
        let id = name.to_str().and_then(|name| name.parse().ok());
        ids.extend(id.filter(|_| kind == FileType::Directory));
        ControlFlow::Continue(())
    });
    listed.map_err(FileError::of("listing", &top()))?;
    Ok((ids, seen <= MOST_SEARCHED))
}

/// Reads title and times of a conversation; `None` when it is gone, or is no directory any more.
fn read_meta(directory: &OwnedFd, id: &ConversationId) -> Option<Meta> {
    let read = match beneath::open_dir(directory, Path::new(id.as_str())) {
        Ok(folder) => Meta::from_file(&folder),
        Err(_) => None,
    };
    read.or_else(|| {
        let stat = stat(directory, OsStr::new(id.as_str()), &path_of(id)).ok()??;
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        is_directory.then(|| Meta::from_folder(&stat))
    })
}
