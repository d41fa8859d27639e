use engine::{ContainerDetails, ContainerState};
use schema::condition::Reason;
use schema::ids::Timestamp;
use schema::live;
use serde_json::{Value, json};

use super::{agent_status, id, merge, pod, settings, template_of};
use crate::names::{LAST_RUN, STARTED};
use crate::run::Run;
use crate::state::{self, Loss, Template};

pub(super) const START: &str = "2026-01-01T00:01:00Z";

fn time(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}

pub(super) fn details(annotations: &[(&str, &str)], patch: Option<Value>) -> ContainerDetails {
    details_at(annotations, patch, "2026-01-01T00:02:00Z")
}

pub(super) fn details_at(
    annotations: &[(&str, &str)],
    patch: Option<Value>,
    now: &str,
) -> ContainerDetails {
    let template = template_of(&settings(), annotations);
    let pod = patch.map(|patch| pod(&template, patch));
    state::details(&template, pod.as_ref(), &[], time(now)).unwrap()
}

#[test]
fn template_that_was_never_started_is_created() {
    let seen = details(&[], None);
    assert_eq!(seen.container.state, ContainerState::Created);
    assert_eq!(seen.container.id, id().to_string());
    assert_eq!(seen.container.name, "agentyard-Alice_B");
    assert_eq!(seen.container.labels, settings().labels);
    assert_eq!(seen.container.image_id, settings().image);
    assert_eq!(
        (seen.started_at, seen.exit_code, seen.loss),
        (None, None, None)
    );
}

#[test]
fn pending_pod_is_starting() {
    let seen = details(
        &[(STARTED, START)],
        Some(json!({ "status": { "phase": "Pending" } })),
    );
    assert_eq!(seen.container.state, ContainerState::Starting);
    assert_eq!(seen.container.networks[&settings().network], None);
    assert_eq!((seen.started_at, seen.exit_code), (None, None));
}

#[test]
fn running_agent_has_address_and_start() {
    let running = json!({ "running": { "startedAt": "2026-01-01T00:01:02Z" } });
    let seen = details(&[(STARTED, START)], Some(agent_status("Running", running)));
    assert_eq!(seen.container.state, ContainerState::Running);
    assert_eq!(
        seen.container.networks[&settings().network].as_deref(),
        Some("10.0.0.9")
    );
    assert_eq!(seen.started_at, Some(time("2026-01-01T00:01:02Z")));
    assert_eq!((seen.container.ready, seen.exit_code), (Some(false), None));
}

#[test]
fn readiness_is_told_where_the_pod_has_a_probe() {
    let template = template_of(&settings(), &[(STARTED, START)]);
    let mut running = agent_status("Running", json!({ "running": {} }));
    let mut containers =
        serde_json::to_value(&template.template.clone().unwrap().spec.unwrap().containers).unwrap();
    containers[0]["readinessProbe"] = json!({ "tcpSocket": { "port": 1 } });
    merge(
        &mut running,
        json!({ "spec": { "containers": containers } }),
    );
    let seen =
        |patch| state::details(&template, Some(&pod(&template, patch)), &[], time(START)).unwrap();
    assert_eq!(seen(running.clone()).container.ready, Some(false));
    running["status"]["containerStatuses"][1]["ready"] = json!(true);
    assert_eq!(seen(running).container.ready, Some(true));
}

#[rstest::rstest]
#[case("Completed", 0, false)]
#[case("Error", 3, false)]
#[case("OOMKilled", 137, true)]
fn exit_is_told_with_code_and_times(#[case] reason: &str, #[case] code: i64, #[case] oom: bool) {
    let ended = json!({ "terminated": {
        "exitCode": code, "reason": reason,
        "startedAt": "2026-01-01T00:01:02Z", "finishedAt": "2026-01-01T00:01:09Z",
    }});
    let seen = details(&[(STARTED, START)], Some(agent_status("Failed", ended)));
    assert_eq!(seen.container.state, ContainerState::Exited);
    assert_eq!(
        (seen.exit_code, seen.oom_killed, seen.loss),
        (Some(code), oom, None)
    );
    assert_eq!(seen.started_at, Some(time("2026-01-01T00:01:02Z")));
    assert_eq!(seen.finished_at, Some(time("2026-01-01T00:01:09Z")));
    assert_eq!(seen.container.networks[&settings().network], None);
}

#[test]
fn program_that_does_not_exist_is_an_exit_with_an_error() {
    let ended = json!({ "terminated": {
        "exitCode": 128, "reason": "StartError", "message": "exec: \"/x\": no such file",
        "startedAt": "1970-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:01:09Z",
    }});
    let seen = details(&[(STARTED, START)], Some(agent_status("Failed", ended)));
    assert_eq!(
        (seen.container.state, seen.exit_code),
        (ContainerState::Exited, Some(128))
    );
    assert_eq!(
        (seen.started_at, seen.error.as_str()),
        (None, "exec: \"/x\": no such file")
    );
}

#[test]
fn container_that_is_not_created_has_an_error() {
    let waiting = json!({ "waiting": { "reason": "CreateContainerError", "message": "no" } });
    let seen = details(&[(STARTED, START)], Some(agent_status("Pending", waiting)));
    assert_eq!(seen.container.state, ContainerState::Created);
    assert_eq!(
        (seen.error.as_str(), seen.exit_code),
        ("CreateContainerError: no", None)
    );
}

#[test]
fn evicted_pod_is_an_end_with_a_loss() {
    let patch = json!({ "status": {
        "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory.",
        "startTime": "2026-01-01T00:01:00Z",
    }});
    let seen = details(&[(STARTED, START)], Some(patch));
    assert_eq!(seen.container.state, ContainerState::Exited);
    assert_eq!(
        (seen.loss, seen.exit_code),
        (Some(live::Loss::Evicted), None)
    );
    assert_eq!(seen.finished_at, Some(time("2026-01-01T00:01:00Z")));
}

#[test]
fn last_run_is_told_after_the_pod_is_gone() {
    let run = Run {
        started_at: Some(time("2026-01-01T00:01:02Z")),
        finished_at: Some(time("2026-01-01T00:01:09Z")),
        exit_code: Some(0),
        ..Run::default()
    };
    let text = serde_json::to_string(&run).unwrap();
    let seen = details(&[(STARTED, START), (LAST_RUN, &text)], None);
    assert_eq!(seen.container.state, ContainerState::Exited);
    assert_eq!((seen.exit_code, seen.loss), (Some(0), None));
    assert_eq!(seen.finished_at, run.finished_at);
    let template = template_of(&settings(), &[(STARTED, START), (LAST_RUN, &text)]);
    assert_eq!(
        Template::of(&template.metadata).unwrap().last_run,
        Some(run)
    );
}

#[test]
fn pod_that_is_gone_without_a_trace_was_removed() {
    let seen = details(&[(STARTED, START)], None);
    assert_eq!(seen.container.state, ContainerState::Exited);
    assert_eq!(
        (seen.loss, seen.exit_code),
        (Some(live::Loss::Removed), None)
    );
}

#[test]
fn end_that_is_not_confirmed_is_a_lost_node() {
    let mut patch = agent_status("Running", json!({ "running": {} }));
    let ending = json!({
        "metadata": { "deletionTimestamp": "2026-01-01T00:01:30Z" }, "spec": { "nodeName": "n7" },
    });
    merge(&mut patch, ending);
    let soon = details_at(
        &[(STARTED, START)],
        Some(patch.clone()),
        "2026-01-01T00:02:00Z",
    );
    assert_eq!(
        (soon.container.state, soon.container.waiting),
        (ContainerState::Removing, None)
    );
    let late = details_at(&[(STARTED, START)], Some(patch), "2026-01-01T00:03:00Z");
    let waiting = late.container.waiting.unwrap();
    assert_eq!(waiting.reason, Reason::NodeLost);
    assert!(waiting.message.contains("n7"), "{}", waiting.message);
}

#[rstest::rstest]
#[case::by_itself(Some(3), true, None)]
#[case::by_hand(Some(143), false, Some(Loss::Removed))]
#[case::unseen(None, false, Some(Loss::Removed))]
fn deletion_by_hand_is_told_from_an_exit(
    #[case] exit_code: Option<i64>,
    #[case] by_itself: bool,
    #[case] expected: Option<Loss>,
) {
    let finished_at = exit_code.map(|_| time("2026-01-01T00:01:09Z"));
    let run = Run {
        exit_code,
        finished_at,
        ..Run::default()
    };
    let now = time("2026-01-01T00:05:00Z");
    let gone = run.end_gone(by_itself, now);
    assert_eq!((gone.loss, gone.exit_code), (expected, exit_code));
    assert_eq!(gone.finished_at, finished_at.or(Some(now)));
}

#[test]
fn object_of_another_program_is_no_container() {
    let mut template = template_of(&settings(), &[]);
    template.metadata.annotations = None;
    assert_eq!(Template::of(&template.metadata), None);
}
