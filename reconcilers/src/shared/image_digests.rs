//! Meanings of image references, as registries tell them with the configuration in effect.

use std::sync::Arc;

use async_trait::async_trait;
use engine::{Digests, EngineError, Meaning};
use schema::config::{PullPolicy, keys};
use schema::error::chain;
use schema::image::ImageReference;

use crate::drivers::registry::Registry;
use crate::stores::{ConfigSource, ConfigStore};

/// Asks a registry with the credentials, and over plain http, as the newest configuration says.
pub struct ConfiguredRegistry<R> {
    registry: R,
    config: ConfigSource,
}

impl<R> std::fmt::Debug for ConfiguredRegistry<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfiguredRegistry").finish_non_exhaustive()
    }
}

impl<R: Registry> ConfiguredRegistry<R> {
    /// Asks `registry` with the configuration in `store`.
    pub fn new(registry: R, store: Arc<dyn ConfigStore>) -> Self {
        Self {
            registry,
            config: ConfigSource::new(store),
        }
    }
}

#[async_trait]
impl<R: Registry> Digests for ConfiguredRegistry<R> {
    async fn digest(&self, image: &ImageReference) -> Result<Meaning, EngineError> {
        let config = self.config.newest().await;
        let config = config.map_err(|error| EngineError::Internal(chain(&error)))?;
        if config.get(&keys::image::PULL_POLICY) == PullPolicy::Never {
            return Ok(Meaning::Itself);
        }
        let plain = config.get(&keys::image::REGISTRY_PLAIN_HTTP);
        let plain = plain.iter().any(|host| host == image.registry());
        let credentials = config.registry_credentials_for(image);
        let asked = self.registry.digest(image, credentials.as_ref(), plain);
        match asked.await {
            Ok(Some(digest)) => Ok(Meaning::Digest(digest)),
            Ok(None) => Ok(Meaning::Nothing),
            Err(error) => {
                tracing::debug!(
                    error = chain(&error),
                    "a registry did not say what a tag means"
                );
                Err(EngineError::RegistryFailed(error.to_string()))
            }
        }
    }
}
