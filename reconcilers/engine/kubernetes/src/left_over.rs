//! Pods of pulls and errands that a service which was killed has left.

use std::time::Duration;

use engine::EngineError;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use schema::ids::Timestamp;
use tracing::debug;

use super::client::Cluster;
use super::failure::ignore_missing;
use super::names::{ERRAND, OWNER, PULL, UID, label_value};
use super::puller::LONGEST_SECONDS;
use super::state::moment;
use super::{KubernetesEngine, objects};

/// Time between two looks.
const INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Age at which no service waits for such a Pod any more.
const AGE: Duration = Duration::from_secs(LONGEST_SECONDS.unsigned_abs() + 600);
/// Most Pods that are removed at once.
const MOST: u32 = 500;

/// Removes a Pod without waiting for its process: none of an agent runs in it.
pub(crate) async fn remove_pod(
    cluster: &Cluster,
    name: &str,
    uid: &str,
) -> Result<(), EngineError> {
    let params = DeleteParams {
        grace_period_seconds: Some(0),
        ..objects::delete_params(uid)
    };
    match cluster.write(cluster.pods.delete(name, &params)).await {
        // Gone, and another one has its name.
        Err(EngineError::Conflict(_)) => Ok(()),
        removed => ignore_missing(removed).map(drop),
    }
}

/// Returns true for a Pod of a pull or an errand that is older than any of them lasts. Pure.
fn is_left_over(pod: &Pod, now: Timestamp) -> bool {
    let labels = pod.labels();
    let created = pod.metadata.creation_timestamp.as_ref().map(moment);
    (labels.contains_key(PULL) || labels.contains_key(ERRAND))
        && created.is_some_and(|created| now.since(created) > AGE)
}

impl KubernetesEngine {
    /// Removes, for ever, Pods that no service waits for any more.
    pub(crate) async fn remove_left_over_pods(&self) {
        loop {
            if let Err(error) = self.remove_old_pods().await {
                let why = schema::error::chain(&error);
                debug!(why, "Pods that were left over cannot be removed yet");
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    async fn remove_old_pods(&self) -> Result<(), EngineError> {
        let selector = format!("{OWNER}={},!{UID}", label_value(&self.owner));
        let params = ListParams::default().labels(&selector).limit(MOST);
        let pods = self.cluster.read(self.cluster.pods.list(&params)).await?;
        let now = self.clock.now();
        for pod in pods.items.iter().filter(|pod| is_left_over(pod, now)) {
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            remove_pod(&self.cluster, &pod.name_any(), &uid).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[rstest::rstest]
    #[case(PULL, 41, true)]
    #[case(ERRAND, 41, true)]
    #[case(PULL, 39, false)]
    #[case(UID, 41, false)]
    fn pod_of_a_pull_is_left_over_once_it_is_old(
        #[case] label: &str,
        #[case] minutes: u64,
        #[case] expected: bool,
    ) {
        let created = Timestamp::parse_rfc3339("2026-01-01T00:00:00Z").unwrap();
        let pod: Pod = serde_json::from_value(json!({
            "metadata": { "creationTimestamp": "2026-01-01T00:00:00Z", "labels": { label: "x" } }
        }))
        .unwrap();
        let now = created.plus(Duration::from_secs(minutes * 60));
        assert_eq!(is_left_over(&pod, now), expected);
    }
}
