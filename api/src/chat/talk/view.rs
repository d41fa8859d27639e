//! Frames of a conversation for a page, from the last number that the page has seen, one after another.

use std::sync::Arc;

use schema::adapter::ChatFeature;
use serde::Serialize;

use super::Talk;
use crate::chat::protocol::{Entry, ServerFrame};

/// Place of a page in a conversation: the last number that it has seen, and of which run of numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::chat) struct Cursor {
    epoch: Option<String>,
    after: u64,
    /// Removals and titles up to this number are part of what the page gets anyway.
    since: u64,
    /// Changes up to this number were lost before the page was reset.
    lost_before: u64,
    /// Number of the abilities that the page knows.
    features_n: u64,
    /// The state is still to be sent, however old it is.
    state_is_due: bool,
}

impl Cursor {
    /// Makes the place of a page that comes back with the epoch and number that it has seen last.
    pub(in crate::chat) fn new(resumes: Option<(String, u64)>) -> Self {
        let (epoch, after) = resumes.unzip();
        let after = after.unwrap_or_default();
        Self {
            epoch,
            after,
            features_n: after,
            ..Self::default()
        }
    }
}

/// The next frame of a page, as far as it is made while the conversation is locked.
#[derive(Debug)]
pub(in crate::chat) enum PageFrameSource {
    /// A short frame, as JSON.
    Text(String),
    /// The state of an entry.
    Entry {
        /// Number of the change.
        n: u64,
        /// The entry.
        entry: Arc<Entry>,
    },
}

impl PageFrameSource {
    /// Returns the memory that the frame may take as JSON, in bytes.
    pub(in crate::chat) fn weight(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Entry { entry, .. } => 2 * entry.weight(),
        }
    }

    /// Returns the frame as JSON.
    pub(in crate::chat) fn into_json(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Entry { n, entry } => to_json(&ServerFrame::Entry { n, entry: &entry }),
        }
    }
}

fn to_json(frame: &impl Serialize) -> String {
    serde_json::to_string(frame).unwrap_or_default()
}

/// A change that a page has not seen.
enum Change<'a> {
    Removal(u64),
    Entry(&'a Arc<Entry>),
    Conversation,
    State,
}

impl Talk {
    /// Returns the number of the newest change.
    pub(in crate::chat) fn number(&self) -> u64 {
        self.n
    }

    /// Returns the next frame that brings a page up to date, and moves its cursor; `None` when it is. With `hello` the first frame is one
    /// even when the page has missed nothing. A page that is cut off in between resumes from the last number.
    pub(in crate::chat) fn next_frame(
        &self,
        cursor: &mut Cursor,
        hello: bool,
    ) -> Option<PageFrameSource> {
        let has_missed_none =
            cursor.after >= self.lost_before || cursor.lost_before == self.lost_before;
        let is_known = cursor.epoch.as_deref() == Some(&self.epoch)
            && cursor.after <= self.n
            && has_missed_none;
        if hello || !is_known || self.features_n > cursor.features_n {
            return Some(PageFrameSource::Text(self.greet(cursor, !is_known, hello)));
        }
        if cursor.state_is_due && self.state_n <= cursor.after {
            cursor.state_is_due = false;
            return Some(PageFrameSource::Text(self.show_state()));
        }
        let Some((n, change)) = self.next_change(cursor) else {
            cursor.after = self.n;
            return None;
        };
        cursor.after = n;
        Some(PageFrameSource::Text(match change {
            Change::Entry(entry) => {
                let entry = Arc::clone(entry);
                return Some(PageFrameSource::Entry { n, entry });
            }
            Change::Removal(id) => to_json(&ServerFrame::Remove { n, id }),
            Change::Conversation => to_json(&ServerFrame::Conversation {
                n,
                conversation: self.conversation.clone(),
            }),
            Change::State => {
                cursor.state_is_due = false;
                self.show_state()
            }
        }))
    }

    fn greet(&self, cursor: &mut Cursor, reset: bool, hello: bool) -> String {
        cursor.features_n = self.features_n;
        cursor.state_is_due |= hello || reset;
        if reset {
            cursor.epoch = Some(self.epoch.clone());
            cursor.after = 0;
            cursor.since = self.n;
            cursor.lost_before = self.lost_before;
        }
        to_json(&ServerFrame::Hello {
            epoch: &self.epoch,
            n: self.n,
            reset,
            older: self.older,
            conversation: self.conversation.clone(),
            pictures: self.has(ChatFeature::Pictures),
            stop: self.has(ChatFeature::Stop),
        })
    }

    fn show_state(&self) -> String {
        to_json(&ServerFrame::State {
            n: self.state_n,
            state: &self.state,
        })
    }

    /// Finds the oldest change that the page has not seen.
    fn next_change(&self, cursor: &Cursor) -> Option<(u64, Change<'_>)> {
        let after = cursor.after;
        let missed = after.max(cursor.since);
        let entries = self.items.values();
        let entries = entries.map(|item| (item.n, Change::Entry(&item.entry)));
        let removals = self.removals.iter();
        let removals = removals.map(|(n, id)| (*n, Change::Removal(*id)));
        let conversation = (self.conversation_n, Change::Conversation);
        let state = (self.state_n, Change::State);
        let changes = entries.chain([state]).filter(|(n, _)| *n > after);
        let parts = removals.chain([conversation]).filter(|(n, _)| *n > missed);
        changes.chain(parts).min_by_key(|(n, _)| *n)
    }
}
