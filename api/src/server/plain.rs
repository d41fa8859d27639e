//! Plain HTTP on a port that speaks TLS: pages are redirected, and other requests are refused with the remedy.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, LOCATION};
use http::uri::Authority;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;

/// First byte of a TLS handshake.
const HANDSHAKE: u8 = 0x16;

/// Reports that a client has begun to speak something else than TLS. Waits for its first byte.
pub(super) async fn is_plain(stream: &TcpStream) -> bool {
    let mut first = [0];
    matches!(stream.peek(&mut first).await, Ok(1) if first != [HANDSHAKE])
}

/// Answers one request, and closes.
pub(super) async fn refuse_plain(stream: TcpStream, head: Duration) {
    let service = service_fn(async |request: Request<Incoming>| {
        Ok::<_, Infallible>(answer(&request).unwrap_or_else(refusal))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a plain connection to the TLS port ended early");
    }
}

/// Returns the redirection of a page, and `None` where there is none: what else was sent has been sent in clear.
fn answer(request: &Request<Incoming>) -> Option<Response<Full<Bytes>>> {
    let path = request.uri().path_and_query()?;
    let host = request.headers().get(HOST)?.to_str().ok()?;
    let host: Authority = host.parse().ok()?;
    if !request.method().is_safe() || host.as_str().contains('@') {
        return None;
    }
    let address = HeaderValue::try_from(format!("https://{host}{path}")).ok()?;
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    response.headers_mut().insert(LOCATION, address);
    Some(response)
}

fn refusal() -> Response<Full<Bytes>> {
    const ANSWER: &str = r#"{"success":false,"error":"this port speaks HTTPS; begin the address with https://","code":"https_required"}"#;
    let mut response = Response::new(Full::from(ANSWER));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
