//! Differences between a container and the settings that it was made from. Pure.

use engine::{Container, ContainerDetails, ContainerSettings, Limits, drift};

/// See [`Containers::drift`](engine::Containers::drift). Limits of processes and logs are the cluster's own and not compared.
pub(crate) fn find_drift(
    container: &Container,
    details: Option<&ContainerDetails>,
    wanted: &ContainerSettings,
) -> Option<&'static str> {
    let mut wanted = wanted.clone();
    if let Some(details) = details {
        wanted.pids_limit = details.settings.pids_limit;
        wanted.log = details.settings.log.clone();
    }
    drift::compare(container, details, &wanted, Limits::ALL)
}
