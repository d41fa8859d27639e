//! Entries in memory: their changes, and their bounds.

use super::record::line_of;
use super::{Effect, Item, Now, Talk};
use crate::chat::protocol::{Body, Entry, MessageStatus, NoticeCode, SentFile};

/// Most entries that are kept in memory.
pub(super) const KEPT: usize = 200;
/// Most bytes of text of the kept entries.
pub(super) const KEPT_BYTES: usize = 4 * 1024 * 1024;
/// Most removals that are kept in memory.
const KEPT_REMOVALS: usize = 200;

impl Talk {
    /// Reports that files of the agent are still fetched.
    pub(in crate::chat) fn fetches_files(&self) -> bool {
        let mut bodies = self.items.values().map(|item| &item.entry.body);
        bodies.any(|body| matches!(body, Body::Files { .. }) && is_open(body))
    }

    /// A file of an entry.
    pub(in crate::chat) fn file(&self, id: u64, index: usize) -> Option<SentFile> {
        match &self.items.get(&id)?.entry.body {
            Body::Files { files, .. } => files.get(index).cloned(),
            _ => None,
        }
    }

    /// Records the outcome of fetching a file.
    pub(in crate::chat) fn set_file(&mut self, id: u64, index: usize, fetched: SentFile, now: Now) {
        if let Some(item) = self.items.get_mut(&id)
            && let Body::Files { files, .. } = &mut item.entry.body
            && let Some(file) = files.get_mut(index)
        {
            *file = fetched;
            self.touch_entry(id, now);
        }
    }

    pub(super) fn add_notice(&mut self, code: NoticeCode, text: impl Into<String>, now: Now) {
        let text = text.into();
        self.add_entry(Body::Notice { code, text }, now);
    }

    pub(super) fn add_entry(&mut self, body: Body, now: Now) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.n += 1;
        let entry = Entry {
            id,
            at: now.wall,
            body,
        };
        let item = Item {
            n: self.n,
            entry,
            unsaved: Some(now.instant),
            changed: now.instant,
            message: None,
            placeholder: false,
            cut: false,
        };
        self.items.insert(id, item);
        self.forget_old();
        id
    }

    pub(super) fn touch_entry(&mut self, id: u64, now: Now) {
        self.n += 1;
        if let Some(item) = self.items.get_mut(&id) {
            item.n = self.n;
            item.unsaved.get_or_insert(now.instant);
            item.changed = now.instant;
        }
    }

    pub(super) fn remove_entry(&mut self, id: u64) {
        let Some(item) = self.items.remove(&id) else {
            return;
        };
        if let Some(message) = item.message {
            self.messages.remove(&message);
        }
        self.n += 1;
        self.unsaved_removals.push(id);
        self.removals.push_back((self.n, id));
        while self.removals.len() > KEPT_REMOVALS {
            if let Some((n, _)) = self.removals.pop_front() {
                self.lost_before = self.lost_before.max(n);
            }
        }
    }

    /// Forgets the oldest entries that are written and at rest.
    pub(super) fn forget_old(&mut self) {
        let mut bytes: usize = self
            .items
            .values()
            .map(|item| weigh_entry(&item.entry))
            .sum();
        while self.items.len() > KEPT || bytes > KEPT_BYTES {
            let crowded = self.items.len() > 2 * KEPT || bytes > 2 * KEPT_BYTES;
            let Some(first) = self.items.first_entry() else {
                return;
            };
            let rests = first.get().unsaved.is_none() && !is_open(&first.get().entry.body);
            let waits = matches!(
                &first.get().entry.body,
                Body::User {
                    status: MessageStatus::Waiting,
                    ..
                }
            );
            if waits || !rests && !crowded || self.next_id - first.key() < 3 {
                return;
            }
            let mut item = first.remove();
            if item.unsaved.is_some() && !item.placeholder {
                self.evicted.extend(line_of(&mut item.entry));
            }
            let evicted: usize = self.evicted.iter().map(String::len).sum();
            if evicted > KEPT_BYTES && !self.effects.contains(&Effect::Save) {
                self.effects.push(Effect::Save);
            }
            bytes = bytes.saturating_sub(weigh_entry(&item.entry));
            if let Some(message) = item.message {
                self.messages.remove(&message);
            }
            self.lost_before = self.lost_before.max(item.n);
            self.older = true;
        }
    }
}

/// An entry whose text grows.
pub(super) fn is_growing(body: &Body) -> bool {
    matches!(
        body,
        Body::Answer {
            streaming: true,
            ..
        } | Body::Thought {
            streaming: true,
            ..
        }
    )
}

/// An entry that may still change.
pub(super) fn is_open(body: &Body) -> bool {
    match body {
        Body::User { status, .. } => *status == MessageStatus::Waiting,
        Body::Answer { streaming, .. } | Body::Thought { streaming, .. } => *streaming,
        Body::Files { files, .. } => files
            .iter()
            .any(|file| file.file.is_none() && file.error.is_none()),
        _ => false,
    }
}

pub(super) fn weigh_entry(entry: &Entry) -> usize {
    let text = match &entry.body {
        Body::User { text, .. }
        | Body::Answer { text, .. }
        | Body::Thought { text, .. }
        | Body::Failure { text, .. }
        | Body::Notice { text, .. } => text.len(),
        Body::Tools { calls } => calls
            .iter()
            .map(|call| call.arguments.len() + call.name.len())
            .sum(),
        Body::Files { files, .. } => files.len() * 200,
    };
    text + 200
}
