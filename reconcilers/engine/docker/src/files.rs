//! Files inside containers of a Docker Engine.

use async_trait::async_trait;
use bollard::query_parameters::DownloadFromContainerOptionsBuilder;
use bytes::Bytes;
use engine::{ContainerFiles, Containers, EngineError, EngineStream};
use futures::StreamExt;

use super::failure::{from_client, limit_time};
use super::real::{DockerEngine, ignore_missing};
use super::{archive, request};

impl DockerEngine {
    /// Tells a missing file from a missing container, which have the same status code.
    pub(super) async fn no_such_file(&self, id: &str) -> Result<(), EngineError> {
        match self.inspect(id).await? {
            Some(_) => Ok(()),
            None => Err(EngineError::NotFound(format!("No such container: {id}"))),
        }
    }
}

#[async_trait]
impl ContainerFiles for DockerEngine {
    async fn read_file(
        &self,
        id: &str,
        path: &str,
        limit: usize,
    ) -> Result<Option<Vec<u8>>, EngineError> {
        let id = request::check_word(id)?;
        let options = DownloadFromContainerOptionsBuilder::default()
            .path(path)
            .build();
        let answer = limit_time(self.call_timeout, async {
            let docker = self.connection.docker().await?;
            let stream = docker.download_from_container(id, Some(options));
            archive::first_file(stream.map(|part| part.map_err(from_client)).boxed(), limit).await
        })
        .await;
        match ignore_missing(answer)? {
            Some(content) => Ok(content),
            None => self.no_such_file(id).await.map(|()| None),
        }
    }

    async fn read_tree(
        &self,
        id: &str,
        path: &str,
    ) -> Result<Option<EngineStream<Bytes>>, EngineError> {
        let id = request::check_word(id)?;
        let options = DownloadFromContainerOptionsBuilder::default()
            .path(path)
            .build();
        let docker = limit_time(self.call_timeout, self.connection.docker()).await?;
        let stream = docker.download_from_container(id, Some(options));
        let mut stream = stream.map(|part| part.map_err(from_client)).boxed();
        // A stream fails late, with its first item.
        let first = limit_time(self.call_timeout, async { stream.next().await.transpose() }).await;
        match ignore_missing(first)? {
            Some(first) => {
                let first = futures::stream::iter(first.map(Ok));
                Ok(Some(first.chain(stream).boxed()))
            }
            None => self.no_such_file(id).await.map(|()| None),
        }
    }
}
