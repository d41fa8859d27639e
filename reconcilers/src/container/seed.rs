//! The image's own home comes into a user's directory before the first start.
//!
//! The object that it is read from bears the user's uid: after a crash it is a stray of the user's, and the next pass
//! removes it.

use std::io;

use bytes::Bytes;
use engine::{EngineError, ImageHome};
use futures::StreamExt;
use schema::ids::Uid;

use super::names::Names;
use super::plan::Seed;
use super::{ContainerError, ContainerReconciler};

impl ContainerReconciler {
    pub(super) async fn seed(&self, uid: &Uid, seed: &Seed) -> Result<(), ContainerError> {
        let homes = &self.shared.compute.homes;
        let name = Names::of(&seed.name, uid).seed;
        let image = ImageHome {
            name: name.clone(),
            uid: uid.clone(),
            image: seed.image.clone(),
        };
        let opened = match homes.open_image(&image).await {
            Ok(opened) => opened,
            Err(EngineError::NameTaken(_)) => return self.name_taken(uid, &name).await,
            Err(error) => return Err(error.into()),
        };
        let copied = self.copy(uid, seed, &opened).await;
        let removed = homes.close_image(&opened).await;
        copied?;
        Ok(removed?)
    }

    async fn copy(&self, uid: &Uid, seed: &Seed, opened: &str) -> Result<(), ContainerError> {
        let homes = &self.shared.compute.homes;
        let tree = homes.read_image(opened, &seed.home).await?;
        // An image without that directory has nothing to copy, and that is noted, too: an archive's end is all of it.
        let nothing = || futures::stream::iter([Ok(Bytes::from_static(&[0; 1024]))]).boxed();
        let tree = tree.unwrap_or_else(nothing);
        let tree = tree.map(|part| part.map_err(io::Error::other)).boxed();
        let data_dir = &self.shared.data_dir;
        let seeded = data_dir.seed(&seed.name, uid, tree).await?;
        tracing::info!(
            user = %seed.name,
            entries = seeded.entries,
            bytes = seeded.bytes,
            "copied the image's own home"
        );
        if !seeded.skipped.is_empty() {
            let (count, paths) = (seeded.skipped.count, seeded.skipped.paths.join(", "));
            tracing::warn!(user = %seed.name, count, paths, "left out of the image's own home");
        }
        Ok(())
    }
}
