//! The content of the entries of a zip file.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

use super::super::error::{ImportError, Refusal, ShownPath, SkillStoreError};
use super::{BLOCK, Entry, ZipFile};

impl ZipFile {
    /// Unpacks an entry block by block.
    ///
    /// # Errors
    /// It is not what the list says of it; the file cannot be read; those of `write`.
    pub(in crate::skill_store) fn unpack(
        &self,
        entry: &Entry,
        mut write: impl FnMut(&[u8]) -> Result<(), SkillStoreError>,
    ) -> Result<(), ImportError> {
        let broken = |reason| {
            ImportError::from(Refusal::BrokenEntry {
                path: ShownPath::of(&*entry.path),
                reason,
            })
        };
        let section = Section {
            file: &self.file,
            at: entry.data,
            left: entry.packed,
        };
        let mut content = match entry.deflated {
            true => {
                let section = BufReader::with_capacity(BLOCK, section);
                Content::Deflated(DeflateDecoder::new(section))
            }
            false => Content::Stored(section),
        };
        let mut buffer = vec![0; BLOCK];
        let mut crc = Crc::new();
        let mut length = 0;
        loop {
            let read = match content.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // Errors of the system have a number; those of the decoder have none.
                Err(error) if error.raw_os_error().is_some() => return Err(unread(error)),
                Err(_) => return Err(broken("its compressed data is damaged")),
            };
            let block = buffer.get(..read).unwrap_or_default();
            length += read as u64;
            if length > entry.length {
                return Err(broken("it is longer than it says"));
            }
            crc.update(block);
            write(block)?;
        }
        if length < entry.length {
            return Err(broken("it is shorter than it says"));
        }
        if content.unused(entry.packed) != 0 {
            return Err(broken("its compressed data goes on after its end"));
        }
        if crc.sum() != entry.crc {
            return Err(broken("its content does not match its checksum"));
        }
        Ok(())
    }
}

enum Content<'a> {
    Stored(Section<'a>),
    Deflated(DeflateDecoder<BufReader<Section<'a>>>),
}

impl Content<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Stored(section) => section.read(buffer),
            Self::Deflated(decoder) => decoder.read(buffer),
        }
    }

    /// Number of packed bytes that were not used.
    fn unused(&self, packed: u64) -> u64 {
        match self {
            Self::Stored(section) => section.left,
            Self::Deflated(decoder) => packed.saturating_sub(decoder.total_in()),
        }
    }
}

pub(super) fn unread(error: io::Error) -> ImportError {
    SkillStoreError::io("reading", "the package")(error).into()
}

/// A part of a file.
pub(super) struct Section<'a> {
    pub(super) file: &'a File,
    pub(super) at: u64,
    pub(super) left: u64,
}

impl Read for Section<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let length = buffer.len().min(most);
        let buffer = buffer.get_mut(..length).unwrap_or_default();
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}
