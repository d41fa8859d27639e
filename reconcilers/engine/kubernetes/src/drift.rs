//! Differences between a container and the settings that it was made from. Pure.

use engine::{Container, ContainerDetails, ContainerSettings, LABEL_SPEC_DIGEST, NETWORK};

/// See [`Containers::drift`](engine::Containers::drift). Limits of processes and logs are the cluster's own and not compared.
pub(crate) fn find_drift(
    container: &Container,
    details: Option<&ContainerDetails>,
    wanted: &ContainerSettings,
) -> Option<&'static str> {
    if !container.networks.keys().eq([NETWORK]) {
        return Some("network");
    }
    let made_for = container.labels.get(LABEL_SPEC_DIGEST);
    if made_for != wanted.labels.get(LABEL_SPEC_DIGEST) {
        return None;
    }
    let details = details?;
    if let Some(deviation) = details.deviations.first() {
        return Some(deviation);
    }
    difference(wanted, &details.settings)
}

fn difference(wanted: &ContainerSettings, real: &ContainerSettings) -> Option<&'static str> {
    let holds = |(key, value)| real.environment.get(key) == Some(value);
    let checks = [
        (wanted.image == real.image, "image"),
        (
            wanted.command.is_none() || wanted.command == real.command,
            "command",
        ),
        (wanted.environment.iter().all(holds), "environment"),
        (wanted.user.is_none() || wanted.user == real.user, "user"),
        (wanted.hostname == real.hostname, "hostname"),
        (wanted.binds == real.binds, "mounts"),
        (wanted.network == real.network, "network"),
        (wanted.nano_cpus == real.nano_cpus, "cpu limit"),
        (wanted.memory_bytes == real.memory_bytes, "memory limit"),
        (wanted.capabilities == real.capabilities, "capabilities"),
        (wanted.probe == real.probe, "readiness check"),
    ];
    checks
        .into_iter()
        .find(|(same, _)| !same)
        .map(|(_, what)| what)
}
