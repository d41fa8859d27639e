//! Changes of many users in one transaction, each as if it were made by itself. Changes of single users are reconciled before them.

use uuid::Uuid;

use super::query::{self, record_disabling, write_disabled};
use crate::config::history::SavedBy;
use crate::container::{self, Desired};
use crate::db::Tx;
use crate::error::DbError;
use crate::ids::{Generation, Kind, Uid};
use crate::{group, meta, object};

/// A change of one of many users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkChange {
    /// The container is to run, without debug mode.
    Start,
    /// The container is not to run.
    Stop,
    /// The container is recreated once, and is to run.
    Restart,
    /// The user may not sign in, and the container does not run.
    Disable,
    /// The user may sign in.
    Enable,
    /// The user is removed.
    Delete,
}

/// Orders this transaction with others that change many users, before any of them is read.
pub async fn lock_for_bulk(tx: &mut Tx) -> Result<(), DbError> {
    group::lock(tx).await?;
    meta::take_guard(tx, "bulk").await?;
    Ok(())
}

/// Changes one of many users, after [`lock_for_bulk`]. Returns the object that follows from it, and its generation.
pub async fn change_in_bulk(
    tx: &mut Tx,
    uid: &Uid,
    change: BulkChange,
    by: SavedBy<'_>,
) -> Result<(Kind, Generation), DbError> {
    if change == BulkChange::Delete {
        return Ok((Kind::User, query::delete(tx, uid, by.at).await?));
    }
    let generation = object::bump_in_bulk(tx, Kind::Container, uid).await?;
    match change {
        BulkChange::Start => {
            container::query::write_desired(tx, uid, Desired::Running, false).await?;
        }
        BulkChange::Stop => {
            container::query::write_desired(tx, uid, Desired::Stopped, false).await?;
            container::record_stop(tx, uid, by).await?;
        }
        BulkChange::Restart => {
            let token = Uuid::new_v4().to_string();
            container::query::write_restart(tx, uid, &token, false).await?;
        }
        BulkChange::Disable | BulkChange::Enable => {
            write_disabled(tx, uid, change == BulkChange::Disable).await?;
            record_disabling(tx, uid, by).await?;
        }
        BulkChange::Delete => {}
    }
    Ok((Kind::Container, generation))
}
