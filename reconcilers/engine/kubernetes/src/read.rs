//! From templates and Pods back to settings. Pure.
//!
//! A Pod is what admission has made of its template. Compared is only the container of the agent, field by field that the template
//! sets: limits that a namespace adds, further containers, tolerations and the address of a mirror are no difference.

use std::collections::BTreeMap;

use engine::{Bind, ContainerSettings, LogLimits};
use k8s_openapi::api::core::v1::{
    Container, Pod, PodSpec, PodTemplate, Probe, ResourceRequirements, SecurityContext, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::convert::{CONTAINER, Kept, VOLUME, unescape};
use super::homes::ClaimPath;
use super::{mirror, names, quantity};

const NANOS_PER_MILLI: i64 = 1_000_000;

/// Text of an annotation.
pub(crate) fn annotation<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The container's own labels.
pub(crate) fn labels(metadata: &ObjectMeta) -> BTreeMap<String, String> {
    let written = annotation(metadata, names::LABELS);
    written
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// Settings that the template's annotations hold.
pub(crate) fn kept_settings(metadata: &ObjectMeta) -> Kept {
    let written = annotation(metadata, names::SETTINGS);
    written
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// The settings of a container, as its template has them now.
pub(crate) fn template_settings(template: &PodTemplate) -> ContainerSettings {
    let kept = kept_settings(&template.metadata);
    let spec = template.template.as_ref().and_then(|pod| pod.spec.as_ref());
    let mut settings = spec.map(spec_settings).unwrap_or_default();
    // Rounded for the cluster, which has no smaller unit.
    if kept.nano_cpus > 0
        && quantity::nanos(&quantity::cpu(kept.nano_cpus)) == Some(settings.nano_cpus)
    {
        settings.nano_cpus = kept.nano_cpus;
    }
    settings.labels = labels(&template.metadata);
    settings.hostname = kept.hostname;
    settings.network = kept.network;
    settings.pids_limit = kept.pids_limit;
    settings.log = LogLimits {
        max_size_mb: kept.log_size,
        max_files: kept.log_files,
    };
    settings.overlay = kept.overlay;
    settings
}

/// The settings of a container whose Pod is there: those of its template, and the Pod's where it contradicts.
pub(crate) fn settings(template: &PodTemplate, pod: Option<&Pod>) -> ContainerSettings {
    let set = template_settings(template);
    let Some(real) = pod.and_then(|pod| pod.spec.as_ref()).map(spec_settings) else {
        return set;
    };
    let same_cpu = quantity::nanos(&quantity::cpu(set.nano_cpus)) == Some(real.nano_cpus);
    let environment = set.environment.iter().map(|(name, value)| {
        let value = real.environment.get(name).unwrap_or(value);
        (name.clone(), value.clone())
    });
    ContainerSettings {
        image: match mirror::is_same(&set.image, &real.image) {
            true => set.image,
            false => real.image,
        },
        command: set.command.and(real.command),
        environment: environment.collect(),
        user: set.user.and(real.user),
        binds: match set.binds.iter().all(|bind| real.binds.contains(bind)) {
            true => set.binds,
            false => real.binds,
        },
        nano_cpus: if set.nano_cpus == 0 || same_cpu {
            set.nano_cpus
        } else {
            real.nano_cpus
        },
        memory_bytes: if set.memory_bytes == 0 {
            0
        } else {
            real.memory_bytes
        },
        capabilities: real.capabilities,
        probe: set.probe.and(real.probe),
        ..set
    }
}

/// Names of properties that every template of ours has and this one lacks, because another program changed it.
pub(crate) fn deviations(template: &PodTemplate) -> Vec<&'static str> {
    let spec = template.template.as_ref().and_then(|pod| pod.spec.as_ref());
    let Some(spec) = spec else {
        return vec!["template"];
    };
    let context = agent(spec).and_then(|agent| agent.security_context.clone());
    let context = context.unwrap_or_default();
    let drops = context
        .capabilities
        .as_ref()
        .and_then(|it| it.drop.as_ref());
    let drops_all = drops.into_iter().flatten().any(|name| name == "ALL");
    let on = |flag: Option<bool>| flag == Some(true);
    [
        (!drops_all, "cap_drop"),
        (
            context.allow_privilege_escalation != Some(false),
            "no_new_privileges",
        ),
        (on(context.privileged), "privileged"),
        (!on(spec.share_process_namespace), "init"),
        (
            spec.restart_policy.as_deref() != Some("Never"),
            "restart_policy",
        ),
        (on(spec.host_network), "host_network"),
        (on(spec.host_pid), "host_pid"),
        (on(spec.host_ipc), "host_ipc"),
        (
            spec.automount_service_account_token != Some(false),
            "service_account_token",
        ),
        (spec.containers.len() != 1, "containers"),
    ]
    .into_iter()
    .filter_map(|(deviates, name)| deviates.then_some(name))
    .collect()
}

/// The agent's container.
pub(crate) fn agent(spec: &PodSpec) -> Option<&Container> {
    spec.containers.iter().find(|it| it.name == CONTAINER)
}

/// As much of the settings as a Pod itself holds.
fn spec_settings(spec: &PodSpec) -> ContainerSettings {
    let Some(agent) = agent(spec) else {
        return ContainerSettings::default();
    };
    let context = agent.security_context.as_ref();
    let variables = agent.env.iter().flatten().map(|variable| {
        let value = variable.value.as_deref().unwrap_or("");
        (variable.name.clone(), unescape(value))
    });
    let command = agent.command.as_ref();
    ContainerSettings {
        image: agent.image.clone().unwrap_or_default(),
        command: command.map(|parts| parts.iter().map(|part| unescape(part)).collect()),
        environment: variables.collect(),
        user: context.and_then(user),
        binds: binds(agent, spec.volumes.as_deref().unwrap_or_default()),
        nano_cpus: limit(agent.resources.as_ref(), "cpu"),
        memory_bytes: limit(agent.resources.as_ref(), "memory"),
        capabilities: capabilities(context),
        probe: agent.readiness_probe.as_ref().and_then(probe),
        ..ContainerSettings::default()
    }
}

fn probe(probe: &Probe) -> Option<engine::Probe> {
    let request = probe.http_get.as_ref()?;
    let IntOrString::Int(port) = request.port else {
        return None;
    };
    Some(engine::Probe {
        port: u16::try_from(port).ok()?,
        path: request.path.clone().unwrap_or_default(),
    })
}

fn user(context: &SecurityContext) -> Option<String> {
    match (context.run_as_user?, context.run_as_group) {
        (user, Some(group)) => Some(format!("{user}:{group}")),
        (user, None) => Some(user.to_string()),
    }
}

fn capabilities(context: Option<&SecurityContext>) -> Vec<String> {
    let capabilities = context.and_then(|context| context.capabilities.as_ref());
    let added = capabilities.and_then(|capabilities| capabilities.add.clone());
    let mut added = added.unwrap_or_default();
    added.sort();
    added
}

fn limit(resources: Option<&ResourceRequirements>, name: &str) -> i64 {
    let limits = resources.and_then(|resources| resources.limits.as_ref());
    let Some(limit) = limits.and_then(|limits| limits.get(name)) else {
        return 0;
    };
    let read = match name {
        "cpu" => quantity::nanos(limit).map(|nanos| nanos - nanos % NANOS_PER_MILLI),
        _ => quantity::units(limit),
    };
    read.unwrap_or(0)
}

/// Mounts of claims in volumes of ours; other mounts, such as of the service account, come from admission or the
/// administrator.
fn binds(agent: &Container, volumes: &[Volume]) -> Vec<Bind> {
    let claim = |name: &str| {
        let volume = volumes.iter().find(|volume| volume.name == name)?;
        Some(volume.persistent_volume_claim.as_ref()?.claim_name.clone())
    };
    let mounts = agent.volume_mounts.iter().flatten();
    let mut binds: Vec<Bind> = mounts
        .filter(|mount| mount.name.starts_with(VOLUME))
        .map(|mount| {
            let source = ClaimPath {
                claim: claim(&mount.name).unwrap_or_default(),
                path: mount.sub_path.clone().unwrap_or_default(),
            };
            Bind {
                source: source.to_string(),
                target: mount.mount_path.clone(),
                read_only: mount.read_only == Some(true),
            }
        })
        .collect();
    binds.sort_by(|a, b| a.target.cmp(&b.target));
    binds
}
