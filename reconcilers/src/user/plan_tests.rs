use proptest::prelude::*;
use schema::condition::ConditionStatus;
use schema::ids::{Generation, Uid};
use schema::usage::{QuotaState, Verdict};

use super::*;

const DELETED: Timestamp = Timestamp::from_secs(1_778_500_000);

fn snapshot(home: HomeState, deleted: bool, has_finalizer: bool, container_gone: bool) -> Snapshot {
    Snapshot {
        row: Arc::new(UserRow {
            uid: Uid::from("u1".to_owned()),
            name: "alice".parse().unwrap(),
            previous_name: None,
            previous_released: false,
            generation: Generation(1),
            deleted_at: deleted.then_some(DELETED),
            archive_batch: None,
            has_finalizer,
            adapter_generation: 1,
            quota: Verdict::default(),
        }),
        container_gone,
        owner: None,
        home,
        settings: None,
    }
}

fn conflict() -> HomeState {
    HomeState::Conflict("not a directory".to_owned())
}

/// What is done, by name, and what is said.
fn planned(snapshot: &Snapshot) -> (Vec<String>, Reason) {
    let plan = plan(snapshot);
    let name = |action: &Action| {
        let text = format!("{action:?}");
        let end = text.find([' ', '{']).unwrap_or(text.len());
        text[..end].to_owned()
    };
    let actions = plan.actions.iter().map(name).collect();
    (actions, plan.conditions[0].reason)
}

#[test]
fn each_state_has_its_steps() {
    use HomeState::{Missing, Ready};
    for (home, deleted, finalizer, gone, steps, reason) in [
        (
            Missing,
            false,
            false,
            false,
            &["AddFinalizer", "EnsureHome"][..],
            Reason::Progressing,
        ),
        (
            Missing,
            false,
            true,
            false,
            &["EnsureHome"],
            Reason::Progressing,
        ),
        (Ready, false, true, false, &[], Reason::Converged),
        // Somebody else's is left alone.
        (conflict(), false, false, false, &[], Reason::HomeConflict),
        // Nothing is moved from under a container.
        (Ready, true, true, false, &[], Reason::Terminating),
        (
            Ready,
            true,
            true,
            true,
            &["ArchiveHome", "Purge"],
            Reason::Terminating,
        ),
        // A crash may have been between the two.
        (
            Missing,
            true,
            true,
            true,
            &["ArchiveHome", "Purge"],
            Reason::Terminating,
        ),
        (
            Missing,
            true,
            false,
            true,
            &["ArchiveHome", "Purge"],
            Reason::Terminating,
        ),
    ] {
        let what = format!("{home:?} deleted={deleted} finalizer={finalizer} gone={gone}");
        let planned = planned(&snapshot(home, deleted, finalizer, gone));
        let steps: Vec<String> = steps.iter().map(|&step| step.to_owned()).collect();
        assert_eq!(planned, (steps, reason), "{what}");
    }
}

#[test]
fn a_removal_waits_for_the_container() {
    let plan = plan(&snapshot(HomeState::Ready, true, true, false));
    let container = (Kind::Container, Uid::from("u1".to_owned()));
    assert_eq!(plan.waits_for, [container]);
}

#[test]
fn the_archive_is_named_by_the_time_of_the_request() {
    let plan = plan(&snapshot(HomeState::Ready, true, true, true));
    let archive = Action::ArchiveHome {
        name: "alice".parse().unwrap(),
        deleted_at: DELETED,
        batch: None,
    };
    assert_eq!(plan.actions[0], archive);
}

fn homes() -> impl Strategy<Value = HomeState> {
    prop_oneof![
        Just(HomeState::Missing),
        Just(HomeState::Ready),
        "[a-z ]{0,12}".prop_map(HomeState::Conflict),
    ]
}

proptest! {
    #[test]
    fn nothing_is_removed_of_who_is_there_and_nothing_made_for_who_goes(
        home in homes(),
        deleted: bool,
        finalizer: bool,
        gone: bool,
        renamed: Option<bool>,
    ) {
        let mut snapshot = snapshot(home, deleted, finalizer, gone);
        let row = Arc::make_mut(&mut snapshot.row);
        row.previous_name = renamed.map(|_| "ann".parse().unwrap());
        row.previous_released = renamed == Some(true);
        let plan = plan(&snapshot);
        for action in &plan.actions {
            match action {
                Action::AddFinalizer | Action::EnsureHome { .. } => {
                    prop_assert!(!deleted && renamed.is_none());
                }
                Action::WithdrawSettings { .. } | Action::ArchiveHome { .. } | Action::Purge => {
                    prop_assert!(deleted && gone && renamed.is_none());
                }
                // No container mounts the directory by its old name.
                Action::RenameHome { .. } | Action::EndRename { .. } => {
                    prop_assert!((deleted && gone) || (!deleted && renamed == Some(true)));
                }
            }
        }
        // Responsibility is taken before there is anything to clean up, and the rows go last.
        let place = |wanted: fn(&Action) -> bool| plan.actions.iter().position(wanted);
        if let Some(made) = place(|action| matches!(action, Action::EnsureHome { .. })) {
            let noted = place(|action| matches!(action, Action::AddFinalizer));
            prop_assert!(finalizer || noted.is_some_and(|noted| noted < made));
        }
        if let Some(purged) = place(|action| matches!(action, Action::Purge)) {
            prop_assert_eq!(purged, plan.actions.len() - 1);
            let archived = place(|action| matches!(action, Action::ArchiveHome { .. }));
            prop_assert!(archived.is_some());
        }
        let ready = plan.conditions[0].status == ConditionStatus::True;
        let settled = !deleted && renamed.is_none();
        prop_assert_eq!(ready, settled && snapshot.home == HomeState::Ready);
    }
}

#[rstest::rstest]
#[case::within(QuotaState::Within, None)]
#[case::near(QuotaState::Near, Some((ConditionStatus::True, Reason::QuotaNearlyUsed)))]
#[case::exceeded(QuotaState::Exceeded, Some((ConditionStatus::False, Reason::QuotaExceeded)))]
fn use_of_the_quota_is_a_condition(
    #[case] state: QuotaState,
    #[case] expected: Option<(ConditionStatus, Reason)>,
) {
    let mut snapshot = snapshot(HomeState::Ready, false, true, false);
    let row = Arc::make_mut(&mut snapshot.row);
    row.quota.state = state;
    row.quota.note = "80 of 100 MiB are used".to_owned();
    let plan = plan(&snapshot);
    assert_eq!(plan.conditions[0].status, ConditionStatus::True, "Ready");
    let told = plan.conditions.get(1).map(|it| (it.status, it.reason));
    assert_eq!((told, plan.actions.len()), (expected, 0));
}
