//! Decides what to do next for one user's directory. Pure.

use std::sync::Arc;

use schema::adapter::{Adapter, Applied, Found};
use schema::condition::{Condition, Reason};
use schema::home::{ArchiveBatch, FoundFile, HomeState, NewFile};
use schema::ids::{Kind, Timestamp, UserName};
use schema::user::UserRow;

use crate::runtime::Plan;

/// Desired and observed state of one user. The agent's files hold secrets, so it cannot be printed.
pub struct Snapshot {
    /// What is desired.
    pub row: Arc<UserRow>,
    /// The user's container and its rows are gone.
    pub container_gone: bool,
    /// To whom the directory belongs, when that is not the service.
    pub owner: Option<(u32, u32)>,
    /// The directory.
    pub home: HomeState,
    /// What the service has set in the agent's files; read only when the directory is about to be archived.
    pub settings: Option<Settings>,
}

/// What the service has set in an agent's files.
pub struct Settings {
    /// How the files are read.
    pub adapter: Arc<Adapter>,
    /// Where.
    pub applied: Applied,
    /// The configuration file and the security file, as they are.
    pub found: [Option<FoundFile>; 2],
}

impl Settings {
    /// The files without them. Files that the agent has made unreadable are archived as they are.
    fn withdrawn(&self) -> Vec<NewFile> {
        let [config, security] = &self.found;
        let found = Found {
            config: config.as_ref().map(|file| file.bytes.as_slice()),
            security: security.as_ref().map(|file| file.bytes.as_slice()),
        };
        let Ok(changed) = self.adapter.withdraw(&self.applied, found) else {
            return Vec::new();
        };
        let agent = &self.adapter.index.agent;
        let paths = [&agent.config_file, &agent.security_file];
        let files = paths.into_iter().zip(&self.found).zip(changed);
        let new = files.filter_map(|((path, found), bytes)| {
            let found = found.as_ref()?;
            Some(NewFile {
                path: path.clone(),
                bytes: bytes?,
                mode: found.mode,
                expected: Some(found.stamp),
            })
        });
        new.collect()
    }
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Notes that this reconciler must clean up before the user may be purged.
    AddFinalizer,
    /// Makes the directory.
    EnsureHome {
        /// Name of the user.
        name: UserName,
        /// To whom it belongs, when that is not the service.
        owner: Option<(u32, u32)>,
    },
    /// Gives the directory the user's new name.
    RenameHome {
        /// The name that it has.
        from: UserName,
        /// The user's name.
        to: UserName,
    },
    /// Records that the directory is renamed.
    EndRename {
        /// The name that it had.
        previous: UserName,
    },
    /// Removes from the agent's files what the service has set there: an archive keeps what is the user's, and no secret of
    /// the installation.
    WithdrawSettings {
        /// Name of the user.
        name: UserName,
        /// The files; what is in them is never printed.
        files: Vec<NewFile>,
    },
    /// Moves the directory to the archive.
    ArchiveHome {
        /// Name of the user.
        name: UserName,
        /// Names the archive.
        deleted_at: Timestamp,
        /// Those who leave together.
        batch: Option<ArchiveBatch>,
    },
    /// Removes the last trace of the user.
    Purge,
}

/// The plan for one user.
pub fn plan(snapshot: &Snapshot) -> Plan<Action> {
    let row = &snapshot.row;
    if let Some(deleted_at) = row.deleted_at {
        let terminating = |message| Condition::not_ready(Reason::Terminating, message);
        if !snapshot.container_gone {
            return Plan::say(terminating("waiting until the container is gone")).waiting_for(
                Kind::Container,
                &row.uid,
                row.name.as_str(),
            );
        }
        if let Some(steps) = rename(row) {
            return Plan::act(steps, terminating("renaming the directory"));
        }
        // Archiving is part of every removal: it says "nothing there" where nothing is, and goes on
        // where a crash has left it.
        let archive = Action::ArchiveHome {
            name: row.name.clone(),
            deleted_at,
            batch: row.archive_batch.clone(),
        };
        let files = snapshot.settings.as_ref().map(Settings::withdrawn);
        let files = files.filter(|files| !files.is_empty());
        let withdraw = files.map(|files| Action::WithdrawSettings {
            name: row.name.clone(),
            files,
        });
        return Plan::act(
            withdraw
                .into_iter()
                .chain([archive, Action::Purge])
                .collect(),
            terminating("archiving the directory"),
        );
    }
    if let Some(previous) = &row.previous_name
        && !row.previous_released
    {
        let said = format!("waiting until the container of {previous} is gone");
        return Plan::say(Condition::not_ready(Reason::Progressing, said)).waiting_for(
            Kind::Container,
            &row.uid,
            row.name.as_str(),
        );
    }
    if let Some(steps) = rename(row) {
        let condition = Condition::not_ready(Reason::Progressing, "renaming the directory");
        return Plan::act(steps, condition);
    }
    let mut plan = match &snapshot.home {
        HomeState::Ready => Plan::say(Condition::ready(Reason::Converged, "the directory exists")),
        HomeState::Conflict(why) => Plan::say(Condition::not_ready(Reason::HomeConflict, why)),
        HomeState::Missing => {
            let mut actions = Vec::new();
            if !row.has_finalizer {
                actions.push(Action::AddFinalizer);
            }
            actions.push(Action::EnsureHome {
                name: row.name.clone(),
                owner: snapshot.owner,
            });
            let condition = Condition::not_ready(Reason::Progressing, "creating the directory");
            Plan::act(actions, condition)
        }
    };
    plan.conditions.extend(row.quota.condition());
    plan
}

/// Renames the directory of a user who has another name than it.
fn rename(row: &UserRow) -> Option<Vec<Action>> {
    let previous = row.previous_name.clone()?;
    let rename = Action::RenameHome {
        from: previous.clone(),
        to: row.name.clone(),
    };
    Some(vec![rename, Action::EndRename { previous }])
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
