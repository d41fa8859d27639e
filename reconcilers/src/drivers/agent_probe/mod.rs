//! Asks agents over HTTP whether they are ready.

use std::io::{self, ErrorKind};
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

/// An answer to the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// An HTTP GET was answered with 2xx in time.
    Ready,
    /// It was not: the agent is not ready, or hangs.
    NotReady,
    /// This host could not ask: that says nothing about the agent.
    Unknown,
}

/// Asks agents whether they are ready.
#[async_trait]
pub trait AgentProbe: Send + Sync + 'static {
    /// Asks one by an HTTP GET, for at most `limit`.
    async fn ask(&self, address: &str, port: u16, path: &str, limit: Duration) -> Answer;
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
    async fn ask(&self, address: &str, port: u16, path: &str, limit: Duration) -> Answer {
        let uri = Uri::builder()
            .scheme("http")
            .authority(format!("{address}:{port}"))
            .path_and_query(path)
            .build();
        let Ok(uri) = uri else {
            return Answer::NotReady;
        };
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = uri;
        match tokio::time::timeout(limit, self.client.request(request)).await {
            Ok(Ok(response)) if response.status().is_success() => Answer::Ready,
            Ok(Err(error)) if is_of_this_host(&error) => Answer::Unknown,
            Ok(_) | Err(_) => Answer::NotReady,
        }
    }
}

/// Reports that a question failed for want of descriptors, addresses or a way on this host.
fn is_of_this_host(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            let kind = error.kind();
            return matches!(
                kind,
                ErrorKind::AddrNotAvailable
                    | ErrorKind::HostUnreachable
                    | ErrorKind::NetworkDown
                    | ErrorKind::NetworkUnreachable
                    | ErrorKind::OutOfMemory
                    | ErrorKind::ResourceBusy
            ) || matches!(error.raw_os_error(), Some(23 | 24));
        }
        next = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_this_host_say_nothing_about_the_agent() {
        for (code, expected) in [
            (24, true),
            (99, true),
            (101, true),
            (113, true),
            (111, false),
        ] {
            let error = io::Error::from_raw_os_error(code);
            assert_eq!(is_of_this_host(&error), expected, "{code}");
        }
    }
}
