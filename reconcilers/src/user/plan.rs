//! Decides what to do next for one user's directory. Pure.

use std::sync::Arc;

use schema::condition::{Condition, Reason};
use schema::home::HomeState;
use schema::ids::{Kind, Timestamp, UserName};
use schema::user::UserRow;

use crate::runtime::Plan;

/// Desired and observed state of one user.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// What is desired.
    pub row: Arc<UserRow>,
    /// The user's container and its rows are gone.
    pub container_gone: bool,
    /// To whom the directory belongs, when that is not the service.
    pub owner: Option<(u32, u32)>,
    /// The directory.
    pub home: HomeState,
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
    /// Moves the directory to the archive.
    ArchiveHome {
        /// Name of the user.
        name: UserName,
        /// Names the archive.
        deleted_at: Timestamp,
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
        // Archiving is part of every removal: it says "nothing there" where nothing is, and goes on
        // where a crash has left it.
        let archive = Action::ArchiveHome {
            name: row.name.clone(),
            deleted_at,
        };
        return Plan::act(
            vec![archive, Action::Purge],
            terminating("archiving the directory"),
        );
    }
    match &snapshot.home {
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
    }
}
