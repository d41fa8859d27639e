//! The listener for Prometheus: `GET /metrics`, and nothing else of the service.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use crate::limits::METRICS_CONNECTIONS;
use async_trait::async_trait;
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use schema::metric;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Longest time for the head of a request.
const HEAD: Duration = Duration::from_secs(5);
/// Longest time of a connection, which serves one request.
const WHOLE: Duration = Duration::from_secs(30);

/// Writes the metrics.
#[async_trait]
pub trait MetricsSource: Send + Sync + 'static {
    /// All metrics in the text format of Prometheus, as they are now.
    async fn text(&self) -> String;
}

/// Serves metrics until `shutdown`.
pub async fn serve_metrics(
    listener: TcpListener,
    source: Arc<dyn MetricsSource>,
    shutdown: CancellationToken,
) {
    let permits = METRICS_CONNECTIONS.semaphore();
    let connections = TaskTracker::new();
    loop {
        let accepted = async {
            let permit = permits.clone().acquire_owned().await.ok()?;
            Some((permit, listener.accept().await))
        };
        let Some(Some((permit, accepted))) = shutdown.run_until_cancelled(accepted).await else {
            break;
        };
        match accepted {
            Ok((stream, _)) => {
                let serve = timeout(WHOLE, serve_one(stream, source.clone()));
                let shutdown = shutdown.clone();
                connections.spawn(async move {
                    let _ = shutdown.run_until_cancelled(serve).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection for metrics could not be accepted");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
    connections.close();
    connections.wait().await;
}

async fn serve_one(stream: TcpStream, source: Arc<dyn MetricsSource>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let source = source.clone();
        async move { Ok::<_, Infallible>(answer(&request, source.as_ref()).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection for metrics ended early");
    }
}

async fn answer(request: &Request<Incoming>, source: &dyn MetricsSource) -> Response<Full<Bytes>> {
    let plain = |status, text: String| {
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        );
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    };
    if request.uri().path() != "/metrics" {
        return plain(
            StatusCode::NOT_FOUND,
            "metrics are at /metrics\n".to_owned(),
        );
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "use GET\n".to_owned());
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let mut response = plain(StatusCode::OK, source.text().await);
    let content_type = HeaderValue::from_static(metric::CONTENT_TYPE);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    struct Fixed;

    #[async_trait]
    impl MetricsSource for Fixed {
        async fn text(&self) -> String {
            "agentyard_leader 1\n".to_owned()
        }
    }

    #[tokio::test]
    async fn only_get_of_metrics_is_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let tasks = TaskTracker::new();
        tasks.spawn(serve_metrics(listener, Arc::new(Fixed), shutdown.clone()));
        for (line, status, end) in [
            ("GET /metrics", "200", "agentyard_leader 1\n"),
            ("GET /api/admin/users", "404", "metrics are at /metrics\n"),
            ("POST /metrics", "405", "use GET\n"),
        ] {
            let mut stream = TcpStream::connect(at).await.unwrap();
            let head = format!("{line} HTTP/1.1\r\nhost: x\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{answer}"
            );
            assert!(answer.ends_with(end), "{answer}");
            let is_text = answer.contains("text/plain; version=0.0.4");
            assert_eq!(is_text, status == "200", "{answer}");
        }
        shutdown.cancel();
        tasks.close();
        tasks.wait().await;
    }
}
