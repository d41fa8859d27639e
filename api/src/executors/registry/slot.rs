//! The executors of one user and service, and who waits for them.

use std::collections::VecDeque;
use std::time::Duration;

use super::GRACE;
use super::model::{ConnectionId, JobId, Moment};

/// Most replacements within [`FLAPPING`].
pub(super) const REPLACEMENTS: usize = 5;
/// The time in which they are counted, and the first pause for newcomers.
pub(super) const FLAPPING: Duration = Duration::from_secs(30);
/// The longest pause; each one is twice the one before.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(480);
/// Time without a pause after which the next one is the first again.
const CALM: Duration = Duration::from_secs(600);

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
    /// When the latest replacements were.
    replacements: VecDeque<Moment>,
    /// Until when newcomers are refused, and the length of that pause.
    pause: Option<(Moment, Duration)>,
}

impl Slot {
    pub(super) fn put_first(&mut self, connection: ConnectionId) {
        self.connections.retain(|other| *other != connection);
        self.connections.insert(0, connection);
    }

    /// Counts a connection that took the place of another.
    pub(super) fn replaced(&mut self, now: Moment) {
        self.replacements.push_back(now);
        self.forget_replacements(now);
    }

    fn forget_replacements(&mut self, now: Moment) {
        while let Some(at) = self.replacements.front()
            && now.since(*at) > FLAPPING
        {
            self.replacements.pop_front();
        }
    }

    /// Refuses a newcomer when executors displaced each other too often (L51), wherever they come from: two browsers of one user
    /// stand behind one address. Nothing is refused while none is connected. Pauses grow until there was none for [`CALM`].
    pub(super) fn refuses(&mut self, now: Moment) -> bool {
        if self.connections.is_empty() {
            return false;
        }
        if self.refused_until(now).is_some() {
            return true;
        }
        self.forget_replacements(now);
        let flapping = self.replacements.len() >= REPLACEMENTS;
        if flapping {
            let earlier = self.last_pause(now);
            let pause = earlier.map_or(FLAPPING, |pause| LONGEST_PAUSE.min(pause * 2));
            self.replacements.clear();
            self.pause = Some((now.after(pause), pause));
        }
        flapping
    }

    pub(super) fn refused_until(&self, now: Moment) -> Option<Moment> {
        let until = self.pause.map(|(until, _)| until);
        until.filter(|until| now < *until && !self.connections.is_empty())
    }

    /// The length of the last pause, as long as the next one grows from it.
    fn last_pause(&self, now: Moment) -> Option<Duration> {
        let (until, pause) = self.pause?;
        (now < until.after(CALM)).then_some(pause)
    }

    /// Whether nothing is to be remembered.
    pub(super) fn is_empty(&self, now: Moment) -> bool {
        self.connections.is_empty()
            && self.queue.is_empty()
            && self.last_pause(now).is_none()
            && self.gone.is_none_or(|gone| now.since(gone) >= GRACE)
            && (self.replacements.back()).is_none_or(|at| now.since(*at) > FLAPPING)
    }
}
