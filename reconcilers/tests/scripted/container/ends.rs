//! Replacements that do not last, and what is kept of containers that ended.

use std::time::Duration;

use engine::EngineError;
use reconcilers::container::ContainerReconciler;
use reconcilers::container::observe::World;
use reconcilers::runtime::{Purpose, Reconciler, Requeue};
use schema::condition::{Condition, ConditionStatus, Reason};
use schema::container::{self, ContainerEnd};
use schema::ids::Uid;

use super::support::{Pass, Yard, reason};
use kit::engine::Verb;

const NAME: &str = "agentyard-alice";
const KEPT: &str =
    "running and ready; the previous container is kept until this one has been ready for 10 s";

fn second(number: u64) -> Duration {
    Duration::from_secs(number)
}

async fn pass(yard: &mut Yard, uid: &Uid) -> Pass {
    let _ = yard.service.container.keys().await.unwrap();
    yard.pass(uid).await.unwrap().unwrap()
}

async fn passes_until(yard: &mut Yard, uid: &Uid, fits: impl Fn(&Condition) -> bool) -> Pass {
    let mut last = None;
    for _ in 0..30 {
        let pass = pass(yard, uid).await;
        if pass.condition.as_ref().is_some_and(&fits) {
            return pass;
        }
        last = Some(pass);
    }
    panic!("{last:?}");
}

async fn ends(yard: &Yard, uid: &Uid) -> Vec<ContainerEnd> {
    let mut connection = yard.db.read().await.unwrap();
    container::list_ends(&mut connection, uid).await.unwrap()
}

/// A user whose replacement is ready, and the id of the previous container.
async fn replaced() -> (Yard, Uid, String) {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    let first = yard.fake.container(NAME).unwrap().container.id;
    yard.set_limit(&uid, 256).await;
    let ready = |condition: &Condition| condition.status == ConditionStatus::True;
    let served = passes_until(&mut yard, &uid, ready).await;
    let condition = served.condition.unwrap();
    assert_eq!(
        (condition.reason, &*condition.message),
        (Reason::Running, KEPT)
    );
    assert_eq!(served.requeue, Requeue::After(second(10)));
    (yard, uid, first)
}

#[tokio::test]
async fn previous_container_is_kept_for_min_ready() {
    let (mut yard, uid, first) = replaced().await;
    for (waits, left) in [(4, 6), (5, 1)] {
        yard.clock.advance(second(waits));
        // Nothing of it is lost with the service.
        yard.reboot();
        let kept = pass(&mut yard, &uid).await;
        assert_eq!(
            (kept.acted, kept.requeue),
            (0, Requeue::After(second(left)))
        );
        assert!(yard.fake.container(&first).is_some());
    }
    yard.clock.advance(second(1));
    let tidied = pass(&mut yard, &uid).await;
    assert_eq!(tidied.steps.len(), 1, "{:?}", tidied.steps);
    assert_eq!(tidied.condition.unwrap().status, ConditionStatus::True);
    assert_eq!(yard.names(), [NAME]);
    yard.assert_nothing_to_do(&uid).await;
    assert_eq!(ends(&yard, &uid).await, []);
}

#[tokio::test]
async fn replacement_that_ends_after_it_was_ready_is_put_back() {
    let (mut yard, uid, first) = replaced().await;
    yard.clock.advance(second(5));
    yard.fake.hand_log(NAME, true, "cannot connect").unwrap();
    yard.fake.hand_exit(NAME, 1).unwrap();
    yard.reboot();
    let failed = |condition: &Condition| condition.reason == Reason::ReplacementFailed;
    let failed = passes_until(&mut yard, &uid, failed).await;
    let cause = "the replacement ended with exit code 1, 5 s after it was ready";
    let message =
        format!("the previous container runs, since {cause}; end of its log: cannot connect");
    assert_eq!(failed.condition.unwrap().message, message);
    assert_eq!(yard.fake.container(NAME).unwrap().container.id, first);
    assert_eq!(yard.fake.running(), [NAME]);
    let end = ContainerEnd {
        at: yard.now(),
        exit_code: Some(1),
        cause: cause.to_owned(),
        log: "cannot connect".to_owned(),
    };
    assert_eq!(ends(&yard, &uid).await, [end]);
}

#[tokio::test]
async fn replacement_that_stops_answering_is_judged_as_never_ready() {
    let (yard, uid, _) = replaced().await;
    let observed = yard.service.container.observe(&uid, Purpose::DryRun).await;
    let mut snapshot = observed.unwrap().unwrap();
    let World::Seen(seen) = &mut snapshot.world else {
        panic!("{snapshot:?}");
    };
    (seen.ready, seen.readiness_timeout) = (Some(false), second(60));
    // It may answer again: its time begins anew.
    let plan = ContainerReconciler::plan(&snapshot, yard.now());
    assert_eq!(plan.actions.len(), 1, "{plan:?}");
    assert_eq!(plan.conditions[0].status, ConditionStatus::False);
    let World::Seen(seen) = &mut snapshot.world else {
        panic!("{snapshot:?}");
    };
    seen.waited = second(60);
    let plan = ContainerReconciler::plan(&snapshot, yard.now());
    let steps: Vec<String> = plan.actions.iter().map(ToString::to_string).collect();
    assert!(
        steps.iter().any(|step| step.starts_with("rename")),
        "{steps:?}"
    );
}

#[tokio::test]
async fn end_of_a_container_keeps_its_cause_and_last_lines() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    yard.clock.advance(second(60));
    for line in ["one", "two"] {
        yard.fake.hand_log(NAME, false, line).unwrap();
    }
    yard.fake.hand_oom_kill(NAME).unwrap();
    yard.event(&uid);
    yard.fake.reset_calls();
    let noted = pass(&mut yard, &uid).await;
    let sentence = "the container ended with exit code 137, out of memory";
    assert_eq!(
        noted.steps,
        [format!("{sentence}; end of its log: one | two")]
    );
    assert_eq!(noted.condition.unwrap().message, sentence);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    yard.assert_nothing_to_do(&uid).await;
    assert_eq!(yard.fake.calls().of(Verb::Logs), 0, "once for each end");
    let kept = ends(&yard, &uid).await;
    assert_eq!((kept.len(), kept[0].exit_code), (1, Some(137)));
    assert_eq!(kept[0].cause, "exit code 137, out of memory");
    assert_eq!(kept[0].log, "one\ntwo");

    yard.clock.advance(second(60));
    yard.fake.hand_remove(NAME).unwrap();
    yard.event(&uid);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    let kept = ends(&yard, &uid).await;
    assert_eq!((kept.len(), &*kept[0].cause), (2, "removed by hand"));
}

#[tokio::test]
async fn end_whose_log_cannot_be_read_is_noted() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    let lost = || EngineError::Refused("no such log driver".to_owned());
    yard.fake.fail_next(Verb::Logs, 9, lost);
    yard.fake.hand_exit(NAME, 143).unwrap();
    yard.event(&uid);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    let kept = ends(&yard, &uid).await;
    assert_eq!(kept[0].cause, "exit code 143 (SIGTERM)");
    assert_eq!((kept.len(), &*kept[0].log), (1, ""));
}

#[tokio::test]
async fn end_before_a_fresh_container_is_noted() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    yard.fake.hand_exit(NAME, 2).unwrap();
    yard.restart(&uid, "again").await;
    yard.event(&uid);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    // What the service stops itself was asked for.
    yard.restart(&uid, "once more").await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    let kept = ends(&yard, &uid).await;
    assert_eq!((kept.len(), &*kept[0].cause), (1, "exit code 2"));
}

#[tokio::test]
async fn container_that_never_starts_again_is_recreated() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    let first = yard.fake.container(NAME).unwrap().container.id;
    let broken = || EngineError::Internal("failed to start shim: file exists".to_owned());
    yard.fake.fail_next(Verb::Start, 3, broken);
    yard.fake.hand_exit(NAME, 255).unwrap();
    let mut failed = Vec::new();
    for _ in 0..20 {
        yard.event(&uid);
        let pass = pass(&mut yard, &uid).await;
        failed.extend(pass.error);
        yard.clock.advance(second(60));
    }
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert_eq!(failed.len(), 3, "{failed:?}");
    assert_ne!(yard.fake.container(NAME).unwrap().container.id, first);
    let kept = ends(&yard, &uid).await;
    assert_eq!(kept[0].cause, "not started by the engine in 3 attempts");
    // The count begins anew with the container that starts.
    yard.fake.fail_next(Verb::Start, 2, broken);
    let second_id = yard.fake.container(NAME).unwrap().container.id;
    yard.clock.advance(second(3600));
    yard.fake.hand_exit(NAME, 255).unwrap();
    for _ in 0..20 {
        yard.event(&uid);
        pass(&mut yard, &uid).await;
        yard.clock.advance(second(60));
    }
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert_eq!(yard.fake.container(NAME).unwrap().container.id, second_id);
}

/// Lets the engine go away, end all containers and come back.
async fn stop_engine(yard: &Yard) {
    yard.fake.set_unavailable(true);
    let _ = yard.service.container.keys().await.unwrap();
    yard.clock.advance(second(5));
    yard.fake.restart_engine();
    yard.clock.advance(second(5));
    yard.fake.set_unavailable(false);
}

#[tokio::test]
async fn end_with_the_engine_is_no_crash() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    for expected in 1..=3 {
        yard.clock.advance(second(20));
        stop_engine(&yard).await;
        let noted = pass(&mut yard, &uid).await;
        assert_eq!(noted.steps, ["the container ended with the engine"]);
        assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
        let kept = ends(&yard, &uid).await;
        assert_eq!((kept.len(), kept[0].exit_code), (expected, Some(137)));
        assert_eq!(kept[0].cause, "the container ended with the engine");
    }
    // What it does after the return is its own.
    yard.clock.advance(second(1));
    yard.fake.hand_exit(NAME, 1).unwrap();
    yard.event(&uid);
    let _ = pass(&mut yard, &uid).await;
    assert_eq!(ends(&yard, &uid).await[0].cause, "exit code 1");
    let mut connection = yard.db.read().await.unwrap();
    let row = container::get(&mut connection, &uid).await.unwrap();
    assert_eq!(row.unwrap().facts.crash_count, 1);
}

#[tokio::test]
async fn replacement_that_ends_with_the_engine_starts_again() {
    let (mut yard, uid, first) = replaced().await;
    yard.clock.advance(second(5));
    stop_engine(&yard).await;
    let ready = |condition: &Condition| condition.status == ConditionStatus::True;
    passes_until(&mut yard, &uid, ready).await;
    assert_ne!(yard.fake.container(NAME).unwrap().container.id, first);
    assert_eq!(yard.fake.running(), [NAME]);
    assert_eq!(ends(&yard, &uid).await, []);
}
