//! Decides what to do next for one repository. Pure.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schema::condition::{Condition, Reason};
use schema::ids::{Kind, Timestamp};
use schema::skill_repository::{LISTING, Offer, RepositoryFacts, RepositoryRow};

use crate::drivers::git::Progress;
use crate::runtime::Plan;
use crate::shared::clones::{CloneReport, Fetched, awaited};
use crate::shared::pulls::retry_delay;

/// How often the progress of a fetch is shown.
const PROGRESS: Duration = Duration::from_secs(1);
/// What is said of a request that was taken back.
const CANCELLED: &str = "the pull was cancelled";

/// What a pass has found.
#[derive(Debug, Clone, PartialEq)]
pub enum Snapshot {
    /// Files of a repository that has no row.
    Orphan,
    /// A repository.
    Repository(Box<Repository>),
}

/// Desired and observed state of one repository.
#[derive(Debug, Clone, PartialEq)]
pub struct Repository {
    /// What is desired.
    pub row: Arc<RepositoryRow>,
    /// What became of fetching it.
    pub report: CloneReport,
    /// The files of the commit that was fetched last are there.
    pub here: bool,
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Starts fetching.
    Start {
        /// What is desired.
        row: Arc<RepositoryRow>,
    },
    /// Ends what is under way, and forgets what became of it.
    Cancel,
    /// Remembers what was fetched, or why nothing was.
    SaveFacts(Box<RepositoryFacts>),
    /// Removes all files of the repository.
    RemoveFiles,
    /// Removes the last trace of it.
    Purge,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start { row } => {
                write!(f, "fetch {} {} of {}", row.ref_type, row.reference, row.url)
            }
            Self::Cancel => f.write_str("cancel the pull"),
            Self::SaveFacts(_) => f.write_str("remember what was fetched"),
            Self::RemoveFiles => f.write_str("remove the files of the repository"),
            Self::Purge => f.write_str("remove the last trace"),
        }
    }
}

fn act(actions: Vec<Action>, reason: Reason, message: impl Into<String>) -> Plan<Action> {
    Plan::act(actions, Condition::not_ready(reason, message))
}

/// The plan for one repository.
pub fn plan(snapshot: &Snapshot, now: Timestamp) -> Plan<Action> {
    let Repository { row, report, here } = match snapshot {
        Snapshot::Orphan => {
            let message = "removing the files of a repository that is gone";
            return act(vec![Action::RemoveFiles], Reason::Terminating, message);
        }
        Snapshot::Repository(repository) => &**repository,
    };
    let facts = &row.facts;
    if row.deleted_at.is_some() {
        let actions = vec![Action::RemoveFiles, Action::Purge];
        return act(
            actions,
            Reason::Terminating,
            "the repository is being removed",
        );
    }
    let answered = facts.pull_token.as_ref() == Some(&row.pull_token);
    let failed = facts.failed_token.as_ref() == Some(&row.pull_token);
    if answered && *here {
        return Plan::say(Condition::ready(Reason::Converged, fetched(row)));
    }
    if failed {
        let reason = facts.failed_reason.unwrap_or(Reason::CloneFailed);
        let message = facts.failure.clone().unwrap_or_default();
        return Plan::say(Condition::not_ready(reason, message));
    }
    // Its files are in their place already: too late to take that back.
    if let CloneReport::Done { token, fetched } = report
        && *token == row.pull_token
        && (!answered || facts.commit_id.as_ref() != Some(&fetched.commit))
    {
        let facts = remembered(row, fetched);
        return act(
            vec![Action::SaveFacts(Box::new(facts))],
            Reason::Progressing,
            "the repository was fetched",
        );
    }
    if row.cancelled && !answered {
        let facts = refused(row, Reason::CloneFailed, CANCELLED.to_owned());
        let actions = vec![Action::Cancel, Action::SaveFacts(Box::new(facts))];
        return act(actions, Reason::Progressing, CANCELLED);
    }
    let start = || {
        let row = Arc::clone(row);
        let message = format!("fetching {} {} of {}", row.ref_type, row.reference, row.url);
        act(vec![Action::Start { row }], Reason::Cloning, message)
    };
    match report {
        CloneReport::Running { token, progress } if *token == row.pull_token => {
            let mut plan = Plan::say(Condition::not_ready(Reason::Cloning, how_far(*progress)));
            plan = plan.after(PROGRESS);
            let awaited = awaited(&row.uid);
            plan.waits_for.push((Kind::SkillRepository, awaited));
            plan
        }
        CloneReport::Failed {
            token,
            reason,
            message,
            terminal,
            failures,
            at,
        } if *token == row.pull_token => {
            if *terminal {
                let facts = refused(row, *reason, message.clone());
                let remember = vec![Action::SaveFacts(Box::new(facts))];
                return act(remember, *reason, message.clone());
            }
            match now.left_of(*at, retry_delay(*failures)) {
                Some(left) => Plan::say(Condition::not_ready(*reason, message.clone())).after(left),
                None => start(),
            }
        }
        _ => start(),
    }
}

fn remembered(row: &RepositoryRow, fetched: &Fetched) -> RepositoryFacts {
    let facts = &row.facts;
    let (skills, warnings) = match fetched.skills.clone() {
        Some(Offer { skills, warnings }) => (Some(skills), warnings),
        None => (None, facts.warnings.clone()),
    };
    RepositoryFacts {
        pull_token: Some(row.pull_token.clone()),
        commit_id: Some(fetched.commit.clone()),
        pulled_at: Some(fetched.at),
        skills,
        skill_count: facts.skill_count,
        warnings,
        listing: LISTING,
        known_hosts: fetched.known_hosts.clone(),
        host_key_token: row.host_key_token.clone(),
        failed_token: None,
        failed_reason: None,
        failure: None,
    }
}

/// What was fetched before stays.
fn refused(row: &RepositoryRow, reason: Reason, failure: String) -> RepositoryFacts {
    RepositoryFacts {
        failed_token: Some(row.pull_token.clone()),
        failed_reason: Some(reason),
        failure: Some(failure),
        ..row.facts.clone()
    }
}

fn fetched(row: &RepositoryRow) -> String {
    let commit = row.facts.commit_id.as_deref().unwrap_or_default();
    let commit = commit.get(..12).unwrap_or(commit);
    let skills = match row.facts.skill_count {
        1 => "1 skill".to_owned(),
        n => format!("{n} skills"),
    };
    let mut said = vec![format!(
        "{} {} at {commit}: {skills}",
        row.ref_type, row.reference
    )];
    said.extend(row.facts.warnings.iter().cloned());
    said.join("; ")
}

fn how_far(progress: Option<Progress>) -> String {
    let Some(Progress {
        phase,
        percent,
        bytes,
    }) = progress
    else {
        return "fetching the repository".to_owned();
    };
    let percent = percent.map(|percent| format!(" {percent} %"));
    let bytes = bytes.map(|bytes| format!(" ({} KiB)", bytes >> 10));
    let (percent, bytes) = (percent.unwrap_or_default(), bytes.unwrap_or_default());
    format!("fetching the repository: {phase}{percent}{bytes}")
}
