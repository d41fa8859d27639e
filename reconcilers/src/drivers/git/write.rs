//! Writing the files of a commit, as `git cat-file --batch` gives them one after the other (git-cat-file(1)).

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::GitError;
use super::tree::Blob;

/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;
/// Longest first line of an object.
const HEAD: u64 = 256;

/// What the writer and those who wait for it share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Files that were written.
    pub(super) written: AtomicUsize,
    /// Nobody waits any more.
    pub(super) cancelled: AtomicBool,
}

/// Writes all files beneath `into`. Each is made relative to the handle of its directory and must be new, so nothing that is
/// there, or comes from the commit, leads elsewhere. Blocks.
pub(super) fn write(
    objects: impl Read,
    into: &Path,
    blobs: &[Blob],
    shared: &Shared,
) -> Result<(), GitError> {
    let mut objects = BufReader::with_capacity(PIECE, objects);
    let mut way = Way::from(into)?;
    for blob in blobs {
        if shared.cancelled.load(Ordering::Relaxed) {
            return Err(GitError::Storage(io::ErrorKind::Interrupted.into()));
        }
        begin(&mut objects, blob)?;
        let mut file = way.create(blob)?;
        copy(&mut objects, &mut file, blob)?;
        shared.written.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Reads the first line of an object, which must be the one that was asked for.
fn begin(objects: &mut impl BufRead, blob: &Blob) -> Result<(), GitError> {
    let mut line = String::new();
    let read = objects.take(HEAD).read_line(&mut line);
    let expected = format!("{} blob {}\n", blob.id, blob.size);
    match read.is_ok() && line == expected {
        true => Ok(()),
        false => Err(incomplete(blob)),
    }
}

/// Copies the content of an object and reads the line end behind it. Without the standard library's `copy`, which asks the
/// system several times how to do it best, for each of many small files.
fn copy(objects: &mut impl BufRead, file: &mut File, blob: &Blob) -> Result<(), GitError> {
    let mut left = blob.size;
    while left > 0 {
        let there = objects.fill_buf().map_err(GitError::Storage)?;
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        let piece = there.get(..most).unwrap_or(there);
        if piece.is_empty() {
            return Err(incomplete(blob));
        }
        file.write_all(piece).map_err(GitError::Storage)?;
        let taken = piece.len();
        objects.consume(taken);
        left = left.saturating_sub(u64::try_from(taken).unwrap_or(u64::MAX));
    }
    let mut end = [0; 1];
    match objects.read_exact(&mut end).is_ok() && end == *b"\n" {
        true => Ok(()),
        false => Err(incomplete(blob)),
    }
}

fn incomplete(blob: &Blob) -> GitError {
    GitError::Hostile(format!("the content of {} is missing", blob.path))
}

/// The directories from the top to where files are being made.
struct Way {
    top: OwnedFd,
    open: Vec<(String, OwnedFd)>,
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl Way {
    fn from(top: &Path) -> Result<Self, GitError> {
        let top = rustix::fs::open(top, DIRECTORY, Mode::empty());
        let top = top.map_err(|errno| GitError::Storage(errno.into()))?;
        let open = Vec::new();
        Ok(Self { top, open })
    }

    fn here(&self) -> BorrowedFd<'_> {
        match self.open.last() {
            Some((_, directory)) => directory.as_fd(),
            None => self.top.as_fd(),
        }
    }

    fn create(&mut self, blob: &Blob) -> Result<File, GitError> {
        let failed = |errno: Errno| match errno {
            // The same name twice, or once as a file and once as a directory.
            Errno::EXIST | Errno::NOTDIR | Errno::LOOP => {
                GitError::Hostile(format!("{} is there twice", blob.path))
            }
            errno => GitError::Storage(errno.into()),
        };
        let (folders, name) = match blob.path.rsplit_once('/') {
            Some((folders, name)) => (folders, name),
            None => ("", blob.path.as_str()),
        };
        let wanted: Vec<&str> = folders.split('/').filter(|name| !name.is_empty()).collect();
        let same = self.open.iter().zip(&wanted);
        let same = same
            .take_while(|((open, _), wanted)| open == *wanted)
            .count();
        self.open.truncate(same);
        for folder in wanted.into_iter().skip(same) {
            let directory = enter(self.here(), folder).map_err(failed)?;
            self.open.push((folder.to_owned(), directory));
        }
        let mode = match blob.executable {
            true => Mode::from_raw_mode(0o755),
            false => Mode::from_raw_mode(0o644),
        };
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(self.here(), name, flags, mode).map_err(failed)?;
        // Whatever the umask of the service is.
        rustix::fs::fchmod(&file, mode).map_err(failed)?;
        Ok(File::from(file))
    }
}

/// Opens a directory, which is made if it is missing.
fn enter(parent: BorrowedFd<'_>, name: &str) -> rustix::io::Result<OwnedFd> {
    let mode = Mode::from_raw_mode(0o755);
    let made = rustix::fs::mkdirat(parent, name, mode);
    if !matches!(made, Ok(()) | Err(Errno::EXIST)) {
        made?;
    }
    let directory = rustix::fs::openat(parent, name, DIRECTORY, Mode::empty())?;
    if made.is_ok() {
        rustix::fs::fchmod(&directory, mode)?;
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn blob(path: &str, size: u64) -> Blob {
        Blob {
            path: path.to_owned(),
            id: "12".to_owned(),
            size,
            executable: path.ends_with('x'),
        }
    }

    #[test]
    fn files_get_their_bytes_and_one_of_two_modes() {
        let into = tempfile::tempdir().unwrap();
        let shared = Shared::default();
        let blobs = [
            blob("a", 1),
            blob("b/c/d", 0),
            blob("b/c/x", 3),
            blob("b/e", 1),
        ];
        let objects = b"12 blob 1\nA\n12 blob 0\n\n12 blob 3\n\n\n\n\n12 blob 1\nE\n";
        write(&objects[..], into.path(), &blobs, &shared).unwrap();
        for (path, bytes, mode) in [
            ("a", "A", 0o644),
            ("b/c/d", "", 0o644),
            ("b/c/x", "\n\n\n", 0o755),
            ("b/e", "E", 0o644),
        ] {
            let path = into.path().join(path);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), bytes);
            let seen = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(seen & 0o7777, mode);
        }
        assert_eq!(shared.written.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn l25_l27_nothing_is_followed_replaced_or_taken_for_something_else() {
        let outside = tempfile::tempdir().unwrap();
        for (objects, blobs) in [
            (
                "12 blob 1\nA\n12 blob 1\nA\n",
                vec![blob("a", 1), blob("a", 1)],
            ),
            (
                "12 blob 1\nA\n12 blob 1\nA\n",
                vec![blob("a", 1), blob("a/b", 1)],
            ),
            ("12 blob 1\nA\n", vec![blob("link/a", 1)]),
            ("12 blob 1\nA\n", vec![blob("link", 1)]),
            ("12 missing\n", vec![blob("a", 1)]),
            ("12 tree 1\nA\n", vec![blob("a", 1)]),
            ("13 blob 1\nA\n", vec![blob("a", 1)]),
            ("12 blob 2\nAB\n", vec![blob("a", 1)]),
            ("12 blob 2\nA\n", vec![blob("a", 2)]),
            ("12 blob 1\nAB", vec![blob("a", 1)]),
            ("", vec![blob("a", 1)]),
        ] {
            let into = tempfile::tempdir().unwrap();
            std::os::unix::fs::symlink(outside.path(), into.path().join("link")).unwrap();
            let seen = write(objects.as_bytes(), into.path(), &blobs, &Shared::default());
            assert!(
                matches!(seen, Err(GitError::Hostile(_))),
                "{objects:?}: {seen:?}"
            );
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
