//! Containers that end although nobody asked for it.

use std::time::Duration;

use schema::condition::{Condition, Reason};
use schema::container::{CRASH_WINDOW, ContainerFacts};
use schema::ids::Timestamp;

use super::{Action, Running, SHORT, act, forgotten, start};
use crate::drivers::docker::Container;
use crate::runtime::Plan;

/// From this many crashes in a row on, it is a crash loop.
pub const CRASH_LOOP_FROM: u32 = 3;
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
        let at = details.finished_at.unwrap_or(base.created_at);
        if self.row.facts.last_exit_at != Some(at) {
            return self.note_exit(at, details.started_at, details.exit_code);
        }
        if let Some(wait) = self.crash_wait() {
            return wait;
        }
        act(vec![start(base)], "starting the container again")
    }

    /// It was there and ready, and now there is no trace of it.
    pub(super) fn note_loss(&self) -> Option<Plan<Action>> {
        self.row.facts.engine_id.as_ref()?;
        Some(self.note_exit(self.now, self.row.facts.started_at, None))
    }

    pub(super) fn note_exit(
        &self,
        at: Timestamp,
        started_at: Option<Timestamp>,
        code: Option<i64>,
    ) -> Plan<Action> {
        let facts = &self.row.facts;
        let early = started_at.is_none_or(|started| at.since(started) < CRASH_WINDOW);
        let before = if facts.crash_token == self.row.restart_token {
            facts.crash_count
        } else {
            0
        };
        let noted = ContainerFacts {
            crash_count: if early { before.saturating_add(1) } else { 0 },
            crash_token: self.row.restart_token.clone(),
            last_exit_at: Some(at),
            last_exit_code: code,
            ..forgotten(facts, self.now)
        };
        let message = match code {
            Some(code) => format!("the container ended with exit code {code}"),
            None => "the container was removed by somebody else".to_owned(),
        };
        Plan::act(
            vec![Action::SaveFacts(Box::new(noted))],
            Condition::not_ready(Reason::Exited, message),
        )
    }

    /// Whether the next start has to wait, because starts fail again and again.
    pub(super) fn crash_wait(&self) -> Option<Plan<Action>> {
        let facts = &self.row.facts;
        if facts.crash_token != self.row.restart_token {
            return None;
        }
        let at = facts.last_exit_at?;
        let left = self.left_of(at, crash_delay(facts.crash_count))?;
        let ending = match facts.last_exit_code {
            Some(code) => format!("ended with exit code {code}"),
            None => "was removed by somebody else".to_owned(),
        };
        let (reason, times) = if facts.crash_count >= CRASH_LOOP_FROM {
            (Reason::CrashLoop, facts.crash_count)
        } else {
            (Reason::Exited, facts.crash_count)
        };
        let message =
            format!("the container {ending}, {times} times in a row soon after its start");
        Some(Plan::say(Condition::not_ready(reason, message)).after(left))
    }
}
