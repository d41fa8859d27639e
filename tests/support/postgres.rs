//! A database of its own on the test PostgreSQL.

use sqlx::{AssertSqlSafe, Connection};

/// A database that is dropped at the end.
pub struct Database {
    server: String,
    name: String,
}

impl Database {
    pub async fn create() -> Self {
        let server = std::env::var("AGENTYARD_TEST_POSTGRES_URL").expect(
            "no PostgreSQL for this test: start it with `make services-up` and run the tests with `make run-tests FILTER=…`",
        );
        let name = format!("e2e_{}", schema::ids::Uid::random());
        let database = Self { server, name };
        let created = database.ask("CREATE DATABASE", "").await;
        created.unwrap();
        database
    }

    /// The address, as `--database-url` takes it.
    pub fn url(&self) -> String {
        let mut url = url::Url::parse(&self.server).unwrap();
        url.set_path(&self.name);
        url.into()
    }

    /// Ends the connections on which servers listen for each other's changes; gives how many.
    pub async fn end_listeners(&self) -> i64 {
        let mut server = sqlx::PgConnection::connect(&self.server).await.unwrap();
        let (ended,): (i64,) = sqlx::query_as(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE datname = $1 AND query ILIKE 'LISTEN%'",
        )
        .bind(&self.name)
        .fetch_one(&mut server)
        .await
        .unwrap();
        server.close().await.unwrap();
        ended
    }

    /// Removes it, whoever is connected.
    pub async fn drop(self) {
        self.ask("DROP DATABASE", "WITH (FORCE)").await.unwrap();
    }

    async fn ask(&self, verb: &str, suffix: &str) -> Result<(), sqlx::Error> {
        let mut server = sqlx::PgConnection::connect(&self.server).await?;
        let text = format!("{verb} {} {suffix}", self.name);
        sqlx::query(AssertSqlSafe(text))
            .execute(&mut server)
            .await?;
        server.close().await
    }
}
