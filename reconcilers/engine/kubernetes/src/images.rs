//! Images: a registry says what a reference means, nodes pull, and the kubelets remove.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use engine::{
    CALL_TIMEOUT, EngineError, EngineStream, Image, Images, PullEvent, RegistryCredentials,
};
use futures::StreamExt;
use schema::ids::Timestamp;
use schema::image::ImageReference;

use super::containers::Silent;
use super::pulling::Pulling;
use super::references::{ImageId, Resolved};
use super::{KubernetesEngine, REMOVAL};

/// Reads a reference; an id of another kind of engine is none.
fn parse_reference(reference: &str) -> Result<Option<ImageReference>, EngineError> {
    if reference.starts_with("sha256:") {
        return Ok(None);
    }
    let parsed = reference.parse::<ImageReference>();
    parsed
        .map(Some)
        .map_err(|error| EngineError::Refused(format!("{reference:?} is {error}")))
}

/// An image of which only its names are known.
fn image_named(id: ImageId, tags: Vec<String>, is_local: bool) -> Image {
    let is_fixed = id.contains('@');
    Image {
        repo_tags: tags,
        repo_digests: is_fixed.then(|| id.clone()).into_iter().collect(),
        id,
        size: 0,
        created_at: Timestamp::default(),
        is_local,
    }
}

impl KubernetesEngine {
    /// Nodes of agents that are not known to have an image. `None`: the nodes are not known.
    fn nodes_without(&self, id: &str) -> Option<BTreeSet<String>> {
        let nodes = self.cache.nodes(&self.images.owner)?;
        let mut having = self.images.pulled_nodes(id);
        having.extend(self.nodes_with(id));
        Some(nodes.difference(&having).cloned().collect())
    }

    /// Nodes on which an agent has an image.
    fn nodes_with(&self, id: &str) -> BTreeSet<String> {
        let mut images = self.cache.images(&self.images.owner);
        images.remove(id).unwrap_or_default()
    }
}

#[async_trait]
impl Images for KubernetesEngine {
    async fn image(&self, reference: &str) -> Result<Option<Image>, EngineError> {
        let Some(parsed) = parse_reference(reference)? else {
            return Ok(None);
        };
        let Some(resolved) = self.images.resolve_reference(&parsed, false).await? else {
            return Ok(None);
        };
        let tag = parsed.digest().is_none().then(|| parsed.to_string());
        let is_local = match &resolved {
            Resolved::Fixed(id) => self.nodes_without(id).is_some_and(|nodes| nodes.is_empty()),
            Resolved::Loose(_) => true,
        };
        let id = resolved.id().clone();
        Ok(Some(image_named(id, tag.into_iter().collect(), is_local)))
    }

    async fn images(&self) -> Result<Vec<Image>, EngineError> {
        self.cache.wait_listed(CALL_TIMEOUT).await;
        let nodes = self.cache.nodes(&self.images.owner);
        let nodes = nodes.ok_or_else(|| EngineError::Unavailable(Box::new(Silent)))?;
        let mut images: BTreeMap<ImageId, BTreeSet<String>> = self.images.pulled_images();
        for (id, having) in self.cache.images(&self.images.owner) {
            images.entry(id).or_default().extend(having);
        }
        let images = images.into_iter().map(|(id, having)| {
            let tags = match id.contains('@') {
                true => self.images.references_of(&id),
                false => vec![id.clone()],
            };
            image_named(id, tags, nodes.is_subset(&having))
        });
        Ok(images.collect())
    }

    async fn remove_image(&self, _reference_or_id: &str) -> Result<(), EngineError> {
        Err(EngineError::Unsupported(REMOVAL))
    }

    /// The nodes log in by themselves, with the secrets that Pods name, and the registry is asked with the settings in effect: so no
    /// credentials are needed here.
    async fn pull(
        &self,
        reference: &str,
        _credentials: Option<&RegistryCredentials>,
    ) -> Result<EngineStream<PullEvent>, EngineError> {
        let parsed = parse_reference(reference)?.ok_or_else(|| {
            EngineError::PullRefused(format!(
                "{reference} is an id of another engine; no registry knows it"
            ))
        })?;
        let resolved = self
            .images
            .resolve_reference(&parsed, true)
            .await?
            .ok_or_else(|| {
                EngineError::PullRefused(format!(
                    "the registry {} has no image {parsed}, or does not show it to this account",
                    parsed.registry()
                ))
            })?;
        self.cache.wait_listed(CALL_TIMEOUT).await;
        let nodes = self.cache.nodes(&self.images.owner);
        let nodes = nodes.ok_or_else(|| EngineError::Unavailable(Box::new(Silent)))?;
        self.remove_old_pullers().await;
        let having = match &resolved {
            Resolved::Fixed(id) => self.nodes_with(id),
            Resolved::Loose(_) => BTreeSet::new(),
        };
        let pulling = Pulling::new(self, (parsed, resolved), &nodes, &having);
        let events = futures::stream::unfold(Some(pulling), |pulling| async move {
            let mut pulling = pulling?;
            match Box::pin(pulling.next()).await {
                Some(Err(error)) => Some((Err(error), None)),
                Some(Ok(event)) => Some((Ok(event), Some(pulling))),
                None => None,
            }
        });
        Ok(events.boxed())
    }
}
