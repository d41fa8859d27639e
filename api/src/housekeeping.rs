//! What has to be forgotten now and then: sessions that are too old, and old events.

use std::sync::Arc;
use std::time::Duration;

use schema::clock::SharedClock;
use schema::db::Db;
use schema::error::DbError;
use schema::secrets::MasterKey;
use schema::{event, session};
use tokio_util::sync::CancellationToken;

use crate::auth::session::VALIDITY;
use crate::error::chain;
use crate::settings;

/// Time between two rounds.
const INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Forgets what is too old, every hour until `shutdown`. Several replicas may do so at once.
pub async fn run(
    db: Db,
    clock: SharedClock,
    master_key: Arc<MasterKey>,
    shutdown: CancellationToken,
) {
    loop {
        if let Err(error) = round(&db, &clock, &master_key).await {
            let error = chain(&error);
            tracing::warn!(error, "old sessions and events could not be removed");
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

async fn round(db: &Db, clock: &SharedClock, master_key: &MasterKey) -> Result<(), DbError> {
    // No key that matters here depends on how the adapter runs agents.
    let (config, _) = settings::read(db, master_key, false).await?;
    let now = clock.now();
    let mut tx = db.begin().await?;
    let sessions = session::prune(&mut tx, now.minus(VALIDITY).as_secs()).await?;
    let events = match config.events_retention() {
        Some(retention) => event::prune(&mut tx, now.minus(retention)).await?,
        None => 0,
    };
    tx.commit().await?;
    if sessions + events > 0 {
        tracing::info!(sessions, events, "removed old sessions and events");
    }
    Ok(())
}
