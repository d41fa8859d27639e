//! Meanings of image references, for engines that keep no images of their own.

use async_trait::async_trait;
use schema::image::ImageReference;

use super::EngineError;

/// Meaning of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// The registry has the image under this digest (`sha256:…`).
    Digest(String),
    /// The registry has no such image, or does not show it.
    Nothing,
    /// No registry may be asked, so the reference stands for itself.
    Itself,
}

/// Asks registries, with the settings in effect: which ones speak no TLS, what they know of us, and whether they may be asked.
#[async_trait]
pub trait Digests: Send + Sync + 'static {
    /// Meaning of a reference without a digest, now.
    ///
    /// # Errors
    /// [`EngineError::RegistryFailed`]: the registry could not be asked, or did not answer the question.
    async fn digest(&self, image: &ImageReference) -> Result<Meaning, EngineError>;
}
