//! The executors of one user and service, and who waits for them.

use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use super::GRACE;
use super::model::{ConnectionId, JobId, Moment};

/// Most replacements within [`FLAPPING`] by two addresses.
const REPLACEMENTS: usize = 5;
/// The time in which they are counted, and for which newcomers are refused.
const FLAPPING: Duration = Duration::from_secs(30);

/// The executors of one user and service.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// The one that is asked comes first.
    pub(super) connections: Vec<ConnectionId>,
    /// Jobs that wait, in the order in which they came.
    pub(super) queue: VecDeque<JobId>,
    /// When the last executor went, while there is none.
    pub(super) gone: Option<Moment>,
    /// The connection that came last, which may not be among those above yet.
    pub(super) newest: Option<ConnectionId>,
    /// The newest of the user's tokens that was shown.
    pub(super) newest_token: Option<i64>,
    /// The latest replacements: when, and of which address by which.
    replacements: VecDeque<(Moment, [Option<IpAddr>; 2])>,
    refused_until: Option<Moment>,
}

impl Slot {
    pub(super) fn put_first(&mut self, connection: ConnectionId) {
        self.connections.retain(|other| *other != connection);
        self.connections.insert(0, connection);
    }

    /// A connection of one address has taken the place of one of another.
    pub(super) fn replaced(&mut self, now: Moment, addresses: [Option<IpAddr>; 2]) {
        self.replacements.push_back((now, addresses));
        self.forget_replacements(now);
    }

    fn forget_replacements(&mut self, now: Moment) {
        while let Some((at, _)) = self.replacements.front()
            && now.since(*at) > FLAPPING
        {
            self.replacements.pop_front();
        }
    }

    /// Whether a newcomer is refused: when two addresses have taken each other's place too often (L51), nobody does for a while.
    pub(super) fn refuses(&mut self, now: Moment, address: Option<IpAddr>) -> bool {
        if self.refused_until(now).is_some() {
            return true;
        }
        self.forget_replacements(now);
        let known = self
            .replacements
            .iter()
            .flat_map(|(_, addresses)| addresses);
        let addresses: BTreeSet<_> = known.chain([&address]).collect();
        let flapping = self.replacements.len() >= REPLACEMENTS
            && addresses.len() > 1
            && !self.connections.is_empty();
        if flapping {
            self.replacements.clear();
            self.refused_until = Some(now.after(FLAPPING));
        }
        flapping
    }

    pub(super) fn refused_until(&self, now: Moment) -> Option<Moment> {
        self.refused_until.filter(|until| now < *until)
    }

    /// Whether nothing is to be remembered.
    pub(super) fn is_empty(&self, now: Moment) -> bool {
        self.connections.is_empty()
            && self.queue.is_empty()
            && self.refused_until(now).is_none()
            && self.gone.is_none_or(|gone| now.since(gone) >= GRACE)
            && (self.replacements.back()).is_none_or(|(at, _)| now.since(*at) > FLAPPING)
    }
}
