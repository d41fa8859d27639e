//! Decides what to do next for one user's directory. Pure.

use std::sync::Arc;
use std::time::Duration;

use schema::condition::{Condition, Reason};
use schema::home::HomeState;
use schema::ids::{Timestamp, UserName};
use schema::user::UserRow;

use crate::runtime::{Plan, Requeue};

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
    let say = |condition, requeue| Plan {
        actions: Vec::new(),
        conditions: vec![condition],
        requeue,
    };
    if let Some(deleted_at) = row.deleted_at {
        if !snapshot.container_gone {
            return say(
                Condition::not_ready(Reason::Terminating, "waiting until the container is gone"),
                Requeue::After(Duration::from_millis(200)),
            );
        }
        // Archiving is part of every removal: it says "nothing there" where nothing is, and goes on
        // where a crash has left it.
        return Plan {
            actions: vec![
                Action::ArchiveHome {
                    name: row.name.clone(),
                    deleted_at,
                },
                Action::Purge,
            ],
            conditions: vec![Condition::not_ready(
                Reason::Terminating,
                "archiving the directory",
            )],
            requeue: Requeue::AtResync,
        };
    }
    match &snapshot.home {
        HomeState::Ready => say(
            Condition::ready(Reason::Converged, "the directory is there"),
            Requeue::AtResync,
        ),
        HomeState::Conflict(why) => say(
            Condition::not_ready(Reason::HomeConflict, why),
            Requeue::AtResync,
        ),
        HomeState::Missing => {
            let mut actions = Vec::new();
            if !row.has_finalizer {
                actions.push(Action::AddFinalizer);
            }
            actions.push(Action::EnsureHome {
                name: row.name.clone(),
                owner: snapshot.owner,
            });
            Plan {
                actions,
                conditions: vec![Condition::not_ready(
                    Reason::Progressing,
                    "making the directory",
                )],
                requeue: Requeue::AtResync,
            }
        }
    }
}
