//! What is begun at one executor that may change what others see there: whoever looks has to know whether it was still the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The changes at a connection.
#[derive(Debug, Default)]
pub struct Changes {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// How far they were at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    begun: u64,
    ended: u64,
}

impl Since {
    /// One of them was going on.
    pub fn was_changing(self) -> bool {
        self.begun != self.ended
    }
}

impl Changes {
    /// How far they are.
    pub fn now(&self) -> Since {
        // What ends meanwhile is still taken for going on, never the other way round.
        let ended = self.ended.load(Ordering::SeqCst);
        let begun = self.begun.load(Ordering::SeqCst);
        Since { begun, ended }
    }

    /// Whether another one was begun since then.
    pub fn went_on(&self, since: Since) -> bool {
        self.now().begun != since.begun
    }

    /// Begins a change.
    pub fn begin(self: &Arc<Self>) -> Arc<Change> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        Arc::new(Change(Arc::clone(self)))
    }
}

/// A change that has begun. It ends when its call is over and each of its questions is answered, or the connection is gone.
#[derive(Debug)]
pub struct Change(Arc<Changes>);

impl Drop for Change {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}
