//! Causes: from the words of the cluster to ours. Pure.

pub(crate) use engine::{MESSAGE_LIMIT, shorten_text};
use k8s_openapi::api::core::v1::{ContainerStateWaiting, Event, Pod, PodCondition};
use schema::condition::Reason;
use schema::ids::Timestamp;
use schema::live::Waiting;

use super::closed;
use super::state::{Loss, moment, status};

/// Progress of a Pod.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Progress {
    /// It waits for a node, an image or a volume; with the cause, where the Pod itself tells it.
    Waiting(Option<Waiting>),
    /// Its node cannot create the container, in the runtime's words, and tries it again.
    NotStarted(String),
    /// The agent's process runs.
    Running,
    /// It ran, or was refused by its node, and does not run again.
    Ended,
}

/// Reads how far a Pod has come. Other containers in it than the agent's are not looked at: an injected one may go on for ever.
pub(crate) fn progress(pod: &Pod) -> Progress {
    let pod_status = pod.status.clone().unwrap_or_default();
    if matches!(pod_status.phase.as_deref(), Some("Succeeded" | "Failed")) {
        return Progress::Ended;
    }
    let state = status(pod).and_then(|status| status.state.clone());
    let state = state.unwrap_or_default();
    if state.terminated.is_some() {
        return Progress::Ended;
    }
    if state.running.is_some() {
        return Progress::Running;
    }
    if let Some(waiting) = scheduling(pod) {
        return Progress::Waiting(Some(waiting));
    }
    let waiting = state.waiting.unwrap_or_default();
    match (creation_error(&waiting), image_error(&waiting)) {
        (Some(why), _) => Progress::NotStarted(why),
        (None, Some(waiting)) => Progress::Waiting(Some(waiting)),
        (None, None) => init_progress(pod),
    }
}

fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Cause for which the Pod has no node.
fn scheduling(pod: &Pod) -> Option<Waiting> {
    let condition = condition(pod, "PodScheduled").filter(|it| it.status == "False")?;
    let message = condition.message.as_deref().unwrap_or_default();
    let reason = condition.reason.as_deref().unwrap_or_default();
    // "pod has unbound immediate PersistentVolumeClaims", "persistentvolumeclaim \"data\" not found"
    let is_volume = message
        .to_ascii_lowercase()
        .contains("persistentvolumeclaim");
    let (reason, message) = match reason {
        _ if is_volume => (Reason::VolumePending, message),
        "SchedulingGated" if message.is_empty() => {
            (Reason::Unschedulable, "the Pod has scheduling gates")
        }
        _ if message.is_empty() => (Reason::Unschedulable, "no node fits the Pod"),
        _ => (Reason::Unschedulable, message),
    };
    Some(Waiting {
        reason,
        message: shorten_text(message, MESSAGE_LIMIT),
    })
}

/// Cause for which a node does not get the image of a container.
pub(crate) fn image_error(waiting: &ContainerStateWaiting) -> Option<Waiting> {
    let reason = waiting.reason.as_deref()?;
    let failed = matches!(
        reason,
        "ErrImagePull"
            | "ImagePullBackOff"
            | "InvalidImageName"
            | "ErrImageNeverPull"
            | "ImageInspectError"
            | "RegistryUnavailable"
            | "SignatureValidationFailed"
    );
    failed.then(|| Waiting {
        reason: Reason::ImagePullFailed,
        message: with_remedy(words(waiting, reason)),
    })
}

/// Adds to the words of a node that a registry does not let in where its credentials come from.
fn with_remedy(message: String) -> String {
    const REFUSALS: [&str; 8] = [
        "401",
        "403",
        "unauthorized",
        "authorization failed",
        "authentication required",
        "denied",
        "no basic auth credentials",
        "insufficient_scope",
    ];
    const REMEDY: &str = "; nodes log in with the pull secrets that pods.overlay.spec.imagePullSecrets of the engine's options names";
    let words = message.to_ascii_lowercase();
    if REFUSALS.iter().any(|refusal| words.contains(refusal)) {
        return shorten_text(&message, MESSAGE_LIMIT - REMEDY.len()) + REMEDY;
    }
    message
}

/// The runtime's words for a container that it cannot create.
pub(crate) fn creation_error(waiting: &ContainerStateWaiting) -> Option<String> {
    let reason = waiting.reason.as_deref()?;
    let failed = matches!(
        reason,
        "CreateContainerConfigError"
            | "CreateContainerError"
            | "RunContainerError"
            | "PreCreateHookError"
            | "PreStartHookError"
            | "PostStartHookError"
            | "CrashLoopBackOff"
    );
    failed.then(|| words(waiting, reason))
}

fn words(waiting: &ContainerStateWaiting, reason: &str) -> String {
    match waiting.message.as_deref() {
        Some(message) if !message.is_empty() => {
            shorten_text(&format!("{reason}: {message}"), MESSAGE_LIMIT)
        }
        _ => reason.to_owned(),
    }
}

/// Progress of the containers that run before the agent's.
fn init_progress(pod: &Pod) -> Progress {
    let states = closed::statuses(pod).filter_map(|status| status.state.as_ref());
    let waiting: Vec<_> = states.filter_map(|state| state.waiting.as_ref()).collect();
    let mut waiting = waiting.into_iter();
    if let Some(why) = waiting.clone().find_map(creation_error) {
        return Progress::NotStarted(why);
    }
    Progress::Waiting(waiting.find_map(image_error))
}

/// The cause that the newest event of a Pod tells, if it tells one.
pub(crate) fn from_events(events: &[Event]) -> Option<Waiting> {
    let newest = events.iter().max_by_key(|event| time_of(event))?;
    let message = newest.message.as_deref().unwrap_or_default();
    let reason = match newest.reason.as_deref()? {
        "FailedMount" | "FailedAttachVolume" | "FailedMapVolume" | "VolumeFailedMount" => {
            Reason::VolumePending
        }
        "FailedScheduling" => Reason::Unschedulable,
        "Pulling" => Reason::ImagePulling,
        "ErrImageNeverPull" | "InspectFailed" => Reason::ImagePullFailed,
        "Failed" if message.contains("pull") => Reason::ImagePullFailed,
        // Of the runtime, of the network, of admission by the node: in its words.
        "FailedCreatePodSandBox" | "NetworkNotReady" | "FailedToRetrieveImagePullSecret" => {
            Reason::Unschedulable
        }
        _ => return None,
    };
    Some(Waiting {
        reason,
        message: shorten_text(message, MESSAGE_LIMIT),
    })
}

fn time_of(event: &Event) -> Timestamp {
    let series = event
        .series
        .as_ref()
        .and_then(|it| it.last_observed_time.as_ref());
    let precise = series.or(event.event_time.as_ref());
    let precise = precise.map(|time| Timestamp::from_millis(time.0.as_millisecond()));
    let last = event.last_timestamp.as_ref().map(moment);
    precise.max(last).unwrap_or(Timestamp::from_millis(0))
}

/// Cause outside of the container for the end of a Pod; `None`: it has not ended, or by itself.
pub(crate) fn loss(pod: &Pod) -> Option<Loss> {
    let status = pod.status.as_ref()?;
    let failed = status.phase.as_deref() == Some("Failed");
    let disrupted = condition(pod, "DisruptionTarget").filter(|it| it.status == "True");
    let disruption = disrupted.and_then(|condition| condition.reason.as_deref());
    match (disruption, status.reason.as_deref()) {
        (Some("DeletionByTaintManager" | "DeletionByPodGC"), _) => Some(Loss::NodeLost),
        (_, Some("NodeLost")) => Some(Loss::NodeLost),
        (Some("PreemptionByScheduler" | "EvictionByEvictionAPI" | "TerminationByKubelet"), _) => {
            Some(Loss::Evicted)
        }
        (_, Some("Evicted" | "Shutdown" | "NodeShutdown" | "Terminated" | "Preempting")) => {
            Some(Loss::Evicted)
        }
        // The node did not take it: it was full, or does not fit any more.
        (_, Some(reason)) if failed && is_node_refusal(reason) => Some(Loss::Evicted),
        _ => None,
    }
}

fn is_node_refusal(reason: &str) -> bool {
    reason.starts_with("OutOf")
        || matches!(
            reason,
            "NodeAffinity"
                | "NodePorts"
                | "NodeName"
                | "UnexpectedAdmissionError"
                | "TopologyAffinityError"
        )
}

/// The time of such an end.
pub(crate) fn lost_at(pod: &Pod) -> Option<Timestamp> {
    let disrupted = condition(pod, "DisruptionTarget");
    let at = disrupted.and_then(|it| it.last_transition_time.as_ref());
    let begun = pod.status.as_ref()?.start_time.as_ref();
    at.or(begun).map(moment)
}
