//! Images on the engine.

use async_trait::async_trait;

use super::{EngineError, EngineStream, Image, PullEvent, RegistryCredentials};

/// The verbs of an engine for images.
#[async_trait]
pub trait Images: Send + Sync + 'static {
    /// Reads an image by reference or id; `None` when the engine has none. An engine of many machines reads from the registry what
    /// a reference means, and [`Image::is_local`] says whether a pull would still bring something.
    ///
    /// # Errors
    /// [`EngineError::RegistryFailed`]: a registry that has to say it could not be asked.
    async fn image(&self, reference: &str) -> Result<Option<Image>, EngineError>;

    /// Lists all images, those that other programs pulled included, or those that containers have, where
    /// [`EngineFacts::inventory`](super::EngineFacts::inventory) says so. One engine call at most.
    async fn images(&self) -> Result<Vec<Image>, EngineError>;

    /// Takes a reference off its image, and removes the image when that was the last one; or removes
    /// an image by id. Success when it is gone. Never by force: [`EngineError::Conflict`] while a
    /// container, running or not, is made from the image that would go, and for the id of an image
    /// with several tags. [`EngineError::Unsupported`] where images are not removed on request.
    async fn remove_image(&self, reference_or_id: &str) -> Result<(), EngineError>;

    /// Pulls an image to where containers run, as long as the stream is read: dropping it calls the pull off. The first error,
    /// of the registry or of the connection, is the last item; a stream that ends without one has
    /// pulled, and the caller asks for the [`image`](Self::image).
    async fn pull(
        &self,
        reference: &str,
        credentials: Option<&RegistryCredentials>,
    ) -> Result<EngineStream<PullEvent>, EngineError>;
}
