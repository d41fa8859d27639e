//! Repositories in memory, behind the same trait as real ones.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use reconcilers::drivers::git::{Exported, Git, GitError, Phase, Progress, Remote, Resolved};
use schema::skill_repository::Scheme;
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};

use crate::script::{Pace, PaceHook, delayed};

/// What a commit has in it: paths and their bytes.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A question that was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedGit {
    /// `resolve` or `export`.
    pub call: &'static str,
    /// The address.
    pub url: String,
    /// The full name of the reference.
    pub reference: String,
    /// The user name and secret it was asked with.
    pub credentials: Option<(String, String)>,
    /// The keys of hosts it was asked with.
    pub known_hosts: Option<String>,
}

/// Scripted repositories. Clones are handles to the same ones.
///
/// A host that is reached by SSH shows the key that [`FakeGit::host_key`] has set, at first `key`; as with real ones it is
/// learned once and then has to be the same.
#[derive(Clone, Default)]
pub struct FakeGit(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    /// By address, then by the full name of the reference.
    repositories: HashMap<String, BTreeMap<String, (String, Files)>>,
    /// The secret that an address asks for.
    secrets: HashMap<String, String>,
    host_keys: HashMap<String, String>,
    failures: VecDeque<GitError>,
    asked: Vec<AskedGit>,
    pace: Option<PaceHook>,
}

impl std::fmt::Debug for FakeGit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeGit").finish_non_exhaustive()
    }
}

impl FakeGit {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides how long each call takes, and whether it fails.
    pub fn on_call(&self, hook: impl Fn() -> Pace + Send + Sync + 'static) {
        self.script().pace = Some(Arc::new(hook));
    }

    /// The next call that has no failure yet fails with this.
    pub fn fail(&self, error: GitError) {
        self.script().failures.push_back(error);
    }

    /// From now on the reference (`refs/heads/main`, `refs/tags/v1`) points to a commit with these files. Gives its name,
    /// which the same files always have.
    pub fn push<'a>(
        &self,
        url: &str,
        reference: &str,
        files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> String {
        let files = files.into_iter();
        let files: Files = files
            .map(|(path, bytes)| (path.to_owned(), bytes.to_vec()))
            .collect();
        let mut hash = Sha256::new();
        for (path, bytes) in &files {
            hash.update(format!("{} {path} {} ", path.len(), bytes.len()));
            hash.update(bytes);
        }
        let commit = hex::encode(hash.finalize())[..40].to_owned();
        let pushed = (commit.clone(), files);
        let mut script = self.script();
        let repository = script.repositories.entry(url.to_owned()).or_default();
        repository.insert(reference.to_owned(), pushed);
        commit
    }

    /// From now on the repository is not there.
    pub fn remove(&self, url: &str) {
        self.script().repositories.remove(url);
    }

    /// From now on the repository is read with this secret only.
    pub fn close(&self, url: &str, secret: &str) {
        self.script()
            .secrets
            .insert(url.to_owned(), secret.to_owned());
    }

    /// From now on the host shows this key to who comes by SSH.
    pub fn host_key(&self, host: &str, key: &str) {
        self.script()
            .host_keys
            .insert(host.to_owned(), key.to_owned());
    }

    /// All questions so far.
    pub fn asked(&self) -> Vec<AskedGit> {
        self.script().asked.clone()
    }

    /// The commit that the question is about, and the host's keys.
    fn answer(
        &self,
        call: &'static str,
        remote: &Remote,
    ) -> Result<(String, Files, Option<String>), GitError> {
        let mut script = self.script();
        let url = remote.url.to_string();
        let reference = remote.reference.full_name(remote.ref_type);
        let credentials = remote.credentials.as_ref().map(|given| {
            let secret = given.secret.expose_secret().to_owned();
            (given.username.clone(), secret)
        });
        script.asked.push(AskedGit {
            call,
            url: url.clone(),
            reference: reference.clone(),
            credentials: credentials.clone(),
            known_hosts: remote.known_hosts.clone(),
        });
        if let Some(error) = script.failures.pop_front() {
            return Err(error);
        }
        let host = remote.url.host();
        let known_hosts = match remote.url.scheme() {
            Scheme::Https | Scheme::Http => None,
            Scheme::Ssh => {
                let key = script.host_keys.get(host).map_or("key", String::as_str);
                Some(format!("{host} {key}\n"))
            }
        };
        if known_hosts.is_some()
            && remote.known_hosts.is_some()
            && known_hosts != remote.known_hosts
        {
            return Err(GitError::HostKeyChanged {
                host: host.to_owned(),
                fingerprint: None,
            });
        }
        let secret = script.secrets.get(&url);
        if secret.is_some() && secret != credentials.as_ref().map(|(_, secret)| secret) {
            return Err(GitError::Unauthorized("status 401".to_owned()));
        }
        let repository = script.repositories.get(&url);
        let repository = repository.ok_or_else(|| GitError::NotFound("status 404".to_owned()))?;
        let commit = repository.get(&reference).cloned();
        let (commit, files) = commit.ok_or(GitError::NoReference(reference))?;
        Ok((commit, files, known_hosts))
    }

    async fn ask<T>(&self, work: impl FnOnce() -> Result<T, GitError>) -> Result<T, GitError> {
        let pace = self.script().pace.clone();
        let pace = pace.map(|pace| pace()).unwrap_or_default();
        delayed(pace, work, || {
            GitError::Unreachable("connection refused".to_owned())
        })
        .await
    }
}

#[async_trait]
impl Git for FakeGit {
    async fn resolve(&self, remote: &Remote) -> Result<Resolved, GitError> {
        self.ask(|| {
            let (commit, _, known_hosts) = self.answer("resolve", remote)?;
            Ok(Resolved {
                commit,
                known_hosts,
            })
        })
        .await
    }

    async fn export(
        &self,
        remote: &Remote,
        into: &Path,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<Exported, GitError> {
        self.ask(|| {
            let (commit, files, known_hosts) = self.answer("export", remote)?;
            for (path, bytes) in &files {
                let path = into.join(path);
                let folder = path.parent().unwrap_or(into);
                std::fs::create_dir_all(folder).map_err(GitError::Storage)?;
                std::fs::write(path, bytes).map_err(GitError::Storage)?;
            }
            let bytes = files.values().map(|bytes| bytes.len() as u64).sum();
            progress(Progress {
                phase: Phase::Writing,
                percent: Some(100),
                bytes: Some(bytes),
            });
            Ok(Exported {
                commit,
                files: files.len(),
                bytes,
                skipped: Vec::new(),
                known_hosts,
            })
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use reconcilers::drivers::git::Credentials;
    use schema::skill_repository::RefType;

    use super::*;

    fn remote(url: &str) -> Remote {
        Remote {
            url: url.parse().unwrap(),
            reference: "main".parse().unwrap(),
            ref_type: RefType::Branch,
            credentials: None,
            known_hosts: None,
            allow_private: false,
        }
    }

    #[tokio::test]
    async fn it_does_what_the_real_one_does() {
        let (git, url) = (FakeGit::default(), "https://git.example/r");
        let into = tempfile::tempdir().unwrap();
        let seen = git.resolve(&remote(url)).await;
        assert!(matches!(seen, Err(GitError::NotFound(_))));
        let commit = git.push(url, "refs/heads/main", [("a/SKILL.md", &b"x"[..])]);
        assert_eq!(git.resolve(&remote(url)).await.unwrap().commit, commit);
        let seen = git
            .export(&remote(url), into.path(), &|_| {})
            .await
            .unwrap();
        assert_eq!((seen.commit, seen.files, seen.bytes), (commit, 1, 1));
        assert_eq!(std::fs::read(into.path().join("a/SKILL.md")).unwrap(), b"x");
        let mut tag = remote(url);
        tag.ref_type = RefType::Tag;
        assert!(matches!(
            git.resolve(&tag).await,
            Err(GitError::NoReference(_))
        ));

        git.fail(GitError::Status(500));
        assert!(matches!(
            git.resolve(&remote(url)).await,
            Err(GitError::Status(500))
        ));
        git.close(url, "pw");
        assert!(matches!(
            git.resolve(&remote(url)).await,
            Err(GitError::Unauthorized(_))
        ));
        let mut known = remote(url);
        known.credentials = Some(Credentials {
            username: "git".into(),
            secret: "pw".into(),
        });
        assert!(git.resolve(&known).await.is_ok());
        assert_eq!(git.asked().len(), 7);
    }

    #[tokio::test]
    async fn keys_of_hosts_are_learned_once() {
        let (git, url) = (FakeGit::default(), "git@git.example:r");
        git.push(url, "refs/heads/main", []);
        let mut remote = remote(url);
        remote.known_hosts = git.resolve(&remote).await.unwrap().known_hosts;
        assert!(git.resolve(&remote).await.is_ok());
        git.host_key("git.example", "other");
        let seen = git.resolve(&remote).await;
        assert!(matches!(seen, Err(GitError::HostKeyChanged { .. })));
    }
}
