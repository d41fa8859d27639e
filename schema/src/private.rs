//! What is ours alone: files and directories that nobody else can have planted, read or changed.

use std::io;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// What speaks against a file or directory of ours, for people, with the remedy; `None` when nothing does. It belongs to the
/// user that the service runs as, and others may do nothing with it.
pub(crate) fn objection(stat: &Stat) -> Option<String> {
    let us = rustix::process::geteuid().as_raw();
    let mode = Mode::from_raw_mode(stat.st_mode).bits();
    let directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let private = if directory { "0700" } else { "0600" };
    if stat.st_uid != us {
        let owner = stat.st_uid;
        return Some(format!(
            "it belongs to user {owner}, and the service runs as user {us}; change its owner if it is yours"
        ));
    }
    (mode & 0o077 != 0).then(|| {
        format!("its mode is {mode:04o}, so others might read or change it; make it {private}")
    })
}

/// Checks a file that somebody else opens by its name: a private regular file and no link, or nothing.
///
/// # Errors
/// What speaks against it, or why it cannot be opened.
pub(crate) fn check_file(path: &Path) -> Result<(), String> {
    // Without NONBLOCK a planted fifo would hang the start.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let checked = rustix::fs::openat(CWD, path, flags, Mode::empty())
        .and_then(|file| rustix::fs::fstat(&file));
    match checked {
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(io::Error::from(errno).to_string()),
        Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => objection(&stat).map_or(Ok(()), Err),
            FileType::Symlink => Err("it is a symbolic link; put the file itself there".to_owned()),
            _ => Err("it is not a regular file".to_owned()),
        },
    }
}
