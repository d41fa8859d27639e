//! Containers that end although nobody asked for it.

use std::time::Duration;

use engine::{Container, ContainerState};
use schema::condition::{Condition, Reason};
use schema::container::{CRASH_WINDOW, ContainerEnd, ContainerFacts, sentence};
use schema::ids::Timestamp;
use schema::live::Loss;

use super::super::evidence::{exit_cause, exit_time};
use super::{Action, Running, SHORT, act, forgotten, start};
use crate::runtime::Plan;

/// From this many crashes in a row on, it is a crash loop.
pub const CRASH_LOOP_FROM: u32 = 3;
/// Cause of the end of a container that is not there any more.
pub(in crate::container) const REMOVED: &str = "removed by hand";
/// Cause of an end by the engine, which took the container from its machine.
pub(in crate::container) const EVICTED: &str = "evicted from its machine";
/// Cause of an end with the engine, which stopped or was restarted.
pub(in crate::container) const WITH_ENGINE: &str = "the container ended with the engine";
/// Cause of an end with the machine.
pub(in crate::container) const NODE_LOST: &str = "its machine is gone";
/// Beginning of the cause of an end by failed starts.
pub(in crate::container) const NOT_STARTED: &str = "not started by the engine";
/// End of the cause of an end for want of memory.
pub(in crate::container) const OUT_OF_MEMORY: &str = "out of memory";
/// End of the cause of an eviction soon after the start.
const SOON: &str = ", soon after its start";
/// Time before the start after an eviction that came soon after a start.
const EVICTION_REST: Duration = Duration::from_secs(60);
const LONGEST_CRASH_DELAY: Duration = Duration::from_secs(5 * 60);

/// How long to wait before start number `count + 1`: the first exit is repaired at once, then
/// 2 s, 4 s, … up to five minutes.
pub fn crash_delay(count: u32) -> Duration {
    match count {
        0 | 1 => Duration::ZERO,
        n => Duration::from_secs(1_u64 << (n - 1).min(16)).min(LONGEST_CRASH_DELAY),
    }
}

impl Running<'_> {
    /// It ended and nobody asked for it.
    pub(super) fn exited(&self, base: &Container) -> Plan<Action> {
        let Some(details) = self.seen.details.get(&base.id) else {
            let condition = Condition::not_ready(Reason::Exited, "the container ended");
            return Plan::say(condition).after(SHORT);
        };
        let at = exit_time(base, Some(details));
        if self.row.facts.last_exit_at != Some(at) {
            let evidence = self.seen.end.as_ref();
            let cause = evidence.map(|end| end.cause.clone());
            let end = ContainerEnd {
                at,
                exit_code: details.exit_code,
                cause: cause.unwrap_or_else(|| exit_cause(Some(details))),
                log: evidence.map_or_else(String::new, |end| end.log.join("\n")),
            };
            return self.note_exit(end, details.started_at, details.loss);
        }
        if let Some(wait) = self.crash_wait() {
            return wait;
        }
        act(vec![start(base)], "starting the container again")
    }

    /// Names the command that doubles the memory of an agent that ran out of it.
    fn advise_memory(&self) -> Option<String> {
        let cause = self.row.facts.last_exit_cause.as_ref()?;
        let limit = self.seen.wanted.as_ref()?.memory_bytes;
        let is_short = cause.contains(OUT_OF_MEMORY) && limit > 0;
        is_short.then(|| {
            let (name, more) = (&self.row.name, limit.saturating_mul(2) >> 20);
            format!("; raise its limit with `agentyard user limits {name} --memory {more}MiB`")
        })
    }

    /// It was there and ready, and now there is no trace of it.
    pub(super) fn note_loss(&self) -> Option<Plan<Action>> {
        self.row.facts.engine_id.as_ref()?;
        let end = ContainerEnd {
            at: self.now,
            exit_code: None,
            cause: REMOVED.to_owned(),
            log: String::new(),
        };
        Some(self.note_exit(end, self.row.facts.started_at, Some(Loss::Removed)))
    }

    fn note_exit(
        &self,
        mut end: ContainerEnd,
        started_at: Option<Timestamp>,
        loss: Option<Loss>,
    ) -> Plan<Action> {
        let facts = &self.row.facts;
        let early = started_at.is_none_or(|started| end.at.since(started) < CRASH_WINDOW);
        let before = if facts.crash_token == self.row.restart_token {
            facts.crash_count
        } else {
            0
        };
        // An agent that lost its machine or its engine has not crashed.
        let counts = matches!(loss, None | Some(Loss::Removed));
        if loss == Some(Loss::Evicted) && early {
            end.cause.push_str(SOON);
        }
        let noted = ContainerFacts {
            crash_count: match (early, counts) {
                (false, _) => 0,
                (true, true) => before.saturating_add(1),
                (true, false) => before,
            },
            crash_token: self.row.restart_token.clone(),
            last_exit_at: Some(end.at),
            last_exit_code: end.exit_code,
            last_exit_cause: Some(end.cause.clone()),
            ..forgotten(facts, self.now)
        };
        let reason = match loss {
            Some(Loss::Evicted) => Reason::Evicted,
            _ => Reason::Exited,
        };
        let condition = Condition::not_ready(reason, sentence(&end.cause));
        let note = Action::NoteEnd {
            facts: Box::new(noted),
            end: Box::new(end),
        };
        Plan::act(vec![note], condition)
    }

    /// The end of a container in use that is about to be replaced, if it is not noted yet. One that the service has stopped is not
    /// remembered as in use any more.
    pub(super) fn note_end_before_replacement(&self, base: &Container) -> Option<Plan<Action>> {
        let facts = &self.row.facts;
        let details = self.seen.details.get(&base.id)?;
        let is_ended = base.state == ContainerState::Exited
            && facts.engine_id.as_ref() == Some(&base.id)
            && facts.last_exit_at != Some(exit_time(base, Some(details)));
        is_ended.then(|| self.exited(base))
    }

    /// Whether the next start has to wait, because starts fail again and again.
    pub(super) fn crash_wait(&self) -> Option<Plan<Action>> {
        let facts = &self.row.facts;
        if facts.crash_token != self.row.restart_token {
            return None;
        }
        let at = facts.last_exit_at?;
        if let Some(cause) = &facts.last_exit_cause
            && cause.starts_with(EVICTED)
            && cause.ends_with(SOON)
            && let Some(left) = self.left_of(at, EVICTION_REST)
        {
            let condition = Condition::not_ready(Reason::Evicted, sentence(cause));
            return Some(Plan::say(condition).after(left));
        }
        let left = self.left_of(at, crash_delay(facts.crash_count))?;
        let ending = match (&facts.last_exit_cause, facts.last_exit_code) {
            (Some(cause), _) => sentence(cause),
            (None, Some(code)) => sentence(&format!("exit code {code}")),
            (None, None) => sentence(REMOVED),
        };
        let (reason, times) = if facts.crash_count >= CRASH_LOOP_FROM {
            (Reason::CrashLoop, facts.crash_count)
        } else {
            (Reason::Exited, facts.crash_count)
        };
        let advice = self.advise_memory().unwrap_or_default();
        let message = format!("{ending}, {times} times in a row soon after its start{advice}");
        Some(Plan::say(Condition::not_ready(reason, message)).after(left))
    }
}
