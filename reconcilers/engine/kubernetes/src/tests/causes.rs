use k8s_openapi::api::core::v1::Event;
use schema::condition::Reason;
use serde_json::{Value, json};

use super::{agent_status, merge, pod, settings, template_of};
use crate::reason::{self, Progress};
use crate::state::Loss;

fn progress(patch: Value) -> Progress {
    reason::progress(&pod(&template_of(&settings(), &[]), patch))
}

fn unscheduled(reason: &str, message: &str) -> Value {
    json!({ "status": { "phase": "Pending", "conditions": [
        { "type": "PodScheduled", "status": "False", "reason": reason, "message": message },
    ]}})
}

#[rstest::rstest]
#[case(
    "Unschedulable",
    "0/5 nodes are available: 3 Insufficient memory.",
    Reason::Unschedulable
)]
#[case("SchedulingGated", "", Reason::Unschedulable)]
#[case(
    "Unschedulable",
    "pod has unbound immediate PersistentVolumeClaims.",
    Reason::VolumePending
)]
#[case(
    "Unschedulable",
    "persistentvolumeclaim \"data\" not found",
    Reason::VolumePending
)]
fn pod_without_a_node_says_why(
    #[case] kind: &str,
    #[case] message: &str,
    #[case] expected: Reason,
) {
    let Progress::Waiting(Some(waiting)) = progress(unscheduled(kind, message)) else {
        panic!("it waits");
    };
    assert_eq!(waiting.reason, expected);
    assert!(waiting.message.contains(message) && !waiting.message.is_empty());
}

#[rstest::rstest]
#[case(
    "pull access denied, repository does not exist or may require authorization",
    true
)]
#[case("unexpected status from HEAD request: 401 Unauthorized", true)]
#[case(
    "failed to authorize: failed to fetch oauth token: 403 Forbidden",
    true
)]
#[case("dial tcp 10.0.0.1:5000: connect: connection refused", false)]
fn registry_that_lets_no_node_in_names_the_pull_secrets(
    #[case] words: &str,
    #[case] is_told: bool,
) {
    let state = json!({ "waiting": { "reason": "ErrImagePull", "message": words } });
    let Progress::Waiting(Some(waiting)) = progress(agent_status("Pending", state)) else {
        panic!("it waits");
    };
    let remedy = "pods.overlay.spec.imagePullSecrets";
    assert!(waiting.message.contains(words), "{waiting:?}");
    assert_eq!(waiting.message.contains(remedy), is_told, "{waiting:?}");
}

#[rstest::rstest]
#[case("ErrImagePull")]
#[case("ImagePullBackOff")]
#[case("InvalidImageName")]
#[case("ErrImageNeverPull")]
#[case("SignatureValidationFailed")]
fn image_that_is_not_got_says_why(#[case] kind: &str) {
    let waiting = json!({ "waiting": { "reason": kind, "message": "not found" } });
    let Progress::Waiting(Some(waiting)) = progress(agent_status("Pending", waiting)) else {
        panic!("it waits");
    };
    assert_eq!(waiting.reason, Reason::ImagePullFailed);
    assert_eq!(waiting.message, format!("{kind}: not found"));
}

#[rstest::rstest]
#[case("CreateContainerConfigError")]
#[case("CreateContainerError")]
#[case("RunContainerError")]
fn container_that_is_not_created_says_why(#[case] kind: &str) {
    let waiting = json!({ "waiting": { "reason": kind, "message": "no such path" } });
    let expected = Progress::NotStarted(format!("{kind}: no such path"));
    assert_eq!(progress(agent_status("Pending", waiting)), expected);
}

#[rstest::rstest]
#[case("ContainerCreating")]
#[case("PodInitializing")]
fn container_on_its_way_has_no_cause(#[case] kind: &str) {
    let waiting = json!({ "waiting": { "reason": kind } });
    assert_eq!(
        progress(agent_status("Pending", waiting)),
        Progress::Waiting(None)
    );
}

#[test]
fn image_of_an_init_container_is_told() {
    let patch = json!({ "status": { "phase": "Pending", "initContainerStatuses": [
        { "name": "wait", "image": "w", "imageID": "", "ready": false, "restartCount": 0,
          "state": { "waiting": { "reason": "ImagePullBackOff" } } },
    ]}});
    let Progress::Waiting(Some(waiting)) = progress(patch) else {
        panic!("it waits");
    };
    assert_eq!(waiting.reason, Reason::ImagePullFailed);
}

#[test]
fn agents_container_alone_tells_the_progress() {
    assert_eq!(progress(json!({})), Progress::Waiting(None));
    let running = json!({ "running": { "startedAt": "2026-01-01T00:01:02Z" } });
    assert_eq!(
        progress(agent_status("Running", running)),
        Progress::Running
    );
    // The Pod runs on for the sidecar.
    let ended = json!({ "terminated": { "exitCode": 3 } });
    assert_eq!(
        progress(agent_status("Running", ended.clone())),
        Progress::Ended
    );
    assert_eq!(progress(agent_status("Failed", ended)), Progress::Ended);
    assert_eq!(
        progress(json!({ "status": { "phase": "Failed" } })),
        Progress::Ended
    );
}

#[rstest::rstest]
#[case("FailedMount", "MountVolume.SetUp failed", Some(Reason::VolumePending))]
#[case(
    "FailedAttachVolume",
    "Multi-Attach error",
    Some(Reason::VolumePending)
)]
#[case("FailedScheduling", "0/1 nodes", Some(Reason::Unschedulable))]
#[case("Pulling", "Pulling image \"a\"", Some(Reason::ImagePulling))]
#[case("Failed", "Failed to pull image \"a\"", Some(Reason::ImagePullFailed))]
#[case(
    "FailedCreatePodSandBox",
    "no address left",
    Some(Reason::Unschedulable)
)]
#[case("Scheduled", "Successfully assigned", None)]
#[case("Created", "Created container", None)]
fn newest_event_tells_the_cause(
    #[case] kind: &str,
    #[case] message: &str,
    #[case] expected: Option<Reason>,
) {
    let event = |kind: &str, message: &str, time: &str| -> Event {
        serde_json::from_value(json!({
            "metadata": {}, "involvedObject": {}, "reason": kind, "message": message, "lastTimestamp": time,
        }))
        .unwrap()
    };
    let events = [
        event(kind, message, "2026-01-01T00:00:02Z"),
        event("FailedMount", "an older one", "2026-01-01T00:00:01Z"),
    ];
    let waiting = reason::from_events(&events);
    assert_eq!(waiting.as_ref().map(|it| it.reason), expected);
    assert!(waiting.is_none_or(|it| it.message == message));
    assert_eq!(reason::from_events(&[]), None);
}

#[rstest::rstest]
#[case("Failed", "Evicted", None, Some(Loss::Evicted))]
#[case("Failed", "OutOfmemory", None, Some(Loss::Evicted))]
#[case("Failed", "NodeAffinity", None, Some(Loss::Evicted))]
#[case("Failed", "Terminated", None, Some(Loss::Evicted))]
#[case("Running", "", Some("EvictionByEvictionAPI"), Some(Loss::Evicted))]
#[case("Running", "", Some("PreemptionByScheduler"), Some(Loss::Evicted))]
#[case("Running", "NodeLost", None, Some(Loss::NodeLost))]
#[case("Failed", "", Some("DeletionByPodGC"), Some(Loss::NodeLost))]
#[case("Running", "", Some("DeletionByTaintManager"), Some(Loss::NodeLost))]
#[case("Failed", "", None, None)]
#[case("Failed", "DeadlineExceeded", None, None)]
#[case("Running", "", None, None)]
fn loss_is_told_from_an_end(
    #[case] phase: &str,
    #[case] kind: &str,
    #[case] disruption: Option<&str>,
    #[case] expected: Option<Loss>,
) {
    let mut patch = json!({ "status": { "phase": phase, "reason": kind } });
    if let Some(disruption) = disruption {
        let condition =
            json!({ "type": "DisruptionTarget", "status": "True", "reason": disruption });
        merge(&mut patch["status"], json!({ "conditions": [condition] }));
    }
    assert_eq!(
        reason::loss(&pod(&template_of(&settings(), &[]), patch)),
        expected
    );
}
