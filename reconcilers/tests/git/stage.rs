//! The driver's surroundings: repositories, servers, and a look at what it leaves.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reconcilers::drivers::git::{
    Credentials, Exported, Git, GitError, GitProgram, Limits, Progress, Remote,
};
use schema::skill_repository::RefType;

/// A driver with a place for repositories and one for what it writes.
pub struct Stage {
    directory: tempfile::TempDir,
    pub git: GitProgram,
}

impl Stage {
    pub fn new() -> Self {
        Self::with(Limits::default())
    }

    pub fn with(limits: Limits) -> Self {
        super::server::install_provider();
        let directory = tempfile::tempdir().unwrap();
        for name in ["repositories", "out"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        let git = GitProgram::new(directory.path().join("scratch"), limits);
        Self { directory, git }
    }

    /// Trusts an authority, too.
    pub fn trusting(mut self, pem: &str) -> Self {
        let file = self.directory.path().join("authority.pem");
        std::fs::write(&file, pem).unwrap();
        self.git = self.git.trusting(file);
        self
    }

    pub fn repositories(&self) -> PathBuf {
        self.directory.path().join("repositories")
    }

    pub fn scratch(&self) -> PathBuf {
        self.directory.path().join("scratch")
    }

    /// An empty directory.
    pub fn empty(&self) -> PathBuf {
        let into = self.directory.path().join("out");
        std::fs::remove_dir_all(&into).unwrap();
        std::fs::create_dir(&into).unwrap();
        into
    }

    pub async fn export(&self, remote: &Remote) -> Result<Exported, GitError> {
        self.git
            .export(remote, &self.empty(), &|_: Progress| {})
            .await
    }

    /// What a file that was written has in it.
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.directory.path().join("out").join(path)).unwrap()
    }

    /// All files, links and directories that were written.
    pub fn written(&self) -> Vec<PathBuf> {
        all_below(&self.directory.path().join("out"))
    }

    /// What calls have left on disk for themselves.
    pub fn left(&self) -> Vec<PathBuf> {
        match self.scratch().exists() {
            true => all_below(&self.scratch()),
            false => Vec::new(),
        }
    }

    /// The processes that calls have left, or still have: they run in its directories.
    pub fn processes(&self) -> Vec<String> {
        let scratch = self.scratch();
        let scratch = scratch.as_os_str().as_bytes();
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let ours = all.filter(|entry| {
            let place = std::fs::read_link(entry.path().join("cwd"));
            place.is_ok_and(|place| place.as_os_str().as_bytes().starts_with(scratch))
        });
        ours.map(|entry| entry.path().display().to_string())
            .collect()
    }

    /// Nothing is left of any call. A process that was killed needs a moment to be gone.
    pub async fn assert_nothing_is_left(&self) {
        for _ in 0..100 {
            if self.processes().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(self.processes(), Vec::<String>::new());
        assert_eq!(self.left(), Vec::<PathBuf>::new());
    }
}

fn all_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                left.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found
}

/// A branch of a repository that may be on this machine.
pub fn branch(url: &str, name: &str) -> Remote {
    Remote {
        url: url.parse().unwrap(),
        reference: name.parse().unwrap(),
        ref_type: RefType::Branch,
        credentials: None,
        known_hosts: None,
        allow_private: true,
    }
}

/// The same for a tag.
pub fn tag(url: &str, name: &str) -> Remote {
    Remote {
        ref_type: RefType::Tag,
        ..branch(url, name)
    }
}

/// The same with credentials.
pub fn with(remote: Remote, username: &str, secret: &str) -> Remote {
    let (username, secret) = (username.to_owned(), secret.into());
    let credentials = Some(Credentials { username, secret });
    Remote {
        credentials,
        ..remote
    }
}
