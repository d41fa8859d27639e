//! Runs of containers: what remains of a Pod once it is gone. Pure.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use schema::ids::Timestamp;
use serde::{Deserialize, Serialize};

use super::closed;
use super::reason::{self, MESSAGE_LIMIT, shorten_text};
use super::state::{Loss, moment, status};

/// A run of a container, as its template remembers it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    /// Uid of the Pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) pod: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) finished_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i64>,
    #[serde(default)]
    pub(crate) oom: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) loss: Option<Loss>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) error: String,
}

impl Run {
    /// The run of a Pod of which nothing is known but its start.
    pub(crate) fn from_removal(started_at: Option<Timestamp>) -> Self {
        Self {
            started_at,
            loss: Some(Loss::Removed),
            ..Self::default()
        }
    }

    /// The run of a Pod that has gone without our doing, after its agent had ended by itself or not.
    pub(crate) fn end_gone(self, by_itself: bool, now: Timestamp) -> Self {
        let removed = (!by_itself).then_some(Loss::Removed);
        Self {
            finished_at: self.finished_at.or(Some(now)),
            loss: self.loss.or(removed),
            ..self
        }
    }
}

/// Reads the run of a Pod, as far as it has come.
pub(crate) fn read_run(pod: &Pod) -> Run {
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    let state = status(pod).and_then(|status| status.state.as_ref());
    let ended = state.and_then(|state| state.terminated.as_ref());
    let running = state.and_then(|state| state.running.as_ref());
    let loss = reason::loss(pod);
    let mut run = Run {
        pod: uid,
        loss,
        ..Run::default()
    };
    if let Some(ended) = ended {
        run.started_at = ended.started_at.as_ref().map(moment).filter(is_set);
        run.finished_at = ended.finished_at.as_ref().map(moment).filter(is_set);
        run.exit_code = Some(i64::from(ended.exit_code));
        run.oom = ended.reason.as_deref() == Some("OOMKilled");
        run.error = start_error(ended);
    } else {
        let begun = running.and_then(|running| running.started_at.as_ref());
        run.started_at = begun.map(moment);
    }
    if ended.is_none()
        && loss.is_none()
        && let Some((name, failed)) = init_failure(pod)
    {
        run.finished_at = failed.finished_at.as_ref().map(moment).filter(is_set);
        let message = failed.message.as_deref().or(failed.reason.as_deref());
        let text = format!(
            "the container {name}, which runs before the agent, ended with exit code {}: {}",
            failed.exit_code,
            message.unwrap_or("it says nothing").trim()
        );
        run.error = shorten_text(&text, MESSAGE_LIMIT);
    }
    if run.finished_at.is_none() && loss.is_some() {
        run.finished_at = reason::lost_at(pod);
    }
    run
}

/// The container before the agent's that has failed, so that the agent never ran.
fn init_failure(pod: &Pod) -> Option<(&str, &ContainerStateTerminated)> {
    let phase = pod.status.as_ref()?.phase.as_deref();
    let mut ended = closed::statuses(pod).filter_map(|status| {
        let ended = status.state.as_ref()?.terminated.as_ref()?;
        (ended.exit_code != 0).then_some((status.name.as_str(), ended))
    });
    ended.next().filter(|_| phase == Some("Failed"))
}

/// A container that never ran has the beginning of time in the place of its own.
fn is_set(time: &Timestamp) -> bool {
    time.as_millis() > 0
}

/// The runtime's words for a program that it could not start; otherwise nothing.
fn start_error(ended: &ContainerStateTerminated) -> String {
    match ended.reason.as_deref() {
        Some("StartError" | "ContainerCannotRun") => {
            shorten_text(ended.message.as_deref().unwrap_or_default(), MESSAGE_LIMIT)
        }
        _ => String::new(),
    }
}
