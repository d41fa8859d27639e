//! Which executors are connected, and what they are asked: a state machine without clock, sockets or threads.
//!
//! Events go in, effects come out; whoever holds the lock carries them out. A tool call of a client is a *job*: it waits for an
//! executor and for its turn there, and then asks it once or several times, one after another. What is asked has a number of its
//! connection, which begins at 1, so that no answer can reach anybody but who asked (see executors.md, 6.2).

mod connection;
mod model;
mod slot;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use schema::ids::Uid;

use connection::Connection;
pub use model::{
    Close, ConnectionId, Devices, Effect, Event, Failure, JobId, Key, Lane, Moment, Presence,
    Protocol, Refusal, Service,
};
use slot::Slot;

/// How long a job waits for its turn.
pub const TURN: Duration = Duration::from_secs(15);
/// How long a job waits for an executor that was there until a moment ago, and how long that moment is.
pub const GRACE: Duration = Duration::from_secs(3);
/// Most jobs that wait for the executors of one user and service.
pub const WAITING: usize = 8;
/// Most executors of one user and service side by side: each may have a long message under way.
pub const DEVICES: usize = 16;
/// How long an executor may be silent.
pub const SILENCE: Duration = Duration::from_secs(75);
/// How long a desktop that does one thing at a time may take beyond the limit of what it does: it answers nothing meanwhile.
pub const BUSY: Duration = Duration::from_secs(30);

/// How long a newcomer may take to say who it is, when those that are connected have said so.
pub const GREETING: Duration = Duration::from_secs(2);
/// Users of whom nothing is known any more are forgotten after so many events.
const SWEEP: u64 = 1024;

/// A job, from the moment it comes until it has left.
#[derive(Debug)]
struct Job {
    key: Key,
    token: i64,
    lane: Lane,
    devices: Devices,
    entered: Moment,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the queue, until then.
    Waiting(Moment),
    /// At an executor, which it asks nothing now.
    Granted(ConnectionId),
    /// It has asked.
    Asked {
        connection: ConnectionId,
        id: u64,
        until: Moment,
    },
    /// Its executor is gone, or it was refused.
    Over,
}

/// Whose time may be up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A job's, for its turn or for an answer.
    Job(JobId),
    /// A connection's, to say who it is or to be done with what nobody waits for.
    Connection(ConnectionId),
}

/// The executors and jobs of all users.
#[derive(Debug, Default)]
pub struct Registry {
    /// The service ends: nobody new comes in.
    closing: bool,
    slots: HashMap<Key, Slot>,
    connections: BTreeMap<ConnectionId, Connection>,
    jobs: HashMap<JobId, Job>,
    /// Some are of what has ended since: those mean nothing.
    timers: BTreeSet<(Moment, Timer)>,
    events: u64,
}

impl Registry {
    /// What follows from an event. Events that come too late, because what they are about is over, change nothing.
    pub fn apply(&mut self, now: Moment, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.events += 1;
        if self.events.is_multiple_of(SWEEP) {
            self.slots.retain(|_, slot| !slot.is_empty(now));
        }
        match event {
            Event::Connected {
                connection,
                key,
                address,
                token,
            } => {
                let newcomer = Connection::new(key, address, token, now);
                self.connected(now, connection, newcomer, &mut effects);
            }
            Event::Introduced {
                connection,
                protocol,
            } => self.introduced(now, connection, protocol, &mut effects),
            Event::Answered { connection, id } => {
                self.answered(now, connection, id, &mut effects);
            }
            Event::Disconnected { connection } => {
                self.remove(now, connection, Failure::Lost, &mut effects);
            }
            Event::Silent { connection, heard } => {
                self.silent(now, connection, heard, &mut effects);
            }
            Event::Dismissed { connection, close } => {
                if self.connections.contains_key(&connection) {
                    effects.push(Effect::Close { connection, close });
                    self.remove(now, connection, Failure::Lost, &mut effects);
                }
            }
            Event::Revoked { user, token } => self.revoked(now, &user, token, &mut effects),
            Event::Entered {
                job,
                key,
                token,
                lane,
                devices,
            } => {
                let entry = Job {
                    key,
                    token,
                    lane,
                    devices,
                    entered: now,
                    state: State::Over,
                };
                self.entered(now, job, entry, &mut effects);
            }
            Event::Asked { job, limit } => self.asked(now, job, limit, &mut effects),
            Event::Due => self.due(now, &mut effects),
            Event::Left { job } => self.left(now, job, &mut effects),
            Event::Closing => self.close(&mut effects),
        }
        effects
    }

    /// When to send [`Event::Due`]; `None` when time alone changes nothing.
    pub fn due_at(&self) -> Option<Moment> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The executors that are connected, oldest connection first.
    pub fn presences(&self) -> impl Iterator<Item = Presence<'_>> {
        let all = self.connections.iter();
        all.map(|(id, connection)| connection.presence(*id))
    }

    /// Those of one user and service, the one that is asked first.
    pub fn of_key<'a>(&'a self, key: &Key) -> impl Iterator<Item = Presence<'a>> {
        let slot = self.slots.get(key);
        let ids = slot
            .map(|slot| slot.connections.as_slice())
            .unwrap_or_default();
        ids.iter().filter_map(|id| {
            let connection = self.connections.get(id)?;
            Some(connection.presence(*id))
        })
    }

    /// Whether no job is at an executor, or waits for one.
    pub fn is_idle(&self) -> bool {
        self.jobs.values().all(|job| job.state == State::Over)
    }

    /// Where a job is whose turn it is.
    pub fn executor_of(&self, job: JobId) -> Option<ConnectionId> {
        match self.jobs.get(&job)?.state {
            State::Granted(connection) | State::Asked { connection, .. } => Some(connection),
            State::Waiting(_) | State::Over => None,
        }
    }

    /// Until when new executors of one user and service are refused, because two of them keep displacing each other.
    pub fn refused_until(&self, now: Moment, key: &Key) -> Option<Moment> {
        self.slots.get(key)?.refused_until(now)
    }

    fn connected(
        &mut self,
        now: Moment,
        id: ConnectionId,
        newcomer: Connection,
        effects: &mut Vec<Effect>,
    ) {
        self.shown(now, &newcomer.key, newcomer.token, effects);
        let slot = self.slots.entry(newcomer.key.clone()).or_default();
        let refused = match self.closing {
            true => Some(Close::Restart),
            false if slot.newest_token > Some(newcomer.token) => Some(Close::Revoked),
            false => slot.refuses(now).then_some(Close::Flapping),
        };
        if let Some(close) = refused {
            effects.push(Effect::Close {
                connection: id,
                close,
            });
            return;
        }
        slot.newest = Some(id);
        // Those that have said who they are live side by side, so whether it displaces one is known when it has done so, too.
        let connections = &self.connections;
        let introduced = slot.connections.iter().any(|other| {
            let other = connections.get(other);
            other.is_some_and(|other| other.protocol != Protocol::First)
        });
        self.connections.insert(id, newcomer);
        match introduced {
            true => self.set_timer(now.after(GREETING), Timer::Connection(id)),
            false => self.establish(now, id, effects),
        }
    }

    /// A connection takes the place of those that it stands for, and its own.
    fn establish(&mut self, now: Moment, id: ConnectionId, effects: &mut Vec<Effect>) {
        // At the end of the service nobody displaces one that is still at something.
        let Some(newest) = self.connections.get(&id).filter(|_| !self.closing) else {
            return;
        };
        let (key, greets) = (newest.key.clone(), newest.greets_until());
        let slot = self.slots.entry(key.clone()).or_default();
        let displaced = |other: &ConnectionId| {
            let other = self.connections.get(other).filter(|_| *other != id);
            other.is_some_and(|other| other.is_displaced_by(newest))
        };
        let mut older: Vec<_> = slot.connections.iter().copied().filter(displaced).collect();
        slot.put_first(id);
        // The one that has done nothing for longest makes room.
        let side_by_side = slot
            .connections
            .iter()
            .filter(|other| !older.contains(other));
        let too_many: Vec<_> = side_by_side.skip(DEVICES).copied().collect();
        older.extend(too_many);
        slot.gone = None;
        for other in older {
            if let Some(slot) = self.slots.get_mut(&key) {
                slot.replaced(now);
            }
            let close = Close::Replaced;
            effects.push(Effect::Close {
                connection: other,
                close,
            });
            self.remove(now, other, Failure::Replaced, effects);
        }
        effects.push(Effect::Changed { key: key.clone() });
        self.wait_until(&key, |job, usable, until| {
            let turn = job.entered.after(TURN);
            match usable {
                // Who waited for a reconnect now waits for a turn, as long as if there had been none; for others it is so already.
                true => turn,
                // It may turn out to be the one that is waited for.
                false => greets.map_or(until, |greets| until.max(greets).min(turn)),
            }
        });
        self.grant(now, &key, effects);
    }

    /// Changes until when the jobs wait that wait: by whether there is an executor for them, and until when it was.
    fn wait_until(&mut self, key: &Key, change: impl Fn(&Job, bool, Moment) -> Moment) {
        let Some(slot) = self.slots.get(key) else {
            return;
        };
        for id in &slot.queue {
            if let Some(job) = self.jobs.get_mut(id)
                && let State::Waiting(until) = job.state
            {
                let usable = is_usable(slot, &self.connections, &job.devices);
                let changed = change(job, usable, until);
                job.state = State::Waiting(changed);
                self.timers.remove(&(until, Timer::Job(*id)));
                self.timers.insert((changed, Timer::Job(*id)));
            }
        }
    }

    fn set_timer(&mut self, at: Moment, timer: Timer) {
        self.timers.insert((at, timer));
    }

    fn introduced(
        &mut self,
        now: Moment,
        id: ConnectionId,
        protocol: Protocol,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.protocol = protocol;
            self.establish(now, id, effects);
        }
    }

    fn answered(
        &mut self,
        now: Moment,
        connection: ConnectionId,
        id: u64,
        effects: &mut Vec<Effect>,
    ) {
        let Some(from) = self.connections.get_mut(&connection) else {
            return;
        };
        let key = from.key.clone();
        let Some(job) = from.answered(id) else {
            if from.says_too_much(now) {
                let close = Close::Babbling;
                effects.push(Effect::Close { connection, close });
                self.remove(now, connection, Failure::Lost, effects);
            } else {
                self.grant(now, &key, effects);
            }
            return;
        };
        if let Some(asked) = self.jobs.get_mut(&job) {
            if let State::Asked { until, .. } = asked.state {
                self.timers.remove(&(until, Timer::Job(job)));
            }
            asked.state = State::Granted(connection);
            effects.push(Effect::Completed { job });
        }
        // Whoever has done something last is asked next.
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.put_first(connection);
        }
        self.grant(now, &key, effects);
    }

    fn silent(&mut self, now: Moment, id: ConnectionId, heard: Moment, effects: &mut Vec<Effect>) {
        let Some(connection) = self.connections.get(&id) else {
            return;
        };
        if now.since(heard) >= SILENCE && !connection.may_be_busy(now) {
            let close = Close::Silent;
            effects.push(Effect::Close {
                connection: id,
                close,
            });
            self.remove(now, id, Failure::Lost, effects);
        }
    }

    /// A connection is gone, or as good as gone. Only its own entry goes: a newer one of the same user stays (L48).
    fn remove(&mut self, now: Moment, id: ConnectionId, why: Failure, effects: &mut Vec<Effect>) {
        let Some(connection) = self.connections.remove(&id) else {
            return;
        };
        let key = connection.key;
        for job in connection.jobs {
            let Some(entry) = self.jobs.get_mut(&job) else {
                continue;
            };
            if let State::Asked { until, .. } = entry.state {
                self.timers.remove(&(until, Timer::Job(job)));
                effects.push(Effect::Failed { job, why });
            }
            entry.state = State::Over;
        }
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        let connected = slot.connections.len();
        slot.connections.retain(|other| *other != id);
        if slot.connections.len() == connected {
            return;
        }
        effects.push(Effect::Changed { key: key.clone() });
        slot.gone = slot.connections.is_empty().then_some(now);
        self.wait_until(&key, |_, usable, until| match usable {
            true => until,
            false => until.min(now.after(GRACE)),
        });
        self.grant(now, &key, effects);
    }

    fn revoked(&mut self, now: Moment, user: &Uid, token: i64, effects: &mut Vec<Effect>) {
        let ends = |(_, connection): &(&ConnectionId, &Connection)| {
            connection.key.user == *user && connection.token <= token
        };
        // Before the connections: what ends with one of them lets nobody to another who may not be there.
        for service in Service::ALL {
            let key = Key {
                user: user.clone(),
                service,
            };
            let why = Refusal::Revoked;
            self.refuse(&key, why, |job| job.token <= token, effects);
        }
        let connections: Vec<_> = self
            .connections
            .iter()
            .filter(ends)
            .map(|(id, _)| *id)
            .collect();
        for connection in connections {
            let close = Close::Revoked;
            effects.push(Effect::Close { connection, close });
            self.remove(now, connection, Failure::Lost, effects);
        }
        for service in Service::ALL {
            let key = Key {
                user: user.clone(),
                service,
            };
            // Nobody is waited for who has just been sent away.
            if let Some(slot) = self.slots.get_mut(&key) {
                slot.gone = None;
            }
        }
    }

    /// The service ends: who waits hears so at once, who has their turn may go on.
    fn close(&mut self, effects: &mut Vec<Effect>) {
        self.closing = true;
        let keys: Vec<_> = self.slots.keys().cloned().collect();
        for key in keys {
            self.refuse(&key, Refusal::Closing, |_| true, effects);
        }
    }

    /// Refuses those of the jobs that wait.
    fn refuse(
        &mut self,
        key: &Key,
        why: Refusal,
        which: impl Fn(&Job) -> bool,
        effects: &mut Vec<Effect>,
    ) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        let (jobs, timers) = (&mut self.jobs, &mut self.timers);
        slot.queue.retain(|id| {
            let Some(job) = jobs.get_mut(id).filter(|job| which(job)) else {
                return true;
            };
            if let State::Waiting(until) = job.state {
                timers.remove(&(until, Timer::Job(*id)));
            }
            job.state = State::Over;
            effects.push(Effect::Refused { job: *id, why });
            false
        });
    }

    /// A token is shown. The first one that is newer ends what has shown older ones: those were revoked. So all connections of a key and
    /// all jobs that wait for them have shown the same.
    fn shown(&mut self, now: Moment, key: &Key, token: i64, effects: &mut Vec<Effect>) {
        // At the end of the service nobody displaces one that is still at something.
        if self.closing {
            return;
        }
        let slot = self.slots.entry(key.clone()).or_default();
        if slot.newest_token < Some(token) && slot.newest_token.replace(token).is_some() {
            self.revoked(now, &key.user, token - 1, effects);
        }
    }

    /// Until when a job waits that comes now.
    fn patience(&self, now: Moment, job: &Job) -> Result<Moment, Refusal> {
        if self.closing {
            return Err(Refusal::Closing);
        }
        let slot = self.slots.get(&job.key).ok_or(Refusal::NotConnected)?;
        // Its token was valid a moment before.
        if slot.newest_token > Some(job.token) {
            return Err(Refusal::Revoked);
        }
        let until = match is_usable(slot, &self.connections, &job.devices) {
            true => Some(now.after(TURN)),
            false => {
                let gone = slot.gone.filter(|gone| now.since(*gone) < GRACE);
                let newest = slot.newest.and_then(|id| self.connections.get(&id));
                // It may turn out to be one of those that the job may be given to.
                let greets = newest.and_then(Connection::greets_until);
                let greets = greets.filter(|until| now < *until);
                gone.map(|_| now.after(GRACE)).max(greets)
            }
        };
        match until {
            None => Err(self.unmet(&job.key, &job.devices)),
            Some(_) if slot.queue.len() >= WAITING => Err(Refusal::Full),
            Some(until) => Ok(until),
        }
    }

    /// Why a job has no turn now.
    fn unmet(&self, key: &Key, devices: &Devices) -> Refusal {
        match self
            .slots
            .get(key)
            .filter(|slot| !slot.connections.is_empty())
        {
            None => Refusal::NotConnected,
            Some(slot) if is_usable(slot, &self.connections, devices) => Refusal::Busy,
            Some(_) => Refusal::NotAllowed,
        }
    }

    fn entered(&mut self, now: Moment, job: JobId, mut entry: Job, effects: &mut Vec<Effect>) {
        let key = entry.key.clone();
        self.shown(now, &key, entry.token, effects);
        match self.patience(now, &entry) {
            Ok(until) => {
                let slot = self.slots.entry(key.clone()).or_default();
                slot.queue.push_back(job);
                self.timers.insert((until, Timer::Job(job)));
                entry.state = State::Waiting(until);
            }
            Err(why) => effects.push(Effect::Refused { job, why }),
        }
        self.jobs.insert(job, entry);
        self.grant(now, &key, effects);
    }

    /// Lets those go on whose turn it is, in the order in which they came.
    fn grant(&mut self, now: Moment, key: &Key, effects: &mut Vec<Effect>) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        let (jobs, timers) = (&mut self.jobs, &mut self.timers);
        let (order, connections) = (&slot.connections, &mut self.connections);
        slot.queue.retain(|id| {
            let Some(job) = jobs.get_mut(id) else {
                return false;
            };
            let usable = |id: &&ConnectionId| {
                let connection = connections.get(id);
                connection.is_some_and(|connection| connection.is_among(&job.devices))
            };
            let Some(first) = order.iter().find(usable) else {
                return true;
            };
            let Some(connection) = connections.get_mut(first) else {
                return true;
            };
            let granted = connection.admit(now, *id, job.lane);
            if granted {
                if let State::Waiting(until) = job.state {
                    timers.remove(&(until, Timer::Job(*id)));
                }
                job.state = State::Granted(*first);
                effects.push(Effect::Granted { job: *id });
            }
            !granted
        });
    }

    fn asked(&mut self, now: Moment, job: JobId, limit: Duration, effects: &mut Vec<Effect>) {
        let Some(entry) = self.jobs.get_mut(&job) else {
            return;
        };
        let connection = match entry.state {
            State::Granted(connection) => connection,
            // Its executor went away between two questions: nothing of this one was sent.
            State::Waiting(_) | State::Asked { .. } | State::Over => {
                let why = Failure::Gone;
                effects.push(Effect::Failed { job, why });
                return;
            }
        };
        let Some(executor) = self.connections.get_mut(&connection) else {
            return;
        };
        let until = now.after(limit);
        let asked = match limit.is_zero() {
            true => Err(Failure::NoTime),
            false => executor.ask(now, job, until),
        };
        let id = match asked {
            Ok(id) => id,
            Err(why) => {
                effects.push(Effect::Failed { job, why });
                return;
            }
        };
        entry.state = State::Asked {
            connection,
            id,
            until,
        };
        self.timers.insert((until, Timer::Job(job)));
        effects.push(Effect::Write {
            job,
            connection,
            id,
        });
    }

    fn due(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        while let Some((at, timer)) = self.timers.first().copied()
            && at <= now
        {
            self.timers.remove(&(at, timer));
            match timer {
                Timer::Job(job) => self.job_due(now, job, effects),
                Timer::Connection(connection) => self.connection_due(now, connection, effects),
            }
        }
    }

    fn job_due(&mut self, now: Moment, job: JobId, effects: &mut Vec<Effect>) {
        let Some(entry) = self.jobs.get_mut(&job) else {
            return;
        };
        match entry.state {
            State::Waiting(_) => {
                entry.state = State::Over;
                let (key, devices) = (entry.key.clone(), entry.devices.clone());
                if let Some(slot) = self.slots.get_mut(&key) {
                    slot.queue.retain(|other| *other != job);
                }
                let why = self.unmet(&key, &devices);
                effects.push(Effect::Refused { job, why });
            }
            State::Asked { connection, id, .. } => {
                entry.state = State::Granted(connection);
                self.give_up(now, connection, id, effects);
                let why = Failure::TimedOut;
                effects.push(Effect::Failed { job, why });
            }
            State::Granted(_) | State::Over => {}
        }
    }

    fn connection_due(&mut self, now: Moment, id: ConnectionId, effects: &mut Vec<Effect>) {
        let Some(connection) = self.connections.get(&id) else {
            return;
        };
        let key = connection.key.clone();
        let established = self.slots.get(&key);
        let established = established.is_some_and(|slot| slot.connections.contains(&id));
        match established {
            // It may be done by now with what nobody waits for.
            true => self.grant(now, &key, effects),
            false => self.establish(now, id, effects),
        }
    }

    /// Nobody waits any more for an answer; a desktop may still be at what was asked.
    fn give_up(
        &mut self,
        now: Moment,
        connection: ConnectionId,
        id: u64,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(executor) = self.connections.get_mut(&connection) {
            let until = executor.give_up(now, id);
            self.timers.insert((until, Timer::Connection(connection)));
            effects.push(Effect::Cancel { connection, id });
        }
    }

    fn left(&mut self, now: Moment, job: JobId, effects: &mut Vec<Effect>) {
        let Some(entry) = self.jobs.remove(&job) else {
            return;
        };
        let key = entry.key;
        match entry.state {
            State::Waiting(until) => {
                self.timers.remove(&(until, Timer::Job(job)));
                if let Some(slot) = self.slots.get_mut(&key) {
                    slot.queue.retain(|other| *other != job);
                }
            }
            State::Granted(connection) => self.release(connection, job),
            State::Asked {
                connection,
                id,
                until,
            } => {
                self.timers.remove(&(until, Timer::Job(job)));
                self.give_up(now, connection, id, effects);
                self.release(connection, job);
            }
            State::Over => {}
        }
        self.grant(now, &key, effects);
    }

    fn release(&mut self, connection: ConnectionId, job: JobId) {
        if let Some(executor) = self.connections.get_mut(&connection) {
            executor.release(job);
        }
    }
}

/// Whether one of the executors is among these.
fn is_usable(
    slot: &Slot,
    connections: &BTreeMap<ConnectionId, Connection>,
    devices: &Devices,
) -> bool {
    slot.connections.iter().any(|id| {
        let connection = connections.get(id);
        connection.is_some_and(|connection| connection.is_among(devices))
    })
}
