//! Lines of a file that an agent may have written.

use std::fs::File;
use std::io::{self, BufRead};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

/// Longest line, in bytes. Longer ones are skipped.
pub const LINE: usize = 1024 * 1024;
/// Most lines that are skipped or unreadable: one more ends the reading.
pub const MOST_UNREADABLE: usize = 5000;
/// Most lines that are read: the service writes no more to a file of 64 MiB.
pub const MOST_LINES: usize = 1_000_000;
/// Bytes that are read at once, from the end to the beginning.
const CHUNK: usize = 256 * 1024;

/// Judgement of a reader about a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is a line of a conversation.
    Readable,
    /// It is none.
    Unreadable,
    /// No further line is needed.
    Enough,
}

/// Place of a line in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Offset of its first byte.
    pub offset: u64,
    /// Its length in bytes, without the line break; at most [`LINE`].
    pub length: u32,
}

/// Outcome of reading lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scan {
    /// Lines that were left out: empty, unreadable, longer than [`LINE`], not UTF-8, or with NUL characters.
    pub skipped: usize,
    /// The reading ended before the whole range was read.
    pub ended_early: bool,
    /// Lines that were read.
    lines: usize,
}

impl Scan {
    /// Returns true if the reading ended by a bound of lines: nothing before them is read.
    pub fn is_damaged(&self) -> bool {
        self.skipped > MOST_UNREADABLE || self.lines >= MOST_LINES
    }

    /// Counts a line; breaks at one that nothing is read after.
    fn count(&mut self, verdict: Verdict) -> ControlFlow<()> {
        self.lines += 1;
        match verdict {
            Verdict::Readable => {}
            Verdict::Unreadable => self.skipped += 1,
            Verdict::Enough => {
                self.ended_early = true;
                return ControlFlow::Break(());
            }
        }
        if self.is_damaged() {
            self.ended_early = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// Returns true if a line can be written and read again.
pub(super) fn is_line(text: &str) -> bool {
    !text.is_empty() && text.len() <= LINE && !text.contains(['\n', '\0'])
}

/// Judges a line by its bytes, and then by `see`.
fn judge(bytes: &[u8], is_too_long: bool, see: impl FnOnce(&str) -> Verdict) -> Verdict {
    let text = std::str::from_utf8(bytes).ok();
    match text.filter(|text| !is_too_long && is_line(text)) {
        Some(text) => see(text),
        None => Verdict::Unreadable,
    }
}

/// Calls `see` with each whole line that is text, the first one first, and keeps no more than one of them in memory. What follows the
/// last line break does not count. Ends after [`MOST_LINES`], or more than
/// [`MOST_UNREADABLE`] that were left out.
pub(super) fn for_each_line(
    mut reader: impl BufRead,
    mut see: impl FnMut(&str) -> Verdict,
) -> io::Result<Scan> {
    let mut line = Vec::new();
    let (mut length, mut scan) = (0_usize, Scan::default());
    loop {
        let piece = match reader.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            piece => piece?,
        };
        if piece.is_empty() {
            return Ok(scan);
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let (part, _) = piece.split_at(end.unwrap_or(piece.len()));
        let used = part.len() + usize::from(end.is_some());
        length = length.saturating_add(part.len());
        if length <= LINE {
            line.extend_from_slice(part);
        }
        reader.consume(used);
        if end.is_none() {
            continue;
        }
        if scan.count(judge(&line, length > LINE, &mut see)).is_break() {
            return Ok(scan);
        }
        line.clear();
        length = 0;
    }
}

/// Calls `see` with each whole line that is text and begins at `begin` or later, the last one first, and keeps no more than one of them
/// in memory. What follows the last line break before `end` does not count. Ends after [`MOST_LINES`], or more than
/// [`MOST_UNREADABLE`] that were left out.
pub(super) fn for_each_line_backwards(
    file: &File,
    begin: u64,
    end: u64,
    mut see: impl FnMut(Place, &str) -> Verdict,
) -> io::Result<Scan> {
    // The byte before tells whether a line begins there.
    let from = begin.saturating_sub(1);
    let (mut scan, mut chunk) = (Scan::default(), Vec::new());
    // Bytes of the line that begins before what was read; `None` before the last line break.
    let mut rest: Option<Vec<u8>> = None;
    let mut is_too_long = false;
    let mut position = end;
    while position > from {
        let length = usize::try_from(position - from).map_or(CHUNK, |left| left.min(CHUNK));
        position -= length as u64;
        chunk.resize(length, 0);
        // The agent may have made it shorter meanwhile: nothing whole is left then.
        if let Err(error) = file.read_exact_at(&mut chunk, position) {
            match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    (rest, is_too_long) = (None, false);
                    continue;
                }
                _ => return Err(error),
            }
        }
        let mut unread = chunk.as_slice();
        while let Some(at) = unread.iter().rposition(|byte| *byte == b'\n') {
            let (before, line) = unread.split_at(at);
            let line = line.get(1..).unwrap_or_default();
            if let Some(mut end) = rest.take() {
                let bytes = match end.is_empty() {
                    true => line,
                    false => {
                        end.splice(0..0, line.iter().copied());
                        end.as_slice()
                    }
                };
                let place = Place {
                    offset: position + at as u64 + 1,
                    length: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
                };
                let is_long = is_too_long || bytes.len() > LINE;
                let verdict = judge(bytes, is_long, |text| see(place, text));
                if scan.count(verdict).is_break() {
                    return Ok(scan);
                }
            }
            (rest, is_too_long) = (Some(Vec::new()), false);
            unread = before;
        }
        if let Some(rest) = &mut rest {
            match is_too_long || rest.len() + unread.len() > LINE {
                true => {
                    rest.clear();
                    is_too_long = true;
                }
                false => {
                    rest.splice(0..0, unread.iter().copied());
                }
            }
        }
    }
    if let Some(bytes) = rest.filter(|_| begin == 0) {
        let place = Place {
            offset: 0,
            length: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        };
        // Nothing is left to read.
        let _ = scan.count(judge(&bytes, is_too_long, |text| see(place, text)));
    }
    Ok(scan)
}
