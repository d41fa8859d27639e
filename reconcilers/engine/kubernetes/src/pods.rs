//! Errands: Pods that run the service's own program once, and what they say at their end.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::EngineError;
use k8s_openapi::api::core::v1::{
    Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod, PodSecurityContext, PodSpec,
    ResourceRequirements, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt;
use kube::api::{ListParams, ObjectMeta, PostParams};
use schema::ids::Uid;
use tokio::time::Instant;

use super::closed::restricted_context;
use super::convert::runtime_default;
use super::failure::ignore_missing;
use super::left_over::remove_pod;
use super::names::{ERRAND, MANAGED_BY, OWNER, label_value};
use super::options::Options;
use super::reason::{self, MESSAGE_LIMIT, Progress, shorten_text};
use super::{KubernetesEngine, pod};

/// Name of the container.
const CONTAINER: &str = "errand";
/// Longest time of an errand, the pull of the service's image included.
const LIMIT: Duration = Duration::from_secs(90);
/// The same for the cluster, which ends a Pod that the service does not wait for any more.
const LIMIT_SECONDS: i64 = 120;
/// Time between two looks at its Pod.
const LOOK: Duration = Duration::from_millis(500);
/// Most Pods of earlier errands that are removed at once.
const LEFT_OVER: u32 = 50;
/// User and group of errands where the service is root itself, or has no user that is known.
const ERRAND_USER: u32 = 65532;
/// Variable of errands: the address of their node.
pub(crate) const NODE: &str = "AGENTYARD_NODE";

/// A program to run in a Pod of its own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Errand {
    /// Word for it, in names and labels.
    pub(crate) kind: &'static str,
    /// Labels of its Pod besides.
    pub(crate) labels: BTreeMap<String, String>,
    /// Arguments of the program.
    pub(crate) args: Vec<String>,
    /// The claim that it sees, as the cluster names it, with the mount in its container.
    pub(crate) mount: Option<(String, VolumeMount)>,
}

/// The end of an errand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) exit_code: i32,
    pub(crate) message: String,
}

/// The Pod of an errand of `owner`, which runs as the user and group `ids`. Pure.
pub(crate) fn errand_pod(
    errand: &Errand,
    owner: &str,
    name: &str,
    ids: (u32, u32),
    options: &Options,
) -> Pod {
    let base = options.pods.overlay.clone();
    let base_metadata = base.metadata.unwrap_or_default();
    let base_spec = base.spec.unwrap_or_default();
    let mut labels = base_metadata.labels.unwrap_or_default();
    labels.extend([
        (OWNER.to_owned(), label_value(owner)),
        (ERRAND.to_owned(), errand.kind.to_owned()),
        (MANAGED_BY.to_owned(), "agentyard".to_owned()),
    ]);
    labels.extend(errand.labels.clone());
    let (volume, mount) = errand.mount.clone().unzip();
    let volume = volume.map(|claim| Volume {
        name: "claim".to_owned(),
        persistent_volume_claim: Some(
            k8s_openapi::api::core::v1::PersistentVolumeClaimVolumeSource {
                claim_name: claim,
                read_only: None,
            },
        ),
        ..Volume::default()
    });
    Pod {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels),
            annotations: base_metadata.annotations,
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            containers: vec![container(errand, mount, ids, options)],
            init_containers: None,
            ephemeral_containers: None,
            volumes: volume.map(|volume| vec![volume]),
            active_deadline_seconds: Some(LIMIT_SECONDS),
            termination_grace_period_seconds: Some(0),
            restart_policy: Some("Never".to_owned()),
            service_account_name: options.pods.service_account.clone(),
            service_account: None,
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            host_network: None,
            host_pid: None,
            host_ipc: None,
            security_context: Some(PodSecurityContext {
                seccomp_profile: Some(runtime_default()),
                fs_group: None,
                ..PodSecurityContext::default()
            }),
            ..base_spec
        }),
        status: None,
    }
}

fn container(
    errand: &Errand,
    mount: Option<VolumeMount>,
    (user, group): (u32, u32),
    options: &Options,
) -> Container {
    let amounts = |cpu: &str, memory: &str| {
        let amounts = [("cpu", cpu), ("memory", memory)];
        let owned = amounts.map(|(name, much)| (name.to_owned(), Quantity(much.to_owned())));
        Some(BTreeMap::from(owned))
    };
    Container {
        name: CONTAINER.to_owned(),
        image: Some(options.image.clone()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        command: Some(vec![options.program.clone()]),
        args: Some(errand.args.clone()),
        env: Some(vec![EnvVar {
            name: NODE.to_owned(),
            value: None,
            value_from: Some(EnvVarSource {
                field_ref: Some(ObjectFieldSelector {
                    api_version: None,
                    field_path: "status.hostIP".to_owned(),
                }),
                ..EnvVarSource::default()
            }),
        }]),
        resources: Some(ResourceRequirements {
            claims: None,
            requests: amounts("1m", "8Mi"),
            limits: amounts("200m", "128Mi"),
        }),
        termination_message_path: Some(pod::MESSAGE.to_owned()),
        volume_mounts: mount.map(|mount| vec![mount]),
        security_context: Some(restricted_context((Some(user.into()), Some(group.into())))),
        ..Container::default()
    }
}

/// The end of an errand; `None`: it has not come yet. Pure.
fn report(pod: &Pod) -> Option<Report> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let status = statuses.iter().find(|it| it.name == CONTAINER)?;
    let ended = status.state.as_ref()?.terminated.as_ref()?;
    Some(Report {
        exit_code: ended.exit_code,
        message: ended.message.clone().unwrap_or_default(),
    })
}

/// Cause for which an errand has not ended. Pure.
fn hindrance(pod: &Pod) -> String {
    let status = pod.status.clone().unwrap_or_default();
    let statuses = status.container_statuses.iter().flatten();
    let waiting = statuses.filter_map(|status| status.state.as_ref()?.waiting.as_ref());
    let mut errors = waiting.filter_map(reason::image_error);
    if let Some(error) = errors.next() {
        return error.message;
    }
    match reason::progress(pod) {
        Progress::Waiting(Some(waiting)) => waiting.message,
        Progress::Ended => {
            let words = status.message.or(status.reason).unwrap_or_default();
            shorten_text(&words, MESSAGE_LIMIT)
        }
        Progress::NotStarted(why) => why,
        Progress::Waiting(None) | Progress::Running => String::new(),
    }
}

impl KubernetesEngine {
    /// Runs an errand to its end.
    ///
    /// # Errors
    /// [`EngineError::Internal`]: its Pod did not run; other errors are those of the calls.
    pub(crate) async fn run_errand(&self, errand: &Errand) -> Result<Report, EngineError> {
        self.remove_errands(errand.kind).await?;
        let random = Uid::random();
        let random = random.as_str().get(..8).unwrap_or_default();
        let name = format!("agentyard-{}-{random}", errand.kind);
        let pod = errand_pod(errand, &self.owner, &name, own_ids().await, &self.options);
        let params = PostParams::default();
        let creating = self.cluster.pods.create(&params, &pod);
        let made = self.cluster.write(creating).await?;
        let report = self.await_report(&name).await;
        let uid = made.metadata.uid.unwrap_or_default();
        let removed = remove_pod(&self.cluster, &name, &uid).await;
        let report = report?;
        removed.map(|()| report)
    }

    async fn await_report(&self, name: &str) -> Result<Report, EngineError> {
        let begun = Instant::now();
        loop {
            tokio::time::sleep(LOOK).await;
            let read = self.cluster.read(self.cluster.pods.get(name)).await;
            let failed = |why: &str| {
                let why = match why {
                    "" => "its Pod did not end in time",
                    why => why,
                };
                EngineError::Internal(format!("the Pod {name} of the service did not run: {why}"))
            };
            let Some(pod) = ignore_missing(read)? else {
                return Err(failed("it was removed"));
            };
            if let Some(report) = report(&pod) {
                return Ok(report);
            }
            let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
            let is_over = matches!(phase, Some("Failed" | "Succeeded"));
            if is_over || begun.elapsed() >= LIMIT {
                return Err(failed(&hindrance(&pod)));
            }
        }
    }

    /// Pods of errands that were cut short.
    pub(crate) async fn errands(&self, kind: &str) -> Result<Vec<Pod>, EngineError> {
        let owner = label_value(&self.owner);
        let selector = format!("{OWNER}={owner},{ERRAND}={kind}");
        let params = ListParams::default().labels(&selector).limit(LEFT_OVER);
        let listed = self.cluster.read(self.cluster.pods.list(&params)).await?;
        let stays = |pod: &Pod| pod.metadata.deletion_timestamp.is_none();
        Ok(listed.items.into_iter().filter(stays).collect())
    }

    /// Removes them.
    pub(crate) async fn remove_errands(&self, kind: &str) -> Result<(), EngineError> {
        for pod in self.errands(kind).await? {
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            remove_pod(&self.cluster, &pod.name_any(), &uid).await?;
        }
        Ok(())
    }
}

/// User and group of the service, which its files belong to.
async fn own_ids() -> (u32, u32) {
    use std::os::unix::fs::MetadataExt;
    match tokio::fs::metadata("/proc/self").await {
        Ok(own) if own.uid() != 0 => (own.uid(), own.gid()),
        _ => (ERRAND_USER, ERRAND_USER),
    }
}
