//! The data directory in memory.

mod skills;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use schema::home::workspace::{Emptied, FileError};
use schema::home::{
    AGENT_DIR, Archive, ArchiveBatch, AskedSkill, FileNotes, FoundFile, HomeError, HomeId,
    HomeLook, HomeState, Measured, Measurement, NewFile, Owner, PreviousSkill, Seeded, SeenSkills,
    SkillsLook, Stamp, WORKSPACE_DIR, Walked, archive_names,
};
use schema::ids::{SkillName, Timestamp, Uid, UserName};
use schema::skill::{TreeDigest, TreeStamp};
use schema::skill_repository::{NewCheckout, Offer};
use schema::skill_store::Skipped;
use schema::skill_store::{SkillStoreError, TreeLimits};

use crate::engine::HostEntry;
use crate::script::{Pace, PaceHook, delayed};
use reconcilers::stores::{ByteStream, DataDir};

/// Where it pretends to be.
const PLACE: &str = "/simulated";

#[derive(Debug, Clone, PartialEq, Eq)]
struct Home {
    uid: Uid,
    /// Another one for each directory that is made.
    number: u64,
    files: BTreeMap<String, MemoryFile>,
    skills: BTreeMap<SkillName, skills::MemorySkill>,
    /// What of the user's was kept, in `skills/.replaced`.
    kept: BTreeMap<String, skills::MemorySkill>,
}

fn home_id(home: &Home) -> HomeId {
    HomeId::from(format!("memory-{}", home.number))
}

#[derive(Clone, PartialEq, Eq)]
struct MemoryFile {
    bytes: Vec<u8>,
    mode: u32,
    modified: Timestamp,
    /// Another one for each write.
    number: u64,
}

impl std::fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryFile").finish_non_exhaustive()
    }
}

impl MemoryFile {
    fn stamp(&self) -> Stamp {
        Stamp {
            inode: self.number,
            size: self.bytes.len() as u64,
            modified_ns: i128::from(self.modified.as_millis()) * 1_000_000,
        }
    }

    fn found(&self) -> FoundFile {
        FoundFile {
            bytes: self.bytes.clone(),
            stamp: self.stamp(),
            mode: self.mode,
            notes: FileNotes::default(),
        }
    }
}

#[derive(Debug, Default)]
struct Disk {
    users: BTreeMap<String, Home>,
    archive: BTreeMap<String, Home>,
    probe: Option<String>,
    skills: skills::Skills,
    writes: u64,
    /// How often a file was written, by anybody.
    written: u64,
}

type MadeHook = Arc<dyn Fn(&Uid, &str) -> Option<Timestamp> + Send + Sync>;

/// Users' directories in memory. Clones are handles to the same ones. Owners of files are not
/// simulated.
#[derive(Clone, Default)]
pub struct MemoryDataDir {
    disk: Arc<Mutex<Disk>>,
    pace: Arc<Mutex<Option<PaceHook>>>,
    made: Arc<Mutex<Option<MadeHook>>>,
}

impl std::fmt::Debug for MemoryDataDir {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryDataDir").finish_non_exhaustive()
    }
}

fn full(action: &'static str) -> HomeError {
    HomeError::Io {
        action,
        path: PLACE.into(),
        source: io::Error::from(io::ErrorKind::StorageFull),
    }
}

impl MemoryDataDir {
    /// Decides how long each call takes, and whether it fails.
    pub fn on_call(&self, hook: impl Fn() -> Pace + Send + Sync + 'static) {
        *self.pace.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(hook));
    }

    /// Says when an agent has made a file of its own: the user's uid, and the path in the directory.
    pub fn on_made(&self, hook: impl Fn(&Uid, &str) -> Option<Timestamp> + Send + Sync + 'static) {
        *self.made.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(hook));
    }

    /// How often something was changed.
    pub fn writes(&self) -> u64 {
        self.disk().writes
    }

    /// The agent writes a file in its home; false when there is no such home.
    pub fn hand_write(&self, name: &UserName, relative: &str, at: Timestamp) -> bool {
        self.hand_write_bytes(name, relative, b"", at)
    }

    /// The agent writes this into a file in its home; false when there is no such home.
    pub fn hand_write_bytes(
        &self,
        name: &UserName,
        relative: &str,
        bytes: &[u8],
        at: Timestamp,
    ) -> bool {
        let mut disk = self.disk();
        disk.written += 1;
        let number = disk.written;
        let Some(home) = disk.users.get_mut(name.as_str()) else {
            return false;
        };
        let file = MemoryFile {
            bytes: bytes.to_vec(),
            mode: 0o644,
            modified: at,
            number,
        };
        home.files.insert(relative.to_owned(), file);
        true
    }

    /// What is in a file of a home, at once.
    pub fn peek_file(&self, name: &UserName, relative: &str) -> Option<Vec<u8>> {
        let disk = self.disk();
        let file = disk.users.get(name.as_str())?.files.get(relative)?;
        Some(file.bytes.clone())
    }

    /// Whose `users/<name>` is.
    pub fn owner_of(&self, name: &UserName) -> Option<Uid> {
        let disk = self.disk();
        disk.users.get(name.as_str()).map(|home| home.uid.clone())
    }

    /// Names of the live directories.
    pub fn homes(&self) -> Vec<String> {
        self.disk().users.keys().cloned().collect()
    }

    /// Names of the archived directories of an account.
    pub fn archives_of(&self, uid: &Uid) -> Vec<String> {
        let disk = self.disk();
        let ours = disk.archive.iter().filter(|(_, home)| home.uid == *uid);
        ours.map(|(name, _)| name.clone()).collect()
    }

    /// Names of the files in an archived directory.
    pub fn archived_files(&self, directory: &str) -> Vec<String> {
        let disk = self.disk();
        disk.archive
            .get(directory)
            .map(|home| home.files.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// What the engine's host sees at a path.
    pub fn entry(&self, path: &Path) -> Option<HostEntry> {
        let relative = path.strip_prefix(PLACE).ok()?.to_str()?;
        let disk = self.disk();
        match relative {
            "probe" => disk.probe.as_ref().map(|_| HostEntry::Directory),
            "probe/probe" => {
                let content = disk.probe.as_ref()?;
                Some(HostEntry::File(content.clone().into_bytes()))
            }
            other => {
                let name = other.strip_prefix("users/")?;
                disk.users.get(name).map(|_| HostEntry::Directory)
            }
        }
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pace(&self) -> Pace {
        let hook = self
            .pace
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        hook.map(|hook| hook()).unwrap_or_default()
    }

    async fn call<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&mut Disk) -> Result<T, HomeError> + Send,
    ) -> Result<T, HomeError> {
        delayed(self.pace(), || work(&mut self.disk()), || full(action)).await
    }
}

impl MemoryDataDir {
    async fn store_call<T>(
        &self,
        work: impl FnOnce(&mut Disk) -> T + Send,
    ) -> Result<T, SkillStoreError> {
        let full = || SkillStoreError::Io {
            action: "working on",
            path: PLACE.into(),
            source: io::Error::from(io::ErrorKind::StorageFull),
        };
        delayed(self.pace(), || Ok(work(&mut self.disk())), full).await
    }
}

fn conflict(name: &UserName, holder: &Uid) -> String {
    format!("{PLACE}/users/{name} belongs to another account of this name (uid {holder})")
}

#[async_trait]
impl DataDir for MemoryDataDir {
    fn place(&self) -> String {
        PLACE.to_owned()
    }

    async fn state(
        &self,
        name: &UserName,
        uid: &Uid,
        _owner: Option<Owner>,
    ) -> Result<HomeState, HomeError> {
        self.call("reading", |disk| {
            Ok(match disk.users.get(name.as_str()) {
                None => HomeState::Missing,
                Some(home) if home.uid == *uid => HomeState::Ready,
                Some(home) => HomeState::Conflict(conflict(name, &home.uid)),
            })
        })
        .await
    }

    async fn look(
        &self,
        name: &UserName,
        uid: &Uid,
        files: &[&str],
    ) -> Result<Option<HomeLook>, HomeError> {
        self.call("reading", |disk| match disk.users.get(name.as_str()) {
            None => Ok(None),
            Some(home) if home.uid == *uid => {
                let there = files
                    .iter()
                    .map(|file| home.files.contains_key(&format!("{AGENT_DIR}/{file}")));
                Ok(Some(HomeLook {
                    id: home_id(home),
                    files: there.collect(),
                }))
            }
            Some(home) => Err(HomeError::Conflict(conflict(name, &home.uid))),
        })
        .await
    }

    async fn ensure(
        &self,
        name: &UserName,
        uid: &Uid,
        _owner: Option<Owner>,
    ) -> Result<(), HomeError> {
        self.call("making", |disk| match disk.users.get(name.as_str()) {
            Some(home) if home.uid == *uid => Ok(()),
            Some(home) => Err(HomeError::Conflict(conflict(name, &home.uid))),
            None => {
                let home = Home {
                    uid: uid.clone(),
                    number: disk.writes,
                    files: BTreeMap::new(),
                    skills: BTreeMap::new(),
                    kept: BTreeMap::new(),
                };
                disk.users.insert(name.as_str().to_owned(), home);
                disk.writes += 1;
                Ok(())
            }
        })
        .await
    }

    async fn rename(&self, from: &UserName, to: &UserName, uid: &Uid) -> Result<(), HomeError> {
        self.call("renaming", |disk| {
            let ours = disk.users.get(from.as_str());
            let Some(home) = ours.filter(|home| home.uid == *uid).cloned() else {
                return Ok(());
            };
            match disk.users.get(to.as_str()) {
                Some(other) if other.uid == *uid => {
                    let said = format!("users/{from} is the user's directory, and users/{to}, its new place, is not empty");
                    Err(HomeError::Conflict(said))
                }
                Some(other) => Err(HomeError::Conflict(conflict(to, &other.uid))),
                None => {
                    disk.users.remove(from.as_str());
                    disk.users.insert(to.as_str().to_owned(), home);
                    disk.writes += 1;
                    Ok(())
                }
            }
        })
        .await
    }

    /// Nothing is copied, and so nothing is missing.
    async fn needs_seed(&self, _: &UserName, _: &Uid, _: &[String]) -> Result<bool, HomeError> {
        Ok(false)
    }

    async fn seed(&self, _: &UserName, _: &Uid, _: ByteStream) -> Result<Seeded, HomeError> {
        Ok(Seeded::default())
    }

    async fn archive(
        &self,
        name: &UserName,
        uid: &Uid,
        deleted_at: Timestamp,
        batch: Option<&ArchiveBatch>,
        _bytes: Option<u64>,
    ) -> Result<(), HomeError> {
        self.call("archiving", |disk| {
            let ours = disk
                .users
                .get(name.as_str())
                .is_some_and(|home| home.uid == *uid);
            disk.skills.forget_staged(uid);
            let Some(home) = ours.then(|| disk.users.remove(name.as_str())).flatten() else {
                return Ok(());
            };
            let free = archive_names(name, uid, deleted_at)
                .into_iter()
                .map(|directory| match batch {
                    Some(batch) => format!("{}/{directory}", batch.as_str()),
                    None => directory,
                })
                .find(|directory| !disk.archive.contains_key(directory));
            match free {
                Some(directory) => {
                    disk.archive.insert(directory, home);
                    disk.writes += 1;
                    Ok(())
                }
                None => {
                    disk.users.insert(name.as_str().to_owned(), home);
                    Err(HomeError::Conflict("no free archive name".to_owned()))
                }
            }
        })
        .await
    }

    async fn archives(&self) -> Result<Vec<Archive>, HomeError> {
        self.call("listing", |disk| {
            let names = disk.archive.keys();
            let mut archives: Vec<_> = names.filter_map(|name| Archive::parse(name)).collect();
            archives.sort();
            Ok(archives)
        })
        .await
    }

    async fn remove_archive(&self, directory: &str) -> Result<(), HomeError> {
        self.call("removing", |disk| {
            disk.writes += u64::from(disk.archive.remove(directory).is_some());
            Ok(())
        })
        .await
    }

    async fn file_modified(
        &self,
        name: &UserName,
        uid: &Uid,
        relative: &str,
    ) -> Result<Option<Timestamp>, HomeError> {
        self.call("reading", |disk| match disk.users.get(name.as_str()) {
            None => Ok(None),
            Some(home) if home.uid == *uid => {
                let made = self
                    .made
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone();
                let by_agent = made.and_then(|made| made(uid, relative));
                Ok(by_agent.or_else(|| home.files.get(relative).map(|file| file.modified)))
            }
            Some(home) => Err(HomeError::Conflict(conflict(name, &home.uid))),
        })
        .await
    }

    /// Users delete nothing here.
    async fn empty_trash(&self, _: &UserName, _: &Uid, _: Timestamp) -> Result<Emptied, FileError> {
        Ok(Emptied::default())
    }

    /// Each byte of a file in the workspace takes one.
    async fn measure(
        &self,
        name: &UserName,
        uid: &Uid,
        _begun: Option<Measurement>,
    ) -> Result<Walked, HomeError> {
        self.call("measuring", |disk| match disk.users.get(name.as_str()) {
            None => Ok(Walked::Missing),
            Some(home) if home.uid == *uid => {
                let files = home.files.iter();
                let files = files.filter(|(path, _)| Path::new(path).starts_with(WORKSPACE_DIR));
                let measured = files.fold(Measured::default(), |sum, (_, file)| Measured {
                    bytes: sum.bytes + file.bytes.len() as u64,
                    files: sum.files + 1,
                    ..sum
                });
                Ok(Walked::Done(measured))
            }
            Some(home) => Err(HomeError::Conflict(conflict(name, &home.uid))),
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
        self.call("reading", |disk| {
            let home = match disk.users.get(name.as_str()) {
                None => return Ok([None, None]),
                Some(home) if home.uid == *uid => home,
                Some(home) => return Err(HomeError::Conflict(conflict(name, &home.uid))),
            };
            let mut found = [None, None];
            for (found, path) in found.iter_mut().zip(paths) {
                let path = format!("{AGENT_DIR}/{path}");
                *found = home.files.get(&path).map(MemoryFile::found);
                if found.as_ref().is_some_and(|file| file.stamp.size > limit) {
                    return Err(HomeError::TooLarge { path, limit });
                }
            }
            Ok(found)
        })
        .await
    }

    async fn write_agent_files(
        &self,
        name: &UserName,
        uid: &Uid,
        files: &[NewFile],
    ) -> Result<(), HomeError> {
        self.call("writing", |disk| {
            let home = match disk.users.get_mut(name.as_str()) {
                None => return Err(home_gone()),
                Some(home) if home.uid == *uid => home,
                Some(home) => return Err(HomeError::Conflict(conflict(name, &home.uid))),
            };
            for file in files {
                let path = format!("{AGENT_DIR}/{}", file.path);
                if home.files.get(&path).map(MemoryFile::stamp) != file.expected {
                    return Err(HomeError::Changed { path });
                }
            }
            for file in files {
                disk.written += 1;
                let written = MemoryFile {
                    bytes: file.bytes.clone(),
                    mode: file.mode,
                    modified: Timestamp::from_millis(0),
                    number: disk.written,
                };
                home.files
                    .insert(format!("{AGENT_DIR}/{}", file.path), written);
            }
            disk.writes += 1;
            Ok(())
        })
        .await
    }

    async fn look_at_skills(
        &self,
        name: &UserName,
        uid: &Uid,
        asked: Vec<(SkillName, TreeLimits)>,
    ) -> Result<Option<SkillsLook>, HomeError> {
        self.call("reading", |disk| disk.look_at_skills(name, uid, &asked))
            .await
    }

    async fn read_skills(
        &self,
        name: &UserName,
        uid: &Uid,
        asked: Vec<AskedSkill>,
    ) -> Result<Option<SeenSkills>, HomeError> {
        self.call("reading", |disk| disk.read_skills(name, uid, &asked))
            .await
    }

    async fn stage_skill(
        &self,
        name: &UserName,
        uid: &Uid,
        skill: &SkillName,
        digest: &TreeDigest,
    ) -> Result<TreeStamp, HomeError> {
        self.call("writing", |disk| disk.stage_skill(name, uid, skill, digest))
            .await
    }

    async fn swap_skill(
        &self,
        name: &UserName,
        uid: &Uid,
        skill: &SkillName,
        previous: &PreviousSkill,
    ) -> Result<(), HomeError> {
        self.call("writing", |disk| {
            disk.swap_skill(name, uid, skill, previous)
        })
        .await
    }

    async fn remove_skill(
        &self,
        name: &UserName,
        uid: &Uid,
        skill: &SkillName,
        previous: &PreviousSkill,
    ) -> Result<(), HomeError> {
        self.call("removing", |disk| {
            disk.remove_skill(name, uid, skill, previous)
        })
        .await
    }

    async fn clear_skill_leftovers(&self, _: &UserName, uid: &Uid) -> Result<(), HomeError> {
        let clear = |disk: &mut Disk| {
            disk.clear_skill_leftovers(uid);
            Ok(())
        };
        self.call("removing", clear).await
    }

    async fn stored_names(&self) -> Result<Vec<SkillName>, SkillStoreError> {
        self.store_call(|disk| disk.stored_names()).await
    }

    async fn stored_versions(
        &self,
        skill: &SkillName,
    ) -> Result<Vec<(TreeDigest, Timestamp)>, SkillStoreError> {
        self.store_call(|disk| disk.stored_versions(skill)).await
    }

    async fn remove_version(
        &self,
        skill: &SkillName,
        digest: &TreeDigest,
        not_newer_than: Timestamp,
    ) -> Result<(), SkillStoreError> {
        self.store_call(|disk| disk.remove_version(skill, digest, not_newer_than))
            .await
    }

    /// There are no repositories in memory: what fetches them writes real files.
    async fn checkouts(&self) -> Result<Vec<Uid>, HomeError> {
        Ok(Vec::new())
    }

    async fn has_checkout(&self, _: &Uid, _: &str) -> Result<bool, HomeError> {
        Ok(false)
    }

    async fn begin_checkout(&self, _: &Uid, _: Option<&str>) -> Result<NewCheckout, HomeError> {
        Err(full("fetching a repository to"))
    }

    async fn publish_checkout(
        &self,
        _: &Uid,
        _: NewCheckout,
        _: &str,
        _: Vec<Skipped>,
    ) -> Result<Offer, HomeError> {
        Err(full("fetching a repository to"))
    }

    async fn remove_checkouts(&self, _: &Uid) -> Result<(), HomeError> {
        Ok(())
    }

    async fn write_probe(&self, content: &str) -> io::Result<()> {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let work = || {
            let mut disk = self.disk();
            disk.probe = Some(content.to_owned());
            disk.writes += 1;
            Ok(())
        };
        delayed(self.pace(), work, full).await
    }

    async fn remove_probe(&self) -> io::Result<()> {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let work = || {
            let mut disk = self.disk();
            disk.writes += 1;
            match disk.probe.take() {
                Some(_) => Ok(()),
                None => Err(io::Error::from(io::ErrorKind::NotFound)),
            }
        };
        delayed(self.pace(), work, full).await
    }
}

/// The user's directory went while its files were worked on.
fn home_gone() -> HomeError {
    HomeError::Changed {
        path: String::new(),
    }
}
