//! Offers of commits: their skills, and the entries that were left out of them.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::OfferedSkill;
use crate::home::beneath;
use crate::skill_store::left_out::LeftOut;
use crate::skill_store::{
    FoundSkill, FoundSkills, ImportError, MAX_SKILLS, ShownPath, SkillStoreError, SkipReason,
    Skipped, digest_package, listed,
};

/// Most skills that a warning names.
const NAMED: usize = 5;

/// Skills that a commit offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// Its skills, by their paths: those that cannot be installed, too.
    pub skills: Vec<OfferedSkill>,
    /// Entries that were left out of it, a sentence each.
    pub warnings: Vec<String>,
}

/// Lists the skills in the files of a commit; skipped entries become warnings, or skills that cannot be installed.
pub(super) fn offer(files: &OwnedFd, found: FoundSkills, skipped: &[Skipped]) -> io::Result<Offer> {
    let FoundSkills { skills, mut others } = found;
    let mut left_out: BTreeMap<String, LeftOut> = skills
        .iter()
        .map(|skill| (skill.path.clone(), LeftOut::default()))
        .collect();
    let mut whole = LeftOut::default();
    for Skipped { path, why } in skipped {
        whole.add_skipped(path, *why);
        for (directory, within) in directories(path) {
            if let Some(of_skill) = left_out.get_mut(directory) {
                of_skill.add_skipped(within, *why);
            }
        }
    }
    let judged = skills
        .iter()
        .map(|skill| Ok((skill.path.clone(), judge(files, skill, &left_out)?)));
    let mut offered: BTreeMap<String, OfferedSkill> = judged.collect::<io::Result<_>>()?;
    for absent in skipped.iter().filter_map(absent) {
        offered.entry(absent.path.clone()).or_insert(absent);
    }
    while offered.len() > MAX_SKILLS && offered.pop_last().is_some() {
        others += 1;
    }
    let skills: Vec<OfferedSkill> = offered.into_values().collect();
    let mut warnings = Vec::new();
    if others > 0 {
        warnings.push(format!(
            "{others} more skills are not listed, since a list has at most {MAX_SKILLS}; give a branch or tag with fewer"
        ));
    }
    warnings.extend(problems(&skills));
    warnings.extend(whole.warnings());
    Ok(Offer { skills, warnings })
}

/// The directories that a path is in, the top first, and the path within each. One that is no text holds no skill.
fn directories(path: &[u8]) -> impl Iterator<Item = (&str, &[u8])> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let within = slashes.filter_map(|(at, _)| {
        let directory = std::str::from_utf8(path.get(..at)?).ok()?;
        Some((directory, path.get(at + 1..)?))
    });
    std::iter::once(("", path)).chain(within)
}

/// A skill as it is offered.
fn judge(
    files: &OwnedFd,
    skill: &FoundSkill,
    all: &BTreeMap<String, LeftOut>,
) -> io::Result<OfferedSkill> {
    let path = Path::new(&skill.path);
    let has_others = match skill.path.as_str() {
        "" => all.len() > 1,
        path => {
            let below = format!("{path}/");
            let next = all.range(below.clone()..).next();
            next.is_some_and(|(next, _)| next.starts_with(&below))
        }
    };
    let mut problem = skill.problem.clone();
    let mut digest = None;
    if (problem.is_none() || skill.can_be_renamed) && !has_others {
        let judged = match skill.path.is_empty() {
            true => digest_package(files),
            false => digest_package(beneath::open_dir(files, path)?),
        };
        match judged {
            Ok(found) => digest = Some(found),
            Err(ImportError::Refused(refusal)) => problem = Some(refusal.to_string()),
            Err(ImportError::Store(SkillStoreError::Io { source, .. })) => return Err(source),
            Err(ImportError::Store(error)) => return Err(io::Error::other(error)),
        }
    }
    let warnings = all.get(&skill.path).map(LeftOut::warnings);
    Ok(OfferedSkill {
        path: skill.path.clone(),
        name: skill.name.clone(),
        description: skill.description.clone().unwrap_or_default(),
        problem,
        digest,
        warnings: warnings.unwrap_or_default(),
        absent: false,
    })
}

/// A skill whose `SKILL.md` was skipped.
fn absent(skipped: &Skipped) -> Option<OfferedSkill> {
    let slash = skipped.path.iter().rposition(|&byte| byte == b'/');
    let name = skipped.path.get(slash.map_or(0, |at| at + 1)..)?;
    if !name.eq_ignore_ascii_case(b"SKILL.md") {
        return None;
    }
    let directory = skipped.path.get(..slash.unwrap_or(0))?;
    let problem = match skipped.why {
        SkipReason::Submodule => return None,
        SkipReason::Link => {
            "its SKILL.md is a symbolic link, which is not followed; put the file itself in its place"
                .to_owned()
        }
        SkipReason::Path(reason) => format!(
            "the path {} {reason}; rename it in the repository",
            ShownPath::of(&skipped.path)
        ),
    };
    Some(OfferedSkill {
        path: match std::str::from_utf8(directory) {
            Ok(text) if !text.contains(char::is_control) => text.to_owned(),
            _ => ShownPath::of(directory).into_text(),
        },
        name: None,
        description: String::new(),
        problem: Some(problem),
        digest: None,
        warnings: Vec::new(),
        absent: true,
    })
}

/// The skills that cannot be installed as they are.
fn problems(skills: &[OfferedSkill]) -> Option<String> {
    let bad: Vec<ShownPath> = skills
        .iter()
        .filter(|skill| skill.problem.is_some())
        .map(|skill| ShownPath::of(&skill.path))
        .collect();
    let count = match bad.len() {
        0 => return None,
        1 => "1 skill cannot be installed as it is".to_owned(),
        count => format!("{count} skills cannot be installed as they are"),
    };
    let first = bad.get(..NAMED).unwrap_or(&bad);
    Some(format!(
        "{count}: {}; the list of the repository's skills says why (`agentyard skill repo list NAME`)",
        listed(first, bad.len())
    ))
}
