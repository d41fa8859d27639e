//! Entries in memory, and their changes.

use super::{Item, Now, Talk};
use crate::chat::protocol::{Body, Entry, MessageStatus, NoticeCode, SentFile};
use crate::chat::stored::Line;

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
            && let Body::Files { files, .. } = item.body_mut()
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
            unsaved: Some(now.instant),
            ..Item::new(self.n, entry, now)
        };
        self.items.insert(id, item);
        self.forget_old();
        id
    }

    pub(super) fn touch_entry(&mut self, id: u64, now: Now) {
        self.n += 1;
        if let Some(item) = self.items.get_mut(&id) {
            item.n = self.n;
            item.weight = item.entry.weight();
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
        self.unwritten.push_back(Line::Removed(id));
        self.removals.push_back((self.n, id));
        while self.removals.len() > KEPT_REMOVALS {
            if let Some((n, _)) = self.removals.pop_front() {
                self.lost_before = self.lost_before.max(n);
            }
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
