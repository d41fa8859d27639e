//! The rows of replicas and places, as a replica uses them.

use std::time::Duration;

use tokio::sync::broadcast;

use super::model::{Notice, Owner, PlaceKey, Replica};
use super::{CHANNEL, query};
use crate::config::flags::AgentFlags;
use crate::connection::Connection;
use crate::db::{Backend, Db};
use crate::error::DbError;
use crate::meta;
use crate::statement::{execute, fetch_all, fetch_optional, scalar_optional};

/// A replica that has not been seen for this time counts as dead.
const DEAD: Duration = Duration::from_secs(15);
/// Its rows are removed after this time.
const FORGOTTEN: Duration = Duration::from_secs(60);
/// The guard row whose count is the last number.
const GUARD: &str = "replicas";

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// The rows of replicas and places. Each function is one transaction; clones share the database.
#[derive(Debug, Clone)]
pub struct ReplicaTable(Db);

impl ReplicaTable {
    /// The table of a database; `None` on SQLite, where one process serves.
    pub fn of(db: &Db) -> Option<Self> {
        matches!(db.backend(), Backend::Postgres(_)).then(|| Self(db.clone()))
    }

    /// Hears notices of other replicas and of this one.
    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.0.notices()
    }

    /// Records a replica that other replicas reach at `address`, under a number that none had before; an empty one when they do not.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn join(
        &self,
        id: &str,
        address: &str,
        name: &str,
        flags: &AgentFlags,
    ) -> Result<Replica, DbError> {
        let mut replica = Replica {
            id: id.to_owned(),
            number: 0,
            address: address.to_owned(),
            name: name.to_owned(),
            flags: flags.to_text(),
        };
        let mut tx = self.0.begin_observed().await?;
        replica.number = meta::take_guard(&mut tx, GUARD).await?;
        execute!(
            &mut tx,
            query::JOIN,
            &replica.id,
            replica.number,
            &replica.address,
            &replica.name,
            &replica.flags
        )?;
        tx.commit().await?;
        Ok(replica)
    }

    /// Records that a replica lives, and forgets those that are dead for long. Returns true when its own row had been removed: its
    /// places may be another's.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn beat(&self, replica: &Replica) -> Result<bool, DbError> {
        let Replica {
            id,
            number,
            address,
            name,
            flags,
        } = replica;
        let mut tx = self.0.begin_observed().await?;
        let was_removed = execute!(&mut tx, query::BEAT, id)? == 0;
        if was_removed {
            execute!(&mut tx, query::REJOIN, id, *number, address, name, flags)?;
        }
        if execute!(&mut tx, query::SWEEP, millis(FORGOTTEN))? > 0 {
            execute!(&mut tx, query::SWEEP_PLACES)?;
        }
        tx.commit().await?;
        Ok(was_removed)
    }

    /// The replicas that live, by their numbers.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn live(&self) -> Result<Vec<Replica>, DbError> {
        let mut connection = self.0.read().await?;
        Self::live_on(&mut connection).await
    }

    /// The same on a connection that the caller has.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn live_on(connection: &mut Connection) -> Result<Vec<Replica>, DbError> {
        fetch_all!(connection, query::LIVE, millis(DEAD))
    }

    /// Forgets a replica and its places.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn leave(&self, id: &str) -> Result<(), DbError> {
        let mut tx = self.0.begin_observed().await?;
        execute!(&mut tx, query::LEAVE_PLACES, id)?;
        execute!(&mut tx, query::LEAVE, id)?;
        tx.commit().await
    }

    /// Takes a place that no other living replica has, or that `from` had, which cannot be reached. Returns the epoch; `None` when
    /// another replica has it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn claim(
        &self,
        place: &PlaceKey,
        id: &str,
        from: Option<&Owner>,
    ) -> Result<Option<i64>, DbError> {
        let (other, epoch) = from.map_or(("", 0), |from| (&*from.replica.id, from.epoch));
        let mut tx = self.0.begin_observed().await?;
        let claimed: Option<i64> = scalar_optional!(
            &mut tx,
            query::CLAIM,
            &place.user,
            &place.service,
            id,
            other,
            epoch,
            millis(DEAD)
        )?;
        tx.commit().await?;
        Ok(claimed)
    }

    /// The living replica that has a place.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn owner(&self, place: &PlaceKey) -> Result<Option<Owner>, DbError> {
        let mut connection = self.0.read().await?;
        fetch_optional!(
            &mut connection,
            query::OWNER,
            &place.user,
            &place.service,
            millis(DEAD)
        )
    }

    /// The epoch at which a replica has a place; `None` when it has it no longer.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn epoch(&self, place: &PlaceKey, id: &str) -> Result<Option<i64>, DbError> {
        let mut connection = self.0.read().await?;
        scalar_optional!(
            &mut connection,
            query::EPOCH,
            &place.user,
            &place.service,
            id
        )
    }

    /// Gives a place back, unless it was taken again since the epoch.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn release(&self, place: &PlaceKey, id: &str, epoch: i64) -> Result<(), DbError> {
        let mut tx = self.0.begin_observed().await?;
        execute!(
            &mut tx,
            query::RELEASE,
            &place.user,
            &place.service,
            id,
            epoch
        )?;
        tx.commit().await
    }

    /// Tells all replicas that executors of a place have come or gone.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn tell(&self, place: &PlaceKey, id: &str) -> Result<(), DbError> {
        let mut tx = self.0.begin_observed().await?;
        let text = Notice::text(id, place);
        let _: Option<String> = scalar_optional!(&mut tx, query::TELL, CHANNEL, text)?;
        tx.commit().await
    }
}
