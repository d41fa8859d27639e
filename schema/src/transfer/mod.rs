//! Moving an installation's database from SQLite to PostgreSQL and back.
//!
//! All tables are copied in one transaction of the target, from one snapshot of the source, in batches. Each table has a digest on
//! both sides. Left out are the lease, replicas and the places of executors,
//! which belong to servers that run, and the epochs of the lease's holders: they begin anew.

use std::path::Path;

use sha2::{Digest as _, Sha256};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Row};

use self::tables::{Holds, Table, check_values, read_tables, refuse_foreign};
use crate::db::{Backend, Db};
use crate::error::OpenError;

mod tables;
#[cfg(test)]
mod tests;

/// Rows that are read, and written, at once.
pub(super) const BATCH: usize = 100;
/// Columns that are 0 in the target: table and column.
const RESET: [(&str, &str); 1] = [("object_status", "epoch")];

/// Accounts and facts, which only an installation has.
const COUNT_OWN: &str = "SELECT (SELECT count(*) FROM users) + (SELECT count(*) FROM meta)";
/// Foreign keys of a PostgreSQL database: table, name and definition.
const FOREIGN_KEYS: &str = "SELECT CAST(conrelid::regclass AS TEXT), CAST(quote_ident(conname) AS TEXT), CAST(pg_get_constraintdef(oid) AS TEXT) \
    FROM pg_constraint WHERE contype = 'f' AND connamespace = CAST(current_schema() AS regnamespace) ORDER BY 1, 2";
/// Rows of a SQLite file that refer to rows that are missing.
const BROKEN_KEYS: &str = "SELECT count(*) FROM pragma_foreign_key_check";

/// Reason for which a database was not moved. The target is as it was, but for empty tables.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// One of them could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The target holds an installation.
    #[error("the database at {0} is not empty; name an empty one")]
    NotEmpty(String),
    /// Both are of one kind.
    #[error("both databases are {0}; name one of the other kind, or copy it with the tools of {0}")]
    SameKind(&'static str),
    /// A table could not be copied.
    #[error("table {table} could not be {action}: {source}")]
    Table {
        /// Which.
        table: String,
        /// The step that failed.
        action: &'static str,
        /// The cause.
        #[source]
        source: sqlx::Error,
    },
    /// A statement for the whole of a database failed.
    #[error("{action} failed: {source}")]
    Sql {
        /// The step that failed.
        action: &'static str,
        /// The cause.
        #[source]
        source: sqlx::Error,
    },
    /// The source has what no release has made: it was tampered with, or another program uses it.
    #[error(
        "the database has {0}, which no release of Agentyard makes; restore it from a backup, or remove that if you have made it"
    )]
    Foreign(String),
    /// A value cannot be moved.
    #[error(
        "table {table} has {problem} in column {column}; correct it in the present database, then repeat the command"
    )]
    Value {
        /// Which.
        table: String,
        /// Which.
        column: String,
        /// The rule that it breaks.
        problem: &'static str,
    },
    /// The rows that were written differ from those that were read.
    #[error("table {0} differs after it was copied; nothing was kept")]
    Differs(String),
}

/// A table that was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Its name.
    pub table: String,
    /// Number of its rows.
    pub rows: u64,
    /// Digest of its rows, equal on both sides.
    pub digest: String,
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Null(Holds),
    Text(String),
    Integer(i64),
    Real(f64),
    Bytes(Vec<u8>),
}

fn sql(action: &'static str) -> impl FnOnce(sqlx::Error) -> TransferError {
    move |source| TransferError::Sql { action, source }
}

/// Copies everything from `from`, which no server may use meanwhile, to the empty database `to`, and compares both.
///
/// # Errors
/// See [`TransferError`].
pub async fn transfer(
    from: &Backend,
    to: &Backend,
    mut copied: impl FnMut(&Copied),
) -> Result<Vec<Copied>, TransferError> {
    if from.kind() == to.kind() {
        return Err(TransferError::SameKind(from.kind()));
    }
    // Of this release, and as it should be.
    Db::join(from.clone()).await?.close().await;
    refuse_used(to).await?;
    Db::open(to.clone()).await?.close().await;
    let mut source = connect(from).await?;
    let mut target = connect(to).await?;
    run(&mut source, begin(from), "reading the database").await?;
    if let Backend::Sqlite(_) = from {
        refuse_foreign(&mut source).await?;
    }
    if let Backend::Sqlite(_) = to {
        // Checked as a whole at the end: the order of tables is free then.
        run(
            &mut target,
            "PRAGMA foreign_keys = OFF",
            "opening the target",
        )
        .await?;
    }
    run(&mut target, "BEGIN", "opening the target").await?;
    let sqlite = match from {
        Backend::Sqlite(_) => &mut source,
        Backend::Postgres(_) => &mut target,
    };
    let tables = read_tables(sqlite).await?;
    let keys = match to {
        Backend::Postgres(_) => drop_foreign_keys(&mut target).await?,
        Backend::Sqlite(_) => Vec::new(),
    };
    let mut done = Vec::new();
    for table in &tables {
        let batch = check_values(table, &mut source, from).await?;
        let one = copy_table(batch, table, (&mut source, from), (&mut target, to)).await?;
        copied(&one);
        done.push(one);
    }
    for statement in keys {
        run(&mut target, &statement, "restoring the foreign keys").await?;
    }
    if let Backend::Sqlite(_) = to {
        let broken: i64 = sqlx::query_scalar(BROKEN_KEYS)
            .fetch_one(&mut target)
            .await
            .map_err(sql("checking the foreign keys"))?;
        if broken > 0 {
            return Err(TransferError::Differs("of a foreign key".to_owned()));
        }
    }
    run(&mut target, "COMMIT", "saving the target").await?;
    let _ = source.close().await;
    let closed = target.close().await;
    closed.map_err(sql("saving the target"))?;
    Ok(done)
}

/// Digests of all tables of a database, as [`transfer`] tells them.
///
/// # Errors
/// When it cannot be read. `like`: a SQLite database of the same release, whose columns are read.
pub async fn digests(of: &Backend, like: &Path) -> Result<Vec<Copied>, TransferError> {
    let mut schema = connect(&Backend::Sqlite(like.to_owned())).await?;
    let tables = read_tables(&mut schema).await?;
    let _ = schema.close().await;
    let mut connection = connect(of).await?;
    let mut all = Vec::new();
    for table in &tables {
        let mut digest = TableDigest::default();
        let mut reader = Pages::new(table, of, BATCH);
        while let Some(rows) = reader.next(&mut connection).await? {
            digest.add(&rows);
        }
        all.push(digest.of(table));
    }
    let _ = connection.close().await;
    Ok(all)
}

/// Refuses a database that an installation uses. One with tables and nothing in them is what a failed transfer has left.
async fn refuse_used(to: &Backend) -> Result<(), TransferError> {
    let is_new = match to {
        Backend::Sqlite(path) => std::fs::metadata(path).map_or(true, |file| file.len() == 0),
        Backend::Postgres(url) => Db::has_no_tables(url).await?,
    };
    if is_new {
        return Ok(());
    }
    Db::join(to.clone()).await?.close().await;
    let mut connection = connect(to).await?;
    let own: i64 = sqlx::query_scalar(COUNT_OWN)
        .fetch_one(&mut connection)
        .await
        .map_err(sql("reading the target"))?;
    let _ = connection.close().await;
    match own {
        0 => Ok(()),
        _ => Err(TransferError::NotEmpty(to.place())),
    }
}

async fn connect(backend: &Backend) -> Result<AnyConnection, TransferError> {
    sqlx::any::install_default_drivers();
    let url = match backend {
        Backend::Sqlite(path) => crate::db::sqlite_url(path, "rw"),
        Backend::Postgres(url) => url.clone(),
    };
    let connected = AnyConnection::connect(&url).await;
    connected.map_err(sql("connecting to the database"))
}

fn begin(backend: &Backend) -> &'static str {
    match backend {
        Backend::Sqlite(_) => "BEGIN",
        Backend::Postgres(_) => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    }
}

async fn run(
    connection: &mut AnyConnection,
    statement: &str,
    action: &'static str,
) -> Result<(), TransferError> {
    let run = sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(connection);
    run.await.map(drop).map_err(sql(action))
}

/// Drops all foreign keys; tells the statements that bring them back, which check them.
async fn drop_foreign_keys(target: &mut AnyConnection) -> Result<Vec<String>, TransferError> {
    let keys: Vec<(String, String, String)> = sqlx::query_as(FOREIGN_KEYS)
        .fetch_all(&mut *target)
        .await
        .map_err(sql("listing the foreign keys"))?;
    let mut back = Vec::new();
    for (table, name, definition) in keys {
        let drop = format!("ALTER TABLE {table} DROP CONSTRAINT {name}");
        run(target, &drop, "copying").await?;
        back.push(format!(
            "ALTER TABLE {table} ADD CONSTRAINT {name} {definition}"
        ));
    }
    Ok(back)
}

async fn copy_table(
    batch: usize,
    table: &Table,
    (source, from): (&mut AnyConnection, &Backend),
    (target, to): (&mut AnyConnection, &Backend),
) -> Result<Copied, TransferError> {
    // Rows of migrations are in the source, too.
    run(
        target,
        &format!("DELETE FROM {}", table.name),
        "emptying the target",
    )
    .await?;
    let mut read = TableDigest::default();
    let mut reader = Pages::new(table, from, batch);
    while let Some(rows) = reader.next(source).await? {
        read.add(&rows);
        insert(table, target, rows).await?;
    }
    let mut written = TableDigest::default();
    let mut reader = Pages::new(table, to, batch);
    while let Some(rows) = reader.next(target).await? {
        written.add(&rows);
    }
    let (read, written) = (read.of(table), written.of(table));
    match read == written {
        true => Ok(read),
        false => Err(TransferError::Differs(table.name.clone())),
    }
}

async fn insert(
    table: &Table,
    target: &mut AnyConnection,
    rows: Vec<Vec<Value>>,
) -> Result<(), TransferError> {
    let names: Vec<&str> = table
        .columns
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    let width = names.len();
    let row = |number: usize| {
        let values = (1..=width).map(|at| format!("${}", number * width + at));
        format!("({})", values.collect::<Vec<_>>().join(", "))
    };
    let values: Vec<String> = (0..rows.len()).map(row).collect();
    let statement = format!(
        "INSERT INTO {} ({}) VALUES {}",
        table.name,
        names.join(", "),
        values.join(", ")
    );
    // Not prepared for the batches to come: sqlx binds a missing DOUBLE PRECISION with another type than a value.
    let mut query = sqlx::query(AssertSqlSafe(statement)).persistent(false);
    for value in rows.into_iter().flatten() {
        query = match value {
            Value::Null(Holds::Text) => query.bind(None::<String>),
            Value::Null(Holds::Integer) => query.bind(None::<i64>),
            Value::Null(Holds::Real) => query.bind(None::<f64>),
            Value::Null(Holds::Bytes) => query.bind(None::<Vec<u8>>),
            Value::Text(text) => query.bind(text),
            Value::Integer(number) => query.bind(number),
            Value::Real(number) => query.bind(number),
            Value::Bytes(bytes) => query.bind(bytes),
        };
    }
    let inserted = query.execute(target).await;
    inserted.map(drop).map_err(|source| TransferError::Table {
        table: table.name.clone(),
        action: "written",
        source,
    })
}

/// Reads a table in the order of its primary key, a page at a time.
struct Pages<'a> {
    table: &'a Table,
    first: String,
    next: String,
    after: Option<Vec<Value>>,
    batch: usize,
    ended: bool,
}

impl<'a> Pages<'a> {
    fn new(table: &'a Table, backend: &Backend, batch: usize) -> Self {
        // Both order text by its bytes.
        let collate = match backend {
            Backend::Sqlite(_) => "",
            Backend::Postgres(_) => " COLLATE \"C\"",
        };
        let key: Vec<String> = table
            .key
            .iter()
            .filter_map(|&at| table.columns.get(at))
            .map(|(name, holds)| match holds {
                Holds::Text => format!("{name}{collate}"),
                _ => name.clone(),
            })
            .collect();
        let names: Vec<&str> = table
            .columns
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        let marks: Vec<String> = (1..=key.len()).map(|at| format!("${at}")).collect();
        let (names, key, marks) = (names.join(", "), key.join(", "), marks.join(", "));
        let name = &table.name;
        Self {
            table,
            first: format!("SELECT {names} FROM {name} ORDER BY {key} LIMIT {batch}"),
            next: format!(
                "SELECT {names} FROM {name} WHERE ({key}) > ({marks}) ORDER BY {key} LIMIT {batch}"
            ),
            after: None,
            batch,
            ended: false,
        }
    }

    async fn next(
        &mut self,
        connection: &mut AnyConnection,
    ) -> Result<Option<Vec<Vec<Value>>>, TransferError> {
        if self.ended {
            return Ok(None);
        }
        let failed = |source| TransferError::Table {
            table: self.table.name.clone(),
            action: "read",
            source,
        };
        let statement = match self.after {
            None => self.first.clone(),
            Some(_) => self.next.clone(),
        };
        let mut query = sqlx::query(AssertSqlSafe(statement));
        for value in self.after.take().into_iter().flatten() {
            query = match value {
                Value::Integer(number) => query.bind(number),
                Value::Text(text) => query.bind(text),
                // No primary key has others.
                _ => query,
            };
        }
        let rows = query.fetch_all(connection).await.map_err(failed)?;
        let read: Result<Vec<Vec<Value>>, _> =
            rows.iter().map(|row| values(self.table, row)).collect();
        let rows = read.map_err(failed)?;
        self.ended = rows.len() < self.batch;
        self.after = rows.last().map(|row| {
            let key = self.table.key.iter().filter_map(|&at| row.get(at));
            key.cloned().collect()
        });
        Ok((!rows.is_empty()).then_some(rows))
    }
}

fn values(table: &Table, row: &AnyRow) -> Result<Vec<Value>, sqlx::Error> {
    let value = |(at, (name, holds)): (usize, &(String, Holds))| {
        let value = match holds {
            _ if RESET.contains(&(&*table.name, &**name)) => Some(Value::Integer(0)),
            Holds::Text => row.try_get::<Option<String>, _>(at)?.map(Value::Text),
            Holds::Integer => row.try_get::<Option<i64>, _>(at)?.map(Value::Integer),
            Holds::Real => row.try_get::<Option<f64>, _>(at)?.map(Value::Real),
            Holds::Bytes => row.try_get::<Option<Vec<u8>>, _>(at)?.map(Value::Bytes),
        };
        Ok(value.unwrap_or(Value::Null(*holds)))
    };
    table.columns.iter().enumerate().map(value).collect()
}

#[derive(Default)]
struct TableDigest {
    hash: Sha256,
    rows: u64,
}

impl TableDigest {
    fn add(&mut self, rows: &[Vec<Value>]) {
        self.rows += rows.len() as u64;
        for value in rows.iter().flatten() {
            match value {
                Value::Null(_) => self.hash.update(b"n"),
                Value::Text(text) => self.field(b't', text.as_bytes()),
                Value::Integer(number) => self.field(b'i', &number.to_be_bytes()),
                Value::Real(number) => self.field(b'r', &number.to_be_bytes()),
                Value::Bytes(bytes) => self.field(b'b', bytes),
            }
        }
    }

    fn field(&mut self, kind: u8, bytes: &[u8]) {
        self.hash.update([kind]);
        self.hash.update((bytes.len() as u64).to_be_bytes());
        self.hash.update(bytes);
    }

    fn of(self, table: &Table) -> Copied {
        Copied {
            table: table.name.clone(),
            rows: self.rows,
            digest: hex::encode(self.hash.finalize()),
        }
    }
}
