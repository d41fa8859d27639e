//! A skill in a workspace, brought to what is wanted as the reconciler of skill sets does it
//! (`reconcilers/src/skill_set/plan.rs`).

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use schema::home::{AskedSkill, FoundSkill, HomeError, Homes, PreviousSkill, SeenSkills};
use schema::ids::{SkillName, Uid, UserName};
use schema::skill_store::{TreeDigest, TreeLimits, TreeStamp, digest_tree};

pub const LIMITS: TreeLimits = TreeLimits {
    files: 50,
    bytes: 1 << 16,
};

/// What the database remembers, in a file.
#[derive(Debug, Clone, Default, PartialEq)]
struct Record {
    placed: Option<String>,
    next: Option<String>,
}

pub struct Deployer {
    data: PathBuf,
    pub homes: Homes,
    alice: UserName,
    uid: Uid,
    skill: SkillName,
    /// Saves reading what was made a moment ago.
    known: Vec<(TreeStamp, TreeDigest)>,
}

impl Deployer {
    pub fn open(data: &Path) -> Self {
        let deployer = Self {
            data: data.to_owned(),
            homes: Homes::open(data, "instance").unwrap(),
            alice: "alice".parse().unwrap(),
            uid: Uid::from("a".repeat(32)),
            skill: "pdf".parse().unwrap(),
            known: Vec::new(),
        };
        for (version, texts) in [("one", ["1", "the first"]), ("two", ["22", "the second"])] {
            let dir = data.join("store").join(version);
            if dir.exists() {
                continue;
            }
            fs::create_dir_all(dir.join("sub/dir")).unwrap();
            fs::write(dir.join("SKILL.md"), texts[0]).unwrap();
            fs::write(dir.join("sub/dir/file"), texts[1]).unwrap();
            fs::write(dir.join("sub/same"), "same").unwrap();
        }
        deployer
    }

    pub fn ensure_home(&self) {
        self.homes.ensure(&self.alice, &self.uid, None).unwrap();
    }

    /// The same after an agent has done what it can: a link in the place of a directory is removed first.
    #[allow(dead_code)] // Not every file of tests needs every part.
    pub fn ensure_home_anew(&self) {
        while self.homes.ensure(&self.alice, &self.uid, None).is_err() {
            for part in [".agent/workspace", ".agent"] {
                let _ = fs::remove_file(self.data.join("users/alice").join(part));
            }
        }
    }

    /// The user writes into the skill, if it can be reached without a link.
    #[allow(dead_code)]
    pub fn edit(&self, text: &str) {
        if let Ok(Some(home)) = self.homes.open_existing(&self.alice, &self.uid) {
            let file = ".agent/workspace/skills/pdf/SKILL.md";
            let _ = home.write_atomic(file, text.as_bytes(), 0o644);
        }
    }

    /// The version of the store.
    fn tree(&self, version: &str) -> OwnedFd {
        OwnedFd::from(File::open(self.data.join("store").join(version)).unwrap())
    }

    pub fn digest(&self, version: &str) -> TreeDigest {
        let tree = digest_tree(self.tree(version), LIMITS).unwrap().unwrap();
        tree.digest
    }

    pub fn workspace(&self) -> PathBuf {
        self.data.join("users/alice/.agent/workspace")
    }

    /// Where the skill is.
    pub fn place(&self) -> PathBuf {
        self.workspace().join("skills/pdf")
    }

    fn record(&self) -> Record {
        let text = fs::read_to_string(self.data.join("record")).unwrap_or_default();
        let mut lines = text
            .lines()
            .map(|line| Some(line.to_owned()).filter(|l| !l.is_empty()));
        Record {
            placed: lines.next().flatten(),
            next: lines.next().flatten(),
        }
    }

    fn save(&self, record: &Record) {
        let line = |text: &Option<String>| text.clone().unwrap_or_default();
        let text = format!("{}\n{}\n", line(&record.placed), line(&record.next));
        fs::write(self.data.join("record.new"), text).unwrap();
        fs::rename(self.data.join("record.new"), self.data.join("record")).unwrap();
    }

    pub fn read(&self) -> Result<SeenSkills, HomeError> {
        let asked = AskedSkill {
            name: self.skill.clone(),
            known: self.known.clone(),
            limits: LIMITS,
        };
        let seen = self.homes.read_skills(&self.alice, &self.uid, &[asked])?;
        Ok(seen.unwrap())
    }

    #[allow(dead_code)]
    pub fn look(&self) -> Result<(), HomeError> {
        let asked = [(self.skill.clone(), LIMITS)];
        self.homes
            .look_at_skills(&self.alice, &self.uid, &asked)
            .map(drop)
    }

    /// One pass: observation, plan, steps. Whether nothing was left to do.
    pub fn pass(&mut self, wanted: Option<&str>, kept_as: &str) -> Result<bool, HomeError> {
        let (alice, uid, skill) = (self.alice.clone(), self.uid.clone(), self.skill.clone());
        let seen = self.read()?;
        let found = &seen.skills[0];
        let record = self.record();
        let wanted_digest = wanted.map(|version| self.digest(version).to_string());
        let mut idle = true;
        if seen.leftovers {
            idle = false;
            self.homes.clear_skill_leftovers(&alice, &uid)?;
        }
        let kept_as = kept_as.to_owned();
        let previous = match found {
            FoundSkill::Nothing => PreviousSkill::Nothing,
            FoundSkill::Tree { digest, stamp } => {
                let digest = Some(digest.to_string());
                let ours = digest == record.placed
                    || digest == record.next
                    || (record.placed.is_some() && digest == wanted_digest);
                if ours && digest == wanted_digest {
                    let placed = Record {
                        placed: digest,
                        next: None,
                    };
                    if record != placed {
                        self.save(&placed);
                        return Ok(false);
                    }
                    return Ok(idle);
                }
                match (ours, &record.placed) {
                    (true, _) => PreviousSkill::Unchanged {
                        stamp: stamp.clone(),
                        kept_as,
                    },
                    (false, Some(_)) => PreviousSkill::Keep(kept_as),
                    // Somebody else's.
                    (false, None) => return Ok(idle),
                }
            }
            FoundSkill::Other if record.placed.is_some() => PreviousSkill::Keep(kept_as),
            FoundSkill::Other => return Ok(idle),
        };
        match wanted {
            None if previous == PreviousSkill::Nothing => {
                if record == Record::default() {
                    return Ok(idle);
                }
                self.save(&Record::default());
            }
            None => self.homes.remove_skill(&alice, &uid, &skill, &previous)?,
            Some(version) => {
                let tree = self.tree(version);
                let stamp = self.homes.stage_skill(&alice, &uid, &skill, tree)?;
                self.known = vec![(stamp, self.digest(version))];
                let next = wanted_digest;
                self.save(&Record { next, ..record });
                self.homes.swap_skill(&alice, &uid, &skill, &previous)?;
            }
        }
        Ok(false)
    }

    /// Passes until nothing is left to do.
    pub fn converge(&mut self, wanted: Option<&str>, kept_as: &str) {
        for _ in 0..6 {
            if self.pass(wanted, kept_as).unwrap() {
                return;
            }
        }
        panic!("it does not come to an end");
    }

    /// A pass in which the user writes into the skill after it was looked at.
    #[allow(dead_code)] // Not every file of tests needs every part.
    pub fn late_edit(&mut self, wanted: &str, kept_as: &str, text: &str) {
        let (alice, uid, skill) = (self.alice.clone(), self.uid.clone(), self.skill.clone());
        let seen = self.read().unwrap();
        if seen.leftovers {
            self.homes.clear_skill_leftovers(&alice, &uid).unwrap();
        }
        let (record, next) = (self.record(), Some(self.digest(wanted).to_string()));
        let FoundSkill::Tree { stamp, .. } = seen.skills[0].clone() else {
            return;
        };
        let tree = self.tree(wanted);
        self.homes.stage_skill(&alice, &uid, &skill, tree).unwrap();
        self.save(&Record { next, ..record });
        if fs::read_to_string(self.place().join("SKILL.md")).unwrap() != "1" {
            // It was killed after the swap: the edit was made then.
            return;
        }
        fs::write(self.place().join("SKILL.md"), text).unwrap();
        let kept_as = kept_as.to_owned();
        let previous = PreviousSkill::Unchanged { stamp, kept_as };
        self.homes
            .swap_skill(&alice, &uid, &skill, &previous)
            .unwrap();
    }
}
