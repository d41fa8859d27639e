//! A conversation in use, shared by the task that changes it and the pages that show it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::protocol::EndCode;
use super::talk::Talk;

/// A conversation in use.
pub(super) struct Room {
    talk: Mutex<Talk>,
    changed: watch::Sender<u64>,
    ended: watch::Sender<Option<EndCode>>,
}

impl Room {
    pub(super) fn new(talk: Talk) -> Arc<Self> {
        Arc::new(Self {
            talk: Mutex::new(talk),
            changed: watch::Sender::new(0),
            ended: watch::Sender::new(None),
        })
    }

    /// The conversation, to read.
    pub(super) fn talk(&self) -> MutexGuard<'_, Talk> {
        self.talk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the conversation, and wakes its pages.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Talk) -> T) -> T {
        let mut talk = self.talk();
        let changed = change(&mut talk);
        let number = talk.number();
        drop(talk);
        self.changed.send_if_modified(|known| {
            let other = *known != number;
            *known = number;
            other
        });
        changed
    }

    /// Hears of changes.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Ends the conversation for its pages.
    pub(super) fn end(&self, code: EndCode) {
        self.ended.send_replace(Some(code));
    }

    /// Hears of the end.
    pub(super) fn ends(&self) -> watch::Receiver<Option<EndCode>> {
        self.ended.subscribe()
    }
}
