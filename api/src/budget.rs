//! The memory that bodies of requests and of answers may take.
//!
//! Each body has its own limit, but a client can open as many requests as it likes and stall each of them. Each kind of caller
//! therefore has a budget, and within it each account, or each address of callers without one, a part: no agent, user or
//! unknown client can keep others from being served, and none of them a superadmin.

use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use schema::ids::Uid;
use schema::user::Role;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::auth::client_address::{Neighbourhood, Network};
use crate::dispatch::Identity;
use crate::error::{ApiError, Result};
use crate::parts::Parts;

/// Kibibytes of a mebibyte.
const MIB: usize = 1024;

/// `Retry-After` of requests that are turned away.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The budgets of all kinds of callers. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Budgets {
    /// Callers without session or token, by address.
    unidentified: Budget<Option<Network>>,
    /// The same callers by their neighbourhood: one client may have many addresses of it.
    neighbourhoods: Parts<Option<Neighbourhood>>,
    /// Agents, by their users.
    agents: Budget<Uid>,
    /// Sessions of ordinary users.
    users: Budget<Uid>,
    /// Sessions of superadmins, and API tokens.
    superadmins: Budget<Uid>,
    /// The admin socket, by the peer's user id.
    socket: Budget<Option<u32>>,
}

impl Budgets {
    /// Budgets for what requests bring.
    pub(crate) fn for_requests() -> Self {
        Self {
            unidentified: Budget::new(128 * MIB, 8 * MIB),
            neighbourhoods: Parts::new(16 * MIB),
            // As much as all calls of tools that one user may have under way.
            agents: Budget::new(192 * MIB, 32 * MIB),
            users: Budget::new(192 * MIB, 16 * MIB),
            superadmins: Budget::new(192 * MIB, 64 * MIB),
            socket: Budget::new(192 * MIB, 192 * MIB),
        }
    }

    /// Budgets for what is answered and not sent yet.
    pub(crate) fn for_answers() -> Self {
        Self {
            unidentified: Budget::new(256 * MIB, 16 * MIB),
            neighbourhoods: Parts::new(32 * MIB),
            agents: Budget::new(512 * MIB, 64 * MIB),
            users: Budget::new(512 * MIB, 32 * MIB),
            superadmins: Budget::new(192 * MIB, 64 * MIB),
            socket: Budget::new(192 * MIB, 192 * MIB),
        }
    }

    /// The same with so many KiB for unknown callers, and for superadmins.
    #[cfg(test)]
    pub(crate) fn with_few_kib(self, unidentified: usize, superadmins: usize) -> Self {
        Self {
            unidentified: Budget::new(unidentified, unidentified),
            superadmins: Budget::new(superadmins, superadmins),
            ..self
        }
    }

    /// A share of the caller's part, without any memory yet. `client` is the address of a caller without an account.
    pub(crate) fn share(&self, identity: &Identity, client: Option<IpAddr>) -> Share {
        match identity {
            Identity::Bearer(bearer) => self.agents.share(&bearer.account.uid),
            Identity::ApiToken(token) => self.superadmins.share(&token.uid),
            Identity::Socket(uid) => self.socket.share(uid),
            Identity::Nobody => {
                let network = client.map(Network::from);
                let neighbourhood = network.map(Network::neighbourhood);
                let mut share = self.unidentified.share(&network);
                let part = self.neighbourhoods.part_of(&neighbourhood);
                share.held.insert(1, Held::nothing(part));
                share
            }
            Identity::Session(session) => match session.account.role {
                Role::Superadmin => self.superadmins.share(&session.account.uid),
                Role::User => self.users.share(&session.account.uid),
            },
        }
    }
}

/// Memory for bodies, with a part for each owner.
#[derive(Debug)]
pub(crate) struct Budget<K> {
    all: Arc<Semaphore>,
    parts: Parts<K>,
}

impl<K> Clone for Budget<K> {
    fn clone(&self) -> Self {
        Self {
            all: Arc::clone(&self.all),
            parts: self.parts.clone(),
        }
    }
}

impl<K: Clone + Eq + Hash> Budget<K> {
    /// A budget of so many KiB, of which one owner has at most `part`.
    pub(crate) fn new(all: usize, part: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            parts: Parts::new(part),
        }
    }

    /// A share of an owner's without any memory yet.
    pub(crate) fn share(&self, owner: &K) -> Share {
        // The owner's part first: who has none left takes nothing of what others may have.
        let budgets = [self.parts.part_of(owner), Arc::clone(&self.all)];
        Share {
            held: budgets.map(Held::nothing).into(),
        }
    }
}

/// Memory of an answer, until all of it is sent. Travels in the response's extensions.
#[derive(Debug, Clone)]
pub(crate) struct AnswerMemory {
    _share: Arc<Share>,
}

impl From<Share> for AnswerMemory {
    fn from(share: Share) -> Self {
        Self {
            _share: Arc::new(share),
        }
    }
}

/// Bytes of memory, and of what descriptors cost beside it, that an answer takes while it is produced. Travels in the response's
/// extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamCost(pub(crate) usize);

/// A budget of so many KiB for one owner.
#[cfg(test)]
pub(crate) fn budget_of(kib: usize) -> Budget<()> {
    Budget::new(kib, kib)
}

/// Memory that one request holds, in its owner's part and in the whole budget; given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    held: Vec<Held>,
}

#[derive(Debug)]
struct Held {
    budget: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Held {
    fn nothing(budget: Arc<Semaphore>) -> Self {
        Self {
            budget,
            permit: None,
        }
    }

    fn cover(&mut self, kib: usize) -> Option<()> {
        let held = self.permit.as_ref().map_or(0, |p| p.num_permits());
        let missing = kib.saturating_sub(held);
        if missing == 0 {
            return Some(());
        }
        let missing = u32::try_from(missing).ok()?;
        let more = self.budget.clone().try_acquire_many_owned(missing).ok()?;
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
        Some(())
    }
}

impl Share {
    /// Sees to it that the share covers `bytes` altogether.
    ///
    /// # Errors
    /// 503 with `Retry-After` when that much is not left. A request does not wait for memory: those that hold it may be stalled.
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<()> {
        const BUSY: ApiError = ApiError::Busy {
            retry_after: RETRY_AFTER,
        };
        let kib = bytes.div_ceil(1024);
        let mut held = self.held.iter_mut();
        held.try_for_each(|held| held.cover(kib)).ok_or(BUSY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_grows_until_the_budget_is_spent_and_gives_all_back() {
        let budget = budget_of(3);
        let (mut one, mut other) = (budget.share(&()), budget.share(&()));
        one.cover(1).unwrap();
        one.cover(1024).unwrap();
        assert_eq!(budget.all.available_permits(), 2);
        one.cover(1025).unwrap();
        other.cover(1024).unwrap();
        let error = other.cover(1025).unwrap_err();
        assert_eq!((error.status().as_u16(), error.code()), (503, "busy"));
        drop(one);
        other.cover(3 * 1024).unwrap();
        drop(other);
        assert_eq!(budget.all.available_permits(), 3);
    }

    #[test]
    fn many_addresses_of_one_neighbourhood_leave_memory_to_others() {
        for (kept, other) in [
            ("2001:db8:1:", "2001:db8:2::1"),
            ("192.0.2.", "198.51.100.1"),
        ] {
            let budgets = Budgets::for_answers();
            let mut held = Vec::new();
            for n in 1..=64 {
                let address = format!("{kept}{n}{}", if kept.contains(':') { "::1" } else { "" });
                let address = address.parse().unwrap();
                let mut share = budgets.share(&Identity::Nobody, Some(address));
                let covered = share.cover(8 * 1024 * 1024);
                assert_eq!(covered.is_ok(), n <= 4, "{address}");
                held.push(share);
            }
            let mut share = budgets.share(&Identity::Nobody, Some(other.parse().unwrap()));
            share.cover(8 * 1024 * 1024).unwrap();
        }
    }

    #[test]
    fn an_owner_that_holds_its_part_keeps_no_other_from_sending() {
        let budget = Budgets::for_requests().users;
        let (greedy, other) = (Uid::random(), Uid::random());
        let bytes = 4 * 1024 * 1024;
        let mut held = Vec::new();
        loop {
            let mut share = budget.share(&greedy);
            if share.cover(bytes).is_err() {
                break;
            }
            held.push(share);
        }
        assert_eq!(held.len() * bytes, 16 * 1024 * 1024);
        budget.share(&other).cover(bytes).unwrap();
        held.pop();
        budget.share(&greedy).cover(bytes).unwrap();
    }
}
