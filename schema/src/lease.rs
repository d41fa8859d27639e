//! The lease of the leader (PostgreSQL; on SQLite a file lock decides).

use std::time::Duration;

use crate::db::Tx;
use crate::error::DbError;
use crate::ids::{Epoch, Timestamp};
use crate::statement::statements;

statements! {
    /// Takes the lease if nobody has held it, or the holder let it expire; a takeover raises the epoch.
    ACQUIRE = "INSERT INTO leases (name, holder, epoch, expires_at) VALUES ($1, $2, 1, $3) \
               ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, epoch = leases.epoch + 1, expires_at = excluded.expires_at \
               WHERE leases.expires_at <= $4 RETURNING epoch";
    /// Prolongs a lease that is still ours.
    RENEW = "UPDATE leases SET expires_at = $4 WHERE name = $1 AND holder = $2 AND epoch = $3";
    /// Gives it back, so that the next holder need not wait.
    RELEASE = "UPDATE leases SET expires_at = 0 WHERE name = $1 AND holder = $2 AND epoch = $3";
}

const NAME: &str = "reconcilers";

/// Tries to take the lease for `ttl` from `now` on.
pub async fn try_acquire(
    tx: &mut Tx,
    holder: &str,
    ttl: Duration,
    now: Timestamp,
) -> Result<Option<Epoch>, DbError> {
    let row: Option<(i64,)> = sqlx::query_as(ACQUIRE)
        .bind(NAME)
        .bind(holder)
        .bind(now.plus(ttl).as_millis())
        .bind(now.as_millis())
        .fetch_optional(&mut **tx)
        .await?;
    Ok(row.map(|(epoch,)| Epoch(epoch)))
}

/// Prolongs a lease; false when it is no longer ours.
pub async fn renew(
    tx: &mut Tx,
    holder: &str,
    epoch: Epoch,
    ttl: Duration,
    now: Timestamp,
) -> Result<bool, DbError> {
    let result = sqlx::query(RENEW)
        .bind(NAME)
        .bind(holder)
        .bind(epoch.0)
        .bind(now.plus(ttl).as_millis())
        .execute(&mut **tx)
        .await?;
    Ok(result.rows_affected() > 0)
}

/// Gives a lease back; idempotent.
pub async fn release(tx: &mut Tx, holder: &str, epoch: Epoch) -> Result<(), DbError> {
    sqlx::query(RELEASE)
        .bind(NAME)
        .bind(holder)
        .bind(epoch.0)
        .execute(&mut **tx)
        .await?;
    Ok(())
}
