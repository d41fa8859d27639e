//! One connection of an executor: what is asked through it, and for whom there is room.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::model::{ConnectionId, JobId, Key, Lane, Moment, Presence, Protocol, Service};

/// Most jobs at once that only look, at a browser.
const READERS: usize = 4;
/// Most questions whose answers nobody waits for that are remembered: of older ones an answer counts as late all the same.
const ABANDONED: usize = 64;

/// What was asked and is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    /// A job waits for the answer, until then.
    Awaited(JobId, Moment),
    /// Nobody does. Until then the executor may still be at it.
    Abandoned(Moment),
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) key: Key,
    pub(super) address: Option<IpAddr>,
    pub(super) protocol: Protocol,
    /// The jobs whose turn it is.
    pub(super) jobs: BTreeSet<JobId>,
    since: Moment,
    last_id: u64,
    questions: BTreeMap<u64, Question>,
    readers: BTreeSet<JobId>,
    late: u64,
}

impl Connection {
    pub(super) fn new(key: Key, address: Option<IpAddr>, now: Moment) -> Self {
        Self {
            key,
            address,
            protocol: Protocol::First,
            jobs: BTreeSet::new(),
            since: now,
            last_id: 0,
            questions: BTreeMap::new(),
            readers: BTreeSet::new(),
            late: 0,
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

    /// Whether it does one thing at a time, whatever it is: the desktop client that has not said more.
    fn is_serial(&self) -> bool {
        self.key.service == Service::Computer && self.protocol == Protocol::First
    }

    /// Lets a job in if there is room.
    pub(super) fn admit(&mut self, now: Moment, job: JobId, lane: Lane) -> bool {
        let room = match lane {
            _ if self.is_serial() => self.jobs.is_empty() && !self.may_be_busy(now),
            Lane::Read => self.readers.len() < READERS,
            Lane::Act => self.jobs.len() == self.readers.len(),
        };
        if room {
            self.jobs.insert(job);
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
    pub(super) fn ask(&mut self, job: JobId, until: Moment) -> u64 {
        self.last_id += 1;
        let question = Question::Awaited(job, until);
        self.questions.insert(self.last_id, question);
        self.last_id
    }

    /// Whose question has been answered; nobody's when nobody waits.
    pub(super) fn answered(&mut self, id: u64) -> Option<JobId> {
        match self.questions.remove(&id) {
            Some(Question::Awaited(job, _)) => Some(job),
            Some(Question::Abandoned(_)) | None => {
                self.late += 1;
                None
            }
        }
    }

    /// Nobody waits for this answer any more.
    pub(super) fn give_up(&mut self, id: u64, busy_until: Moment) {
        if let Some(question) = self.questions.get_mut(&id) {
            *question = Question::Abandoned(busy_until);
        }
        let abandoned = |question: &Question| matches!(question, Question::Abandoned(_));
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
    }

    /// Whether it may be at something, and therefore answer nothing else.
    pub(super) fn may_be_busy(&self, now: Moment) -> bool {
        self.questions.values().any(|question| match question {
            Question::Awaited(..) => true,
            Question::Abandoned(until) => self.is_serial() && now < *until,
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
        }
    }
}
