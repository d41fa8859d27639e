//! Running a program that starts others: all of them end with it.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior};

use super::progress::{self, Progress};
use super::{GitError, Limits, scratch};

/// Most bytes of a program's standard error that are kept: its last ones.
const KEPT: usize = 16 * 1024;
/// Longest line in it that may be one of progress.
const LINE: usize = 1024;
/// How often it is looked how much has arrived.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes that are read at once.
const PIECE: usize = 16 * 1024;

/// A program in a process group of its own. Dropping it kills the group: `kill_on_drop` alone would leave its children,
/// which are those that talk to the network.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) child: Child,
    group: Option<Pid>,
}

impl Running {
    /// Starts `git`.
    pub(super) fn start(mut command: Command, limits: &Limits) -> Result<Self, GitError> {
        command
            .process_group(0)
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => GitError::Missing {
                program: "git",
                package: "git",
            },
            _ => GitError::Storage(error),
        })?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let group = pid.and_then(Pid::from_raw);
        let running = Self { child, group };
        // From here on it may be dropped. Whoever unpacks what arrives is started by this one only after it has talked
        // to the server, and inherits these: the last ditch behind the looks at the directory.
        for (resource, most) in [
            (Resource::Fsize, limits.fetched),
            (Resource::As, limits.memory),
            // A core would hold the secrets.
            (Resource::Core, 0),
        ] {
            let limit = Rlimit {
                current: Some(most),
                maximum: Some(most),
            };
            match rustix::process::prlimit(running.group, resource, limit) {
                // It has ended already.
                Ok(_) | Err(rustix::io::Errno::SRCH) => {}
                Err(errno) => return Err(GitError::Storage(errno.into())),
            }
        }
        Ok(running)
    }

    /// Kills whatever is left of the group.
    fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How a program ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// What it wrote to its standard error, without lines of progress.
    pub(super) words: Vec<u8>,
}

/// What is done while a program runs.
pub(super) struct Watch<'a> {
    pub(super) limits: &'a Limits,
    /// Where it writes, if it talks to a server: how much is looked at, and whether there is any news at all.
    pub(super) fetches_into: Option<&'a Path>,
    /// Told of each line of progress.
    pub(super) progress: &'a (dyn Fn(Progress) + Send + Sync),
    /// Called from time to time.
    pub(super) look: &'a (dyn Fn() + Send + Sync),
}

impl Watch<'_> {
    /// Waits for the end; `take` is given what the program writes to its standard output, unless that was taken away before.
    pub(super) async fn until_end(
        &self,
        mut running: Running,
        take: &mut (dyn FnMut(&[u8]) -> Result<(), GitError> + Send),
    ) -> Result<Ended, GitError> {
        let mut errors = Stream::of(running.child.stderr.take());
        let mut output = Stream::of(running.child.stdout.take());
        let mut told = Told::default();
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut news, mut size) = (Instant::now(), 0);
        let mut status: Option<ExitStatus> = None;
        loop {
            if let Some(status) = status
                && errors.is_done()
                && output.is_done()
            {
                if let Some(directory) = self.fetches_into.filter(|_| !status.success()) {
                    // Whoever writes too large a file is ended by a signal, of which nobody says a word.
                    self.size(directory).await?;
                }
                let words = told.end();
                return Ok(Ended { status, words });
            }
            tokio::select! {
                piece = errors.next(), if !errors.is_done() => {
                    news = Instant::now();
                    told.add(piece.map_err(GitError::Storage)?, self.progress);
                }
                piece = output.next(), if !output.is_done() => {
                    news = Instant::now();
                    take(piece.map_err(GitError::Storage)?)?;
                }
                ended = running.child.wait(), if status.is_none() => {
                    status = Some(ended.map_err(GitError::Storage)?);
                    // Whom it has left behind holds its pipes open.
                    running.kill();
                }
                _ = looks.tick() => {
                    (self.look)();
                    let Some(directory) = self.fetches_into else { continue };
                    let now = self.size(directory).await?;
                    if now != size {
                        (news, size) = (Instant::now(), now);
                    }
                    if news.elapsed() > self.limits.stalled {
                        return Err(GitError::Stalled(self.limits.stalled));
                    }
                }
            }
        }
    }

    async fn size(&self, directory: &Path) -> Result<u64, GitError> {
        let directory = directory.to_owned();
        let size = spawn_blocking(move || scratch::size(&directory)).await;
        let size = size.map_err(|error| GitError::Storage(io::Error::other(error)))?;
        match size > self.limits.fetched {
            true => Err(too_large(self.limits)),
            false => Ok(size),
        }
    }
}

/// More arrives than is borne.
pub(super) fn too_large(limits: &Limits) -> GitError {
    GitError::TooMuch {
        most: limits.fetched,
        what: "bytes to fetch",
    }
}

/// A pipe, until its end.
struct Stream<R> {
    pipe: Option<R>,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Stream<R> {
    fn of(pipe: Option<R>) -> Self {
        let buffer = vec![0; PIECE];
        Self { pipe, buffer }
    }

    fn is_done(&self) -> bool {
        self.pipe.is_none()
    }

    /// What comes next; nothing at the end.
    async fn next(&mut self) -> io::Result<&[u8]> {
        let Some(pipe) = &mut self.pipe else {
            return Ok(&[]);
        };
        let read = pipe.read(&mut self.buffer).await?;
        if read == 0 {
            self.pipe = None;
        }
        Ok(self.buffer.get(..read).unwrap_or_default())
    }
}

/// What a program says on its standard error.
#[derive(Debug, Default)]
struct Told {
    line: Vec<u8>,
    words: Vec<u8>,
}

impl Told {
    fn add(&mut self, bytes: &[u8], progress: &(dyn Fn(Progress) + Send + Sync)) {
        for &byte in bytes {
            if byte != b'\n' && byte != b'\r' {
                self.line.push(byte);
                // Nobody writes lines like that but to fill the memory.
                if self.line.len() >= LINE {
                    self.keep();
                }
                continue;
            }
            let read = std::str::from_utf8(&self.line)
                .ok()
                .and_then(progress::read);
            match read {
                Some(read) => {
                    self.line.clear();
                    progress(read);
                }
                None if self.line.is_empty() => {}
                None => {
                    self.line.push(b'\n');
                    self.keep();
                }
            }
        }
    }

    /// Takes the line over, and forgets the oldest.
    fn keep(&mut self) {
        self.words.append(&mut self.line);
        let over = self.words.len().saturating_sub(KEPT);
        self.words.drain(..over);
    }

    fn end(mut self) -> Vec<u8> {
        self.keep();
        self.words
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn progress_is_told_and_the_last_words_are_kept() {
        let seen = Mutex::new(Vec::new());
        let progress = |progress: Progress| seen.lock().unwrap().push(progress.percent);
        let mut told = Told::default();
        told.add(b"Receiving objects:   1% (1/9)\rReceiving obj", &progress);
        told.add(b"ects:   2% (2/9)\rfatal: a\nb", &progress);
        assert_eq!(told.end(), b"fatal: a\nb");
        assert_eq!(*seen.lock().unwrap(), [Some(1), Some(2)]);

        let mut told = Told::default();
        for _ in 0..100 {
            told.add(&[b'x'; 1000], &progress);
        }
        told.add(b"\nfatal: z\n", &progress);
        let words = told.end();
        assert!(words.len() <= KEPT && words.ends_with(b"\nfatal: z\n"));
    }
}
