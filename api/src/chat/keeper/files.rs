//! Files of the agent, fetched beside the task.

use std::sync::Arc;

use schema::home::conversations::ConversationId;

use super::Keeper;
use crate::chat::fetch::{Wanted, fetch_file};
use crate::chat::protocol::SentFile;

/// A file that was fetched, or could not be.
pub(super) struct Fetched {
    /// Its conversation.
    id: ConversationId,
    /// Its entry.
    entry: u64,
    /// Its place among the entry's files.
    index: usize,
    /// The file.
    file: SentFile,
}

impl Keeper {
    pub(super) async fn take_file(&mut self, fetched: Fetched) {
        let now = self.now();
        let Fetched {
            id,
            entry,
            index,
            file,
        } = fetched;
        if let Some(used) = self.rooms.get(&id) {
            used.room
                .change(|talk| talk.set_file(entry, index, file, now));
        }
        self.save_room(&id, true, now).await;
    }

    pub(super) fn begin_fetch(&self, id: &ConversationId, entry: u64, index: usize, path: String) {
        let Some(used) = self.rooms.get(id) else {
            return;
        };
        let Some(mut file) = used.room.read(|talk| talk.file(entry, index)) else {
            return;
        };
        let Ok(place) = Arc::clone(&self.fetches_waiting).try_acquire_owned() else {
            file.error = Some("the agent sent too many files at once".to_owned());
            let now = self.now();
            used.room
                .change(|talk| talk.set_file(entry, index, file, now));
            return;
        };
        let wanted = Wanted {
            id: id.clone(),
            entry,
            index,
            path,
            file,
        };
        let (deps, account) = (Arc::clone(&self.deps), self.account.clone());
        let (sender, fetches) = (self.fetched_sender.clone(), Arc::clone(&self.fetches));
        self.deps.tasks.spawn(async move {
            let _place = place;
            let Ok(_turn) = fetches.acquire_owned().await else {
                return;
            };
            let stopped = deps.shutdown.clone();
            let (id, entry, index) = (wanted.id.clone(), wanted.entry, wanted.index);
            let fetched = tokio::select! {
                () = stopped.cancelled() => return,
                file = fetch_file(&deps, &account, wanted) => Fetched { id, entry, index, file },
            };
            let _ = sender.send(fetched).await;
        });
    }
}
