//! What a change of bindings, memberships or versions means for users.
//!
//! [`before`] notes who gets what; then the change is made; [`Before::settle`] compares, and raises the generations of the
//! skill sets that come out different, and of no other. A dry run does the same and does not commit.

use std::collections::{BTreeMap, BTreeSet};

use super::binding::bindings;
use super::model::TreeDigest;
use crate::connection::Connection;
use crate::db::Tx;
use crate::error::{DbError, unless_gone};
use crate::ids::{Generation, Kind, SkillName, Uid, UserName};
use crate::statement::{fetch_all, fetch_optional, statements};
use crate::{meta, object};

statements! {
    /// The users who get a skill, and its digest.
    HOLDERS = "WITH RECURSIVE below (uid) AS (SELECT group_uid FROM group_skills WHERE skill_uid = $1 \
               UNION SELECT g.uid FROM user_groups g JOIN below b ON g.parent_uid = b.uid) \
               SELECT u.uid, u.name, s.name AS skill, v.digest FROM objects o JOIN users u ON u.uid = o.uid \
               JOIN skills s ON s.uid = $1 JOIN skill_versions v ON v.skill_uid = s.uid AND v.number = s.number \
               WHERE o.kind = 'skill-set' AND o.deleted_at IS NULL AND (EXISTS (SELECT 1 FROM default_skills d WHERE d.skill_uid = $1) \
               OR o.uid IN (SELECT user_uid FROM user_skills WHERE skill_uid = $1) \
               OR o.uid IN (SELECT m.user_uid FROM group_members m JOIN below b ON b.uid = m.group_uid))";
    /// The name of a user whose skill set is not going.
    NAME = "SELECT u.name FROM users u JOIN objects o ON o.uid = u.uid WHERE u.uid = $1 AND o.kind = 'skill-set' AND o.deleted_at IS NULL";
}

/// Whom or what a change can concern.
#[derive(Debug, Clone)]
pub enum Scope {
    /// Whoever gets one of these skills, before or afterwards.
    Skills(Vec<Uid>),
    /// These users.
    Users(Vec<Uid>),
}

/// What one user gets: by name, in which version.
type Set = BTreeMap<SkillName, TreeDigest>;

/// Who gets what, as far as the scope goes.
type Sets = BTreeMap<Uid, (UserName, Set)>;

/// What a change means for one user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Skills that the user did not get before.
    pub gains: Vec<SkillName>,
    /// Skills that the user gets no more.
    pub loses: Vec<SkillName>,
    /// Skills that the user gets in another version.
    pub changes: Vec<SkillName>,
}

impl Change {
    fn between(before: &Set, after: &Set) -> Self {
        let mut change = Self::default();
        for (name, digest) in after {
            match before.get(name) {
                None => change.gains.push(name.clone()),
                Some(other) if other != digest => change.changes.push(name.clone()),
                Some(_) => {}
            }
        }
        let lost = before.keys().filter(|name| !after.contains_key(*name));
        change.loses = lost.cloned().collect();
        change
    }

    /// Whether the user gets just the same.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What a change means: the users it concerns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Impact(pub Vec<Affected>);

/// A user whom a change concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Affected {
    /// The user.
    pub uid: Uid,
    /// The user's name.
    pub name: UserName,
    /// What it means.
    pub change: Change,
    /// The new generation of the user's skill set; `None` when the user is going.
    pub generation: Option<Generation>,
}

/// Who got what before a change.
#[derive(Debug)]
pub struct Before {
    scope: Scope,
    sets: Sets,
}

/// Notes who gets what, and orders this change with others of its kind.
pub async fn before(tx: &mut Tx, scope: Scope) -> Result<Before, DbError> {
    meta::take_guard(tx, "groups").await?;
    let sets = sets(tx, &scope).await?;
    Ok(Before { scope, sets })
}

impl Before {
    /// Raises the generations of the skill sets that come out different by now.
    pub async fn settle(self, tx: &mut Tx) -> Result<Impact, DbError> {
        let mut after = sets(tx, &self.scope).await?;
        let nothing = Set::new();
        let mut affected = Vec::new();
        for (uid, (name, before)) in &self.sets {
            let set = after.remove(uid).map(|(_, set)| set).unwrap_or_default();
            affected.push((uid.clone(), name.clone(), Change::between(before, &set)));
        }
        for (uid, (name, set)) in after {
            affected.push((uid, name, Change::between(&nothing, &set)));
        }
        affected.retain(|(.., change)| !change.is_none());
        let in_bulk = affected.len() > 1;
        let mut impact = Impact::default();
        for (uid, name, change) in affected {
            let bumped = match in_bulk {
                true => object::bump_in_bulk(tx, Kind::SkillSet, &uid).await,
                false => object::bump(tx, Kind::SkillSet, &uid, None).await,
            };
            impact.0.push(Affected {
                generation: unless_gone(bumped)?,
                uid,
                name,
                change,
            });
        }
        impact.0.sort_by_key(|affected| affected.name.key());
        Ok(impact)
    }
}

/// Who would get another version if these skills had one: nothing is changed.
pub async fn of_update(connection: &mut Connection, skills: Vec<Uid>) -> Result<Impact, DbError> {
    let sets = sets(connection, &Scope::Skills(skills)).await?;
    let affected = sets.into_iter().map(|(uid, (name, set))| Affected {
        uid,
        name,
        change: Change {
            changes: set.into_keys().collect(),
            ..Change::default()
        },
        generation: None,
    });
    let mut impact = Impact(affected.collect());
    impact.0.sort_by_key(|affected| affected.name.key());
    Ok(impact)
}

async fn sets(connection: &mut Connection, scope: &Scope) -> Result<Sets, DbError> {
    let mut sets = Sets::new();
    match scope {
        Scope::Skills(skills) => {
            for skill in BTreeSet::from_iter(skills) {
                let rows: Vec<(Uid, UserName, SkillName, TreeDigest)> =
                    fetch_all!(connection, HOLDERS, skill)?;
                for (uid, name, skill, digest) in rows {
                    let entry = sets.entry(uid).or_insert_with(|| (name, Set::new()));
                    entry.1.insert(skill, digest);
                }
            }
        }
        Scope::Users(users) => {
            for uid in BTreeSet::from_iter(users) {
                let name: Option<(UserName,)> = fetch_optional!(connection, NAME, uid)?;
                let Some((name,)) = name else { continue };
                let bound = bindings(connection, uid).await?.into_iter();
                let set = bound
                    .map(|binding| (binding.skill, binding.digest))
                    .collect();
                sets.insert(uid.clone(), (name, set));
            }
        }
    }
    Ok(sets)
}
