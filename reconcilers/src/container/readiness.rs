//! Is the agent ready? Asked only between a start and the first yes.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::Empty;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use super::ContainerError;
use crate::drivers::docker::{Container, ContainerDetails, ContainerEngine};
use crate::engine::view::NETWORK;
use schema::adapter::{Agent, Readiness};

/// Short, because a worker waits for it; an agent that is slower is asked again.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Asks agents whether they are ready.
pub(super) struct Prober {
    client: Client<HttpConnector, Empty<Bytes>>,
}

impl Default for Prober {
    fn default() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(TIMEOUT));
        Self {
            client: Client::builder(TokioExecutor::new())
                .pool_max_idle_per_host(0)
                .build(connector),
        }
    }
}

impl Prober {
    /// Whether the readiness check of the adapter passes. An agent that does not answer is not ready;
    /// that is no error.
    pub(super) async fn is_ready(
        &self,
        agent: &Agent,
        container: &Container,
        details: Option<&ContainerDetails>,
        engine: &dyn ContainerEngine,
    ) -> Result<bool, ContainerError> {
        match &agent.readiness {
            Readiness::Running => Ok(true),
            Readiness::Http { port, path } => {
                let address = details
                    .map_or(&container.networks, |d| &d.container.networks)
                    .get(NETWORK)
                    .cloned()
                    .flatten();
                match address {
                    Some(address) => Ok(self.answers(&address, *port, path).await),
                    None => Ok(false),
                }
            }
            Readiness::File(path) => Ok(engine.file_exists(&container.id, path).await?),
        }
    }

    async fn answers(&self, address: &str, port: u16, path: &str) -> bool {
        let uri = Uri::builder()
            .scheme("http")
            .authority(format!("{address}:{port}"))
            .path_and_query(path)
            .build();
        let Ok(uri) = uri else { return false };
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = uri;
        match tokio::time::timeout(TIMEOUT, self.client.request(request)).await {
            Ok(Ok(response)) => response.status().is_success(),
            Ok(Err(_)) | Err(_) => false,
        }
    }
}
