//! Groups, skills and who gets which, in memory.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use reconcilers::skill::{SkillState, SkillStore};
use reconcilers::skill_repository::RepositoryStore;
use reconcilers::skill_set::SkillSetStore;
use reconcilers::stores::Rows;
use schema::error::DbError;
use schema::ids::{Generation, Kind, SkillName, Timestamp, Uid};
use schema::skill::{Origin, SkillRow, SkillVersion, TreeDigest, VERSIONS_KEPT};
use schema::skill_repository::{Credential, RepositoryFacts, RepositoryRow};
use schema::skill_set::{Deployment, DesiredSkill, SkillSetRow};

use super::MemoryStore;
use super::tables::Tables;
use crate::Change;

/// A group, by its name.
#[derive(Debug, Clone, Default)]
struct Group {
    parent: Option<String>,
    members: BTreeSet<Uid>,
    skills: BTreeSet<Uid>,
}

#[derive(Debug, Clone)]
struct Skill {
    name: SkillName,
    number: i64,
    versions: Vec<SkillVersion>,
}

/// Everything about skills.
#[derive(Debug, Default)]
pub(super) struct Skills {
    groups: BTreeMap<String, Group>,
    skills: BTreeMap<Uid, Skill>,
    of_users: BTreeSet<(Uid, Uid)>,
    of_everybody: BTreeSet<Uid>,
    deployments: BTreeMap<Uid, BTreeMap<SkillName, Deployment>>,
}

type Sets = BTreeMap<Uid, BTreeMap<SkillName, TreeDigest>>;

impl Skills {
    fn effective(&self, uid: &Uid) -> BTreeSet<&Skill> {
        let mut found: BTreeSet<&Uid> = self.of_everybody.iter().collect();
        found.extend(
            self.of_users
                .iter()
                .filter(|(user, _)| user == uid)
                .map(|(_, skill)| skill),
        );
        for (name, group) in &self.groups {
            if !group.members.contains(uid) {
                continue;
            }
            let (mut at, mut seen) = (Some(name), BTreeSet::new());
            while let Some(name) = at.filter(|name| seen.insert((*name).clone())) {
                let group = self.groups.get(name);
                found.extend(group.into_iter().flat_map(|group| &group.skills));
                at = group.and_then(|group| group.parent.as_ref());
            }
        }
        found
            .into_iter()
            .filter_map(|uid| self.skills.get(uid))
            .collect()
    }

    /// The user is gone or going: nobody inherits anything.
    pub(super) fn forget_user(&mut self, uid: &Uid) {
        self.of_users.retain(|(user, _)| user != uid);
        for group in self.groups.values_mut() {
            group.members.remove(uid);
        }
    }

    pub(super) fn purge_user(&mut self, uid: &Uid) {
        self.deployments.remove(uid);
    }
}

impl Skill {
    fn version(&self) -> Option<&SkillVersion> {
        self.versions
            .iter()
            .find(|version| version.number == self.number)
    }
}

impl PartialEq for Skill {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Skill {}

impl PartialOrd for Skill {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Skill {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.name.cmp(&other.name)
    }
}

impl Tables {
    fn skill_sets(&self) -> Sets {
        let objects = self.objects.iter();
        let alive = objects
            .filter(|((kind, _), object)| *kind == Kind::SkillSet && object.deleted_at.is_none());
        alive
            .map(|((_, uid), _)| {
                let skills = self.skills.effective(uid).into_iter();
                let set = skills.filter_map(|skill| {
                    Some((skill.name.clone(), skill.version()?.digest.clone()))
                });
                (uid.clone(), set.collect())
            })
            .collect()
    }

    fn skill_set_row(&self, uid: &Uid) -> Option<SkillSetRow> {
        let object = self.object(Kind::SkillSet, uid)?;
        Some(SkillSetRow {
            uid: uid.clone(),
            name: self.accounts.get(uid)?.name.clone(),
            generation: object.generation,
            deleted_at: object.deleted_at,
            adapter_generation: self.adapter_generation(),
        })
    }

    fn skill_state(&self, uid: &Uid) -> Option<SkillState> {
        let object = self.object(Kind::Skill, uid)?;
        let skill = self.skills.skills.get(uid)?;
        let mut kept: Vec<TreeDigest> = skill
            .versions
            .iter()
            .map(|version| version.digest.clone())
            .collect();
        kept.sort();
        kept.dedup();
        Some(SkillState {
            row: SkillRow {
                uid: uid.clone(),
                name: skill.name.clone(),
                generation: object.generation,
                deleted_at: object.deleted_at,
                version: skill.version()?.clone(),
            },
            kept,
        })
    }
}

impl MemoryStore {
    /// A change of groups, bindings or versions: who gets something else by it is raised.
    fn settle<T>(
        &self,
        change: impl FnOnce(&mut Tables) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        self.write(|tables| {
            let before = tables.skill_sets();
            let result = change(tables)?;
            let after = tables.skill_sets();
            let changed = after
                .into_iter()
                .filter(|(uid, set)| before.get(uid) != Some(set));
            let changed: Vec<Uid> = changed.map(|(uid, _)| uid).collect();
            for uid in changed {
                tables.raise(&(Kind::SkillSet, uid))?;
            }
            Ok(result)
        })
    }

    /// Brings a version of a skill into effect.
    ///
    /// # Errors
    /// While a skill of this name is being removed.
    pub fn put_skill(
        &self,
        uid: &Uid,
        name: &SkillName,
        digest: &TreeDigest,
        now: Timestamp,
    ) -> Result<Generation, DbError> {
        self.settle(|tables| {
            let same = |skill: &Skill| skill.name.key() == name.key();
            let holder = tables.skills.skills.iter().find(|(_, skill)| same(skill));
            let uid = holder.map_or(uid, |(holder, _)| holder).clone();
            let generation = match tables.object(Kind::Skill, &uid) {
                Some(object) if object.deleted_at.is_some() => {
                    return Err(DbError::NameBeingRemoved);
                }
                Some(_)
                    if tables
                        .skills
                        .skills
                        .get(&uid)
                        .is_some_and(|it| it.name != *name) =>
                {
                    return Err(DbError::NameTaken);
                }
                Some(_) => tables.raise(&(Kind::Skill, uid.clone()))?,
                None => {
                    tables.create(Kind::Skill, &uid);
                    Generation(1)
                }
            };
            let skill = tables.skills.skills.entry(uid).or_insert_with(|| Skill {
                name: name.clone(),
                number: 0,
                versions: Vec::new(),
            });
            if skill
                .version()
                .is_some_and(|version| version.digest == *digest)
            {
                return Ok(generation);
            }
            let newest = skill.versions.iter().map(|version| version.number).max();
            skill.number = newest.unwrap_or(0) + 1;
            skill.versions.push(SkillVersion {
                number: skill.number,
                digest: digest.clone(),
                description: String::new(),
                version: String::new(),
                license: String::new(),
                has_manifest: true,
                file_count: 1,
                size: 1,
                origin: Origin::default(),
                warnings: Vec::new(),
                created_at: now,
            });
            let old = skill.number - VERSIONS_KEPT;
            skill.versions.retain(|version| version.number > old);
            debug_assert!(skill.version().is_some());
            Ok(generation)
        })
    }

    /// Brings a version that is kept into effect again.
    ///
    /// # Errors
    /// When there is none, or the skill is going.
    pub fn roll_back_skill(&self, uid: &Uid, number: i64) -> Result<Generation, DbError> {
        self.settle(|tables| {
            let skill = tables.skills.skills.get_mut(uid);
            let skill = skill.filter(|it| it.versions.iter().any(|it| it.number == number));
            skill.ok_or(DbError::NotFound("version"))?.number = number;
            tables.raise(&(Kind::Skill, uid.clone()))
        })
    }

    /// Binds exactly these skills to everybody.
    ///
    /// # Errors
    /// When one of them is gone or going.
    pub fn set_default_skills(&self, skills: &[Uid]) -> Result<(), DbError> {
        self.settle(|tables| {
            let is_there = |uid: &Uid| {
                let object = tables.object(Kind::Skill, uid);
                object.is_some_and(|object| object.deleted_at.is_none())
            };
            if !skills.iter().all(is_there) {
                return Err(DbError::NotFound("skill"));
            }
            tables.skills.of_everybody = skills.iter().cloned().collect();
            Ok(())
        })
    }

    /// Removes a skill, wherever it is bound.
    ///
    /// # Errors
    /// When it is gone or going.
    pub fn delete_skill(&self, uid: &Uid, now: Timestamp) -> Result<Generation, DbError> {
        self.settle(|tables| {
            tables.skills.of_everybody.remove(uid);
            tables.skills.of_users.retain(|(_, skill)| skill != uid);
            for group in tables.skills.groups.values_mut() {
                group.skills.remove(uid);
            }
            super::writes::delete(tables, Kind::Skill, uid, now)
        })
    }

    /// Creates a group, or puts one into another. Nothing happens where that would be a circle.
    pub fn put_group(&self, name: &str, parent: Option<&str>) -> Result<(), DbError> {
        self.settle(|tables| {
            let groups = &mut tables.skills.groups;
            let mut at = parent.map(str::to_owned);
            while let Some(above) = at {
                if above == name {
                    return Err(DbError::GroupCycle);
                }
                let group = groups.get(&above).ok_or(DbError::NotFound("group"))?;
                at = group.parent.clone();
            }
            groups.entry(name.to_owned()).or_default().parent = parent.map(str::to_owned);
            Ok(())
        })
    }

    /// Removes a group; those in it become top-level groups.
    pub fn delete_group(&self, name: &str) -> Result<(), DbError> {
        self.settle(|tables| {
            tables.skills.groups.remove(name);
            for group in tables.skills.groups.values_mut() {
                group.parent = group.parent.take().filter(|parent| parent != name);
            }
            Ok(())
        })
    }

    /// Makes a user a member of a group, or ends that.
    ///
    /// # Errors
    /// When there is no such group or user.
    pub fn set_member(&self, group: &str, user: &Uid, member: bool) -> Result<(), DbError> {
        self.settle(|tables| {
            let going = tables
                .object(Kind::SkillSet, user)
                .is_none_or(|it| it.deleted_at.is_some());
            let group = tables.skills.groups.get_mut(group);
            let group = group.ok_or(DbError::NotFound("group"))?;
            match member {
                true if going => return Err(DbError::NotFound("user")),
                true => group.members.insert(user.clone()),
                false => group.members.remove(user),
            };
            Ok(())
        })
    }

    /// Binds a skill to a group, to a user or to everybody, or ends that.
    ///
    /// # Errors
    /// When there is no such group, or the skill is going.
    pub fn set_bound(
        &self,
        skill: &Uid,
        group: Option<&str>,
        user: Option<&Uid>,
        bound: bool,
    ) -> Result<(), DbError> {
        self.settle(|tables| {
            let going = tables
                .object(Kind::Skill, skill)
                .is_none_or(|it| it.deleted_at.is_some());
            if going && bound {
                return Err(DbError::NotFound("skill"));
            }
            let skills = &mut tables.skills;
            match (group, user) {
                (Some(group), _) => {
                    let group = skills
                        .groups
                        .get_mut(group)
                        .ok_or(DbError::NotFound("group"))?;
                    match bound {
                        true => group.skills.insert(skill.clone()),
                        false => group.skills.remove(skill),
                    };
                }
                (None, Some(user)) => {
                    let pair = (user.clone(), skill.clone());
                    match bound {
                        true => skills.of_users.insert(pair),
                        false => skills.of_users.remove(&pair),
                    };
                }
                (None, None) => {
                    match bound {
                        true => skills.of_everybody.insert(skill.clone()),
                        false => skills.of_everybody.remove(skill),
                    };
                }
            }
            Ok(())
        })
    }

    /// What was put into a user's workspace.
    pub fn peek_deployments(&self, uid: &Uid) -> Vec<Deployment> {
        let tables = self.tables();
        let deployments = tables.skills.deployments.get(uid);
        let deployments = deployments.into_iter().flat_map(BTreeMap::values);
        deployments.cloned().collect()
    }

    /// The versions of a skill that are kept.
    pub fn peek_versions(&self, uid: &Uid) -> BTreeSet<TreeDigest> {
        let tables = self.tables();
        let skill = tables.skills.skills.get(uid);
        let versions = skill.into_iter().flat_map(|skill| &skill.versions);
        versions.map(|version| version.digest.clone()).collect()
    }

    /// What a user gets now.
    pub fn peek_skills(&self, uid: &Uid) -> BTreeMap<SkillName, TreeDigest> {
        let mut sets = self.tables().skill_sets();
        sets.remove(uid).unwrap_or_default()
    }
}

#[async_trait]
impl Rows<SkillSetRow> for MemoryStore {
    async fn rows(&self) -> Result<Vec<(Uid, SkillSetRow)>, DbError> {
        self.transaction(|tables| {
            let uids = tables.accounts.keys();
            let rows = uids.filter_map(|uid| Some((uid.clone(), tables.skill_set_row(uid)?)));
            Ok(rows.collect())
        })
        .await
    }

    async fn row(&self, uid: &Uid) -> Result<Option<SkillSetRow>, DbError> {
        self.transaction(|tables| Ok(tables.skill_set_row(uid)))
            .await
    }
}

#[async_trait]
impl SkillSetStore for MemoryStore {
    async fn skills(&self, uid: &Uid) -> Result<(Vec<DesiredSkill>, Vec<Deployment>), DbError> {
        self.transaction(|tables| {
            let skills = tables.skills.effective(uid).into_iter();
            let desired = skills.filter_map(|skill| {
                let version = skill.version()?;
                Some(DesiredSkill {
                    name: skill.name.clone(),
                    digest: version.digest.clone(),
                    file_count: version.file_count,
                    size: version.size,
                })
            });
            let deployments = tables.skills.deployments.get(uid);
            let deployments = deployments
                .into_iter()
                .flat_map(|all| all.values().cloned());
            Ok((desired.collect(), deployments.collect()))
        })
        .await
    }

    async fn save_deployments(&self, uid: &Uid, deployments: &[Deployment]) -> Result<(), DbError> {
        self.transaction(|tables| {
            if !tables.accounts.contains_key(uid) {
                return Ok(());
            }
            let of_user = tables.skills.deployments.entry(uid.clone()).or_default();
            for deployment in deployments {
                if deployment.digest.is_none() && deployment.next.is_none() {
                    of_user.remove(&deployment.name);
                } else {
                    of_user.insert(deployment.name.clone(), deployment.clone());
                }
            }
            Ok(())
        })
        .await
    }
}

#[async_trait]
impl Rows<SkillState> for MemoryStore {
    async fn rows(&self) -> Result<Vec<(Uid, SkillState)>, DbError> {
        self.transaction(|tables| {
            let uids = tables.skills.skills.keys();
            let rows = uids.filter_map(|uid| Some((uid.clone(), tables.skill_state(uid)?)));
            Ok(rows.collect())
        })
        .await
    }

    async fn row(&self, uid: &Uid) -> Result<Option<SkillState>, DbError> {
        self.transaction(|tables| Ok(tables.skill_state(uid))).await
    }
}

#[async_trait]
impl SkillStore for MemoryStore {
    async fn deployed(&self, name: &SkillName) -> Result<Vec<TreeDigest>, DbError> {
        self.transaction(|tables| {
            let all = tables
                .skills
                .deployments
                .values()
                .flat_map(BTreeMap::values);
            let of_name = all.filter(|deployment| deployment.name == *name);
            let digests = of_name.flat_map(|it| it.digest.iter().chain(&it.next).cloned());
            Ok(digests.collect::<BTreeSet<_>>().into_iter().collect())
        })
        .await
    }

    async fn purge_skill(&self, uid: &Uid) -> Result<(), DbError> {
        self.transaction(|tables| {
            let object = tables.object(Kind::Skill, uid);
            if object.is_some_and(|object| object.deleted_at.is_some()) {
                tables.remove_object(Kind::Skill, uid);
                tables.skills.skills.remove(uid);
                self.tell(&Change::Purged {
                    kind: Kind::Skill,
                    uid: uid.clone(),
                });
            }
            Ok(())
        })
        .await
    }
}

/// The simulation has no repositories: what they need of the world is a program and a network.
#[async_trait]
impl Rows<RepositoryRow> for MemoryStore {
    async fn rows(&self) -> Result<Vec<(Uid, RepositoryRow)>, DbError> {
        self.transaction(|_| Ok(Vec::new())).await
    }

    async fn row(&self, _: &Uid) -> Result<Option<RepositoryRow>, DbError> {
        self.transaction(|_| Ok(None)).await
    }
}

#[async_trait]
impl RepositoryStore for MemoryStore {
    async fn credentials(&self, _: &Uid) -> Result<Vec<Credential>, DbError> {
        self.transaction(|_| Ok(Vec::new())).await
    }

    async fn save_repository_facts(&self, _: &Uid, _: &RepositoryFacts) -> Result<(), DbError> {
        self.transaction(|_| Ok(())).await
    }

    async fn purge_repository(&self, _: &Uid) -> Result<(), DbError> {
        self.transaction(|_| Ok(())).await
    }
}
