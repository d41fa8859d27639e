//! The trash of a workspace: what was deleted, and can be brought back for some days.
//!
//! Deleted entries lie in `.trash/<time>/` under their names; `.trash/<time>.path` holds their former path. The agent can change
//! all of it.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, FileType};

use super::Workspace;
use super::error::FileError;
use super::list::FileEntry;
use super::path::WorkspacePath;
use crate::home::removal::read_stamp;
use crate::home::walk::for_each_until;
use crate::ids::Timestamp;

/// The directory of the trash, in a workspace.
pub(in crate::home) const TRASH: &str = ".trash";
/// Suffix of files that hold a former path.
const PATH: &str = ".path";
/// Time for which it is kept.
pub const TRASH_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// Most entries that are listed, and that one request empties.
const MOST: usize = 1000;
/// Most names in the trash that are looked at: an agent may fill it as fast as it is read.
const MOST_SEARCHED: usize = 200_000;
/// Longest former path, in bytes.
const LONGEST_ORIGIN: u64 = 4096;
/// Most entries of one deletion that are removed at a time; the rest is removed the next time.
const MOST_EMPTIED: u64 = 100_000;
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

/// Result of emptying a trash.
#[derive(Debug, Default)]
pub struct Emptied {
    /// Number of removed entries.
    pub removed: usize,
    /// Failure of the last entry that could not be removed.
    pub problem: Option<FileError>,
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
    /// Checks whether an entry can probably be moved to the trash.
    ///
    /// # Errors
    /// As [`Workspace::discard`].
    pub fn can_discard(&self, (path, _): &(WorkspacePath, Timestamp)) -> Result<(), FileError> {
        match trash().contains(path) {
            true => Err(FileError::InTrash {
                path: path.to_string(),
            }),
            false => self.can_remove(path),
        }
    }

    /// Moves an entry to the trash, and returns its id there.
    ///
    /// # Errors
    /// As [`Workspace::remove`] and [`Workspace::rename`]; [`FileError::InTrash`] for the trash and its entries;
    /// [`FileError::NotADirectory`] if the agent has put something else in the place of the trash.
    pub fn discard(&self, subject: &(WorkspacePath, Timestamp)) -> Result<String, FileError> {
        self.can_discard(subject)?;
        let ((path, now), trash) = (subject, trash());
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
        Ok(id)
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
        let mut ids = self.ids()?;
        ids.sort_unstable_by_key(|id| Reverse(id.clone()));
        ids.truncate(MOST);
        for (deleted_at, id) in ids {
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

    /// Removes for good what was deleted before a time, oldest first, while `goes_on`. An entry that cannot be removed does not stop
    /// the others; it is reported with the number of removed ones.
    ///
    /// # Errors
    /// [`FileError`] when the trash cannot be read.
    pub fn empty_trash(
        &self,
        before: Timestamp,
        goes_on: impl Fn() -> bool,
    ) -> Result<Emptied, FileError> {
        let mut emptied = Emptied::default();
        let mut ids = match self.ids() {
            // The agent has put something else in its place: nothing was deleted by the user there.
            Err(FileError::NotADirectory { .. } | FileError::Link { .. }) => Vec::new(),
            ids => ids?,
        };
        ids.retain(|(deleted_at, _)| *deleted_at < before);
        ids.sort_unstable();
        for (_, id) in ids {
            if !goes_on() {
                break;
            }
            match self.remove_trashed(&id) {
                Ok(()) => emptied.removed += 1,
                Err(error) => emptied.problem = Some(error),
            }
        }
        Ok(emptied)
    }

    fn remove_trashed(&self, id: &str) -> Result<(), FileError> {
        self.remove_at_most(&join(&trash(), id)?, MOST_EMPTIED)?;
        self.forget(id);
        Ok(())
    }

    /// Lists the ids in the trash with the times of deletion, in no order.
    fn ids(&self) -> Result<Vec<(Timestamp, String)>, FileError> {
        let directory = match self.directory(&trash()) {
            Err(FileError::NotFound { .. }) => return Ok(Vec::new()),
            directory => directory?,
        };
        let (mut ids, mut seen) = (Vec::new(), 0);
        let listed = for_each_until(&directory, |name, kind| {
            seen += 1;
            let id = name.to_str().filter(|_| kind == FileType::Directory);
            ids.extend(id.and_then(|id| Some((time_of(id)?, id.to_owned()))));
            match seen < MOST_SEARCHED {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
        listed.map_err(FileError::of("listing", &trash()))?;
        Ok(ids)
    }

    fn trashed_entry(&self, id: &str) -> Result<FileEntry, FileError> {
        let place = join(&trash(), id)?;
        self.first_entry(&place)?.ok_or_else(|| not_found(id))
    }

    /// The former path of an entry, as far as the agent has left it.
    fn origin(&self, id: &str) -> Option<WorkspacePath> {
        let file = self.open_file(&self.path_file(id).ok()?).ok()?;
        let mut text = String::new();
        let mut bounded = (&file.file).take(LONGEST_ORIGIN);
        bounded.read_to_string(&mut text).ok()?;
        let path: WorkspacePath = text.parse().ok()?;
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
        let from = join(&join(&trash(), id)?, &entry.in_path)?;
        let to = match &restoration.to {
            Some(to) => to.clone(),
            // A place that is not known is the top.
            None => match self.origin(id) {
                Some(origin) => origin,
                None => join(&WorkspacePath::default(), &entry.in_path)?,
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
