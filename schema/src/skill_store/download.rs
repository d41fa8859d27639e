//! A skill as a zip file.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::tree::{Trouble, each_block, is_executable, scan};
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
        let mode = match is_executable(&rustix::fs::fstat(&file)?) {
            true => 0o755,
            false => 0o644,
        };
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default())
            .unix_permissions(mode);
        zip.start_file(format!("{name}/{path}"), options)?;
        each_block(File::from(file), &mut buffer, |block| zip.write_all(block))?;
    }
    zip.finish()?;
    Ok(())
}
