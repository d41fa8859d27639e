//! Pods that bring an image to a node: the kubelet pulls it before it finds that the command does not exist. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Capabilities, Container, Pod, PodSecurityContext, PodSpec, ResourceRequirements,
    SecurityContext,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::convert::runtime_default;
use super::names::{MANAGED_BY, OWNER, PULL, label_value};
use super::network::{PULLER, ROLE};
use super::options::PodOptions;
use super::placing::node_affinity;
use super::reason::{self, MESSAGE_LIMIT, shorten_text};
use super::references::Resolved;

/// Name of the container.
const CONTAINER: &str = "pull";
/// A program that no image has.
const PROGRAM: &str = "/agentyard-pulled";
/// Seconds after which the cluster ends a Pod whose node has taken it.
pub(crate) const LONGEST_SECONDS: i64 = 30 * 60;

/// Progress of the pull of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// It pulls, or is about to.
    Pulling,
    /// No node takes the Pod, in the scheduler's words.
    Unplaced(String),
    /// The node refused the Pod, in its words, before it pulled.
    Refused(String),
    /// The image could not be pulled, and the node tries again.
    Failing {
        /// The node's words.
        message: String,
        /// The try itself has failed; otherwise the node waits for the next one.
        is_new: bool,
        /// Trying again changes nothing.
        is_final: bool,
    },
    /// It had no time left.
    TooSlow,
    /// The node has the image.
    Done,
}

/// A Pod for one node. The scheduler places it, by the node's name as for Pods of a DaemonSet: so taints, quota and admission
/// see an ordinary Pod, and no label of the node has to be known.
pub(crate) fn pod(
    image: &Resolved,
    node: &str,
    (owner, pull, number): (&str, &str, usize),
    pods: &PodOptions,
) -> Pod {
    let base = pods.overlay.clone();
    let base_metadata = base.metadata.unwrap_or_default();
    let base_spec = base.spec.unwrap_or_default();
    let mut labels = base_metadata.labels.unwrap_or_default();
    labels.extend([
        (OWNER.to_owned(), label_value(owner)),
        (ROLE.to_owned(), PULLER.to_owned()),
        (PULL.to_owned(), label_value(pull)),
        (MANAGED_BY.to_owned(), "agentyard".to_owned()),
    ]);
    let short = pull.get(..12).unwrap_or(pull);
    Pod {
        metadata: ObjectMeta {
            name: Some(format!("agentyard-pull-{short}-{number}")),
            labels: Some(labels),
            annotations: base_metadata.annotations,
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            containers: vec![container(image)],
            affinity: Some(node_affinity(node)),
            active_deadline_seconds: Some(LONGEST_SECONDS),
            termination_grace_period_seconds: Some(0),
            restart_policy: Some("Never".to_owned()),
            // Pull secrets may be the service account's.
            service_account_name: pods.service_account.clone(),
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            image_pull_secrets: base_spec.image_pull_secrets,
            tolerations: base_spec.tolerations,
            node_selector: base_spec.node_selector,
            runtime_class_name: base_spec.runtime_class_name,
            scheduler_name: base_spec.scheduler_name,
            security_context: Some(PodSecurityContext {
                seccomp_profile: Some(runtime_default()),
                ..PodSecurityContext::default()
            }),
            ..PodSpec::default()
        }),
        status: None,
    }
}

fn container(image: &Resolved) -> Container {
    let amounts = |cpu: &str, memory: &str| {
        let amounts = [("cpu", cpu), ("memory", memory)];
        let owned = amounts.map(|(name, much)| (name.to_owned(), Quantity(much.to_owned())));
        Some(BTreeMap::from(owned))
    };
    let policy = match image {
        Resolved::Fixed(_) => "IfNotPresent",
        // A node may have an older one under this reference.
        Resolved::Loose(_) => "Always",
    };
    Container {
        name: CONTAINER.to_owned(),
        image: Some(image.id().clone()),
        image_pull_policy: Some(policy.to_owned()),
        command: Some(vec![PROGRAM.to_owned()]),
        resources: Some(ResourceRequirements {
            claims: None,
            requests: amounts("1m", "8Mi"),
            limits: amounts("100m", "64Mi"),
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            privileged: Some(false),
            capabilities: Some(Capabilities {
                drop: Some(vec!["ALL".to_owned()]),
                add: None,
            }),
            // Nothing of the image runs, so it does not matter as whom.
            run_as_non_root: Some(true),
            seccomp_profile: Some(runtime_default()),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

/// Reads how far a node is.
pub(crate) fn state(pod: &Pod) -> State {
    let status = pod.status.clone().unwrap_or_default();
    let containers = status.container_statuses.iter().flatten();
    let mut containers = containers.filter(|container| container.name == CONTAINER);
    let state = containers.next().and_then(|it| it.state.clone());
    let state = state.unwrap_or_default();
    let words =
        |text: Option<&String>| shorten_text(text.map_or("", String::as_str), MESSAGE_LIMIT);
    // The node ends the containers of a Pod that it evicts or that is too slow, started or not.
    let is_ended_by_node = status.reason.is_some();
    if !is_ended_by_node && (state.terminated.is_some() || state.running.is_some()) {
        return State::Done;
    }
    let waiting = state.waiting.unwrap_or_default();
    if reason::creation_error(&waiting).is_some() {
        return State::Done;
    }
    if status.reason.as_deref() == Some("DeadlineExceeded") {
        return State::TooSlow;
    }
    if matches!(status.phase.as_deref(), Some("Failed" | "Succeeded")) {
        let message = words(status.message.as_ref().or(status.reason.as_ref()));
        return State::Refused(message);
    }
    if let Some(error) = reason::image_error(&waiting) {
        let reason = waiting.reason.as_deref().unwrap_or_default();
        return State::Failing {
            message: error.message,
            is_new: reason != "ImagePullBackOff",
            is_final: matches!(reason, "InvalidImageName" | "ErrImageNeverPull"),
        };
    }
    let conditions = status.conditions.iter().flatten();
    let mut conditions = conditions.filter(|it| it.type_ == "PodScheduled" && it.status == "False");
    match conditions.next() {
        Some(condition) => State::Unplaced(words(condition.message.as_ref())),
        None => State::Pulling,
    }
}
