//! Skills in workspaces and in the store, in memory: a tree is its digest.

use std::collections::BTreeMap;

use schema::home::{
    AskedSkill, FoundSkill, HomeError, PreviousSkill, SeenSkills, SkillLook, SkillsLook,
};
use schema::ids::{SkillName, Timestamp, Uid, UserName};
use schema::skill::{TreeDigest, TreeStamp};
use schema::skill_store::TreeLimits;

use super::{Disk, Home, MemoryDataDir, conflict, home_gone, home_id};

/// A tree in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MemorySkill {
    /// `None`: no tree, but something else.
    digest: Option<TreeDigest>,
    /// Another one for each that is made or changed.
    number: u64,
}

impl MemorySkill {
    fn stamp(&self) -> TreeStamp {
        stamp(self.number)
    }

    fn look(&self) -> SkillLook {
        match self.digest {
            Some(_) => SkillLook::Tree(self.stamp()),
            None => SkillLook::Other,
        }
    }
}

fn stamp(number: u64) -> TreeStamp {
    let digits = format!("{number:064x}").parse();
    digits.unwrap_or_else(|error| panic!("{error}"))
}

/// What lies in the store, and what was made for users.
#[derive(Debug, Default)]
pub(super) struct Skills {
    store: BTreeMap<SkillName, BTreeMap<TreeDigest, Timestamp>>,
    staging: BTreeMap<Uid, BTreeMap<SkillName, MemorySkill>>,
}

impl Skills {
    pub(super) fn forget_staged(&mut self, uid: &Uid) {
        self.staging.remove(uid);
    }
}

impl MemoryDataDir {
    /// A version of a skill is imported.
    pub fn import_skill(&self, name: &SkillName, digest: &TreeDigest, at: Timestamp) {
        let mut disk = self.disk();
        disk.writes += 1;
        let versions = disk.skills.store.entry(name.clone()).or_default();
        versions.insert(digest.clone(), at);
    }

    /// Digests of a skill's versions in the store.
    pub fn stored(&self, name: &SkillName) -> Vec<TreeDigest> {
        let disk = self.disk();
        let versions = disk.skills.store.get(name);
        versions
            .into_iter()
            .flat_map(|versions| versions.keys().cloned())
            .collect()
    }

    /// Versions of a skill in the store, with the time at which each was last imported.
    pub fn peek_stored(&self, name: &SkillName) -> Vec<(TreeDigest, Timestamp)> {
        self.disk().stored_versions(name)
    }

    /// The user puts this in the place of a skill in the own workspace; false when there is no such home.
    pub fn hand_skill(
        &self,
        name: &UserName,
        skill: &SkillName,
        digest: Option<&TreeDigest>,
    ) -> bool {
        let mut disk = self.disk();
        disk.written += 1;
        let number = disk.written;
        let Some(home) = disk.users.get_mut(name.as_str()) else {
            return false;
        };
        match digest {
            Some(digest) => {
                let digest = Some(digest.clone());
                home.skills
                    .insert(skill.clone(), MemorySkill { digest, number });
            }
            None => {
                home.skills.remove(skill);
            }
        }
        true
    }

    /// The user puts something in the place of a skill that is no tree; false when there is no such home.
    pub fn hand_other(&self, name: &UserName, skill: &SkillName) -> bool {
        let mut disk = self.disk();
        disk.written += 1;
        let number = disk.written;
        let home = disk.users.get_mut(name.as_str());
        let other = MemorySkill {
            digest: None,
            number,
        };
        home.map(|home| home.skills.insert(skill.clone(), other))
            .is_some()
    }

    /// What lies in a user's workspace.
    pub fn peek_skills(&self, name: &UserName) -> BTreeMap<SkillName, Option<TreeDigest>> {
        let disk = self.disk();
        let home = disk.users.get(name.as_str());
        let skills = home.into_iter().flat_map(|home| &home.skills);
        skills
            .map(|(name, skill)| (name.clone(), skill.digest.clone()))
            .collect()
    }

    /// What of a user's was kept.
    pub fn kept_skills(&self, name: &UserName) -> BTreeMap<String, Option<TreeDigest>> {
        let disk = self.disk();
        let home = disk.users.get(name.as_str());
        let kept = home.into_iter().flat_map(|home| &home.kept);
        kept.map(|(name, skill)| (name.clone(), skill.digest.clone()))
            .collect()
    }
}

impl Disk {
    pub(super) fn look_at_skills(
        &self,
        name: &UserName,
        uid: &Uid,
        asked: &[(SkillName, TreeLimits)],
    ) -> Result<Option<SkillsLook>, HomeError> {
        let Some(home) = self.skills_home(name, uid)? else {
            return Ok(None);
        };
        let skills = asked.iter().map(|(skill, _)| match home.skills.get(skill) {
            Some(skill) => skill.look(),
            None => SkillLook::Absent,
        });
        Ok(Some(SkillsLook {
            home: home_id(home),
            skills: skills.collect(),
        }))
    }

    pub(super) fn read_skills(
        &self,
        name: &UserName,
        uid: &Uid,
        asked: &[AskedSkill],
    ) -> Result<Option<SeenSkills>, HomeError> {
        let Some(home) = self.skills_home(name, uid)? else {
            return Ok(None);
        };
        let skills = asked
            .iter()
            .map(|asked| match home.skills.get(&asked.name) {
                None => FoundSkill::Nothing,
                Some(skill) => match &skill.digest {
                    None => FoundSkill::Other,
                    Some(digest) => {
                        let stamp = skill.stamp();
                        let known = asked.known.iter().find(|(known, _)| *known == stamp);
                        FoundSkill::Tree {
                            digest: known.map_or(digest, |(_, known)| known).clone(),
                            stamp,
                        }
                    }
                },
            });
        let staged = self.skills.staging.get(uid);
        Ok(Some(SeenSkills {
            skills: skills.collect(),
            leftovers: staged.is_some_and(|staged| !staged.is_empty()),
        }))
    }

    pub(super) fn stage_skill(
        &mut self,
        name: &UserName,
        uid: &Uid,
        skill: &SkillName,
        digest: &TreeDigest,
    ) -> Result<TreeStamp, HomeError> {
        let stored = self.skills.store.get(skill);
        if stored.is_none_or(|stored| !stored.contains_key(digest)) {
            return Err(HomeError::NoSkill {
                skill: skill.to_string(),
                digest: digest.to_string(),
            });
        }
        self.skills_home(name, uid)?.ok_or_else(home_gone)?;
        self.written += 1;
        self.writes += 1;
        let made = MemorySkill {
            digest: Some(digest.clone()),
            number: self.written,
        };
        let stamp = made.stamp();
        let staging = self.skills.staging.entry(uid.clone()).or_default();
        staging.insert(skill.clone(), made);
        Ok(stamp)
    }

    pub(super) fn swap_skill(
        &mut self,
        name: &UserName,
        uid: &Uid,
        skill: &SkillName,
        previous: &PreviousSkill,
    ) -> Result<(), HomeError> {
        self.skills_home(name, uid)?.ok_or_else(home_gone)?;
        let changed = || HomeError::Changed {
            path: format!("skills/{skill}"),
        };
        let home = self.users.get_mut(name.as_str()).ok_or_else(home_gone)?;
        if *previous == PreviousSkill::Nothing && home.skills.contains_key(skill) {
            return Err(changed());
        }
        let staged = self.skills.staging.get_mut(uid);
        let made = staged
            .and_then(|staged| staged.remove(skill))
            .ok_or_else(changed)?;
        self.writes += 1;
        put_aside(home, skill, previous);
        home.skills.insert(skill.clone(), made);
        Ok(())
    }

    pub(super) fn remove_skill(
        &mut self,
        name: &UserName,
        uid: &Uid,
        skill: &SkillName,
        previous: &PreviousSkill,
    ) -> Result<(), HomeError> {
        self.skills_home(name, uid)?.ok_or_else(home_gone)?;
        let home = self.users.get_mut(name.as_str()).ok_or_else(home_gone)?;
        self.writes += 1;
        put_aside(home, skill, previous);
        Ok(())
    }

    /// Also where the directory is somebody else's by now, which has nothing of this user.
    pub(super) fn clear_skill_leftovers(&mut self, uid: &Uid) {
        self.writes += 1;
        self.skills.staging.remove(uid);
    }

    pub(super) fn stored_names(&self) -> Vec<SkillName> {
        let store = self.skills.store.iter();
        let held = store.filter(|(_, versions)| !versions.is_empty());
        held.map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn stored_versions(&self, skill: &SkillName) -> Vec<(TreeDigest, Timestamp)> {
        let versions = self.skills.store.get(skill);
        let versions = versions.into_iter().flatten();
        versions.map(|(digest, at)| (digest.clone(), *at)).collect()
    }

    pub(super) fn remove_version(
        &mut self,
        skill: &SkillName,
        digest: &TreeDigest,
        not_newer_than: Timestamp,
    ) {
        let Some(versions) = self.skills.store.get_mut(skill) else {
            return;
        };
        if versions.get(digest).is_some_and(|at| *at <= not_newer_than) {
            versions.remove(digest);
            self.writes += 1;
        }
    }

    fn skills_home(&self, name: &UserName, uid: &Uid) -> Result<Option<&Home>, HomeError> {
        match self.users.get(name.as_str()) {
            None => Ok(None),
            Some(home) if home.uid == *uid => Ok(Some(home)),
            Some(home) => Err(HomeError::Conflict(conflict(name, &home.uid))),
        }
    }
}

/// What lies there goes, or is kept.
fn put_aside(home: &mut Home, skill: &SkillName, previous: &PreviousSkill) {
    let (unchanged, kept_as) = match previous {
        PreviousSkill::Nothing => return,
        PreviousSkill::Unchanged { stamp, kept_as } => (Some(stamp), kept_as),
        PreviousSkill::Keep(kept_as) => (None, kept_as),
    };
    if let Some(old) = home.skills.remove(skill)
        && unchanged != Some(&old.stamp())
    {
        keep(home, skill, kept_as, old);
    }
}

/// Versions of one skill that are kept.
const KEPT: usize = 10;

fn keep(home: &mut Home, skill: &SkillName, kept_as: &str, old: MemorySkill) {
    let numbered = (2..=KEPT).map(|n| format!("{kept_as}-{n}"));
    let mut names = std::iter::once(kept_as.to_owned()).chain(numbered);
    let free = names.find(|name| !home.kept.contains_key(name));
    home.kept.insert(free.expect("a name is free"), old);
    // The time has a fixed length: what is longer is another skill's, or has a number.
    let of_skill = |name: &str| {
        let rest = name.strip_prefix(&format!("{skill}-"))?.to_owned();
        let (time, number) = rest.split_once('-').unwrap_or((&rest, ""));
        (time.len() == 16 && time.ends_with('Z') && number.len() <= 2).then_some(())
    };
    let ours: Vec<String> = home
        .kept
        .keys()
        .filter(|name| of_skill(name).is_some())
        .cloned()
        .collect();
    for name in ours.iter().take(ours.len().saturating_sub(KEPT)) {
        home.kept.remove(name);
    }
}
