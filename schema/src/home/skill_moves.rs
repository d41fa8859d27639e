//! Skills that are on their way out of a workspace: removed, or kept because somebody has changed them.
//!
//! A version that another takes the place of lies in the agent's directory under a name that nobody guesses until it is
//! removed or kept. What it is, and how it looked when it was decided to replace it, is recorded before, out of the agent's
//! reach. The agent may do anything to what lies there; without a record nothing that has such a name is touched.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;

use super::error::HomeError;
use super::remove::remove_tree_of;
use super::rename::rename_beside_agent;
use super::skills::SKILLS;
use super::user_home::UserHome;
use super::{WORKSPACE_DIR, beneath, walk};
use crate::fault;
use crate::ids::SkillName;
use crate::skill_store::{TreeLimits, TreeStamp, stamp_tree};

/// What users have changed, in the directory of the skills.
const REPLACED: &str = ".replaced";
/// Versions of one skill that are kept there.
const KEPT: usize = 10;
/// What is on its way, in the agent's directory.
const MOVING: &str = ".agentyard-skill-";
/// Most entries that are removed at a time, and that are looked at for removal: an agent may make them faster.
const MOST: u64 = 1_000_000;
/// Most old versions that are removed at a time.
const MOST_OLD: usize = 100;

/// A version of a skill, or what was put in its place, on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Move {
    /// Its name in the agent's directory, and that of its record.
    pub(super) at: String,
    skill: SkillName,
    /// How it looked.
    stamp: TreeStamp,
    /// What it is called if it does not look like that any more.
    kept_as: String,
    /// The inode of the version that is to take its place, and lies there before.
    made: Option<u64>,
}

impl Move {
    pub(super) fn new(
        skill: &SkillName,
        stamp: &TreeStamp,
        kept_as: &str,
        made: Option<u64>,
    ) -> Self {
        Self {
            at: format!("{MOVING}{}", uuid::Uuid::new_v4().simple()),
            skill: skill.clone(),
            stamp: stamp.clone(),
            kept_as: kept_as.to_owned(),
            made,
        }
    }

    /// Records it. The record is a link that leads nowhere: made by one call, it is whole or not there.
    pub(super) fn write(&self, staging: &OwnedFd) -> rustix::io::Result<()> {
        let made = self.made.unwrap_or_default();
        let text = format!("{}/{made}/{}/{}", self.stamp, self.kept_as, self.skill);
        rustix::fs::symlinkat(text, staging, self.at.as_str())
    }

    /// Reads the record of that name; `None` when it is none.
    pub(super) fn read(staging: &OwnedFd, name: &Path) -> rustix::io::Result<Option<Self>> {
        if !is_moving(name) {
            return Ok(None);
        }
        match rustix::fs::readlinkat(staging, name, Vec::new()) {
            Ok(text) => Ok(Self::parse(name, text.to_str().unwrap_or_default())),
            Err(Errno::INVAL | Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    fn parse(at: &Path, text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, '/');
        let stamp = parts.next()?.parse().ok()?;
        let made = parts.next()?.parse().ok().filter(|made| *made != 0);
        Some(Self {
            at: at.to_str()?.to_owned(),
            stamp,
            made,
            kept_as: parts.next()?.to_owned(),
            skill: parts.next()?.parse().ok()?,
        })
    }
}

/// Whether something in the agent's directory may be on its way.
pub(super) fn is_moving(name: &Path) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(MOVING))
}

/// Two names change places.
pub(super) fn exchange(
    one: &OwnedFd,
    moving: &str,
    other: &OwnedFd,
    name: &str,
) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(one, moving, other, name, RenameFlags::EXCHANGE)
}

impl UserHome {
    /// Removes what lies at the end of a move, or keeps it if it does not look as it did.
    pub(super) fn dispose(&self, moved: &Move) -> Result<(), HomeError> {
        let agent = self.agent_dir()?;
        let skill = &moved.skill;
        let inode = match rustix::fs::statat(&agent, moved.at.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat.st_ino,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(self.failed("inspecting", skill)(errno)),
        };
        // What never had its name is nobody's.
        if moved.made == Some(inode) || self.looks(&agent, moved)? {
            return remove_entry(&agent, Path::new(&moved.at), self.path());
        }
        let skills = self.ensure_skills()?;
        self.keep(&agent, &moved.at, &skills, skill, &moved.kept_as)
    }

    /// Whether it looks as it did.
    fn looks(&self, agent: &OwnedFd, moved: &Move) -> Result<bool, HomeError> {
        let Ok(tree) = beneath::open_dir(agent, Path::new(&moved.at)) else {
            return Ok(false);
        };
        let looks = stamp_tree(&tree, TreeLimits::LARGEST);
        let looks = looks.map_err(self.failed("inspecting", &moved.skill))?;
        Ok(looks.as_ref() == Some(&moved.stamp))
    }

    /// Moves what lies at `name` to `skills/.replaced/<kept_as>`. The newest few of a skill are kept.
    pub(super) fn keep(
        &self,
        at: &OwnedFd,
        name: &str,
        skills: &OwnedFd,
        skill: &SkillName,
        kept_as: &str,
    ) -> Result<(), HomeError> {
        match rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
            // It was removed meanwhile.
            Err(Errno::NOENT) => return Ok(()),
            there => there.map_err(self.failed("keeping", skill))?,
        };
        let relative = format!("{WORKSPACE_DIR}/{SKILLS}/{REPLACED}");
        let replaced = self.ensure_in(skills, REPLACED, &relative)?;
        let taken = |kept: &str| rename_beside_agent(at, name, &replaced, kept);
        let mut kept = kept_as.to_owned();
        let mut moved = taken(&kept);
        if matches!(moved, Err(Errno::EXIST | Errno::NOTEMPTY)) {
            let other = uuid::Uuid::new_v4().simple().to_string();
            kept = format!("{kept_as}-{}", other.get(..8).unwrap_or_default());
            moved = taken(&kept);
        }
        moved.map_err(self.failed("keeping", skill))?;
        fault::point("home.skill.moved_aside");
        self.forget_old(&replaced, skill, &kept)
    }

    /// Removes old versions of a skill that were kept; never `newest`, whatever the clock says.
    fn forget_old(
        &self,
        replaced: &OwnedFd,
        skill: &SkillName,
        newest: &str,
    ) -> Result<(), HomeError> {
        let prefix = format!("{skill}-");
        let kept = |name: &Path| {
            let name = name.to_str()?;
            let is_kept = name.strip_prefix(&prefix).is_some_and(is_time);
            (is_kept && name != newest).then(|| name.to_owned())
        };
        let each = |see: &mut dyn FnMut(String) -> ControlFlow<()>| {
            let mut left = MOST;
            let listed = walk::for_each_until(replaced, |name, _| {
                left = left.saturating_sub(1);
                match (left, kept(name)) {
                    (0, _) => ControlFlow::Break(()),
                    (_, Some(name)) => see(name),
                    (_, None) => ControlFlow::Continue(()),
                }
            });
            listed.map_err(self.failed("keeping", skill))
        };
        // The agent may have made very many: no more of them are in memory than are kept.
        let mut stay = BinaryHeap::new();
        let mut old = false;
        each(&mut |name| {
            stay.push(Reverse(name));
            if stay.len() >= KEPT {
                stay.pop();
                old = true;
            }
            ControlFlow::Continue(())
        })?;
        if !old {
            return Ok(());
        }
        let stay: Vec<String> = stay.into_iter().map(|Reverse(name)| name).collect();
        let mut gone: Vec<PathBuf> = Vec::new();
        each(&mut |name| {
            if !stay.contains(&name) {
                gone.push(PathBuf::from(name));
            }
            match gone.len() < MOST_OLD {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        for name in gone {
            remove_entry(replaced, &name, self.path())?;
        }
        Ok(())
    }
}

/// Whether this is a time as in `20260511T114640Z`, alone or with what was added because it was taken: not the rest of
/// another skill's name.
fn is_time(text: &str) -> bool {
    let Some((time, added)) = text.split_at_checked(16) else {
        return false;
    };
    let form = time.bytes().enumerate().all(|(at, byte)| match at {
        8 => byte == b'T',
        15 => byte == b'Z',
        _ => byte.is_ascii_digit(),
    });
    let hex = |added: &str| added.len() == 8 && added.bytes().all(|byte| byte.is_ascii_hexdigit());
    form && (added.is_empty() || added.strip_prefix('-').is_some_and(hex))
}

fn remove_entry(dir: &OwnedFd, name: &Path, shown: &Path) -> Result<(), HomeError> {
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        // A directory.
        Err(Errno::ISDIR | Errno::PERM) => remove_tree_of(dir, name, shown, MOST),
        Err(errno) => Err(HomeError::io("removing", shown.join(name))(errno)),
    }
}
