//! The lease of the leader. PostgreSQL only: on SQLite a file lock decides.
//!
//! The server's clock alone decides when a lease has expired, so that replicas whose clocks differ
//! never hold it both.

use std::time::Duration;

use crate::connection::Connection;
use crate::db::ObservedTx;
use crate::error::DbError;
use crate::ids::Epoch;
use crate::statement::{execute, scalar_optional};

/// Takes the lease if it is free, expired, or already this holder's; each taking raises the epoch.
pub(crate) const ACQUIRE: &str = "INSERT INTO leases (name, holder, epoch, expires_at) \
    VALUES ($1, $2, 1, CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) + $3) \
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, epoch = leases.epoch + 1, expires_at = excluded.expires_at \
    WHERE leases.holder = excluded.holder OR leases.expires_at <= CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) \
    RETURNING epoch";
/// Prolongs a lease that is still ours.
pub(crate) const RENEW: &str = "UPDATE leases SET expires_at = CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) + $4 \
    WHERE name = $1 AND holder = $2 AND epoch = $3";
/// Gives it back, so that the next holder need not wait.
pub(crate) const RELEASE: &str =
    "UPDATE leases SET expires_at = 0, holder = '' WHERE name = $1 AND holder = $2 AND epoch = $3";
/// Who holds it now.
pub(crate) const HOLDER: &str = "SELECT holder FROM leases \
    WHERE name = $1 AND expires_at > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";

const NAME: &str = "reconcilers";

fn millis(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)
}

/// Tries to take the lease for `ttl`.
pub async fn try_acquire(
    tx: &mut ObservedTx,
    holder: &str,
    ttl: Duration,
) -> Result<Option<Epoch>, DbError> {
    scalar_optional!(tx, ACQUIRE, NAME, holder, millis(ttl))
}

/// Prolongs a lease; false when it is no longer ours.
pub async fn renew(
    tx: &mut ObservedTx,
    holder: &str,
    epoch: Epoch,
    ttl: Duration,
) -> Result<bool, DbError> {
    let renewed = execute!(tx, RENEW, NAME, holder, epoch, millis(ttl))?;
    Ok(renewed > 0)
}

/// Gives a lease back; idempotent.
pub async fn release(tx: &mut ObservedTx, holder: &str, epoch: Epoch) -> Result<(), DbError> {
    execute!(tx, RELEASE, NAME, holder, epoch)?;
    Ok(())
}

/// Who holds the lease now; `None` while nobody does.
pub async fn holder(connection: &mut Connection) -> Result<Option<String>, DbError> {
    scalar_optional!(connection, HOLDER, NAME)
}
