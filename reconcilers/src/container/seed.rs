//! The image's own home comes into a user's directory before the first start.
//!
//! It is read from a container that is made from the image, bears the user's uid and is never started: one that a crash
//! leaves behind is a stray of the user's, and goes with the next pass.

use std::io;

use bytes::Bytes;
use engine::{ContainerSettings, EngineError, LABEL_OWNER, LABEL_UID};
use futures::StreamExt;
use schema::ids::Uid;

use super::names::Names;
use super::plan::Seed;
use super::{ContainerError, ContainerReconciler};
use crate::shared::network::NETWORK;

impl ContainerReconciler {
    pub(super) async fn seed(&self, uid: &Uid, seed: &Seed) -> Result<(), ContainerError> {
        let engine = self.shared.view.engine();
        let name = Names::of(&seed.name, uid).seed;
        let labels = [
            (LABEL_OWNER, self.shared.view.owner()),
            (LABEL_UID, uid.as_str()),
        ];
        let settings = ContainerSettings {
            image: seed.image.clone(),
            command: Some(vec!["none".to_owned()]),
            labels: labels
                .map(|(label, value)| (label.to_owned(), value.to_owned()))
                .into(),
            network: NETWORK.to_owned(),
            ..ContainerSettings::default()
        };
        let id = match engine.create(&name, &settings).await {
            Ok(id) => id,
            Err(EngineError::NameTaken(_)) => return self.name_taken(uid, &name).await,
            Err(error) => return Err(error.into()),
        };
        let copied = self.copy(uid, seed, &id).await;
        let removed = engine.remove(&id).await;
        copied?;
        Ok(removed?)
    }

    async fn copy(&self, uid: &Uid, seed: &Seed, id: &str) -> Result<(), ContainerError> {
        let tree = self.shared.view.engine().read_tree(id, &seed.home).await?;
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
