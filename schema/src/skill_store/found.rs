//! The skills of a repository.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::error::ShownPath;
use super::front_matter;
use super::names::{self, MAX_DEPTH};
use super::tree::{Found, Trouble, scan};
use crate::ids::{SKILL_NAME_RULE, SkillName};

/// Most skills of a repository that are listed: public collections have thousands.
pub const MAX_SKILLS: usize = 20_000;
/// Longest description of a skill that is listed, in characters.
const MAX_DESCRIPTION: usize = 500;
/// Reason for not installing a directory with two manifests.
const TWICE: &str =
    "it has SKILL.md twice, in different letter case; remove one of them from the repository";

/// A directory of a repository that can be installed, or says why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSkill {
    /// Where it is, from the top of the repository, whose own path is empty.
    pub path: String,
    /// What it calls itself, else what its directory is called. `None` at the top when it calls itself nothing, and when
    /// that is no name of a skill.
    pub name: Option<SkillName>,
    /// What it is for, at most 500 characters.
    pub description: Option<String>,
    /// Why it cannot be installed as it is, for people.
    pub problem: Option<String>,
    /// That is its name only: it can be installed under another.
    pub can_be_renamed: bool,
}

/// The skills of a repository, by their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundSkills {
    /// The first of them.
    pub skills: Vec<FoundSkill>,
    /// Number of further skills, which are not listed.
    pub others: usize,
}

/// Why the search ends.
struct End(io::Error);

impl From<Trouble> for End {
    fn from(trouble: Trouble) -> Self {
        Self(trouble.errno.into())
    }
}

/// Every directory with a `SKILL.md`, the top one too; when there is none, the directories directly in the top one. Links
/// are not followed, and no more than 20,000 skills are listed: the first by their paths. The process that
/// has written the directory bounds its size.
///
/// # Errors
/// The storage could not be read.
pub fn list_skills(dir: impl AsFd) -> io::Result<FoundSkills> {
    list_first(dir, MAX_SKILLS)
}

pub(super) fn list_first(dir: impl AsFd, most: usize) -> io::Result<FoundSkills> {
    let mut skills: BTreeMap<String, FoundSkill> = BTreeMap::new();
    let mut tops = BTreeSet::new();
    let mut others = 0;
    scan(dir, |found| {
        let name = found.path.rsplit(|&byte| byte == b'/').next();
        let name = name.unwrap_or_default();
        match found.kind() {
            FileType::Directory => {
                let left_out = std::str::from_utf8(name).is_ok_and(names::is_left_out);
                if found.depth == 1 && !name.starts_with(b".") && !left_out {
                    tops.insert(found.path.to_vec());
                }
                Ok(!left_out && found.depth <= MAX_DEPTH)
            }
            FileType::RegularFile if name.eq_ignore_ascii_case(b"SKILL.md") => {
                let skill = skill(found)?;
                match skills.entry(skill.path.clone()) {
                    Entry::Vacant(place) => {
                        place.insert(skill);
                    }
                    // On file systems that mind letter case a directory may have two.
                    Entry::Occupied(mut place) => {
                        let skill = place.get_mut();
                        skill.problem = Some(TWICE.to_owned());
                        skill.can_be_renamed = false;
                    }
                }
                if skills.len() > most && skills.pop_last().is_some() {
                    others += 1;
                }
                Ok(false)
            }
            _ => Ok::<_, End>(false),
        }
    })
    .map_err(|End(error)| error)?;
    if skills.is_empty() {
        let offered = tops.iter().take(most);
        return Ok(FoundSkills {
            skills: offered.map(|path| named(path, None)).collect(),
            others: tops.len().saturating_sub(most),
        });
    }
    Ok(FoundSkills {
        skills: skills.into_values().collect(),
        others,
    })
}

/// The skill that a `SKILL.md` belongs to.
fn skill(found: &Found<'_>) -> Result<FoundSkill, End> {
    let slash = found.path.iter().rposition(|&byte| byte == b'/');
    let path = found.path.get(..slash.unwrap_or(0)).unwrap_or_default();
    let file = match found.open_file() {
        Ok(file) => file,
        Err(Trouble {
            errno: Errno::ACCESS,
            ..
        }) => None,
        Err(trouble) => return Err(trouble.into()),
    };
    let Some((file, _)) = file else {
        return Ok(FoundSkill {
            problem: Some("its SKILL.md cannot be read".to_owned()),
            can_be_renamed: false,
            ..named(path, None)
        });
    };
    Ok(match front_matter::read(file).map_err(End)? {
        Ok(reading) => FoundSkill {
            // Cut here, not by the caller: there may be thousands.
            description: reading
                .front_matter
                .description
                .map(|text| text.chars().take(MAX_DESCRIPTION).collect()),
            ..named(path, reading.front_matter.name.as_deref())
        },
        Err(problem) => FoundSkill {
            problem: Some(format!("SKILL.md: {problem}")),
            can_be_renamed: false,
            ..named(path, None)
        },
    })
}

/// A skill by what it calls itself, else by its directory.
fn named(path: &[u8], own: Option<&str>) -> FoundSkill {
    let text = String::from_utf8_lossy(path).into_owned();
    let directory = text.rsplit('/').next().filter(|name| !name.is_empty());
    let wanted = own.or(directory);
    let name = wanted.and_then(|name| name.parse().ok());
    let unsafe_path = !path.is_empty() && names::checked(path).is_err();
    let problem = match wanted {
        _ if unsafe_path => Some(format!("{} is not a safe path", ShownPath::of(path))),
        Some(wanted) if name.is_none() => Some(format!(
            "{} cannot be the name of a skill: {SKILL_NAME_RULE}; install it under another name (`--name`)",
            ShownPath::of(wanted)
        )),
        _ => None,
    };
    FoundSkill {
        can_be_renamed: !unsafe_path && problem.is_some(),
        path: text,
        name,
        description: None,
        problem,
    }
}
