//! A directory as a zip file, while it is read.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::FileType;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::error::FileError;
use super::path::WorkspacePath;
use super::{Workspace, open_regular};
use crate::home::error::HomeError;
use crate::home::files::READ;
use crate::home::measure::open_searchable;
use crate::home::temporary::is_temporary;
use crate::home::walk::{Entry, Visit, walk};

/// Most entries of one zip file: the directory at its end is kept in memory until then.
pub const MOST_PACKED: usize = 50_000;
/// Most bytes of all names in it, for the same reason.
const MOST_NAMES: usize = 8 << 20;
/// Most bytes of all files in it: an agent may make holes of any length.
const MOST_BYTES: u64 = 256 << 30;
/// Most bytes of the names of what was left out.
const MOST_NAMED: usize = 64 << 10;
/// Longest file that is packed, in bytes: what is longer needs a newer format, and may be a hole of any length.
const LONGEST: u64 = u32::MAX as u64;
/// Longest path inside the zip file, in bytes.
const LONGEST_PATH: usize = 4096;
/// The entry that names what was left out.
const LEFT_OUT: &str = "left-out.txt";

const BLOCK: usize = 64 * 1024;

impl Workspace {
    /// Fails for what [`Workspace::write_zip`] would not pack. The number of entries is counted for it.
    ///
    /// # Errors
    /// [`FileError::TooMany`]; otherwise [`FileError`].
    pub fn can_zip(&self, path: &WorkspacePath) -> Result<(), FileError> {
        let top = self.directory(path)?;
        let mut counting = Counting(0);
        go(top, &mut counting, path)?;
        match counting.0 > MOST_PACKED {
            true => Err(FileError::TooMany {
                path: path.to_string(),
                limit: MOST_PACKED,
            }),
            false => Ok(()),
        }
    }

    /// Writes a directory as a zip file. Regular files and directories are packed; what is left out (links, devices, files
    /// that cannot be read or are longer than 4 GiB, names that are not UTF-8) is named in a file of the zip.
    ///
    /// # Errors
    /// [`FileError`], also when `out` takes no more.
    pub fn write_zip(&self, path: &WorkspacePath, out: impl Write) -> Result<(), FileError> {
        let top = self.directory(path)?;
        let name = match path.is_top() {
            true => "workspace",
            false => path.name(),
        };
        let mut packing = Packing {
            zip: ZipWriter::new_stream(out),
            path: format!("{name}/"),
            lengths: Vec::new(),
            packed: 0,
            names: 0,
            bytes: 0,
            left_out: String::new(),
            more_left_out: 0,
            buffer: vec![0; BLOCK],
        };
        let failed = |error| FileError::of("packing", path)(error);
        packing.directory().map_err(failed)?;
        go(top, &mut packing, path)?;
        packing.finish().map_err(failed)
    }
}

fn go(top: OwnedFd, visit: &mut impl Visit<1>, path: &WorkspacePath) -> Result<(), FileError> {
    walk([top], visit, "packing", path.as_ref()).map_err(|error| match error {
        HomeError::Io { source, .. } => FileError::of("packing", path)(source),
        error => error.into(),
    })
}

/// Opens a directory that is to be walked; `None` when that is not allowed or it is none any more.
fn enter(at: &OwnedFd, name: &Path) -> Option<[OwnedFd; 1]> {
    open_searchable(at, name).ok().map(|directory| [directory])
}

struct Counting(usize);

impl Visit<1> for Counting {
    fn entry(
        &mut self,
        [at]: &[OwnedFd; 1],
        entry: &Entry<'_>,
    ) -> io::Result<Option<[OwnedFd; 1]>> {
        self.0 += 1;
        Ok(match entry.kind {
            FileType::Directory => enter(at, entry.name),
            _ => None,
        })
    }

    fn is_done(&self) -> bool {
        self.0 > MOST_PACKED
    }
}

struct Packing<W: Write> {
    zip: ZipWriter<zip::write::StreamWriter<W>>,
    /// Of the directory where the walk is, inside the zip file, with a slash at its end.
    path: String,
    /// The lengths of the paths of the directories above it.
    lengths: Vec<usize>,
    packed: usize,
    /// Bytes of all names.
    names: usize,
    /// Bytes of all files.
    bytes: u64,
    left_out: String,
    more_left_out: u64,
    buffer: Vec<u8>,
}

impl<W: Write> Packing<W> {
    fn leave_out(&mut self, name: &str, why: &str) {
        if self.left_out.len() >= MOST_NAMED {
            self.more_left_out += 1;
            return;
        }
        // One line each, whatever is in a name.
        let path = format!("{}{name}", self.path);
        self.left_out.push_str(&format!("{path:?}: {why}\n"));
    }

    /// The directory where the walk is.
    fn directory(&mut self) -> io::Result<()> {
        let options = SimpleFileOptions::default().last_modified_time(DateTime::default());
        Ok(self.zip.add_directory(self.path.as_str(), options)?)
    }

    fn file(&mut self, at: &OwnedFd, name: &str) -> io::Result<()> {
        let opened = open_regular(at, Path::new(name), READ, &WorkspacePath::default());
        let Ok((file, stat)) = opened else {
            self.leave_out(name, "it cannot be read");
            return Ok(());
        };
        let length = u64::try_from(stat.st_size).unwrap_or(0);
        if length >= LONGEST {
            self.leave_out(name, "it is longer than 4 GiB; download it by itself");
            return Ok(());
        }
        let modified = time::OffsetDateTime::from_unix_timestamp(stat.st_mtime).ok();
        let modified = modified.and_then(|at| {
            let (date, time) = (at.date(), at.time());
            let year = u16::try_from(date.year()).ok()?;
            let (hour, minute, second) = time.as_hms();
            let month = u8::from(date.month());
            DateTime::from_date_and_time(year, month, date.day(), hour, minute, second).ok()
        });
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(1))
            .last_modified_time(modified.unwrap_or_default())
            .unix_permissions(stat.st_mode & 0o777);
        self.zip
            .start_file(format!("{}{name}", self.path), options)?;
        self.bytes += length;
        // Not past the length that it had: who appends as fast as it is read would never let it end.
        let mut content = file.take(length);
        loop {
            let read = content.read(&mut self.buffer)?;
            if read == 0 {
                return Ok(());
            }
            self.zip
                .write_all(self.buffer.get(..read).unwrap_or_default())?;
        }
    }

    fn finish(mut self) -> io::Result<()> {
        if self.is_done() {
            self.left_out.push_str(
                "The directory has more than is packed; download its directories one by one.\n",
            );
        }
        if !self.left_out.is_empty() {
            let options = SimpleFileOptions::default().last_modified_time(DateTime::default());
            self.zip.start_file(LEFT_OUT, options)?;
            self.zip.write_all(self.left_out.as_bytes())?;
            if self.more_left_out > 0 {
                writeln!(self.zip, "and at least {} more", self.more_left_out)?;
            }
        }
        self.zip.finish()?;
        Ok(())
    }
}

impl<W: Write> Visit<1> for Packing<W> {
    fn entry(
        &mut self,
        [at]: &[OwnedFd; 1],
        entry: &Entry<'_>,
    ) -> io::Result<Option<[OwnedFd; 1]>> {
        if is_temporary(entry.name.as_os_str().as_encoded_bytes()) {
            return Ok(None);
        }
        let Some(name) = entry.name.to_str() else {
            self.leave_out(&entry.name.to_string_lossy(), "its name is not UTF-8");
            return Ok(None);
        };
        // Programs that unpack may take them for something else than a name.
        if name.contains(|c: char| c == '\\' || c.is_control()) {
            self.leave_out(name, "its name has a backslash or a control character");
            return Ok(None);
        }
        if self.path.len() + name.len() >= LONGEST_PATH {
            self.leave_out(name, "its path is too long");
            return Ok(None);
        }
        self.packed += 1;
        self.names += self.path.len() + name.len();
        match entry.kind {
            FileType::RegularFile => {
                self.file(at, name)?;
                Ok(None)
            }
            FileType::Directory => {
                let Some(entered) = enter(at, entry.name) else {
                    self.leave_out(name, "it cannot be read");
                    return Ok(None);
                };
                self.lengths.push(self.path.len());
                self.path.push_str(name);
                self.path.push('/');
                self.directory()?;
                Ok(Some(entered))
            }
            _ => {
                self.leave_out(name, "it is neither a regular file nor a directory");
                Ok(None)
            }
        }
    }

    fn is_done(&self) -> bool {
        self.packed > MOST_PACKED || self.names > MOST_NAMES || self.bytes > MOST_BYTES
    }

    fn leave(&mut self, _: &[OwnedFd; 1]) -> io::Result<()> {
        if let Some(length) = self.lengths.pop() {
            self.path.truncate(length);
        }
        Ok(())
    }
}
