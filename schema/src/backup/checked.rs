//! Copying files of a backup whose digests are known.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use sha2::{Digest as _, Sha256};

use super::content::{self, CopyError};
use super::keys::{Keys, SEALED_OVERHEAD};
use super::make::create;
use super::manifest::Line;
use super::settings_files::LARGEST_SEALED;
use crate::home::beneath;

/// Outcome of copying a file whose digest is known.
pub(super) enum Checked {
    Whole(File),
    Damaged(&'static str),
    Stopped,
}

/// Copies a file whose digest is known; a copy that is not whole is removed.
pub(super) fn copy_checked(
    from: &File,
    line: &Line,
    to: &OwnedFd,
    name: &Path,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> io::Result<Checked> {
    let stat = rustix::fs::fstat(from)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(Checked::Damaged("not a file in the backup"));
    }
    if content::size_of(&stat) != line.size {
        return Ok(Checked::Damaged("its size is not that of the manifest"));
    }
    // The zeros of a hole would be written until the disk is full.
    if !line.sparse && content::has_holes(&stat) && line.size > free_space(to)? {
        return Ok(Checked::Damaged("it is larger than the free space"));
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let copy = File::from(beneath::open(to, name, flags, Mode::RUSR | Mode::WUSR)?);
    if line.sparse
        && let Err(error) = copy.set_len(line.size)
    {
        rustix::fs::unlinkat(to, name, AtFlags::empty())?;
        return Err(error);
    }
    let write = |offset: u64, block: &[u8]| copy.write_all_at(block, offset);
    let copied = content::copy(from, line.size, line.sparse, write, go_on);
    let outcome = match copied {
        Ok((size, digest)) if size == line.size && line.sha256 == Some(hex::encode(digest)) => {
            return Ok(Checked::Whole(copy));
        }
        Ok(_) => Checked::Damaged("its content is not that of the manifest"),
        Err(CopyError::Read(_)) => Checked::Damaged("it cannot be read in the backup"),
        Err(CopyError::Stopped) => Checked::Stopped,
        Err(CopyError::Write(error)) => return Err(error),
    };
    rustix::fs::unlinkat(to, name, AtFlags::empty())?;
    Ok(outcome)
}

fn free_space(dir: &OwnedFd) -> io::Result<u64> {
    let space = rustix::fs::fstatvfs(dir)?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}

/// Writes the content of a sealed file to a new file.
pub(super) fn open_checked(
    from: &File,
    line: &Line,
    keys: &Keys,
    to: &OwnedFd,
    name: &Path,
) -> io::Result<Checked> {
    let sealed = match read_sealed(from, line)? {
        Ok(sealed) => sealed,
        Err(why) => return Ok(Checked::Damaged(why)),
    };
    let Ok(plain) = keys.open(&line.path, &sealed) else {
        return Ok(Checked::Damaged(NOT_OPENED));
    };
    let copy = create(to, name)?;
    copy.write_all_at(&plain, 0)?;
    Ok(Checked::Whole(copy))
}

/// Reason of a sealed file that the key does not open.
pub(super) const NOT_OPENED: &str =
    "it was sealed under another key, for another path, or was changed";

/// Reads a sealed file whose digest is that of its line, or says what is wrong with it.
pub(super) fn read_sealed(from: &File, line: &Line) -> io::Result<Result<Vec<u8>, &'static str>> {
    let stat = rustix::fs::fstat(from)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(Err("not a file in the backup"));
    }
    let most = LARGEST_SEALED + SEALED_OVERHEAD;
    if line.size > most || content::size_of(&stat) != line.size {
        return Ok(Err("its size is not that of the manifest"));
    }
    let mut sealed = Vec::new();
    if from.take(most).read_to_end(&mut sealed).is_err() {
        return Ok(Err("it cannot be read in the backup"));
    }
    Ok(
        match line.sha256 == Some(hex::encode(Sha256::digest(&sealed))) {
            true => Ok(sealed),
            false => Err("its content is not that of the manifest"),
        },
    )
}
