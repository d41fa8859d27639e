//! Tests of a PostgreSQL server: it takes changes, has our tables, and keeps a session for each connection.

use std::time::Duration;

use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};
use tokio::time::timeout;

use crate::error::OpenError;
use crate::ids::Uid;
use crate::link::Refusal;
use crate::meta;

/// Longest wait for an answer, and of a second connection for a server: a pooler may have one for each client only.
const LIMIT: Duration = Duration::from_secs(5);

const STANDBY: &str = "the database server is a standby in recovery, which takes no changes";
const READ_ONLY: &str = "the database is read-only (default_transaction_read_only)";
const EMPTY: &str = "the tables of the service are missing from the database";

/// Finds out why changes would fail, if they would.
pub(crate) async fn read_refusal(
    connection: &mut AnyConnection,
) -> Result<Option<Refusal>, sqlx::Error> {
    let state = text(connection, meta::STATE.to_owned()).await?;
    Ok(match &*state {
        "standby" => Some(Refusal::Changes(STANDBY)),
        "read-only" => Some(Refusal::Changes(READ_ONLY)),
        "empty" => Some(Refusal::Everything(EMPTY)),
        _ => None,
    })
}

/// Returns true when a server that takes changes has no tables of the service.
pub(crate) async fn has_no_tables(url: &str) -> Result<bool, OpenError> {
    let mut connection = connect(url).await?;
    let state = read_state(&mut connection).await?;
    let _ = connection.close().await;
    Ok(matches!(state, Some(Refusal::Everything(_))))
}

/// Refuses a server that takes no changes, and a pooler that gives the statements of one session to several servers.
pub(crate) async fn check(url: &str, place: &str) -> Result<(), OpenError> {
    let mut connection = connect(url).await?;
    let unusable = |detail: &str| OpenError::Unusable {
        place: place.to_owned(),
        detail: detail.to_owned(),
    };
    let state = read_state(&mut connection).await?;
    if let Some(Refusal::Changes(why)) = state {
        let remedy = "name the primary server, or make it writable";
        return Err(unusable(&format!("{why}; {remedy}")));
    }
    let keeps = timeout(LIMIT, keeps_sessions(&mut connection, url)).await;
    let _ = connection.close().await;
    match keeps {
        Ok(Ok(false)) => Err(unusable(
            "a pooler such as PgBouncer gives the statements of one connection to several servers, so that locks, settings and \
             notifications of sessions are lost; set its pool_mode to session, or name the server's own address",
        )),
        Ok(Ok(true)) | Err(_) => Ok(()),
        Ok(Err(error)) => Err(error),
    }
}

/// The same within a limit of time.
async fn read_state(connection: &mut AnyConnection) -> Result<Option<Refusal>, OpenError> {
    let asked = timeout(LIMIT, read_refusal(connection)).await;
    let asked = asked.unwrap_or(Err(sqlx::Error::PoolTimedOut));
    asked.map_err(OpenError::Prepare)
}

async fn connect(url: &str) -> Result<AnyConnection, OpenError> {
    let connecting = timeout(crate::db::ACQUIRE_TIMEOUT, AnyConnection::connect(url));
    let connection = connecting.await.unwrap_or(Err(sqlx::Error::PoolTimedOut));
    connection.map_err(OpenError::Unreachable)
}

/// Marks the session of one connection, and looks for the mark from both: where sessions are shared, the second one gets the
/// server that the first one has just given back.
async fn keeps_sessions(first: &mut AnyConnection, url: &str) -> Result<bool, OpenError> {
    let mark = Uid::random().to_string();
    // No pooler, but a limit of connections, refuses a second one: that says nothing about sessions.
    let Ok(mut second) = connect(url).await else {
        return Ok(true);
    };
    let seen = async {
        text(first, format!("{}'{mark}', false)", meta::MARK)).await?;
        // In a transaction, so that it keeps its server until the first has asked again.
        sqlx::raw_sql("BEGIN").execute(&mut second).await?;
        let by_second = text(&mut second, meta::MARKED.to_owned()).await?;
        let by_first = text(first, meta::MARKED.to_owned()).await?;
        Ok::<_, sqlx::Error>((by_first, by_second))
    };
    let seen = seen.await;
    let _ = second.close().await;
    let (by_first, by_second) = seen.map_err(OpenError::Prepare)?;
    Ok(by_first == mark && by_second != mark)
}

/// The one text that a statement answers. Nothing is prepared: a pooler may not know what was.
async fn text(connection: &mut AnyConnection, sql: String) -> Result<String, sqlx::Error> {
    use sqlx::Row;
    let row = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_one(connection);
    row.await?.try_get(0)
}
