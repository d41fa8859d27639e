//! A skill as a zip file.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use rustix::fs::{FileType, Mode, OFlags};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::tree::{Trouble, each_block, is_executable, scan};
use super::zip_file::MAX_RATIO;
use super::{SkillStore, SkillStoreError, TreeDigest};
use crate::home::beneath;
use crate::ids::SkillName;

const BLOCK: usize = 64 << 10;

impl SkillStore {
    /// Writes a skill as a zip file with everything in one directory of its name; `false` when it is not there. The same
    /// skill is the same bytes, and taken in again it has the same digest, as long as it fits the limits of zip files.
    ///
    /// # Errors
    /// [`SkillStoreError::Io`], also for what `out` says.
    pub fn write_zip(
        &self,
        name: &SkillName,
        digest: &TreeDigest,
        out: impl Write,
    ) -> Result<bool, SkillStoreError> {
        let Some(dir) = self.open_tree(name, digest)? else {
            return Ok(false);
        };
        pack(name, &dir, out)
            .map_err(SkillStoreError::io("packing", self.path_of(name, digest)))?;
        Ok(true)
    }
}

fn pack(name: &SkillName, dir: &OwnedFd, out: impl Write) -> io::Result<()> {
    let mut paths: Vec<Box<[u8]>> = Vec::new();
    scan(dir, |found| {
        if found.kind() == FileType::RegularFile {
            paths.push(found.path.into());
        }
        Ok::<_, Trouble>(found.kind() == FileType::Directory)
    })
    .map_err(|trouble| trouble.errno)?;
    paths.sort_unstable();
    let mut zip = ZipWriter::new_stream(out);
    let mut buffer = vec![0; BLOCK];
    for path in &paths {
        let path = std::str::from_utf8(path).map_err(io::Error::other)?;
        let file = beneath::open(dir, Path::new(path), OFlags::RDONLY, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        let mode = match is_executable(&stat) {
            true => 0o755,
            false => 0o644,
        };
        let length = u64::try_from(stat.st_size).unwrap_or_default();
        let method = match packs_too_well(&File::from(file.try_clone()?), length, &mut buffer)? {
            true => CompressionMethod::Stored,
            false => CompressionMethod::Deflated,
        };
        let options = SimpleFileOptions::default()
            .compression_method(method)
            .last_modified_time(DateTime::default())
            .unix_permissions(mode);
        zip.start_file(format!("{name}/{path}"), options)?;
        let mut file = File::from(file);
        file.rewind()?;
        each_block(file, &mut buffer, |block| zip.write_all(block))?;
    }
    zip.finish()?;
    Ok(())
}

/// Whether a file becomes so short that a zip file of such would be refused as a bomb. What is ordinary shows that soon.
fn packs_too_well(file: &File, length: u64, buffer: &mut [u8]) -> io::Result<bool> {
    /// What is said of an entry besides its content is enough for so much.
    const SHORT: u64 = 16 << 10;
    let enough = length / (MAX_RATIO / 2);
    let mut packer = DeflateEncoder::new(Counter(0), Compression::default());
    let mut reader = file;
    let mut left = length;
    while length > SHORT && left > 0 && packer.get_ref().0 <= enough {
        let read = reader.read(buffer)?;
        if read == 0 {
            break;
        }
        packer.write_all(buffer.get(..read).unwrap_or_default())?;
        left = left.saturating_sub(read as u64);
    }
    Ok(length > SHORT && packer.finish()?.0 <= enough)
}

/// Counts what is written.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
