//! Statements on images.

use super::model::{DesiredImage, ImageFacts, ImageRow, ImageUse};
use crate::connection::Connection;
use crate::db::{ObservedTx, Tx};
use crate::error::DbError;
use crate::ids::{Generation, Kind, Timestamp, Uid};
use crate::statement::{execute, fetch_all, fetch_optional, statements};
use crate::{meta, object};

/// Whoever cleans up after an image: its reconciler.
pub(super) const FINALIZER: &str = "image";

macro_rules! select_image {
    ($rest:literal) => {
        concat!(
            "SELECT i.uid, i.reference, i.desired, i.pull_token, o.generation, o.deleted_at, \
             f.image_id, f.digest, f.pull_token AS done_token, f.pulled_at, f.failed_token, f.failure \
             FROM images i JOIN objects o ON o.kind = 'image' AND o.uid = i.uid \
             LEFT JOIN image_facts f ON f.uid = i.uid ",
            $rest
        )
    };
}

statements! {
    /// Reads one image.
    GET = select_image!("WHERE i.uid = $1");
    /// Finds an image by its full reference.
    FIND = select_image!("WHERE i.reference = $1");
    /// Reads all images, in one scan.
    ALL = select_image!("ORDER BY i.reference");
    /// Records an image.
    INSERT = "INSERT INTO images (uid, reference, desired, pull_token) VALUES ($1, $2, $3, $4)";
    /// What is desired of it.
    SET_DESIRED = "UPDATE images SET desired = $2 WHERE uid = $1";
    /// Asks for a pull; or takes back the request, with the token that was answered.
    SET_PULL_TOKEN = "UPDATE images SET pull_token = $2 WHERE uid = $1";
    /// What the reconciler remembers.
    SAVE_FACTS = "INSERT INTO image_facts (uid, image_id, digest, pull_token, pulled_at, failed_token, failure) \
                  SELECT uid, $2, $3, $4, CAST($5 AS BIGINT), $6, $7 FROM images WHERE uid = $1 \
                  ON CONFLICT (uid) DO UPDATE SET image_id = excluded.image_id, digest = excluded.digest, \
                  pull_token = excluded.pull_token, pulled_at = excluded.pulled_at, \
                  failed_token = excluded.failed_token, failure = excluded.failure";
    /// Removes the row.
    DELETE = "DELETE FROM images WHERE uid = $1";
    /// Which user has which image, in one scan: what a rollout resolved, or what its container was made from.
    USES = "SELECT u.uid, u.name, CASE WHEN u.disabled = 0 THEN c.desired ELSE 'stopped' END AS desired, c.image_ref, \
            coalesce(c.image_id, CASE WHEN f.image_ref = c.image_ref THEN f.image_id END) AS image_id \
            FROM containers c JOIN users u ON u.uid = c.uid LEFT JOIN container_facts f ON f.uid = c.uid ORDER BY u.name_key";
    /// What a rollout that has not ended may yet give its users: its image, and what they had before it moved them.
    NEEDS = "SELECT u.uid, u.name, CASE WHEN u.disabled = 0 THEN c.desired ELSE 'stopped' END AS desired, r.reference AS image_ref, \
             f.image_id AS image_id, u.name_key, 0 AS part \
             FROM rollout_facts f JOIN rollouts r ON r.uid = f.uid JOIN rollout_targets t ON t.rollout_uid = f.uid \
             JOIN users u ON u.uid = t.uid JOIN containers c ON c.uid = t.uid WHERE f.finished_at IS NULL \
             UNION ALL \
             SELECT u.uid, u.name, CASE WHEN u.disabled = 0 THEN c.desired ELSE 'stopped' END AS desired, t.previous_ref AS image_ref, \
             t.previous_id AS image_id, u.name_key, 1 AS part \
             FROM rollout_facts f JOIN rollout_targets t ON t.rollout_uid = f.uid \
             JOIN users u ON u.uid = t.uid JOIN containers c ON c.uid = t.uid WHERE f.finished_at IS NULL AND t.previous_ref IS NOT NULL \
             ORDER BY name_key, part";
}

/// Reads one image.
pub async fn get(connection: &mut Connection, uid: &Uid) -> Result<Option<ImageRow>, DbError> {
    fetch_optional!(connection, GET, uid)
}

/// Finds an image by its full reference. One that is being removed is found, too.
pub async fn find(
    connection: &mut Connection,
    reference: &str,
) -> Result<Option<ImageRow>, DbError> {
    fetch_optional!(connection, FIND, reference)
}

/// Reads all images, in one scan.
pub async fn all(connection: &mut Connection) -> Result<Vec<ImageRow>, DbError> {
    fetch_all!(connection, ALL)
}

/// Which user has which image.
pub async fn uses(connection: &mut Connection) -> Result<Vec<ImageUse>, DbError> {
    fetch_all!(connection, USES)
}

/// Which user may yet get which image from a rollout that has not ended: the rollout's, or the one of
/// before.
pub async fn needs(connection: &mut Connection) -> Result<Vec<ImageUse>, DbError> {
    fetch_all!(connection, NEEDS)
}

async fn insert(
    tx: &mut Tx,
    reference: &str,
    desired: DesiredImage,
    pull_token: &str,
    now: Timestamp,
) -> Result<(Uid, Generation), DbError> {
    let uid = Uid::random();
    execute!(tx, INSERT, &uid, reference, desired, pull_token)?;
    let generation = object::insert(tx, Kind::Image, &uid, reference, now).await?;
    Ok((uid, generation))
}

/// Records that `reference` (a full one) is to be pulled: `token` is new for each request that asks for
/// the registry's newest. With `expected`, only if that is still the generation.
///
/// # Errors
/// [`DbError::NameBeingRemoved`] while the image is being removed from the engine.
pub async fn request_pull(
    tx: &mut Tx,
    reference: &str,
    token: &str,
    expected: Option<Generation>,
    now: Timestamp,
) -> Result<(Uid, Generation), DbError> {
    // The guard orders two requests, so that the second finds the row of the first.
    meta::take_guard(tx, "images").await?;
    match find(tx, reference).await? {
        None if expected.is_some() => Err(DbError::StaleGeneration { actual: 0 }),
        None => insert(tx, reference, DesiredImage::Present, token, now).await,
        Some(row) if row.deleted_at.is_some() => Err(DbError::NameBeingRemoved),
        Some(row) => {
            let generation = object::bump(tx, Kind::Image, &row.uid, expected).await?;
            execute!(tx, SET_PULL_TOKEN, &row.uid, token)?;
            Ok((row.uid, generation))
        }
    }
}

/// Records that `reference` (a full one, or an id) is to be deleted from the engine.
pub async fn request_absent(
    tx: &mut Tx,
    reference: &str,
    now: Timestamp,
) -> Result<(Uid, Generation), DbError> {
    meta::take_guard(tx, "images").await?;
    remove(tx, reference, DesiredImage::Absent, now).await
}

/// Cancels a pull, or a removal that is not done yet. An image that was pulled before stays desired as
/// it is; else nothing is desired any more, and the engine keeps what it has. With `expected`, only if
/// that is still the generation.
pub async fn request_cancel(
    tx: &mut Tx,
    reference: &str,
    expected: Option<Generation>,
    now: Timestamp,
) -> Result<(Uid, Generation), DbError> {
    meta::take_guard(tx, "images").await?;
    if let Some(generation) = expected {
        let row = find(tx, reference).await?;
        let row = row.ok_or(DbError::NotFound("image"))?;
        if row.deleted_at.is_none() {
            object::bump(tx, Kind::Image, &row.uid, expected).await?;
        } else if row.generation != generation {
            let actual = row.generation.0;
            return Err(DbError::StaleGeneration { actual });
        }
    }
    if let Some(row) = find(tx, reference).await?
        && row.deleted_at.is_none()
        && let Some(answered) = &row.facts.pull_token
    {
        let generation = object::bump(tx, Kind::Image, &row.uid, None).await?;
        execute!(tx, SET_PULL_TOKEN, &row.uid, answered)?;
        return Ok((row.uid, generation));
    }
    remove(tx, reference, DesiredImage::Cancelled, now).await
}

/// Withdraws the request for an image, answered or not; the engine keeps what it has.
pub async fn request_withdrawal(
    tx: &mut Tx,
    reference: &str,
    now: Timestamp,
) -> Result<(Uid, Generation), DbError> {
    meta::take_guard(tx, "images").await?;
    remove(tx, reference, DesiredImage::Cancelled, now).await
}

async fn remove(
    tx: &mut Tx,
    reference: &str,
    desired: DesiredImage,
    now: Timestamp,
) -> Result<(Uid, Generation), DbError> {
    let uid = match find(tx, reference).await? {
        None => insert(tx, reference, desired, "", now).await?.0,
        Some(row) if row.deleted_at.is_some() => {
            // Whether the engine keeps it: the last word counts.
            set_desired(tx, &row.uid, desired).await?;
            tx.changed(Kind::Image, &row.uid);
            tx.ring_on_commit();
            return Ok((row.uid, row.generation));
        }
        Some(row) => row.uid,
    };
    set_desired(tx, &uid, desired).await?;
    object::add_finalizer(tx, Kind::Image, &uid, FINALIZER).await?;
    let generation = object::delete(tx, Kind::Image, &uid, now).await?;
    Ok((uid, generation))
}

async fn set_desired(tx: &mut Tx, uid: &Uid, desired: DesiredImage) -> Result<(), DbError> {
    execute!(tx, SET_DESIRED, uid, desired)?;
    Ok(())
}

/// Saves what the reconciler remembers; nothing happens when the image is gone.
pub async fn save_facts(tx: &mut ObservedTx, uid: &Uid, facts: &ImageFacts) -> Result<(), DbError> {
    execute!(
        tx,
        SAVE_FACTS,
        uid,
        &facts.image_id,
        &facts.digest,
        &facts.pull_token,
        facts.pulled_at,
        &facts.failed_token,
        &facts.failure
    )?;
    Ok(())
}

/// Removes the rows of a deleted image. Returns whether it did; it does not when something else than
/// `desired` is desired by now.
pub async fn purge(tx: &mut ObservedTx, uid: &Uid, desired: DesiredImage) -> Result<bool, DbError> {
    // The guard orders it with a request that changes what is desired.
    meta::take_guard(tx, "images").await?;
    if get(tx, uid).await?.is_none_or(|row| row.desired != desired) {
        return Ok(false);
    }
    object::remove_finalizer(tx, Kind::Image, uid, FINALIZER).await?;
    if !object::purge_if_finalized(tx, Kind::Image, uid).await? {
        return Ok(false);
    }
    execute!(tx, DELETE, uid)?;
    Ok(true)
}
