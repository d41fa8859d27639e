//! A skill, or a folder that is to become one, as a zip file.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::names;
use super::package::{Admission, Admitted};
use super::tree::{TreeLimits, Trouble, each_block, is_executable, scan};
use super::zip_file::MAX_RATIO;
use super::{ImportError, Refusal, SkillStore, SkillStoreError, TreeDigest};
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
        let packed = list(&dir).and_then(|paths| pack(name.as_str(), &dir, &paths, out));
        packed.map_err(SkillStoreError::io("packing", self.path_of(name, digest)))?;
        Ok(true)
    }
}

/// Writes a folder as a zip file with everything in one directory of the folder's name. Links are left out, and whatever is
/// no part of a skill. Gives a warning for each kind of what was left out.
///
/// # Errors
/// [`ImportError::Refused`] for what the store would refuse, before anything is written; [`ImportError::Store`] for what
/// cannot be read, and for what `out` says.
pub fn zip_folder(folder: &Path, out: impl Write) -> Result<Vec<String>, ImportError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let io = |action| SkillStoreError::io::<io::Error>(action, folder);
    let real = folder.canonicalize().map_err(io("opening"))?;
    let dir = rustix::fs::openat(CWD, &real, flags, Mode::empty());
    let dir = dir.map_err(|errno| io("opening")(errno.into()))?;
    let (mut paths, mut admission, mut bytes) = (Vec::new(), Admission::default(), 0_u64);
    scan(&dir, |found| {
        match admission.admit(found)? {
            Admitted::Nothing => return Ok(false),
            Admitted::Directory => return Ok(true),
            Admitted::File(_) => {}
        }
        bytes = bytes.saturating_add(u64::try_from(found.stat.st_size).unwrap_or_default());
        if bytes > TreeLimits::LARGEST.bytes {
            return Err(Refusal::Unpacked.into());
        }
        paths.push(found.path.into());
        Ok::<_, ImportError>(false)
    })?;
    paths.sort_unstable();
    let name = real.file_name().and_then(|name| name.to_str());
    let name = name.filter(|name| names::checked(name.as_bytes()).is_ok());
    pack(name.unwrap_or("skill"), &dir, &paths, out).map_err(io("packing"))?;
    Ok(admission.left_out.warnings())
}

/// The files of a tree, in order.
fn list(dir: &OwnedFd) -> io::Result<Vec<Box<[u8]>>> {
    let mut paths = Vec::new();
    scan(dir, |found| {
        if found.kind() == FileType::RegularFile {
            paths.push(found.path.into());
        }
        Ok::<_, Trouble>(found.kind() == FileType::Directory)
    })
    .map_err(|trouble| trouble.errno)?;
    paths.sort_unstable();
    Ok(paths)
}

fn pack(top: &str, dir: &OwnedFd, paths: &[Box<[u8]>], out: impl Write) -> io::Result<()> {
    let mut zip = ZipWriter::new_stream(out);
    let mut buffer = vec![0; BLOCK];
    for path in paths {
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
        zip.start_file(format!("{top}/{path}"), options)?;
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
