//! The memory of a conversation, and which entries are forgotten to bound it.

use std::time::Duration;

use super::entries::{is_growing, is_open};
use super::{Effect, Item, Now, Talk};
use crate::chat::protocol::{Body, MessageStatus};
use crate::chat::stored::Line;

/// Most entries that are kept in memory.
pub(in crate::chat) const KEPT: usize = 200;
/// Most bytes of the kept entries; twice as many while some of them cannot be forgotten yet.
pub(in crate::chat) const KEPT_BYTES: usize = 1024 * 1024;
/// Most bytes of lines that wait to be written.
pub(super) const UNWRITTEN: usize = 1024 * 1024;
/// Memory of a conversation without entries, and of its link to the agent, in bytes.
const LEAST: usize = 48 * 1024;
/// Memory of an item beside its entry, in bytes.
const ITEM: usize = size_of::<Item>() + 64;
/// Memory of an id of an accepted message, in bytes.
const ACCEPTED: usize = 112;
/// A changed entry is written after this time without a further change.
const SETTLED: Duration = Duration::from_secs(1);

impl Talk {
    /// Returns the memory that the conversation takes, in bytes.
    pub(in crate::chat) fn weight(&self) -> usize {
        let unwritten = self.unwritten.iter().map(Line::weight).sum::<usize>();
        LEAST + self.kept_bytes() + unwritten + self.accepted.len() * ACCEPTED
    }

    fn kept_bytes(&self) -> usize {
        let items = self.items.values().map(weigh_item);
        items.sum()
    }

    /// Takes the lines of entries that are to be written: all, or those that have not changed for a moment.
    pub(in crate::chat) fn take_lines(&mut self, all: bool, now: Now) -> Vec<Line> {
        let mut lines = Vec::from(std::mem::take(&mut self.unwritten));
        for item in self.items.values_mut() {
            let rests = now.instant.saturating_duration_since(item.changed) >= SETTLED;
            // A text that grows slowly is not written with each word.
            let waits = !all && (!rests || is_growing(&item.entry.body));
            if item.unsaved.is_some() && !waits && !item.placeholder {
                lines.push(Line::Entry(item.entry.clone()));
                item.unsaved = None;
            }
        }
        self.forget_old();
        lines
    }

    /// Takes lines back that could not be written. Entries in memory are written again; of the lines of other ones the oldest of too
    /// many are dropped.
    pub(in crate::chat) fn put_lines_back(&mut self, lines: Vec<Line>, now: Now) {
        let later = std::mem::take(&mut self.unwritten);
        for line in lines {
            let id = match &line {
                Line::Entry(entry) => Some(entry.id),
                Line::Removed(_) => None,
            };
            match id.and_then(|id| self.items.get_mut(&id)) {
                Some(item) => {
                    item.unsaved.get_or_insert(now.instant);
                }
                None => self.unwritten.push_back(line),
            }
        }
        self.unwritten.extend(later);
        let mut bytes: usize = self.unwritten.iter().map(Line::weight).sum();
        while bytes > UNWRITTEN
            && let Some(oldest) = self.unwritten.pop_front()
        {
            bytes -= oldest.weight();
        }
    }

    /// Forgets the oldest entries that are written and at rest.
    pub(super) fn forget_old(&mut self) {
        self.forget_beyond(KEPT, KEPT_BYTES, 2);
    }

    /// Forgets the oldest entries until the conversation takes at most so many bytes, as far as that is possible.
    pub(in crate::chat) fn shrink_to(&mut self, bytes: usize) {
        let others = self.weight() - self.kept_bytes();
        self.forget_beyond(KEPT, bytes.saturating_sub(others), 1);
    }

    /// Forgets the oldest entries beyond a number and a memory; beyond so many times as much also those that are not written.
    fn forget_beyond(&mut self, most: usize, most_bytes: usize, times: usize) {
        let mut bytes = self.kept_bytes();
        while self.items.len() > most || bytes > most_bytes {
            let crowded = self.items.len() > times * most || bytes > times * most_bytes;
            let Some(item) = self
                .find_oldest(crowded)
                .and_then(|id| self.items.remove(&id))
            else {
                return;
            };
            bytes -= weigh_item(&item);
            if item.unsaved.is_some() && !item.placeholder {
                self.unwritten.push_back(Line::Entry(item.entry));
            }
            let unwritten: usize = self.unwritten.iter().map(Line::weight).sum();
            if unwritten > UNWRITTEN / 2 && !self.effects.contains(&Effect::Save) {
                self.effects.push(Effect::Save);
            }
            if let Some(message) = item.message {
                self.messages.remove(&message);
            }
            self.lost_before = self.lost_before.max(item.n);
            self.older = true;
        }
    }

    /// Finds the oldest entry that can be forgotten; messages on their way to the agent cannot. In a crowded conversation it need not be
    /// written.
    fn find_oldest(&self, crowded: bool) -> Option<u64> {
        for (id, item) in &self.items {
            if self.next_id - id < 3 {
                return None;
            }
            let waits = item.on_the_way
                || matches!(
                    &item.entry.body,
                    Body::User {
                        status: MessageStatus::Waiting,
                        ..
                    }
                );
            if waits {
                continue;
            }
            let rests = item.unsaved.is_none() && !is_open(&item.entry.body);
            return (rests || crowded).then_some(*id);
        }
        None
    }
}

fn weigh_item(item: &Item) -> usize {
    // The agent's id is a key, too.
    let message = item.message.as_ref().map_or(0, String::capacity);
    ITEM + item.weight + 2 * message
}
