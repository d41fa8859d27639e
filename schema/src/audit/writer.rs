//! Transactions that cannot be committed without their entry.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::chain::ChainKey;
use super::model::{About, Author, Entry, Outcome};
use super::query;
use crate::api_token;
use crate::clock::SharedClock;
use crate::db::{Db, Tx};
use crate::error::DbError;
use crate::ids::{Timestamp, Uid};
use crate::secrets::MasterKey;
use crate::usage;

/// The writing half of a database, for requests: whatever is written through it leaves an entry, but for a number that others find out
/// again ([`Writer::workspace_changed`]), and the time at which a token was last used ([`Writer::api_token_used`]).
#[derive(Clone)]
pub struct Writer {
    pub(super) db: Db,
    pub(super) key: Arc<ChainKey>,
    pub(super) clock: SharedClock,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl Writer {
    /// Writes to this database, under the keys of this installation.
    pub fn new(db: Db, master: &MasterKey, clock: SharedClock) -> Self {
        Self {
            db,
            key: Arc::new(ChainKey::of(master)),
            clock,
        }
    }

    /// The key of the trail.
    pub fn key(&self) -> &ChainKey {
        &self.key
    }

    /// A transaction of somebody.
    pub async fn begin(&self, author: Author) -> Result<Audited, DbError> {
        Ok(Audited {
            tx: self.db.begin().await?,
            writer: self.clone(),
            author,
        })
    }

    /// Marks that a request, which is recorded already, has changed a user's workspace: see [`usage::changed`].
    pub async fn workspace_changed(&self, uid: &Uid) -> Result<i64, DbError> {
        let mut tx = self.db.begin().await?;
        let change = usage::changed(&mut tx, uid).await?;
        tx.commit().await?;
        Ok(change)
    }

    /// Records a use of an API token: what the request changes is recorded by itself.
    pub async fn api_token_used(&self, uid: &Uid) -> Result<(), DbError> {
        let mut tx = self.db.begin_observed().await?;
        api_token::mark_used(&mut tx, uid, self.clock.now()).await?;
        tx.commit().await
    }

    /// Records what was refused.
    pub async fn refused(&self, author: Author, about: About) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        let entry = Entry::new(author, about, Outcome::Refused, self.clock.now());
        query::append(&mut tx, &self.key, &entry).await?;
        tx.commit().await
    }
}

/// A transaction that may write, of somebody. Dropped without [`Audited::commit`], it changes
/// nothing and leaves no entry.
#[derive(Debug)]
pub struct Audited {
    tx: Tx,
    writer: Writer,
    author: Author,
}

impl Audited {
    /// Who acts has turned out only now: an account that signs in.
    pub fn acting(&mut self, actor: impl Into<String>) {
        self.author.actor = actor.into();
    }

    /// Returns who acts and when, for rows that keep it.
    pub fn author(&self) -> (String, Timestamp) {
        (self.author.actor.clone(), self.writer.clock.now())
    }

    /// Makes it so, with an entry that records what it was about.
    pub async fn commit(self, about: About) -> Result<(), DbError> {
        self.commit_as(Outcome::Ok, about).await
    }

    /// The same for what was begun, as an earlier entry says, and failed.
    pub async fn commit_failed(self, about: About) -> Result<(), DbError> {
        self.commit_as(Outcome::Failed, about).await
    }

    async fn commit_as(self, outcome: Outcome, about: About) -> Result<(), DbError> {
        let Self {
            mut tx,
            writer,
            author,
        } = self;
        let entry = Entry::new(author, about, outcome, writer.clock.now());
        query::append(&mut tx, &writer.key, &entry).await?;
        tx.commit().await?;
        let (actor, action) = (&*entry.actor, &*entry.action);
        let (object, detail) = (&*entry.object, &*entry.detail);
        let (address, request) = (&*entry.address, &*entry.request_id);
        tracing::info!(
            actor,
            action,
            object,
            detail,
            address,
            request,
            "change recorded"
        );
        Ok(())
    }
}

impl Deref for Audited {
    type Target = Tx;

    fn deref(&self) -> &Tx {
        &self.tx
    }
}

impl DerefMut for Audited {
    fn deref_mut(&mut self) -> &mut Tx {
        &mut self.tx
    }
}
