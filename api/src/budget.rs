//! The memory that bodies of requests and of answers may take.
//!
//! Each body has its own limit, but a client can open as many requests as it likes and stall each of them. Each kind of caller
//! therefore has a budget, and within it each account, or each address of callers without one, a part: no agent, user or
//! unknown client can keep others from being served, and none of them a superadmin.

use std::net::IpAddr;
use std::sync::Arc;

use schema::ids::Uid;
use schema::user::Role;

use crate::auth::client_address::{Neighbourhood, Network};
use crate::dispatch::Identity;
use crate::limits::{
    AGENT_ANSWERS, AGENT_BODIES, Bound, GUEST_ANSWERS, GUEST_BODIES, Memory, NEIGHBOUR_ANSWERS,
    NEIGHBOUR_BODIES, PerOwner, SOCKET_ANSWERS, SOCKET_BODIES, SUPERADMIN_ANSWERS,
    SUPERADMIN_BODIES, Share, USER_ANSWERS, USER_BODIES,
};

/// The budgets of all kinds of callers. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Budgets {
    /// Callers without session or token, by address.
    unidentified: Memory<Option<Network>>,
    /// The same callers by their neighbourhood: one client may have many addresses of it.
    neighbourhoods: PerOwner<Option<Neighbourhood>>,
    /// Agents, by their users.
    agents: Memory<Uid>,
    /// Sessions of ordinary users.
    users: Memory<Uid>,
    /// Sessions of superadmins, and API tokens.
    superadmins: Memory<Uid>,
    /// The admin socket, by the peer's user id.
    socket: Memory<Option<u32>>,
}

impl Budgets {
    /// Budgets for what requests bring.
    pub(crate) fn for_requests() -> Self {
        Self {
            unidentified: Memory::new(&GUEST_BODIES),
            neighbourhoods: parts_of(&NEIGHBOUR_BODIES),
            agents: Memory::new(&AGENT_BODIES),
            users: Memory::new(&USER_BODIES),
            superadmins: Memory::new(&SUPERADMIN_BODIES),
            socket: Memory::new(&SOCKET_BODIES),
        }
    }

    /// Budgets for what is answered and not sent yet.
    pub(crate) fn for_answers() -> Self {
        Self {
            unidentified: Memory::new(&GUEST_ANSWERS),
            neighbourhoods: parts_of(&NEIGHBOUR_ANSWERS),
            agents: Memory::new(&AGENT_ANSWERS),
            users: Memory::new(&USER_ANSWERS),
            superadmins: Memory::new(&SUPERADMIN_ANSWERS),
            socket: Memory::new(&SOCKET_ANSWERS),
        }
    }

    /// The same with so many KiB for unknown callers, and for superadmins.
    #[cfg(test)]
    pub(crate) fn with_few_kib(self, unidentified: usize, superadmins: usize) -> Self {
        Self {
            unidentified: Memory::of_kib(unidentified, unidentified),
            superadmins: Memory::of_kib(superadmins, superadmins),
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
                share.charge_also(&self.neighbourhoods, &neighbourhood);
                share
            }
            Identity::Session(session) => match session.account.role {
                Role::Superadmin => self.superadmins.share(&session.account.uid),
                Role::User => self.users.share(&session.account.uid),
            },
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

/// Semaphores of single owners, whose permits are KiB.
fn parts_of<K: Clone + Eq + std::hash::Hash>(bound: &Bound) -> PerOwner<K> {
    PerOwner::new(bound.each() / 1024)
}

/// A budget of so many KiB for one owner.
#[cfg(test)]
pub(crate) fn budget_of(kib: usize) -> Memory<()> {
    Memory::of_kib(kib, kib)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
