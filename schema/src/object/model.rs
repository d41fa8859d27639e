//! Rows of objects and their statuses.

use sqlx::FromRow;

use crate::condition::Condition;
use crate::error::DbError;
use crate::ids::{Generation, Timestamp, Uid};

#[derive(FromRow)]
pub(super) struct RawObject {
    pub kind: String,
    pub uid: String,
    pub name: String,
    pub generation: i64,
    pub paused: i64,
    pub created_at: i64,
    pub deleted_at: Option<i64>,
    pub observed_generation: Option<i64>,
    pub conditions: Option<String>,
    pub failures: Option<i64>,
    pub next_attempt_at: Option<i64>,
}

/// An object's header with its status.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectRow {
    /// `user`, `container`, …
    pub kind: String,
    /// Identity.
    pub uid: Uid,
    /// Name, for display.
    pub name: String,
    /// How often its desired state changed.
    pub generation: Generation,
    /// Whether its passes are switched off.
    pub paused: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its removal was asked for.
    pub deleted_at: Option<Timestamp>,
    /// What is known of it; the default until its first pass.
    pub status: StatusRow,
}

/// What is known of an object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StatusRow {
    /// The newest generation a pass has observed.
    pub observed_generation: Generation,
    /// What is known.
    pub conditions: Vec<Condition>,
    /// Failed reconciliations in a row.
    pub failures: u32,
    /// When the next attempt is due, while in back-off.
    pub next_attempt_at: Option<Timestamp>,
}

impl StatusRow {
    /// Reads the stored columns; all absent means the first pass is still to come.
    pub(crate) fn from_columns(
        observed_generation: Option<i64>,
        conditions: Option<&str>,
        failures: Option<i64>,
        next_attempt_at: Option<i64>,
    ) -> Result<Self, DbError> {
        Ok(Self {
            observed_generation: Generation(observed_generation.unwrap_or(0)),
            conditions: match conditions {
                Some(text) => serde_json::from_str(text)
                    .map_err(|e| DbError::Corrupt(format!("conditions: {e}")))?,
                None => Vec::new(),
            },
            failures: u32::try_from(failures.unwrap_or(0)).unwrap_or(u32::MAX),
            next_attempt_at: next_attempt_at.map(Timestamp::from_millis),
        })
    }
}

impl TryFrom<RawObject> for ObjectRow {
    type Error = DbError;

    fn try_from(raw: RawObject) -> Result<Self, DbError> {
        Ok(Self {
            kind: raw.kind,
            uid: Uid::from(raw.uid),
            name: raw.name,
            generation: Generation(raw.generation),
            paused: raw.paused != 0,
            created_at: Timestamp::from_millis(raw.created_at),
            deleted_at: raw.deleted_at.map(Timestamp::from_millis),
            status: StatusRow::from_columns(
                raw.observed_generation,
                raw.conditions.as_deref(),
                raw.failures,
                raw.next_attempt_at,
            )?,
        })
    }
}

/// How many objects of a kind have one value of `Ready`.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct ReadyCount {
    /// Kind of object.
    pub kind: String,
    /// `True`, `False`, `Unknown`, or empty before the first pass.
    pub ready: String,
    /// How many.
    pub n: i64,
    /// How many of them are in back-off.
    pub failing: i64,
}
