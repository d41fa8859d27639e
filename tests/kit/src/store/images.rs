//! Images: what the API writes, and what the statements of their reconciler do to the tables.

use schema::error::DbError;
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::image::{DesiredImage, ImageFacts, ImageRow, ImageUse};

use super::MemoryStore;
use super::tables::Tables;
use crate::Change;

/// Whoever cleans up after an image: its reconciler.
const FINALIZER: &str = "image";

#[derive(Debug, Clone)]
pub(super) struct ImageSpec {
    reference: String,
    desired: DesiredImage,
    pull_token: String,
    facts: ImageFacts,
}

impl Tables {
    pub(super) fn image_row(&self, uid: &Uid) -> Option<ImageRow> {
        let object = self.object(Kind::Image, uid)?;
        let image = self.images.get(uid)?;
        Some(ImageRow {
            uid: uid.clone(),
            reference: image.reference.clone(),
            desired: image.desired,
            pull_token: image.pull_token.clone(),
            generation: object.generation,
            deleted_at: object.deleted_at,
            facts: image.facts.clone(),
        })
    }

    pub(super) fn image_rows(&self) -> Vec<ImageRow> {
        let uids = self.images.keys();
        let mut rows: Vec<_> = uids.filter_map(|uid| self.image_row(uid)).collect();
        rows.sort_by(|a, b| a.reference.cmp(&b.reference));
        rows
    }

    pub(super) fn image_uses(&self) -> Vec<ImageUse> {
        let mut rows = self.container_rows();
        rows.sort_by_key(|row| row.name.key());
        let uses = rows.into_iter().map(|row| {
            let pinned = row.facts.image_ref.as_ref() == Some(&row.image_ref);
            ImageUse {
                uid: row.uid,
                name: row.name.to_string(),
                desired: if row.disabled {
                    schema::container::Desired::Stopped
                } else {
                    row.desired
                },
                image_ref: row.image_ref,
                image_id: row
                    .image_id
                    .or_else(|| row.facts.image_id.filter(|_| pinned)),
            }
        });
        let mut uses: Vec<ImageUse> = uses.collect();
        uses.extend(self.image_needs(&uses));
        uses
    }

    /// What rollouts that have not ended may yet give: their image, and what was there before.
    fn image_needs(&self, users: &[ImageUse]) -> Vec<ImageUse> {
        let open = |uid: &Uid| {
            let mut rollouts = self.rollouts.values();
            rollouts.find_map(|rollout| {
                let mut targets = rollout.targets.iter();
                let target = targets.find(|target| target.uid == *uid)?;
                let row = &rollout.row;
                row.facts.finished_at.is_none().then_some((row, target))
            })
        };
        let mut needs = Vec::new();
        for user in users {
            let Some((row, target)) = open(&user.uid) else {
                continue;
            };
            needs.push(ImageUse {
                image_ref: row.reference.clone(),
                image_id: row.facts.image_id.clone(),
                ..user.clone()
            });
            needs.extend(target.previous.as_ref().map(|previous| ImageUse {
                image_ref: previous.reference.clone(),
                image_id: previous.image_id.clone(),
                ..user.clone()
            }));
        }
        needs
    }

    pub(super) fn save_image_facts(&mut self, uid: &Uid, facts: &ImageFacts) {
        if let Some(image) = self.images.get_mut(uid) {
            image.facts = facts.clone();
        }
    }

    pub(super) fn purge_image(&mut self, uid: &Uid, desired: DesiredImage) -> bool {
        let image = self.images.get(uid);
        if image.is_none_or(|image| image.desired != desired) {
            return false;
        }
        if !self.finalize(Kind::Image, uid, FINALIZER) {
            return false;
        }
        self.remove_object(Kind::Image, uid);
        self.images.remove(uid);
        true
    }

    fn find_image(&self, reference: &str) -> Option<ImageRow> {
        let mut rows = self.image_rows().into_iter();
        rows.find(|row| row.reference == reference)
    }

    fn insert_image(&mut self, uid: &Uid, reference: &str, desired: DesiredImage, token: &str) {
        let spec = ImageSpec {
            reference: reference.to_owned(),
            desired,
            pull_token: token.to_owned(),
            facts: ImageFacts::default(),
        };
        self.images.insert(uid.clone(), spec);
        self.create(Kind::Image, uid);
    }

    fn change_image(&mut self, uid: &Uid, change: impl FnOnce(&mut ImageSpec)) {
        if let Some(image) = self.images.get_mut(uid) {
            change(image);
        }
    }

    fn end_image(
        &mut self,
        new_uid: &Uid,
        reference: &str,
        desired: DesiredImage,
        now: Timestamp,
    ) -> Result<(Uid, Generation), DbError> {
        let uid = match self.find_image(reference) {
            None => {
                self.insert_image(new_uid, reference, desired, "");
                new_uid.clone()
            }
            Some(row) if row.deleted_at.is_some() => {
                self.change_image(&row.uid, |image| image.desired = desired);
                return Ok((row.uid, row.generation));
            }
            Some(row) => row.uid,
        };
        self.change_image(&uid, |image| image.desired = desired);
        self.add_finalizer(Kind::Image, &uid, FINALIZER);
        let generation = self.bump(Kind::Image, &uid)?;
        if let Some(object) = self.objects.get_mut(&(Kind::Image, uid.clone())) {
            object.deleted_at = Some(now);
        }
        Ok((uid, generation))
    }
}

impl MemoryStore {
    /// All images that somebody asked for.
    pub fn peek_images(&self) -> Vec<ImageRow> {
        self.tables().image_rows()
    }

    /// Asks for a pull. `new_uid` is the uid of an image that nobody asked for before.
    ///
    /// # Errors
    /// While the image is being removed.
    pub fn request_pull(
        &self,
        new_uid: &Uid,
        reference: &str,
        token: &str,
    ) -> Result<(Uid, Generation), DbError> {
        self.write(|tables| match tables.find_image(reference) {
            None => {
                tables.insert_image(new_uid, reference, DesiredImage::Present, token);
                Ok((new_uid.clone(), Generation(1)))
            }
            Some(row) if row.deleted_at.is_some() => Err(DbError::NameBeingRemoved),
            Some(row) => {
                let generation = tables.bump(Kind::Image, &row.uid)?;
                tables.change_image(&row.uid, |image| token.clone_into(&mut image.pull_token));
                Ok((row.uid, generation))
            }
        })
    }

    /// Asks for the removal from the engine.
    ///
    /// # Errors
    /// Never; like the other writes it could be refused.
    pub fn request_absent(
        &self,
        new_uid: &Uid,
        reference: &str,
        now: Timestamp,
    ) -> Result<(Uid, Generation), DbError> {
        self.write(|tables| tables.end_image(new_uid, reference, DesiredImage::Absent, now))
    }

    /// Calls a pull off, or a removal that is not done yet.
    ///
    /// # Errors
    /// Never; like the other writes it could be refused.
    pub fn request_cancel(
        &self,
        new_uid: &Uid,
        reference: &str,
        now: Timestamp,
    ) -> Result<(Uid, Generation), DbError> {
        self.write(|tables| {
            if let Some(row) = tables.find_image(reference)
                && row.deleted_at.is_none()
                && let Some(answered) = row.facts.pull_token
            {
                let generation = tables.bump(Kind::Image, &row.uid)?;
                tables.change_image(&row.uid, |image| image.pull_token = answered);
                return Ok((row.uid, generation));
            }
            tables.end_image(new_uid, reference, DesiredImage::Cancelled, now)
        })
    }

    pub(super) async fn purge_image_row(
        &self,
        uid: &Uid,
        desired: DesiredImage,
    ) -> Result<(), DbError> {
        self.transaction(|tables| {
            if tables.purge_image(uid, desired) {
                self.tell(&Change::Purged {
                    kind: Kind::Image,
                    uid: uid.clone(),
                });
            }
            Ok(())
        })
        .await
    }
}
