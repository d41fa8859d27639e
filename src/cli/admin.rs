//! A client of the administration socket of a running server.

use std::fmt::Display;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Connection};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::Failure;
use crate::settings::Settings;

/// No answer of the administration API is larger.
const LARGEST_ANSWER: usize = 64 * 1024 * 1024;
/// Longer than the server holds back any answer that a command asks for.
const ANSWER_TIME: Duration = Duration::from_secs(60);

/// Whether a server listens on the socket.
pub async fn server_runs(settings: &Settings) -> bool {
    UnixStream::connect(&settings.admin_socket).await.is_ok()
}

/// Reads a resource in JSON.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn get(settings: &Settings, path: &str) -> Result<Value, Failure> {
    json(settings, Method::GET, path, None).await
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
    exchange(settings, Stream::open(settings, method, path, body, &[])).await
}

/// Posts a body of any type and reads the answer: status and text.
///
/// # Errors
/// When no server answers.
pub async fn upload(
    settings: &Settings,
    path: &str,
    content_type: &str,
    body: Bytes,
) -> Result<(u16, String), Failure> {
    let body = (content_type, body);
    exchange(
        settings,
        Stream::begin(settings, Method::POST, path, body, &[]),
    )
    .await
}

async fn exchange(
    settings: &Settings,
    opening: impl Future<Output = Result<Stream, Failure>>,
) -> Result<(u16, String), Failure> {
    let exchange = async {
        let mut stream = opening.await?;
        let text = stream.text().await?;
        Ok((stream.status, text))
    };
    timeout(ANSWER_TIME, exchange)
        .await
        .unwrap_or_else(|_| Err(gone(settings, &"it accepts connections but stays silent")))
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
    if status < 400 {
        return Ok(value);
    }
    let said = value.get("error").and_then(Value::as_str);
    let said = said.unwrap_or("the server refused").to_owned();
    Err(match status {
        404 => Failure::NotFound(said),
        _ => Failure::Failed(said),
    })
}

/// A part of a path or query, safe whatever it contains.
pub fn escaped(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

fn gone(settings: &Settings, error: &dyn Display) -> Failure {
    let place = settings.admin_socket.display();
    Failure::Unavailable(format!(
        "no server answers on {place} ({error}); start one with `agentyard serve`, or name its socket with --admin-socket"
    ))
}

/// An answer that is read while it comes. Nothing runs beside it: the connection moves its bytes
/// while somebody reads.
pub struct Stream {
    /// The HTTP status.
    pub status: u16,
    connection: Pin<Box<Connection<TokioIo<UnixStream>, Full<Bytes>>>>,
    ended: bool,
    body: Incoming,
}

impl Stream {
    /// Sends one request and reads the head of the answer.
    ///
    /// # Errors
    /// When no server answers.
    pub async fn open(
        settings: &Settings,
        method: Method,
        path: &str,
        body: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> Result<Self, Failure> {
        let text = body.map(Value::to_string).unwrap_or_default();
        let body = ("application/json", Bytes::from(text));
        Self::begin(settings, method, path, body, headers).await
    }

    /// The same with any body: its content type, and what it is.
    async fn begin(
        settings: &Settings,
        method: Method,
        path: &str,
        (content_type, body): (&str, Bytes),
        headers: &[(&str, &str)],
    ) -> Result<Self, Failure> {
        let socket = UnixStream::connect(&settings.admin_socket)
            .await
            .map_err(|error| gone(settings, &error))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket))
            .await
            .map_err(|error| gone(settings, &error))?;
        let mut connection = Box::pin(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "agentyard")
            .header("content-type", content_type);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request
            .body(Full::new(body))
            .map_err(|error| Failure::Failed(error.to_string()))?;
        let answer = sender.send_request(request);
        tokio::pin!(answer);
        let mut ended = false;
        let response: Response<Incoming> = loop {
            tokio::select! {
                biased;
                response = &mut answer => break response.map_err(|error| gone(settings, &error))?,
                // The answer may have come with the end of the connection: it is asked once more.
                _ = &mut connection, if !ended => ended = true,
            }
        };
        Ok(Self {
            status: response.status().as_u16(),
            connection,
            ended,
            body: response.into_body(),
        })
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// When the answer breaks off.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            tokio::select! {
                biased;
                frame = self.body.frame() => match frame {
                    None => return Ok(None),
                    Some(Err(error)) => return Err(broken_off(&error)),
                    // Trailers are nothing to us.
                    Some(Ok(frame)) => if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    },
                },
                _ = &mut self.connection, if !self.ended => self.ended = true,
            }
        }
    }

    /// All of it.
    ///
    /// # Errors
    /// When the answer breaks off, or is larger than any answer may be.
    pub async fn text(&mut self) -> Result<String, Failure> {
        let body = Limited::new(&mut self.body, LARGEST_ANSWER).collect();
        tokio::pin!(body);
        loop {
            tokio::select! {
                biased;
                body = &mut body => {
                    let bytes = body.map_err(|error| broken_off(&error))?.to_bytes();
                    return Ok(String::from_utf8_lossy(&bytes).into_owned());
                }
                _ = &mut self.connection, if !self.ended => self.ended = true,
            }
        }
    }
}

fn broken_off(error: &dyn Display) -> Failure {
    Failure::Unavailable(format!("the answer broke off: {error}"))
}
