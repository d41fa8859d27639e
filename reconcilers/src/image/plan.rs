//! Decides what to do next for one image. Pure.

use std::fmt;
use std::time::Duration;

use engine::Image;
use schema::condition::{Condition, Reason};
use schema::config::query::ENGINE_NAME;
use schema::ids::{Kind, Timestamp};
use schema::image::{DesiredImage, ImageFacts, ImageRow, PullSum};

use super::observe::{Snapshot, World};
use crate::runtime::Plan;
use crate::shared::pulls::{self, PullReport};
use crate::shared::view::describe_absence;

/// How often the progress of a pull is shown.
const PROGRESS: Duration = Duration::from_secs(1);
/// How often it is checked whether users still have an image that is to be removed.
const IN_USE: Duration = Duration::from_secs(5);
/// Time after which a registry that does not answer is asked again.
const REGISTRY: Duration = Duration::from_secs(30);
/// Longest text of a failure that is kept, in characters.
const LONGEST_FAILURE: usize = 1000;
/// Users that are named in a condition.
const NAMED: usize = 5;

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Starts (or joins) the pull.
    StartPull {
        /// The reference.
        reference: String,
        /// The request that it answers.
        token: String,
    },
    /// Calls the pull off.
    CancelPull {
        /// The reference.
        reference: String,
    },
    /// Remembers what was pulled.
    SaveFacts(Box<ImageFacts>),
    /// Takes a reference, or an image without any, off the engine.
    RemoveImage {
        /// The reference or id.
        reference: String,
    },
    /// Removes the last trace of the request, if it is still what is desired.
    Purge {
        /// What was done.
        desired: DesiredImage,
    },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StartPull { reference, .. } => write!(f, "pull {reference}"),
            Self::CancelPull { reference } => write!(f, "cancel the pull of {reference}"),
            Self::SaveFacts(_) => f.write_str("remember what was pulled"),
            Self::RemoveImage { reference } => write!(f, "remove {reference} from the engine"),
            Self::Purge { .. } => f.write_str("remove the last trace"),
        }
    }
}

fn act(actions: Vec<Action>, reason: Reason, message: impl Into<String>) -> Plan<Action> {
    Plan::act(actions, Condition::not_ready(reason, message))
}

/// The plan for one image.
pub fn plan(snapshot: &Snapshot, now: Timestamp) -> Plan<Action> {
    let row = &snapshot.row;
    let desired = match row.deleted_at {
        // An image is wanted off the engine by deleting its object; the engine is not needed to
        // forget a pull.
        Some(_) if row.desired == DesiredImage::Cancelled => return forget(snapshot),
        Some(_) => DesiredImage::Absent,
        None => DesiredImage::Present,
    };
    match &snapshot.world {
        World::Unavailable(reason, why) => {
            Plan::say(describe_absence(*reason, why)).blocked_by(Kind::Engine, ENGINE_NAME)
        }
        World::Unknown(why) => Plan::say(Condition::unknown(Reason::Retrying, why)).after(REGISTRY),
        World::NotAsked => forget(snapshot),
        World::Seen { image, users } => match desired {
            DesiredImage::Absent => absent(row, &snapshot.pull, image.as_ref(), users),
            DesiredImage::Present | DesiredImage::Cancelled => {
                present(row, &snapshot.pull, image.as_ref(), now)
            }
        },
    }
}

fn present(
    row: &ImageRow,
    pull: &PullReport,
    image: Option<&Image>,
    now: Timestamp,
) -> Plan<Action> {
    let answered = row.is_answered();
    let settled = answered && image.is_some();
    let start = || {
        act(
            vec![Action::StartPull {
                reference: row.reference.clone(),
                token: row.pull_token.clone(),
            }],
            Reason::ImagePulling,
            format!("pulling {}", row.reference),
        )
    };
    match pull {
        PullReport::Running { token, sum } if *token == row.pull_token => {
            // Its end wakes; the clock is for how far it is.
            let mut plan = Plan::say(pulling(*sum)).after(PROGRESS);
            let awaited = pulls::awaited(&row.reference);
            plan.waits_for.push((Kind::Image, awaited));
            plan
        }
        // The request was taken back. A pull without a token is somebody else's.
        PullReport::Running { token, .. } if settled && !token.is_empty() => act(
            vec![Action::CancelPull {
                reference: row.reference.clone(),
            }],
            Reason::Progressing,
            "cancelling the pull",
        ),
        PullReport::Done {
            token,
            at,
            image_id,
            digest,
        } if *token == row.pull_token && row.facts.pulled_at != Some(*at) => act(
            vec![Action::SaveFacts(Box::new(ImageFacts {
                image_id: Some(image_id.clone()),
                digest: digest.clone(),
                pull_token: Some(token.clone()),
                pulled_at: Some(*at),
                failed_token: None,
                failure: None,
            }))],
            Reason::Progressing,
            "remembering what was pulled",
        ),
        _ if settled => Plan::say(Condition::ready(
            Reason::Converged,
            "the image is on the engine",
        )),
        _ if row.has_failed() => {
            let why = row.facts.failure.as_deref().unwrap_or_default();
            Plan::say(Condition::not_ready(Reason::PullFailed, why))
        }
        // A request ends with its first failure, unless it was the engine that went away. What was pulled before and is
        // gone is tried for as long as it is desired.
        PullReport::Failed {
            token,
            message,
            engine_lost: false,
            ..
        } if *token == row.pull_token && !answered => act(
            vec![Action::SaveFacts(Box::new(ImageFacts {
                failed_token: Some(token.clone()),
                failure: Some(message.chars().take(LONGEST_FAILURE).collect()),
                ..row.facts.clone()
            }))],
            Reason::ImagePulling,
            "the pull has failed",
        ),
        PullReport::Failed {
            token,
            at,
            message,
            failures,
            refused,
            engine_lost,
            ..
        } if *token == row.pull_token => {
            let pause = if *refused {
                pulls::LONGEST_RETRY
            } else {
                pulls::retry_delay(*failures)
            };
            match now.left_of(*at, pause) {
                None => start(),
                // That is no failure of the pull: nobody knows what would have become of it.
                Some(left) if *engine_lost => {
                    Plan::say(Condition::unknown(Reason::Retrying, message)).after(left)
                }
                Some(left) => {
                    Plan::say(Condition::not_ready(Reason::ImagePullFailed, message)).after(left)
                }
            }
        }
        // Nothing was tried for this request, or what was pulled for it is gone again.
        PullReport::Idle
        | PullReport::Running { .. }
        | PullReport::Failed { .. }
        | PullReport::Done { .. } => start(),
    }
}

fn pulling(sum: PullSum) -> Condition {
    let mut message = format!("{} %", sum.percent);
    if sum.bytes_total > 0 {
        let tenths = |bytes: u64| {
            let tenths = bytes / 100_000;
            format!("{}.{}", tenths / 10, tenths % 10)
        };
        message = format!(
            "{message}, {} of {} MB",
            tenths(sum.bytes),
            tenths(sum.bytes_total)
        );
    }
    if sum.nodes_total > 0 {
        message = format!("{message}, on {} of {} nodes", sum.nodes, sum.nodes_total);
    }
    Condition {
        percent: Some(sum.percent),
        ..Condition::not_ready(Reason::ImagePulling, message)
    }
}

fn absent(
    row: &ImageRow,
    pull: &PullReport,
    image: Option<&Image>,
    users: &[String],
) -> Plan<Action> {
    if !users.is_empty() {
        let mut names = users.get(..NAMED).unwrap_or(users).join(", ");
        if users.len() > NAMED {
            names.push_str(&format!(" and {} more", users.len() - NAMED));
        }
        let condition = Condition::not_ready(Reason::ImageInUse, format!("in use by {names}"));
        return Plan::say(condition).after(IN_USE);
    }
    let message = format!("removing {}", row.reference);
    let mut actions = Vec::new();
    if let PullReport::Running { .. } = pull {
        // What it may have brought since the engine was asked is searched for once it has ended.
        actions.push(Action::CancelPull {
            reference: row.reference.clone(),
        });
        return act(actions, Reason::Terminating, message);
    }
    if let Some(image) = image {
        let remove = |reference: &String| Action::RemoveImage {
            reference: reference.clone(),
        };
        if row.reference == image.id {
            // The engine removes no image by its id that has several names.
            actions.extend(image.repo_tags.iter().map(remove));
        }
        actions.push(remove(&row.reference));
    }
    actions.push(Action::Purge {
        desired: DesiredImage::Absent,
    });
    act(actions, Reason::Terminating, message)
}

/// A pull was called off: the engine keeps what it has.
fn forget(snapshot: &Snapshot) -> Plan<Action> {
    let mut actions = Vec::new();
    if let PullReport::Running { .. } = &snapshot.pull {
        actions.push(Action::CancelPull {
            reference: snapshot.row.reference.clone(),
        });
    }
    actions.push(Action::Purge {
        desired: DesiredImage::Cancelled,
    });
    act(actions, Reason::Terminating, "cancelling the pull")
}
