//! The bell: a wakeup without payload.
//!
//! The commit of a change of desired state rings it, in this process at once, in others by `NOTIFY`
//! on PostgreSQL ([`crate::db::Db::listen`]). It carries no key and no reason, so nothing can
//! be lost in it: any number of rings before somebody reads are one ring, and the listener asks the
//! database what has changed.

use tokio::sync::watch;

/// The channel name on PostgreSQL.
pub const CHANNEL: &str = "agentyard_bell";

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    rings: u64,
    reconnects: u64,
    /// The transport is down: only rings of this process arrive.
    degraded: bool,
}

/// The side that rings.
#[derive(Debug, Clone)]
pub struct Ringer(watch::Sender<Count>);

/// The side that listens; each clone receives every ring.
#[derive(Debug, Clone)]
pub struct Bell {
    count: watch::Receiver<Count>,
    reconnects: u64,
}

/// Nobody can ring any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bell is gone")]
pub struct Closed;

/// A bell and the means to ring it.
pub fn bell() -> (Ringer, Bell) {
    let (sender, receiver) = watch::channel(Count::default());
    let bell = Bell {
        count: receiver,
        reconnects: 0,
    };
    (Ringer(sender), bell)
}

impl Ringer {
    /// Desired state has changed.
    pub fn ring(&self) {
        self.0
            .send_modify(|count| count.rings = count.rings.wrapping_add(1));
    }

    /// The transport is down. Nobody is woken for it: there is nothing to read yet.
    pub fn disconnected(&self) {
        self.0.send_if_modified(|count| {
            count.degraded = true;
            false
        });
    }

    /// The transport was interrupted, so rings may have been lost: everything must be read again.
    pub fn reconnected(&self) {
        self.0.send_modify(|count| {
            count.reconnects = count.reconnects.wrapping_add(1);
            count.degraded = false;
        });
    }

    /// Whether only rings of this process arrive, because the transport is down.
    pub fn is_degraded(&self) -> bool {
        self.0.borrow().degraded
    }

    /// Another listener.
    pub fn subscribe(&self) -> Bell {
        let count = self.0.subscribe();
        let reconnects = count.borrow().reconnects;
        Bell { count, reconnects }
    }
}

impl Bell {
    /// Takes note of all rings so far. To be called *before* querying: a ring during the query then
    /// leads to another query. True when the transport was interrupted since the last call.
    pub fn listen(&mut self) -> bool {
        let reconnects = self.count.borrow_and_update().reconnects;
        let interrupted = reconnects != self.reconnects;
        self.reconnects = reconnects;
        interrupted
    }

    /// Waits for a ring since the last [`listen`](Self::listen). Safe to cancel.
    pub async fn rung(&mut self) -> Result<(), Closed> {
        self.count.changed().await.map_err(|_| Closed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_ring_during_the_query_leads_to_another() {
        let (ringer, mut bell) = bell();
        ringer.ring();
        bell.rung().await.unwrap();
        assert!(!bell.listen());
        ringer.ring();
        ringer.ring();
        bell.rung().await.unwrap();
        bell.listen();
        let silence = tokio::time::timeout(Duration::from_secs(9), bell.rung()).await;
        assert!(silence.is_err(), "two rings before a read are one");
    }

    #[tokio::test]
    async fn an_interruption_is_reported_once_to_each_listener() {
        let (ringer, mut first) = bell();
        ringer.reconnected();
        let mut late = ringer.subscribe();
        assert!(first.listen());
        assert!(!first.listen());
        assert!(!late.listen());
    }

    #[tokio::test]
    async fn l57_a_bell_whose_transport_is_down_is_degraded_until_it_is_back() {
        let (ringer, mut bell) = bell();
        assert!(!ringer.is_degraded());
        ringer.disconnected();
        assert!(ringer.is_degraded());
        ringer.ring();
        bell.rung().await.unwrap();
        assert!(
            ringer.is_degraded(),
            "a ring of this process says nothing of the others'"
        );
        ringer.reconnected();
        assert!(!ringer.is_degraded());
        assert!(bell.listen());
    }

    #[tokio::test]
    async fn a_bell_without_ringer_is_closed() {
        let (ringer, mut bell) = bell();
        drop(ringer);
        assert_eq!(bell.rung().await, Err(Closed));
    }
}
