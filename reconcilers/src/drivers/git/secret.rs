//! Secrets for a program: in memory that only this process and those it starts can read by name.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::{fmt, io};

use rustix::fs::{MemfdFlags, Mode};

/// A file in memory, without a name on disk. It is gone when this is dropped.
pub(super) struct MemoryFile {
    file: File,
}

impl MemoryFile {
    /// A file with these bytes, which only this user may read.
    pub(super) fn new(bytes: &[u8]) -> io::Result<Self> {
        let fd = rustix::fs::memfd_create("agentyard-git", MemfdFlags::CLOEXEC)?;
        // `ssh` takes no key that others could read, and a file in memory is made for everybody.
        rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR)?;
        let mut file = File::from(fd);
        file.write_all(bytes)?;
        Ok(Self { file })
    }

    /// The path by which programs of the same user open it, each from its beginning (proc(5)).
    pub(super) fn path(&self) -> String {
        let pid = rustix::process::getpid();
        format!(
            "/proc/{}/fd/{}",
            pid.as_raw_nonzero(),
            self.file.as_raw_fd()
        )
    }
}

impl fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryFile")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_in_memory_is_read_by_its_path_as_often_as_needed_and_by_its_owner_only() {
        let file = MemoryFile::new(b"secret").unwrap();
        let path = file.path();
        for _ in 0..2 {
            assert_eq!(std::fs::read(&path).unwrap(), b"secret");
        }
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!format!("{file:?}").contains("secret"));
    }
}
