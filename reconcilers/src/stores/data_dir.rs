//! The data directory as reconcilers see it: users' directories, and the file with which it is proven
//! that the engine sees the same directory.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Buf, Bytes};
use futures::StreamExt;
use futures::stream::BoxStream;
use schema::condition::Reason;
use schema::home::workspace::{Emptied, FileError};
use schema::home::{
    AGENT_DIR, Archive, ArchiveBatch, AskedSkill, FoundFile, HomeError, HomeLook, HomeState, Homes,
    LONG_READING, Measurement, NewFile, Owner, PreviousSkill, Readings, SeedLimits, Seeded,
    SeenSkills, SkillsLook, Walked,
};
use schema::ids::{SkillName, Timestamp, Uid, UserName};
use schema::skill_repository::{Checkouts, NewCheckout, Offer};
use schema::skill_store::{
    SkillStore, SkillStoreError, Skipped, TreeDigest, TreeLimits, TreeStamp,
};
use schema::under_way::track_call;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::runtime::{Classify, ErrorClass, blocking};

/// The directory of the proof, inside the data directory.
const PROBE_DIR: &str = "probe";
/// Its file.
const PROBE_FILE: &str = "probe";

/// Time for which a walk through a directory goes on at a time.
const PIECE_OF_WALK: Duration = Duration::from_secs(20);
/// How long a thread for it, and its end, are waited for: a disk may hang.
const LONGEST_WAIT: Duration = Duration::from_secs(2 * 60);

/// Bytes of somebody who may fail on the way.
pub type ByteStream = BoxStream<'static, io::Result<Bytes>>;

/// What reconcilers ask of the data directory. What each call does, and that it may be interrupted
/// and repeated, is said at [`Homes`]. [`LocalDataDir`] is the file system,
/// `kit::MemoryDataDir` keeps the same contract for simulations.
#[async_trait]
pub trait DataDir: Send + Sync + 'static {
    /// Where it is, for people.
    fn place(&self) -> String;
    /// Reads a user's directory without changing anything.
    async fn state(
        &self,
        name: &UserName,
        uid: &Uid,
        owner: Option<Owner>,
    ) -> Result<HomeState, HomeError>;
    /// Which directory a user's is, and which of these files of the agent are in it; `None` when it is not
    /// there. Paths are relative to the agent's directory.
    async fn look(
        &self,
        name: &UserName,
        uid: &Uid,
        files: &[&str],
    ) -> Result<Option<HomeLook>, HomeError>;
    /// Makes a user's directory.
    async fn ensure(
        &self,
        name: &UserName,
        uid: &Uid,
        owner: Option<Owner>,
    ) -> Result<(), HomeError>;
    /// Gives a user's directory the user's new name.
    async fn rename(&self, from: &UserName, to: &UserName, uid: &Uid) -> Result<(), HomeError>;
    /// Whether the image's own home is to be copied into a user's directory: a copy was begun, or nobody has written in
    /// it but the service, which makes `own`. Paths are relative to the agent's directory.
    async fn needs_seed(
        &self,
        name: &UserName,
        uid: &Uid,
        own: &[String],
    ) -> Result<bool, HomeError>;
    /// Copies an image's own home, a tar stream, into a user's directory.
    async fn seed(
        &self,
        name: &UserName,
        uid: &Uid,
        image_home: ByteStream,
    ) -> Result<Seeded, HomeError>;
    /// Moves a user's directory, which takes so many `bytes`, to the archive, or to a batch in it.
    async fn archive(
        &self,
        name: &UserName,
        uid: &Uid,
        deleted_at: Timestamp,
        batch: Option<&ArchiveBatch>,
        bytes: Option<u64>,
    ) -> Result<(), HomeError>;
    /// The archives of users, the oldest first.
    async fn archives(&self) -> Result<Vec<Archive>, HomeError>;
    /// Removes an archive of a user.
    async fn remove_archive(&self, directory: &str) -> Result<(), HomeError>;
    /// When a regular file in a user's directory was last written; `None` when there is none.
    async fn file_modified(
        &self,
        name: &UserName,
        uid: &Uid,
        relative: &str,
    ) -> Result<Option<Timestamp>, HomeError>;
    /// The agent's two files as they are, at most `limit` bytes each; `None` = there is none. Paths are
    /// relative to the agent's directory.
    async fn read_agent_files(
        &self,
        name: &UserName,
        uid: &Uid,
        paths: [&str; 2],
        limit: u64,
    ) -> Result<[Option<FoundFile>; 2], HomeError>;
    /// Replaces files of the agent, none of them when one is not what was expected. Paths are relative to
    /// the agent's directory.
    async fn write_agent_files(
        &self,
        name: &UserName,
        uid: &Uid,
        files: &[NewFile],
    ) -> Result<(), HomeError>;
    /// How these skills of a user look, with no file read.
    async fn look_at_skills(
        &self,
        name: &UserName,
        uid: &Uid,
        asked: Vec<(SkillName, TreeLimits)>,
    ) -> Result<Option<SkillsLook>, HomeError>;
    /// Reads these skills of a user.
    async fn read_skills(
        &self,
        name: &UserName,
        uid: &Uid,
        asked: Vec<AskedSkill>,
    ) -> Result<Option<SeenSkills>, HomeError>;
    /// Makes a skill of the store for a user, where nobody else can reach it.
    async fn stage_skill(
        &self,
        name: &UserName,
        uid: &Uid,
        skill: &SkillName,
        digest: &TreeDigest,
    ) -> Result<TreeStamp, HomeError>;
    /// Gives a skill that was made its name in the workspace.
    async fn swap_skill(
        &self,
        name: &UserName,
        uid: &Uid,
        skill: &SkillName,
        previous: &PreviousSkill,
    ) -> Result<(), HomeError>;
    /// Takes a skill out of the workspace.
    async fn remove_skill(
        &self,
        name: &UserName,
        uid: &Uid,
        skill: &SkillName,
        previous: &PreviousSkill,
    ) -> Result<(), HomeError>;
    /// Removes what interrupted deployments have left.
    async fn clear_skill_leftovers(&self, name: &UserName, uid: &Uid) -> Result<(), HomeError>;
    /// The names of skills of which something is in the store, sorted.
    async fn stored_names(&self) -> Result<Vec<SkillName>, SkillStoreError>;
    /// The versions of a skill in the store, with the time at which each was last imported.
    async fn stored_versions(
        &self,
        skill: &SkillName,
    ) -> Result<Vec<(TreeDigest, Timestamp)>, SkillStoreError>;
    /// Removes a version of a skill from the store unless it was imported after `not_newer_than`.
    async fn remove_version(
        &self,
        skill: &SkillName,
        digest: &TreeDigest,
        not_newer_than: Timestamp,
    ) -> Result<(), SkillStoreError>;
    /// The repositories of which something is there.
    async fn checkouts(&self) -> Result<Vec<Uid>, HomeError>;
    /// Whether the files of a commit of a repository are there.
    async fn has_checkout(&self, repository: &Uid, commit: &str) -> Result<bool, HomeError>;
    /// A new place for the files of a commit.
    async fn begin_checkout(
        &self,
        repository: &Uid,
        kept: Option<&str>,
    ) -> Result<NewCheckout, HomeError>;
    /// The files of a commit are complete, but for what was skipped. Gives the skills in them.
    async fn publish_checkout(
        &self,
        repository: &Uid,
        new: NewCheckout,
        commit: &str,
        skipped: Vec<Skipped>,
    ) -> Result<Offer, HomeError>;
    /// Removes all files of a repository.
    async fn remove_checkouts(&self, repository: &Uid) -> Result<(), HomeError>;
    /// Measures a user's directory, or goes on with what has `begun`. Whoever does not wait for it any more ends it.
    async fn measure(
        &self,
        name: &UserName,
        uid: &Uid,
        begun: Option<Measurement>,
    ) -> Result<Walked, HomeError>;
    /// Removes for good what was deleted from a user's workspace before a time. Returns how much.
    async fn empty_trash(
        &self,
        name: &UserName,
        uid: &Uid,
        before: Timestamp,
    ) -> Result<Emptied, FileError>;
    /// Writes `<data>/probe/probe`.
    async fn write_probe(&self, content: &str) -> io::Result<()>;
    /// Removes `<data>/probe`.
    async fn remove_probe(&self) -> io::Result<()>;
}

/// Reports whether parsing a file may take long. What a YAML alias stands for may be much, however short the file is.
fn may_take_long(bytes: &[u8]) -> bool {
    bytes.len() as u64 >= LONG_READING || bytes.contains(&b'*')
}

/// The user's directory went while its files were worked on.
fn home_gone() -> HomeError {
    HomeError::Changed {
        path: String::new(),
    }
}

/// The data directory on this machine's file system.
#[derive(Debug)]
pub struct LocalDataDir {
    path: PathBuf,
    homes: Arc<Homes>,
    skills: Arc<SkillStore>,
    checkouts: Arc<Checkouts>,
    /// How long a walk through a workspace goes on at a time.
    piece_of_walk: Duration,
}

impl LocalDataDir {
    /// Opens it: see [`Homes::open`].
    ///
    /// # Errors
    /// As [`Homes::open`].
    pub fn open(path: &Path, instance_id: &str) -> Result<Self, HomeError> {
        let homes = Homes::open(path, instance_id)?;
        let skills = SkillStore::open(path).map_err(|error| match error {
            SkillStoreError::RefusedRoot { path, reason } => {
                HomeError::RefusedRoot { path, reason }
            }
            SkillStoreError::Io {
                action,
                path,
                source,
            } => HomeError::Io {
                action,
                path,
                source,
            },
            SkillStoreError::Removal(error) => error,
        })?;
        Ok(Self {
            path: path.to_owned(),
            homes: Arc::new(homes),
            skills: Arc::new(skills),
            checkouts: Arc::new(Checkouts::open(path)?),
            piece_of_walk: PIECE_OF_WALK,
        })
    }

    /// Notes readings of users' files.
    pub fn note_readings(&self, readings: &Readings) {
        self.homes.note_readings(readings);
    }

    /// The same with walks through workspaces that go on for so long at a time.
    #[must_use]
    pub fn with_pieces_of_walks(mut self, piece: Duration) -> Self {
        self.piece_of_walk = piece;
        self
    }

    /// Files are read and written on threads that may block.
    async fn with_homes<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Homes) -> Result<T, HomeError> + Send + 'static,
    ) -> Result<T, HomeError> {
        let homes = Arc::clone(&self.homes);
        let work = track_call("files of users for a reconciler", move || work(&homes));
        let result = tokio::task::spawn_blocking(work).await;
        result.unwrap_or_else(|error| {
            Err(HomeError::Io {
                action: "working on",
                path: self.path.clone(),
                source: io::Error::other(error),
            })
        })
    }
}

#[async_trait]
impl DataDir for LocalDataDir {
    fn place(&self) -> String {
        self.path.display().to_string()
    }

    async fn state(
        &self,
        name: &UserName,
        uid: &Uid,
        owner: Option<Owner>,
    ) -> Result<HomeState, HomeError> {
        let (name, uid) = (name.clone(), uid.clone());
        self.with_homes(move |homes| homes.state(&name, &uid, owner))
            .await
    }

    async fn look(
        &self,
        name: &UserName,
        uid: &Uid,
        files: &[&str],
    ) -> Result<Option<HomeLook>, HomeError> {
        let (name, uid) = (name.clone(), uid.clone());
        let files = files.iter().map(|file| format!("{AGENT_DIR}/{file}"));
        let files: Vec<String> = files.collect();
        self.with_homes(move |homes| homes.look(&name, &uid, &files))
            .await
    }

    async fn ensure(
        &self,
        name: &UserName,
        uid: &Uid,
        owner: Option<Owner>,
    ) -> Result<(), HomeError> {
        let (name, uid) = (name.clone(), uid.clone());
        self.with_homes(move |homes| homes.ensure(&name, &uid, owner).map(drop))
            .await
    }

    async fn rename(&self, from: &UserName, to: &UserName, uid: &Uid) -> Result<(), HomeError> {
        let (from, to, uid) = (from.clone(), to.clone(), uid.clone());
        self.with_homes(move |homes| homes.rename(&from, &to, &uid))
            .await
    }

    async fn needs_seed(
        &self,
        name: &UserName,
        uid: &Uid,
        own: &[String],
    ) -> Result<bool, HomeError> {
        let (name, uid, own) = (name.clone(), uid.clone(), own.to_vec());
        self.with_homes(move |homes| homes.needs_seed(&name, &uid, &own))
            .await
    }

    async fn seed(
        &self,
        name: &UserName,
        uid: &Uid,
        mut image_home: ByteStream,
    ) -> Result<Seeded, HomeError> {
        let (name, uid) = (name.clone(), uid.clone());
        #[expect(
            clippy::disallowed_methods,
            reason = "one part of a listing; the reconciler takes it"
        )]
        let (sender, parts) = mpsc::channel(1);
        let feed = async move {
            while let Some(part) = image_home.next().await {
                // Nobody reads on once the copy is complete, or has failed.
                if sender.send(part.map(Some)).await.is_err() {
                    return;
                }
            }
            let _ = sender.send(Ok(None)).await;
        };
        let copy = self.with_homes(move |homes| {
            homes.seed(&name, &uid, Parts::new(parts), SeedLimits::default())
        });
        tokio::join!(feed, copy).1
    }

    async fn archive(
        &self,
        name: &UserName,
        uid: &Uid,
        deleted_at: Timestamp,
        batch: Option<&ArchiveBatch>,
        bytes: Option<u64>,
    ) -> Result<(), HomeError> {
        let (name, uid, batch) = (name.clone(), uid.clone(), batch.cloned());
        self.with_homes(move |homes| {
            let archived = homes.archive(&name, &uid, deleted_at, batch.as_ref(), bytes);
            archived.map(drop)
        })
        .await
    }

    async fn archives(&self) -> Result<Vec<Archive>, HomeError> {
        self.with_homes(Homes::archives).await
    }

    async fn remove_archive(&self, directory: &str) -> Result<(), HomeError> {
        let directory = directory.to_owned();
        self.with_homes(move |homes| homes.remove_archive(&directory))
            .await
    }

    async fn file_modified(
        &self,
        name: &UserName,
        uid: &Uid,
        relative: &str,
    ) -> Result<Option<Timestamp>, HomeError> {
        let (name, uid, relative) = (name.clone(), uid.clone(), relative.to_owned());
        self.with_homes(move |homes| match homes.open_existing(&name, &uid)? {
            Some(home) => home.file_modified(&relative),
            None => Ok(None),
        })
        .await
    }

    async fn read_agent_files(
        &self,
        name: &UserName,
        uid: &Uid,
        paths: [&str; 2],
        limit: u64,
    ) -> Result<[Option<FoundFile>; 2], HomeError> {
        let (name, uid) = (name.clone(), uid.clone());
        let [config, security] = paths.map(|path| format!("{AGENT_DIR}/{path}"));
        self.with_homes(move |homes| match homes.open_existing(&name, &uid)? {
            Some(home) => {
                let read = |path: &str| {
                    let found = home.read_stamped(path, limit)?;
                    let found = found.map(|mut file| {
                        if may_take_long(&file.bytes) {
                            file.notes = home.notes_of(path);
                        }
                        file
                    });
                    Ok::<_, HomeError>(found)
                };
                Ok([read(&config)?, read(&security)?])
            }
            None => Ok([None, None]),
        })
        .await
    }

    async fn write_agent_files(
        &self,
        name: &UserName,
        uid: &Uid,
        files: &[NewFile],
    ) -> Result<(), HomeError> {
        let (name, uid, files) = (name.clone(), uid.clone(), files.to_vec());
        self.with_homes(move |homes| match homes.open_existing(&name, &uid)? {
            Some(home) => home.write_files(AGENT_DIR, &files),
            None => Err(home_gone()),
        })
        .await
    }

    async fn look_at_skills(
        &self,
        name: &UserName,
        uid: &Uid,
        asked: Vec<(SkillName, TreeLimits)>,
    ) -> Result<Option<SkillsLook>, HomeError> {
        let (name, uid) = (name.clone(), uid.clone());
        self.with_homes(move |homes| homes.look_at_skills(&name, &uid, &asked))
            .await
    }

    async fn read_skills(
        &self,
        name: &UserName,
        uid: &Uid,
        asked: Vec<AskedSkill>,
    ) -> Result<Option<SeenSkills>, HomeError> {
        let (name, uid) = (name.clone(), uid.clone());
        self.with_homes(move |homes| homes.read_skills(&name, &uid, &asked))
            .await
    }

    async fn stage_skill(
        &self,
        name: &UserName,
        uid: &Uid,
        skill: &SkillName,
        digest: &TreeDigest,
    ) -> Result<TreeStamp, HomeError> {
        let (name, uid) = (name.clone(), uid.clone());
        let (skill, digest) = (skill.clone(), digest.clone());
        let store = Arc::clone(&self.skills);
        self.with_homes(move |homes| {
            let tree = store
                .open_tree(&skill, &digest)
                .map_err(|error| HomeError::Io {
                    action: "reading the store of skills in",
                    path: homes.path_of(&name),
                    source: io::Error::other(error),
                })?;
            let tree = tree.ok_or_else(|| HomeError::NoSkill {
                skill: skill.to_string(),
                digest: digest.to_string(),
            })?;
            homes.stage_skill(&name, &uid, &skill, tree)
        })
        .await
    }

    async fn swap_skill(
        &self,
        name: &UserName,
        uid: &Uid,
        skill: &SkillName,
        previous: &PreviousSkill,
    ) -> Result<(), HomeError> {
        let (name, uid) = (name.clone(), uid.clone());
        let (skill, previous) = (skill.clone(), previous.clone());
        self.with_homes(move |homes| homes.swap_skill(&name, &uid, &skill, &previous))
            .await
    }

    async fn remove_skill(
        &self,
        name: &UserName,
        uid: &Uid,
        skill: &SkillName,
        previous: &PreviousSkill,
    ) -> Result<(), HomeError> {
        let (name, uid) = (name.clone(), uid.clone());
        let (skill, previous) = (skill.clone(), previous.clone());
        self.with_homes(move |homes| homes.remove_skill(&name, &uid, &skill, &previous))
            .await
    }

    async fn clear_skill_leftovers(&self, name: &UserName, uid: &Uid) -> Result<(), HomeError> {
        let (name, uid) = (name.clone(), uid.clone());
        self.with_homes(move |homes| homes.clear_skill_leftovers(&name, &uid))
            .await
    }

    async fn stored_names(&self) -> Result<Vec<SkillName>, SkillStoreError> {
        let store = Arc::clone(&self.skills);
        blocking(move || store.names()).await
    }

    async fn stored_versions(
        &self,
        skill: &SkillName,
    ) -> Result<Vec<(TreeDigest, Timestamp)>, SkillStoreError> {
        let (store, skill) = (Arc::clone(&self.skills), skill.clone());
        blocking(move || store.digests(&skill)).await
    }

    async fn remove_version(
        &self,
        skill: &SkillName,
        digest: &TreeDigest,
        not_newer_than: Timestamp,
    ) -> Result<(), SkillStoreError> {
        let (store, skill, digest) = (Arc::clone(&self.skills), skill.clone(), digest.clone());
        blocking(move || store.remove_unused(&skill, &digest, not_newer_than))
            .await
            .map(drop)
    }

    async fn checkouts(&self) -> Result<Vec<Uid>, HomeError> {
        let checkouts = Arc::clone(&self.checkouts);
        blocking(move || checkouts.uids()).await
    }

    async fn has_checkout(&self, repository: &Uid, commit: &str) -> Result<bool, HomeError> {
        let (checkouts, uid) = (Arc::clone(&self.checkouts), repository.clone());
        let commit = commit.to_owned();
        blocking(move || Ok(checkouts.get(&uid, &commit)?.is_some())).await
    }

    async fn begin_checkout(
        &self,
        repository: &Uid,
        kept: Option<&str>,
    ) -> Result<NewCheckout, HomeError> {
        let (checkouts, uid) = (Arc::clone(&self.checkouts), repository.clone());
        let kept = kept.map(str::to_owned);
        blocking(move || checkouts.begin(&uid, kept.as_deref())).await
    }

    async fn publish_checkout(
        &self,
        repository: &Uid,
        new: NewCheckout,
        commit: &str,
        skipped: Vec<Skipped>,
    ) -> Result<Offer, HomeError> {
        let (checkouts, uid) = (Arc::clone(&self.checkouts), repository.clone());
        let commit = commit.to_owned();
        blocking(move || checkouts.publish(&uid, &new, &commit, &skipped)).await
    }

    async fn remove_checkouts(&self, repository: &Uid) -> Result<(), HomeError> {
        let (checkouts, uid) = (Arc::clone(&self.checkouts), repository.clone());
        blocking(move || checkouts.remove(&uid)).await
    }

    async fn empty_trash(
        &self,
        name: &UserName,
        uid: &Uid,
        before: Timestamp,
    ) -> Result<Emptied, FileError> {
        let homes = Arc::clone(&self.homes);
        let (name, uid) = (name.clone(), uid.clone());
        let ended = CancellationToken::new();
        let _ends_with_this = ended.clone().drop_guard();
        let piece = self.piece_of_walk;
        let work = blocking(move || {
            let end = Instant::now() + piece;
            let goes_on = || !ended.is_cancelled() && Instant::now() < end;
            match homes.workspace(&name, &uid)? {
                Some(workspace) => workspace.empty_trash(before, goes_on),
                None => Ok(Emptied::default()),
            }
        });
        let emptied = timeout(LONGEST_WAIT, work).await;
        emptied.unwrap_or_else(|_| {
            Err(FileError::Io {
                action: "emptying",
                path: ".trash".to_owned(),
                source: io::ErrorKind::TimedOut.into(),
            })
        })
    }

    async fn measure(
        &self,
        name: &UserName,
        uid: &Uid,
        begun: Option<Measurement>,
    ) -> Result<Walked, HomeError> {
        let homes = Arc::clone(&self.homes);
        let (name, uid) = (name.clone(), uid.clone());
        let path = homes.path_of(&name);
        let ended = CancellationToken::new();
        let _ends_with_this = ended.clone().drop_guard();
        let piece = self.piece_of_walk;
        let walk = blocking(move || {
            // From now on: before this it has waited for a thread.
            let end = Instant::now() + piece;
            let goes_on = || !ended.is_cancelled() && Instant::now() < end;
            if let Some(begun) = begun {
                return begun.go_on(goes_on);
            }
            let home = homes.open_existing(&name, &uid)?;
            home.map_or(Ok(Walked::Missing), |home| home.measure(goes_on))
        });
        let walked = timeout(LONGEST_WAIT, walk).await;
        walked.unwrap_or_else(|_| {
            Err(HomeError::Io {
                action: "measuring",
                path,
                source: io::ErrorKind::TimedOut.into(),
            })
        })
    }

    async fn write_probe(&self, content: &str) -> io::Result<()> {
        let dir = self.path.join(PROBE_DIR);
        tokio::fs::create_dir_all(&dir).await?;
        tokio::fs::write(dir.join(PROBE_FILE), content).await
    }

    async fn remove_probe(&self) -> io::Result<()> {
        tokio::fs::remove_dir_all(self.path.join(PROBE_DIR)).await
    }
}

/// A stream as a thread reads it that may block. Its end is said: when nobody feeds it any more, because the copy was given
/// up, what has come so far is not the whole.
struct Parts {
    parts: mpsc::Receiver<io::Result<Option<Bytes>>>,
    rest: Bytes,
    ended: bool,
}

impl Parts {
    fn new(parts: mpsc::Receiver<io::Result<Option<Bytes>>>) -> Self {
        Self {
            parts,
            rest: Bytes::new(),
            ended: false,
        }
    }
}

impl io::Read for Parts {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() && !self.ended {
            match self.parts.blocking_recv() {
                Some(Ok(Some(part))) => self.rest = part,
                Some(Ok(None)) => self.ended = true,
                Some(Err(error)) => return Err(error),
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        io::Read::read(&mut (&mut self.rest).reader(), buffer)
    }
}

impl Classify for HomeError {
    fn classify(&self) -> (ErrorClass, Reason) {
        match self {
            Self::RefusedRoot { .. }
            | Self::Conflict(_)
            | Self::UnsafePath { .. }
            | Self::NotRegular { .. }
            | Self::TooLarge { .. } => (ErrorClass::Terminal, Reason::HomeConflict),
            Self::NoSkill { .. } => (ErrorClass::Terminal, Reason::SkillMissing),
            Self::SeedTooLarge { .. } => (ErrorClass::Terminal, Reason::InvalidSettings),
            Self::Changed { .. } => (ErrorClass::Conflict, Reason::Retrying),
            Self::Forbidden { .. } | Self::CopyDiffers { .. } => {
                (ErrorClass::Transient, Reason::Retrying)
            }
            Self::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                (ErrorClass::Transient, Reason::StorageFull)
            }
            Self::Io { .. } => (ErrorClass::Transient, Reason::Retrying),
        }
    }
}

impl Classify for SkillStoreError {
    fn classify(&self) -> (ErrorClass, Reason) {
        match self.is_storage_full() {
            true => (ErrorClass::Transient, Reason::StorageFull),
            false => (ErrorClass::Transient, Reason::Retrying),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_stream_that_is_given_up_is_not_taken_for_a_whole_one() {
        for (ended, expected) in [(true, Ok(3)), (false, Err(io::ErrorKind::UnexpectedEof))] {
            #[expect(clippy::disallowed_methods, reason = "in a test")]
            let (sender, parts) = mpsc::channel(2);
            let part = Bytes::from_static(b"abc");
            sender.blocking_send(Ok(Some(part))).unwrap();
            if ended {
                sender.blocking_send(Ok(None)).unwrap();
            }
            drop(sender);
            let read = Parts::new(parts).read_to_end(&mut Vec::new());
            assert_eq!(read.map_err(|error| error.kind()), expected);
        }
    }
}
