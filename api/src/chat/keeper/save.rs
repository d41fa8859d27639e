//! Changed entries, titles and times, written to the disk.

use std::fmt::Display;

use schema::home::conversations::{ConversationId, Meta};
use schema::home::workspace::FileError;

use super::Keeper;
use crate::chat::hub::Subject;
use crate::chat::protocol::EndCode;
use crate::chat::room::Room;
use crate::chat::store::{self, Changes};
use crate::chat::talk::Now;

impl Keeper {
    /// Writes the entries that have changed: all, or those at rest. False when they could not be written.
    pub(super) async fn save_room(&mut self, id: &ConversationId, all: bool, now: Now) -> bool {
        let Some(used) = self.rooms.get_mut(id) else {
            return false;
        };
        let lines = used.room.change(|talk| talk.take_lines(all, now));
        let meta = used.meta_changed.then(|| meta_of(&used.room));
        if lines.is_empty() && meta.is_none() {
            return true;
        }
        let Some(folder) = used.folder.take() else {
            if let Some(used) = self.rooms.remove(id) {
                used.room.end(EndCode::Failed);
            }
            return false;
        };
        let changes = Changes {
            lines: lines.clone(),
            meta,
            titled: used.titled,
        };
        let written = store::write_changes(&self.deps.files, &self.account, folder, changes).await;
        let (folder, written) = match written {
            Ok(written) => written,
            Err(error) => {
                self.warn_unwritten(&error);
                return false;
            }
        };
        let Some(used) = self.rooms.get_mut(id) else {
            return false;
        };
        used.folder = Some(folder);
        match written {
            Ok(()) => {
                used.meta_changed = false;
                used.titled = false;
                true
            }
            Err(error) => {
                // A new attempt to write lines to a file that is too long would fail, too.
                if !matches!(error, FileError::TooLarge { .. }) {
                    used.room.change(|talk| talk.put_lines_back(lines, now));
                }
                if !matches!(error, FileError::Full(_)) {
                    self.warn_unwritten(&error);
                }
                false
            }
        }
    }

    fn warn_unwritten(&self, error: &dyn Display) {
        if self.deps.chats.may_warn(&self.account.uid, Subject::Disk) {
            tracing::warn!(user = %self.account.name, %error, "a conversation cannot be written");
        }
    }
}

fn meta_of(room: &Room) -> Meta {
    room.read(|talk| {
        let conversation = talk.conversation();
        Meta {
            title: conversation.title.clone(),
            created_at: conversation.created_at,
            last_used_at: conversation.last_used_at,
        }
    })
}
