//! What the image reconciler reads and writes in the database.

use async_trait::async_trait;
use schema::error::DbError;
use schema::ids::Uid;
use schema::image::{self, DesiredImage, ImageFacts, ImageRow, ImageUse};

use crate::stores::{Database, Rows};

/// Images that an administrator asked for or wants removed. Every write is one transaction, and may be repeated.
#[async_trait]
pub trait ImageStore: Rows<ImageRow> {
    /// Which user has which image, ordered by name; then which user may yet get which image from a rollout
    /// that has not ended.
    async fn image_uses(&self) -> Result<Vec<ImageUse>, DbError>;
    /// Saves what was observed; nothing happens when the image is gone.
    async fn save_image_facts(&self, uid: &Uid, facts: &ImageFacts) -> Result<(), DbError>;
    /// Cleaning up is done as it was desired: removes a deleted image's rows, unless something else is
    /// desired by now.
    async fn purge_image(&self, uid: &Uid, desired: DesiredImage) -> Result<(), DbError>;
}

#[async_trait]
impl Rows<ImageRow> for Database {
    async fn rows(&self) -> Result<Vec<(Uid, ImageRow)>, DbError> {
        let rows = image::all(&mut *self.db.read().await?).await?;
        Ok(rows.into_iter().map(|row| (row.uid.clone(), row)).collect())
    }

    async fn row(&self, uid: &Uid) -> Result<Option<ImageRow>, DbError> {
        image::get(&mut *self.db.read().await?, uid).await
    }
}

#[async_trait]
impl ImageStore for Database {
    async fn image_uses(&self) -> Result<Vec<ImageUse>, DbError> {
        let mut snapshot = self.db.snapshot().await?;
        let mut uses = image::uses(&mut snapshot).await?;
        uses.extend(image::needs(&mut snapshot).await?);
        Ok(uses)
    }

    async fn save_image_facts(&self, uid: &Uid, facts: &ImageFacts) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        image::save_facts(&mut tx, uid, facts).await?;
        tx.commit().await
    }

    async fn purge_image(&self, uid: &Uid, desired: DesiredImage) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        image::purge(&mut tx, uid, desired).await?;
        tx.commit().await
    }
}
