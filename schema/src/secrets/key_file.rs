//! The file of the master key: 64 lower-case hex digits and a newline, mode 0600.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use zeroize::Zeroizing;

use crate::private;

use super::{KEY_LEN, MASTER_KEY_FILE, MasterKey, SecretsError, random};

/// 32 bytes as hex, and a newline.
const FILE_LEN: usize = KEY_LEN * 2 + 1;

impl MasterKey {
    /// Reads the key of the installation in `data_dir`.
    ///
    /// # Errors
    /// [`SecretsError::Missing`] when there is none, [`SecretsError::Unusable`] when the file is not
    /// a private regular file of ours with exactly a key in it, [`SecretsError::Io`].
    pub fn load(data_dir: &Path) -> Result<Self, SecretsError> {
        let path = data_dir.join(MASTER_KEY_FILE);
        read(&path)?.ok_or(SecretsError::Missing { path })
    }

    /// Reads the key in a file that is kept apart from its installation.
    ///
    /// # Errors
    /// As [`MasterKey::load`].
    pub fn load_file(path: &Path) -> Result<Self, SecretsError> {
        read(path)?.ok_or_else(|| SecretsError::Missing {
            path: path.to_owned(),
        })
    }

    /// Writes the key to a new private file; one that holds this key already stays.
    ///
    /// # Errors
    /// [`SecretsError::Unusable`] when the file exists and is another, [`SecretsError::Io`].
    pub fn save_file(&self, path: &Path) -> Result<(), SecretsError> {
        let directory = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        match create(directory.unwrap_or(Path::new(".")), path, &self.0) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                match Self::load_file(path)?.fingerprint() == self.fingerprint() {
                    true => Ok(()),
                    false => Err(SecretsError::Unusable {
                        path: path.to_owned(),
                        problem: "it holds another key, and is not overwritten".to_owned(),
                    }),
                }
            }
            Err(source) => Err(SecretsError::Io {
                path: path.to_owned(),
                action: "created",
                source,
            }),
        }
    }

    /// Reads the key of the installation in `data_dir`, or makes one when there is none yet.
    ///
    /// The file appears complete and on disk, or not at all; an existing one is never overwritten,
    /// not even a broken one. Two processes that start at once end up with the same key.
    ///
    /// # Errors
    /// As [`MasterKey::load`], and [`SecretsError::Randomness`].
    pub fn load_or_create(data_dir: &Path) -> Result<Self, SecretsError> {
        let path = data_dir.join(MASTER_KEY_FILE);
        if let Some(key) = read(&path)? {
            return Ok(key);
        }
        let key = random::bytes::<KEY_LEN>()?;
        match create(data_dir, &path, &key) {
            Ok(()) => {}
            // Somebody else was faster; theirs is the key.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => {
                return Err(SecretsError::Io {
                    path,
                    action: "created",
                    source,
                });
            }
        }
        // Read back what is really there instead of trusting what was meant to be written.
        read(&path)?.ok_or(SecretsError::Missing { path })
    }
}

fn read(path: &Path) -> Result<Option<MasterKey>, SecretsError> {
    let io = |source: io::Error| SecretsError::Io {
        path: path.to_owned(),
        action: "read",
        source,
    };
    let unusable = |problem: String| SecretsError::Unusable {
        path: path.to_owned(),
        problem,
    };
    // Without NONBLOCK a planted fifo would hang the start.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(rustix::io::Errno::LOOP) => {
            return Err(unusable(
                "it is a symbolic link; put the file itself there".to_owned(),
            ));
        }
        Err(errno) => return Err(io(errno.into())),
    };
    let metadata = file.metadata().map_err(io)?;
    if !metadata.is_file() {
        return Err(unusable("it is not a regular file".to_owned()));
    }
    let stat = rustix::fs::fstat(&file).map_err(|errno| io(errno.into()))?;
    if let Some(objection) = private::objection(&stat) {
        return Err(unusable(objection));
    }
    if metadata.len() != FILE_LEN as u64 {
        return Err(unusable(format!(
            "it has {} bytes instead of {FILE_LEN} (64 hex digits and a newline); use the copy of it that was kept",
            metadata.len()
        )));
    }
    let mut content = Zeroizing::new([0_u8; FILE_LEN]);
    (&file).read_exact(content.as_mut_slice()).map_err(io)?;
    let mut key = Zeroizing::new([0_u8; KEY_LEN]);
    content
        .strip_suffix(b"\n")
        .filter(|digits| !digits.iter().any(u8::is_ascii_uppercase))
        .and_then(|digits| hex::decode_to_slice(digits, key.as_mut_slice()).ok())
        .ok_or_else(|| {
            unusable(
                "it does not hold 64 lower-case hex digits and a newline; use the copy of it that was kept"
                    .to_owned(),
            )
        })?;
    Ok(Some(MasterKey(key)))
}

fn create(data_dir: &Path, path: &Path, key: &[u8; KEY_LEN]) -> io::Result<()> {
    let temporary = Temporary::new(data_dir)?;
    let mut content = Zeroizing::new([b'\n'; FILE_LEN]);
    if let Some(digits) = content.get_mut(..KEY_LEN * 2) {
        hex::encode_to_slice(key, digits).map_err(io::Error::other)?;
    }
    (&temporary.file).write_all(content.as_slice())?;
    temporary.file.sync_all()?;
    temporary.publish(path)?;
    File::open(data_dir)?.sync_all()
}

/// A private file beside the key file, removed again unless it was published.
struct Temporary {
    path: PathBuf,
    file: File,
}

impl Temporary {
    fn new(data_dir: &Path) -> io::Result<Self> {
        let path = data_dir.join(format!(
            ".{MASTER_KEY_FILE}.{}.tmp",
            uuid::Uuid::new_v4().simple()
        ));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = File::from(rustix::fs::openat(CWD, &path, flags, mode)?);
        let temporary = Self { path, file };
        // An odd umask may have taken bits away.
        rustix::fs::fchmod(&temporary.file, mode)?;
        Ok(temporary)
    }

    /// Gives the file its final name unless that name is taken.
    fn publish(self, path: &Path) -> io::Result<()> {
        match rustix::fs::renameat_with(CWD, &self.path, CWD, path, RenameFlags::NOREPLACE) {
            // Some file systems know no RENAME_NOREPLACE; a hard link does not replace either.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                rustix::fs::linkat(CWD, &self.path, CWD, path, AtFlags::empty())?;
            }
            outcome => outcome?,
        }
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename there is nothing left to remove, and a failure leaves only an unused name.
        let _ = rustix::fs::unlinkat(CWD, &self.path, AtFlags::empty());
    }
}
