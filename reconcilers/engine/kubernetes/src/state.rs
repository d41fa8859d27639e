//! From objects of the cluster to containers. Pure.
//!
//! A container is a template and, while it runs and until it is started again, the Pod that the template owns. [`Template`] and
//! [`PodState`] are what is remembered of the two: whole objects would be fifty times as large.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::{Container, ContainerDetails, ContainerState};
use k8s_openapi::api::core::v1::{ContainerStatus, Event, Pod, PodTemplate};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use schema::condition::Reason;
use schema::ids::Timestamp;
use schema::live::Waiting;
use serde::{Deserialize, Serialize};

use super::convert::CONTAINER;
use super::names::{self, Id};
use super::reason::{self, Progress};
use super::run::Run;
use super::{closed, objects, read, run};

/// Time after which a Pod that should have ended is said to be on a lost node.
const OVERDUE: Duration = Duration::from_secs(60);

/// A template, as far as listings show it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template {
    pub(crate) id: Id,
    /// Version of the object.
    pub(crate) revision: u64,
    /// The container's name.
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) image: String,
    pub(crate) network: String,
    pub(crate) created_at: Timestamp,
    /// Time of the last start; `None`: it was never started.
    pub(crate) started: Option<Timestamp>,
    /// End of the last run, once its Pod is gone.
    pub(crate) last_run: Option<Run>,
    pub(crate) removing: bool,
}

/// A Pod of a template, as far as listings show it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PodState {
    /// Uid of the Pod.
    pub(crate) uid: String,
    /// Its name.
    pub(crate) name: String,
    /// Version of the object.
    pub(crate) revision: u64,
    /// Uid of the template that owns it; empty: none does.
    pub(crate) template: String,
    pub(crate) created_at: Timestamp,
    pub(crate) node: String,
    pub(crate) ip: Option<String>,
    pub(crate) progress: Progress,
    /// Result of the cluster's readiness check, if the Pod has one.
    pub(crate) ready: Option<bool>,
    /// The time by which it should be gone, once its end was asked for.
    pub(crate) gone_by: Option<Timestamp>,
    /// The time from which on a Pod that still waits for the cluster's policies is open.
    pub(crate) closes_by: Option<Timestamp>,
    /// It had ended before its end was asked for.
    pub(crate) by_itself: bool,
}

/// A moment of the cluster.
pub(crate) fn moment(time: &Time) -> Timestamp {
    Timestamp::from_millis(time.0.as_millisecond())
}

/// Version of an object. The API defines it as a number that grows since Kubernetes 1.35, and every server keeps to it.
pub(crate) fn revision(metadata: &ObjectMeta) -> u64 {
    let text = metadata.resource_version.as_deref();
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

impl Template {
    /// Reads the state of a template; `None`: it is none of ours.
    pub(crate) fn of(metadata: &ObjectMeta) -> Option<Self> {
        let name = read::annotation(metadata, names::NAME)?.to_owned();
        let kept = read::kept_settings(metadata);
        let time = read::annotation(metadata, names::STARTED);
        let run = read::annotation(metadata, names::LAST_RUN);
        Some(Self {
            id: Id {
                template: metadata.name.clone()?,
                uid: metadata.uid.clone()?,
            },
            revision: revision(metadata),
            name,
            labels: read::labels(metadata),
            image: kept.image,
            network: kept.network,
            created_at: metadata.creation_timestamp.as_ref().map(moment)?,
            started: time.and_then(Timestamp::parse_rfc3339),
            last_run: run.and_then(|text| serde_json::from_str(text).ok()),
            removing: metadata.deletion_timestamp.is_some(),
        })
    }
}

impl PodState {
    /// Reads the state of a Pod; `None`: the API left out a field that every Pod has.
    pub(crate) fn of(pod: &Pod) -> Option<Self> {
        let metadata = &pod.metadata;
        let template = objects::owner_of(pod).map(|owner| owner.uid.clone());
        let status = pod.status.as_ref();
        let spec = pod.spec.as_ref();
        let node = spec.and_then(|spec| spec.node_name.clone());
        let progress = reason::progress(pod);
        Some(Self {
            uid: metadata.uid.clone()?,
            name: metadata.name.clone()?,
            revision: revision(metadata),
            template: template.unwrap_or_default(),
            created_at: metadata.creation_timestamp.as_ref().map(moment)?,
            node: node.unwrap_or_default(),
            ip: status
                .and_then(|status| status.pod_ip.clone())
                .filter(|ip| !ip.is_empty()),
            by_itself: progress == Progress::Ended && metadata.deletion_timestamp.is_none(),
            progress,
            ready: readiness(pod),
            closes_by: closed::closes_by(pod),
            gone_by: metadata.deletion_timestamp.as_ref().map(moment),
        })
    }

    /// Returns true if its process has ended, or never will begin.
    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.progress, Progress::Ended)
    }
}

/// The state of the agent's container in a Pod.
pub(crate) fn status(pod: &Pod) -> Option<&ContainerStatus> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find(|status| status.name == CONTAINER)
}

/// `None` where no check of the cluster says it.
fn readiness(pod: &Pod) -> Option<bool> {
    let agent = read::agent(pod.spec.as_ref()?)?;
    agent.readiness_probe.as_ref()?;
    Some(status(pod).is_some_and(|status| status.ready))
}

/// A container as listings show it. `now` tells what is overdue.
pub(crate) fn container(template: &Template, pod: Option<&PodState>, now: Timestamp) -> Container {
    let (state, waiting) = state(template, pod, now);
    let is_up = state == ContainerState::Running;
    let ip = pod.filter(|_| is_up).and_then(|pod| pod.ip.clone());
    Container {
        id: template.id.to_string(),
        name: template.name.clone(),
        labels: template.labels.clone(),
        state,
        image_id: template.image.clone(),
        created_at: Timestamp::from_secs(template.created_at.as_secs()),
        networks: BTreeMap::from([(template.network.clone(), ip)]),
        ready: pod.filter(|_| is_up).and_then(|pod| pod.ready),
        waiting,
    }
}

fn state(
    template: &Template,
    pod: Option<&PodState>,
    now: Timestamp,
) -> (ContainerState, Option<Waiting>) {
    let removing = |pod: &PodState| {
        let overdue = pod.gone_by.is_some_and(|by| by.plus(OVERDUE) < now);
        let waiting = overdue.then(|| Waiting {
            reason: Reason::NodeLost,
            message: format!(
                "the node {} does not confirm the end of the Pod {}, which was asked for",
                pod.node, pod.name
            ),
        });
        (ContainerState::Removing, waiting)
    };
    match pod {
        Some(pod) if pod.gone_by.is_some() => removing(pod),
        _ if template.removing => (ContainerState::Removing, None),
        Some(pod) => match &pod.progress {
            Progress::Waiting(waiting) => {
                let is_open = pod.closes_by.is_some_and(|by| by < now);
                let open = || is_open.then(closed::open_cause);
                (ContainerState::Starting, waiting.clone().or_else(open))
            }
            Progress::NotStarted(_) => (ContainerState::Created, None),
            Progress::Running => (ContainerState::Running, None),
            Progress::Ended => (ContainerState::Exited, None),
        },
        None if template.started.is_some() => (ContainerState::Exited, None),
        None => (ContainerState::Created, None),
    }
}

/// Everything about a container. `events` are those of its Pod, as far as they were read.
pub(crate) fn details(
    object: &PodTemplate,
    pod: Option<&Pod>,
    events: &[Event],
    now: Timestamp,
) -> Option<ContainerDetails> {
    let template = Template::of(&object.metadata)?;
    let short = pod.and_then(PodState::of);
    let mut container = container(&template, short.as_ref(), now);
    explain_wait(&mut container, events);
    let run = match pod {
        Some(pod) => run::read_run(pod),
        None => template
            .last_run
            .clone()
            .unwrap_or_else(|| match template.started {
                Some(_) => Run::from_removal(template.started),
                None => Run::default(),
            }),
    };
    let error = match short.map(|pod| pod.progress) {
        Some(Progress::NotStarted(why)) => why,
        _ => run.error,
    };
    let ended = container.state == ContainerState::Exited;
    Some(ContainerDetails {
        started_at: run.started_at,
        finished_at: run.finished_at.filter(|_| ended),
        exit_code: run.exit_code.filter(|_| ended),
        oom_killed: run.oom,
        loss: run.loss.filter(|_| ended).map(Into::into),
        error,
        settings: read::settings(object, pod),
        deviations: read::deviations(object),
        container,
    })
}

/// Adds to a container that waits for its node what the events of its Pod tell of the cause.
pub(crate) fn explain_wait(container: &mut Container, events: &[Event]) {
    if container.state != ContainerState::Starting {
        return;
    }
    if container.waiting.is_none() {
        container.waiting = reason::from_events(events);
    }
}

/// Returns true if the events of a Pod may tell why it does not run.
pub(crate) fn is_unexplained(pod: &PodState, now: Timestamp) -> bool {
    let waits = matches!(pod.progress, Progress::Waiting(None));
    waits && pod.gone_by.is_none() && now.since(pod.created_at) > Duration::from_secs(5)
}

/// Cause outside of the container for its end, as it is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Loss {
    Evicted,
    NodeLost,
    Removed,
}

impl From<Loss> for schema::live::Loss {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Evicted => Self::Evicted,
            Loss::NodeLost => Self::NodeLost,
            Loss::Removed => Self::Removed,
        }
    }
}
