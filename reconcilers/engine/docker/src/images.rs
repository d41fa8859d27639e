//! Images of a Docker Engine.

use std::time::Duration;

use async_trait::async_trait;
use bollard::auth::DockerCredentials;
use bollard::models::CreateImageInfo;
use bollard::query_parameters::{
    CreateImageOptionsBuilder, ListImagesOptionsBuilder, RemoveImageOptionsBuilder,
};
use engine::{EngineError, EngineStream, Image, Images, PullEvent, RegistryCredentials, tagged};
use futures::{Stream, StreamExt};
use secrecy::ExposeSecret;

use super::failure::{from_pull, limit_time};
use super::real::{DockerEngine, ignore_missing};
use super::{convert, request};

#[async_trait]
impl Images for DockerEngine {
    async fn image(&self, reference: &str) -> Result<Option<Image>, EngineError> {
        let reference = request::check_reference(reference)?;
        let answer = self
            .call(async |docker| docker.inspect_image(reference).await)
            .await;
        ignore_missing(answer)?.map(convert::image).transpose()
    }

    async fn images(&self) -> Result<Vec<Image>, EngineError> {
        let options = ListImagesOptionsBuilder::default().build();
        let listed = self
            .call(async |docker| docker.list_images(Some(options)).await)
            .await?;
        Ok(listed.into_iter().map(convert::listed_image).collect())
    }

    async fn remove_image(&self, reference_or_id: &str) -> Result<(), EngineError> {
        let reference = request::check_reference(reference_or_id)?;
        let options = RemoveImageOptionsBuilder::default().force(false).build();
        let removed = self
            .call(async |docker| docker.remove_image(reference, Some(options), None).await)
            .await;
        ignore_missing(removed).map(|_| ())
    }

    async fn pull(
        &self,
        reference: &str,
        credentials: Option<&RegistryCredentials>,
    ) -> Result<EngineStream<PullEvent>, EngineError> {
        let reference = tagged(request::check_reference(reference)?)?;
        let options = CreateImageOptionsBuilder::default()
            .from_image(&reference)
            .build();
        let credentials = credentials.map(|credentials| DockerCredentials {
            username: Some(credentials.username.clone()),
            password: Some(credentials.password.expose_secret().to_owned()),
            ..Default::default()
        });
        let docker = limit_time(self.call_timeout, self.connection.docker()).await?;
        let docker = request::with_url_safe_credentials(docker);
        let reported = docker
            .create_image(Some(options), None, credentials)
            .boxed();
        Ok(pull_events(reported, self.pull_idle_timeout).boxed())
    }
}

/// Events of a pull; ends after the first error, or when nothing came for `idle`.
fn pull_events(
    reported: impl Stream<Item = Result<CreateImageInfo, bollard::errors::Error>>
    + Unpin
    + Send
    + 'static,
    idle: Duration,
) -> impl Stream<Item = Result<PullEvent, EngineError>> + Send {
    futures::stream::unfold(Some(reported), move |reported| async move {
        let mut reported = reported?;
        let event = match tokio::time::timeout(idle, reported.next()).await {
            Err(_) => Err(EngineError::Timeout(idle)),
            Ok(None) => return None,
            Ok(Some(Err(error))) => Err(from_pull(error)),
            Ok(Some(Ok(info))) => convert::pull_event(info),
        };
        let more = event.is_ok().then_some(reported);
        Some((event, more))
    })
}
