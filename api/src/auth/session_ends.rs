//! News of accounts whose sessions, or API tokens, have ended in this process: streams look at once whether theirs still lives.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schema::ids::Uid;
use tokio::sync::watch;

/// Accounts and tokens with open streams. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct SessionEnds(Arc<Mutex<Listeners>>);

#[derive(Debug, Default)]
struct Listeners {
    senders: HashMap<Uid, watch::Sender<()>>,
    /// Number of entries at which those without a stream are removed.
    most: usize,
}

impl SessionEnds {
    fn lock(&self) -> MutexGuard<'_, Listeners> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subscribes to news of an account, or of a token.
    pub(crate) fn subscribe(&self, uid: &Uid) -> watch::Receiver<()> {
        let mut listeners = self.lock();
        if listeners.senders.len() >= listeners.most {
            listeners
                .senders
                .retain(|_, sender| sender.receiver_count() > 0);
            listeners.most = 2 * listeners.senders.len() + 64;
        }
        let sender = listeners.senders.entry(uid.clone()).or_default();
        sender.subscribe()
    }

    /// Reports that sessions of an account have ended, or that a token has.
    pub(crate) fn report(&self, uid: &Uid) {
        if let Some(sender) = self.lock().senders.get(uid) {
            sender.send_replace(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn streams_of_the_account_are_woken_and_forgotten() {
        let ends = SessionEnds::default();
        let [alice, bob] = ["a", "b"].map(|letter| Uid::from(letter.repeat(32)));
        let (mut first, mut second) = (ends.subscribe(&alice), ends.subscribe(&alice));
        let other = ends.subscribe(&bob);
        ends.report(&alice);
        first.changed().await.unwrap();
        second.changed().await.unwrap();
        assert!(!other.has_changed().unwrap());
        drop((first, second, other));
        for _ in 0..1000 {
            drop(ends.subscribe(&Uid::random()));
        }
        assert!(ends.lock().senders.len() <= 65);
    }
}
