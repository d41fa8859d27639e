//! The bell: a wakeup without payload.
//!
//! Committing a change of desired state rings it. Whoever hears it asks the database what is dirty,
//! so a lost or doubled ring does no harm. Inside one process it is a counter; between processes
//! on PostgreSQL it is `NOTIFY`, which [`crate::db::Db::listen`] turns into a ring here.

use tokio::sync::watch;

/// The channel name on PostgreSQL.
pub const CHANNEL: &str = "agentyard_bell";

/// A wakeup that can be heard by any number of listeners.
#[derive(Debug, Clone)]
pub struct Bell(watch::Sender<u64>);

impl Default for Bell {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Bell {
    /// Wakes all listeners.
    pub fn ring(&self) {
        self.0.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// Registers interest; a ring after this call is never missed.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
