//! Contents of files: copied once, with the digest of what was copied.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use rustix::fs::{SeekFrom, Stat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

/// Bytes read at once, and the length of a block in the digest of a file with holes.
pub(super) const BLOCK: usize = 64 * 1024;

/// Digest of a content.
pub(super) type Digest = [u8; 32];

/// Side on which a copy failed: the file that is read, or the one that is written.
#[derive(Debug)]
pub(super) enum CopyError {
    Read(io::Error),
    Write(io::Error),
    Stopped,
}

/// Reports that a file has holes. An agent may make one of eight exabytes: its zeros are not read.
pub(super) fn has_holes(stat: &Stat) -> bool {
    let taken = u64::try_from(stat.st_blocks)
        .unwrap_or(0)
        .saturating_mul(512);
    taken < size_of(stat)
}

/// The size of a file.
pub(super) fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// Copies the first `size` bytes of a file, which may be growing; tells length and digest of the copy.
///
/// `go_on` is asked after each block.
pub(super) fn copy(
    from: &File,
    size: u64,
    sparse: bool,
    mut write: impl FnMut(u64, &[u8]) -> io::Result<()>,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(u64, Digest), CopyError> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0_u8; BLOCK];
    let mut offset = 0_u64;
    if sparse {
        hash.update(size.to_be_bytes());
    }
    while offset < size {
        if sparse {
            offset = match rustix::fs::seek(from, SeekFrom::Data(offset)) {
                Ok(data) => data - data % BLOCK as u64,
                // Nothing but a hole follows.
                Err(Errno::NXIO) => break,
                Err(errno) => return Err(CopyError::Read(errno.into())),
            };
        }
        let wanted = usize::try_from(size.saturating_sub(offset))
            .unwrap_or(BLOCK)
            .min(BLOCK);
        let length = fill(from, buffer.get_mut(..wanted).unwrap_or_default(), offset);
        let length = length.map_err(CopyError::Read)?;
        let block = buffer.get(..length).unwrap_or_default();
        if block.is_empty() {
            break;
        }
        if !sparse || block.iter().any(|&byte| byte != 0) {
            if sparse {
                hash.update(offset.to_be_bytes());
            }
            hash.update(block);
            write(offset, block).map_err(CopyError::Write)?;
        }
        offset += match sparse {
            true => BLOCK as u64,
            false => length as u64,
        };
        if !go_on(length as u64) {
            return Err(CopyError::Stopped);
        }
    }
    let length = if sparse { size } else { offset };
    Ok((length, hash.finalize().into()))
}

/// Reads a whole block, unless the file ends before.
fn fill(from: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut length = 0;
    while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match from.read_at(rest, offset + length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// The content of a file as a stream of exactly so many bytes: zeros follow where it was cut off meanwhile.
pub(super) struct Exactly<'a> {
    from: &'a File,
    left: u64,
    hash: Sha256,
}

impl<'a> Exactly<'a> {
    pub(super) fn new(from: &'a File, size: u64) -> Self {
        Self {
            from,
            left: size,
            hash: Sha256::new(),
        }
    }

    pub(super) fn digest(self) -> Digest {
        self.hash.finalize().into()
    }
}

impl Read for Exactly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let buffer = buffer.get_mut(..most).unwrap_or_default();
        if buffer.is_empty() {
            return Ok(0);
        }
        let mut read = self.from.read(buffer)?;
        if read == 0 {
            buffer.fill(0);
            read = buffer.len();
        }
        self.hash.update(buffer.get(..read).unwrap_or_default());
        self.left -= read as u64;
        Ok(read)
    }
}
