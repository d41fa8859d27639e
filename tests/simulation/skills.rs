//! Skills: who gets which, what users do in their workspaces, and what must be so of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schema::condition::{ConditionStatus, ConditionType, Reason, find};
use schema::error::DbError;
use schema::ids::{Generation, Kind, SkillName, Timestamp, Uid};
use schema::skill::TreeDigest;

use crate::model::Account;
use crate::world::World;

const SKILLS: [&str; 3] = ["pdf", "pdf-2", "zip"];
const GROUPS: [&str; 3] = ["all", "dev", "ops"];
/// How long a status may be behind what a user's hands have done, and hands behind what was seen before.
const LATELY: Duration = Duration::from_secs(240);
/// How long what nobody needs stays in the store; nothing is listed in every moment.
const GRACE: Duration = Duration::from_secs(3600 + 300);
/// So many of a user's versions of one skill are kept.
const KEPT: usize = 10;

/// What those who have their hands on skills remember.
#[derive(Debug, Default)]
pub struct SkillsModel {
    /// Skills that were ever there, and whether somebody deleted them.
    skills: BTreeMap<Uid, (SkillName, bool)>,
    /// What users have made, and not removed themselves.
    made: BTreeMap<(Uid, SkillName), Vec<TreeDigest>>,
    /// What lies where nothing was ever deployed.
    own: BTreeMap<(Uid, SkillName), TreeDigest>,
    /// When a user last had a hand on skills.
    hand_at: BTreeMap<Uid, Timestamp>,
    /// Since when a user's skills are said to be ready, at which generation.
    ready: BTreeMap<Uid, (Generation, Timestamp)>,
}

impl SkillsModel {
    /// A status of a user's skills was saved.
    pub fn said(&mut self, uid: &Uid, seen: Generation, ready: bool, now: Timestamp) {
        match ready {
            true => self.ready.insert(uid.clone(), (seen, now)),
            false => self.ready.remove(uid),
        };
    }
}

fn name(text: &str) -> SkillName {
    text.parse().unwrap()
}

impl World {
    fn tell(&self, what: &'static str, text: &str) {
        let mut monitor = self.monitor();
        monitor.trace.count(what);
        monitor.line(&format!("{what} {text}"));
    }

    fn some_skill(&self) -> Option<Uid> {
        let monitor = self.monitor();
        let skills = monitor.model.skills.skills.iter();
        let living: Vec<Uid> = skills
            .filter(|(_, (_, deleted))| !deleted)
            .map(|(uid, _)| uid.clone())
            .collect();
        self.skills.pick(&living).cloned()
    }

    fn some_group(&self) -> &'static str {
        self.skills.pick(&GROUPS).copied().unwrap_or("all")
    }

    fn some_living(&self) -> Option<Uid> {
        let living = self.monitor().model.living();
        self.skills.pick(&living).cloned()
    }

    /// Somebody writes something about skills, or has a hand on them.
    pub fn about_skills(&self) {
        match self.skills.below(20) {
            0..=3 => self.upload(),
            4 => self.delete_skill(),
            5 | 6 => self.change_group(),
            7 | 8 => self.change_member(),
            9..=12 => self.change_binding(),
            _ => self.hand_on_skill(),
        }
    }

    /// A version is taken into the store, and mostly recorded.
    fn upload(&self) {
        let skill = name(self.skills.pick(&SKILLS).unwrap_or(&"pdf"));
        let digest = format!("{:x}", self.skills.between(1, 4)).repeat(64);
        let digest: TreeDigest = digest.parse().unwrap();
        self.ground.dir.import_skill(&skill, &digest, self.now());
        if self.skills.per_mille(150) {
            return self.tell("upload tried", skill.as_str());
        }
        let uid = Uid::from(format!("skill-{:016x}", self.skills.next()));
        let result = self
            .ground
            .store
            .put_skill(&uid, &skill, &digest, self.now());
        self.tell("upload", &format!("{skill} {digest}: {result:?}"));
        match result {
            Ok(Generation(1)) => {
                let mut monitor = self.monitor();
                monitor.model.skills.skills.insert(uid, (skill, false));
            }
            Ok(_) => {}
            Err(DbError::NameBeingRemoved) => {
                self.monitor().trace.count("skill being removed");
            }
            Err(error) => self.monitor().broken(format!("I2: {skill}: {error}")),
        }
    }

    fn delete_skill(&self) {
        let Some(uid) = self.some_skill() else { return };
        let result = self.ground.store.delete_skill(&uid, self.now());
        self.tell("delete skill", &format!("{uid}: {result:?}"));
        let mut monitor = self.monitor();
        match (result, monitor.model.skills.skills.get_mut(&uid)) {
            (Ok(_), Some((_, deleted))) => *deleted = true,
            (result, _) => monitor.broken(format!("I2: {uid} cannot be deleted: {result:?}")),
        }
    }

    fn change_group(&self) {
        let group = self.some_group();
        if self.skills.per_mille(150) {
            let result = self.ground.store.delete_group(group);
            return self.tell("group", &format!("delete {group}: {result:?}"));
        }
        let parent = self.skills.per_mille(600).then(|| self.some_group());
        // A circle is refused, as is what is not there.
        let result = self.ground.store.put_group(group, parent);
        self.tell("group", &format!("{group} in {parent:?}: {result:?}"));
    }

    fn change_member(&self) {
        let Some(user) = self.some_living() else {
            return;
        };
        let (group, member) = (self.some_group(), self.skills.per_mille(800));
        let result = self.ground.store.set_member(group, &user, member);
        self.tell("member", &format!("{user} of {group} {member}: {result:?}"));
    }

    fn change_binding(&self) {
        let (Some(skill), Some(user)) = (self.some_skill(), self.some_living()) else {
            return;
        };
        let bound = self.skills.per_mille(700);
        let (group, user) = match self.skills.below(5) {
            0 => (None, None),
            1 | 2 => (Some(self.some_group()), None),
            _ => (None, Some(&user)),
        };
        let result = self.ground.store.set_bound(&skill, group, user, bound);
        let text = format!("{skill} to {group:?} {user:?} {bound}: {result:?}");
        self.tell("binding", &text);
    }

    /// A user edits a skill, removes it, or makes something of its name.
    fn hand_on_skill(&self) {
        let Some(uid) = self.some_living() else {
            return;
        };
        let skill = name(self.skills.pick(&SKILLS).unwrap_or(&"pdf"));
        let (dir, now) = (&self.ground.dir, self.now());
        let choice = self.skills.below(8);
        let unique = format!("{:016x}", self.skills.next()).repeat(4);
        let Some(user) = self.name_of(&uid) else {
            return;
        };
        if dir.owner_of(&user) != Some(uid.clone()) {
            return;
        }
        let lay = dir.peek_skills(&user).remove(&skill);
        let desired = self.ground.store.peek_skills(&uid).remove(&skill);
        let deployed = self.ground.store.peek_deployments(&uid);
        let is_recorded = deployed.iter().any(|it| it.name == skill);
        let new: Option<TreeDigest> = match choice {
            0 | 1 => None,
            2 => desired,
            _ => Some(unique.parse().unwrap()),
        };
        match choice {
            3 => dir.hand_other(&user, &skill),
            _ => dir.hand_skill(&user, &skill, new.as_ref()),
        };
        let what = match choice {
            0 | 1 => "removed",
            2 => "done by hand",
            3 => "no tree",
            _ => "edited",
        };
        self.tell("hand on skill", &format!("{what} {uid} {skill}"));
        let mut monitor = self.monitor();
        let model = &mut monitor.model.skills;
        model.hand_at.insert(uid.clone(), now);
        let key = (uid, skill);
        if let Some(Some(old)) = &lay {
            // The user's own doing.
            model
                .made
                .entry(key.clone())
                .or_default()
                .retain(|it| it != old);
        }
        let was_own = model.own.remove(&key).is_some();
        if let (4.., Some(new)) = (choice, new) {
            model.made.entry(key.clone()).or_default().push(new.clone());
            if !is_recorded && (lay.is_none() || was_own) {
                model.own.insert(key, new);
                monitor.trace.count("own directory");
            }
        }
    }

    fn name_of(&self, uid: &Uid) -> Option<schema::ids::UserName> {
        let monitor = self.monitor();
        let account = monitor.model.accounts.get(uid);
        account.map(|account| account.name.clone())
    }

    /// What must be so at every moment: what nobody deployed is as it was, and who is said to have the skills has them.
    pub fn check_skills(&self) {
        let mut problems = Vec::new();
        let (own, ready, hand_at, living) = {
            let monitor = self.monitor();
            let skills = &monitor.model.skills;
            let living = monitor.model.living();
            (
                skills.own.clone(),
                skills.ready.clone(),
                skills.hand_at.clone(),
                living,
            )
        };
        for ((uid, skill), digest) in own {
            if !living.contains(&uid) {
                continue;
            }
            let Some(user) = self.name_of(&uid) else {
                continue;
            };
            let lying = self.ground.dir.peek_skills(&user).remove(&skill);
            if lying != Some(Some(digest)) {
                problems.push(format!("{uid}'s own {skill} was touched: {lying:?}"));
            }
        }
        for uid in living {
            let Some((generation, since)) = ready.get(&uid) else {
                continue;
            };
            let Some((newest, status)) = self.ground.store.peek(Kind::SkillSet, &uid) else {
                continue;
            };
            let (Some(user), hand) = (self.name_of(&uid), hand_at.get(&uid)) else {
                continue;
            };
            let lately = hand.is_some_and(|at| at.plus(LATELY) >= *since);
            if newest != *generation || status.observed_generation != newest || lately {
                continue;
            }
            let lying = self.ground.dir.peek_skills(&user);
            for (skill, digest) in self.ground.store.peek_skills(&uid) {
                if lying.get(&skill) != Some(&Some(digest.clone())) {
                    let text = format!("I3: {uid} is said to have {skill} {digest}: {lying:?}");
                    problems.push(text);
                }
            }
        }
        for problem in problems {
            self.monitor().broken(problem);
        }
    }

    /// At the end a user has exactly the skills that were given, but for those whose place the user has taken; and
    /// everything that the user made.
    pub fn check_skills_of(&self, uid: &Uid, account: &Account) -> Result<(), String> {
        let (store, dir) = (&self.ground.store, &self.ground.dir);
        let (generation, status) = store
            .peek(Kind::SkillSet, uid)
            .ok_or("I2: the skills' row is gone")?;
        let ready = find(&status.conditions, ConditionType::Ready).ok_or("I3: no Ready")?;
        if status.observed_generation != generation {
            return Err(format!("I4: skills at {generation}, but {status:?}"));
        }
        let desired = store.peek_skills(uid);
        let lying = dir.peek_skills(&account.name);
        let kept = dir.kept_skills(&account.name);
        let records: BTreeSet<SkillName> = store
            .peek_deployments(uid)
            .into_iter()
            .filter(|it| it.digest.is_some())
            .map(|it| it.name)
            .collect();
        let monitor = self.monitor();
        let model = &monitor.model.skills;
        let mut conflict = false;
        for (skill, digest) in &desired {
            match lying.get(skill) {
                Some(Some(found)) if found == digest && records.contains(skill) => {}
                // What was never deployed is the user's own.
                Some(_) if !records.contains(skill) => conflict = true,
                other => return Err(format!("I2: {skill} {digest}, but {other:?}")),
            }
        }
        let expected = match conflict {
            true => (ConditionStatus::False, Reason::NameConflict),
            false => (ConditionStatus::True, Reason::Converged),
        };
        if (ready.status, ready.reason) != expected {
            return Err(format!("I4: skills say {ready:?}, not {expected:?}"));
        }
        if let Some(left) = records.iter().find(|it| !desired.contains_key(*it)) {
            return Err(format!("I4: {left} is still recorded"));
        }
        for skill in SKILLS.map(name) {
            let made = model.made.get(&(uid.clone(), skill.clone()));
            let made = made.into_iter().flatten();
            let of_skill = kept.iter().filter(|(kept, _)| {
                let rest = kept.strip_prefix(&format!("{skill}-"));
                rest.is_some_and(|rest| rest.find('Z') == Some(15))
            });
            let of_skill: Vec<_> = of_skill.map(|(_, digest)| digest.clone()).collect();
            for made in made {
                let made = Some(made.clone());
                let there = lying.get(&skill) == Some(&made) || of_skill.contains(&made);
                if !there && of_skill.len() < KEPT {
                    return Err(format!("{made:?} of {skill} is lost: {lying:?} {kept:?}"));
                }
            }
            let is_ours = |digest: &TreeDigest| digest.as_str()[..2] == digest.as_str()[2..4];
            if !desired.contains_key(&skill)
                && let Some(Some(found)) = lying.get(&skill)
                && is_ours(found)
                && !model.hand_at.contains_key(uid)
            {
                return Err(format!("I4: {skill} {found} still lies there"));
            }
        }
        Ok(())
    }

    /// At the end the store has what is in effect, and nothing that nobody needs.
    pub fn check_store_of_skills(&self) -> Result<(), String> {
        let skills = self.monitor().model.skills.skills.clone();
        let (store, dir) = (&self.ground.store, &self.ground.dir);
        let mut kept: BTreeMap<SkillName, BTreeSet<TreeDigest>> = BTreeMap::new();
        for (uid, (skill, deleted)) in skills {
            let found = store.peek(Kind::Skill, &uid);
            match (deleted, found) {
                (true, None) => {}
                (true, Some(_)) => return Err(format!("I4: deleted, but {uid} is still there")),
                (false, None) => return Err(format!("I2: {uid} is gone, nobody deleted it")),
                (false, Some((generation, status))) => {
                    let ready = find(&status.conditions, ConditionType::Ready);
                    let ready = ready.is_some_and(|it| it.status == ConditionStatus::True);
                    if status.observed_generation != generation || !ready {
                        return Err(format!("I4: {uid} at {generation}, but {status:?}"));
                    }
                    let versions = store.peek_versions(&uid);
                    for digest in &versions {
                        if !dir.stored(&skill).contains(digest) {
                            return Err(format!("{skill} {digest} is kept, but not in the store"));
                        }
                    }
                    kept.entry(skill).or_default().extend(versions);
                }
            }
        }
        let living = self.monitor().model.living();
        for user in living {
            for record in store.peek_deployments(&user) {
                let digests = record.digest.into_iter().chain(record.next);
                kept.entry(record.name).or_default().extend(digests);
            }
        }
        let old = self.now().minus(GRACE);
        for skill in SKILLS.map(name) {
            for (digest, at) in dir.peek_stored(&skill) {
                let needed = kept.get(&skill).is_some_and(|kept| kept.contains(&digest));
                if at <= old && !needed {
                    return Err(format!("I4: {skill} {digest} of {at:?} is still stored"));
                }
            }
        }
        Ok(())
    }
}
