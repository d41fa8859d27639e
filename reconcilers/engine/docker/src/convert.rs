//! Between the engine's shapes and ours.
//!
//! Reading back gives the same normal form that is written, so that a comparison finds no
//! difference that is none (L58): zero, absent and "no limit" are one value, lists are sorted,
//! capabilities have no `CAP_` in front. What the engine adds by itself (the image's environment
//! and labels, a host name, a command) is in what is read back; the reader compares what it asked for.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, ContainerMemoryStats, ContainerStateStatusEnum,
    ContainerStatsResponse, ContainerSummary, ContainerSummaryStateEnum, CreateImageInfo,
    EndpointSettings, HostConfig, HostConfigLogConfig, ImageInspect, ImageSummary, Ipam,
    IpamConfig, Mount, MountType, NetworkCreateRequest, NetworkInspect, RestartPolicy,
    RestartPolicyNameEnum,
};
use engine::{
    Bind, Container, ContainerDetails, ContainerSettings, ContainerState, EngineError, Image,
    LogLimits, Network, NetworkSettings, PullEvent, Sample, Stats, parse_subnet,
};
use schema::ids::Timestamp;

use super::failure::{MESSAGE_LIMIT, shorten_text};

/// Longest text of a pull's event, in bytes; it is kept for each layer.
const TEXT_LIMIT: usize = 256;
/// Longest id of a layer.
const ID_LIMIT: usize = 128;

const ENABLE_ICC: &str = "com.docker.network.bridge.enable_icc";
const NO_NEW_PRIVILEGES: &str = "no-new-privileges";

fn missing_field(what: &str) -> EngineError {
    EngineError::Internal(format!("the engine's answer has no {what}"))
}

/// What to send for a container with these settings.
pub(super) fn container_body(settings: &ContainerSettings) -> ContainerCreateBody {
    let some = |number: i64| (number > 0).then_some(number);
    let environment = settings
        .environment
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let mounts = settings
        .binds
        .iter()
        .map(|bind| Mount {
            typ: Some(MountType::BIND),
            source: Some(bind.source.clone()),
            target: Some(bind.target.clone()),
            read_only: Some(bind.read_only),
            ..Default::default()
        })
        .collect();
    let log = HashMap::from([
        (
            "max-size".to_owned(),
            format!("{}m", settings.log.max_size_mb),
        ),
        ("max-file".to_owned(), settings.log.max_files.to_string()),
    ]);
    ContainerCreateBody {
        image: Some(settings.image.clone()),
        // The whole command line: an image's own entry point must not stand in front of it. With an
        // entry point given, the engine leaves the image's arguments out as well.
        entrypoint: settings.command.clone(),
        env: Some(environment),
        labels: Some(settings.labels.clone().into_iter().collect()),
        user: settings.user.clone(),
        hostname: settings.hostname.clone(),
        host_config: Some(HostConfig {
            network_mode: Some(settings.network.clone()),
            mounts: Some(mounts),
            nano_cpus: some(settings.nano_cpus),
            memory: some(settings.memory_bytes),
            // Equal to the memory limit means no swap at all.
            memory_swap: some(settings.memory_bytes),
            pids_limit: some(settings.pids_limit),
            cap_drop: Some(vec!["ALL".to_owned()]),
            cap_add: Some(settings.capabilities.clone()),
            security_opt: Some(vec![NO_NEW_PRIVILEGES.to_owned()]),
            privileged: Some(false),
            init: Some(true),
            restart_policy: Some(RestartPolicy {
                name: Some(RestartPolicyNameEnum::NO),
                maximum_retry_count: None,
            }),
            log_config: Some(HostConfigLogConfig {
                typ: Some("json-file".to_owned()),
                config: Some(log),
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// What to send for a network with these settings.
pub(super) fn network_body(
    settings: &NetworkSettings,
) -> Result<NetworkCreateRequest, EngineError> {
    let (subnet, gateway) = parse_subnet(&settings.subnet)?;
    Ok(NetworkCreateRequest {
        name: settings.name.clone(),
        driver: Some("bridge".to_owned()),
        ipam: Some(Ipam {
            config: Some(vec![IpamConfig {
                subnet: Some(subnet.to_string()),
                // Named, because 20.10 does not report the gateway of a subnet given without one.
                gateway: Some(gateway.to_string()),
                ..Default::default()
            }]),
            ..Default::default()
        }),
        // Some engines can be told to give every network IPv6, which the rules of the host do not cover.
        enable_ipv6: Some(false),
        options: Some(HashMap::from([(ENABLE_ICC.to_owned(), "false".to_owned())])),
        labels: Some(settings.labels.clone().into_iter().collect()),
        ..Default::default()
    })
}

/// A line of a listing.
pub(super) fn container(summary: ContainerSummary) -> Result<Container, EngineError> {
    let state = match summary
        .state
        .ok_or_else(|| missing_field("container state"))?
    {
        ContainerSummaryStateEnum::CREATED => ContainerState::Created,
        ContainerSummaryStateEnum::RUNNING | ContainerSummaryStateEnum::STOPPING => {
            ContainerState::Running
        }
        ContainerSummaryStateEnum::PAUSED => ContainerState::Paused,
        ContainerSummaryStateEnum::RESTARTING => ContainerState::Restarting,
        ContainerSummaryStateEnum::REMOVING => ContainerState::Removing,
        ContainerSummaryStateEnum::EXITED => ContainerState::Exited,
        ContainerSummaryStateEnum::DEAD => ContainerState::Dead,
        ContainerSummaryStateEnum::EMPTY => return Err(missing_field("container state")),
    };
    // A container being removed has given its name back already. Links add names with a second slash.
    let name = summary
        .names
        .unwrap_or_default()
        .into_iter()
        .map(|name| name.trim_start_matches('/').to_owned())
        .find(|name| !name.contains('/'))
        .unwrap_or_default();
    Ok(Container {
        id: summary.id.ok_or_else(|| missing_field("container id"))?,
        name,
        labels: sort_labels(summary.labels),
        state,
        image_id: summary.image_id.ok_or_else(|| missing_field("image id"))?,
        created_at: Timestamp::from_secs(
            summary
                .created
                .ok_or_else(|| missing_field("creation time"))?,
        ),
        networks: addresses(summary.network_settings.and_then(|n| n.networks)),
        ready: None,
        waiting: None,
    })
}

/// Everything about one container.
pub(super) fn details(answer: ContainerInspectResponse) -> Result<ContainerDetails, EngineError> {
    let settings = settings(&answer);
    let deviations = deviations(answer.host_config.as_ref());
    let state = answer
        .state
        .ok_or_else(|| missing_field("container state"))?;
    let kind = match state
        .status
        .ok_or_else(|| missing_field("container state"))?
    {
        ContainerStateStatusEnum::CREATED => ContainerState::Created,
        ContainerStateStatusEnum::RUNNING | ContainerStateStatusEnum::STOPPING => {
            ContainerState::Running
        }
        ContainerStateStatusEnum::PAUSED => ContainerState::Paused,
        ContainerStateStatusEnum::RESTARTING => ContainerState::Restarting,
        ContainerStateStatusEnum::REMOVING => ContainerState::Removing,
        ContainerStateStatusEnum::EXITED => ContainerState::Exited,
        ContainerStateStatusEnum::DEAD => ContainerState::Dead,
        ContainerStateStatusEnum::EMPTY => return Err(missing_field("container state")),
    };
    let finished_at = moment(state.finished_at.as_deref())?;
    let ended = matches!(
        kind,
        ContainerState::Exited | ContainerState::Dead | ContainerState::Restarting
    );
    let created = answer
        .created
        .ok_or_else(|| missing_field("creation time"))?;
    Ok(ContainerDetails {
        container: Container {
            id: answer.id.ok_or_else(|| missing_field("container id"))?,
            name: answer
                .name
                .unwrap_or_default()
                .trim_start_matches('/')
                .to_owned(),
            labels: settings.labels.clone(),
            state: kind,
            image_id: settings.image.clone(),
            created_at: Timestamp::from_secs(created.unix_timestamp()),
            networks: addresses(answer.network_settings.and_then(|n| n.networks)),
            ready: None,
            waiting: None,
        },
        started_at: moment(state.started_at.as_deref())?,
        finished_at,
        exit_code: state.exit_code.filter(|_| ended && finished_at.is_some()),
        oom_killed: state.oom_killed.unwrap_or(false),
        loss: None,
        error: shorten_text(&state.error.unwrap_or_default(), MESSAGE_LIMIT),
        settings,
        deviations,
    })
}

fn settings(answer: &ContainerInspectResponse) -> ContainerSettings {
    let config = answer.config.clone().unwrap_or_default();
    let host = answer.host_config.clone().unwrap_or_default();
    let text = |text: Option<String>| text.filter(|text| !text.is_empty());
    let limit = |number: Option<i64>| number.unwrap_or(0).max(0);
    let environment = config
        .env
        .unwrap_or_default()
        .iter()
        .map(|entry| match entry.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (entry.clone(), String::new()),
        })
        .collect();
    let mut binds: Vec<Bind> = answer
        .mounts
        .iter()
        .flatten()
        .filter(|mount| mount.typ.as_deref() == Some("bind"))
        .map(|mount| Bind {
            source: mount.source.clone().unwrap_or_default(),
            target: mount.destination.clone().unwrap_or_default(),
            read_only: mount.rw == Some(false),
        })
        .collect();
    binds.sort_by(|a, b| a.target.cmp(&b.target));
    let mut capabilities: Vec<String> = host
        .cap_add
        .unwrap_or_default()
        .iter()
        .map(|name| {
            let name = name.to_ascii_uppercase();
            name.strip_prefix("CAP_").unwrap_or(&name).to_owned()
        })
        .collect();
    capabilities.sort();
    // `docker update --cpu-quota` leaves the other form of the same limit.
    let nano_cpus = match (limit(host.nano_cpus), limit(host.cpu_quota)) {
        (0, quota) if quota > 0 => {
            let period = limit(host.cpu_period);
            let period = if period == 0 { 100_000 } else { period };
            quota.saturating_mul(1_000_000_000) / period
        }
        (nano_cpus, _) => nano_cpus,
    };
    ContainerSettings {
        image: answer.image.clone().unwrap_or_default(),
        command: Some(
            [config.entrypoint, config.cmd]
                .into_iter()
                .flatten()
                .flatten()
                .collect::<Vec<_>>(),
        )
        .filter(|command| !command.is_empty()),
        environment,
        labels: sort_labels(config.labels),
        user: text(config.user),
        hostname: text(config.hostname),
        binds,
        network: host.network_mode.unwrap_or_default(),
        nano_cpus,
        memory_bytes: limit(host.memory),
        pids_limit: limit(host.pids_limit),
        capabilities,
        log: log_limits(host.log_config),
        ..ContainerSettings::default()
    }
}

fn log_limits(config: Option<HostConfigLogConfig>) -> LogLimits {
    let config = config
        .filter(|config| config.typ.as_deref() == Some("json-file"))
        .and_then(|config| config.config)
        .unwrap_or_default();
    let size = config.get("max-size").and_then(|size| {
        let size = size.to_ascii_lowercase();
        let (digits, unit) =
            size.split_at(size.trim_end_matches(|c: char| c.is_alphabetic()).len());
        let number: u64 = digits.parse().ok()?;
        let bytes = match unit {
            "" | "b" => number,
            "k" | "kb" => number.checked_mul(1 << 10)?,
            "m" | "mb" => number.checked_mul(1 << 20)?,
            "g" | "gb" => number.checked_mul(1 << 30)?,
            _ => return None,
        };
        u32::try_from(bytes >> 20).ok()
    });
    let files = config.get("max-file").and_then(|files| files.parse().ok());
    LogLimits {
        max_size_mb: size.unwrap_or(0),
        max_files: files.unwrap_or(0),
    }
}

/// Which of the properties that every container of ours has this one lacks.
fn deviations(host: Option<&HostConfig>) -> Vec<&'static str> {
    let default = HostConfig::default();
    let host = host.unwrap_or(&default);
    let restarts = !matches!(
        host.restart_policy.as_ref().and_then(|policy| policy.name),
        None | Some(RestartPolicyNameEnum::EMPTY | RestartPolicyNameEnum::NO)
    );
    let drops_all = host
        .cap_drop
        .iter()
        .flatten()
        .any(|name| name.eq_ignore_ascii_case("ALL"));
    let confined = host
        .security_opt
        .iter()
        .flatten()
        .any(|option| option.starts_with(NO_NEW_PRIVILEGES) && !option.ends_with("false"));
    [
        (!drops_all, "cap_drop"),
        (!confined, "no_new_privileges"),
        (host.privileged == Some(true), "privileged"),
        (host.init != Some(true), "init"),
        (restarts, "restart_policy"),
    ]
    .into_iter()
    .filter_map(|(deviates, name)| deviates.then_some(name))
    .collect()
}

/// A network.
pub(super) fn network(answer: NetworkInspect) -> Result<Network, EngineError> {
    let pool = answer
        .ipam
        .and_then(|ipam| ipam.config)
        .unwrap_or_default()
        .into_iter()
        .next()
        .unwrap_or_default();
    let text = |text: Option<String>| text.filter(|text| !text.is_empty());
    let icc = answer.options.unwrap_or_default();
    let mut containers: Vec<String> = answer.containers.unwrap_or_default().into_keys().collect();
    containers.sort();
    Ok(Network {
        id: answer.id.ok_or_else(|| missing_field("network id"))?,
        name: answer.name.ok_or_else(|| missing_field("network name"))?,
        driver: answer.driver.unwrap_or_default(),
        subnet: text(pool.subnet),
        gateway: text(pool.gateway),
        inter_container_traffic: icc.get(ENABLE_ICC).is_none_or(|value| value != "false"),
        policies: String::new(),
        labels: sort_labels(answer.labels),
        containers,
    })
}

/// An image.
pub(super) fn image(answer: ImageInspect) -> Result<Image, EngineError> {
    Ok(Image {
        id: answer.id.ok_or_else(|| missing_field("image id"))?,
        repo_tags: real_references(answer.repo_tags.unwrap_or_default()),
        repo_digests: real_references(answer.repo_digests.unwrap_or_default()),
        size: bytes(answer.size).unwrap_or(0),
        created_at: answer.created.map_or_else(Timestamp::default, |at| {
            Timestamp::from_secs(at.unix_timestamp())
        }),
        is_local: true,
    })
}

/// An image as a listing shows it.
pub(super) fn listed_image(summary: ImageSummary) -> Image {
    Image {
        id: summary.id,
        repo_tags: real_references(summary.repo_tags),
        repo_digests: real_references(summary.repo_digests),
        size: bytes(Some(summary.size)).unwrap_or(0),
        created_at: Timestamp::from_secs(summary.created),
        is_local: true,
    }
}

/// Without what older engines say of an image that has no name.
fn real_references(mut references: Vec<String>) -> Vec<String> {
    references.retain(|reference| !reference.starts_with("<none>"));
    references.sort();
    references
}

fn bytes(count: Option<i64>) -> Option<u64> {
    count.and_then(|count| u64::try_from(count).ok())
}

/// What the engine reports of a pull, its texts cut to a bearable length.
pub(super) fn pull_event(info: CreateImageInfo) -> Result<PullEvent, EngineError> {
    if let Some(error) = info.error_detail {
        let words = error
            .message
            .unwrap_or_else(|| "no reason given".to_owned());
        return Err(EngineError::PullFailed(shorten_text(&words, TEXT_LIMIT)));
    }
    let detail = info.progress_detail.unwrap_or_default();
    Ok(PullEvent {
        status: shorten_text(&info.status.unwrap_or_default(), TEXT_LIMIT),
        id: info.id.map(|id| shorten_text(&id, ID_LIMIT)),
        current: bytes(detail.current),
        // Where the registry does not report it, the engine says -1 or 0.
        total: bytes(detail.total).filter(|total| *total > 0),
    })
}

/// A sample, computed as Docker's own command line does; `None` for a container that does not run.
pub(super) fn stats(answer: ContainerStatsResponse) -> Option<Stats> {
    let pids = answer.pids_stats.and_then(|pids| pids.current)?;
    let cpu = answer.cpu_stats.unwrap_or_default();
    let before = answer.precpu_stats.unwrap_or_default();
    let usage = cpu.cpu_usage.unwrap_or_default();
    let used_before = before
        .cpu_usage
        .and_then(|usage| usage.total_usage)
        .unwrap_or(0);
    let used = usage.total_usage.unwrap_or(0).saturating_sub(used_before);
    let passed = match (cpu.system_cpu_usage, before.system_cpu_usage) {
        (Some(now), Some(before)) => now.saturating_sub(before),
        _ => 0,
    };
    let cores = cpu
        .online_cpus
        .filter(|cores| *cores > 0)
        .or_else(|| u32::try_from(usage.percpu_usage?.len()).ok())
        .unwrap_or(1);
    #[allow(clippy::cast_precision_loss)]
    let cpu_percent = if passed == 0 {
        0.0
    } else {
        used as f64 / passed as f64 * f64::from(cores) * 100.0
    };
    let memory = answer.memory_stats.unwrap_or_default();
    let networks = answer.networks.unwrap_or_default();
    Some(Stats {
        cpu_percent,
        memory_bytes: used_memory(&memory),
        memory_limit_bytes: memory.limit.unwrap_or(0),
        pids: Some(pids),
        network_rx_bytes: Some(networks.values().filter_map(|n| n.rx_bytes).sum()),
        network_tx_bytes: Some(networks.values().filter_map(|n| n.tx_bytes).sum()),
    })
}

/// Memory in use without the page cache that can be dropped.
fn used_memory(memory: &ContainerMemoryStats) -> u64 {
    // Control groups version 1 and 2 have different names for it.
    let cache = memory.stats.as_ref().and_then(|details| {
        let version_1 = details.get("total_inactive_file");
        version_1.or_else(|| details.get("inactive_file")).copied()
    });
    let usage = memory.usage.unwrap_or(0);
    usage.saturating_sub(cache.unwrap_or(0))
}

/// Processor time and memory that a running container has used so far; `None` of one that does not run.
pub(super) fn sample(answer: &ContainerStatsResponse) -> Option<Sample> {
    answer.pids_stats.as_ref()?.current?;
    let usage = answer.cpu_stats.as_ref()?.cpu_usage.as_ref()?;
    let memory = answer.memory_stats.as_ref();
    Some(Sample {
        cpu: Duration::from_nanos(usage.total_usage?),
        memory_bytes: memory.map_or(0, used_memory),
    })
}

fn sort_labels(labels: Option<HashMap<String, String>>) -> BTreeMap<String, String> {
    labels.unwrap_or_default().into_iter().collect()
}

fn addresses(
    networks: Option<HashMap<String, EndpointSettings>>,
) -> BTreeMap<String, Option<String>> {
    networks
        .unwrap_or_default()
        .into_iter()
        .map(|(name, endpoint)| {
            let address = endpoint.ip_address.filter(|address| !address.is_empty());
            (name, address)
        })
        .collect()
}

/// Reads a moment; the engine's word for "never" is the first day of the year 1.
fn moment(text: Option<&str>) -> Result<Option<Timestamp>, EngineError> {
    match text {
        None | Some("") => Ok(None),
        Some(text) => {
            let moment = Timestamp::parse_rfc3339(text)
                .ok_or_else(|| EngineError::Internal(format!("{text:?} is not a moment")))?;
            Ok(Some(moment).filter(|moment| moment.as_millis() > 0))
        }
    }
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
