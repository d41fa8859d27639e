//! What a change of groups, bindings or versions means for users, and how far it is.

use std::time::Duration;

use schema::audit::{About, Audited};
use schema::ids::{Generation, Kind, SkillName, UserName};
use schema::operation::{self, Progress};
use schema::skill::impact::{Affected, Impact};
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{self, Answer};
use crate::deps::Deps;
use crate::dispatch::Actor;
use crate::error::Result;
use crate::wait::{self, Change, Changed, State};

/// The type of the operation.
pub const OPERATION: &str = "skills";
/// Most users that an answer lists.
const LISTED: usize = 1000;

/// What a change means for one user.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = SkillChange)]
pub struct UserChange {
    /// The user.
    username: UserName,
    /// Skills that the user did not get before.
    gains: Vec<SkillName>,
    /// Skills that the user gets no more.
    loses: Vec<SkillName>,
    /// Skills that the user gets in another version.
    changes: Vec<SkillName>,
}

/// What a change means for users, and how far it is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SkillEffect)]
pub struct Effect {
    /// How many users get something else by it.
    #[schema(example = 1)]
    user_count: usize,
    /// What each of them gets; the first 1,000.
    affected: Vec<UserChange>,
    /// How far it is; absent with `dry_run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
    /// The skill set of the one user whom it concerns.
    #[serde(flatten)]
    changed: Option<Changed>,
    /// The task of several users' skill sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "01970a3e6f0c7d3b8a5b6b1d2c3e4f50")]
    task_id: Option<String>,
    /// How many of them are in which state.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
}

impl Effect {
    /// Nothing is known of how far it is.
    pub(super) fn new(impact: &Impact) -> Self {
        Self {
            user_count: impact.0.len(),
            affected: affected(impact),
            state: None,
            changed: None,
            task_id: None,
            progress: None,
        }
    }
}

/// What a change means for each user; the first so many.
pub(in crate::routes) fn affected(impact: &Impact) -> Vec<UserChange> {
    let change = |affected: &Affected| UserChange {
        username: affected.name.clone(),
        gains: affected.change.gains.clone(),
        loses: affected.change.loses.clone(),
        changes: affected.change.changes.clone(),
    };
    impact.0.iter().take(LISTED).map(change).collect()
}

/// How a change is ended.
pub(in crate::routes) struct Settle<'a> {
    /// Who asks.
    pub(in crate::routes) actor: &'a Actor,
    /// What the audit trail says of it.
    pub(in crate::routes) about: About,
    /// Report it only.
    pub(in crate::routes) dry_run: bool,
    /// How long the answer may be held back.
    pub(in crate::routes) wait: Option<Duration>,
    /// What is said once it is done.
    pub(in crate::routes) message: String,
}

/// Commits a change, unless it is only to be reported, and waits for whom it concerns: one user as an object, several as a
/// task.
pub(in crate::routes) async fn settle(
    deps: &Deps,
    mut tx: Audited,
    impact: Impact,
    settle: Settle<'_>,
) -> Result<Answer<Effect>> {
    let Settle {
        actor,
        about,
        dry_run,
        wait,
        message,
    } = settle;
    let mut effect = Effect::new(&impact);
    if dry_run {
        let message = format!(
            "nothing was changed; {} affected",
            answer::users(impact.0.len())
        );
        return Ok(Answer::ok(message, effect));
    }
    let targets: Vec<(&Affected, Generation)> = impact
        .0
        .iter()
        .filter_map(|affected| Some((affected, affected.generation?)))
        .collect();
    let about = about.more(&format!("{} affected", answer::users(impact.0.len())));
    match targets.as_slice() {
        [] => {
            tx.commit(about).await?;
            effect.state = Some(State::Converged);
            Ok(Answer::ok(message, effect))
        }
        [(one, generation)] => {
            tx.commit(about).await?;
            let (kind, name) = (Kind::SkillSet, one.name.as_str());
            let change = Change::new(kind, one.uid.clone(), name, *generation);
            let answer = wait::answer(deps, &change, wait, message).await?;
            Ok(answer.map(|converging| {
                effect.state = Some(converging.state);
                effect.changed = Some(converging.changed);
                effect
            }))
        }
        several => {
            let objects: Vec<_> = several
                .iter()
                .map(|(it, generation)| {
                    let name = it.name.as_str().to_owned();
                    (Kind::SkillSet, it.uid.clone(), name, *generation)
                })
                .collect();
            let (by, now) = (actor.to_string(), deps.clock.now());
            let task = operation::create(&mut tx, OPERATION, &by, &objects, now).await?;
            tx.commit(about.more(&format!("task {task}"))).await?;
            Ok(of_task(deps, effect, task, wait, message).await)
        }
    }
}

/// Waits for the skill sets of a task.
pub(super) async fn of_task(
    deps: &Deps,
    effect: Effect,
    task: String,
    wait: Option<Duration>,
    message: String,
) -> Answer<Effect> {
    let progress = wait::settle_operation(deps, &task, wait).await;
    let (state, status) = wait::state_of(progress);
    let effect = Effect {
        state: Some(state),
        task_id: Some(task),
        progress: Some(progress),
        ..effect
    };
    let message = match state {
        State::Converged => message,
        State::Pending => format!("{message}; the change is under way"),
        State::Failed => format!("{message}; some users need manual action"),
    };
    Answer::ok(message, effect).status(status)
}
