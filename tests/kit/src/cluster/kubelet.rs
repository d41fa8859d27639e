//! A kubelet: every Pod runs and is ready after a while, and ends when it is deleted. A Pod with a deadline is an errand: it ends by
//! itself, and has found nothing.

use std::sync::Arc;

use schema::clock::{Clock, SystemClock};
use serde_json::{Value, json};

use super::Shared;
use super::store::Stored;

/// Lets a Pod run.
pub(crate) fn start_pod(shared: &Arc<Shared>, pod: &Arc<Stored>) {
    let (shared, pod) = (Arc::clone(shared), Arc::clone(pod));
    shared.clone().tasks.spawn(async move {
        tokio::time::sleep(shared.manner.start).await;
        let now = SystemClock.now().to_rfc3339();
        let image = pod.value()["spec"]["containers"][0]["image"].clone();
        let number = pod.revision;
        let mut patch = json!({
            "metadata": { "uid": pod.uid },
            "spec": { "nodeName": format!("node-{}", number % 30) },
            "status": {
                "phase": "Running", "startTime": now,
                "podIP": format!("10.{}.{}.{}", 64 + number / 65536 % 64, number / 256 % 256, number % 256),
                "conditions": [
                    { "type": "PodScheduled", "status": "True", "lastTransitionTime": now },
                    { "type": "Ready", "status": "True", "lastTransitionTime": now },
                ],
                "containerStatuses": [{
                    "name": "agent", "ready": true, "started": true, "restartCount": 0, "image": image, "imageID": image,
                    "containerID": format!("containerd://{}", pod.uid), "state": { "running": { "startedAt": now } },
                }],
            },
        });
        if pod.value()["spec"]["activeDeadlineSeconds"].is_number() {
            patch["status"] = end_of_errand(&now);
        }
        // A Pod that is gone by now needs no start.
        drop(shared.store.patch(&pod.key, &patch));
    });
}

fn end_of_errand(now: &str) -> Value {
    let ended = json!({ "exitCode": 0, "message": "{}", "reason": "Completed", "startedAt": now, "finishedAt": now });
    json!({ "phase": "Succeeded", "containerStatuses": [{
        "name": "errand", "ready": false, "restartCount": 0, "image": "", "imageID": "", "state": { "terminated": ended },
    }]})
}

/// Ends a Pod whose deletion was asked for.
pub(crate) fn end_pod(shared: &Arc<Shared>, pod: &Arc<Stored>) {
    let (shared, pod) = (Arc::clone(shared), Arc::clone(pod));
    shared.clone().tasks.spawn(async move {
        let now = SystemClock.now().to_rfc3339();
        let ended = json!({
            "metadata": { "uid": pod.uid },
            "status": { "phase": "Failed", "containerStatuses": [{
                "name": "agent", "ready": false, "restartCount": 0, "image": "", "imageID": "",
                "state": { "terminated": { "exitCode": 143, "reason": "Error", "startedAt": now, "finishedAt": now } },
            }]},
        });
        drop(shared.store.patch(&pod.key, &ended));
        shared.store.finish(&pod.key, &pod.uid);
    });
}
