//! A conversation in use, shared by the task that changes it and the pages that show it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::protocol::EndCode;
use super::talk::Talk;
use crate::limits::Share;

/// Memory of each conversation that needs no part of the budget, in bytes, so that a short one can be opened when others have used it up.
const FREE: usize = 96 * 1024;

/// A conversation in use.
pub(super) struct Room {
    inner: Mutex<Inner>,
    changed: watch::Sender<u64>,
    ended: watch::Sender<Option<EndCode>>,
}

struct Inner {
    talk: Talk,
    /// Memory that the conversation has of the user's part.
    memory: Share,
    /// There is less memory than it needs.
    starved: bool,
}

impl Inner {
    /// Holds as much memory as the conversation takes. Where that is not left, old entries are forgotten.
    fn fit(&mut self) {
        let cover = |inner: &mut Self| {
            let bytes = inner.talk.weight().saturating_sub(FREE);
            inner.memory.resize(bytes).is_ok()
        };
        self.starved = false;
        if cover(self) {
            return;
        }
        self.talk.shrink_to(FREE + self.memory.bytes());
        self.starved = !cover(self);
    }
}

impl Room {
    pub(super) fn new(talk: Talk, memory: Share) -> Arc<Self> {
        let mut inner = Inner {
            talk,
            memory,
            starved: false,
        };
        inner.fit();
        Arc::new(Self {
            inner: Mutex::new(inner),
            changed: watch::Sender::new(0),
            ended: watch::Sender::new(None),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the conversation.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Talk) -> T) -> T {
        read(&self.lock().talk)
    }

    /// Changes the conversation, and wakes its pages.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Talk) -> T) -> T {
        let mut inner = self.lock();
        let changed = change(&mut inner.talk);
        inner.fit();
        let number = inner.talk.number();
        drop(inner);
        self.changed.send_if_modified(|known| {
            let other = *known != number;
            *known = number;
            other
        });
        changed
    }

    /// Returns true if there is memory for so many bytes more.
    pub(super) fn has_memory_for(&self, bytes: usize) -> bool {
        let mut inner = self.lock();
        let wanted = (inner.talk.weight() + bytes).saturating_sub(FREE);
        // What is not used goes back with the next change.
        inner.memory.resize(wanted).is_ok()
    }

    /// Returns true if there is less memory than the conversation needs.
    pub(super) fn is_starved(&self) -> bool {
        self.lock().starved
    }

    /// Subscribes to changes.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Ends the conversation for its pages.
    pub(super) fn end(&self, code: EndCode) {
        self.ended.send_replace(Some(code));
    }

    /// Subscribes to the end.
    pub(super) fn ends(&self) -> watch::Receiver<Option<EndCode>> {
        self.ended.subscribe()
    }
}
