//! The trash of a workspace: what was deleted, and can be brought back for some days.
//!
//! Deleted entries lie in `.trash/<time>/` under their names; `.trash/<time>.path` holds their former path. The agent can change
//! all of it.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use rustix::fs::AtFlags;

use super::Workspace;
use super::error::FileError;
use super::list::{EntryType, FileEntry, Order, Sort};
use super::path::WorkspacePath;
use crate::home::removal::read_stamp;
use crate::ids::Timestamp;

/// The directory of the trash, in a workspace.
const TRASH: &str = ".trash";
/// Suffix of files that hold a former path.
const PATH: &str = ".path";
/// Time for which it is kept.
pub const TRASH_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// Most entries that are listed, and that one request empties.
const MOST: usize = 1000;
/// Most deletions of one second.
const MOST_AT_ONCE: u32 = 1000;

/// Something in the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trashed {
    /// Names it.
    pub id: String,
    /// Where it was, if that is known.
    pub path: Option<WorkspacePath>,
    /// The entry itself.
    pub entry: FileEntry,
    /// Time of the deletion.
    pub deleted_at: Timestamp,
}

/// A request to bring something back.
#[derive(Debug, Clone)]
pub struct Restoration {
    /// Which.
    pub id: String,
    /// Where to; `None`: to where it was.
    pub to: Option<WorkspacePath>,
}

fn trash() -> WorkspacePath {
    TRASH.parse().unwrap_or_default()
}

/// The time of a deletion, if a name is one of the trash's.
fn time_of(id: &str) -> Option<Timestamp> {
    let (stamp, number) = match id.split_once('-') {
        Some((stamp, number)) => (stamp, Some(number)),
        None => (id, None),
    };
    let is_number = |number: &str| number.parse::<u32>().is_ok_and(|number| number > 0);
    read_stamp(stamp).filter(|_| number.is_none_or(is_number))
}

fn not_found(id: &str) -> FileError {
    FileError::NotFound {
        // The id comes from a client and may be any text.
        path: id.chars().take(64).collect(),
    }
}

impl Workspace {
    /// Moves an entry to the trash, and returns what names it there. What lies in the trash is removed for good: `None`.
    ///
    /// # Errors
    /// As [`Workspace::remove`] and [`Workspace::rename`]; [`FileError::NotADirectory`] if the agent has put something else in the
    /// place of the trash.
    pub fn discard(
        &self,
        (path, now): &(WorkspacePath, Timestamp),
    ) -> Result<Option<String>, FileError> {
        let trash = trash();
        if trash.contains(path) {
            self.remove_for_good(path)?;
            return Ok(None);
        }
        self.can_remove(path)?;
        self.make_if_missing(&trash)?;
        let (id, place) = self.make_place(&trash, *now)?;
        let origin = self.path_file(&id)?;
        let moved = self
            .write_text(&origin, path.as_str(), None)
            .and_then(|_| self.rename(path, &join(&place, path.name())?));
        if let Err(error) = moved {
            // Something may lie there when it failed late.
            if !matches!(error, FileError::Partly(_)) {
                self.forget(&id);
            }
            return Err(error);
        }
        Ok(Some(id))
    }

    /// Removes an entry for good; one of the trash with what is known of it.
    ///
    /// # Errors
    /// As [`Workspace::remove`].
    pub fn remove_for_good(&self, path: &WorkspacePath) -> Result<(), FileError> {
        self.remove(path)?;
        let mut names = path.steps().map(|(name, _)| name);
        if let (Some(TRASH), Some(id), None) = (names.next(), names.next(), names.next()) {
            self.forget(id);
        }
        Ok(())
    }

    /// Lists the trash, the newest first, at most 1,000 entries.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn list_trash(&self) -> Result<Vec<Trashed>, FileError> {
        let mut found = Vec::new();
        for (id, deleted_at) in self.ids(true)? {
            // The agent may remove it meanwhile, or have put something else there.
            if let Ok(entry) = self.trashed_entry(&id) {
                found.push(Trashed {
                    path: self.origin(&id),
                    id,
                    entry,
                    deleted_at,
                });
            }
        }
        Ok(found)
    }

    /// Returns true when an entry can probably be restored.
    ///
    /// # Errors
    /// As [`Workspace::restore`].
    pub fn can_restore(&self, restoration: &Restoration) -> Result<(), FileError> {
        let (_, to) = self.to_restore(restoration)?;
        match self.parent(&to) {
            Ok((parent, name)) => match super::stat(&parent, name, &to)? {
                Some(_) => Err(FileError::exists(&to)),
                None => Ok(()),
            },
            // The directories on the way are made.
            Err(FileError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Brings something back to where it was or to another place, and makes the directories on the way. Returns where it is.
    ///
    /// # Errors
    /// [`FileError::NotFound`] if it is not in the trash; [`FileError::Exists`] if something is in its place; otherwise [`FileError`].
    pub fn restore(&self, restoration: &Restoration) -> Result<WorkspacePath, FileError> {
        let (from, to) = self.to_restore(restoration)?;
        let above = to.steps().map(|(_, path)| path.to_owned());
        let above: Vec<String> = above.filter(|path| path != to.as_str()).collect();
        for directory in above {
            let directory = directory.parse().unwrap_or_default();
            self.make_if_missing(&directory)?;
        }
        self.rename(&from, &to)?;
        self.forget(&restoration.id);
        Ok(to)
    }

    /// Removes for good what was deleted before a time, at most 1,000 entries. Returns how many.
    ///
    /// # Errors
    /// [`FileError`]; what was removed before that is gone.
    pub fn empty_trash(&self, before: Timestamp) -> Result<usize, FileError> {
        let mut emptied = 0;
        for (id, deleted_at) in self.ids(false)? {
            if deleted_at >= before {
                break;
            }
            self.remove_for_good(&join(&trash(), &id)?)?;
            emptied += 1;
        }
        Ok(emptied)
    }

    /// The names of what is in the trash, with the times of deletion.
    fn ids(&self, newest_first: bool) -> Result<Vec<(String, Timestamp)>, FileError> {
        let order = Order {
            sort: Sort::Name,
            descending: newest_first,
        };
        let listing = match self.list(&trash(), order, "", |total| 0..total.min(MOST)) {
            Err(FileError::NotFound { .. }) => return Ok(Vec::new()),
            listing => listing?,
        };
        let directories = listing.entries.into_iter();
        let directories = directories.filter(|entry| entry.kind == EntryType::Directory);
        let timed = directories.filter_map(|entry| {
            let time = time_of(&entry.name)?;
            Some((entry.name, time))
        });
        Ok(timed.collect())
    }

    fn trashed_entry(&self, id: &str) -> Result<FileEntry, FileError> {
        let place = join(&trash(), id)?;
        let listing = self.list(&place, Order::default(), "", |total| 0..total.min(1))?;
        let entry = listing.entries.into_iter().next();
        entry
            .filter(|entry| entry.named)
            .ok_or_else(|| not_found(id))
    }

    /// Where something was, as far as the agent has left that.
    fn origin(&self, id: &str) -> Option<WorkspacePath> {
        let text = self.read_text(&self.path_file(id).ok()?).ok()?;
        let path: WorkspacePath = text.content.parse().ok()?;
        Some(path).filter(|path| !path.is_top())
    }

    fn to_restore(
        &self,
        restoration: &Restoration,
    ) -> Result<(WorkspacePath, WorkspacePath), FileError> {
        let id = &restoration.id;
        if time_of(id).is_none() {
            return Err(not_found(id));
        }
        let entry = self.trashed_entry(id)?;
        let from = join(&join(&trash(), id)?, &entry.name)?;
        let to = match &restoration.to {
            Some(to) => to.clone(),
            // A place that is not known is the top.
            None => match self.origin(id) {
                Some(origin) => origin,
                None => join(&WorkspacePath::default(), &entry.name)?,
            },
        };
        match to.is_top() {
            true => Err(FileError::Top),
            false => Ok((from, to)),
        }
    }

    fn path_file(&self, id: &str) -> Result<WorkspacePath, FileError> {
        join(&trash(), &format!("{id}{PATH}"))
    }

    fn make_if_missing(&self, directory: &WorkspacePath) -> Result<(), FileError> {
        match self.make_directory(directory) {
            // A missing directory shows when the entry is moved.
            Err(FileError::Exists { .. }) => self.directory(directory).map(drop),
            made => made,
        }
    }

    fn make_place(
        &self,
        trash: &WorkspacePath,
        now: Timestamp,
    ) -> Result<(String, WorkspacePath), FileError> {
        let stamp = now.to_basic();
        for number in 0..MOST_AT_ONCE {
            let id = match number {
                0 => stamp.clone(),
                number => format!("{stamp}-{number}"),
            };
            let place = join(trash, &id)?;
            match self.make_directory(&place) {
                Ok(()) => return Ok((id, place)),
                Err(FileError::Exists { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(FileError::Meanwhile {
            path: trash.to_string(),
        })
    }

    /// Removes what is left of an entry of the trash once it is gone. What cannot be removed holds nothing.
    fn forget(&self, id: &str) {
        let Ok(trash) = self.directory(&trash()) else {
            return;
        };
        let origin = format!("{id}{PATH}");
        let _ = rustix::fs::unlinkat(&trash, OsStr::new(&origin), AtFlags::empty());
        let _ = rustix::fs::unlinkat(&trash, Path::new(id), AtFlags::REMOVEDIR);
    }
}

fn join(directory: &WorkspacePath, name: &str) -> Result<WorkspacePath, FileError> {
    directory.join(name).map_err(|_| FileError::TooLong {
        path: directory.to_string(),
    })
}

#[cfg(test)]
mod tests;
