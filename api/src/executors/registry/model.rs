//! What goes in and comes out.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use schema::ids::Uid;
use serde::{Deserialize, Serialize};

/// A moment, by a clock that nobody sets: the time since some beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(pub Duration);

impl Moment {
    /// So much later.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }

    /// How long ago the other one was; nothing when it is still to come.
    pub fn since(self, other: Self) -> Duration {
        self.0.saturating_sub(other.0)
    }
}

/// What an executor works on.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schema(as = ExecutorService)]
pub enum Service {
    /// The user's browser, through its extension.
    Browser,
    /// The user's desktop, through its client.
    Computer,
}

impl Service {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Browser, Self::Computer];
}

/// Whose executors, and of which service. The user is that of the token, never of a frame (L54).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The user.
    pub user: Uid,
    /// The service.
    pub service: Service,
}

/// A connection of an executor. The greater one is the newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConnectionId(pub u64);

/// A job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

/// What a job may do beside others at the same executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// It only looks.
    Read,
    /// It changes something: one at a time.
    Act,
}

/// The instances of executors that a job may be given to; `None`: all, also those that have said nothing about themselves.
pub type Devices = Option<Arc<[String]>>;

/// How an executor speaks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Protocol {
    /// It has said nothing about itself.
    #[default]
    First,
    /// It has introduced itself with a `hello`.
    Introduced {
        /// Which installation it is: it stays the same over connections.
        instance: String,
    },
}

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An executor has connected.
    Connected {
        /// Its connection, which has a number of its own.
        connection: ConnectionId,
        /// Whose it is.
        key: Key,
        /// Where it comes from.
        address: Option<IpAddr>,
        /// Which of the user's tokens it has shown.
        token: i64,
    },
    /// It has said who it is.
    Introduced {
        /// Its connection.
        connection: ConnectionId,
        /// How it speaks.
        protocol: Protocol,
    },
    /// It has answered what has this number.
    Answered {
        /// Its connection.
        connection: ConnectionId,
        /// The number, which may be of nothing at all.
        id: u64,
    },
    /// Its connection has ended.
    Disconnected {
        /// The connection.
        connection: ConnectionId,
    },
    /// It has sent nothing for a while.
    Silent {
        /// Its connection.
        connection: ConnectionId,
        /// When it last did.
        heard: Moment,
    },
    /// Its connection shall end.
    Dismissed {
        /// The connection.
        connection: ConnectionId,
        /// Why.
        close: Close,
    },
    /// A token is no longer valid, nor is any before it.
    Revoked {
        /// Whose it was.
        user: Uid,
        /// Which of theirs.
        token: i64,
    },
    /// A job has come.
    Entered {
        /// It, with a number of its own.
        job: JobId,
        /// Whose executors it is for.
        key: Key,
        /// Which of the user's tokens its client has shown.
        token: i64,
        /// What it may do beside others.
        lane: Lane,
        /// The executors that it may be given to.
        devices: Devices,
    },
    /// A job whose turn it is asks its executor.
    Asked {
        /// The job.
        job: JobId,
        /// How long the answer may take.
        limit: Duration,
    },
    /// It is time ([`Registry::due_at`](super::Registry::due_at)).
    Due,
    /// A job has ended, or its client has gone.
    Left {
        /// The job.
        job: JobId,
    },
    /// The service ends: what has its turn may go on, and nothing else begins.
    Closing,
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// It is a job's turn.
    Granted {
        /// The job.
        job: JobId,
    },
    /// It will never be.
    Refused {
        /// The job.
        job: JobId,
        /// Why.
        why: Refusal,
    },
    /// What a job asks goes to its executor.
    Write {
        /// The job.
        job: JobId,
        /// Through this connection.
        connection: ConnectionId,
        /// Under this number.
        id: u64,
    },
    /// Nobody waits any more for what was asked.
    Cancel {
        /// The connection through which.
        connection: ConnectionId,
        /// The number.
        id: u64,
    },
    /// The answer that has just come is a job's.
    Completed {
        /// The job.
        job: JobId,
    },
    /// What a job has asked has no answer.
    Failed {
        /// The job.
        job: JobId,
        /// Why.
        why: Failure,
    },
    /// A connection ends.
    Close {
        /// The connection.
        connection: ConnectionId,
        /// Why.
        close: Close,
    },
    /// Executors have come or gone.
    Changed {
        /// Whose.
        key: Key,
    },
}

/// Why a job is not let to an executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// There is none.
    NotConnected,
    /// There is one, but none to which it may be given.
    NotAllowed,
    /// Too many wait already.
    Full,
    /// Its turn did not come in time.
    Busy,
    /// The token is no longer valid.
    Revoked,
    /// The service ends.
    Closing,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The executor was gone before anything was sent.
    Gone,
    /// No time was left, and nothing was sent.
    NoTime,
    /// The executor may still be at what the same job has asked before, and does one thing at a time: nothing was sent.
    Held,
    /// The time is up; what was asked may still happen.
    TimedOut,
    /// The connection has ended; whether what was asked has happened is unknown.
    Lost,
    /// A newer connection has taken its place; whether what was asked has happened is unknown.
    Replaced,
}

/// Why a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Close {
    /// A newer connection has taken its place.
    Replaced,
    /// Executors keep displacing each other; said as 429 in place of the handshake.
    Flapping,
    /// It was silent for too long.
    Silent,
    /// The token is no longer valid.
    Revoked,
    /// An administrator wants it.
    Dismissed,
    /// The policy has switched the service off for the user.
    SwitchedOff,
    /// It takes nothing of what is sent to it, or does not come to an end with what it sends.
    Slow,
    /// It answers again and again what nobody has asked.
    Babbling,
    /// It is to connect again, as it then takes hold of the tab that it controls now.
    Reattach,
    /// Its user has another name now, under which it is to connect again.
    Renamed,
    /// The service ends.
    Restart,
}

impl Close {
    /// The code of the close frame (RFC 6455, 7.4; those from 4000 on are ours).
    pub fn code(self) -> u16 {
        match self {
            Self::Replaced | Self::Dismissed => 1000,
            Self::Restart | Self::Reattach | Self::Renamed => 1012,
            Self::Revoked | Self::SwitchedOff => 4403,
            Self::Slow | Self::Silent | Self::Babbling => 4408,
            Self::Flapping => 4409,
        }
    }

    /// The reason in the close frame.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Replaced => "replaced",
            Self::Dismissed => "disconnected by an administrator",
            Self::Restart => "the service restarts",
            Self::Reattach => "connect again to control the tab",
            Self::Renamed => "the user was renamed; connect again",
            Self::Revoked => "the token is no longer valid",
            Self::SwitchedOff => "switched off by an administrator",
            Self::Slow => "too slow",
            Self::Babbling => "too many answers that nobody has asked for",
            Self::Silent => "silent for too long",
            Self::Flapping => "executors keep displacing each other",
        }
    }
}

/// An executor that is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presence<'a> {
    /// Its connection.
    pub connection: ConnectionId,
    /// Whose it is.
    pub key: &'a Key,
    /// How it speaks.
    pub protocol: &'a Protocol,
    /// Where it comes from.
    pub address: Option<IpAddr>,
    /// Since when.
    pub since: Moment,
    /// How many jobs are at it.
    pub jobs: usize,
    /// Number of jobs that were or are at it.
    pub admitted: u64,
    /// How many answers came when nobody waited for them.
    pub late: u64,
}
