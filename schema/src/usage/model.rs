//! Rows of what users' directories take.

use std::time::Duration;

use serde::Serialize;
use sqlx::FromRow;

use crate::column::Flag;
use crate::home::Measured;
use crate::ids::{Timestamp, Uid, UserName};

/// Time for which a directory that could not be measured is left alone.
pub const RETRY: Duration = Duration::from_secs(5 * 60);
/// How long one that was measured is left alone although requests change it; to that comes a millisecond for each entry in it,
/// so that no user keeps the disk busy.
pub const AFTER_CHANGE: Duration = Duration::from_secs(10);
/// Time for which the number of one whose agent is to run is good, without a quota.
pub const WHILE_RUNNING: Duration = Duration::from_secs(60 * 60);
/// The same with a quota. Each measurement in a row that finds the same adds as much again, up to [`MOST_UNCHANGED`] times; and each
/// entry a millisecond.
pub const WITH_QUOTA: Duration = Duration::from_secs(10 * 60);
/// Most measurements in a row without a change that are counted.
pub const MOST_UNCHANGED: i64 = 5;
/// How long the number of one in which nobody is at work is good.
pub const OTHERWISE: Duration = Duration::from_secs(24 * 60 * 60);

/// Space that a user's directory takes, the workspace and the rest of the agent's home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, FromRow, utoipa::ToSchema)]
#[schema(as = WorkspaceUsage)]
pub struct Usage {
    /// Bytes on the disk.
    #[sqlx(try_from = "i64")]
    pub used_bytes: u64,
    /// Regular files.
    #[sqlx(try_from = "i64")]
    pub files: u64,
    /// Files, directories and other entries.
    #[sqlx(try_from = "i64")]
    pub entries: u64,
    /// Everything was counted; otherwise the numbers are a lower bound.
    #[sqlx(try_from = "Flag")]
    pub complete: bool,
    /// When it was measured.
    pub measured_at: Timestamp,
    /// Why it could not be measured again since then.
    #[schema(required = true)]
    pub problem: Option<String>,
    /// Which changes by requests the measurement has counted: those up to this one.
    #[serde(skip)]
    #[schema(ignore)]
    pub measured_changes: i64,
}

/// A directory that is to be measured.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Due {
    /// Whose it is.
    pub uid: Uid,
    /// The user's name.
    pub name: UserName,
    /// Number of changes of its workspace by requests by the time of reading.
    pub changes: i64,
}

/// A measurement, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Whose directory it is.
    pub uid: Uid,
    /// How often requests had changed it before the measurement began.
    pub changes: i64,
    /// What was counted, or why nothing was.
    pub outcome: Result<Measured, String>,
}

/// Directories that could not be measured.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Failing {
    /// How many there are.
    pub count: i64,
    /// When the first of them was tried.
    pub oldest: Timestamp,
    /// The first user of them, by name.
    pub name: UserName,
    /// Why that one's could not be measured.
    pub problem: String,
}
