use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};

use super::tables::{check_values, read_tables, refuse_foreign};
use crate::db::{Backend, Db, sqlite_url};

/// A database of this release after these statements of a writer to its file.
async fn tampered(statements: &str) -> (tempfile::TempDir, Backend, AnyConnection) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agentyard.db");
    let backend = Backend::Sqlite(path.clone());
    Db::open(backend.clone()).await.unwrap().close().await;
    let mut connection = AnyConnection::connect(&sqlite_url(&path, "rw"))
        .await
        .unwrap();
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
        .execute(&mut connection)
        .await
        .unwrap();
    (directory, backend, connection)
}

#[tokio::test]
async fn source_with_other_tables_than_a_release_makes_is_refused() {
    let (_directory, _, mut own) = tampered("").await;
    refuse_foreign(&mut own).await.unwrap();
    for (statements, named) in [
        (
            "CREATE TABLE \"x; DROP TABLE users\" (a TEXT PRIMARY KEY)",
            "x; DROP",
        ),
        (
            "ALTER TABLE meta ADD COLUMN \"v) FROM meta; DROP TABLE users; --\" TEXT",
            "meta",
        ),
        (
            "ALTER TABLE meta ADD COLUMN g TEXT GENERATED ALWAYS AS (value) VIRTUAL",
            "meta",
        ),
        (
            "DROP TABLE guards; CREATE VIEW guards AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT 'x' AS name, n FROM c",
            "guards",
        ),
        (
            "CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM users; END",
            "trigger t",
        ),
        ("DROP TABLE events", "events"),
        ("CREATE VIRTUAL TABLE f USING fts5(a)", "f"),
    ] {
        let (_directory, _, mut connection) = tampered(statements).await;
        let refused = refuse_foreign(&mut connection).await.unwrap_err();
        assert!(
            refused.to_string().contains(named),
            "{statements}: {refused}"
        );
    }
}

#[tokio::test]
async fn value_that_cannot_be_moved_is_named() {
    for (statements, said) in [
        (
            "INSERT INTO meta (name, value) VALUES ('a', 'x' || char(0) || 'y')",
            "a NUL character",
        ),
        (
            "INSERT INTO meta (name, value) VALUES ('a', zeroblob(70000000))",
            "more than 64 MiB",
        ),
    ] {
        let (_directory, backend, mut connection) = tampered(statements).await;
        let tables = read_tables(&mut connection).await.unwrap();
        let meta = tables.iter().find(|table| table.name == "meta").unwrap();
        let refused = check_values(meta, &mut connection, &backend).await;
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains(said) && refused.contains("in column value"),
            "{refused}"
        );
    }
}
