//! The lines of a manifest, written and read one by one.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::BackupError;
use super::manifest::{Head, LINES, LONGEST_LINE, Line, damaged, parse_head, unescape};

/// Writes lines.
pub(super) struct LineWriter {
    out: BufWriter<File>,
    hash: Sha256,
    offset: u64,
    pub(super) lines: u64,
}

impl LineWriter {
    pub(super) fn new(file: File) -> Self {
        Self {
            out: BufWriter::with_capacity(1 << 16, file),
            hash: Sha256::new(),
            offset: 0,
            lines: 0,
        }
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.hash.update(&text);
        self.offset += text.len() as u64;
        self.lines += 1;
        self.out.write_all(&text)
    }

    /// The file, written, and the digest of the lines.
    pub(super) fn end(self) -> io::Result<(File, [u8; 32])> {
        let file = self
            .out
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        Ok((file, self.hash.finalize().into()))
    }
}

/// Parses a manifest, as far as the head says that it goes; returns the head and the number of its lines.
///
/// # Errors
/// [`BackupError::NotABackup`] names the first line that is not understood.
pub fn parse_manifest(head: &[u8], lines: &[u8]) -> Result<(Head, u64), BackupError> {
    let place = Path::new("manifest");
    let head = parse_head(head, place)?;
    let mut count = 0;
    for line in (Lines {
        from: lines,
        left: head.entries,
        number: 0,
        place: place.to_owned(),
    }) {
        let line = line?;
        // Everything that a restore reads of a line.
        let _ = (line.to_path(), line.mode_bits(), line.times());
        let _ = line.same_as.as_deref().map(unescape);
        let _ = line.target.as_deref().map(unescape);
        count += 1;
    }
    Ok((head, count))
}

/// The lines of a section, or all.
pub struct Lines<R = BufReader<File>> {
    from: R,
    left: u64,
    number: u64,
    place: PathBuf,
}

impl Lines {
    pub(super) fn new(mut file: File, place: &Path, offset: u64, lines: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(offset))?;
        Ok(Self {
            from: BufReader::with_capacity(1 << 16, file),
            left: lines,
            number: 0,
            place: place.to_owned(),
        })
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<Line, BackupError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        self.number += 1;
        let mut text = Vec::new();
        let read = (&mut self.from)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut text);
        let line = read
            .map_err(|error| error.to_string())
            .and_then(|_| serde_json::from_slice(&text).map_err(|error| error.to_string()));
        if line.is_err() {
            self.left = 0;
        }
        Some(line.map_err(|detail| {
            let number = self.number;
            damaged(
                &self.place,
                format!("its {LINES} is damaged in line {number}: {detail}"),
            )
        }))
    }
}

/// The digest of a file.
pub(super) fn digest_of_lines(file: File) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut from = BufReader::with_capacity(1 << 16, file);
    loop {
        let block = from.fill_buf()?;
        if block.is_empty() {
            return Ok(hex::encode(hash.finalize()));
        }
        hash.update(block);
        let length = block.len();
        from.consume(length);
    }
}
