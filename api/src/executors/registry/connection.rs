//! One connection of an executor: what is asked through it, and for whom there is room.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use super::model::{
    ConnectionId, Devices, Failure, JobId, Key, Lane, Moment, Presence, Protocol, Service,
};
use super::{BUSY, GREETING};

/// Most jobs at once that only look, at a browser.
const READERS: usize = 4;
/// Most questions whose answers nobody waits for that are remembered: of older ones an answer counts as late all the same.
const ABANDONED: usize = 64;

/// What was asked and is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    /// A job waits for the answer, until then.
    Awaited(JobId, Moment),
    /// Nobody does.
    Abandoned {
        /// Until then nothing else is asked of one that does one thing at a time.
        holds: Moment,
        /// Until then it may be at it, and answer nothing else.
        busy: Moment,
    },
}

/// Most answers that nobody waits for, within [`UNASKED_WITHIN`].
pub(super) const UNASKED: u32 = 1000;
/// The time in which they are counted.
pub(super) const UNASKED_WITHIN: Duration = Duration::from_secs(10);

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) key: Key,
    pub(super) address: Option<IpAddr>,
    pub(super) token: i64,
    pub(super) protocol: Protocol,
    /// The jobs whose turn it is.
    pub(super) jobs: BTreeSet<JobId>,
    since: Moment,
    last_id: u64,
    questions: BTreeMap<u64, Question>,
    readers: BTreeSet<JobId>,
    late: u64,
    /// Number of jobs that have had their turn.
    admitted: u64,
    /// Since when answers that nobody waits for are counted, and how many there were.
    unasked: (Moment, u32),
}

impl Connection {
    pub(super) fn new(key: Key, address: Option<IpAddr>, token: i64, now: Moment) -> Self {
        Self {
            key,
            address,
            token,
            protocol: Protocol::First,
            jobs: BTreeSet::new(),
            since: now,
            last_id: 0,
            questions: BTreeMap::new(),
            readers: BTreeSet::new(),
            late: 0,
            admitted: 0,
            unasked: (now, 0),
        }
    }

    /// Whether a newer one of the same user and service stands for it: those that have said who they are live side by side.
    pub(super) fn is_displaced_by(&self, newer: &Self) -> bool {
        match (&self.protocol, &newer.protocol) {
            (Protocol::Introduced { instance }, Protocol::Introduced { instance: other }) => {
                instance == other
            }
            (Protocol::First, _) | (_, Protocol::First) => true,
        }
    }

    /// Until when it may say who it is, when it has not.
    pub(super) fn greets_until(&self) -> Option<Moment> {
        (self.protocol == Protocol::First).then(|| self.since.after(GREETING))
    }

    /// Whether it is one of these.
    pub(super) fn is_among(&self, devices: &Devices) -> bool {
        devices.as_ref().is_none_or(|devices| match &self.protocol {
            Protocol::First => false,
            Protocol::Introduced { instance } => devices.contains(instance),
        })
    }

    /// Whether it does one thing at a time, whatever it is: the desktop client that has not said more.
    fn is_serial(&self) -> bool {
        self.key.service == Service::Computer && self.protocol == Protocol::First
    }

    /// Lets a job in if there is room.
    pub(super) fn admit(&mut self, now: Moment, job: JobId, lane: Lane) -> bool {
        let room = match lane {
            _ if self.is_serial() => self.jobs.is_empty() && !self.is_held(now),
            Lane::Read => self.readers.len() < READERS,
            Lane::Act => self.jobs.len() == self.readers.len(),
        };
        if room {
            self.jobs.insert(job);
            self.admitted += 1;
            if lane == Lane::Read {
                self.readers.insert(job);
            }
        }
        room
    }

    pub(super) fn release(&mut self, job: JobId) {
        self.jobs.remove(&job);
        self.readers.remove(&job);
    }

    /// The number under which a job asks.
    ///
    /// # Errors
    /// When it would be a second question to one that does one thing at a time: that would spend its time waiting for the first.
    pub(super) fn ask(&mut self, now: Moment, job: JobId, until: Moment) -> Result<u64, Failure> {
        if self.is_serial() && self.is_held(now) {
            return Err(Failure::Held);
        }
        self.last_id += 1;
        let question = Question::Awaited(job, until);
        self.questions.insert(self.last_id, question);
        Ok(self.last_id)
    }

    /// Whose question has been answered; nobody's when nobody waits.
    pub(super) fn answered(&mut self, id: u64) -> Option<JobId> {
        match self.questions.remove(&id) {
            Some(Question::Awaited(job, _)) => Some(job),
            Some(Question::Abandoned { .. }) => {
                self.late += 1;
                None
            }
            None => {
                // A number that was never given is not late, but nothing.
                self.late += u64::from((1..=self.last_id).contains(&id));
                None
            }
        }
    }

    /// Counts an answer that nobody waits for. Says whether there are more than mistakes explain: each takes the lock of all users.
    pub(super) fn says_too_much(&mut self, now: Moment) -> bool {
        if now.since(self.unasked.0) >= UNASKED_WITHIN {
            self.unasked = (now, 0);
        }
        self.unasked.1 += 1;
        self.unasked.1 > UNASKED
    }

    /// Nobody waits for this answer any more. Says until when it holds up others.
    pub(super) fn give_up(&mut self, now: Moment, id: u64) -> Moment {
        let mut holds = now.after(BUSY);
        if let Some(question) = self.questions.get_mut(&id)
            && let Question::Awaited(_, until) = *question
        {
            holds = holds.max(until);
            let busy = until.max(now).after(BUSY);
            *question = Question::Abandoned { holds, busy };
        }
        let abandoned = |question: &Question| matches!(question, Question::Abandoned { .. });
        if self
            .questions
            .values()
            .filter(|question| abandoned(question))
            .count()
            > ABANDONED
        {
            let oldest = self
                .questions
                .iter()
                .find(|(_, question)| abandoned(question));
            if let Some(id) = oldest.map(|(id, _)| *id) {
                self.questions.remove(&id);
            }
        }
        holds
    }

    /// Whether it is at something, so that nothing else is asked of it yet.
    fn is_held(&self, now: Moment) -> bool {
        self.questions.values().any(|question| match question {
            Question::Awaited(..) => true,
            Question::Abandoned { holds, .. } => now < *holds,
        })
    }

    /// Whether it may be at something, and therefore answer nothing else.
    pub(super) fn may_be_busy(&self, now: Moment) -> bool {
        self.questions.values().any(|question| match question {
            Question::Awaited(..) => true,
            Question::Abandoned { busy, .. } => self.is_serial() && now < *busy,
        })
    }

    pub(super) fn presence(&self, connection: ConnectionId) -> Presence<'_> {
        Presence {
            connection,
            key: &self.key,
            protocol: &self.protocol,
            address: self.address,
            since: self.since,
            jobs: self.jobs.len(),
            late: self.late,
            admitted: self.admitted,
        }
    }
}
