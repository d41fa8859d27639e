//! Decides what to do next for one user's skills. Pure.

use std::fmt;

use schema::condition::{Condition, Reason};
use schema::home::{FoundSkill, HomeState, PreviousSkill};
use schema::ids::{Kind, SkillName, Timestamp, UserName};
use schema::skill::TreeDigest;
use schema::skill_set::{Deployment, DesiredSkill};

use super::observe::{Seen, Skill, Snapshot, World};
use crate::runtime::Plan;

/// Skills that a message names.
const NAMED: usize = 5;

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Removes what is left of work that was cut short.
    Clear {
        /// Name of the user.
        name: UserName,
    },
    /// Takes a skill out of the workspace.
    Remove {
        /// Name of the user.
        name: UserName,
        /// Name of the skill.
        skill: SkillName,
        /// What lies there.
        previous: PreviousSkill,
    },
    /// Makes a skill, complete, where nobody else can reach it.
    Stage {
        /// Name of the user.
        name: UserName,
        /// Name of the skill.
        skill: SkillName,
        /// Its files.
        digest: TreeDigest,
    },
    /// Remembers what lies in the workspace, or is about to.
    Remember(Vec<Deployment>),
    /// Gives a skill that was made its name in the workspace.
    Swap {
        /// Name of the user.
        name: UserName,
        /// Name of the skill.
        skill: SkillName,
        /// What lies there.
        previous: PreviousSkill,
        /// Its files.
        digest: TreeDigest,
    },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clear { .. } => f.write_str("remove what an interrupted deployment has left"),
            Self::Stage { skill, .. } => write!(f, "prepare skill {skill}"),
            Self::Remember(_) => f.write_str("remember what is deployed"),
            Self::Remove {
                skill, previous, ..
            } => write!(f, "remove skill {skill}{}", kept(previous)),
            Self::Swap {
                skill,
                previous,
                digest,
                ..
            } => {
                let verb = match previous {
                    PreviousSkill::Nothing => "deploy",
                    PreviousSkill::Unchanged { .. } => "update",
                    PreviousSkill::Keep(_) => "repair",
                };
                let digest = digest.as_str().get(..12).unwrap_or_default();
                write!(f, "{verb} skill {skill} ({digest}){}", kept(previous))
            }
        }
    }
}

fn kept(previous: &PreviousSkill) -> String {
    match previous {
        PreviousSkill::Keep(name) => {
            format!("; the user's version is kept in skills/.replaced/{name}")
        }
        PreviousSkill::Nothing | PreviousSkill::Unchanged { .. } => String::new(),
    }
}

fn wait(reason: Reason, message: impl Into<String>) -> Plan<Action> {
    Plan::say(Condition::not_ready(reason, message))
}

/// The plan for one user's skills.
pub fn plan(snapshot: &Snapshot, now: Timestamp) -> Plan<Action> {
    let row = &snapshot.row;
    match &snapshot.world {
        World::Going => wait(Reason::Terminating, "the user is being removed"),
        World::Unchanged { said, conflict } => Plan::say(match conflict {
            false => Condition::ready(Reason::Converged, said.as_ref()),
            true => Condition::not_ready(Reason::NameConflict, said.as_ref()),
        }),
        World::NoHome(HomeState::Conflict(why)) => {
            wait(Reason::HomeConflict, why).waiting_for(Kind::User, &row.uid, row.name.as_str())
        }
        World::NoHome(HomeState::Missing | HomeState::Ready) => wait(
            Reason::HomeMissing,
            "the user's directory does not exist yet",
        )
        .waiting_for(Kind::User, &row.uid, row.name.as_str()),
        World::Blocked(why) => wait(Reason::NameConflict, why),
        World::Seen(seen) => converge(&row.name, seen, now),
    }
}

/// What a skill's directory is.
enum Lies<'a> {
    /// Nothing.
    Nothing,
    /// A version of the skill that we have put there.
    Ours {
        digest: &'a TreeDigest,
        stamp: &'a schema::skill::TreeStamp,
    },
    /// What we have put there, changed by somebody else.
    Edited,
    /// Nothing that we have put there.
    Foreign,
}

fn lies(skill: &Skill) -> Lies<'_> {
    let recorded = skill.recorded.as_ref();
    let placed = recorded.and_then(|it| it.digest.as_ref());
    let next = recorded.and_then(|it| it.next.as_ref());
    match &skill.found {
        FoundSkill::Nothing => Lies::Nothing,
        FoundSkill::Tree { digest, stamp } => {
            let desired = skill.desired.as_ref().map(|it| &it.digest);
            // Who makes the change of an update by hand has done our work.
            let is_ours = Some(digest) == placed
                || Some(digest) == next
                || (placed.is_some() && Some(digest) == desired);
            match (is_ours, placed) {
                (true, _) => Lies::Ours { digest, stamp },
                (false, Some(_)) => Lies::Edited,
                (false, None) => Lies::Foreign,
            }
        }
        FoundSkill::Other => match placed {
            Some(_) => Lies::Edited,
            None => Lies::Foreign,
        },
    }
}

/// Whether the user gets the skill, and somebody else's directory has its name.
pub(super) fn is_foreign(skill: &Skill) -> bool {
    skill.desired.is_some() && matches!(lies(skill), Lies::Foreign)
}

fn converge(name: &UserName, seen: &Seen, now: Timestamp) -> Plan<Action> {
    let mut removals = Vec::new();
    let mut stages = Vec::new();
    let mut swaps = Vec::new();
    let mut records: Vec<Deployment> = Vec::new();
    if seen.leftovers {
        removals.push(Action::Clear { name: name.clone() });
    }
    for skill in &seen.skills {
        let kept_as = format!("{}-{}", skill.name, now.to_basic());
        let previous = match lies(skill) {
            Lies::Nothing => PreviousSkill::Nothing,
            Lies::Ours { stamp, .. } => PreviousSkill::Unchanged {
                stamp: stamp.clone(),
                kept_as,
            },
            Lies::Edited => PreviousSkill::Keep(kept_as),
            Lies::Foreign => {
                if skill.desired.is_none() {
                    // It came to nothing, and now somebody else has the name.
                    records.extend(skill.recorded.as_ref().map(forgotten));
                }
                continue;
            }
        };
        match (&skill.desired, lies(skill)) {
            (Some(desired), Lies::Ours { digest, stamp }) if *digest == desired.digest => {
                let placed = Deployment {
                    name: skill.name.clone(),
                    digest: Some(digest.clone()),
                    stamp: Some(stamp.clone()),
                    next: None,
                    file_count: desired.file_count,
                    size: desired.size,
                };
                if skill.recorded.as_ref() != Some(&placed) {
                    records.push(placed);
                }
            }
            // The others do not wait for it, and what lies there stays.
            (Some(_), _) if skill.missing => {}
            (Some(desired), lies) => {
                stages.push(Action::Stage {
                    name: name.clone(),
                    skill: skill.name.clone(),
                    digest: desired.digest.clone(),
                });
                records.extend(expected(skill.recorded.as_ref(), &lies, desired));
                swaps.push(Action::Swap {
                    name: name.clone(),
                    skill: skill.name.clone(),
                    previous,
                    digest: desired.digest.clone(),
                });
            }
            (None, Lies::Nothing) => records.extend(skill.recorded.as_ref().map(forgotten)),
            (None, _) => removals.push(Action::Remove {
                name: name.clone(),
                skill: skill.name.clone(),
                previous,
            }),
        }
    }
    let mut actions = removals;
    actions.append(&mut stages);
    if !records.is_empty() {
        actions.push(Action::Remember(records));
    }
    actions.append(&mut swaps);
    if !actions.is_empty() {
        return Plan::act(
            actions,
            Condition::not_ready(Reason::Progressing, "skills are being deployed"),
        );
    }
    Plan::say(settled(seen))
}

/// What is recorded before a version is put into its place; `None` when it is already. What lies there now is recorded as
/// well, or what an interrupted update has put there would be taken for a change of the user's.
fn expected(
    recorded: Option<&Deployment>,
    lies: &Lies<'_>,
    desired: &DesiredSkill,
) -> Option<Deployment> {
    let before = recorded.cloned();
    let mut record = before.clone().unwrap_or_else(|| Deployment {
        name: desired.name.clone(),
        digest: None,
        stamp: None,
        next: None,
        file_count: 0,
        size: 0,
    });
    if let Lies::Ours { digest, stamp } = lies
        && record.digest.as_ref() != Some(*digest)
    {
        record.digest = Some((*digest).clone());
        record.stamp = Some((*stamp).clone());
    }
    record.next = Some(desired.digest.clone());
    record.file_count = record.file_count.max(desired.file_count);
    record.size = record.size.max(desired.size);
    (before.as_ref() != Some(&record)).then_some(record)
}

fn forgotten(deployment: &Deployment) -> Deployment {
    Deployment {
        digest: None,
        stamp: None,
        next: None,
        ..deployment.clone()
    }
}

/// Whether the user gets the skill, and nobody has it.
pub(super) fn is_missing(skill: &Skill) -> bool {
    skill.missing && !is_foreign(skill)
}

fn settled(seen: &Seen) -> Condition {
    let missing = seen.skills.iter().find(|skill| is_missing(skill));
    if let Some((skill, desired)) = missing.and_then(|skill| Some((skill, skill.desired.as_ref()?)))
    {
        let message = format!(
            "the store does not have version {} of skill {}",
            desired.digest, skill.name
        );
        return Condition::not_ready(Reason::SkillMissing, message);
    }
    let foreign: Vec<&str> = seen
        .skills
        .iter()
        .filter(|skill| is_foreign(skill))
        .map(|skill| skill.name.as_str())
        .collect();
    let deployed = seen.skills.iter().filter(|it| it.desired.is_some()).count() - foreign.len();
    let deployed = match deployed {
        1 => "1 skill is deployed".to_owned(),
        n => format!("{n} skills are deployed"),
    };
    if foreign.is_empty() {
        return Condition::ready(Reason::Converged, deployed);
    }
    let named: Vec<String> = foreign
        .iter()
        .take(NAMED)
        .map(|name| format!("skills/{name}"))
        .collect();
    let more = match foreign.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "{deployed}; {}{more} in the workspace was not deployed by Agentyard and is left alone",
        named.join(", ")
    );
    Condition::not_ready(Reason::NameConflict, message)
}
