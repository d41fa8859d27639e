//! Entries as lines of a conversation's file. The last line of an id counts.

use std::collections::BTreeMap;
use std::time::Duration;

use schema::home::conversations::LINE;
use serde::{Deserialize, Serialize};

use super::entries::{is_growing, is_open};
use super::{Item, Now, Talk};
use crate::chat::protocol::{Body, Entry, MessageStatus, NoticeCode};

/// Greatest id that is taken from a file.
const MOST_ID: u64 = 1 << 50;
/// A changed entry is written after this time without a further change.
const SETTLED: Duration = Duration::from_secs(1);

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Record {
    Removed { id: u64, removed: bool },
    Entry(Entry),
}

/// The entries that the lines of a conversation make.
#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: BTreeMap<u64, Entry>,
    /// Only entries before this one are kept, and the newest so many of them.
    newest: Option<(u64, usize)>,
    left_out: bool,
}

impl Log {
    /// Keeps the newest `most` entries before one.
    pub(crate) fn newest_before(before: u64, most: usize) -> Self {
        Self {
            newest: Some((before, most)),
            ..Self::default()
        }
    }

    /// Takes the next line; one that cannot be read is left out.
    pub(crate) fn take_line(&mut self, line: &str) {
        let before = self.newest.map_or(MOST_ID, |(before, _)| before);
        match serde_json::from_str::<Record>(line) {
            Ok(Record::Removed { id, removed: true }) => {
                self.entries.remove(&id);
            }
            Ok(Record::Entry(entry)) if (1..before.min(MOST_ID)).contains(&entry.id) => {
                self.entries.insert(entry.id, entry);
            }
            _ => {}
        }
        while self
            .newest
            .is_some_and(|(_, most)| self.entries.len() > most)
        {
            self.entries.pop_first();
            self.left_out = true;
        }
    }

    /// The entries, oldest first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// The entries, oldest first, and true when others exist before them.
    pub(crate) fn into_entries(self) -> (Vec<Entry>, bool) {
        (self.entries.into_values().collect(), self.left_out)
    }
}

impl Talk {
    pub(super) fn read_records(&mut self, lines: &[String], now: Now) {
        let mut log = Log::default();
        lines.iter().for_each(|line| log.take_line(line));
        for entry in log.into_entries().0 {
            let id = entry.id;
            self.n += 1;
            if let Body::User {
                client_id: Some(client_id),
                ..
            } = &entry.body
            {
                self.remember_message(client_id.clone(), id);
            }
            let item = Item {
                n: self.n,
                entry,
                unsaved: None,
                changed: now.instant,
                message: None,
                placeholder: false,
                cut: false,
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
                        file.error.get_or_insert_with(|| {
                            "the service restarted before it was fetched".to_owned()
                        });
                    }
                }
                _ => continue,
            }
            self.touch_entry(id, now);
        }
        let unanswered = self
            .items
            .iter()
            .rev()
            .map_while(|(id, item)| match &item.entry.body {
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
        self.add_notice(NoticeCode::ServiceRestarted, text, now);
    }

    /// Takes the lines of entries that are to be written: all, or those that have not changed for a moment.
    pub(in crate::chat) fn take_lines(&mut self, all: bool, now: Now) -> Vec<String> {
        let mut lines = std::mem::take(&mut self.evicted);
        for id in std::mem::take(&mut self.unsaved_removals) {
            lines.extend(serde_json::to_string(&Record::Removed { id, removed: true }).ok());
        }
        for item in self.items.values_mut() {
            let rests = now.instant.saturating_duration_since(item.changed) >= SETTLED;
            // A text that grows slowly is not written with each word.
            let waits = !all && (!rests || is_growing(&item.entry.body));
            if item.unsaved.is_some() && !waits && !item.placeholder {
                lines.extend(line_of(&mut item.entry));
                item.unsaved = None;
            }
        }
        self.forget_old();
        lines
    }
}

/// The line of an entry; a text that makes it longer than a line may be is shortened.
pub(super) fn line_of(entry: &mut Entry) -> Option<String> {
    loop {
        let line = serde_json::to_string(entry).ok()?;
        if line.len() <= LINE {
            return Some(line);
        }
        match &mut entry.body {
            Body::Answer { text, .. } | Body::Thought { text, .. } | Body::User { text, .. } => {
                let half = (0..=text.len() / 2)
                    .rev()
                    .find(|at| text.is_char_boundary(*at));
                text.truncate(half.unwrap_or_default());
            }
            _ => return None,
        }
    }
}
