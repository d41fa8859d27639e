//! Asks agents over HTTP whether they are ready.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::Empty;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// Longest time of a question in a pass: a worker waits for it, and an agent that is slower is asked again.
pub(super) const TIMEOUT: Duration = Duration::from_millis(500);

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
    /// Reports that an HTTP GET answers 2xx within `limit`. An agent that does not answer is not ready; that is no error.
    pub(super) async fn answers(
        &self,
        address: &str,
        port: u16,
        path: &str,
        limit: Duration,
    ) -> bool {
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
