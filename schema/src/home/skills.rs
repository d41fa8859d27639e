//! Skills in a user's workspace.
//!
//! A skill is made in `users/.staging/<uid>/`, where no agent can reach it, and gets its name complete. What it replaces is
//! moved within the user's directory: something that an agent has open never leaves what the agent may see. Until that is
//! removed or kept, a record beside what is made says so (`skill_moves`): work that was cut short at any point is ended by
//! [`Homes::clear_skill_leftovers`], and what a user has changed is not lost by it.
//!
//! Nothing is written through to the disk. After a loss of power a skill may have files with nothing in them; their sizes
//! tell, and it is repaired as if somebody had changed it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid as UnixUid};
use rustix::io::Errno;

use super::error::HomeError;
use super::look::HomeId;
use super::remove::remove_tree;
use super::rename::rename_to_free;
use super::skill_moves::{Move, exchange};
use super::user_home::UserHome;
use super::walk::{self, Entry, Visit, walk};
use super::{AGENT_DIR, Homes, Owner, WORKSPACE_DIR, beneath};
use crate::fault;
use crate::ids::{SkillName, Uid, UserName};
use crate::skill_store::{TreeDigest, TreeLimits, TreeStamp, digest_tree, stamp_tree};

/// The directory of the skills, in the workspace.
pub(super) const SKILLS: &str = "skills";
/// Where skills are made, beside users' directories: no user has such a name.
const STAGING: &str = ".staging";

/// What lies under a skill's name, without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillLook {
    /// Nothing.
    Absent,
    /// A tree that looks like this.
    Tree(TreeStamp),
    /// Something that is no version of the skill.
    Other,
}

/// How a user's skills look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillsLook {
    /// The user's directory.
    pub home: HomeId,
    /// Each of those that were asked for, in that order.
    pub skills: Vec<SkillLook>,
}

/// A skill that is to be read.
#[derive(Debug, Clone)]
pub struct AskedSkill {
    /// Its name.
    pub name: SkillName,
    /// Trees that look like this need not be read.
    pub known: Vec<(TreeStamp, TreeDigest)>,
    /// More is no version of it.
    pub limits: TreeLimits,
}

/// What lies under a skill's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundSkill {
    /// Nothing.
    Nothing,
    /// A tree.
    Tree {
        /// Its content.
        digest: TreeDigest,
        /// Its looks.
        stamp: TreeStamp,
    },
    /// Something that is no version of the skill: a file, a link, a tree with a link in it, or a larger one.
    Other,
}

/// What lies in a user's workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenSkills {
    /// Each of those that were asked for, in that order.
    pub skills: Vec<FoundSkill>,
    /// Something is left of work that was cut short.
    pub leftovers: bool,
}

/// What a skill takes the place of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreviousSkill {
    /// Nothing.
    Nothing,
    /// What we have put there; if it does not look like this any more, it is kept under this name.
    Unchanged {
        /// How it looked.
        stamp: TreeStamp,
        /// The name: the skill's, `-`, and the time in its basic format.
        kept_as: String,
    },
    /// What somebody has changed: it is kept under this name, made as above. Something is added if that is taken.
    Keep(String),
}

impl Homes {
    /// How these skills of a user look; `None` when the user's directory is not there.
    ///
    /// # Errors
    /// [`HomeError::Conflict`] when no directory is where the skills are to be; [`HomeError::Io`].
    pub fn look_at_skills(
        &self,
        name: &UserName,
        uid: &Uid,
        asked: &[(SkillName, TreeLimits)],
    ) -> Result<Option<SkillsLook>, HomeError> {
        let Some(home) = self.open_existing(name, uid)? else {
            return Ok(None);
        };
        let dir = home.skills()?;
        let mut skills = Vec::with_capacity(asked.len());
        for (skill, limits) in asked {
            skills.push(match open_skill(&home, dir.as_ref(), skill)? {
                Opened::Nothing => SkillLook::Absent,
                Opened::Other => SkillLook::Other,
                Opened::Directory(tree) => stamp_tree(&tree, *limits)
                    .map_err(home.failed("inspecting", skill))?
                    .map_or(SkillLook::Other, SkillLook::Tree),
            });
        }
        let home = home.id()?;
        Ok(Some(SkillsLook { home, skills }))
    }

    /// Reads these skills of a user; `None` when the user's directory is not there.
    ///
    /// # Errors
    /// As [`Homes::look_at_skills`].
    pub fn read_skills(
        &self,
        name: &UserName,
        uid: &Uid,
        asked: &[AskedSkill],
    ) -> Result<Option<SeenSkills>, HomeError> {
        let Some(home) = self.open_existing(name, uid)? else {
            return Ok(None);
        };
        let dir = home.skills()?;
        let mut skills = Vec::with_capacity(asked.len());
        for skill in asked {
            skills.push(match open_skill(&home, dir.as_ref(), &skill.name)? {
                Opened::Nothing => FoundSkill::Nothing,
                Opened::Other => FoundSkill::Other,
                Opened::Directory(tree) => {
                    read_skill(&tree, skill).map_err(home.failed("reading", &skill.name))?
                }
            });
        }
        let leftovers = self.has_leftovers(uid)?;
        Ok(Some(SeenSkills { skills, leftovers }))
    }

    fn has_leftovers(&self, uid: &Uid) -> Result<bool, HomeError> {
        Ok(match self.existing_staging(uid)? {
            Some(staging) => !walk::entries(&staging)
                .map_err(self.staging_failed())?
                .is_empty(),
            None => false,
        })
    }

    /// Ends work that was cut short, for this user: what was made is removed, and so is what a skill has taken the place
    /// of, unless somebody has changed it; then it is kept.
    ///
    /// # Errors
    /// [`HomeError::Conflict`] when the directory of what is kept cannot be used; [`HomeError::Io`].
    pub fn clear_skill_leftovers(&self, name: &UserName, uid: &Uid) -> Result<(), HomeError> {
        let Some(staging) = self.existing_staging(uid)? else {
            return Ok(());
        };
        // A directory of somebody else has nothing of this user.
        let home = match self.open_existing(name, uid) {
            Ok(home) => home,
            Err(HomeError::Conflict(_)) => None,
            Err(error) => return Err(error),
        };
        if let Some(home) = home {
            for (name, _) in walk::entries(&staging).map_err(self.staging_failed())? {
                if let Some(moved) = Move::read(&staging, &name).map_err(self.staging_failed())? {
                    self.settle(&home, &staging, &moved)?;
                }
            }
        }
        self.clear_staging(uid)
    }

    /// Removes what was made for a user and never got its place.
    pub(super) fn clear_staging(&self, uid: &Uid) -> Result<(), HomeError> {
        match beneath::open_dir(&self.users.fd, Path::new(STAGING)) {
            Ok(staging) => remove_tree(&staging, Path::new(uid.as_str()), &self.users.path),
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.staging_failed()(errno)),
        }
    }

    /// Ends a move: what lies where it was put on its way is removed or kept, then the move is forgotten.
    fn settle(&self, home: &UserHome, staging: &OwnedFd, moved: &Move) -> Result<(), HomeError> {
        home.dispose(moved)?;
        fault::point("home.skill.disposed");
        match rustix::fs::unlinkat(staging, moved.at.as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.staging_failed()(errno)),
        }
    }

    /// Makes a skill for a user from `tree`, which is only ours to change. What it looks like is returned. Its files will
    /// belong to whom the workspace belongs to.
    ///
    /// # Errors
    /// [`HomeError::Changed`] when the user's directory is gone; [`HomeError::Io`].
    pub fn stage_skill(
        &self,
        name: &UserName,
        uid: &Uid,
        skill: &SkillName,
        tree: OwnedFd,
    ) -> Result<TreeStamp, HomeError> {
        let home = self.open_existing(name, uid)?.ok_or_else(gone)?;
        let owner = home.workspace_owner()?;
        let failed = || self.staging_failed::<Errno>();
        let staging = self.staging(uid).map_err(failed())?;
        remove_tree(&staging, Path::new(skill.as_str()), &self.users.path)?;
        let made = rustix::fs::mkdirat(&staging, skill.as_str(), Mode::RWXU)
            .and_then(|()| beneath::open_dir(&staging, Path::new(skill.as_str())))
            .map_err(failed())?;
        fault::point("home.skill.staging");
        let target = rustix::io::fcntl_dupfd_cloexec(&made, 0).map_err(failed())?;
        walk(
            [tree, target],
            &mut Staging { owner },
            "preparing a skill in",
            &self.users.path,
        )?;
        fault::point("home.skill.staged");
        let stamp = stamp_tree(&made, TreeLimits::LARGEST).map_err(self.staging_failed())?;
        stamp.ok_or_else(gone)
    }

    /// Gives a skill that was made its name in the workspace, in the place of what lies there.
    ///
    /// # Errors
    /// [`HomeError::Changed`] when something else lies there by now, or nothing was made; [`HomeError::Conflict`] when the
    /// directory of the skills cannot be used; [`HomeError::Io`].
    pub fn swap_skill(
        &self,
        name: &UserName,
        uid: &Uid,
        skill: &SkillName,
        previous: &PreviousSkill,
    ) -> Result<(), HomeError> {
        let home = self.open_existing(name, uid)?.ok_or_else(gone)?;
        let staging = self.existing_staging(uid)?;
        let staging = staging.ok_or_else(|| changed(skill))?;
        let skills = home.ensure_skills()?;
        let failed = || home.failed("deploying", skill);
        let place = |from: &OwnedFd, name: &str| match rename_to_free(
            from,
            name,
            &skills,
            skill.as_str(),
        ) {
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOENT) => Err(changed(skill)),
            outcome => outcome.map_err(failed()),
        };
        // Before anything is moved for it.
        let made = rustix::fs::statat(&staging, skill.as_str(), AtFlags::SYMLINK_NOFOLLOW);
        let made = match made {
            Err(Errno::NOENT) => return Err(changed(skill)),
            made => made.map_err(self.staging_failed())?,
        };
        match previous {
            PreviousSkill::Nothing => place(&staging, skill.as_str())?,
            PreviousSkill::Keep(kept_as) => {
                home.keep(&skills, skill.as_str(), &skills, skill, kept_as)?;
                fault::point("home.skill.kept");
                place(&staging, skill.as_str())?;
            }
            PreviousSkill::Unchanged { stamp, kept_as } => {
                let agent = home.agent_dir()?;
                let moved = Move::new(skill, stamp, kept_as, Some(made.st_ino));
                moved.write(&staging).map_err(self.staging_failed())?;
                fault::point("home.skill.recorded");
                rustix::fs::renameat(&staging, skill.as_str(), &agent, moved.at.as_str())
                    .map_err(failed())?;
                fault::point("home.skill.moving");
                match exchange(&agent, &moved.at, &skills, skill.as_str()) {
                    Ok(()) => fault::point("home.skill.exchanged"),
                    // It was removed meanwhile.
                    Err(Errno::NOENT) => place(&agent, &moved.at)?,
                    // A file system without RENAME_EXCHANGE: for a moment nothing has the name.
                    Err(Errno::INVAL | Errno::NOSYS) => {
                        self.take_out(&home, &staging, &skills, skill, stamp, kept_as)?;
                        place(&agent, &moved.at)?;
                    }
                    Err(errno) => return Err(failed()(errno)),
                }
                self.settle(&home, &staging, &moved)?;
            }
        }
        fault::point("home.skill.placed");
        self.leave_staging(uid);
        Ok(())
    }

    /// Takes a skill out of the workspace.
    ///
    /// # Errors
    /// As [`Homes::swap_skill`].
    pub fn remove_skill(
        &self,
        name: &UserName,
        uid: &Uid,
        skill: &SkillName,
        previous: &PreviousSkill,
    ) -> Result<(), HomeError> {
        let home = self.open_existing(name, uid)?.ok_or_else(gone)?;
        let Some(skills) = home.skills()? else {
            return Ok(());
        };
        match previous {
            PreviousSkill::Nothing => Ok(()),
            PreviousSkill::Keep(kept_as) => {
                home.keep(&skills, skill.as_str(), &skills, skill, kept_as)
            }
            PreviousSkill::Unchanged { stamp, kept_as } => {
                let staging = self.staging(uid).map_err(self.staging_failed())?;
                self.take_out(&home, &staging, &skills, skill, stamp, kept_as)?;
                self.leave_staging(uid);
                Ok(())
            }
        }
    }

    /// Nothing has the name then; what had it is removed, or kept if it does not look as it did.
    fn take_out(
        &self,
        home: &UserHome,
        staging: &OwnedFd,
        skills: &OwnedFd,
        skill: &SkillName,
        stamp: &TreeStamp,
        kept_as: &str,
    ) -> Result<(), HomeError> {
        let agent = home.agent_dir()?;
        let moved = Move::new(skill, stamp, kept_as, None);
        moved.write(staging).map_err(self.staging_failed())?;
        fault::point("home.skill.removal_recorded");
        match rustix::fs::renameat(skills, skill.as_str(), &agent, moved.at.as_str()) {
            // It was removed meanwhile.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(home.failed("removing", skill)(errno)),
        }
        fault::point("home.skill.removing");
        self.settle(home, staging, &moved)
    }

    /// Where skills are made for a user. Nothing in it has to survive a loss of power.
    fn staging(&self, uid: &Uid) -> rustix::io::Result<OwnedFd> {
        let all = made_dir(&self.users.fd, STAGING)?;
        made_dir(&all, uid.as_str())
    }

    /// The same, if it is there.
    fn existing_staging(&self, uid: &Uid) -> Result<Option<OwnedFd>, HomeError> {
        match beneath::open_dir(&self.users.fd, &Path::new(STAGING).join(uid.as_str())) {
            Ok(staging) => Ok(Some(staging)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.staging_failed()(errno)),
        }
    }

    /// Once everything that was made for a user has its place, nothing of it is left.
    fn leave_staging(&self, uid: &Uid) {
        let path = Path::new(STAGING).join(uid.as_str());
        let _ = rustix::fs::unlinkat(&self.users.fd, &path, AtFlags::REMOVEDIR);
    }

    fn staging_failed<E: Into<io::Error>>(&self) -> impl FnOnce(E) -> HomeError {
        HomeError::io("working in", self.users.path.join(STAGING))
    }
}

impl UserHome {
    pub(super) fn failed<E: Into<io::Error>>(
        &self,
        action: &'static str,
        skill: &SkillName,
    ) -> impl FnOnce(E) -> HomeError {
        let path = self.path().join(WORKSPACE_DIR).join(SKILLS);
        HomeError::io(action, path.join(skill.as_str()))
    }

    pub(super) fn agent_dir(&self) -> Result<OwnedFd, HomeError> {
        self.own_dir(AGENT_DIR)?.ok_or_else(gone)
    }

    /// The directory of the skills; `None` when there is none.
    pub(super) fn skills(&self) -> Result<Option<OwnedFd>, HomeError> {
        self.own_dir(&format!("{WORKSPACE_DIR}/{SKILLS}"))
    }

    /// A directory that is to be there; `None` when nothing is.
    pub(super) fn own_dir(&self, relative: &str) -> Result<Option<OwnedFd>, HomeError> {
        match beneath::open_dir_unlocked(self.dir(), Path::new(relative), Mode::RWXU) {
            Ok(dir) => Ok(Some(dir)),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR | Errno::XDEV) => Err(not_a_directory(relative)),
            Err(errno) => Err(HomeError::io("opening", self.path().join(relative))(errno)),
        }
    }

    pub(super) fn ensure_skills(&self) -> Result<OwnedFd, HomeError> {
        if let Some(skills) = self.skills()? {
            return Ok(skills);
        }
        let workspace = self.own_dir(WORKSPACE_DIR)?.ok_or_else(gone)?;
        self.ensure_in(&workspace, SKILLS, &format!("{WORKSPACE_DIR}/{SKILLS}"))
    }

    /// A directory of ours in one of the agent's; `relative` is where it is, for messages.
    pub(super) fn ensure_in(
        &self,
        parent: &OwnedFd,
        name: &str,
        relative: &str,
    ) -> Result<OwnedFd, HomeError> {
        let owner = self.workspace_owner()?;
        let open = || beneath::open_dir_unlocked(parent, Path::new(name), Mode::RWXU);
        let made = match open() {
            Err(Errno::NOENT) => match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => open().and_then(|dir| {
                    give(&dir, owner)?;
                    Ok(dir)
                }),
                Err(errno) => Err(errno),
            },
            opened => opened,
        };
        match made {
            Err(Errno::LOOP | Errno::NOTDIR | Errno::XDEV) => Err(not_a_directory(relative)),
            made => made.map_err(HomeError::io("making", self.path().join(relative))),
        }
    }

    /// Whom the workspace belongs to.
    pub(super) fn workspace_owner(&self) -> Result<Owner, HomeError> {
        let workspace = self.own_dir(WORKSPACE_DIR)?.ok_or_else(gone)?;
        let stat = rustix::fs::fstat(&workspace)
            .map_err(HomeError::io("inspecting", self.path().join(WORKSPACE_DIR)))?;
        Ok((stat.st_uid, stat.st_gid))
    }
}

/// Copies the files of a skill.
struct Staging {
    owner: Owner,
}

impl Visit<2> for Staging {
    fn entry(
        &mut self,
        [from, to]: &[OwnedFd; 2],
        entry: &Entry<'_>,
    ) -> io::Result<Option<[OwnedFd; 2]>> {
        let name = entry.name;
        match entry.kind {
            FileType::Directory => {
                rustix::fs::mkdirat(to, name, Mode::RWXU)?;
                Ok(Some([
                    beneath::open_dir(from, name)?,
                    beneath::open_dir(to, name)?,
                ]))
            }
            FileType::RegularFile => {
                let original = beneath::open(from, name, OFlags::RDONLY, Mode::empty())?;
                let mode = rustix::fs::fstat(&original)?.st_mode & 0o777;
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                let copy = beneath::open(to, name, flags, Mode::RUSR | Mode::WUSR)?;
                let copy = File::from(copy);
                // Shares the blocks where the file system can; a hard link would let the agent change the store.
                io::copy(&mut File::from(original), &mut &copy)?;
                rustix::fs::fchmod(&copy, Mode::from_raw_mode(mode))?;
                give(&copy, self.owner)?;
                Ok(None)
            }
            kind => Err(io::Error::other(format!("the store has a {kind:?}"))),
        }
    }

    fn leave(&mut self, [_, to]: &[OwnedFd; 2]) -> io::Result<()> {
        rustix::fs::fchmod(to, Mode::from_raw_mode(0o755))?;
        Ok(give(to, self.owner)?)
    }
}

/// Gives what was made to its owner. A service that is not root makes it for itself.
pub(super) fn give(made: impl AsFd, (user, group): Owner) -> rustix::io::Result<()> {
    let stat = rustix::fs::fstat(made.as_fd())?;
    if (stat.st_uid, stat.st_gid) == (user, group) {
        return Ok(());
    }
    let (user, group) = (UnixUid::from_raw(user), Gid::from_raw(group));
    rustix::fs::fchown(made, Some(user), Some(group))
}

enum Opened {
    Nothing,
    Directory(OwnedFd),
    Other,
}

fn open_skill(
    home: &UserHome,
    dir: Option<&OwnedFd>,
    skill: &SkillName,
) -> Result<Opened, HomeError> {
    let Some(dir) = dir else {
        return Ok(Opened::Nothing);
    };
    match beneath::open_dir_unlocked(dir, Path::new(skill.as_str()), Mode::RWXU) {
        Ok(tree) => Ok(Opened::Directory(tree)),
        Err(Errno::NOENT) => Ok(Opened::Nothing),
        Err(Errno::LOOP | Errno::NOTDIR | Errno::ACCESS | Errno::PERM | Errno::XDEV) => {
            Ok(Opened::Other)
        }
        Err(errno) => Err(home.failed("opening", skill)(errno)),
    }
}

fn read_skill(tree: &OwnedFd, asked: &AskedSkill) -> io::Result<FoundSkill> {
    // Before it is read: whoever writes meanwhile leaves another stamp.
    let Some(stamp) = stamp_tree(tree, asked.limits)? else {
        return Ok(FoundSkill::Other);
    };
    if let Some((_, digest)) = asked.known.iter().find(|(known, _)| *known == stamp) {
        let digest = digest.clone();
        return Ok(FoundSkill::Tree { digest, stamp });
    }
    Ok(match digest_tree(tree, asked.limits)? {
        Some(read) => FoundSkill::Tree {
            digest: read.digest,
            stamp,
        },
        None => FoundSkill::Other,
    })
}

/// A directory of ours, made if it is missing.
pub(super) fn made_dir(parent: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    match beneath::open_dir(parent, Path::new(name)) {
        Err(Errno::NOENT) => {}
        opened => return opened,
    }
    match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => beneath::open_dir(parent, Path::new(name)),
        Err(errno) => Err(errno),
    }
}

fn not_a_directory(relative: &str) -> HomeError {
    HomeError::Conflict(format!(
        "{relative} in the user's directory is a link or a file where a directory must be; remove it"
    ))
}

fn changed(skill: &SkillName) -> HomeError {
    HomeError::Changed {
        path: format!("{WORKSPACE_DIR}/{SKILLS}/{skill}"),
    }
}

fn gone() -> HomeError {
    HomeError::Changed {
        path: String::new(),
    }
}
