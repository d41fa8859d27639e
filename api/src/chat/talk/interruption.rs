//! Entries that a stop of the service left open.

use super::entries::is_open;
use super::{Item, Now, Talk};
use crate::chat::protocol::{Body, Entry, LONGEST_CLIENT_ID, MessageStatus, NoticeCode};

impl Talk {
    pub(super) fn take_entries(&mut self, entries: Vec<Entry>, now: Now) {
        for entry in entries {
            let id = entry.id;
            self.n += 1;
            if let Body::User {
                client_id: Some(client_id),
                ..
            } = &entry.body
                // Others come from no page, and would take more memory than is counted.
                && client_id.len() <= LONGEST_CLIENT_ID
            {
                self.remember_message(client_id.clone(), id);
            }
            let item = Item::new(self.n, entry, now);
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
            match item.body_mut() {
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
}
