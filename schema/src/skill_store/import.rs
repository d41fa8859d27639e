//! Taking packages in: from a zip file or a directory to `<name>/<digest>`, at once or not at all.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;

use super::SkillStore;
use super::digest::{ContentHash, Records, TreeDigest};
use super::error::{ImportError, Refusal, ShownPath, SkillStoreError, listed};
use super::front_matter::{self, FrontMatter, Reading};
use super::names;
use super::package::{Admission, Admitted, Source};
use super::temporary::Temporary;
use super::tree::{Found, Tree, Trouble, scan};
use super::zip_file::ZipFile;
use crate::fault;
use crate::home::beneath;
use crate::ids::SkillName;

const BLOCK: usize = 64 << 10;
const MANIFEST: &str = "SKILL.md";
const FILE: Mode = Mode::from_bits_retain(0o644);
const EXECUTABLE: Mode = Mode::from_bits_retain(0o755);
const DIRECTORY: Mode = Mode::from_bits_retain(0o755);

/// A package that is in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// Its name.
    pub name: SkillName,
    /// What it is called by its content.
    pub digest: TreeDigest,
    /// What its `SKILL.md` says of it: nothing at all when that has no front matter. `None` when there is no `SKILL.md`.
    pub manifest: Option<FrontMatter>,
    /// How many files it has.
    pub files: u64,
    /// How long they are together.
    pub bytes: u64,
    /// Symbolic links, which are not taken in.
    pub skipped_links: u64,
    /// Entries that were read otherwise than they are written, or left out; a sentence each, for people.
    pub warnings: Vec<String>,
    /// The store had it already.
    pub already_there: bool,
}

impl SkillStore {
    /// Takes a zip file in, under `name`, else under what its front matter says, else under the one directory that
    /// everything in it is in. That directory is no part of the skill in any case.
    ///
    /// # Errors
    /// [`ImportError`]. The store is as it was then.
    pub fn import_zip(
        &self,
        file: File,
        name: Option<&SkillName>,
    ) -> Result<Imported, ImportError> {
        let zip = ZipFile::open(file)?;
        fault::point("skill_store.import.checked");
        let mut staging = Staging::begin(self)?;
        for entry in &zip.files {
            let mut new = staging.file(&entry.path, entry.executable)?;
            let mut content = ContentHash::default();
            zip.unpack(entry, |block| {
                content.update(block);
                new.write_all(block).map_err(staging.unwritten())
            })?;
            staging.add(&entry.path, entry.executable, content);
        }
        let mut imported = staging.finish(name, zip.top.as_deref())?;
        imported.warnings.extend(zip.warnings);
        imported.skipped_links = zip.links;
        Ok(imported)
    }

    /// Takes a directory in, such as one of a repository, which may be changed meanwhile. Symbolic links are skipped.
    ///
    /// # Errors
    /// [`ImportError`]. The store is as it was then.
    pub fn import_dir(&self, dir: impl AsFd, name: &SkillName) -> Result<Imported, ImportError> {
        let mut staging = Staging::begin(self)?;
        let mut admission = Admission::default();
        let mut buffer = vec![0; BLOCK];
        scan(dir, |found| {
            // The data of version control is no part of a skill.
            if found.path == b".git" {
                return Ok(false);
            }
            match admission.admit(found)? {
                Admitted::Nothing => Ok(false),
                Admitted::Directory => Ok(true),
                Admitted::File(path) => {
                    staging.copy(found, path, &mut buffer)?;
                    Ok::<_, ImportError>(false)
                }
            }
        })?;
        let left_out = admission.left_out;
        let mut imported = staging.finish(Some(name), None)?;
        imported.warnings.extend(left_out.warnings());
        imported.skipped_links = left_out.links();
        Ok(imported)
    }
}

impl From<Trouble> for ImportError {
    fn from(trouble: Trouble) -> Self {
        let path = ShownPath::of(&trouble.path);
        match trouble.was_changed() {
            true => Refusal::Changed(path).into(),
            false => SkillStoreError::io("reading", path.to_string())(trouble.errno).into(),
        }
    }
}

/// A package on its way into the store.
struct Staging<'a> {
    store: &'a SkillStore,
    temporary: Temporary<'a>,
    records: Records,
}

impl<'a> Staging<'a> {
    fn begin(store: &'a SkillStore) -> Result<Self, SkillStoreError> {
        let temporary = Temporary::create(store)?;
        fault::point("skill_store.import.begun");
        Ok(Self {
            store,
            temporary,
            records: Records::default(),
        })
    }

    fn unwritten<E: Into<std::io::Error>>(&self) -> impl FnOnce(E) -> SkillStoreError + use<E> {
        SkillStoreError::io("writing", self.store.path.join(&self.temporary.name))
    }

    /// A new file, and the directories it is in.
    fn file(&self, path: &str, executable: bool) -> Result<File, SkillStoreError> {
        let dir = &self.temporary.dir;
        let create = || {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            beneath::open(dir, Path::new(path), flags, Mode::RUSR | Mode::WUSR)
        };
        let made = || {
            let new = match create() {
                Err(Errno::NOENT) => {
                    make_parents(dir, Path::new(path))?;
                    create()?
                }
                outcome => outcome?,
            };
            // Whatever the process's umask takes away.
            rustix::fs::fchmod(&new, if executable { EXECUTABLE } else { FILE })?;
            Ok::<_, Errno>(File::from(new))
        };
        made().map_err(self.unwritten())
    }

    fn add(&mut self, path: &str, executable: bool, content: ContentHash) {
        self.records.add(path.as_bytes(), executable, content);
        fault::point("skill_store.import.file");
    }

    /// Copies a file that may be changed meanwhile.
    fn copy(
        &mut self,
        found: &Found<'_>,
        path: &str,
        buffer: &mut [u8],
    ) -> Result<(), ImportError> {
        let source = Source::open(found, path, self.records.bytes())?;
        let executable = source.executable;
        let mut new = self.file(path, executable)?;
        let content = source.read(path, buffer, |block| {
            new.write_all(block).map_err(self.unwritten())
        })?;
        self.add(path, executable, content);
        Ok(())
    }

    /// Gives the package its name and its place.
    fn finish(self, given: Option<&SkillName>, top: Option<&str>) -> Result<Imported, ImportError> {
        let Self {
            store,
            temporary,
            records,
        } = self;
        if records.files() == 0 {
            return Err(Refusal::Empty.into());
        }
        let mut warnings = Vec::new();
        check_inner_skills(&records, &mut warnings)?;
        let reading = manifest(&temporary.dir, &records, &mut warnings)?;
        let name = match given {
            Some(name) => name.clone(),
            None => name_of(reading.as_ref(), top, &mut warnings)?,
        };
        let manifest = reading.map(|reading| reading.front_matter);
        // It would be left out of its own download.
        if names::is_left_out(name.as_str()) {
            let name = ShownPath::of(name.as_str());
            return Err(Refusal::InvalidName { name }.into());
        }
        let Tree {
            digest,
            files,
            bytes,
        } = records.finish();
        rustix::fs::fchmod(&temporary.dir, DIRECTORY)
            // One syncfs is as safe as an fsync per file and does not take minutes.
            .and_then(|()| rustix::fs::syncfs(&temporary.dir))
            .map_err(SkillStoreError::io(
                "saving",
                store.path.join(&temporary.name),
            ))?;
        fault::point("skill_store.import.staged");
        let already_there = store.keep(temporary, &name, &digest)?;
        Ok(Imported {
            name,
            digest,
            manifest,
            files,
            bytes,
            skipped_links: 0,
            warnings,
            already_there,
        })
    }
}

impl SkillStore {
    /// Moves a complete tree to its place; whether one of the same content was there.
    fn keep(
        &self,
        temporary: Temporary<'_>,
        name: &SkillName,
        digest: &TreeDigest,
    ) -> Result<bool, SkillStoreError> {
        let io = || SkillStoreError::io("saving", self.path_of(name, digest));
        let Some(dir) = self.lock(name, true)? else {
            return Err(io()(Errno::NOENT));
        };
        fault::point("skill_store.import.locked");
        let there = match beneath::open_dir(&dir, Path::new(digest.as_str())) {
            Ok(there) => Some(there),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(io()(errno)),
        };
        // As young as this import in both cases: that is what keeps it from being removed.
        touch(there.as_ref().unwrap_or(&temporary.dir)).map_err(io())?;
        fault::point("skill_store.import.touched");
        if there.is_none() {
            rustix::fs::renameat(self.root(), temporary.name.as_str(), &dir, digest.as_str())
                .map_err(io())?;
            fault::point("skill_store.import.renamed");
        }
        rustix::fs::fsync(&dir).map_err(io())?;
        fault::point("skill_store.import.done");
        Ok(there.is_some())
    }
}

/// Sets the time of modification to now.
fn touch(dir: &OwnedFd) -> rustix::io::Result<()> {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    rustix::fs::futimens(dir, &times)
}

/// Makes the directories that a file is in.
fn make_parents(top: &OwnedFd, path: &Path) -> rustix::io::Result<()> {
    let parents: Vec<&Path> = path.ancestors().skip(1).collect();
    for parent in parents.into_iter().rev() {
        if parent.as_os_str().is_empty() {
            continue;
        }
        match rustix::fs::mkdirat(top, parent, Mode::RWXU) {
            Err(Errno::EXIST) => {}
            made => {
                made?;
                rustix::fs::fchmod(beneath::open_dir(top, parent)?, DIRECTORY)?;
            }
        }
    }
    Ok(())
}

/// Looks for skills below the top: with none at the top the package is a collection.
///
/// # Errors
/// [`Refusal::Collection`].
fn check_inner_skills(records: &Records, warnings: &mut Vec<String>) -> Result<(), Refusal> {
    const NAMED: usize = 10;
    let is_manifest = |name: &[u8]| name.eq_ignore_ascii_case(MANIFEST.as_bytes());
    let mut inner: Vec<&[u8]> = records
        .paths()
        .filter_map(|path| {
            let slash = path.iter().rposition(|&byte| byte == b'/')?;
            is_manifest(path.get(slash + 1..)?).then_some(path.get(..slash)?)
        })
        .collect();
    if inner.is_empty() {
        return Ok(());
    }
    inner.sort_unstable();
    let count = inner.len();
    let skills: Vec<ShownPath> = inner.into_iter().take(NAMED).map(ShownPath::of).collect();
    if !records.paths().any(is_manifest) {
        return Err(Refusal::Collection { skills, count });
    }
    warnings.push(format!(
        "other skills are inside, and come as files of this one: {}; upload the directory of each by itself to bind it",
        listed(&skills, count)
    ));
    Ok(())
}

/// Reads `SKILL.md`; no two files differ in letter case only.
fn manifest(
    dir: &OwnedFd,
    records: &Records,
    warnings: &mut Vec<String>,
) -> Result<Option<Reading>, ImportError> {
    let Some(path) = records
        .paths()
        .find(|path| path.eq_ignore_ascii_case(MANIFEST.as_bytes()))
    else {
        return Ok(None);
    };
    let name = Path::new(OsStr::from_bytes(path));
    let found = beneath::open(dir, name, OFlags::RDONLY, Mode::empty())
        .map_err(std::io::Error::from)
        .and_then(|file| front_matter::read(File::from(file)))
        .map_err(SkillStoreError::io("reading", name))?;
    let shown = ShownPath::of(path);
    match found {
        Ok(mut reading) => {
            if path != MANIFEST.as_bytes() {
                warnings.push(format!(
                    "{shown}: some agents look for {MANIFEST} in this letter case only; rename it"
                ));
            }
            let said = std::mem::take(&mut reading.warnings).into_iter();
            warnings.extend(said.map(|said| format!("{shown}: {said}")));
            Ok(Some(reading))
        }
        Err(problem) => Err(Refusal::FrontMatter {
            path: shown,
            problem,
        }
        .into()),
    }
}

/// The name of a package: its own, else that of the directory that everything is in, else its title.
fn name_of(
    reading: Option<&Reading>,
    top: Option<&str>,
    warnings: &mut Vec<String>,
) -> Result<SkillName, Refusal> {
    let own = reading.and_then(|reading| reading.front_matter.name.as_deref());
    let title = reading.and_then(|reading| reading.title.as_deref());
    let name = own.or(top).or(title).ok_or(Refusal::NoName)?;
    let parsed: SkillName = name.parse().map_err(|_| Refusal::InvalidName {
        name: ShownPath::of(name),
    })?;
    if let (None, Some(title)) = (own, title) {
        let source = match top {
            Some(_) => "its directory",
            None => "its title",
        };
        warnings.push(format!(
            "{MANIFEST} has the title {} and no name; the skill was named {parsed} after {source}: \
             write `name: {parsed}` into the front matter, or upload it under another name",
            ShownPath::of(title)
        ));
    }
    Ok(parsed)
}
