//! The files of repositories, in the data directory.
//!
//! ```text
//! <data>/skill-repositories/<uid>/<commit>/     the files of the commit that was fetched last
//! <data>/skill-repositories/<uid>/.new-<random>/  what is being fetched
//! <data>/skill-repositories/.git/               where `git` keeps what it fetches; no repository of ours
//! ```
//!
//! Nobody but the service can reach them. All functions block.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::offer::{Offer, offer};
use crate::fault;
use crate::home::remove::remove_tree;
use crate::home::{HomeError, beneath, root, walk};
use crate::ids::Uid;
use crate::private;
use crate::skill_store::{Skipped, list_skills};

/// Where `git` keeps what it fetches, inside the data directory.
pub const GIT_SCRATCH: &str = "skill-repositories/.git";

const ROOT: &str = "skill-repositories";
const NEW: &str = ".new-";

/// The files of all repositories of an installation.
#[derive(Debug)]
pub struct Checkouts {
    root: OwnedFd,
    path: PathBuf,
}

/// A place for the files of a commit, which nobody takes for them yet.
#[derive(Debug)]
pub struct NewCheckout {
    name: String,
    /// Where it is: an empty directory.
    pub path: PathBuf,
}

impl Checkouts {
    /// Opens `<data_dir>/skill-repositories`, which is created with mode 0700 when it is missing.
    ///
    /// # Errors
    /// [`HomeError::RefusedRoot`] when it is a link or a file, or others may use it; [`HomeError::Io`].
    pub fn open(data_dir: &Path) -> Result<Self, HomeError> {
        let path = data_dir.join(ROOT);
        let refused = |reason: String| HomeError::RefusedRoot {
            path: path.clone(),
            reason,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let data = rustix::fs::openat(CWD, data_dir, flags, Mode::empty())
            .map_err(HomeError::io("opening", data_dir))?;
        let root = match root::ensure_dir(&data, ROOT) {
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return Err(refused("it is not a directory; remove it".to_owned()));
            }
            opened => opened.map_err(HomeError::io("opening", &path))?,
        };
        let stat = rustix::fs::fstat(&root).map_err(HomeError::io("reading", &path))?;
        match private::objection(&stat) {
            Some(objection) => Err(refused(objection)),
            None => Ok(Self { root, path }),
        }
    }

    /// The repositories of which something is there.
    ///
    /// # Errors
    /// [`HomeError::Io`].
    pub fn uids(&self) -> Result<Vec<Uid>, HomeError> {
        let entries = walk::entries(&self.root).map_err(HomeError::io("listing", &self.path))?;
        let names = entries.into_iter();
        let names = names.filter_map(|(name, _)| name.into_os_string().into_string().ok());
        // Others are no repositories: a fetch that is under way works in one of them.
        let uids = names.filter(|name| !name.starts_with('.'));
        Ok(uids.map(Uid::from).collect())
    }

    /// The files of a commit; `None` when they are not there.
    ///
    /// # Errors
    /// [`HomeError::Io`].
    pub fn get(&self, uid: &Uid, commit: &str) -> Result<Option<OwnedFd>, HomeError> {
        let path = Path::new(uid.as_str()).join(commit);
        match beneath::open_dir(&self.root, &path) {
            Err(Errno::NOENT) => Ok(None),
            opened => opened
                .map(Some)
                .map_err(HomeError::io("opening", self.path.join(path))),
        }
    }

    /// The directory of a skill in the files of a commit; `None` when it is not there. An empty path is the top.
    ///
    /// # Errors
    /// [`HomeError::Io`].
    pub fn open_skill(
        &self,
        uid: &Uid,
        commit: &str,
        path: &str,
    ) -> Result<Option<OwnedFd>, HomeError> {
        let Some(top) = self.get(uid, commit)?.filter(|_| !path.is_empty()) else {
            return self.get(uid, commit);
        };
        match beneath::open_dir(&top, Path::new(path)) {
            Err(Errno::NOENT) => Ok(None),
            opened => opened.map(Some).map_err(HomeError::io(
                "opening",
                self.path.join(uid.as_str()).join(path),
            )),
        }
    }

    /// A new place for a commit of a repository. What earlier attempts have left is removed, and so are all commits but
    /// `kept`: the one that is installed from until the next is recorded.
    ///
    /// # Errors
    /// [`HomeError::Io`].
    pub fn begin(&self, uid: &Uid, kept: Option<&str>) -> Result<NewCheckout, HomeError> {
        let failed = || HomeError::io("creating", self.path.join(uid.as_str()));
        let dir = root::ensure_dir(&self.root, uid.as_str()).map_err(failed())?;
        self.remove_but(&dir, uid, |name| Some(name) == kept)?;
        let name = format!("{NEW}{}", uuid::Uuid::new_v4().simple());
        rustix::fs::mkdirat(&dir, name.as_str(), Mode::RWXU).map_err(failed())?;
        let path = self.path.join(uid.as_str()).join(&name);
        Ok(NewCheckout { name, path })
    }

    /// The files of a commit are complete, but for what was skipped. Gives the skills in them.
    ///
    /// # Errors
    /// [`HomeError::Io`].
    pub fn publish(
        &self,
        uid: &Uid,
        new: &NewCheckout,
        commit: &str,
        skipped: &[Skipped],
    ) -> Result<Offer, HomeError> {
        let failed = || HomeError::io("publishing", self.path.join(uid.as_str()));
        let dir = beneath::open_dir(&self.root, Path::new(uid.as_str())).map_err(failed())?;
        let files = beneath::open_dir(&dir, Path::new(&new.name)).map_err(failed())?;
        let found = list_skills(&files).map_err(HomeError::io("reading", &new.path))?;
        let offer = offer(&files, found, skipped).map_err(HomeError::io("reading", &new.path))?;
        rustix::fs::syncfs(&files).map_err(failed())?;
        fault::point("skill_repository.before_publish");
        remove_tree(&dir, Path::new(commit), &self.path)?;
        rustix::fs::renameat(&dir, new.name.as_str(), &dir, commit).map_err(failed())?;
        rustix::fs::fsync(&dir).map_err(failed())?;
        fault::point("skill_repository.after_publish");
        Ok(offer)
    }

    /// Removes everything of a repository.
    ///
    /// # Errors
    /// [`HomeError::Io`].
    pub fn remove(&self, uid: &Uid) -> Result<(), HomeError> {
        remove_tree(&self.root, Path::new(uid.as_str()), &self.path)
    }

    fn remove_but(
        &self,
        dir: &OwnedFd,
        uid: &Uid,
        keep: impl Fn(&str) -> bool,
    ) -> Result<(), HomeError> {
        let path = self.path.join(uid.as_str());
        let entries = walk::entries(dir).map_err(HomeError::io("listing", &path))?;
        for (name, _) in entries {
            if !name.to_str().is_some_and(&keep) {
                remove_tree(dir, &name, &path)?;
            }
        }
        Ok(())
    }
}
