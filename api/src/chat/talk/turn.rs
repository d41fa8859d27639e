//! The running turn: its begin, and the many ways in which it ends.

use std::time::Duration;

use schema::adapter::ChatFeature;
use schema::ids::Timestamp;
use tokio::time::Instant;

use super::{Effect, Now, Talk};
use crate::chat::protocol::{
    AgentState, Body, MessageStatus, NoticeCode, RefusalCode, State, Turn,
};

/// A turn without a sign of life ends after this time.
const SILENCE: Duration = Duration::from_secs(10 * 60);
/// Silence after a message that may be the turn's last.
const QUIET: Duration = Duration::from_secs(10);
/// The same, for versions that mark no message as the last.
const QUIET_UNMARKED: Duration = Duration::from_secs(2);
/// Longest wait for the agent's answer to `/stop`.
const STOPPING: Duration = Duration::from_secs(10);
/// Longest wait for the agent's return during a turn.
const LOST: Duration = Duration::from_secs(30);

/// A running turn.
#[derive(Debug)]
pub(super) struct Running {
    since: Timestamp,
    begun: Instant,
    /// The agent has said something in it.
    heard: bool,
    /// The agent has given a sign of life in it.
    noticed: bool,
    /// Entries of its messages.
    messages: Vec<u64>,
    last_sign: Instant,
    stopping: Option<Instant>,
    /// A message that may be the last came at this time.
    maybe_over: Option<Instant>,
    /// The connection broke at this time.
    lost: Option<Instant>,
    /// A message joined that the agent has not noticed yet.
    joining: bool,
}

/// The end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnEnd {
    Answered,
    Unanswered,
    Stopped,
}

impl Running {
    fn new(now: Now) -> Self {
        Self {
            since: now.wall,
            begun: now.instant,
            heard: false,
            noticed: false,
            messages: Vec::new(),
            last_sign: now.instant,
            stopping: None,
            maybe_over: None,
            lost: None,
            joining: false,
        }
    }

    /// Messages that joined it.
    pub(super) fn joined(&self) -> usize {
        self.messages.len().saturating_sub(1)
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// Its newest message may have been the last.
    pub(super) fn may_be_over(&self) -> bool {
        self.maybe_over.is_some()
    }

    /// Takes a message out; returns true when none is left.
    pub(super) fn forget_message(&mut self, id: u64) -> bool {
        self.messages.retain(|message| *message != id);
        self.messages.is_empty()
    }
}

impl Talk {
    /// Reports that a turn runs.
    pub(in crate::chat) fn is_running(&self) -> bool {
        self.turn.is_some()
    }

    /// The begin of the running turn, and true once the agent has said something in it.
    pub(in crate::chat) fn turn_so_far(&self) -> Option<(Instant, bool)> {
        self.turn.as_ref().map(|turn| (turn.begun, turn.heard))
    }

    pub(super) fn begin_or_join(&mut self, id: u64, now: Now) {
        let turn = self.turn.get_or_insert_with(|| Running::new(now));
        turn.joining = !turn.messages.is_empty();
        turn.messages.push(id);
        turn.last_sign = now.instant;
        turn.maybe_over = None;
    }

    /// Takes a frame as a sign of life; with `works` it shows that a turn runs, even one that seemed to be over.
    pub(super) fn sign_of_life(&mut self, works: bool, now: Now) {
        if works && self.turn.is_none() {
            self.turn = Some(Running::new(now));
        }
        if let Some(turn) = &mut self.turn {
            turn.last_sign = now.instant;
            turn.maybe_over = None;
            turn.heard |= works;
            turn.noticed = true;
        }
    }

    /// The agent begins to type: it has noticed a message.
    pub(super) fn note_joined(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.joining = false;
        }
    }

    /// Ends the turn after its answer, unless a message joined so late that it gets a turn of its own.
    pub(super) fn end_answered(&mut self, now: Now) {
        match self.turn.as_ref().is_some_and(|turn| turn.joining) {
            true => self.note_maybe_over(now),
            false => self.end_turn(TurnEnd::Answered, now),
        }
    }

    pub(super) fn note_maybe_over(&mut self, now: Now) {
        if let Some(turn) = &mut self.turn {
            turn.maybe_over = Some(now.instant);
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.turn.as_ref().is_some_and(Running::is_stopping)
    }

    /// Stops the running turn, and takes back the messages that wait.
    ///
    /// # Errors
    /// Cause and sentence when there is nothing to stop, or this agent cannot.
    pub(in crate::chat) fn stop_turn(&mut self, now: Now) -> Result<(), (RefusalCode, String)> {
        let waiting = self.with_status(MessageStatus::Waiting);
        if self.turn.is_some() && !self.has(ChatFeature::Stop) {
            let text = "this version of the agent cannot stop a turn; wait for its end";
            return Err((RefusalCode::NotRunning, text.to_owned()));
        }
        if self.turn.is_none() && waiting.is_empty() {
            let text = "nothing is running in this conversation";
            return Err((RefusalCode::NotRunning, text.to_owned()));
        }
        for id in waiting {
            self.set_status(id, MessageStatus::Withdrawn, now);
        }
        if let Some(turn) = &mut self.turn
            && turn.stopping.is_none()
        {
            turn.stopping = Some(now.instant);
            self.stops += 1;
            self.effects.push(Effect::Stop);
        }
        self.effects.push(Effect::Save);
        self.publish();
        Ok(())
    }

    /// Records that the stop did not reach the agent: it can be asked for again.
    pub(in crate::chat) fn lose_stop(&mut self) {
        self.stops = self.stops.saturating_sub(1);
        if let Some(turn) = &mut self.turn {
            turn.stopping = None;
        }
        self.publish();
    }

    /// Ends the turn as stopped by the user; `confirmed` by the agent.
    pub(super) fn end_stopped(&mut self, confirmed: bool, now: Now) {
        self.end_turn(TurnEnd::Stopped, now);
        match confirmed {
            true => self.add_notice(NoticeCode::Stopped, "You stopped this answer.", now),
            false => {
                let text = "You stopped this answer. The agent did not confirm it and may still be working.";
                self.add_notice(NoticeCode::StopUnconfirmed, text, now);
            }
        }
    }

    pub(super) fn end_turn(&mut self, end: TurnEnd, now: Now) {
        let turn = self.turn.take();
        self.typing = 0;
        let open: Vec<u64> = self
            .items
            .iter()
            .filter(|(_, item)| {
                let body = &item.entry.body;
                item.placeholder
                    || matches!(
                        body,
                        Body::Answer {
                            streaming: true,
                            ..
                        } | Body::Thought {
                            streaming: true,
                            ..
                        }
                    )
            })
            .map(|(id, _)| *id)
            .collect();
        for id in open {
            self.close_entry(id, now);
        }
        let status = match end {
            TurnEnd::Answered => None,
            TurnEnd::Unanswered => Some(MessageStatus::Unanswered),
            TurnEnd::Stopped => Some(MessageStatus::Stopped),
        };
        if let Some(status) = status {
            for id in turn.into_iter().flat_map(|turn| turn.messages) {
                self.set_status(id, status, now);
            }
        }
        self.effects.push(Effect::Save);
    }

    /// Closes an entry that more text was expected for; one that only held a place is removed.
    fn close_entry(&mut self, id: u64, now: Now) {
        let Some(item) = self.items.get_mut(&id) else {
            return;
        };
        if item.placeholder {
            self.remove_entry(id);
            return;
        }
        if let Body::Answer { streaming, .. } | Body::Thought { streaming, .. } = item.body_mut() {
            *streaming = false;
        }
        self.touch_entry(id, now);
    }

    /// The connection to the agent stands; with `restarted` to another start of it than before.
    pub(in crate::chat) fn agent_connected(&mut self, restarted: bool, now: Now) {
        self.typing = 0;
        self.stops = 0;
        if restarted {
            self.agent_restarted(now);
        } else if self
            .turn
            .as_ref()
            .is_some_and(|turn| turn.lost.is_some() && !turn.noticed)
        {
            self.end_lost(now);
        } else if let Some(turn) = &mut self.turn {
            turn.lost = None;
            turn.last_sign = now.instant;
        }
        self.publish();
    }

    /// The agent restarted: a turn that ran is gone.
    pub(in crate::chat) fn agent_restarted(&mut self, now: Now) {
        if self.turn.is_some() {
            self.end_turn(TurnEnd::Unanswered, now);
            let text = "The agent restarted before it had answered. Send the message again.";
            self.add_notice(NoticeCode::AgentRestarted, text, now);
            self.publish();
        }
    }

    /// The connection to the agent broke.
    pub(in crate::chat) fn agent_disconnected(&mut self, now: Now) {
        self.typing = 0;
        if let Some(turn) = &mut self.turn {
            turn.lost.get_or_insert(now.instant);
        }
        self.publish();
    }

    fn end_lost(&mut self, now: Now) {
        self.end_turn(TurnEnd::Unanswered, now);
        let text =
            "The connection to the agent broke before it had answered. Send the message again.";
        self.add_notice(NoticeCode::Disconnected, text, now);
    }

    /// Lets time pass.
    pub(in crate::chat) fn tick(&mut self, now: Now) {
        let Some(turn) = &self.turn else {
            return;
        };
        let since = |at: Option<Instant>| at.map(|at| now.instant.saturating_duration_since(at));
        let quiet = match self.has(ChatFeature::Usage) {
            true => QUIET,
            false => QUIET_UNMARKED,
        };
        if since(turn.stopping).is_some_and(|time| time >= STOPPING) {
            self.end_stopped(false, now);
        } else if since(turn.lost).is_some_and(|time| time >= LOST) {
            self.end_lost(now);
        } else if self.typing == 0 && since(turn.maybe_over).is_some_and(|time| time >= quiet) {
            self.end_turn(TurnEnd::Answered, now);
        } else if since(Some(turn.last_sign)).is_some_and(|time| time >= SILENCE) {
            self.end_turn(TurnEnd::Unanswered, now);
            let text = "The agent gave no sign of life for ten minutes. Send the message again, or ask your administrator.";
            self.add_notice(NoticeCode::Silent, text, now);
        } else {
            return;
        }
        self.publish();
    }

    /// Makes the state anew; a change of it has a number.
    pub(super) fn publish(&mut self) {
        let state = State {
            agent: self.agent,
            message: self.agent_message.clone(),
            turn: self.turn.as_ref().map(|turn| Turn {
                since: turn.since,
                stopping: turn.is_stopping(),
            }),
            typing: self.typing > 0,
            waiting: self.count_waiting(),
            other: self.other && self.agent == AgentState::Connected,
        };
        if state != self.state {
            self.state = state;
            self.n += 1;
            self.state_n = self.n;
        }
    }
}
