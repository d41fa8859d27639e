//! One pass over one key: the same for every reconciler.

use std::any::Any;
use std::fmt;
use std::fmt::Write as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use schema::condition::{self, Condition, ConditionStatus, ConditionType, Reason};
use schema::home::Note;
use schema::ids::{Epoch, Generation, Timestamp, Uid};
use schema::metric;
use schema::under_way::{self, Entry};
use tokio::time::{Instant, timeout};

use super::blocking::blocking;
use super::controller::Core;
use super::queue::{Job, Verdict};
use super::status::{self, Failure, Memory};
use super::supervise::chain;
use super::waits::Waker as _;
use super::{
    Awaited, Classify, ErrorClass, ObjectStatus, Outcome, Plan, Purpose, Reconciler, Requeue,
    StoreError,
};
use crate::fault;

/// Passes in a row that may change something for one generation before the object counts as stalled.
const BUSY_PASSES: u32 = 5;
/// Conflicts in a row before they count as failures.
const CONFLICTS: u32 = 10;

/// How far a pass got. It outlives the pass, so that a panic or a timeout can be reported.
struct Progress {
    /// Its place among what is under way.
    entry: Entry,
    generation: Option<Generation>,
    /// Name of the object.
    name: Option<Arc<str>>,
    /// See [`Reconciler::progress`].
    way: u64,
    conditions: Option<Vec<Condition>>,
    /// What the plan waits for; `None`: there is no plan.
    waits_for: Option<Vec<Awaited>>,
    step: String,
}

impl Progress {
    fn new(name: Option<Arc<str>>, entry: Entry) -> Self {
        entry.set_step("Observe");
        Self {
            entry,
            generation: None,
            name,
            way: 0,
            conditions: None,
            waits_for: None,
            step: "Observe".to_owned(),
        }
    }
}

impl Progress {
    fn begin(&mut self, step: String) {
        self.entry.set_step(&step);
        self.step = step;
    }
}

/// What a pass means for its object, before it is saved.
struct Judgement {
    outcome: Outcome,
    verdict: Verdict,
    /// `None`: nothing is said of the object.
    status: Option<ObjectStatus>,
}

/// Plans, where it holds up nobody.
pub(super) async fn planned<R: Reconciler>(
    snapshot: R::Snapshot,
    now: Timestamp,
) -> (Plan<R::Action>, R::Snapshot) {
    if R::is_long(&snapshot) {
        return blocking(move || {
            let notes = R::note_parsing(&snapshot);
            let plan = R::plan(&snapshot, now);
            notes.into_iter().for_each(Note::finish);
            (plan, snapshot)
        })
        .await;
    }
    (R::plan(&snapshot, now), snapshot)
}

/// How long a step that runs when the process is asked to end may still take.
const STEP_GRACE: std::time::Duration = std::time::Duration::from_secs(5);

/// Names the object of the present pass in its log lines, as commands name it.
fn record_object<R: Reconciler>(name: &str) {
    let object = format!("{}/{name}", R::KIND);
    tracing::Span::current().record("object", tracing::field::display(object));
}

impl<R: Reconciler> Core<R> {
    /// Passes over `job` and gives it back to the queue.
    pub(super) async fn run(&self, job: Job<R::Key>) {
        let Some(guard) = self.leadership.begin() else {
            self.queue.done(&job.key, Verdict::Again, None);
            return;
        };
        let entry = under_way::begin_reconciliation(R::NAME, job.key.to_string());
        let mut progress = Progress::new(self.memories.name(&job.key), entry);
        if let Some(name) = &progress.name {
            record_object::<R>(name);
        }
        let begun = Instant::now();
        let waits = self.waits.begin();
        // A panic leaves `progress` as it was at the last step, which is all that is read of it.
        let pass = AssertUnwindSafe(self.pass(&job, guard.epoch, &mut progress)).catch_unwind();
        let result = match timeout(self.settings.pass_deadline, pass).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => {
                self.pulse.panicked(self.clock.now());
                Err(panicked(&progress.step, panic.as_ref()))
            }
            Err(_) => Err(too_long("the pass", self.settings.pass_deadline)),
        };
        self.count(&result);
        let settle = AssertUnwindSafe(self.settle(&job, guard.epoch, &progress, result));
        let verdict = match settle.catch_unwind().await {
            Ok(verdict) => verdict,
            Err(panic) => {
                self.pulse.panicked(self.clock.now());
                tracing::error!(panic = %payload(panic.as_ref()), "saving the result of a pass panicked");
                Verdict::BackOff(self.queue.fail(&job.key, self.clock.now()))
            }
        };
        metric::PASS_DURATION.observe(&[R::NAME], begun.elapsed());
        // A pass without a plan has learnt nothing: what the last one waits for stays.
        if let Some(waits_for) = progress.waits_for.take()
            && waits.register(R::NAME, &job.key.to_string(), waits_for)
        {
            self.wake(&job.key.to_string(), job.bulk);
        }
        self.queue.done(&job.key, verdict, progress.generation);
    }

    /// Counts a pass by its result.
    fn count(&self, result: &Result<Outcome, Failure>) {
        let word = match result {
            Ok(Outcome::Gone) => "gone",
            Ok(Outcome::Converged(_)) => "converged",
            Ok(Outcome::Progressed) => "progressed",
            Ok(Outcome::Paused) => "paused",
            Ok(Outcome::Interrupted) => "interrupted",
            Ok(Outcome::Failed(class)) => class.word(),
            Err(failure) => failure.class.word(),
        };
        metric::PASSES.increment(&[R::NAME, word]);
        if matches!(result, Ok(Outcome::Converged(_))) {
            metric::LAST_SUCCESS.set(&[R::NAME], self.clock.now().as_secs_f64());
        }
    }

    /// Observes, plans and applies.
    async fn pass(
        &self,
        job: &Job<R::Key>,
        epoch: Epoch,
        progress: &mut Progress,
    ) -> Result<Outcome, Failure> {
        let key = &job.key;
        if self.is_paused(key) {
            return Ok(Outcome::Paused);
        }
        let observed = timeout(
            self.settings.observe_timeout,
            self.reconciler.observe(key, Purpose::Pass),
        );
        let observed = tokio::select! {
            biased;
            observed = observed => observed,
            // What somebody else may be changing by now is of no use.
            () = self.leadership.lost(epoch) => return Ok(Outcome::Interrupted),
        };
        let snapshot = match observed {
            Ok(Ok(Some(snapshot))) => snapshot,
            Ok(Ok(None)) => {
                progress.waits_for = Some(Vec::new());
                return Ok(Outcome::Gone);
            }
            Ok(Err(error)) => return Err(classified(&error)),
            Err(_) => return Err(too_long("observing", self.settings.observe_timeout)),
        };
        let generation = R::generation(&snapshot);
        progress.generation = Some(generation);
        progress.way = R::progress(&snapshot);
        progress.begin("Plan".to_owned());
        tracing::Span::current().record("generation", generation.0);
        let name = R::name(&snapshot).filter(|name| progress.name.as_deref() != Some(name));
        if let Some(name) = name {
            record_object::<R>(name);
            progress.name = Some(Arc::from(name));
        }
        let (plan, snapshot) = planned::<R>(snapshot, self.clock.now()).await;
        let steps = plan.steps_before_ready();
        let Plan {
            actions,
            conditions,
            requeue,
            waits_for,
            ..
        } = plan;
        let (conditions, demoted) = status::complete(conditions, steps);
        if demoted {
            tracing::error!("the plan claims Ready=True beside actions; it is not believed");
        }
        progress.conditions = Some(conditions);
        progress.waits_for = Some(waits_for);
        for action in &actions {
            progress.begin(variant_name(action));
            if self.leadership.epoch() != Some(epoch) || self.shutdown.is_cancelled() {
                return Ok(Outcome::Interrupted);
            }
            let point = |moment: &str| format!("{}.{}.{moment}", R::NAME, variant_name(action));
            fault::point_with(|| point("before"));
            let limit = R::action_timeout(action);
            let applied = tokio::select! {
                biased;
                applied = timeout(limit, self.reconciler.apply(key, action)) => applied,
                // Somebody else leads now: whatever is half done is theirs to find.
                () = self.leadership.lost(epoch) => return Ok(Outcome::Interrupted),
                // Steps survive being cut off; the end of the process does not wait for a slow one.
                () = self.shutting_down() => return Ok(Outcome::Interrupted),
            };
            let success = matches!(applied, Ok(Ok(())));
            metric::STEPS.increment(&[
                R::NAME,
                &progress.step,
                if success { "success" } else { "failure" },
            ]);
            R::count_step(&snapshot, action, success);
            match applied {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(classified(&error)),
                Err(_) => return Err(too_long(&progress.step, limit)),
            }
            fault::point_with(|| point("after"));
            tracing::info!(action = %progress.step, "applied");
            if R::is_event(action) {
                let text = R::describe(action);
                self.event(key, R::event_reason(action), &progress.step, text)
                    .await;
            }
        }
        if !actions.is_empty() {
            return Ok(Outcome::Progressed);
        }
        let conditions = progress.conditions.as_deref().unwrap_or_default();
        self.reconciler.converged(key, &snapshot, conditions);
        Ok(Outcome::Converged(requeue))
    }

    /// Some time after the process was asked to end.
    async fn shutting_down(&self) {
        self.shutdown.cancelled().await;
        tokio::time::sleep(STEP_GRACE).await;
    }

    /// Judges the result of a pass, saves what it says, and decides when the key runs again.
    async fn settle(
        &self,
        job: &Job<R::Key>,
        epoch: Epoch,
        progress: &Progress,
        result: Result<Outcome, Failure>,
    ) -> Verdict {
        let key = &job.key;
        let mut memory = self.memories.get(key);
        memory.name = progress.name.clone().or(memory.name);
        let before = match memory.saved.take() {
            Some(saved) => saved,
            None => match self.in_store(self.store.load(key)).await {
                Ok(saved) => saved,
                Err(error) => {
                    tracing::warn!(error = %chain(&error), "could not load the status");
                    self.reconciler.changed(key);
                    return Verdict::BackOff(self.queue.fail(key, self.clock.now()));
                }
            },
        };
        let judgement = match result {
            Ok(outcome) => self.judge(job, progress, &before, &mut memory, outcome),
            Err(failure) => self.judge_failure(job, progress, &before, &mut memory, &failure),
        };
        tracing::debug!(outcome = ?judgement.outcome, "pass ended");
        if judgement.outcome == Outcome::Gone {
            // Whoever waits for the object to be gone looks now.
            if before != ObjectStatus::default() {
                self.tick.bump();
            }
            self.memories.forget(key);
            self.wake_waiting(job);
            return judgement.verdict;
        }
        let new = judgement.status.filter(|new| status::differs(&before, new));
        if let Some(new) = &new {
            let told = self
                .tell_failure(key, progress, judgement.verdict, judgement.outcome, new)
                .await;
            if !told {
                self.tell_standstill(key, &before, new, &mut memory).await;
            }
            self.tell_warnings(key, &before, new).await;
        }
        let Some(new) = new else {
            memory.saved = Some(before);
            self.memories.set(key, memory);
            return judgement.verdict;
        };
        if self.leadership.epoch() != Some(epoch) {
            memory.saved = Some(before);
            self.memories.set(key, memory);
            return Verdict::Again;
        }
        fault::point_with(|| format!("{}.status.before", R::NAME));
        let saved = self.in_store(self.store.save(key, &new, epoch)).await;
        fault::point_with(|| format!("{}.status.after", R::NAME));
        match saved {
            Ok(true) => {
                memory.saved = Some(new);
                self.memories.set(key, memory);
                self.tick.bump();
                self.wake_waiting(job);
                judgement.verdict
            }
            Ok(false) => {
                // The object was purged (the next pass finds it gone), or the row says more than we
                // know: ask for it before the next save.
                tracing::debug!("the status was not accepted");
                memory.saved = None;
                self.memories.set(key, memory);
                judgement.verdict
            }
            Err(error) => {
                tracing::warn!(error = %chain(&error), "could not save the status");
                // Whether it was written is unknown, so a key that is done is not done yet.
                memory.saved = None;
                self.memories.set(key, memory);
                self.reconciler.changed(key);
                match judgement.verdict {
                    Verdict::BackOff(attempt) => Verdict::BackOff(attempt),
                    _ => Verdict::BackOff(self.queue.fail(key, self.clock.now())),
                }
            }
        }
    }

    fn judge(
        &self,
        job: &Job<R::Key>,
        progress: &Progress,
        before: &ObjectStatus,
        memory: &mut Memory,
        outcome: Outcome,
    ) -> Judgement {
        let now = self.clock.now();
        let generation = progress.generation.unwrap_or(before.observed_generation);
        let conditions = progress.conditions.clone().unwrap_or_default();
        let said = |conditions, retry| status::next(before, conditions, generation, retry, now);
        let (verdict, status) = match outcome {
            Outcome::Gone => (Verdict::Settled, None),
            Outcome::Interrupted => (Verdict::Again, None),
            Outcome::Paused => {
                let mut conditions = before.conditions.clone();
                condition::not_observed(&mut conditions);
                let paused = Condition::new(
                    ConditionType::Paused,
                    ConditionStatus::True,
                    Reason::PausedByOperator,
                    "",
                );
                status::put(&mut conditions, paused);
                (Verdict::Park, Some(said(conditions, (0, None))))
            }
            Outcome::Converged(requeue) => {
                *memory = Memory {
                    told: memory.told,
                    ..Memory::default()
                };
                let verdict = match requeue {
                    Requeue::AtResync => Verdict::Settled,
                    Requeue::After(delay) => Verdict::After(delay),
                };
                let next = match requeue {
                    Requeue::After(delay) if status::tries_again(&conditions) => {
                        Some(now.plus(delay))
                    }
                    Requeue::After(_) | Requeue::AtResync => None,
                };
                (verdict, Some(said(conditions, (0, next))))
            }
            Outcome::Progressed => {
                memory.conflicts = 0;
                let (of, way, count) = memory.busy;
                let same = of == generation && way == progress.way;
                let count = if same { count + 1 } else { 1 };
                memory.busy = (generation, progress.way, count);
                if count > BUSY_PASSES {
                    return self.stalled(job, before, (conditions, generation), count);
                }
                (Verdict::Progressed, Some(said(conditions, (0, None))))
            }
            // A failure is reported by `Err`; this arm only completes the match.
            Outcome::Failed(_) => (Verdict::Again, None),
        };
        Judgement {
            outcome,
            verdict,
            status,
        }
    }

    /// Pass after pass changes something and the next finds it undone.
    fn stalled(
        &self,
        job: &Job<R::Key>,
        before: &ObjectStatus,
        (mut conditions, generation): (Vec<Condition>, Generation),
        passes: u32,
    ) -> Judgement {
        tracing::error!(
            passes,
            "every pass changes something for the same generation; who else does?"
        );
        let message = "pass after pass changes something, and the next one finds it undone";
        for condition in [
            Condition::not_ready(Reason::NoProgress, message),
            Condition::new(
                ConditionType::Stalled,
                ConditionStatus::True,
                Reason::NoProgress,
                message,
            ),
        ] {
            status::put(&mut conditions, condition);
        }
        let now = self.clock.now();
        let attempt = self.queue.fail(&job.key, now);
        let retry = (attempt.failures, Some(attempt.next_attempt_at));
        Judgement {
            outcome: Outcome::Progressed,
            verdict: Verdict::BackOff(attempt),
            status: Some(status::next(before, conditions, generation, retry, now)),
        }
    }

    fn judge_failure(
        &self,
        job: &Job<R::Key>,
        progress: &Progress,
        before: &ObjectStatus,
        memory: &mut Memory,
        failure: &Failure,
    ) -> Judgement {
        let outcome = Outcome::Failed(failure.class);
        memory.conflicts = match failure.class {
            ErrorClass::Conflict => memory.conflicts + 1,
            ErrorClass::Transient | ErrorClass::Terminal => 0,
        };
        let now = self.clock.now();
        let (verdict, retry) = match failure.class {
            ErrorClass::Conflict if memory.conflicts <= CONFLICTS => {
                tracing::debug!(error = %failure.chain, "conflict; observing again");
                return Judgement {
                    outcome,
                    verdict: Verdict::Again,
                    status: None,
                };
            }
            ErrorClass::Conflict | ErrorClass::Transient => {
                let attempt = self.queue.fail(&job.key, now);
                tracing::warn!(step = %progress.step, error = %failure.chain, failures = attempt.failures,
                    delay = ?attempt.delay, "the pass failed and is retried");
                let retry = (attempt.failures, Some(attempt.next_attempt_at));
                (Verdict::BackOff(attempt), retry)
            }
            ErrorClass::Terminal => {
                tracing::error!(step = %progress.step, error = %failure.chain,
                    "the pass failed; trying again will not help");
                (Verdict::Park, (1, None))
            }
        };
        // Without a snapshot, the generation for which the pass was begun has been seen all the same.
        let generation = progress.generation.unwrap_or(job.generation);
        let conditions = status::failed(progress.conditions.clone(), before, failure);
        Judgement {
            outcome,
            verdict,
            status: Some(status::next(before, conditions, generation, retry, now)),
        }
    }

    /// Wakes whoever waits for this object.
    fn wake_waiting(&self, job: &Job<R::Key>) {
        let uid = Uid::from(job.key.to_string());
        self.waits.changed(R::KIND, &uid, job.bulk);
    }

    /// A failure that is news is also an event; false when there is none.
    async fn tell_failure(
        &self,
        key: &R::Key,
        progress: &Progress,
        verdict: Verdict,
        outcome: Outcome,
        status: &ObjectStatus,
    ) -> bool {
        let failed =
            matches!(verdict, Verdict::BackOff(_)) || matches!(outcome, Outcome::Failed(_));
        let ready = condition::find(&status.conditions, ConditionType::Ready);
        match (failed, ready) {
            (true, Some(ready)) => {
                self.event(key, ready.reason, &progress.step, ready.message.clone())
                    .await;
                true
            }
            _ => false,
        }
    }

    /// A state that nothing but a person ends is an event when it begins, where it is not another object's. One that tries
    /// interrupt is told once.
    async fn tell_standstill(
        &self,
        key: &R::Key,
        before: &ObjectStatus,
        status: &ObjectStatus,
        memory: &mut Memory,
    ) {
        let ready = |status: &ObjectStatus| {
            condition::find(&status.conditions, ConditionType::Ready).cloned()
        };
        let Some(now) = ready(status) else { return };
        if now.status == ConditionStatus::True {
            memory.told = None;
        }
        let is_new = ready(before).is_none_or(|before| before.reason != now.reason);
        let is_told = !is_new || memory.told == Some(now.reason);
        if !is_told && now.needs_action() && now.waits_for.is_none() {
            memory.told = Some(now.reason);
            self.event(key, now.reason, "", now.message).await;
        }
    }

    /// A warning that begins, ends or has another reason is an event.
    async fn tell_warnings(&self, key: &R::Key, before: &ObjectStatus, status: &ObjectStatus) {
        for condition in status::new_warnings(&before.conditions, &status.conditions) {
            let action = condition.kind.to_string();
            let message = condition.message.clone();
            self.event(key, condition.reason, &action, message).await;
        }
    }

    /// An event that cannot be stored is logged and otherwise forgotten: healing goes first.
    async fn event(&self, key: &R::Key, reason: Reason, action: &str, mut message: String) {
        status::shorten(&mut message);
        let recorded = self.store.record_event(key, reason, action, &message);
        if let Err(error) = self.in_store(recorded).await {
            tracing::warn!(error = %chain(&error), "could not record an event");
        }
    }

    /// Bounds a call to the store.
    pub(super) async fn in_store<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let limit = self.settings.store_timeout;
        timeout(limit, call)
            .await
            .unwrap_or_else(|elapsed| Err(StoreError(elapsed.into())))
    }
}

/// The failure that an error of a reconciler means.
pub(super) fn classified<E: Classify>(error: &E) -> Failure {
    Failure {
        class: error.class(),
        reason: error.reason(),
        message: error.to_string(),
        chain: chain(error),
    }
}

pub(super) fn too_long(what: &str, limit: Duration) -> Failure {
    let message = format!("{what} took longer than {} s", limit.as_secs());
    Failure {
        class: ErrorClass::Transient,
        reason: Reason::Retrying,
        chain: message.clone(),
        message,
    }
}

/// The text of a panic goes to the log only: nobody has checked what it may say to users.
pub(super) fn panicked(step: &str, panic: &(dyn Any + Send)) -> Failure {
    tracing::error!(step, panic = %payload(panic), "a pass panicked");
    Failure {
        class: ErrorClass::Transient,
        reason: Reason::Panicked,
        message: format!("the pass crashed during {step}; the log says where"),
        chain: format!("panic during {step}: {}", payload(panic)),
    }
}

pub(super) fn payload(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// The name of an action's variant: what its `Debug` begins with.
pub(super) fn variant_name(action: &impl fmt::Debug) -> String {
    /// Takes letters up to the first other character, then stops the formatting.
    struct Name(String);
    impl fmt::Write for Name {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for letter in text.chars() {
                if !letter.is_alphanumeric() && letter != '_' {
                    return Err(fmt::Error);
                }
                self.0.push(letter);
            }
            Ok(())
        }
    }
    let mut name = Name(String::new());
    let _ = write!(name, "{action:?}");
    name.0
}

#[cfg(test)]
mod tests {
    use super::variant_name;

    #[test]
    fn an_action_is_named_by_its_variant() {
        #[derive(Debug)]
        #[allow(dead_code)]
        enum Step {
            Start,
            Remove(u8),
            CreateNext { name: &'static str },
        }
        assert_eq!(variant_name(&Step::Start), "Start");
        assert_eq!(variant_name(&Step::Remove(1)), "Remove");
        assert_eq!(variant_name(&Step::CreateNext { name: "x" }), "CreateNext");
    }
}
