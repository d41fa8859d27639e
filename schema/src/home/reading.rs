//! Notes of the users' files that are being read, kept in the data directory: a file at which the process dies is found.
//!
//! ```text
//! <data>/reading/<process>/<number>   one file under way, while it is read
//! <data>/reading/<process>/lock       locked by its process: a file, since NFS locks no directories
//! <data>/reading/suspects/<digest>    one that was being read when a process died, until it has been read to its end
//! ```
//!
//! A note is a small file without `fsync`: a reset of the machine may lose it, an end of the process does not. A reader of
//! what may take long takes one first: settings files of agents right before they are parsed, conversations before their lines are read.
//! Only [`Note::finish`], after all of the file was read, clears what it is suspected of: a page of a conversation may end before the line
//! at which the process dies. A start counts the notes of processes that have died; a file that was under way at [`DEATHS`] deaths without a
//! complete reading in between is set aside: renamed beside itself, so that nothing reads it by its name.

use std::collections::{BTreeMap, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Homes;
use super::error::HomeError;
use super::rename::rename_beside_agent;
use super::root::{check_private, ensure_dir};
use super::{beneath, marker};
use crate::ids::{Timestamp, Uid, UserName};

/// Directory of the notes, inside the data directory.
pub const READING_DIR: &str = "reading";
const SUSPECTS: &str = "suspects";
const LOCK: &str = "lock";

/// Length in bytes from which on reading a file may take long.
pub const LONG_READING: u64 = 64 * 1024;
/// Deaths after which a file is set aside.
const DEATHS: u32 = 2;
/// Most notes of one process at once; a further reading has none.
const MOST_NOTES: usize = 256;
/// Most suspects that are kept.
const MOST_SUSPECTS: usize = 256;
/// Most directories of processes that one start looks into.
const MOST_PROCESSES: usize = 1000;

/// A file of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Noted {
    user: UserName,
    uid: Uid,
    /// Relative to the user's directory.
    path: String,
    /// Deaths at which it was under way; of suspects only.
    #[serde(default)]
    deaths: u32,
}

impl Noted {
    fn digest(&self) -> String {
        let mut digest = Sha256::new();
        digest.update(self.uid.as_str());
        digest.update([0]);
        digest.update(&self.path);
        hex::encode(digest.finalize())
    }
}

/// A file that was set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Its user.
    pub uid: Uid,
    /// The name of the user.
    pub user: UserName,
    /// The path that it had, relative to the user's directory.
    pub path: String,
    /// The name that it has now, in the same directory.
    pub name: String,
}

/// The notes of this process. Clones share them.
#[derive(Debug, Clone)]
pub struct Readings(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    root: OwnedFd,
    suspects: OwnedFd,
    own: OwnedFd,
    /// Locked for as long as the process lives.
    _lock: OwnedFd,
    name: String,
    path: PathBuf,
    next: AtomicU64,
    held: AtomicUsize,
    /// Digests of suspects; mostly none.
    known: Mutex<HashSet<String>>,
}

/// A reading that is under way, until this is dropped.
#[derive(Default)]
pub struct Note(Option<Held>);

struct Held {
    readings: Readings,
    number: String,
    digest: String,
    is_complete: bool,
}

impl Note {
    /// Ends the reading of a file that was read and parsed to its end: what it was suspected of is forgotten.
    pub fn finish(mut self) {
        if let Some(held) = &mut self.0 {
            held.is_complete = true;
        }
    }
}

impl fmt::Debug for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Note").finish_non_exhaustive()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let inner = &self.readings.0;
        let _ = rustix::fs::unlinkat(&inner.own, &self.number, AtFlags::empty());
        inner.held.fetch_sub(1, Ordering::Relaxed);
        if self.is_complete && inner.known().remove(&self.digest) {
            let _ = rustix::fs::unlinkat(&inner.suspects, &self.digest, AtFlags::empty());
        }
    }
}

impl Inner {
    fn known(&self) -> MutexGuard<'_, HashSet<String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Readings {
    /// Opens `<data_dir>/reading` and makes the place of this process in it.
    ///
    /// # Errors
    /// [`HomeError::RefusedRoot`] when others may write there; [`HomeError::Io`].
    pub fn open(data_dir: &Path) -> Result<Self, HomeError> {
        let path = data_dir.join(READING_DIR);
        let failed = HomeError::io("opening", &path);
        let open = || -> rustix::io::Result<(OwnedFd, OwnedFd, [OwnedFd; 2], String)> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let data = rustix::fs::open(data_dir, flags, Mode::empty())?;
            let root = ensure_dir(&data, READING_DIR)?;
            let suspects = ensure_dir(&root, SUSPECTS)?;
            // Other processes see it when it is locked.
            let name = uuid::Uuid::new_v4().simple().to_string();
            let hidden = format!(".{name}");
            rustix::fs::mkdirat(&root, &hidden, Mode::RWXU)?;
            let own = beneath::open_dir(&root, Path::new(&hidden))?;
            let lock = open_lock(&own, OFlags::CREATE, Mode::RUSR | Mode::WUSR)?;
            flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            rustix::fs::renameat(&root, &hidden, &root, &name)?;
            Ok((root, suspects, [own, lock], name))
        };
        let (root, suspects, [own, lock], name) = open().map_err(failed)?;
        check_private(&root, &path)?;
        Ok(Self(Arc::new(Inner {
            root,
            suspects,
            own,
            _lock: lock,
            name,
            path,
            next: AtomicU64::new(0),
            held: AtomicUsize::new(0),
            known: Mutex::default(),
        })))
    }

    /// Notes that a file of a user is being read. `path` is relative to the user's directory. Without room, or on a disk that
    /// is full, the reading goes on without a note.
    fn note(&self, user: &UserName, uid: &Uid, path: &str) -> Note {
        let inner = &self.0;
        if inner.held.fetch_add(1, Ordering::Relaxed) >= MOST_NOTES {
            inner.held.fetch_sub(1, Ordering::Relaxed);
            return Note::default();
        }
        let noted = Noted {
            user: user.clone(),
            uid: uid.clone(),
            path: path.to_owned(),
            deaths: 0,
        };
        let held = Held {
            readings: self.clone(),
            number: inner.next.fetch_add(1, Ordering::Relaxed).to_string(),
            digest: noted.digest(),
            is_complete: false,
        };
        match write(&inner.own, &held.number, &noted) {
            Ok(()) => Note(Some(held)),
            Err(error) => {
                tracing::debug!(%error, "a reading could not be noted");
                Note::default()
            }
        }
    }

    /// Counts what processes that have died were reading, and sets aside what was under way too often. Belongs to the start,
    /// before anything is read. A file that cannot be renamed stays a suspect.
    ///
    /// # Errors
    /// [`HomeError::Io`] when the notes cannot be listed.
    pub fn set_suspects_aside(
        &self,
        homes: &Homes,
        now: Timestamp,
    ) -> Result<Vec<SetAside>, HomeError> {
        let failed = |errno: Errno| HomeError::io("reading", &self.0.path)(errno);
        let mut suspects = self.read_all(&self.0.suspects).map_err(failed)?;
        let mut fresh = HashSet::new();
        for (digest, noted) in self.take_notes_of_dead().map_err(failed)? {
            let deaths = suspects.get(&digest).map_or(0, |known| known.deaths);
            let noted = Noted {
                deaths: deaths.saturating_add(1),
                ..noted
            };
            fresh.insert(digest.clone());
            suspects.insert(digest, noted);
        }
        let mut set_aside = Vec::new();
        let mut kept = HashSet::new();
        // Those of this start come first: the others go where there are too many.
        let mut suspects: Vec<_> = suspects.into_iter().collect();
        suspects.sort_by_key(|(digest, _)| !fresh.contains(digest));
        for (digest, noted) in suspects {
            let is_fresh = fresh.contains(&digest);
            let moved = match noted.deaths >= DEATHS {
                true => move_aside(homes, &noted, now),
                false => Ok(None),
            };
            let is_over = match moved {
                Ok(Some(name)) => {
                    set_aside.push(SetAside {
                        uid: noted.uid.clone(),
                        user: noted.user.clone(),
                        path: noted.path.clone(),
                        name,
                    });
                    true
                }
                // Gone by itself.
                Ok(None) => noted.deaths >= DEATHS,
                Err(error) => {
                    let error = crate::error::chain(&error);
                    let (user, path) = (noted.user.as_str(), noted.path.as_str());
                    tracing::warn!(user, path, error, "a file could not be set aside");
                    false
                }
            };
            if is_over || kept.len() >= MOST_SUSPECTS {
                let _ = rustix::fs::unlinkat(&self.0.suspects, &digest, AtFlags::empty());
                continue;
            }
            if is_fresh && let Err(error) = rewrite(&self.0.suspects, &digest, &noted) {
                tracing::warn!(%error, "a reading that was interrupted could not be counted");
            }
            kept.insert(digest);
        }
        *self.0.known() = kept;
        Ok(set_aside)
    }

    /// Forgets what is still being read: the process ends because it was asked to.
    pub fn close(&self) {
        remove_process(&self.0.root, &self.0.own, &self.0.name);
    }

    /// Takes the notes of all processes that have died, each file once for each of them.
    fn take_notes_of_dead(&self) -> rustix::io::Result<Vec<(String, Noted)>> {
        let mut all = Vec::new();
        for name in names(&self.0.root, MOST_PROCESSES)? {
            if name == SUSPECTS || name == self.0.name || name.starts_with('.') {
                continue;
            }
            let Ok(dead) = beneath::open_dir(&self.0.root, Path::new(&name)) else {
                continue;
            };
            // A process that lives holds it; one that stops removes it first.
            let _lock = match open_lock(&dead, OFlags::empty(), Mode::empty()) {
                Ok(lock) if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() => {
                    Some(lock)
                }
                Err(Errno::NOENT) => None,
                Ok(_) | Err(_) => continue,
            };
            let notes = self.read_all(&dead)?;
            all.extend(notes);
            remove_process(&self.0.root, &dead, &name);
        }
        Ok(all)
    }

    /// Reads the notes in a directory, by digest. What cannot be read was being written.
    fn read_all(&self, dir: &OwnedFd) -> rustix::io::Result<BTreeMap<String, Noted>> {
        let mut all = BTreeMap::new();
        for name in names(dir, MOST_NOTES.max(MOST_SUSPECTS) + 1)? {
            let noted = marker::read_file(dir, &name).ok().flatten();
            let noted = noted.and_then(|bytes| serde_json::from_slice::<Noted>(&bytes).ok());
            if let Some(noted) = noted {
                all.insert(noted.digest(), noted);
            }
        }
        Ok(all)
    }
}

impl Homes {
    /// Notes readings of users' files from now on.
    pub fn note_readings(&self, readings: &Readings) {
        let _ = self.readings.set(readings.clone());
    }

    /// Notes of one user's files.
    pub(super) fn notes_of(&self, user: &UserName, uid: &Uid) -> NotesOfUser {
        let of_user = |readings: &Readings| (readings.clone(), user.clone(), uid.clone());
        NotesOfUser(self.readings.get().map(of_user).map(Arc::new))
    }
}

/// Notes of one file; none of one that is parsed in no time.
#[derive(Clone, Default)]
pub struct FileNotes(NotesOfUser, Box<str>);

impl FileNotes {
    /// Notes that the file is being parsed.
    pub fn note(&self) -> Note {
        self.0.note(&self.1)
    }
}

/// It is no part of what was read.
impl PartialEq for FileNotes {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for FileNotes {}

/// Notes of one user's files; none where readings are not noted.
#[derive(Debug, Clone, Default)]
pub(super) struct NotesOfUser(Option<Arc<(Readings, UserName, Uid)>>);

impl NotesOfUser {
    pub(super) fn of_file(&self, path: &str) -> FileNotes {
        FileNotes(self.clone(), path.into())
    }

    pub(super) fn note(&self, path: &str) -> Note {
        match self.0.as_deref() {
            Some((readings, user, uid)) => readings.note(user, uid, path),
            None => Note::default(),
        }
    }
}

/// Renames a regular file beside itself, whatever has been planted around it. `None` when it is not there.
fn move_aside(homes: &Homes, noted: &Noted, now: Timestamp) -> Result<Option<String>, HomeError> {
    let path = Path::new(&noted.path);
    let failed = |errno: Errno| HomeError::io("setting aside", path)(errno);
    let Some(home) = homes.open_existing(&noted.user, &noted.uid)? else {
        return Ok(None);
    };
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(None);
    };
    let opened = match parent.as_os_str().is_empty() {
        true => None,
        false => match beneath::open_dir(home.dir(), parent) {
            Ok(opened) => Some(opened),
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::INVAL) => return Ok(None),
            Err(errno) => return Err(failed(errno)),
        },
    };
    let dir = opened.as_ref().map_or(home.dir(), AsFd::as_fd);
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {}
        Ok(_) | Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(failed(errno)),
    }
    let new = format!("{}.set-aside-{}", name.to_string_lossy(), now.to_basic());
    match rename_beside_agent(dir, name, dir, new.as_str()) {
        Ok(()) => Ok(Some(new)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(failed(errno)),
    }
}

/// Names in a directory, at most so many.
fn names(dir: &OwnedFd, most: usize) -> rustix::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)?.take(most + 2) {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    Ok(names)
}

/// Opens the lock of a process. NFS locks files that are open for writing only.
fn open_lock(dir: &OwnedFd, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
    beneath::open(dir, Path::new(LOCK), flags | OFlags::RDWR, mode)
}

fn write(dir: &OwnedFd, name: &str, noted: &Noted) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let file = beneath::open(dir, Path::new(name), flags, Mode::RUSR | Mode::WUSR)?;
    io::Write::write_all(&mut std::fs::File::from(file), &serde_json::to_vec(noted)?)
}

/// Writes a suspect, in place of what was known of it. Lost in a loss of power, it has one death less.
fn rewrite(dir: &OwnedFd, name: &str, noted: &Noted) -> io::Result<()> {
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => write(dir, name, noted),
        Err(errno) => Err(errno.into()),
    }
}

/// Removes the directory of a process; the lock last, without which it counts as dead.
fn remove_process(root: &OwnedFd, dir: &OwnedFd, name: &str) {
    let notes = names(dir, MOST_NOTES + 1).unwrap_or_default();
    let notes = notes
        .iter()
        .map(String::as_str)
        .filter(|note| *note != LOCK);
    for note in notes.chain([LOCK]) {
        let _ = rustix::fs::unlinkat(dir, note, AtFlags::empty());
    }
    let _ = rustix::fs::unlinkat(root, name, AtFlags::REMOVEDIR);
}
