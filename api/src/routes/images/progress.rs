//! How a rollout goes, as an event stream.

use std::collections::VecDeque;

use futures::{Stream, StreamExt, stream};
use schema::condition::{self, ConditionType};
use schema::error::DbError;
use schema::ids::{Kind, Uid};
use schema::object;
use schema::operation::Progress;
use schema::rollout::{self, Phase, RolloutRow};
use serde::Serialize;
use serde_json::{Value, json};

use crate::answer::Events;
use crate::deps::Deps;
use crate::dispatch::Actor;
use crate::follows::Following;
use crate::reply::Event;
use crate::routes::live;
use crate::wait::Watch;

/// One event on the way.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Step {
    /// The rollout's phase.
    status: Phase,
    task_id: String,
    #[serde(flatten)]
    progress: Progress,
    message: String,
}

/// The stream: an event for each change, and one last `done` or `error`. It holds the right to view,
/// and lasts no longer than the session.
pub(super) fn stream(deps: &Deps, actor: &Actor, id: String, viewing: Following) -> Events {
    let dead = live::death(deps.clone(), actor.clone());
    let events = steps(deps.clone(), Uid::from(id)).take_until(dead);
    Events::new(events.inspect(move |_| {
        let _held = &viewing;
    }))
}

/// Where a viewer stands.
struct Viewer {
    deps: Deps,
    uid: Uid,
    watch: Watch,
    shown: Option<Step>,
    /// Still to be sent.
    ready: VecDeque<Value>,
    ended: bool,
}

fn steps(deps: Deps, uid: Uid) -> impl Stream<Item = Event> + Send {
    let viewer = Viewer {
        watch: Watch::unending(&deps),
        deps,
        uid,
        shown: None,
        ready: VecDeque::new(),
        ended: false,
    };
    stream::unfold(viewer, |mut viewer| async move {
        let event = viewer.next().await?;
        Some((event, viewer))
    })
}

impl Viewer {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(said) = self.ready.pop_front() {
                return Event::json(&said).ok();
            }
            if self.ended || (self.shown.is_some() && !self.watch.next().await) {
                return None;
            }
            match read(&self.deps, &self.uid).await {
                Ok(Some((row, step))) => self.hear(&row, step),
                Ok(None) => return None,
                Err(error) => {
                    let error = crate::error::chain(&error);
                    tracing::warn!(%error, "cannot read how far a rollout is; reading again");
                    if self.shown.is_none() && !self.watch.next().await {
                        return None;
                    }
                }
            }
        }
    }

    /// Takes in what was read: an event if it is new, and the last word if it is the end.
    fn hear(&mut self, row: &RolloutRow, step: Step) {
        let last = last_word(row, &step);
        if self.shown.as_ref() != Some(&step) {
            self.ready.extend(serde_json::to_value(&step).ok());
            self.shown = Some(step);
        }
        if let Some(last) = last {
            self.ready.push_back(last);
            self.ended = true;
        }
    }
}

async fn read(deps: &Deps, uid: &Uid) -> Result<Option<(RolloutRow, Step)>, DbError> {
    let mut connection = deps.db.snapshot().await?;
    let Some((row, progress)) = rollout::head(&mut connection, uid).await? else {
        return Ok(None);
    };
    let object = object::get(&mut connection, Kind::Rollout, uid).await?;
    let conditions = object.map(|object| object.status.conditions);
    let ready = conditions
        .as_deref()
        .and_then(|all| condition::find(all, ConditionType::Ready));
    let message = match &*row.facts.message {
        "" => ready.map(|ready| ready.message.clone()).unwrap_or_default(),
        said => said.to_owned(),
    };
    let step = Step {
        status: row.phase(),
        task_id: uid.to_string(),
        progress,
        message,
    };
    Ok(Some((row, step)))
}

/// How it came out, when nothing more happens by itself.
fn last_word(row: &RolloutRow, step: &Step) -> Option<Value> {
    let phase = row.phase();
    let ended = row.facts.finished_at.is_some();
    let what = match phase {
        Phase::Succeeded if ended => {
            let done =
                json!({"status": "done", "task_id": step.task_id, "total": step.progress.total});
            return Some(done);
        }
        Phase::Failed if ended => "the rollout has ended, and not everybody could be moved",
        Phase::RolledBack if ended => "the rollout was rolled back",
        Phase::Cancelled if ended => "the rollout was cancelled",
        Phase::Paused if step.progress.running == 0 => "the rollout is paused",
        Phase::Pulling
        | Phase::Rolling
        | Phase::Paused
        | Phase::RollingBack
        | Phase::Cancelling
        | Phase::Succeeded
        | Phase::Failed
        | Phase::RolledBack
        | Phase::Cancelled => return None,
    };
    let error = match &*step.message {
        "" => what.to_owned(),
        message => format!("{what}: {message}"),
    };
    Some(json!({"status": "error", "error": error, "task_id": step.task_id}))
}
