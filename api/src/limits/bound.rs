//! A bound as a value, and what is made from it.

use std::hash::Hash;
use std::sync::Arc;

use tokio::sync::{Semaphore, broadcast, mpsc};

/// Bound of something that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bound {
    /// Name of the thing that is held, as the security model shows it.
    pub(crate) name: &'static str,
    /// Unit of the numbers.
    pub(crate) unit: Unit,
    /// Part of one owner.
    pub(crate) each: Each,
    /// Part of all owners together.
    pub(crate) all: All,
}

/// Unit of a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Things that are counted.
    Number,
    /// Bytes of memory.
    Bytes,
}

/// Part that one owner may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Each {
    /// Each account.
    Account(usize),
    /// Each address of a client without a session.
    Address(usize),
    /// Each thing of another bound, such as a queue of each connection.
    Of(&'static Bound, usize),
    /// No account holds it: the service holds it for itself. Says why one account cannot fill it.
    Service(&'static str),
}

/// Part that all owners together may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum All {
    /// A number of its own.
    Most(usize),
    /// As many times the part of one as there are things of the other bound.
    Times(&'static Bound),
    /// As many times the part of one as there are accounts.
    Accounts,
    /// As many as the processor has cores.
    Cores,
}

impl Bound {
    /// Part of one owner; the part of all where the service holds it for itself.
    pub(crate) const fn each(&self) -> usize {
        match self.each {
            Each::Account(most) | Each::Address(most) | Each::Of(_, most) => most,
            Each::Service(_) => self.all(),
        }
    }

    /// Part of all owners together; that of one where another bound says how many there are.
    pub(crate) const fn all(&self) -> usize {
        match (self.all, self.each) {
            (All::Most(most), _) => most,
            (_, Each::Account(most) | Each::Address(most) | Each::Of(_, most)) => most,
            (_, Each::Service(_)) => 1,
        }
    }

    /// Makes the semaphore of all owners together.
    #[allow(clippy::disallowed_methods)]
    pub(crate) fn semaphore(&self) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(self.all()))
    }

    /// Makes a semaphore of another number than the part of all, as tests, settings and the machine say.
    #[allow(clippy::disallowed_methods)]
    pub(crate) fn semaphore_of(&self, permits: usize) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(permits))
    }

    /// Makes the semaphore of one owner.
    #[allow(clippy::disallowed_methods)]
    pub(crate) fn semaphore_of_one(&self) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(self.each()))
    }

    /// Makes a queue of one owner.
    #[allow(clippy::disallowed_methods)]
    pub(crate) fn queue<T>(&self) -> (mpsc::Sender<T>, mpsc::Receiver<T>) {
        mpsc::channel(self.each())
    }

    /// Makes a channel of another number of messages than the bound's, as tests say, that all receivers get.
    #[allow(clippy::disallowed_methods)]
    pub(crate) fn broadcast_of<T: Clone>(&self, messages: usize) -> broadcast::Sender<T> {
        broadcast::Sender::new(messages)
    }

    /// Begins a cache that is read on threads, of all owners together.
    #[allow(clippy::disallowed_methods)]
    pub(crate) fn cache<K, V>(&self) -> moka::sync::CacheBuilder<K, V, moka::sync::Cache<K, V>>
    where
        K: Eq + Hash + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static,
    {
        moka::sync::Cache::builder().max_capacity(self.all() as u64)
    }

    /// Begins a cache whose values are made by futures, of all owners together.
    #[allow(clippy::disallowed_methods)]
    pub(crate) fn async_cache<K, V>(
        &self,
    ) -> moka::future::CacheBuilder<K, V, moka::future::Cache<K, V>>
    where
        K: Eq + Hash + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static,
    {
        moka::future::Cache::builder().max_capacity(self.all() as u64)
    }
}
