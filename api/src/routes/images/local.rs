//! Images that are on the engine, and who has them.

use std::collections::HashMap;

use schema::image::{self, ImageReference, ImageUse};

use super::names::{Named, full, managed};
use crate::deps::Deps;
use crate::error::{ApiError, Result};
use crate::ports::LocalImage;

/// Users by what they have.
pub(super) struct Uses {
    by_id: HashMap<String, Vec<String>>,
    /// Those whose reference nobody has resolved yet.
    unresolved: HashMap<String, Vec<String>>,
}

impl Uses {
    pub(super) fn new(uses: Vec<ImageUse>) -> Self {
        let (mut by_id, mut unresolved) = (HashMap::new(), HashMap::new());
        for one in uses {
            let names: &mut Vec<String> = match one.image_id {
                Some(id) => by_id.entry(id).or_default(),
                None => unresolved.entry(full(&one.image_ref)).or_default(),
            };
            names.push(one.name);
        }
        Self { by_id, unresolved }
    }

    /// Who has this image, by name.
    pub(super) fn of(&self, image: &LocalImage) -> Vec<String> {
        let tags = image.repo_tags.iter().map(|tag| full(tag));
        let by_tag = tags.filter_map(|tag| self.unresolved.get(&tag));
        let by_id = self.by_id.get(&image.id).into_iter();
        let mut names: Vec<String> = by_id.chain(by_tag).flatten().cloned().collect();
        names.sort_unstable_by_key(|name| name.to_lowercase());
        names.dedup();
        names
    }
}

/// References by which an image is known, tags and digests, as far as they can be read.
pub(super) fn known_as(image: &LocalImage) -> impl Iterator<Item = ImageReference> {
    let texts = image.repo_tags.iter().chain(&image.repo_digests);
    texts.filter_map(|text| text.parse().ok())
}

/// Whether an image is of the managed repository.
pub(super) fn is_managed(image: &LocalImage, managed: &ImageReference) -> bool {
    known_as(image).any(|reference| reference.same_repository(managed))
}

/// The image that a client means: by its reference, or else by its id.
///
/// # Errors
/// 400 when several ids begin so.
pub(super) fn meant<'a>(images: &'a [LocalImage], named: &Named) -> Result<Option<&'a LocalImage>> {
    let is_known_as =
        |image: &&LocalImage, meant: &ImageReference| known_as(image).any(|known| known == *meant);
    let by_reference = named.reference().and_then(|reference| {
        let mut images = images.iter();
        images.find(|image| is_known_as(image, reference))
    });
    if by_reference.is_some() {
        return Ok(by_reference);
    }
    let mut by_id = images.iter().filter(|image| named.is_id(&image.id));
    match (by_id.next(), by_id.next()) {
        (found, None) => Ok(found),
        (_, Some(_)) => {
            let rule = "image is the beginning of several ids; give more digits";
            Err(ApiError::invalid("image", rule))
        }
    }
}

/// The tags of the managed repository that are there, newest first.
pub(super) fn managed_tags(images: &[LocalImage], managed: &ImageReference) -> Vec<String> {
    let tags = images.iter().flat_map(|image| &image.repo_tags);
    let tags = tags.filter_map(|text| text.parse::<ImageReference>().ok());
    let ours = tags.filter(|tag| tag.same_repository(managed));
    let mut tags: Vec<String> = ours
        .filter_map(|tag| tag.tag().map(str::to_owned))
        .collect();
    image::sort_newest_first(&mut tags);
    tags.dedup();
    tags
}

/// What the database knows, and then what the engine has: no connection is held while it is asked.
pub(super) async fn everything(deps: &Deps) -> Result<(ImageReference, Uses, Vec<LocalImage>)> {
    let mut connection = deps.db.snapshot().await?;
    let managed = managed(&mut connection, deps).await?;
    let uses = image::uses(&mut connection).await?;
    drop(connection);
    let mut images = deps.images.list().await?;
    if deps.images.limits().inventory.is_some() {
        name_by_users(&mut images, &uses);
    }
    Ok((managed, Uses::new(uses), images))
}

/// Gives images that the engine knows by their digest alone the references by which users got them.
fn name_by_users(images: &mut [LocalImage], uses: &[ImageUse]) {
    for image in images.iter_mut().filter(|it| it.repo_tags.is_empty()) {
        let same = uses
            .iter()
            .filter(|one| one.image_id.as_ref() == Some(&image.id));
        let mut tags: Vec<String> = same.map(|one| full(&one.image_ref)).collect();
        tags.sort_unstable();
        tags.dedup();
        tags.retain(|tag| *tag != image.id);
        image.repo_tags = tags;
    }
}
