//! Nullable columns hold a value or none, in turn, in one statement.

#![allow(clippy::unwrap_used, clippy::panic)]

use schema::container;
use schema::db::Backend;
use schema::transfer::{digests, transfer};
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};

use crate::support::{self, Yard, on_both_databases, user};

/// More than two batches, so that a prepared statement gets other values than those it was prepared with.
const ROWS: usize = 250;
/// Rows of a batch.
const BATCH: usize = 100;
/// Tables that are not moved.
const OWN: [&str; 4] = ["_sqlx_migrations", "leases", "replicas", "executor_places"];

/// Fills each table. The values of a row follow from its number, so that foreign keys fit; each nullable column is NULL in every second row,
/// and in the next batch in the others.
async fn fill(database: &str) {
    let mut connection = AnyConnection::connect(database).await.unwrap();
    let run = async |connection: &mut AnyConnection, statement: String| {
        let done = sqlx::raw_sql(AssertSqlSafe(statement.clone())).execute(connection);
        done.await
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
    };
    run(
        &mut connection,
        "PRAGMA foreign_keys = OFF; BEGIN".to_owned(),
    )
    .await;
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    for table in tables.iter().filter(|table| !OWN.contains(&table.as_str())) {
        let columns: Vec<(String, String, i64)> =
            sqlx::query_as("SELECT name, type, \"notnull\" FROM pragma_table_info($1)")
                .bind(table)
                .fetch_all(&mut connection)
                .await
                .unwrap();
        let names: Vec<&str> = columns.iter().map(|(name, ..)| name.as_str()).collect();
        let value = |row: usize, at: usize| {
            let (_, kind, is_required) = &columns[at];
            match kind.as_str() {
                _ if *is_required == 0 && (row + row / BATCH + at).is_multiple_of(2) => {
                    "NULL".to_owned()
                }
                "BIGINT" => (row + 1000).to_string(),
                "DOUBLE PRECISION" => format!("{row}.25"),
                "BYTEA" => format!("x'{row:08x}'"),
                "TEXT" => format!("'v{row}'"),
                other => panic!("{table}: {other}"),
            }
        };
        let row = |row| {
            let values: Vec<String> = (0..columns.len()).map(|at| value(row, at)).collect();
            format!("({})", values.join(", "))
        };
        let rows: Vec<String> = (0..ROWS).map(row).collect();
        let (names, rows) = (names.join(", "), rows.join(", "));
        run(&mut connection, format!("DELETE FROM {table}")).await;
        run(
            &mut connection,
            format!("INSERT INTO {table} ({names}) VALUES {rows}"),
        )
        .await;
    }
    run(&mut connection, "COMMIT".to_owned()).await;
    connection.close().await.unwrap();
}

on_both_databases!(limit_is_set_and_taken_back);

async fn limit_is_set_and_taken_back(yard: Yard) {
    let uid = user(&yard, "alice").await;
    for limit in [None, Some(0.5), None, Some(1.0)] {
        let mut tx = yard.db.begin().await.unwrap();
        container::set_limits(&mut tx, &uid, limit, None, None)
            .await
            .unwrap();
        let row = container::get(&mut tx, &uid).await.unwrap().unwrap();
        tx.commit().await.unwrap();
        assert_eq!(row.cpu_limit, limit);
    }
}

mod between_databases_on_postgres {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn nullable_columns_are_moved_whatever_they_hold() {
        let (source, between, target) = (
            support::sqlite().await,
            support::postgres().await,
            support::sqlite().await,
        );
        source.db.close().await;
        between.db.close().await;
        target.db.close().await;
        let Backend::Sqlite(first) = &source.backend else {
            panic!("{:?}", source.backend)
        };
        fill(&format!("sqlite:{}", first.display())).await;
        let before = digests(&source.backend, first).await.unwrap();
        assert!(before.len() > 30 && before.iter().all(|table| table.rows == ROWS as u64));
        transfer(&source.backend, &between.backend, |_| {})
            .await
            .unwrap();
        assert_eq!(digests(&between.backend, first).await.unwrap(), before);
        transfer(&between.backend, &target.backend, |_| {})
            .await
            .unwrap();
        assert_eq!(digests(&target.backend, first).await.unwrap(), before);
    }
}
