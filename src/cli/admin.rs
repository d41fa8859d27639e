//! A client of the administration socket of a running server.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;

use super::Failure;
use crate::settings::Settings;

/// No answer of the administration API is larger.
const LARGEST_ANSWER: usize = 64 * 1024 * 1024;

/// Whether a server listens on the socket.
pub async fn server_runs(settings: &Settings) -> bool {
    UnixStream::connect(&settings.admin_socket).await.is_ok()
}

/// Sends one request and reads the answer: status and text.
///
/// # Errors
/// When no server answers.
pub async fn send(
    settings: &Settings,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<(u16, String), Failure> {
    let place = settings.admin_socket.display();
    let gone = |error: &dyn std::fmt::Display| {
        Failure::Unavailable(format!(
            "no server answers on {place} ({error}); start one with `agentyard serve`, or name its socket with --admin-socket"
        ))
    };
    let stream = UnixStream::connect(&settings.admin_socket)
        .await
        .map_err(|error| gone(&error))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| gone(&error))?;
    let text = body.map(Value::to_string).unwrap_or_default();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "agentyard")
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(text)))
        .map_err(|error| Failure::Failed(error.to_string()))?;
    let exchange = async {
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| gone(&error))?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), LARGEST_ANSWER)
            .collect()
            .await
            .map_err(|error| Failure::Failed(format!("the answer broke off: {error}")))?;
        let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
        Ok((status, text))
    };
    tokio::select! {
        result = exchange => result,
        // The connection only moves bytes; the exchange tells how it ended.
        _ = connection => Err(gone(&"the connection was closed")),
    }
}

/// The same, for answers in JSON; a failure is the server's own sentence.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn json(
    settings: &Settings,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, Failure> {
    let (status, text) = send(settings, method, path, body).await?;
    judge(status, &text)
}

/// Reads an answer in JSON; a failure is the server's own sentence.
///
/// # Errors
/// When the server refused, or did not answer in JSON.
pub fn judge(status: u16, text: &str) -> Result<Value, Failure> {
    let value: Value = serde_json::from_str(text)
        .map_err(|_| Failure::Failed(format!("the server answered {status} without JSON")))?;
    if status >= 400 {
        let said = value.get("error").and_then(Value::as_str);
        return Err(Failure::Failed(
            said.unwrap_or("the server refused").to_owned(),
        ));
    }
    Ok(value)
}
