//! Lines of a file that an agent may have written.

use std::io::{self, BufRead};

/// Longest line, in bytes. Longer ones are skipped.
pub const LINE: usize = 1024 * 1024;

/// Returns true if a line can be written and read again.
pub(super) fn is_line(text: &str) -> bool {
    !text.is_empty() && text.len() <= LINE && !text.contains(['\n', '\0'])
}

/// Calls `see` with each whole line that is text, and keeps no more than one of them in memory. Returns the number of those
/// that are skipped: too long, not UTF-8, or with NUL characters, as a loss of power leaves them. Empty lines, and what
/// follows the last line break, do not count.
pub(super) fn for_each_line(
    mut reader: impl BufRead,
    mut see: impl FnMut(&str),
) -> io::Result<usize> {
    let mut line = Vec::new();
    let (mut length, mut skipped) = (0_usize, 0);
    loop {
        let piece = match reader.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            piece => piece?,
        };
        if piece.is_empty() {
            return Ok(skipped);
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
        let text = std::str::from_utf8(&line).ok();
        match text.filter(|text| length <= LINE && is_line(text)) {
            Some(text) => see(text),
            None => skipped += usize::from(length > 0),
        }
        line.clear();
        length = 0;
    }
}

/// Leaves out what is before the next line.
pub(super) fn skip_line(mut reader: impl BufRead) -> io::Result<()> {
    reader.skip_until(b'\n').map(drop)
}
