//! One pass of any reconciler by hand, as the runtime makes it, with what must hold for all of them: a plan depends on
//! its snapshot and the time only, never claims to be ready beside steps, and is the same for a dry run.

use schema::condition::{self, Condition, ConditionStatus, ConditionType, Reason};
use schema::ids::{Timestamp, Uid};

use reconcilers::runtime::{Awaited, Classify, ErrorClass, Plan, Purpose, Reconciler, Requeue};

/// The service was "killed".
#[derive(Debug, PartialEq, Eq)]
pub struct Killed;

/// What came of a pass.
#[derive(Debug)]
pub struct Pass {
    /// What it said: of a failed one, why it failed.
    pub condition: Option<Condition>,
    /// When it wants to observe again.
    pub requeue: Requeue,
    /// How many steps it took; the last one may have failed.
    pub acted: usize,
    /// The steps, in words.
    pub steps: Vec<String>,
    /// What its plan waits for.
    pub waits_for: Vec<Awaited>,
    /// Why it failed.
    pub error: Option<(ErrorClass, Reason, String)>,
}

impl Pass {
    fn failed(error: &impl Classify, steps: Vec<String>) -> Self {
        let (reason, message) = (error.reason(), error.to_string());
        Self {
            condition: Some(Condition::not_ready(reason, &message)),
            requeue: Requeue::AtResync,
            acted: steps.len(),
            steps,
            waits_for: Vec::new(),
            error: Some((error.class(), reason, message)),
        }
    }
}

/// A pass over `key`; `None` when the object is gone. `budget`: so many steps may still be taken before the service is
/// killed. `check` judges the world after each step.
pub async fn pass<R: Reconciler<Key = Uid>>(
    reconciler: &R,
    key: &Uid,
    now: Timestamp,
    budget: &mut Option<usize>,
    check: impl AsyncFn(),
) -> Result<Option<Pass>, Killed> {
    let snapshot = match reconciler.observe(key, Purpose::Pass).await {
        Ok(Some(snapshot)) => snapshot,
        Ok(None) => return Ok(None),
        Err(error) => return Ok(Some(Pass::failed(&error, Vec::new()))),
    };
    let Plan {
        actions,
        conditions,
        requeue,
        waits_for,
        ..
    } = pure_plan::<R>(&snapshot, now);
    let mut steps = Vec::new();
    for action in &actions {
        if let Some(left) = budget {
            if *left == 0 {
                return Err(Killed);
            }
            *left -= 1;
        }
        steps.push(R::describe(action));
        if let Err(error) = reconciler.apply(key, action).await {
            return Ok(Some(Pass::failed(&error, steps)));
        }
        check().await;
    }
    if actions.is_empty() {
        reconciler.converged(key, &snapshot, &conditions);
    }
    let condition = condition::find(&conditions, ConditionType::Ready).cloned();
    Ok(Some(Pass {
        condition,
        requeue,
        acted: steps.len(),
        steps,
        waits_for,
        error: None,
    }))
}

/// The plan for a snapshot, made twice.
pub fn pure_plan<R: Reconciler>(snapshot: &R::Snapshot, now: Timestamp) -> Plan<R::Action> {
    let plan = R::plan(snapshot, now);
    let again = R::plan(snapshot, now);
    assert_eq!(
        plan,
        again,
        "{}: a plan depends on nothing but its input",
        R::NAME
    );
    let ready = condition::find(&plan.conditions, ConditionType::Ready);
    let claims = ready.is_some_and(|ready| ready.status == ConditionStatus::True);
    assert!(
        plan.actions.is_empty() || plan.is_tidying || !claims,
        "{}: ready beside steps: {plan:?}",
        R::NAME
    );
    plan
}
