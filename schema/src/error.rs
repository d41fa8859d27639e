//! What the database layer can fail with.

use sqlx::error::DatabaseError;
use sqlx::sqlite::SqliteError;

use crate::ids::InvalidUserName;

/// A read or write of the database failed.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// The row does not exist.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The row has another generation than the caller expected.
    #[error("the object was changed concurrently: its generation is {actual}")]
    StaleGeneration {
        /// The generation it has now.
        actual: i64,
    },
    /// The name belongs to another account.
    #[error("the name is already taken")]
    NameTaken,
    /// The name belongs to an account that is still being removed.
    #[error("the previous account of this name is still being removed")]
    NameBeingRemoved,
    /// The last superadmin cannot be removed.
    #[error("the last superadmin cannot be removed")]
    LastSuperadmin,
    /// So many sessions of the account have begun just now that another one would lie too far in the future.
    #[error("too many sessions of this account have begun just now")]
    TooManySessions,
    /// What was asked for cannot be done in the object's present state; the text says which that is.
    #[error("{0}")]
    WrongState(&'static str),
    /// Users are in another rollout that has not ended.
    #[error("{} in rollout {rollout}, which has not ended", .users.join(", "))]
    InRollout {
        /// That rollout.
        rollout: String,
        /// At most 20 of the users.
        users: Vec<String>,
    },
    /// A stored name breaks the rule for names.
    #[error("a stored user name is not valid")]
    InvalidName(#[from] InvalidUserName),
    /// A stored value cannot be read.
    #[error("a stored value cannot be read: {0}")]
    Corrupt(String),
    /// A sealed value could not be opened with this master key.
    #[error("a stored secret cannot be opened: {0}")]
    Sealed(String),
    /// The database has no space left to write to.
    #[error("the storage of the database is full")]
    StorageFull(#[source] sqlx::Error),
    /// The database cannot read or write its storage; in words, why.
    #[error("the storage of the database failed: {0}")]
    StorageFailed(&'static str, #[source] sqlx::Error),
    /// The database cannot be reached, or what was under way was cut off: it may have been done or not.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// `skills.defaults` names what is no skill.
    #[error("no such skill: {}", .0.join(", "))]
    UnknownSkills(Vec<String>),
    /// A group would be in itself.
    #[error("a group cannot be in itself, or in a group that is in it")]
    GroupCycle,
    /// The database failed.
    #[error("the database failed")]
    Sqlx(#[source] sqlx::Error),
}

impl From<sqlx::Error> for DbError {
    fn from(error: sqlx::Error) -> Self {
        use sqlx::Error::{
            AnyDriverError, BeginFailed, ColumnDecode, Decode, Io, PoolClosed, PoolTimedOut,
            Protocol, Tls, WorkerCrashed,
        };
        match &error {
            Io(_) | Tls(_) | Protocol(_) | PoolTimedOut | PoolClosed | WorkerCrashed
            | BeginFailed => return Self::Unavailable(chain(&error)),
            sqlx::Error::Database(said) => match trouble(said.as_ref()) {
                Some(Trouble::Full) => return Self::StorageFull(error),
                Some(Trouble::Failed(what)) => return Self::StorageFailed(what, error),
                Some(Trouble::Away) => return Self::Unavailable(chain(&error)),
                None => {}
            },
            _ => {}
        }
        match error {
            ColumnDecode { index, source } => Self::Corrupt(format!("{index}: {source}")),
            // SQLite stores any type in any column.
            Decode(source) | AnyDriverError(source) => Self::Corrupt(source.to_string()),
            error => Self::Sqlx(error),
        }
    }
}

/// What is wrong with the database itself, and not with what was asked of it.
enum Trouble {
    Full,
    Failed(&'static str),
    Away,
}

fn trouble(said: &dyn DatabaseError) -> Option<Trouble> {
    let code = said.code()?;
    if said.try_downcast_ref::<SqliteError>().is_some() {
        let code: i32 = code.parse().ok()?;
        // The low byte is the kind of error. No space for the index of the log is an I/O error of its own.
        return match (code, code & 0xff) {
            (SQLITE_IOERR_SHMSIZE, _) | (_, 13) => Some(Trouble::Full),
            (_, 5 | 6) => Some(Trouble::Away),
            (_, 8) => Some(Trouble::Failed("it is read-only")),
            (_, 10) => Some(Trouble::Failed("it cannot be read or written")),
            (_, 11 | 26) => Some(Trouble::Failed("the file is damaged")),
            (_, 14) => Some(Trouble::Failed("the file cannot be opened")),
            _ => None,
        };
    }
    match code.as_ref() {
        "53100" => Some(Trouble::Full),
        "58030" | "XX001" | "XX002" => Some(Trouble::Failed("the server cannot read or write it")),
        // Somebody else holds a lock for too long.
        "55P03" => Some(Trouble::Away),
        // Two that wait for each other: the database has chosen this one, and it can try again.
        "40P01" | "40001" => Some(Trouble::Away),
        // Shutting down, starting, too many connections, cut off, a standby, a database that is gone or
        // closed to us, a table that is gone.
        "57P01" | "57P02" | "57P03" | "57P04" | "57P05" | "57014" | "53300" | "25006" | "3D000"
        | "28000" | "28P01" | "42P01" => Some(Trouble::Away),
        code if code.starts_with("08") => Some(Trouble::Away),
        _ => None,
    }
}

const SQLITE_IOERR_SHMSIZE: i32 = 4874;

impl From<serde_json::Error> for DbError {
    fn from(error: serde_json::Error) -> Self {
        Self::Corrupt(error.to_string())
    }
}

/// What is done to an object that may be gone by now: `None` when it is.
pub(crate) fn unless_gone<T>(result: Result<T, DbError>) -> Result<Option<T>, DbError> {
    match result {
        Err(DbError::NotFound(_)) => Ok(None),
        result => result.map(Some),
    }
}

/// An error and its sources on one line; a source that the text names already is left out.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let cause = inner.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        source = inner.source();
    }
    text
}

/// Why the database could not be opened at start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL is neither `sqlite:<path>` nor `postgres://…`.
    #[error(
        "invalid database URL: {0}; use sqlite:<path> or postgres://user:password@host/database"
    )]
    Url(String),
    /// The file is not a database, or a damaged one. It was not touched.
    #[error(
        "the database {place} cannot be read: {detail}. It was not changed; restore it from a backup or name another with --database-url"
    )]
    Unreadable {
        /// The file.
        place: String,
        /// The database library's words.
        detail: String,
    },
    /// The file is a damaged database. It was not touched.
    #[error(
        "the database file {place} is damaged: {detail}. It was not changed; restore it from a backup"
    )]
    Damaged {
        /// The file.
        place: String,
        /// The first of the database library's findings.
        detail: String,
    },
    /// A file of the database is not the service's alone.
    #[error("{place} is not used: {detail}")]
    NotPrivate {
        /// The file.
        place: String,
        /// What speaks against it.
        detail: String,
    },
    /// A newer release wrote this database, or its migrations are not ours. It was not touched.
    #[error(
        "the database {place} was written by another release: {detail}. It was not changed; run that release or restore a backup"
    )]
    Newer {
        /// The file or server.
        place: String,
        /// Which migration is unknown.
        detail: String,
    },
    /// An older release wrote this database, and only the service migrates it. It was not touched.
    #[error(
        "the database {place} was written by an older release: {detail}. It was not changed; run that release, or start the service of this one first"
    )]
    Older {
        /// The file or server.
        place: String,
        /// Which migration is missing.
        detail: String,
    },
    /// The server answers, but cannot be worked with.
    #[error("the database {place} cannot be used: {detail}")]
    Unusable {
        /// The server.
        place: String,
        /// Reason and remedy.
        detail: String,
    },
    /// The server cannot be reached.
    #[error("the database server cannot be reached")]
    Unreachable(#[source] sqlx::Error),
    /// A migration failed; it was rolled back.
    #[error("the database could not be migrated")]
    Migrate(#[source] sqlx::migrate::MigrateError),
    /// The database failed after it was opened.
    #[error("the database failed while it was being prepared")]
    Prepare(#[source] sqlx::Error),
}

impl OpenError {
    /// Whether the service must refuse to start with exit code 78 (`EX_CONFIG`), because starting
    /// again changes nothing and the data must not be touched.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Url(_)
            | Self::Unreadable { .. }
            | Self::Damaged { .. }
            | Self::NotPrivate { .. }
            | Self::Unusable { .. }
            | Self::Older { .. }
            | Self::Newer { .. } => true,
            Self::Unreachable(_) | Self::Migrate(_) | Self::Prepare(_) => false,
        }
    }
}
