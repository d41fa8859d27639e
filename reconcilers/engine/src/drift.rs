//! Drift of containers on an engine that reports settings in the form in which they were given.

use super::{Container, ContainerDetails, ContainerSettings, LABEL_SPEC_DIGEST, Limits, NETWORK};

/// Compares a container with the settings that it was made from. See [`Containers::drift`](super::Containers::drift).
pub fn compare(
    container: &Container,
    details: Option<&ContainerDetails>,
    wanted: &ContainerSettings,
    limits: Limits,
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
    difference(&limits.enforceable(wanted), &details.settings)
}

/// The first setting in which a real container differs from what it should be; `None` when it is as
/// it should be. Compared is only what we set: what the image or the engine adds is not drift.
fn difference(wanted: &ContainerSettings, real: &ContainerSettings) -> Option<&'static str> {
    let checks = [
        (wanted.image == real.image, "image"),
        (
            wanted.command.is_none() || wanted.command == real.command,
            "command",
        ),
        (
            wanted
                .environment
                .iter()
                .all(|(key, value)| real.environment.get(key) == Some(value)),
            "environment",
        ),
        (wanted.user.is_none() || wanted.user == real.user, "user"),
        (wanted.hostname == real.hostname, "hostname"),
        (wanted.binds == real.binds, "mounts"),
        (wanted.network == real.network, "network"),
        (wanted.nano_cpus == real.nano_cpus, "cpu limit"),
        (wanted.memory_bytes == real.memory_bytes, "memory limit"),
        (wanted.pids_limit == real.pids_limit, "process limit"),
        (wanted.capabilities == real.capabilities, "capabilities"),
        (wanted.log == real.log, "log limits"),
        (wanted.probe == real.probe, "readiness check"),
    ];
    checks
        .into_iter()
        .find(|(same, _)| !same)
        .map(|(_, what)| what)
}
