//! Changed entries, titles and times, written to the disk.

use schema::home::conversations::{ConversationId, Meta};
use schema::home::workspace::FileError;

use super::Keeper;
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
        used.unwritten.extend(lines);
        let meta = used.meta_changed.then(|| meta_of(&used.room));
        if used.unwritten.is_empty() && meta.is_none() {
            return true;
        }
        let Some(folder) = used.folder.take() else {
            if let Some(used) = self.rooms.remove(id) {
                used.room.end(EndCode::Failed);
            }
            return false;
        };
        let changes = Changes {
            lines: used.unwritten.clone(),
            meta,
            titled: used.titled,
        };
        let (folder, written) = match store::write_changes(&self.deps.files, folder, changes).await
        {
            Ok(written) => written,
            Err(error) => {
                tracing::warn!(%error, "a conversation cannot be written");
                return false;
            }
        };
        let Some(used) = self.rooms.get_mut(id) else {
            return false;
        };
        used.folder = Some(folder);
        match written {
            Ok(()) => {
                used.unwritten.clear();
                used.meta_changed = false;
                used.titled = false;
                true
            }
            Err(error) => {
                if matches!(error, FileError::TooLarge { .. }) {
                    // A new attempt would fail, too.
                    used.unwritten.clear();
                }
                if !matches!(error, FileError::Full(_)) {
                    tracing::warn!(user = %self.account.name, %error, "a conversation cannot be written");
                }
                drop_oldest_lines(&mut used.unwritten);
                false
            }
        }
    }
}

/// Keeps the newest lines of those that could not be written.
fn drop_oldest_lines(lines: &mut Vec<String>) {
    /// Most bytes of lines that wait to be written.
    const MOST: usize = 8 * 1024 * 1024;
    while lines.iter().map(String::len).sum::<usize>() > MOST {
        lines.remove(0);
    }
}

fn meta_of(room: &Room) -> Meta {
    let talk = room.talk();
    let conversation = talk.conversation();
    Meta {
        title: conversation.title.clone(),
        created_at: conversation.created_at,
        last_used_at: conversation.last_used_at,
    }
}
