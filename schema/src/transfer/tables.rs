//! Tables that are copied, and what a source may not have.
//!
//! Names of tables and columns become statements for both databases, so those of a SQLite file are compared with what the migrations of
//! this release make before they are used: a file may come from a backup that was tampered with.

use std::collections::BTreeSet;

use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};

use super::{BATCH, TransferError, sql};
use crate::db::{Backend, MIGRATOR};
use crate::error::OpenError;

/// Tables that are not copied.
const OWN: [&str; 4] = ["_sqlx_migrations", "leases", "replicas", "executor_places"];
/// Longest text, or sequence of bytes, that is moved.
const LONGEST_VALUE: u64 = 64 << 20;
/// Of a table with longer values few rows are in memory at once.
const LONG_VALUE: u64 = 1 << 20;
/// That number of rows.
const FEW: usize = 2;

/// Tables of a SQLite file.
const TABLES: &str = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name";
/// Everything in a SQLite file that is read or runs by itself: kind and name, and whether it is stored here.
const OBJECTS: &str = "SELECT type, name, CASE WHEN COALESCE(rootpage, 0) > 0 THEN 1 ELSE 0 END FROM sqlite_master \
    WHERE type <> 'index' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY 1, 2";

/// Type of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Text,
    Integer,
    Real,
    Bytes,
}

#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<(String, Holds)>,
    /// Positions of the columns of the primary key, in its order.
    pub(super) key: Vec<usize>,
}

/// Tables that are copied, as a SQLite database has them.
pub(super) async fn read_tables(sqlite: &mut AnyConnection) -> Result<Vec<Table>, TransferError> {
    let names: Vec<String> = sqlx::query_scalar(TABLES)
        .fetch_all(&mut *sqlite)
        .await
        .map_err(sql("listing the tables"))?;
    let mut tables = Vec::new();
    for name in names
        .into_iter()
        .filter(|name| !OWN.contains(&name.as_str()))
    {
        let columns =
            format!("SELECT name, type, pk FROM pragma_table_info('{name}') ORDER BY cid");
        let rows: Vec<(String, String, i64)> = sqlx::query_as(AssertSqlSafe(columns))
            .fetch_all(&mut *sqlite)
            .await
            .map_err(sql("listing the columns"))?;
        let mut key: Vec<(i64, usize)> = rows
            .iter()
            .enumerate()
            .filter(|(_, (_, _, pk))| *pk > 0)
            .map(|(at, (_, _, pk))| (*pk, at))
            .collect();
        key.sort_unstable();
        let holds = |declared: &str| match declared {
            "BIGINT" => Holds::Integer,
            "DOUBLE PRECISION" => Holds::Real,
            "BYTEA" => Holds::Bytes,
            _ => Holds::Text,
        };
        tables.push(Table {
            name,
            columns: rows
                .iter()
                .map(|(name, declared, _)| (name.clone(), holds(declared)))
                .collect(),
            key: key.into_iter().map(|(_, at)| at).collect(),
        });
    }
    Ok(tables)
}

/// Kind, name and place of an object, and its columns: name, type, place in the key, hidden.
type Object = (String, String, i64, Vec<(String, String, i64, i64)>);

async fn list_objects(sqlite: &mut AnyConnection) -> Result<BTreeSet<Object>, TransferError> {
    let objects: Vec<(String, String, i64)> = sqlx::query_as(OBJECTS)
        .fetch_all(&mut *sqlite)
        .await
        .map_err(sql("listing the tables"))?;
    let mut all = BTreeSet::new();
    for (kind, name, stored) in objects {
        let columns = sqlx::query_as(
            "SELECT name, type, pk, hidden FROM pragma_table_xinfo($1) ORDER BY cid",
        )
        .bind(&name)
        .fetch_all(&mut *sqlite)
        .await
        .map_err(sql("listing the columns"))?;
        all.insert((kind, name, stored, columns));
    }
    Ok(all)
}

/// Refuses a SQLite database with other tables, columns, views or triggers than this release makes.
pub(super) async fn refuse_foreign(sqlite: &mut AnyConnection) -> Result<(), TransferError> {
    let mut made = AnyConnection::connect("sqlite::memory:")
        .await
        .map_err(sql("preparing the comparison"))?;
    MIGRATOR
        .run(&mut made)
        .await
        .map_err(|error| TransferError::Open(OpenError::Migrate(error)))?;
    let expected = list_objects(&mut made).await?;
    let _ = made.close().await;
    let found = list_objects(sqlite).await?;
    let odd = found.symmetric_difference(&expected).next();
    match odd {
        None => Ok(()),
        Some((kind, name, ..)) => {
            let shown: String = name
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .take(100)
                .collect();
            Err(TransferError::Foreign(format!(
                "another {kind} {shown}, or other columns in it"
            )))
        }
    }
}

/// Refuses values that the other database cannot hold, or that would not fit into memory; returns the number of rows to be read at once.
pub(super) async fn check_values(
    table: &Table,
    source: &mut AnyConnection,
    from: &Backend,
) -> Result<usize, TransferError> {
    let mut batch = BATCH;
    for (column, holds) in &table.columns {
        let failed = |source| TransferError::Table {
            table: table.name.clone(),
            action: "read",
            source,
        };
        let exists = async |source: &mut AnyConnection, rule: String| {
            let name = &table.name;
            let statement = format!(
                "SELECT count(*) FROM (SELECT 1 FROM {name} WHERE {rule} LIMIT 1) AS found"
            );
            let found: Result<i64, _> = sqlx::query_scalar(AssertSqlSafe(statement))
                .fetch_one(source)
                .await;
            found.map(|found| found > 0).map_err(failed)
        };
        let refused = |problem| TransferError::Value {
            table: table.name.clone(),
            column: column.clone(),
            problem,
        };
        let length = match (holds, from) {
            (Holds::Text | Holds::Bytes, Backend::Sqlite(_)) => {
                format!("length(CAST({column} AS BLOB))")
            }
            (Holds::Text | Holds::Bytes, Backend::Postgres(_)) => format!("octet_length({column})"),
            (Holds::Integer | Holds::Real, _) => continue,
        };
        if exists(source, format!("{length} > {LONG_VALUE}")).await? {
            batch = FEW;
            if exists(source, format!("{length} > {LONGEST_VALUE}")).await? {
                return Err(refused("a value of more than 64 MiB"));
            }
        }
        let is_text = *holds == Holds::Text && matches!(from, Backend::Sqlite(_));
        if is_text && exists(source, format!("instr({column}, char(0)) > 0")).await? {
            return Err(refused(
                "a text with a NUL character, which PostgreSQL does not hold,",
            ));
        }
    }
    Ok(batch)
}
