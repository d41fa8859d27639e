use std::time::Duration;

use schema::condition::{Condition, ConditionStatus, Reason};
use schema::ids::{Generation, Timestamp, Uid};
use schema::usage::{Due, Failing, Judgement, RETRY, Verdict};

use super::plan::{Action, Snapshot, plan};
use super::store::UsageRow;
use super::{UsageReconciler, one_line};
use crate::runtime::{Plan, Reconciler, Requeue};

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);
const MINUTE: Duration = Duration::from_secs(60);

fn due(names: &[&str]) -> Vec<Due> {
    let of = |name: &&str| Due {
        uid: Uid::from(format!("uid of {name}")),
        name: name.parse().unwrap(),
        changes: 1,
    };
    names.iter().map(of).collect()
}

fn failing(count: i64, minutes_ago: u32) -> Failing {
    Failing {
        count,
        oldest: NOW.minus(MINUTE * minutes_ago),
        name: "ada".parse().unwrap(),
        problem: "measuring it failed".to_owned(),
    }
}

fn planned(names: &[&str], failing: Option<Failing>) -> Plan<Action> {
    planned_with(names, failing, Vec::new())
}

fn planned_with(
    names: &[&str],
    failing: Option<Failing>,
    judgements: Vec<Judgement>,
) -> Plan<Action> {
    let row = UsageRow {
        generation: Generation(1),
        due: due(names),
        failing,
        judgements,
    };
    plan(&Snapshot { row, rounds: 7 }, NOW)
}

/// What it says.
fn condition(plan: &Plan<Action>) -> (ConditionStatus, Reason, &str) {
    let Condition {
        status,
        reason,
        message,
        ..
    } = &plan.conditions[0];
    (*status, *reason, message)
}

#[test]
fn what_is_due_is_measured_in_one_step_whatever_else_fails() {
    for failing in [None, Some(failing(3, 1))] {
        let plan = planned(&["bob", "zoe"], failing);
        assert_eq!(plan.actions, [Action::Measure(due(&["bob", "zoe"]))]);
        let said = (
            ConditionStatus::False,
            Reason::Progressing,
            "measuring directories",
        );
        assert_eq!(condition(&plan), said);
    }
}

#[test]
fn quota_is_judged_before_anything_is_measured() {
    let judgement = Judgement {
        uid: Uid::singleton("ada"),
        name: "ada".parse().unwrap(),
        before: Verdict::default(),
        verdict: Verdict {
            stops: true,
            ..Verdict::default()
        },
    };
    let plan = planned_with(&["bob"], None, vec![judgement.clone()]);
    let judge = Action::Judge(vec![judgement]);
    let described = UsageReconciler::describe(&judge);
    assert_eq!(described, "judge the use of the quota by ada");
    assert_eq!(plan.actions, [judge, Action::Measure(due(&["bob"]))]);
}

#[test]
fn with_nothing_due_nothing_is_done() {
    let plan = planned(&[], None);
    assert_eq!(
        condition(&plan),
        (ConditionStatus::True, Reason::Converged, "")
    );
    assert_eq!((plan.actions.len(), plan.requeue), (0, Requeue::AtResync));
}

#[rstest::rstest]
#[case::one(1, "the directory of ada cannot be measured: measuring it failed")]
#[case::many(
    12,
    "12 directories cannot be measured; that of ada: measuring it failed"
)]
fn what_could_not_be_measured_is_reported_until_it_is_tried_again(
    #[case] count: i64,
    #[case] message: &str,
) {
    let plan = planned(&[], Some(failing(count, 2)));
    let said = (ConditionStatus::False, Reason::Retrying, message);
    assert_eq!(condition(&plan), said);
    assert!(plan.actions.is_empty());
    // The moment of the next attempt stays the same from pass to pass.
    assert_eq!(plan.requeue, Requeue::After(RETRY - MINUTE * 2));
}

#[test]
fn a_step_says_whose_workspaces_it_measures() {
    let describe = |names: &[&str]| UsageReconciler::describe(&Action::Measure(due(names)));
    assert_eq!(describe(&["ada"]), "measure the directory of ada");
    assert_eq!(
        describe(&["ada", "bob", "zoe"]),
        "measure the directories of 3 users"
    );
}

#[test]
fn a_path_of_the_agents_is_told_in_one_short_line() {
    let long = one_line(&format!("a\u{1b}[31m\n{}", "x".repeat(5000)));
    assert!(long.starts_with("a [31m xx"), "{long}");
    assert_eq!(long.chars().count(), 300);
}
