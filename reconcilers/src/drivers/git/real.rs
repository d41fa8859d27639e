//! The real thing.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Certificate;
use schema::skill_repository::Scheme;
use schema::under_way::track_call;
use secrecy::ExposeSecret;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, Command};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::config::Config;
use super::process::{Ended, Running, Watch};
use super::progress::{Phase, Progress};
use super::scratch::Scratch;
use super::secret::MemoryFile;
use super::tree::{Blob, Listing};
use super::words::{About, Hidden, meaning};
use super::write::{self, Shared};
use super::{Exported, Git, GitError, Limits, Remote, Resolved, address, preflight, ssh};

/// The oldest version that connects to given addresses only (`http.curloptResolve`).
const OLDEST: (u32, u32) = (2, 37);
/// Where what is fetched gets its name.
const WANTED: &str = "refs/agentyard/wanted";
/// Most bytes of what is read of a program that answers in one line.
const LINE: usize = 4096;
/// Most bytes of known_hosts that are given back: a host has three keys, of a kilobyte at most.
const KNOWN_HOSTS: usize = 16 * 1024;

/// The program `git`.
#[derive(Debug, Clone)]
pub struct GitProgram {
    /// Where programs are.
    path: String,
    /// Where calls keep what they fetch.
    scratch: PathBuf,
    limits: Limits,
    /// Authorities for certificates, as every program of OpenSSL is told of them.
    authorities: Option<PathBuf>,
    authorities_directory: Option<PathBuf>,
    fits: Arc<OnceCell<()>>,
}

impl GitProgram {
    /// The program in `PATH`. `scratch` is a directory for nothing else; it is made if it is missing. Certificates are those
    /// of authorities in the file `SSL_CERT_FILE` and the directory `SSL_CERT_DIR`, where these environment variables are
    /// set, else the system's. The process's TLS provider must have been installed before the first call.
    pub fn new(scratch: PathBuf, limits: Limits) -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let path = variable("PATH").and_then(|path| path.into_string().ok());
        let program = Self {
            path: String::new(),
            scratch,
            limits,
            authorities: variable("SSL_CERT_FILE").map(PathBuf::from),
            authorities_directory: variable("SSL_CERT_DIR").map(PathBuf::from),
            fits: Arc::default(),
        };
        program.found_in(&path.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned()))
    }

    /// The same with the programs in these folders, separated by `:`.
    #[must_use]
    pub fn found_in(mut self, path: &str) -> Self {
        // An empty or relative one would be in whatever folder the program runs.
        let folders = path.split(':').filter(|folder| folder.starts_with('/'));
        self.path = folders.collect::<Vec<_>>().join(":");
        self.fits = Arc::default();
        self
    }

    /// The same with authorities for certificates in this file (PEM).
    #[must_use]
    pub fn trusting(mut self, authorities: PathBuf) -> Self {
        self.authorities = Some(authorities);
        self
    }

    /// `git` with nothing of the service's environment.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command
            .args(arguments)
            .env_clear()
            .env("PATH", &self.path)
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        command
    }

    /// Refuses a version that is too old for what is asked of it.
    async fn check_version(&self) -> Result<(), GitError> {
        let check = || async {
            let running = Running::start(self.command(&["version"]), &self.limits)?;
            let (_, output) = local(running, &self.limits).await?;
            match is_new_enough(&output) {
                true => Ok(()),
                false => {
                    let words = output.trim_start_matches("git version ").trim();
                    Err(GitError::TooOld(Hidden::new(None, None).clean(words)))
                }
            }
        };
        self.fits.get_or_try_init(check).await.copied()
    }

    /// The authorities for the first question; of those of the system the client knows itself.
    async fn certificates(&self) -> Result<Vec<Certificate>, GitError> {
        let Some(file) = &self.authorities else {
            return Ok(Vec::new());
        };
        let bytes = tokio::fs::read(file).await.map_err(GitError::Storage)?;
        Certificate::from_pem_bundle(&bytes)
            .map_err(|error| GitError::Storage(io::Error::new(io::ErrorKind::InvalidData, error)))
    }

    /// Finds out where the repository is, whether that is allowed, and prepares everything for `git`.
    async fn open<'a>(&'a self, remote: &'a Remote) -> Result<Call<'a>, GitError> {
        self.check_version().await?;
        let parent = self.scratch.clone();
        let scratch = spawn_blocking(move || Scratch::new(&parent)).await;
        let scratch = scratch
            .map_err(io::Error::other)
            .flatten()
            .map_err(GitError::Storage)?;
        let opened = match remote.url.scheme() {
            Scheme::Https | Scheme::Http => self.by_http(remote).await?,
            Scheme::Ssh => self.by_ssh(remote, &scratch).await?,
        };
        let config = MemoryFile::new(opened.config.as_bytes()).map_err(GitError::Storage)?;
        Ok(Call {
            program: self,
            remote,
            reference: remote.reference.full_name(remote.ref_type),
            url: opened.url,
            hidden: opened.hidden,
            config,
            _key: opened.key,
            scratch,
        })
    }

    async fn by_http(&self, remote: &Remote) -> Result<Opened, GitError> {
        let certificates = self.certificates().await?;
        let target = Box::pin(preflight::ask(remote, &self.limits, &certificates)).await?;
        let port = target.url.port_or_known_default().unwrap_or_default();
        let mut config = Config::new(target.url.scheme());
        config.http(&target.checked, port, self.limits.stalled);
        config.authorities(
            self.authorities.as_deref(),
            self.authorities_directory.as_deref(),
        );
        if let Some(value) = &target.authorization {
            let origin = target.url.origin().ascii_serialization();
            config.authorization(&origin, value.expose_secret());
        }
        let secret = remote.credentials.as_ref().map(|given| &given.secret);
        Ok(Opened {
            hidden: Hidden::new(secret, target.authorization.as_ref()),
            url: target.url.into(),
            config,
            key: None,
        })
    }

    async fn by_ssh(&self, remote: &Remote, scratch: &Scratch) -> Result<Opened, GitError> {
        let (url, limits) = (&remote.url, &self.limits);
        let user = ssh::user(remote)?;
        let key = match &remote.credentials {
            Some(credentials) => {
                let key = ssh::private_key(credentials)?;
                let key = MemoryFile::new(key.expose_secret().as_bytes());
                Some(key.map_err(GitError::Storage)?)
            }
            None => None,
        };
        let known = remote.known_hosts.clone().unwrap_or_default();
        let file = scratch.path().join(ssh::KNOWN_HOSTS);
        tokio::fs::write(file, known)
            .await
            .map_err(GitError::Storage)?;
        let port = url.port_or_default();
        let checked =
            address::check(url.host(), port, None, remote.allow_private, limits.connect).await?;
        let at = checked.reachable(limits.connect).await?;
        let path = key.as_ref().map(MemoryFile::path);
        let command = ssh::command(remote, at, path.as_deref(), limits.connect, limits.stalled);
        let mut config = Config::new("ssh");
        config.ssh(&command);
        let secret = remote.credentials.as_ref().map(|given| &given.secret);
        Ok(Opened {
            url: ssh::address(url, user),
            config,
            hidden: Hidden::new(secret, None),
            key,
        })
    }

    /// A call, within this time.
    async fn within<T>(
        &self,
        whole: Duration,
        call: impl Future<Output = Result<T, GitError>> + Send,
    ) -> Result<T, GitError> {
        let ended = timeout(whole, Box::pin(call)).await;
        ended.unwrap_or(Err(GitError::Timeout(whole)))
    }
}

/// How a repository is got at.
struct Opened {
    url: String,
    config: Config,
    hidden: Hidden,
    key: Option<MemoryFile>,
}

/// One call. What it drops is dropped in this order: whoever reads the secrets has ended before.
struct Call<'a> {
    program: &'a GitProgram,
    remote: &'a Remote,
    reference: String,
    url: String,
    hidden: Hidden,
    config: MemoryFile,
    _key: Option<MemoryFile>,
    scratch: Scratch,
}

impl Call<'_> {
    /// `git` in the directory of this call, which is its repository, too.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.program.command(arguments);
        command
            .env("GIT_DIR", ".")
            .env("HOME", ".")
            .env("GIT_CONFIG_GLOBAL", self.config.path())
            .current_dir(self.scratch.path());
        command
    }

    fn start(&self, command: Command) -> Result<Running, GitError> {
        Running::start(command, &self.program.limits)
    }

    /// What an end means.
    fn check(&self, ended: &Ended) -> Result<(), GitError> {
        if ended.status.success() {
            return Ok(());
        }
        let about = About {
            host: self.remote.url.host(),
            reference: &self.reference,
            limits: &self.program.limits,
            hidden: &self.hidden,
        };
        Err(match ended.words.is_empty() {
            true => GitError::Failed(ended.status.to_string()),
            false => meaning(&ended.words, &about),
        })
    }

    /// Runs something that talks to the server.
    async fn talk(
        &self,
        arguments: &[&str],
        progress: &(dyn Fn(Progress) + Send + Sync),
        take: &mut (dyn FnMut(&[u8]) -> Result<(), GitError> + Send),
    ) -> Result<(), GitError> {
        let watch = Watch {
            limits: &self.program.limits,
            fetches_into: Some(self.scratch.path()),
            progress,
            look: &|| {},
        };
        let running = self.start(self.command(arguments))?;
        let ended = Box::pin(watch.until_end(running, take)).await?;
        self.check(&ended)
    }

    /// Runs something that talks to nobody, and gives what it answers in one line.
    async fn ask(&self, arguments: &[&str]) -> Result<(Ended, String), GitError> {
        let running = self.start(self.command(arguments))?;
        let (ended, line) = Box::pin(local(running, &self.program.limits)).await?;
        Ok((ended, line.trim().to_owned()))
    }

    /// The keys by which the host is known now.
    async fn known_hosts(&self) -> Result<Option<String>, GitError> {
        if self.remote.url.scheme() != Scheme::Ssh || self.remote.known_hosts.is_some() {
            return Ok(self.remote.known_hosts.clone());
        }
        let file = self.scratch.path().join(ssh::KNOWN_HOSTS);
        let text = tokio::fs::read(file).await.map_err(GitError::Storage)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok((!text.is_empty() && text.len() <= KNOWN_HOSTS).then_some(text))
    }

    async fn resolve(&self) -> Result<Resolved, GitError> {
        // What an annotated tag points to is listed under a name of its own.
        let peeled = format!("{}^{{}}", self.reference);
        let mut found = Found::new([&self.reference, &peeled]);
        let arguments = [
            "ls-remote",
            "--quiet",
            "--",
            &self.url,
            &self.reference,
            &peeled,
        ];
        let mut take = |bytes: &[u8]| {
            found.add(bytes);
            Ok(())
        };
        self.talk(&arguments, &|_| {}, &mut take).await?;
        let [own, peeled] = found.ids;
        let commit = peeled.or(own);
        Ok(Resolved {
            commit: commit.ok_or_else(|| GitError::NoReference(self.reference.clone()))?,
            known_hosts: self.known_hosts().await?,
        })
    }

    /// Fetches the commit and gives its name.
    async fn fetch(&self, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<String, GitError> {
        let (ended, _) = self
            .ask(&["init", "--quiet", "--bare", "--template=", "."])
            .await?;
        self.check(&ended)?;
        let wanted = format!("+{}:{WANTED}", self.reference);
        let arguments = [
            "fetch",
            "--depth=1",
            "--no-tags",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--progress",
            "--",
            &self.url,
            &wanted,
        ];
        self.talk(&arguments, progress, &mut |_| Ok(())).await?;
        let commit = format!("{WANTED}^{{commit}}");
        let (ended, commit) = self
            .ask(&["rev-parse", "--verify", "--quiet", &commit])
            .await?;
        match ended.status.success() && is_id(&commit) {
            true => Ok(commit),
            false => Err(GitError::NoCommit(self.reference.clone())),
        }
    }

    async fn list(&self, commit: &str) -> Result<Listing, GitError> {
        let limits = &self.program.limits;
        let mut listing = Listing::new(*limits);
        let watch = Watch {
            limits,
            fetches_into: None,
            progress: &|_| {},
            look: &|| {},
        };
        let command = self.command(&["ls-tree", "-r", "-t", "-z", "-l", "--full-tree", commit]);
        let mut take = |bytes: &[u8]| listing.add(bytes);
        let running = self.start(command)?;
        let ended = Box::pin(watch.until_end(running, &mut take)).await?;
        self.check(&ended)?;
        Ok(listing)
    }

    async fn write(
        &self,
        blobs: Vec<Blob>,
        into: &Path,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<usize, GitError> {
        let mut command = self.command(&["cat-file", "--batch", "--buffer"]);
        command.stdin(Stdio::piped());
        let mut running = self.start(command)?;
        let closed = || GitError::Storage(io::ErrorKind::BrokenPipe.into());
        let questions = running.child.stdin.take().ok_or_else(closed)?;
        let objects = running.child.stdout.take().ok_or_else(closed)?;
        let objects = std::fs::File::from(objects.into_owned_fd().map_err(GitError::Storage)?);
        let (shared, into, all) = (Arc::new(Shared::default()), into.to_owned(), blobs.len());
        let _stop = Stop(Arc::clone(&shared));
        let ids: String = blobs.iter().map(|blob| format!("{}\n", blob.id)).collect();
        let writer = {
            let shared = Arc::clone(&shared);
            let write = move || write::write(objects, &into, &blobs, &shared);
            spawn_blocking(track_call("files of a repository", write))
        };
        let look = || {
            let written = shared.written.load(Ordering::Relaxed);
            progress(Progress {
                phase: Phase::Writing,
                percent: u8::try_from(written * 100 / all.max(1)).ok(),
                bytes: None,
            });
        };
        let watch = Watch {
            limits: &self.program.limits,
            fetches_into: None,
            progress: &|_| {},
            look: &look,
        };
        let mut nothing = |_: &[u8]| Ok(());
        let ending = Box::pin(watch.until_end(running, &mut nothing));
        let (written, ended, ()) = tokio::join!(writer, ending, feed(questions, ids));
        let ended = ended?;
        match written.map_err(|error| GitError::Storage(io::Error::other(error)))? {
            // Why it did not get everything says the program, unless it was the writer that gave up.
            Err(GitError::Hostile(why)) => {
                self.check(&ended)?;
                Err(GitError::Hostile(why))
            }
            Err(error) => Err(error),
            Ok(()) => {
                self.check(&ended)?;
                look();
                Ok(all)
            }
        }
    }

    async fn export(
        &self,
        into: &Path,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<Exported, GitError> {
        let commit = self.fetch(progress).await?;
        let listing = self.list(&commit).await?;
        let (bytes, skipped) = (listing.bytes, listing.skipped);
        let files = self.write(listing.blobs, into, progress).await?;
        Ok(Exported {
            commit,
            files,
            bytes,
            skipped,
            known_hosts: self.known_hosts().await?,
        })
    }
}

/// Tells the writer that nobody waits any more.
struct Stop(Arc<Shared>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }
}

/// Asks for all objects. A program that ends before it has read all says itself why.
async fn feed(mut questions: ChildStdin, ids: String) {
    let _ = questions.write_all(ids.as_bytes()).await;
}

/// Waits for a program that talks to nobody; gives the beginning of what it writes.
async fn local(running: Running, limits: &Limits) -> Result<(Ended, String), GitError> {
    let watch = Watch {
        limits,
        fetches_into: None,
        progress: &|_| {},
        look: &|| {},
    };
    let mut output = Vec::new();
    let mut take = |bytes: &[u8]| {
        let left = LINE.saturating_sub(output.len());
        output.extend_from_slice(bytes.get(..left).unwrap_or(bytes));
        Ok(())
    };
    let ended = Box::pin(watch.until_end(running, &mut take)).await?;
    Ok((ended, String::from_utf8_lossy(&output).into_owned()))
}

/// `git version 2.39.5 (Apple Git-154)`.
fn is_new_enough(text: &str) -> bool {
    let words = text.strip_prefix("git version ").unwrap_or_default();
    let mut numbers = words.split('.').map(|number| number.trim().parse::<u32>());
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= OLDEST,
        _ => false,
    }
}

/// Whether a text is the name of an object.
fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Looks for names in what `git ls-remote` writes, a line at a time: a server may list more than was asked for.
struct Found<'a> {
    names: [&'a str; 2],
    ids: [Option<String>; 2],
    line: Vec<u8>,
}

impl<'a> Found<'a> {
    fn new(names: [&'a str; 2]) -> Self {
        Self {
            names,
            ids: [None, None],
            line: Vec::new(),
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte != b'\n' {
                // Longer ones are none that are looked for.
                if self.line.len() < LINE {
                    self.line.push(byte);
                }
                continue;
            }
            let line = std::str::from_utf8(&self.line).unwrap_or_default();
            if let Some((id, name)) = line.split_once('\t')
                && is_id(id)
                && let Some(at) = self.names.iter().position(|known| *known == name)
                && let Some(place) = self.ids.get_mut(at)
            {
                *place = Some(id.to_owned());
            }
            self.line.clear();
        }
    }
}

#[async_trait]
impl Git for GitProgram {
    async fn resolve(&self, remote: &Remote) -> Result<Resolved, GitError> {
        self.within(self.limits.resolve, async {
            let call = Box::pin(self.open(remote)).await?;
            call.resolve().await
        })
        .await
    }

    async fn export(
        &self,
        remote: &Remote,
        into: &Path,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<Exported, GitError> {
        self.within(self.limits.whole, async {
            let call = Box::pin(self.open(remote)).await?;
            call.export(into, progress).await
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (text, expected) in [
            ("git version 2.37.0\n", true),
            ("git version 2.47.3", true),
            ("git version 2.100.1.windows.1", true),
            ("git version 3.0", true),
            ("git version 2.36.9", false),
            ("git version 2.9.5", false),
            ("git version two", false),
            ("", false),
        ] {
            assert_eq!(is_new_enough(text), expected, "{text}");
        }
    }

    #[test]
    fn only_the_name_that_was_asked_for_is_taken() {
        let id = |digit: &str| digit.repeat(40);
        let mut found = Found::new(["refs/tags/v1", "refs/tags/v1^{}"]);
        let lines = format!(
            "{}\trefs/tags/x/refs/tags/v1\n{}\trefs/tags/v1\nnot hex\trefs/tags/v1\n{}\trefs/tags/v1^{{}}\n{}\t{}\n",
            id("1"),
            id("2"),
            id("3"),
            id("4"),
            "x".repeat(9000),
        );
        for piece in lines.as_bytes().chunks(11) {
            found.add(piece);
        }
        assert_eq!(found.ids, [Some(id("2")), Some(id("3"))]);
    }
}
