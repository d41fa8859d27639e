use schema::ids::Timestamp;
use schema::object::StatusRow;
use strum::VariantArray;

use super::*;
use crate::routes::test_support::{Yard, yard};

const LONG: Option<Duration> = Some(Duration::from_secs(20));

fn row(kind: Kind, generation: i64, observed: i64, conditions: Vec<Condition>) -> ObjectRow {
    ObjectRow {
        kind: kind.to_string(),
        uid: Uid::from("alice".to_owned()),
        name: "alice".to_owned(),
        generation: Generation(generation),
        paused: false,
        created_at: Timestamp::default(),
        deleted_at: None,
        status: StatusRow {
            observed_generation: Generation(observed),
            conditions,
            ..StatusRow::default()
        },
    }
}

fn container(observed: i64, condition: Condition) -> Option<ObjectRow> {
    Some(row(Kind::Container, 3, observed, vec![condition]))
}

fn change(generation: i64) -> Change {
    Change {
        kind: Kind::Container,
        uid: Uid::from("alice".to_owned()),
        name: "alice".to_owned(),
        generation: Generation(generation),
    }
}

fn reason(settled: Settled) -> Option<Reason> {
    match settled {
        Settled::Failed { reason, .. } => Some(reason),
        Settled::Converged | Settled::Pending(_) | Settled::Unavailable(_) | Settled::Paused(_) => {
            None
        }
    }
}

#[test]
fn l59_readiness_of_an_older_generation_is_not_ours() {
    let running = Condition::ready(Reason::Running, "");
    let old = judge(&change(3), container(2, running.clone()), &[]);
    assert_eq!(old, Settled::Pending(vec![running.clone()]));
    let ours = judge(&change(3), container(3, running), &[]);
    assert_eq!(ours, Settled::Converged);
}

#[test]
fn a_failure_of_an_older_generation_is_not_ours() {
    let missing = Condition::not_ready(Reason::ImageMissing, "no such image");
    assert_eq!(
        reason(judge(&change(3), container(2, missing.clone()), &[])),
        None
    );
    let settled = judge(&change(3), container(3, missing), &[]);
    assert_eq!(reason(settled), Some(Reason::ImageMissing));
}

#[test]
fn l33_an_engine_that_is_away_is_no_failure() {
    let away = Condition::unknown(Reason::EngineUnavailable, "connection refused");
    let settled = judge(&change(3), container(3, away.clone()), &[]);
    assert_eq!(settled, Settled::Unavailable(vec![away.clone()]));
    let stale = judge(&change(3), container(2, away.clone()), &[]);
    assert_eq!(stale, Settled::Pending(vec![away]));
}

#[track_caller]
fn assert_paused(settled: &Settled, first: &Condition) {
    let Settled::Paused(conditions) = settled else {
        panic!("{settled:?}");
    };
    assert_eq!((&conditions[0], conditions.len()), (first, 2));
    assert!(is_true(conditions, ConditionType::Paused));
    assert_eq!(conditions[1].reason, Reason::PausedByOperator);
}

#[test]
fn what_is_paused_or_deleted_is_not_waited_for() {
    let running = || Condition::ready(Reason::Running, "");
    for paused in ["*", "container"] {
        let settled = judge(&change(3), container(2, running()), &[paused.to_owned()]);
        assert_paused(&settled, &running());
    }
    let other = judge(&change(3), container(2, running()), &["user".to_owned()]);
    assert_eq!(reason(other), None);
    let mut paused = container(2, running());
    paused.as_mut().unwrap().paused = true;
    assert_paused(&judge(&change(3), paused, &[]), &running());
    assert_eq!(
        reason(judge(&change(3), None, &[])),
        Some(Reason::Terminating)
    );
}

#[test]
fn what_was_resumed_and_not_observed_since_is_under_way() {
    let said = Condition::unknown(Reason::PausedByOperator, "not observed while paused");
    let settled = judge(&change(3), container(3, said.clone()), &[]);
    assert_eq!(settled, Settled::Pending(vec![said.clone()]));
    let mut paused = container(3, said.clone());
    paused.as_mut().unwrap().paused = true;
    assert_paused(&judge(&change(3), paused, &[]), &said);
}

#[test]
fn a_removal_has_converged_when_the_user_is_purged() {
    let going = || Condition::not_ready(Reason::Terminating, "removing");
    let user = Some(row(Kind::User, 2, 2, vec![going()]));
    assert_eq!(judge_removal(None, vec![], &[]), Settled::Converged);
    let pending = judge_removal(user.clone(), Vec::from_iter(container(3, going())), &[]);
    assert_eq!(pending, Settled::Pending(vec![going()]));
    // The user waits for its container, so the container's failure is the removal's.
    let stuck = Condition::not_ready(Reason::Failed, "cannot remove the container");
    let settled = judge_removal(
        user.clone(),
        Vec::from_iter(container(3, stuck.clone())),
        &[],
    );
    assert_eq!(reason(settled), Some(Reason::Failed));
    // Of before the deletion.
    assert_eq!(
        reason(judge_removal(
            user,
            Vec::from_iter(container(2, stuck)),
            &[]
        )),
        None
    );
    let conflict = Condition::not_ready(Reason::HomeConflict, "not a directory");
    let user = Some(row(Kind::User, 2, 2, vec![conflict]));
    assert_eq!(
        reason(judge_removal(user, vec![], &[])),
        Some(Reason::HomeConflict)
    );
}

#[test]
fn every_failure_has_a_status_and_a_code() {
    for reason in Reason::VARIANTS
        .iter()
        .filter(|reason| reason.needs_action())
    {
        let error = failure(&change(1), *reason, "x".to_owned());
        let expected = match reason {
            Reason::ImageMissing
            | Reason::NeedsRoot
            | Reason::HostOpen
            | Reason::IsolationNotEnforced
            | Reason::InvalidSettings
            | Reason::NoMigrationPath
            | Reason::InvalidGlobalConfig
            | Reason::SkillMissing
            | Reason::AdapterInvalid => 422,
            Reason::NameConflict
            | Reason::HomeConflict
            | Reason::NetworkInUse
            | Reason::PausedByOperator
            | Reason::ImageInUse
            | Reason::InvalidUserConfig
            | Reason::RolloutPaused
            | Reason::MassRemoval
            | Reason::QuotaExceeded => 409,
            Reason::ImagePullFailed
            | Reason::PullFailed
            | Reason::AdapterSourceFailed
            | Reason::DirectoryFailed
            | Reason::ProviderFailed
            | Reason::CrashLoop
            | Reason::ReplacementFailed
            | Reason::CloneFailed
            | Reason::HostKeyChanged
            | Reason::RolloutFailed => 502,
            Reason::EngineTooOld
            | Reason::DataDirMismatch
            | Reason::NetworkFull
            | Reason::StorageFull
            | Reason::EngineForbidden
            | Reason::EngineQuota
            | Reason::Unschedulable
            | Reason::VolumePending
            | Reason::NodeLost => 503,
            Reason::Failed => 500,
            other => panic!("{other} needs a status"),
        };
        assert_eq!(error.status().as_u16(), expected, "{reason}");
    }
    assert_eq!(snake_case("ImagePullFailed"), "image_pull_failed");
    assert_eq!(snake_case("NeedsRoot"), "needs_root");
}

/// Saves `Ready=True` for generation 1 of alice's container a little later.
async fn soon(yard: &Yard, uid: &Uid) {
    tokio::time::sleep(Duration::from_millis(100)).await;
    let running = Condition::ready(Reason::Running, "");
    yard.saw(Kind::Container, uid, 1, running).await;
}

#[tokio::test]
async fn a_waiter_hears_of_a_save_at_once() {
    let yard = yard().await;
    let uid = yard.user("alice").await;
    let began = Instant::now();
    let (settled, ()) = tokio::join!(
        async {
            let settled = settle(&yard.world.deps, &change(1), Until::Converged, LONG).await;
            (settled, began.elapsed())
        },
        soon(&yard, &uid)
    );
    assert_eq!(settled.0, Settled::Converged);
    assert!(settled.1 < ASK_EVERY, "{:?}", settled.1);
}

#[tokio::test]
async fn a_save_of_another_replica_is_found_without_a_tick() {
    let mut yard = yard().await;
    // This process's own saves tick elsewhere.
    let (silent, receiver) = watch::channel(0);
    yard.deps().status_ticks = receiver;
    let uid = yard.user("alice").await;
    let began = Instant::now();
    let deps = yard.world.deps.clone();
    let change = change(1);
    let (settled, ()) = tokio::join!(
        settle(&deps, &change, Until::Converged, LONG),
        soon(&yard, &uid)
    );
    assert_eq!(settled, Settled::Converged);
    assert!(began.elapsed() < ASK_EVERY * 3);
    drop(silent);
}

#[tokio::test]
async fn when_the_time_is_up_or_the_service_stops_the_change_is_pending() {
    let yard = yard().await;
    yard.user("alice").await;
    let deps = &yard.world.deps;
    let short = Some(Duration::from_millis(200));
    assert_eq!(
        settle(deps, &change(1), Until::Converged, short).await,
        Settled::Pending(vec![])
    );
    let began = Instant::now();
    let change = change(1);
    let (settled, ()) = tokio::join!(settle(deps, &change, Until::Converged, LONG), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        deps.shutdown.cancel();
    });
    assert_eq!(settled, Settled::Pending(vec![]));
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn looks_are_paced_whatever_the_ticks() {
    let yard = yard().await;
    let mut watch = Watch::new(&yard.world.deps, Duration::from_secs(60));
    tokio::time::pause();
    let began = Instant::now();
    yard.world.status_ticks.send_modify(|ticks| *ticks += 1);
    assert!(watch.next().await);
    assert!((ASK_GAP..ASK_EVERY).contains(&began.elapsed()));
    // Nobody is left who could tick.
    let (gone, receiver) = watch::channel(0);
    drop(gone);
    watch.ticks = receiver;
    let began = Instant::now();
    assert!(watch.next().await);
    assert!(began.elapsed() >= ASK_EVERY);
}

#[tokio::test]
async fn a_database_that_cannot_be_read_leaves_the_change_pending() {
    let yard = yard().await;
    yard.user("alice").await;
    yard.world.db.close().await;
    let short = Some(Duration::from_millis(100));
    let settled = settle(&yard.world.deps, &change(1), Until::Converged, short).await;
    assert_eq!(settled, Settled::Pending(vec![]));
}

#[tokio::test]
async fn engine_that_is_away_is_not_waited_for() {
    let yard = yard().await;
    let uid = yard.user("alice").await;
    let away = Condition::unknown(Reason::EngineUnavailable, "connection refused");
    yard.saw(Kind::Container, &uid, 1, away.clone()).await;
    for until in [Until::Converged, Until::Purged] {
        let change = change(1);
        let settled = settle(&yard.world.deps, &change, until, LONG);
        let settled = tokio::time::timeout(LONG.unwrap() / 2, settled).await;
        assert_eq!(
            settled,
            Ok(Settled::Unavailable(vec![away.clone()])),
            "{until:?}"
        );
    }
}
