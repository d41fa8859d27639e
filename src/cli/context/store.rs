//! The files of contexts: one for each, of mode 0600, in a directory of mode 0700.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::no_context;
use super::remote::Remote;
use crate::cli::{Failure, Result};

/// The server on this machine, over its administration socket.
pub const LOCAL: &str = "local";
/// The file that names the current context.
const CURRENT: &str = "current";
/// Larger than any file of a context.
const LARGEST: u64 = 1024 * 1024;

/// The directory of a user's contexts.
pub struct Store {
    dir: PathBuf,
}

impl Store {
    /// That of the user who runs the command: `$XDG_CONFIG_HOME/agentyard`, or `~/.config/agentyard`.
    ///
    /// # Errors
    /// Without a home directory.
    pub fn of_user() -> Result<Self> {
        let absolute = |name: &str| {
            let path = std::env::var_os(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let config = absolute("XDG_CONFIG_HOME");
        let config = config.or_else(|| absolute("HOME").map(|home| home.join(".config")));
        match config {
            Some(config) => Ok(Self::at(config.join("agentyard"))),
            None => Err(Failure::Failed(
                "there is no directory for contexts; set HOME or XDG_CONFIG_HOME".to_owned(),
            )),
        }
    }

    pub(super) fn at(dir: PathBuf) -> Self {
        Self { dir }
    }

    fn path(&self, name: &str) -> Result<PathBuf> {
        check_name(name)?;
        Ok(self.dir.join(format!("{name}.json")))
    }

    /// Reads a context.
    ///
    /// # Errors
    /// When there is none, or other users may read its file.
    pub fn load(&self, name: &str) -> Result<Remote> {
        let path = self.path(name)?;
        let text = match read_secret(&path) {
            Ok(text) => text,
            Err(SecretFile::Missing) => return Err(no_context(name)),
            Err(error) => return Err(error.into_failure(&path)),
        };
        let stored = serde_json::from_str(&text).map_err(|_| {
            Failure::Refused(format!(
                "{} is not a context file; remove it and sign in again",
                path.display()
            ))
        })?;
        Remote::from_stored(name, stored)
    }

    /// Writes a context.
    ///
    /// # Errors
    /// When its file cannot be written.
    pub fn save(&self, name: &str, remote: &Remote) -> Result {
        let path = self.path(name)?;
        let text = serde_json::to_string_pretty(&remote.to_stored());
        let text = text.map_err(|error| Failure::Failed(error.to_string()))?;
        self.write(&path, &text)
    }

    /// Removes a context; it is not the current one any more.
    ///
    /// # Errors
    /// When its file cannot be removed.
    pub fn remove(&self, name: &str) -> Result {
        let path = self.path(name)?;
        if self.current()?.as_deref() == Some(name) {
            remove(&self.dir.join(CURRENT))?;
        }
        remove(&path)
    }

    /// The names of all contexts, in order.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn names(&self) -> Result<Vec<String>> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unusable(&self.dir, &error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| unusable(&self.dir, &error))?;
            let file = entry.file_name().into_string().unwrap_or_default();
            let name = file.strip_suffix(".json").unwrap_or_default();
            if check_name(name).is_ok() {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// The current context; `None`: the server on this machine.
    ///
    /// # Errors
    /// When the file that names it cannot be read.
    pub fn current(&self) -> Result<Option<String>> {
        let path = self.dir.join(CURRENT);
        match read(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned()).filter(|name| check_name(name).is_ok())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unusable(&path, &error)),
        }
    }

    /// Makes a context the current one.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn set_current(&self, name: &str) -> Result {
        let path = self.dir.join(CURRENT);
        if name == LOCAL {
            return remove(&path);
        }
        if !self.path(name)?.exists() {
            return Err(no_context(name));
        }
        self.write(&path, name)
    }

    /// Replaces a file as a whole.
    fn write(&self, path: &Path, text: &str) -> Result {
        let written = || -> std::io::Result<()> {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.dir)?;
            fs::set_permissions(&self.dir, Permissions::from_mode(0o700))?;
            // Temporary files have mode 0600.
            let mut file = tempfile::NamedTempFile::new_in(&self.dir)?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            Ok(())
        };
        written().map_err(|error| {
            Failure::Failed(format!("{} cannot be written: {error}", path.display()))
        })
    }
}

/// A name of a context is a name of a file, too.
pub(super) fn check_name(name: &str) -> Result {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
    let valid = !name.is_empty() && name.len() <= 200 && name.chars().all(plain);
    match valid && !name.starts_with(['.', '-']) && name != LOCAL {
        true => Ok(()),
        false => Err(Failure::Usage(format!(
            "{name:?} cannot be the name of a context; use letters, digits, dots, hyphens, underscores and colons"
        ))),
    }
}

/// Reason for which a file with a secret is not read.
#[derive(Debug)]
pub(super) enum SecretFile {
    /// There is none.
    Missing,
    /// Other users may read it.
    Open,
    /// It cannot be read.
    Io(std::io::Error),
}

impl SecretFile {
    pub(super) fn into_failure(self, path: &Path) -> Failure {
        let path = path.display();
        Failure::Failed(match self {
            Self::Missing => format!("{path} does not exist"),
            Self::Open => format!(
                "other users of this machine may read {path}, which holds a secret; run `chmod 600 {path}` and try again"
            ),
            Self::Io(error) => format!("{path} cannot be read: {error}"),
        })
    }
}

/// Reads a file that no other user may read.
pub(super) fn read_secret(path: &Path) -> Result<String, SecretFile> {
    let read = || -> std::io::Result<Option<String>> {
        let file = File::open(path)?;
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            return Ok(None);
        }
        read_bounded(file).map(Some)
    };
    match read() {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(SecretFile::Open),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(SecretFile::Missing),
        Err(error) => Err(SecretFile::Io(error)),
    }
}

/// Reads a small file.
pub(super) fn read(path: &Path) -> std::io::Result<String> {
    read_bounded(File::open(path)?)
}

fn read_bounded(file: File) -> std::io::Result<String> {
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text)?;
    Ok(text)
}

fn remove(path: &Path) -> Result {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::Failed(format!(
            "{} cannot be removed: {error}",
            path.display()
        ))),
        _ => Ok(()),
    }
}

fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Failed(format!("{} cannot be read: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_kept_from_other_users() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path().join("agentyard"));
        assert_eq!(store.names().unwrap(), [""; 0]);
        assert_eq!(store.current().unwrap(), None);
        let remote = Remote::new(None, "https://a.example", None).unwrap();
        for name in ["b.example", "a.example:8443"] {
            store.save(name, &remote).unwrap();
        }
        assert_eq!(store.names().unwrap(), ["a.example:8443", "b.example"]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let path = store.path("b.example").unwrap();
        assert_eq!((mode(&store.dir), mode(&path)), (0o700, 0o600));
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let open = store.load("b.example").err().unwrap().to_string();
        assert!(open.contains("chmod 600"), "{open}");

        store.set_current("b.example").unwrap();
        assert_eq!(store.current().unwrap().as_deref(), Some("b.example"));
        store.remove("b.example").unwrap();
        assert_eq!(store.current().unwrap(), None);
        let missing = store.set_current("b.example").unwrap_err();
        assert!(missing.to_string().contains("agentyard login"), "{missing}");
        store.set_current(LOCAL).unwrap();
    }

    #[test]
    fn names_stay_in_the_directory() {
        for name in ["", ".", "..", "a/b", "../x", "-a", LOCAL, "a b"] {
            assert!(check_name(name).is_err(), "{name}");
        }
        for name in ["a.example", "::1", "prod_2", "127.0.0.1:8080"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
    }
}
