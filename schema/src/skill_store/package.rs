//! Rules by which a directory becomes a skill: the same for one that is taken in, packed, or only looked at.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;

use rustix::fs::FileType;

use super::digest::{ContentHash, Records, TreeDigest};
use super::error::{ImportError, Refusal, ShownPath, SkillStoreError};
use super::left_out::LeftOut;
use super::names::{self, Names, Place};
use super::tree::{Found, TreeLimits, each_block, is_executable, scan};

const BLOCK: usize = 64 << 10;

/// Decides of each entry of a directory whether it is in the package.
#[derive(Default)]
pub(super) struct Admission {
    names: Names,
    pub(super) left_out: LeftOut,
}

/// An entry as far as the package is concerned.
pub(super) enum Admitted<'a> {
    /// It is left out, with everything in it.
    Nothing,
    Directory,
    /// A file at this path.
    File(&'a str),
}

impl Admission {
    /// # Errors
    /// There can be no package with this entry.
    pub(super) fn admit<'a>(&mut self, found: &Found<'a>) -> Result<Admitted<'a>, Refusal> {
        if self.left_out.take(found.path) {
            return Ok(Admitted::Nothing);
        }
        let kind = found.kind();
        if kind == FileType::Symlink {
            self.left_out.add_link(found.path);
            return match self.left_out.links() > TreeLimits::LARGEST.files {
                true => Err(Refusal::TooManyEntries),
                false => Ok(Admitted::Nothing),
            };
        }
        let path = names::checked(found.path)?;
        names::fits(path)?;
        match kind {
            FileType::Directory => {
                self.names.add(path, Place::Directory)?;
                Ok(Admitted::Directory)
            }
            FileType::RegularFile => {
                self.names.add(path, Place::File)?;
                Ok(Admitted::File(path))
            }
            _ => Err(Refusal::NotRegular(ShownPath::of(path))),
        }
    }
}

/// A file of a package that may be changed while it is read.
pub(super) struct Source {
    file: File,
    length: u64,
    pub(super) executable: bool,
}

impl Source {
    /// Opens a file of a package that has `before` bytes already.
    pub(super) fn open(found: &Found<'_>, path: &str, before: u64) -> Result<Self, ImportError> {
        let changed = || Refusal::Changed(ShownPath::of(path));
        let (file, stat) = found.open_file()?.ok_or_else(changed)?;
        let length = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        if length > TreeLimits::LARGEST.bytes.saturating_sub(before) {
            return Err(Refusal::Unpacked.into());
        }
        Ok(Self {
            file,
            length,
            executable: is_executable(&stat),
        })
    }

    /// Hands its content over, block by block.
    pub(super) fn read(
        self,
        path: &str,
        buffer: &mut [u8],
        mut handle: impl FnMut(&[u8]) -> Result<(), SkillStoreError>,
    ) -> Result<ContentHash, ImportError> {
        let mut content = ContentHash::default();
        let mut failure = None;
        // Bytes that a process appends meanwhile are not read; one byte more reveals them.
        let source = self.file.take(self.length + 1);
        let read = each_block(source, buffer, |block| {
            content.update(block);
            handle(block).map_err(|error| {
                failure = Some(error);
                std::io::ErrorKind::Other.into()
            })
        });
        if let Some(error) = failure {
            return Err(error.into());
        }
        read.map_err(SkillStoreError::io("reading", path))?;
        match content.length() == self.length {
            true => Ok(content),
            false => Err(Refusal::Changed(ShownPath::of(path)).into()),
        }
    }
}

/// The digest that the store gives `dir` if it takes it in.
///
/// # Errors
/// The store would not take it in, as far as that shows without its `SKILL.md`.
pub fn digest_package(dir: impl AsFd) -> Result<TreeDigest, ImportError> {
    let mut admission = Admission::default();
    let mut records = Records::default();
    let mut buffer = vec![0; BLOCK];
    scan(dir, |found| {
        let path = match admission.admit(found)? {
            Admitted::Nothing => return Ok(false),
            Admitted::Directory => return Ok(true),
            Admitted::File(path) => path,
        };
        let source = Source::open(found, path, records.bytes())?;
        let executable = source.executable;
        let content = source.read(path, &mut buffer, |_| Ok(()))?;
        records.add(path.as_bytes(), executable, content);
        Ok::<_, ImportError>(false)
    })?;
    match records.files() {
        0 => Err(Refusal::Empty.into()),
        _ => Ok(records.finish().digest),
    }
}
