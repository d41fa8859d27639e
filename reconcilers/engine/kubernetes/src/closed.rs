//! The container that an agent's Pod begins with: it ends once the cluster's policies are in force. Pure.

use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerStatus, Pod, ResourceRequirements, SecurityContext,
};
use schema::condition::Reason;
use schema::ids::Timestamp;
use schema::live::Waiting;

use super::options::Options;
use super::state::moment;

/// Its name.
pub(crate) const CLOSED: &str = "agentyard-closed";
/// The API server, from variables that every Pod has.
pub(crate) const API_SERVER: &str = "$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)";

/// The container, which runs as the agent and may take what the agent may; `None`: agents do not wait.
pub(crate) fn container(
    options: &Options,
    user: (Option<i64>, Option<i64>),
    resources: Option<ResourceRequirements>,
) -> Option<Container> {
    let seconds = options.network.close_seconds;
    let args = ["pod", "wait-closed", "--seconds"];
    let args = args.map(str::to_owned).into_iter();
    (seconds > 0).then(|| Container {
        name: CLOSED.to_owned(),
        image: Some(options.image.clone()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        command: Some(vec![options.program.clone()]),
        args: Some(
            args.chain([seconds.to_string(), API_SERVER.to_owned()])
                .collect(),
        ),
        resources,
        security_context: Some(restricted_context(user)),
        ..Container::default()
    })
}

/// Takes the container out of a Pod that may reach everything: it would wait for ever.
pub(crate) fn remove_wait(pod: &mut Pod) {
    let containers = pod
        .spec
        .as_mut()
        .and_then(|spec| spec.init_containers.as_mut());
    if let Some(containers) = containers {
        containers.retain(|one| one.name != CLOSED);
    }
}

/// Lets the container of a Pod be that of the service as it is now: a template may be older than the image that the service has.
pub(crate) fn renew_wait(pod: &mut Pod, options: &Options) {
    if options.network.close_seconds == 0 {
        remove_wait(pod);
        return;
    }
    let containers = pod
        .spec
        .as_mut()
        .and_then(|spec| spec.init_containers.as_mut());
    let own =
        containers.and_then(|containers| containers.iter_mut().find(|one| one.name == CLOSED));
    if let Some(own) = own
        && let Some(now) = container(options, (None, None), None)
    {
        own.image = now.image;
        own.command = now.command;
        own.args = now.args;
    }
}

/// The rights of a container of ours beside an agent.
pub(crate) fn restricted_context((user, group): (Option<i64>, Option<i64>)) -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        privileged: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            add: None,
        }),
        run_as_user: user,
        run_as_group: group,
        run_as_non_root: user.map(|user| user != 0).filter(|non_root| *non_root),
        seccomp_profile: Some(super::convert::runtime_default()),
        ..SecurityContext::default()
    }
}

/// The time from which on a Pod that still waits is open, while it waits.
pub(crate) fn closes_by(pod: &Pod) -> Option<Timestamp> {
    let status = statuses(pod).find(|status| status.name == CLOSED)?;
    let running = status.state.as_ref()?.running.as_ref()?;
    let begun = moment(running.started_at.as_ref()?);
    let containers = pod.spec.as_ref()?.init_containers.as_ref()?;
    let own = containers.iter().find(|one| one.name == CLOSED)?;
    let seconds = own.args.as_ref()?.get(3)?.parse().ok()?;
    Some(begun.plus(std::time::Duration::from_secs(seconds)))
}

/// Containers that run before the agent's.
pub(crate) fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.as_ref();
    let statuses = status.and_then(|status| status.init_container_statuses.as_ref());
    statuses.into_iter().flatten()
}

/// Cause for which a Pod goes on waiting.
pub(crate) fn open_cause() -> Waiting {
    Waiting {
        reason: Reason::IsolationNotEnforced,
        message: "the agent does not start, since its Pod still reaches the API server of the cluster: the network plug-in enforces \
            no policies, or the API server has an address that is not in network.closed of the engine's options"
            .to_owned(),
    }
}
