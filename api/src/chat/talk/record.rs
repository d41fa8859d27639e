//! Entries as lines of a conversation's file. The last line of an id counts.

use serde::{Deserialize, Serialize};

use super::{Item, Now, SETTLED, Talk, is_open};
use crate::chat::protocol::{Body, Entry, MessageStatus, NoticeCode};

/// Greatest id that is taken from a file.
const MOST_ID: u64 = 1 << 50;

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Record {
    Removed { id: u64, removed: bool },
    Entry(Entry),
}

/// Reads the entries of `lines`, in the order of their ids; the last line of an id counts, and one that cannot be read is left out.
pub(in crate::chat) fn read_entries<'a>(
    lines: impl IntoIterator<Item = &'a str>,
) -> std::collections::BTreeMap<u64, Entry> {
    let mut entries = std::collections::BTreeMap::new();
    for line in lines {
        match serde_json::from_str::<Record>(line) {
            Ok(Record::Removed { id, removed: true }) => {
                entries.remove(&id);
            }
            Ok(Record::Entry(entry)) if entry.id > 0 && entry.id < MOST_ID => {
                entries.insert(entry.id, entry);
            }
            _ => {}
        }
    }
    entries
}

impl Talk {
    pub(super) fn read_records(&mut self, lines: &[String], now: Now) {
        for (id, entry) in read_entries(lines.iter().map(String::as_str)) {
            self.n += 1;
            if let Body::User {
                client_id: Some(client_id),
                ..
            } = &entry.body
            {
                self.remember(client_id.clone(), id);
            }
            let item = Item {
                n: self.n,
                entry,
                unsaved: None,
                changed: now.instant,
                message: None,
                placeholder: false,
            };
            self.items.insert(id, item);
            self.next_id = id + 1;
        }
        self.forget_old();
        // Nothing was shown yet, so nothing is missing.
        self.lost_before = 0;
    }

    /// Closes what a stop of the service left open, and says so.
    pub(super) fn note_interruption(&mut self, now: Now) {
        let open: Vec<u64> = self
            .items
            .iter()
            .filter(|(_, item)| is_open(&item.entry.body))
            .map(|(id, _)| *id)
            .collect();
        for id in open {
            let Some(item) = self.items.get_mut(&id) else {
                continue;
            };
            match &mut item.entry.body {
                Body::Answer { streaming, .. } | Body::Thought { streaming, .. } => {
                    *streaming = false;
                }
                Body::Files { files, .. } => {
                    for file in files.iter_mut().filter(|file| file.file.is_none()) {
                        file.error
                            .get_or_insert_with(|| "the service restarted before it was fetched".to_owned());
                    }
                }
                _ => continue,
            }
            self.touch(id, now);
        }
        let unanswered = self.items.iter().rev().map_while(|(id, item)| match &item.entry.body {
            Body::User { status, .. } => Some((*id, *status)),
            Body::Tools { .. } | Body::Thought { .. } => Some((*id, MessageStatus::Failed)),
            _ => None,
        });
        let unanswered: Vec<u64> = unanswered
            .filter(|(_, status)| matches!(status, MessageStatus::Sent | MessageStatus::Joined))
            .map(|(id, _)| id)
            .collect();
        if unanswered.is_empty() {
            return;
        }
        for id in unanswered {
            self.set_status(id, MessageStatus::Unanswered, now);
        }
        let text = "The service restarted before the agent had answered. An answer that still comes is shown here; otherwise send the message again.";
        self.notice(NoticeCode::ServiceRestarted, text, now);
    }

    /// Takes the lines of entries that are to be written: all, or those that have not changed for a moment.
    pub(in crate::chat) fn take_lines(&mut self, all: bool, now: Now) -> Vec<String> {
        let mut lines = Vec::new();
        for id in std::mem::take(&mut self.unsaved_removals) {
            lines.extend(serde_json::to_string(&Record::Removed { id, removed: true }).ok());
        }
        for item in self.items.values_mut() {
            let rests = now.instant.saturating_duration_since(item.changed) >= SETTLED;
            if item.unsaved.is_some() && (all || rests) && !item.placeholder {
                lines.extend(serde_json::to_string(&item.entry).ok());
                item.unsaved = None;
            }
        }
        self.forget_old();
        lines
    }

    /// Reports that something is not written yet.
    pub(in crate::chat) fn has_unsaved(&self) -> bool {
        !self.unsaved_removals.is_empty() || self.items.values().any(|item| item.unsaved.is_some())
    }
}
