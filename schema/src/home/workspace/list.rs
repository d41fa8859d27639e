//! Listing a directory of any size.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::ops::{ControlFlow, Range};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FileType, Stat};

use super::error::FileError;
use super::path::{WorkspacePath, text_of};
use super::{Workspace, stat};
use crate::home::temporary::is_temporary;
use crate::home::walk::for_each_until;
use crate::ids::Timestamp;

/// Most entries of a directory that are listed; who fills a directory fills no memory.
const MOST_LISTED: usize = 200_000;
/// Most entries that are searched: who fills a directory as fast as it is read keeps nobody waiting.
const MOST_SEARCHED: usize = 1_000_000;

/// What an entry is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::Display, strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum EntryType {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link. It is not followed.
    Symlink,
    /// A named pipe. It is never opened, as is none of the following.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

impl EntryType {
    fn of(kind: FileType) -> Self {
        match kind {
            FileType::Directory => Self::Directory,
            FileType::RegularFile => Self::File,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            _ => Self::Device,
        }
    }
}

/// What entries are sorted by. Directories always come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// The name, without regard to case.
    #[default]
    Name,
    /// Bytes.
    Size,
    /// The time of the last change.
    Modified,
}

/// How a listing is sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Order {
    /// By what.
    pub sort: Sort,
    /// The last one first.
    pub descending: bool,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Its name; what of it is not UTF-8 is shown as U+FFFD.
    pub name: String,
    /// Its name as it stands in paths ([`super::WorkspacePath`]).
    pub in_path: String,
    /// What it is.
    pub kind: EntryType,
    /// Length in bytes; 0 for everything but regular files.
    pub size: u64,
    /// When its content was last changed.
    pub modified: Timestamp,
}

/// A part of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The entries.
    pub entries: Vec<FileEntry>,
    /// How many entries match the search.
    pub total: usize,
    /// There are more, which are not listed.
    pub truncated: bool,
}

/// The names of a directory, one after another in one piece of memory.
#[derive(Default)]
struct Names {
    text: Vec<u8>,
    entries: Vec<Place>,
}

/// Where a name stands, and what it is that bears it.
#[derive(Clone, Copy)]
struct Place {
    begin: u32,
    length: u32,
    kind: EntryType,
}

impl Names {
    fn of(&self, place: Place) -> &[u8] {
        let begin = place.begin as usize;
        let end = begin + place.length as usize;
        self.text.get(begin..end).unwrap_or_default()
    }

    fn by_name(&self, a: Place, b: Place) -> Ordering {
        let (a, b) = (self.of(a), self.of(b));
        caseless(a, b).then_with(|| a.cmp(b))
    }
}

/// Compares names without regard to case.
fn caseless(a: &[u8], b: &[u8]) -> Ordering {
    if a.is_ascii() && b.is_ascii() {
        return a
            .iter()
            .map(u8::to_ascii_lowercase)
            .cmp(b.iter().map(u8::to_ascii_lowercase));
    }
    let (a, b) = (String::from_utf8_lossy(a), String::from_utf8_lossy(b));
    let lower = |name: &str| {
        name.chars()
            .flat_map(char::to_lowercase)
            .collect::<String>()
    };
    lower(&a).cmp(&lower(&b))
}

fn first(kind: EntryType) -> bool {
    kind == EntryType::Directory
}

impl Workspace {
    /// Lists the part of a directory that `window` gives for the number of entries whose names contain `search`,
    /// without regard to case. It ends early once `goes_on` returns false.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn list(
        &self,
        path: &WorkspacePath,
        order: Order,
        search: &str,
        goes_on: impl Fn() -> bool,
        window: impl FnOnce(usize) -> Range<usize>,
    ) -> Result<Listing, FileError> {
        let directory = self.directory(path)?;
        let search = search.to_lowercase();
        let mut names = Names::default();
        let mut truncated = false;
        let mut seen = 0_usize;
        for_each_until(&directory, |name, kind| {
            let bytes = name.as_os_str().as_bytes();
            seen += 1;
            if seen > MOST_SEARCHED || seen.is_multiple_of(1024) && !goes_on() {
                truncated = true;
                return ControlFlow::Break(());
            }
            if is_temporary(bytes) {
                return ControlFlow::Continue(());
            }
            if !search.is_empty() && !name.to_string_lossy().to_lowercase().contains(&search) {
                return ControlFlow::Continue(());
            }
            if names.entries.len() == MOST_LISTED {
                truncated = true;
                return ControlFlow::Break(());
            }
            // Names are short and few enough: both fit.
            names.entries.push(Place {
                begin: u32::try_from(names.text.len()).unwrap_or(u32::MAX),
                length: u32::try_from(bytes.len()).unwrap_or(0),
                kind: EntryType::of(kind),
            });
            names.text.extend_from_slice(bytes);
            ControlFlow::Continue(())
        })
        .map_err(FileError::of("listing", path))?;
        let total = names.entries.len();
        let window = window(total);
        let places = match order.sort {
            Sort::Name => by_name(&names, order.descending, window),
            Sort::Size | Sort::Modified => by_stat(&directory, &names, order, window, path)?,
        };
        let mut entries = Vec::with_capacity(places.len());
        for place in places {
            let name = names.of(place);
            if let Some(stat) = stat(&directory, OsStr::from_bytes(name), path)? {
                entries.push(entry(name, &stat));
            }
        }
        Ok(Listing {
            entries,
            total,
            truncated,
        })
    }
}

impl Workspace {
    /// Returns the first entry of a directory in no order; `None` for an empty one.
    ///
    /// # Errors
    /// [`FileError`].
    pub(super) fn first_entry(&self, path: &WorkspacePath) -> Result<Option<FileEntry>, FileError> {
        let directory = self.directory(path)?;
        let mut first = None;
        let listed = for_each_until(&directory, |name, _| {
            first = Some(name.as_os_str().to_owned());
            ControlFlow::Break(())
        });
        listed.map_err(FileError::of("listing", path))?;
        let Some(name) = first else { return Ok(None) };
        let stat = stat(&directory, &name, path)?;
        Ok(stat.map(|stat| entry(name.as_bytes(), &stat)))
    }
}

fn entry(name: &[u8], stat: &Stat) -> FileEntry {
    let kind = EntryType::of(FileType::from_raw_mode(stat.st_mode));
    FileEntry {
        name: String::from_utf8_lossy(name).into_owned(),
        in_path: text_of(name),
        kind,
        size: match kind {
            EntryType::File => u64::try_from(stat.st_size).unwrap_or(0),
            _ => 0,
        },
        modified: modified(stat),
    }
}

/// When a file was last changed.
pub(in crate::home) fn modified(stat: &Stat) -> Timestamp {
    let millis = i64::try_from(stat.st_mtime_nsec).unwrap_or(0) / 1_000_000;
    Timestamp::from_millis(stat.st_mtime.saturating_mul(1000).saturating_add(millis))
}

/// The part of `entries` that `window` would be if they were sorted: what lies outside of it is not sorted.
fn sorted_part<T>(
    mut entries: Vec<T>,
    window: Range<usize>,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Vec<T> {
    let end = window.end.min(entries.len());
    let begin = window.start.min(end);
    if begin > 0 && begin < entries.len() {
        entries.select_nth_unstable_by(begin, &compare);
    }
    let mut rest = entries.split_off(begin);
    let count = end - begin;
    if count < rest.len() {
        rest.select_nth_unstable_by(count, &compare);
        rest.truncate(count);
    }
    rest.sort_unstable_by(&compare);
    rest
}

/// The window of the entries sorted by name.
fn by_name(names: &Names, descending: bool, window: Range<usize>) -> Vec<Place> {
    sorted_part(names.entries.clone(), window, |a, b| {
        let order = names.by_name(*a, *b);
        let order = if descending { order.reverse() } else { order };
        first(b.kind).cmp(&first(a.kind)).then(order)
    })
}

/// The window of the entries sorted by what only the system can say of each.
fn by_stat(
    directory: &OwnedFd,
    names: &Names,
    order: Order,
    window: Range<usize>,
    path: &WorkspacePath,
) -> Result<Vec<Place>, FileError> {
    let mut keyed = Vec::with_capacity(names.entries.len());
    for place in &names.entries {
        let Some(stat) = stat(directory, OsStr::from_bytes(names.of(*place)), path)? else {
            continue;
        };
        let key = match order.sort {
            Sort::Size if place.kind == EntryType::File => (stat.st_size, 0),
            Sort::Size | Sort::Name => (0, 0),
            Sort::Modified => (
                stat.st_mtime,
                i64::try_from(stat.st_mtime_nsec).unwrap_or(0),
            ),
        };
        keyed.push((key, *place));
    }
    let page = sorted_part(keyed, window, |(a, at), (b, bt)| {
        let order = match order.descending {
            true => b.cmp(a),
            false => a.cmp(b),
        };
        first(bt.kind)
            .cmp(&first(at.kind))
            .then(order)
            .then_with(|| names.by_name(*at, *bt))
    });
    Ok(page.into_iter().map(|(_, place)| place).collect())
}
