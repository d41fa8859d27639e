//! Compaction of a conversation's file: only the last line of each entry is kept.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;

use serde::Deserialize;

use super::folder::{ENTRIES, HeldFolder, LONGEST, length, note_reading, reader_of};
use super::lines::{Verdict, for_each_line};
use crate::fault;
use crate::home::files::READ;
use crate::home::workspace::FileError;

/// Shortest file that is compacted, in bytes.
pub(super) const SHORTEST: u64 = LONGEST / 2;
/// Growth of a file between two compactions, in bytes.
pub(super) const GROWTH: u64 = LONGEST / 8;
/// Least that a compaction has to save, in bytes.
pub(super) const SAVING: u64 = GROWTH / 2;
/// Length from which on each append tries a compaction, in bytes: the next one might not fit.
const LAST: u64 = LONGEST - SAVING;
/// Most entries of a file that is compacted: an agent may have written millions of short ones.
const MOST_ENTRIES: usize = 400_000;

/// The part of a line that says which lines before it no longer count.
#[derive(Clone, Copy, Deserialize)]
struct Line {
    id: u64,
    #[serde(default)]
    removed: bool,
}

impl HeldFolder {
    /// Compacts the file of entries when it is longer than 32 MiB and has grown by 8 MiB since the last compaction: of each `id` the
    /// last line is kept, unless it says `removed`; lines without an `id` are left out. A file that would not become 4 MiB shorter is
    /// left as it is. A process that is killed meanwhile leaves the old or the new file.
    ///
    /// # Errors
    /// [`FileError::Full`]; otherwise as [`super::Folder::entries`]. The file is as it was then.
    pub fn compact_entries(&mut self) -> Result<(), FileError> {
        let path = self.path_of(ENTRIES);
        let failed = || FileError::of("writing", &path);
        let Some((file, stat)) = self.open_entries(READ, &path)? else {
            return Ok(());
        };
        let length = length(&stat);
        if !(self.compact_from..=LONGEST).contains(&length) {
            return Ok(());
        }
        self.compact_from = LAST.min(length + GROWTH);
        // Never finished: a page reads more of each line.
        let _note = note_reading(&self.home, &path, length);
        let Some(kept) = find_last_lines(&file, length).map_err(failed())? else {
            return Ok(());
        };
        if length.saturating_sub(kept.bytes) < self.least_saving {
            return Ok(());
        }
        let temporary = self.home.prepare(self.dir.as_fd(), io::empty(), 0o644);
        let temporary = temporary.map_err(failed())?;
        let compacted = copy_lines(&file, length, &kept.numbers, temporary.file());
        let compacted = compacted.map_err(failed())?;
        fault::point("conversation.compact.before_rename");
        temporary
            .replace(&self.dir, OsStr::new(ENTRIES))
            .and_then(|()| rustix::fs::fsync(&self.dir))
            .map_err(FileError::of("writing", &path))?;
        drop(temporary);
        self.compact_from = (compacted + GROWTH).clamp(SHORTEST, LAST);
        Ok(())
    }
}

/// Lines that a compaction keeps.
struct Kept {
    /// Their numbers, sorted.
    numbers: Vec<usize>,
    /// Their length on the disk.
    bytes: u64,
}

/// Finds the lines to keep; `None` with more than [`MOST_ENTRIES`] entries, or too many lines that cannot be read.
fn find_last_lines(file: &File, length: u64) -> io::Result<Option<Kept>> {
    let mut last = HashMap::new();
    let mut number = 0;
    let scan = for_each_line(reader_of(file, length)?, |text| {
        let read = serde_json::from_str(text);
        if let Ok(Line { id, removed }) = read {
            last.insert(id, (number, text.len() as u64 + 1, removed));
        }
        number += 1;
        match read {
            _ if last.len() > MOST_ENTRIES => Verdict::Enough,
            Ok(_) => Verdict::Readable,
            Err(_) => Verdict::Unreadable,
        }
    })?;
    if scan.ended_early {
        return Ok(None);
    }
    let mut kept = Kept {
        numbers: Vec::with_capacity(last.len()),
        bytes: 0,
    };
    for (number, bytes, removed) in last.into_values() {
        if !removed {
            kept.numbers.push(number);
            kept.bytes += bytes;
        }
    }
    kept.numbers.sort_unstable();
    Ok(Some(kept))
}

/// Copies lines by their sorted numbers, and returns their length on the disk.
fn copy_lines(from: &File, length: u64, kept: &[usize], to: &File) -> io::Result<u64> {
    let mut kept = kept.iter().copied().peekable();
    let mut writer = BufWriter::new(to);
    let (mut number, mut copied, mut written) = (0, 0, Ok(()));
    for_each_line(reader_of(from, length)?, |text| {
        if written.is_ok() && kept.next_if_eq(&number).is_some() {
            written = writeln!(writer, "{text}");
            copied += text.len() as u64 + 1;
        }
        number += 1;
        match written.is_ok() && kept.peek().is_some() {
            true => Verdict::Readable,
            false => Verdict::Enough,
        }
    })?;
    written.and_then(|()| writer.flush())?;
    drop(writer);
    to.sync_all()?;
    Ok(copied)
}
