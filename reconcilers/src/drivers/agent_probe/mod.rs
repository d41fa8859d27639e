//! Asks agents over HTTP whether they are ready.

use std::time::Duration;

use async_trait::async_trait;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::{Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// Longest time for a connection: agents are next door.
const CONNECT_TIME: Duration = Duration::from_millis(500);

/// Asks agents whether they are ready.
#[async_trait]
pub trait AgentProbe: Send + Sync + 'static {
    /// Reports that an HTTP GET answers 2xx within `limit`. An agent that does not answer is not ready; that is no error.
    async fn is_ready(&self, address: &str, port: u16, path: &str, limit: Duration) -> bool;
}

/// Asks over the network.
pub struct HttpProbe {
    client: Client<HttpConnector, Empty<Bytes>>,
}

impl std::fmt::Debug for HttpProbe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpProbe").finish_non_exhaustive()
    }
}

impl Default for HttpProbe {
    fn default() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIME));
        Self {
            client: Client::builder(TokioExecutor::new())
                .pool_max_idle_per_host(0)
                .build(connector),
        }
    }
}

#[async_trait]
impl AgentProbe for HttpProbe {
    async fn is_ready(&self, address: &str, port: u16, path: &str, limit: Duration) -> bool {
        let uri = Uri::builder()
            .scheme("http")
            .authority(format!("{address}:{port}"))
            .path_and_query(path)
            .build();
        let Ok(uri) = uri else { return false };
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = uri;
        match tokio::time::timeout(limit, self.client.request(request)).await {
            Ok(Ok(response)) => response.status().is_success(),
            Ok(Err(_)) | Err(_) => false,
        }
    }
}
