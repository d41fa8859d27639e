//! The steps of a rollout.

use schema::ids::{Generation, Uid};
use schema::rollout::{ImageChoice, ReadinessPolicy, RolloutFacts, TargetState};

/// What a step is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The generation of the rollout that the plan was made for.
    pub planned_for: Generation,
}

/// A small named step. Each writes the database once; none touches the engine but [`Action::StartPull`].
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Pulls the image, or joins the pull under way; does not wait for it.
    StartPull {
        /// The reference.
        reference: String,
        /// The attempt it is for.
        attempt: i64,
    },
    /// Remembers how far the whole is.
    Remember {
        /// What it is bound to.
        step: Step,
        /// What is remembered from now on.
        facts: Box<RolloutFacts>,
        /// In words; `None`: not worth telling.
        note: Option<String>,
    },
    /// Gives a batch of users the new image, all or none: a service that is killed in between makes no
    /// other batches of what is left.
    Move {
        /// What it is bound to.
        step: Step,
        /// The users.
        users: Vec<Uid>,
        /// Their names.
        names: Vec<String>,
        /// The image.
        image: ImageChoice,
        /// How the new container is judged.
        policy: ReadinessPolicy,
    },
    /// Lets a batch of users have what is changed, all or none.
    Release {
        /// What it is bound to.
        step: Step,
        /// The users.
        users: Vec<Uid>,
        /// Their names.
        names: Vec<String>,
        /// What they get, in words.
        what: String,
    },
    /// Gives a user the image of before.
    PutBack {
        /// What it is bound to.
        step: Step,
        /// The user.
        user: Uid,
        /// Its name.
        name: String,
        /// Why: after a failure, or because everybody goes back.
        state: TargetState,
        /// In words.
        message: String,
    },
    /// Users who are not under way are at the end of theirs, all in the same way: one step, however many.
    FinishMany {
        /// What it is bound to.
        step: Step,
        /// The users.
        users: Vec<Uid>,
        /// Their names.
        names: Vec<String>,
        /// Which end.
        state: TargetState,
        /// In words.
        message: String,
    },
    /// A user is at the end of its way.
    Finish {
        /// What it is bound to.
        step: Step,
        /// The user.
        user: Uid,
        /// Its name.
        name: String,
        /// Which end.
        state: TargetState,
        /// In words.
        message: String,
    },
}

impl Action {
    /// Whether it is worth an event.
    pub fn is_event(&self) -> bool {
        match self {
            Self::Remember { note, .. } => note.is_some(),
            Self::StartPull { .. }
            | Self::Move { .. }
            | Self::Release { .. }
            | Self::PutBack { .. }
            | Self::FinishMany { .. }
            | Self::Finish { .. } => true,
        }
    }
}

/// So many of those who end alike are named.
const NAMED: usize = 20;

fn end(be: &str, state: TargetState) -> String {
    let end = match state {
        TargetState::Done => "moved",
        TargetState::Failed => return "failed".to_owned(),
        TargetState::RolledBack => "back",
        TargetState::Skipped => "left out",
        TargetState::Cancelled => "not moved any more",
        TargetState::Pending
        | TargetState::Moving
        | TargetState::PuttingBack
        | TargetState::RollingBack => "under way",
    };
    format!("{be} {end}")
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let because = |message: &str| match message {
            "" => String::new(),
            message => format!(": {message}"),
        };
        match self {
            Self::StartPull { reference, .. } => write!(f, "pull {reference}"),
            Self::Remember { note, .. } => f.write_str(note.as_deref().unwrap_or("remember")),
            Self::Move { names, image, .. } => {
                write!(f, "move {} to {}", names.join(", "), image.reference)
            }
            Self::Release { names, what, .. } => write!(f, "give {} {what}", names.join(", ")),
            Self::PutBack { name, message, .. } => {
                write!(f, "put {name} back{}", because(message))
            }
            Self::Finish {
                name,
                state,
                message,
                ..
            } => {
                write!(f, "{name} {}{}", end("is", *state), because(message))
            }
            Self::FinishMany {
                names,
                state,
                message,
                ..
            } => {
                let first = names.iter().take(NAMED).cloned().collect::<Vec<_>>();
                f.write_str(&first.join(", "))?;
                if let more @ 1.. = names.len().saturating_sub(NAMED) {
                    write!(f, " and {more} more")?;
                }
                write!(f, " {}{}", end("are", *state), because(message))
            }
        }
    }
}
