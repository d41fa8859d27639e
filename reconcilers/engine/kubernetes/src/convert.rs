//! From settings to templates of Pods. Pure.
//!
//! Each Pod passes Pod Security's `restricted` unless the settings ask for more: an agent as the image's own user or root, or with
//! capabilities.

use std::collections::BTreeMap;

use engine::{ContainerSettings, EngineError};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, EnvVar, HTTPGetAction, PersistentVolumeClaimVolumeSource,
    PodSecurityContext, PodSpec, PodTemplate, PodTemplateSpec, Probe, ResourceRequirements,
    SeccompProfile, SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};

use super::homes::ClaimPath;
use super::network::{AGENT, ROLE};
use super::options::Options;
use super::{closed, names, quantity};

/// Name of the agent's container in its Pod. Other containers come from admission and are not ours.
pub(crate) const CONTAINER: &str = "agent";
/// Name of volumes of ours, with a number behind it.
pub(crate) const VOLUME: &str = "claim-";

/// Seconds between two checks of an agent's readiness.
const PROBE_SECONDS: i32 = 2;
/// Seconds for the answer.
const PROBE_TIMEOUT_SECONDS: i32 = 5;

/// Settings that a Pod cannot hold as they were given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) image: String,
    pub(crate) network: String,
    pub(crate) hostname: Option<String>,
    pub(crate) nano_cpus: i64,
    pub(crate) pids_limit: i64,
    pub(crate) log_size: u32,
    pub(crate) log_files: u32,
    #[serde(default)]
    pub(crate) overlay: Option<String>,
}

impl Kept {
    fn of(settings: &ContainerSettings) -> Self {
        Self {
            image: settings.image.clone(),
            network: settings.network.clone(),
            hostname: settings.hostname.clone(),
            nano_cpus: settings.nano_cpus,
            pids_limit: settings.pids_limit,
            log_size: settings.log.max_size_mb,
            log_files: settings.log.max_files,
            overlay: settings.overlay.clone(),
        }
    }
}

/// The template of a container's Pods. `attempt` is that of [`names::template_name`].
///
/// # Errors
/// [`EngineError::Refused`]: a setting has no meaning on this engine.
pub(crate) fn template(
    name: &str,
    settings: &ContainerSettings,
    options: &Options,
    attempt: u32,
) -> Result<PodTemplate, EngineError> {
    names::check_name(name)?;
    let mut labels = names::object_labels(&settings.labels);
    let pod = pod(settings, options, &labels)?;
    labels.insert(names::NAME_DIGEST.to_owned(), names::name_digest(name));
    let annotations = BTreeMap::from([
        (names::NAME.to_owned(), name.to_owned()),
        (names::LABELS.to_owned(), json(&settings.labels)?),
        (names::SETTINGS.to_owned(), json(&Kept::of(settings))?),
    ]);
    Ok(PodTemplate {
        metadata: ObjectMeta {
            name: Some(names::template_name(name, settings, attempt)),
            labels: Some(labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        template: Some(pod),
    })
}

fn json<T: Serialize>(value: &T) -> Result<String, EngineError> {
    serde_json::to_string(value).map_err(|error| EngineError::Internal(error.to_string()))
}

fn pod(
    settings: &ContainerSettings,
    options: &Options,
    labels: &BTreeMap<String, String>,
) -> Result<PodTemplateSpec, EngineError> {
    let pods = &options.pods;
    let base = pods.overlay.clone();
    let base_metadata = base.metadata.unwrap_or_default();
    let base_spec = base.spec.unwrap_or_default();
    let mut all_labels = base_metadata.labels.unwrap_or_default();
    all_labels.extend(labels.clone());
    all_labels.insert(ROLE.to_owned(), AGENT.to_owned());
    let (volumes, mounts) = volumes(settings)?;
    let own = base_spec.volumes.into_iter().flatten();
    let volumes: Vec<Volume> = volumes.into_iter().chain(own).collect();
    let context = base_spec.security_context.unwrap_or_default();
    let limits = resources(settings, pods.requested_percent);
    let closed = closed::container(options, user(settings.user.as_deref())?, limits);
    Ok(PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(all_labels),
            annotations: base_metadata.annotations,
            ..ObjectMeta::default()
        }),
        spec: Some(PodSpec {
            containers: vec![container(settings, mounts, pods.requested_percent)?],
            init_containers: closed.map(|container| vec![container]),
            ephemeral_containers: None,
            volumes: (!volumes.is_empty()).then_some(volumes),
            hostname: settings.hostname.as_deref().and_then(host_name),
            restart_policy: Some("Never".to_owned()),
            service_account_name: pods.service_account.clone(),
            service_account: None,
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            // The first process of the Pod is the cluster's, and it reaps children that lost their parents.
            share_process_namespace: Some(true),
            host_network: None,
            host_pid: None,
            host_ipc: None,
            security_context: Some(PodSecurityContext {
                seccomp_profile: Some(runtime_default()),
                // It would change the owner of the whole claim at each mount.
                fs_group: None,
                ..context
            }),
            ..base_spec
        }),
    })
}

/// The kubelet's check, from the node of the Pod.
fn readiness(probe: &engine::Probe) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(probe.path.clone()),
            port: IntOrString::Int(i32::from(probe.port)),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(PROBE_SECONDS),
        timeout_seconds: Some(PROBE_TIMEOUT_SECONDS),
        ..Probe::default()
    }
}

pub(crate) fn runtime_default() -> SeccompProfile {
    SeccompProfile {
        type_: "RuntimeDefault".to_owned(),
        ..SeccompProfile::default()
    }
}

fn container(
    settings: &ContainerSettings,
    mounts: Vec<VolumeMount>,
    requested_percent: u8,
) -> Result<Container, EngineError> {
    let (user, group) = user(settings.user.as_deref())?;
    let environment = settings.environment.iter().map(|(name, value)| EnvVar {
        name: name.clone(),
        value: Some(escape(value)),
        value_from: None,
    });
    let command = settings.command.as_ref();
    Ok(Container {
        name: CONTAINER.to_owned(),
        image: Some(settings.image.clone()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        // The whole command line: with it given, the image's own arguments are left out as well.
        command: command.map(|parts| parts.iter().map(|part| escape(part)).collect()),
        env: Some(environment.collect()),
        resources: resources(settings, requested_percent),
        readiness_probe: settings.probe.as_ref().map(readiness),
        volume_mounts: Some(mounts),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            privileged: Some(false),
            capabilities: Some(Capabilities {
                drop: Some(vec!["ALL".to_owned()]),
                add: Some(settings.capabilities.clone()).filter(|added| !added.is_empty()),
            }),
            run_as_user: user,
            run_as_group: group,
            run_as_non_root: user.map(|user| user != 0).filter(|non_root| *non_root),
            seccomp_profile: Some(runtime_default()),
            ..SecurityContext::default()
        }),
        ..Container::default()
    })
}

/// Reads `uid:gid`, or a uid alone.
fn user(text: Option<&str>) -> Result<(Option<i64>, Option<i64>), EngineError> {
    let Some(text) = text else {
        return Ok((None, None));
    };
    let (user, group) = match text.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (text, None),
    };
    let number = |text: &str| text.parse::<u32>().map(i64::from);
    match (number(user), group.map(number).transpose()) {
        (Ok(user), Ok(group)) => Ok((Some(user), group)),
        _ => Err(EngineError::Refused(format!(
            "the user {text:?} is not numeric; this engine takes UID:GID"
        ))),
    }
}

fn resources(settings: &ContainerSettings, requested_percent: u8) -> Option<ResourceRequirements> {
    let part = |whole: i64| {
        let part = i128::from(whole) * i128::from(requested_percent.clamp(1, 100)) / 100;
        i64::try_from(part).unwrap_or(whole)
    };
    let mut limits: BTreeMap<String, Quantity> = BTreeMap::new();
    let mut requests: BTreeMap<String, Quantity> = BTreeMap::new();
    let (cpu, memory) = (settings.nano_cpus, settings.memory_bytes);
    if cpu > 0 {
        limits.insert("cpu".to_owned(), quantity::cpu(cpu));
        requests.insert("cpu".to_owned(), quantity::cpu(part(cpu)));
    }
    if memory > 0 {
        limits.insert("memory".to_owned(), quantity::memory(memory));
        requests.insert("memory".to_owned(), quantity::memory(part(memory)));
    }
    (!limits.is_empty()).then_some(ResourceRequirements {
        claims: None,
        limits: Some(limits),
        requests: Some(requests),
    })
}

fn volumes(settings: &ContainerSettings) -> Result<(Vec<Volume>, Vec<VolumeMount>), EngineError> {
    let mut claims: Vec<String> = Vec::new();
    let mut mounts = Vec::with_capacity(settings.binds.len());
    for bind in &settings.binds {
        let source = ClaimPath::parse(&bind.source)?;
        let known = claims.iter().position(|claim| *claim == source.claim);
        let number = known.unwrap_or_else(|| {
            claims.push(source.claim.clone());
            claims.len() - 1
        });
        mounts.push(VolumeMount {
            name: format!("{VOLUME}{number}"),
            mount_path: bind.target.clone(),
            sub_path: Some(source.path).filter(|path| !path.is_empty()),
            read_only: Some(bind.read_only),
            ..VolumeMount::default()
        });
    }
    let volumes = claims
        .into_iter()
        .enumerate()
        .map(|(number, claim_name)| Volume {
            name: format!("{VOLUME}{number}"),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name,
                read_only: None,
            }),
            ..Volume::default()
        })
        .collect();
    Ok((volumes, mounts))
}

/// A host name as the cluster takes it (RFC 1123): in small letters; `None`: nothing of it is left.
fn host_name(name: &str) -> Option<String> {
    let allowed = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let name: String = name.chars().map(allowed).take(63).collect();
    let name = name.trim_matches('-');
    (!name.is_empty()).then(|| name.to_owned())
}

/// A text in which Kubernetes finds no variable to replace.
fn escape(text: &str) -> String {
    text.replace('$', "$$")
}

/// The text that a program gets of one in a Pod. Variables are not replaced: ours have none.
pub(crate) fn unescape(text: &str) -> String {
    text.replace("$$", "$")
}
