//! Reads what a user gets and what lies in the user's workspace.
//!
//! In a no-op pass that is the cached row, and for each skill the names, inodes, sizes and times of its files.

use std::sync::Arc;

use schema::home::{AskedSkill, FoundSkill, HomeError, HomeState, SkillsLook};
use schema::ids::{SkillName, Uid};
use schema::skill_set::{Deployment, DesiredSkill, SkillSetRow};
use schema::skill_store::TreeLimits;

use super::{Settled, SkillSetError, SkillSetReconciler};
use crate::runtime::Purpose;

/// Desired and observed state of one user's skills.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// What is desired.
    pub row: Arc<SkillSetRow>,
    /// What is there.
    pub world: World,
}

/// A skill that has to be looked at, and how large its files may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Its name.
    pub name: SkillName,
    /// More is no version of it.
    pub limits: TreeLimits,
}

/// What is there.
#[derive(Debug, Clone, PartialEq)]
pub enum World {
    /// The user is going: nothing is asked.
    Going,
    /// As when it was last read, of which this was said.
    Unchanged {
        /// What.
        said: Arc<str>,
        /// Some directory is somebody else's.
        conflict: bool,
    },
    /// The user's directory cannot be used (yet).
    NoHome(HomeState),
    /// The directory of the skills cannot be used; the text says why.
    Blocked(String),
    /// Everything was read.
    Seen(Box<Seen>),
}

/// What a user gets, and what lies there.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Each skill that the user gets or got, ordered by name.
    pub skills: Vec<Skill>,
    /// Something is left of work that was cut short.
    pub leftovers: bool,
    /// How it looked before it was read.
    pub look: Option<SkillsLook>,
}

/// One skill.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// Its name.
    pub name: SkillName,
    /// What the user gets.
    pub desired: Option<DesiredSkill>,
    /// What was put there.
    pub recorded: Option<Deployment>,
    /// What lies there.
    pub found: FoundSkill,
    /// What the user gets is to be put there, and the store does not have it.
    pub missing: bool,
}

impl Skill {
    fn limits(&self) -> TreeLimits {
        let sizes = [
            self.desired.as_ref().map(|it| (it.file_count, it.size)),
            self.recorded.as_ref().map(|it| (it.file_count, it.size)),
        ];
        let (mut files, mut bytes) = (0, 0);
        for (count, size) in sizes.into_iter().flatten() {
            files = files.max(u64::try_from(count).unwrap_or(0));
            bytes = bytes.max(u64::try_from(size).unwrap_or(0));
        }
        TreeLimits { files, bytes }
    }
}

impl Seen {
    /// What to remember once nothing is left to do.
    pub(super) fn settled(&self, row: &SkillSetRow) -> Settled {
        let asked = self.skills.iter().map(|skill| Asked {
            name: skill.name.clone(),
            limits: skill.limits(),
        });
        Settled {
            generation: row.generation,
            asked: asked.collect(),
            look: self.look.clone(),
            conflict: self.skills.iter().any(super::plan::is_foreign),
        }
    }
}

impl SkillSetReconciler {
    pub(super) async fn observe_one(
        &self,
        uid: &Uid,
        purpose: Purpose,
    ) -> Result<Option<Snapshot>, SkillSetError> {
        let Some(row) = self.desired.row(uid).await? else {
            if purpose == Purpose::Pass {
                self.verified.forget(uid);
                self.staged().remove(uid);
            }
            return Ok(None);
        };
        if row.deleted_at.is_some() {
            let world = World::Going;
            return Ok(Some(Snapshot { row, world }));
        }
        if let Some(world) = self.unchanged(&row).await? {
            return Ok(Some(Snapshot { row, world }));
        }
        let world = self.read(&row).await?;
        Ok(Some(Snapshot { row, world }))
    }

    /// What was said, if nothing has changed since.
    async fn unchanged(&self, row: &SkillSetRow) -> Result<Option<World>, SkillSetError> {
        let Some((_, last)) = self.verified.last(&row.uid) else {
            return Ok(None);
        };
        if last.generation != row.generation {
            return Ok(None);
        }
        let look = self.look(row, &last.asked).await?;
        let conflict = last.conflict;
        let now = Settled { look, ..last };
        let said = self.verified.said(&row.uid, &now);
        Ok(said.map(|said| World::Unchanged { said, conflict }))
    }

    async fn look(
        &self,
        row: &SkillSetRow,
        asked: &Arc<[Asked]>,
    ) -> Result<Option<SkillsLook>, SkillSetError> {
        let asked = asked.iter();
        let asked = asked.map(|asked| (asked.name.clone(), asked.limits));
        let data_dir = &self.shared.data_dir;
        match data_dir
            .look_at_skills(&row.name, &row.uid, asked.collect())
            .await
        {
            Ok(look) => Ok(look),
            // Something else lies there: what it is, the reading says.
            Err(HomeError::Conflict(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn read(&self, row: &SkillSetRow) -> Result<World, SkillSetError> {
        let agent = self.shared.adapters.agent(row.adapter_generation).await?;
        let owner = agent.home_owner(self.shared.options.service_user);
        let data_dir = &self.shared.data_dir;
        match data_dir.state(&row.name, &row.uid, owner).await? {
            HomeState::Ready => {}
            other => return Ok(World::NoHome(other)),
        }
        let (desired, recorded) = self.store.skills(&row.uid).await?;
        let mut skills = merge(desired, recorded);
        // Its bytes are compared now and then, however it looks.
        let trusts = !self.verified.is_due(&row.uid);
        let asked: Vec<AskedSkill> = skills
            .iter()
            .map(|skill| self.asked(&row.uid, skill, trusts))
            .collect();
        // Before it is read: whoever changes something meanwhile is found by the next look.
        let looked: Arc<[Asked]> = skills
            .iter()
            .map(|skill| Asked {
                name: skill.name.clone(),
                limits: skill.limits(),
            })
            .collect();
        let look = self.look(row, &looked).await?;
        let seen = match data_dir.read_skills(&row.name, &row.uid, asked).await {
            Ok(Some(seen)) => seen,
            Ok(None) => return Ok(World::NoHome(HomeState::Missing)),
            Err(HomeError::Conflict(why)) => return Ok(World::Blocked(why)),
            Err(error) => return Err(error.into()),
        };
        for (skill, found) in skills.iter_mut().zip(seen.skills) {
            skill.found = found;
            skill.missing = self.is_missing(skill).await?;
        }
        Ok(World::Seen(Box::new(Seen {
            skills,
            leftovers: seen.leftovers,
            look,
        })))
    }

    /// Whether the store lacks what is to be put there. What lies there already needs no store.
    async fn is_missing(&self, skill: &Skill) -> Result<bool, SkillSetError> {
        let Some(desired) = &skill.desired else {
            return Ok(false);
        };
        if matches!(&skill.found, FoundSkill::Tree { digest, .. } if *digest == desired.digest) {
            return Ok(false);
        }
        let data_dir = &self.shared.data_dir;
        let stored = data_dir.stored_versions(&skill.name).await?;
        Ok(!stored.iter().any(|(digest, _)| *digest == desired.digest))
    }

    fn asked(&self, uid: &Uid, skill: &Skill, trusts: bool) -> AskedSkill {
        let mut known = Vec::new();
        if trusts {
            if let Some(Deployment {
                stamp: Some(stamp),
                digest: Some(digest),
                ..
            }) = &skill.recorded
            {
                known.push((stamp.clone(), digest.clone()));
            }
            let staged = self.staged();
            let staged = staged.get(uid).into_iter().flatten();
            known.extend(
                staged
                    .filter(|(name, ..)| *name == skill.name)
                    .map(|(_, stamp, digest)| (stamp.clone(), digest.clone())),
            );
        }
        AskedSkill {
            name: skill.name.clone(),
            known,
            limits: skill.limits(),
        }
    }
}

/// Each skill that the user gets or got, ordered by name.
fn merge(desired: Vec<DesiredSkill>, recorded: Vec<Deployment>) -> Vec<Skill> {
    let mut skills: Vec<Skill> = Vec::with_capacity(desired.len().max(recorded.len()));
    for desired in desired {
        skills.push(Skill {
            name: desired.name.clone(),
            desired: Some(desired),
            recorded: None,
            found: FoundSkill::Nothing,
            missing: false,
        });
    }
    for deployment in recorded {
        match skills.iter_mut().find(|it| it.name == deployment.name) {
            Some(skill) => skill.recorded = Some(deployment),
            None => skills.push(Skill {
                name: deployment.name.clone(),
                desired: None,
                recorded: Some(deployment),
                found: FoundSkill::Nothing,
                missing: false,
            }),
        }
    }
    skills.sort_by(|one, other| one.name.cmp(&other.name));
    skills
}
