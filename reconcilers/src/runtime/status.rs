//! What is saved of an object, and what the runtime remembers of it between passes.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;
use std::ops::{AddAssign, SubAssign};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schema::condition::{self, Condition, ConditionStatus, ConditionType, Reason};
use schema::ids::{Generation, Timestamp};

use super::{ErrorClass, ObjectStatus};

/// The longest message in a condition or event, in bytes.
const LONGEST_MESSAGE: usize = 1024;

/// A failed pass, in the words of its condition.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    /// What to do about it.
    pub class: ErrorClass,
    /// Why, for programs.
    pub reason: Reason,
    /// Why, for people: this layer only.
    pub message: String,
    /// With all causes, for the log.
    pub chain: String,
}

/// What the runtime remembers of one object.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    /// What was last saved or loaded. `None`: not known, because a save was refused.
    pub saved: Option<ObjectStatus>,
    /// Passes in a row that changed something, for one generation and one point of its way.
    pub busy: (Generation, u64, u32),
    /// Conflicts in a row.
    pub conflicts: u32,
    /// The object's name, once a pass has read it.
    pub name: Option<Arc<str>>,
    /// The newest reason that needs a person and is an event, until the object is ready.
    pub told: Option<Reason>,
}

/// How many objects are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub objects: usize,
    pub ready: usize,
    pub failing: usize,
    /// Objects whose last pass panicked.
    pub panicked: usize,
}

impl Counts {
    /// What one object adds.
    fn of(memory: &Memory) -> Self {
        let status = memory.saved.as_ref();
        let ready = status.and_then(|s| condition::find(&s.conditions, ConditionType::Ready));
        Self {
            objects: 1,
            ready: usize::from(ready.is_some_and(|c| c.status == ConditionStatus::True)),
            failing: usize::from(status.is_some_and(|s| s.failures > 0)),
            panicked: usize::from(ready.is_some_and(|c| c.reason == Reason::Panicked)),
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.objects += other.objects;
        self.ready += other.ready;
        self.failing += other.failing;
        self.panicked += other.panicked;
    }
}

impl SubAssign for Counts {
    fn sub_assign(&mut self, other: Self) {
        self.objects -= other.objects;
        self.ready -= other.ready;
        self.failing -= other.failing;
        self.panicked -= other.panicked;
    }
}

#[derive(Debug)]
struct State<K> {
    map: BTreeMap<K, Memory>,
    /// Of everything in the map: kept with every change, because anybody may ask for it at any time.
    counts: Counts,
}

/// The last saved statuses. The leader is their only writer, so nothing is ever stale; the memory is
/// filled in one query when a leadership begins. Ordered, so that runs can be repeated exactly.
#[derive(Debug)]
pub(super) struct Memories<K>(Mutex<State<K>>);

impl<K: Clone + Ord + Hash> Memories<K> {
    pub fn new() -> Self {
        Self(Mutex::new(State {
            map: BTreeMap::new(),
            counts: Counts::default(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets everything and remembers what the store holds.
    pub fn fill(&self, statuses: Vec<(K, ObjectStatus)>) {
        let mut state = self.state();
        state.map.clear();
        state.counts = Counts::default();
        for (key, status) in statuses {
            let memory = Memory {
                saved: Some(status),
                ..Memory::default()
            };
            state.put(key, memory);
        }
    }

    /// What is remembered of `key`. Never seen means that the store holds nothing either.
    pub fn get(&self, key: &K) -> Memory {
        self.state().map.get(key).cloned().unwrap_or(Memory {
            saved: Some(ObjectStatus::default()),
            ..Memory::default()
        })
    }

    /// The name of an object that a pass has read.
    pub fn name(&self, key: &K) -> Option<Arc<str>> {
        self.state().map.get(key)?.name.clone()
    }

    pub fn set(&self, key: &K, memory: Memory) {
        self.state().put(key.clone(), memory);
    }

    pub fn forget(&self, key: &K) {
        let mut state = self.state();
        if let Some(old) = state.map.remove(key) {
            state.counts -= Counts::of(&old);
        }
    }

    pub fn keys(&self) -> Vec<K> {
        self.state().map.keys().cloned().collect()
    }

    /// Keys that are remembered but not in `listed`.
    pub fn missing_from(&self, listed: &HashSet<K>) -> Vec<K> {
        self.state()
            .map
            .keys()
            .filter(|key| !listed.contains(*key))
            .cloned()
            .collect()
    }

    /// Costs the same however many objects there are.
    pub fn counts(&self) -> Counts {
        self.state().counts
    }
}

impl<K: Ord> State<K> {
    fn put(&mut self, key: K, memory: Memory) {
        self.counts += Counts::of(&memory);
        if let Some(old) = self.map.insert(key, memory) {
            self.counts -= Counts::of(&old);
        }
    }
}

/// The conditions of a plan, completed: a `Ready` is always there, and never true beside actions.
/// The second value tells whether a `Ready=True` had to be demoted, which is a defect of the planner.
pub(super) fn complete(mut conditions: Vec<Condition>, actions: usize) -> (Vec<Condition>, bool) {
    let progressing = || {
        let steps = if actions == 1 { "step" } else { "steps" };
        Condition::not_ready(Reason::Progressing, format!("{actions} {steps} to do"))
    };
    let ready = conditions
        .iter_mut()
        .find(|condition| condition.kind == ConditionType::Ready);
    match ready {
        Some(ready) if actions > 0 && ready.status == ConditionStatus::True => {
            *ready = progressing();
            (conditions, true)
        }
        Some(_) => (conditions, false),
        None => {
            conditions.push(if actions > 0 {
                progressing()
            } else {
                Condition::ready(Reason::Converged, "")
            });
            (conditions, false)
        }
    }
}

/// Lists the warnings that have begun or ended, or have another reason. What is not known is no news, and a warning that was never
/// there cannot end.
pub(super) fn new_warnings<'a>(
    before: &'a [Condition],
    now: &'a [Condition],
) -> impl Iterator<Item = &'a Condition> {
    now.iter().filter(|condition| {
        let said = |one: &Condition| (one.status, one.reason);
        condition.kind.is_warning()
            && match (condition::find(before, condition.kind), condition.status) {
                (_, ConditionStatus::Unknown) | (None, ConditionStatus::True) => false,
                (None, ConditionStatus::False) => true,
                (Some(before), _) => said(before) != said(condition),
            }
    })
}

/// Replaces the condition of the same type.
pub(super) fn put(conditions: &mut Vec<Condition>, condition: Condition) {
    conditions.retain(|other| other.kind != condition.kind);
    conditions.push(condition);
}

/// The conditions of a failed pass. `planned` are those of its plan, if it got so far; else what was
/// known before stays, except that nobody knows any more whether the object is ready.
pub(super) fn failed(
    planned: Option<Vec<Condition>>,
    before: &ObjectStatus,
    failure: &Failure,
) -> Vec<Condition> {
    let blind = planned.is_none() && failure.class != ErrorClass::Terminal;
    let mut conditions = planned.unwrap_or_else(|| {
        let mut kept = before.conditions.clone();
        kept.retain(|condition| condition.kind != ConditionType::Paused);
        kept
    });
    let ready = if blind {
        Condition::unknown(failure.reason, &failure.message)
    } else {
        Condition::not_ready(failure.reason, &failure.message)
    };
    put(&mut conditions, ready);
    conditions
}

/// The status to save: conditions keep their transition times, and the generation never moves back.
pub(super) fn next(
    before: &ObjectStatus,
    mut conditions: Vec<Condition>,
    generation: Generation,
    (failures, next_attempt_at): (u32, Option<Timestamp>),
    now: Timestamp,
) -> ObjectStatus {
    let generation = generation.max(before.observed_generation);
    conditions.sort_by_key(|condition| condition.kind);
    for condition in &mut conditions {
        shorten(&mut condition.message);
        // Who says no more than that it is as it was is not heard to say less.
        if condition.message.is_empty()
            && let Some(said) = condition::find(&before.conditions, condition.kind)
            && (said.status, said.reason) == (condition.status, condition.reason)
        {
            condition.message.clone_from(&said.message);
        }
    }
    ObjectStatus {
        observed_generation: generation,
        conditions: condition::merge(&before.conditions, conditions, generation, now),
        failures,
        next_attempt_at,
        paused: before.paused,
    }
}

/// Whether a plan waits before it tries again what has failed, as the runtime does after a failed pass.
pub(super) fn tries_again(conditions: &[Condition]) -> bool {
    let ready = condition::find(conditions, ConditionType::Ready);
    ready.is_some_and(|ready| {
        let failed = [
            Reason::CrashLoop,
            Reason::Exited,
            Reason::ReplacementFailed,
            Reason::ImagePullFailed,
        ];
        ready.status == ConditionStatus::False && failed.contains(&ready.reason)
    })
}

/// Whether saving `new` over `old` would say anything new. Times say nothing by themselves.
pub(super) fn differs(old: &ObjectStatus, new: &ObjectStatus) -> bool {
    old.observed_generation != new.observed_generation
        || old.failures != new.failures
        || is_another(old.next_attempt_at, new.next_attempt_at)
        || old.conditions.len() != new.conditions.len()
        || !new.conditions.iter().all(|condition| {
            condition::find(&old.conditions, condition.kind)
                .is_some_and(|before| before.says_the_same(condition))
        })
}

/// Whether the next attempt is another one, and not the same as seen a moment later.
fn is_another(old: Option<Timestamp>, new: Option<Timestamp>) -> bool {
    const SAME: Duration = Duration::from_secs(1);
    match (old, new) {
        (Some(old), Some(new)) => old.since(new).max(new.since(old)) > SAME,
        (old, new) => old.is_some() != new.is_some(),
    }
}

/// Cuts a text to what a condition or event may hold, at a character boundary.
pub(super) fn shorten(text: &mut String) {
    if text.len() > LONGEST_MESSAGE {
        let ellipsis = '…';
        let end = text.floor_char_boundary(LONGEST_MESSAGE - ellipsis.len_utf8());
        text.truncate(end);
        text.push(ellipsis);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(conditions: Vec<Condition>, generation: i64) -> ObjectStatus {
        next(
            &ObjectStatus::default(),
            conditions,
            Generation(generation),
            (0, None),
            Timestamp::from_secs(10),
        )
    }

    #[test]
    fn l59_ready_is_never_true_beside_actions() {
        let claims = vec![Condition::ready(Reason::Running, "")];
        let (conditions, demoted) = complete(claims.clone(), 2);
        assert!(demoted);
        assert_eq!(conditions[0].status, ConditionStatus::False);
        assert_eq!(conditions[0].message, "2 steps to do");
        assert_eq!(complete(claims.clone(), 0), (claims, false));
    }

    #[test]
    fn a_plan_without_ready_gets_one() {
        assert_eq!(complete(vec![], 0).0[0].status, ConditionStatus::True);
        assert_eq!(complete(vec![], 1).0[0].reason, Reason::Progressing);
    }

    #[test]
    fn who_says_no_more_than_before_is_not_heard_to_say_less() {
        let old = status(
            vec![Condition::ready(Reason::Running, "up, as version 3")],
            3,
        );
        let again = |conditions| {
            let generation = Generation(3);
            next(
                &old,
                conditions,
                generation,
                (0, None),
                Timestamp::from_secs(20),
            )
        };
        assert!(!differs(
            &old,
            &again(vec![Condition::ready(Reason::Running, "")])
        ));
        let other = again(vec![Condition::not_ready(Reason::NotReady, "")]);
        assert_eq!(other.conditions[0].message, "");
    }

    #[test]
    fn times_alone_are_no_difference() {
        let old = status(vec![Condition::ready(Reason::Running, "up")], 3);
        let later = next(
            &old,
            vec![Condition::ready(Reason::Running, "up")],
            Generation(3),
            (0, None),
            Timestamp::from_secs(99),
        );
        assert!(!differs(&old, &later));
        assert_eq!(
            later.conditions[0].last_transition_at,
            Timestamp::from_secs(10)
        );
        let other = status(vec![Condition::ready(Reason::Running, "up again")], 3);
        assert!(differs(&old, &other));
        assert!(differs(&old, &status(vec![], 3)));
    }

    #[test]
    fn changed_warning_is_news() {
        let restricted = |status, reason| {
            vec![
                Condition::ready(Reason::Converged, ""),
                Condition::new(ConditionType::HostRestricted, status, reason, ""),
            ]
        };
        let open = || restricted(ConditionStatus::False, Reason::HostOpen);
        let closed = || restricted(ConditionStatus::True, Reason::Converged);
        let unknown = || restricted(ConditionStatus::Unknown, Reason::Progressing);
        for (before, now, is_news) in [
            (vec![], open(), true),
            (open(), open(), false),
            (unknown(), open(), true),
            (open(), closed(), true),
            (open(), unknown(), false),
            (vec![], closed(), false),
            (open(), vec![], false),
        ] {
            let news = new_warnings(&before, &now).count();
            assert_eq!(news > 0, is_news, "{before:?} {now:?}");
        }
    }

    #[test]
    fn observed_generation_never_moves_back() {
        let old = status(vec![], 7);
        let new = next(&old, vec![], Generation(5), (0, None), Timestamp::default());
        assert_eq!(new.observed_generation, Generation(7));
    }

    #[test]
    fn a_failed_observation_makes_ready_unknown_and_keeps_the_rest() {
        let stalled = Condition::new(
            ConditionType::Stalled,
            ConditionStatus::True,
            Reason::NoProgress,
            "",
        );
        let before = status(vec![Condition::ready(Reason::Running, ""), stalled], 1);
        let mut failure = Failure {
            class: ErrorClass::Transient,
            reason: Reason::EngineUnavailable,
            message: "the engine does not answer".to_owned(),
            chain: String::new(),
        };
        let blind = failed(None, &before, &failure);
        let ready = condition::find(&blind, ConditionType::Ready).unwrap();
        assert_eq!(
            (ready.status, ready.reason),
            (ConditionStatus::Unknown, Reason::EngineUnavailable)
        );
        assert!(condition::find(&blind, ConditionType::Stalled).is_some());
        failure.class = ErrorClass::Terminal;
        let terminal = failed(None, &before, &failure);
        let ready = condition::find(&terminal, ConditionType::Ready).unwrap();
        assert_eq!(ready.status, ConditionStatus::False);
    }

    #[test]
    fn counts_follow_every_change() {
        let memories = Memories::new();
        let memory = |condition, failures| Memory {
            saved: Some(ObjectStatus {
                failures,
                ..status(vec![condition], 1)
            }),
            ..Memory::default()
        };
        let up = || memory(Condition::ready(Reason::Running, ""), 0);
        let panicked = || memory(Condition::not_ready(Reason::Panicked, ""), 2);
        let counts = || {
            let counts = memories.counts();
            (
                counts.objects,
                counts.ready,
                counts.failing,
                counts.panicked,
            )
        };
        memories.set(&"a", up());
        memories.set(&"b", panicked());
        memories.set(&"c", Memory::default());
        assert_eq!(counts(), (3, 1, 1, 1));
        memories.set(&"a", panicked());
        memories.set(&"b", up());
        memories.set(&"b", up());
        assert_eq!(counts(), (3, 1, 1, 1));
        memories.forget(&"a");
        memories.forget(&"unknown");
        assert_eq!(counts(), (2, 1, 0, 0));
        memories.fill(vec![("d", status(vec![], 1)), ("d", status(vec![], 2))]);
        assert_eq!(counts(), (1, 0, 0, 0));
    }

    #[test]
    fn long_messages_are_cut_at_a_character() {
        let mut text = "ü".repeat(900);
        shorten(&mut text);
        assert!(text.len() <= LONGEST_MESSAGE && text.ends_with('…'));
    }
}
