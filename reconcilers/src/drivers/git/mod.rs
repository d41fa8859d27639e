//! Repositories of skills, as `git` fetches them.
//!
//! What a repository's server sends is not trusted, nor is what an administrator has written: time, size and number are
//! bounded, addresses inside are refused unless they are allowed, and nothing that comes from there is run or followed. The
//! program is used, not a library: it can be killed, has memory of its own, and comes with SSH. No secret is in its
//! arguments, its environment or a file on disk.

mod address;
mod config;
mod error;
mod preflight;
mod process;
mod progress;
mod real;
mod scratch;
mod secret;
mod ssh;
mod tree;
mod words;
mod write;

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use schema::skill_repository::{GitRef, RefType, RepositoryUrl};
use schema::skill_store::Skipped;
use secrecy::SecretString;

pub use error::GitError;
pub use progress::{Phase, Progress};
pub use real::GitProgram;

/// The branch or tag of a repository, and how to get at it.
#[derive(Debug, Clone)]
pub struct Remote {
    /// Where the repository is.
    pub url: RepositoryUrl,
    /// The name of the branch or tag.
    pub reference: GitRef,
    /// Which of both it is.
    pub ref_type: RefType,
    /// Who asks; `None`: anybody.
    pub credentials: Option<Credentials>,
    /// The host's keys as lines of known_hosts (sshd(8)), as an earlier call gave them: no other key is accepted. `None`: the
    /// key that the host shows now is trusted. Of no meaning without SSH.
    pub known_hosts: Option<String>,
    /// Whether the host may be at a loopback, link-local or private address.
    pub allow_private: bool,
}

/// Who asks for a repository.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The user name that goes with the secret. With SSH it is that of the account, unless the address names one; empty is
    /// `git`.
    pub username: String,
    /// With HTTP a password or token, with SSH a private key without a passphrase.
    pub secret: SecretString,
}

/// What a reference points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The commit: 40 or 64 hexadecimal digits.
    pub commit: String,
    /// The keys to give as [`Remote::known_hosts`] from now on; `None` without SSH.
    pub known_hosts: Option<String>,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The commit: 40 or 64 hexadecimal digits.
    pub commit: String,
    /// Files that were written.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Other entries of the commit: links, submodules, and files whose paths cannot be stored.
    pub skipped: Vec<Skipped>,
    /// The keys to give as [`Remote::known_hosts`] from now on; `None` without SSH.
    pub known_hosts: Option<String>,
}

/// How much of a repository is borne.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest time of one call.
    pub whole: Duration,
    /// Longest time of a question about a reference, for which little is sent.
    pub resolve: Duration,
    /// Longest time in which nothing arrives and nothing is done.
    pub stalled: Duration,
    /// Longest time until a name is resolved, and until a connection stands.
    pub connect: Duration,
    /// Most bytes that are fetched.
    pub fetched: u64,
    /// Most bytes of all files together.
    pub unpacked: u64,
    /// Most files, directories, links and submodules.
    pub entries: usize,
    /// Most memory of one process of `git`, in bytes of address space.
    pub memory: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            whole: Duration::from_secs(3600),
            resolve: Duration::from_secs(120),
            stalled: Duration::from_secs(60),
            connect: Duration::from_secs(15),
            fetched: 1024 * 1024 * 1024,
            unpacked: 2 * 1024 * 1024 * 1024,
            entries: 200_000,
            memory: 2 * 1024 * 1024 * 1024,
        }
    }
}

/// Reads repositories. Dropping a future ends what it has begun: its processes are killed, and what it keeps on disk for
/// itself is removed, by the next call at the latest.
#[async_trait]
pub trait Git: Send + Sync + 'static {
    /// The commit that the reference points to now.
    ///
    /// # Errors
    /// [`GitError`], with a sentence for people.
    async fn resolve(&self, remote: &Remote) -> Result<Resolved, GitError>;

    /// Fetches that commit without its history and writes its files beneath `into`, an empty directory of ours, with mode
    /// 0644 or 0755. What was written when it fails stays there, for the caller to remove. `progress` is told how far it is,
    /// possibly often.
    ///
    /// # Errors
    /// [`GitError`], with a sentence for people.
    async fn export(
        &self,
        remote: &Remote,
        into: &Path,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<Exported, GitError>;
}
