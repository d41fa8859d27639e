//! Programs in containers, beside their main processes.
//!
//! The client library keeps a whole frame in memory before it hands it on, and takes what a terminal shows for a frame if it begins
//! like one: a program could announce 4 GiB. So the connection of a program is one of ours, and its bytes are cut by
//! [`FrameDecoder`].

use std::pin::Pin;

use async_trait::async_trait;
use bollard::Docker;
use bollard::exec::ResizeExecOptions;
use bollard::models::ExecConfig;
use bytes::Bytes;
use engine::{EngineError, EngineStream, ExecControl, ExecSettings, LogChunk, exec_variables};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use http::header::{CONNECTION, CONTENT_TYPE, HOST, UPGRADE};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWrite;

use super::connect::{DockerHost, TlsFiles};
use super::dial::{bytes_of, dial_engine};
use super::failure::{MESSAGE_LIMIT, from_answer, from_client};
use super::frames::FrameDecoder;
use super::real::{DockerEngine, pieces};
use super::request;

/// Bytes that are read at once.
const AT_ONCE: usize = 32 * 1024;

/// The form of a program to run.
pub(super) fn config(settings: &ExecSettings) -> ExecConfig {
    ExecConfig {
        attach_stdin: Some(settings.stdin),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(settings.tty),
        env: Some(exec_variables(settings)),
        cmd: Some(settings.program.clone()),
        ..ExecConfig::default()
    }
}

/// Prepares a program; returns its id.
///
/// # Errors
/// The engine refuses it.
pub(super) fn create_exec(
    docker: Docker,
    container: String,
    config: ExecConfig,
) -> BoxFuture<'static, Result<String, EngineError>> {
    let creating = async move {
        let created = docker.create_exec(&container, config).await;
        Ok(created.map_err(from_client)?.id)
    };
    creating.boxed()
}

/// Input and output of a program.
type Ends = (Pin<Box<dyn AsyncWrite + Send>>, EngineStream<LogChunk>);

/// A program that was started.
pub(super) struct Program {
    engine: DockerEngine,
    id: String,
}

impl Program {
    pub(super) fn new(engine: DockerEngine, id: String) -> Self {
        Self { engine, id }
    }
}

#[async_trait]
impl ExecControl for Program {
    async fn resize(&self, columns: u16, rows: u16) -> Result<(), EngineError> {
        let id = request::check_word(&self.id)?;
        let size = ResizeExecOptions {
            height: rows,
            width: columns,
        };
        let resized = self
            .engine
            .call(async |docker| docker.resize_exec(id, size).await);
        resized.await
    }

    async fn exit_code(&self) -> Result<Option<i64>, EngineError> {
        let id = request::check_word(&self.id)?;
        let inspected = self
            .engine
            .call(async |docker| docker.inspect_exec(id).await);
        let found = inspected.await?;
        match found.running {
            Some(true) => Ok(None),
            _ => Ok(found.exit_code),
        }
    }
}

/// Starts the program `id` on a connection of its own.
///
/// # Errors
/// The engine refuses it, or is away: [`EngineError::Unavailable`].
pub(super) fn start_exec(
    address: (DockerHost, Option<TlsFiles>),
    version: String,
    id: String,
    tty: bool,
) -> BoxFuture<'static, Result<Ends, EngineError>> {
    start_on(address, version, id, tty).boxed()
}

fn unavailable(error: hyper::Error) -> EngineError {
    EngineError::Unavailable(Box::new(error))
}

async fn start_on(
    address: (DockerHost, Option<TlsFiles>),
    version: String,
    id: String,
    tty: bool,
) -> Result<Ends, EngineError> {
    let wire = dial_engine(address).await?;
    let (mut sender, serving) = http1::handshake(TokioIo::new(wire))
        .await
        .map_err(unavailable)?;
    let body = serde_json::json!({ "Detach": false, "Tty": tty }).to_string();
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("/{version}/exec/{id}/start"))
        .header(HOST, "docker")
        .header(CONTENT_TYPE, "application/json")
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "tcp")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| EngineError::Internal(error.to_string()))?;
    let exchange = async move {
        let answer = sender.send_request(request).await;
        let answer = answer.map_err(unavailable)?;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            let status = answer.status().as_u16();
            let body = Limited::new(answer.into_body(), MESSAGE_LIMIT * 8).collect();
            let body = body.await.map(|body| body.to_bytes()).unwrap_or_default();
            return Err(from_answer(status, &String::from_utf8_lossy(&body)));
        }
        let upgraded = hyper::upgrade::on(answer).await;
        upgraded.map_err(unavailable)
    };
    // The first ends when the connection is the program's, or its sender is dropped.
    let (_, upgraded) = tokio::join!(serving.with_upgrades(), exchange);
    let (output, input) = tokio::io::split(TokioIo::new(upgraded?));
    let decoder = match tty {
        true => FrameDecoder::new_unframed(),
        false => FrameDecoder::new_framed(),
    };
    let output = pieces(bytes_of(output, AT_ONCE), decoder, None);
    Ok((Box::pin(input), output.boxed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_gets_its_mark_and_no_privileges() {
        let settings = ExecSettings {
            program: vec!["sh".to_owned(), "-c".to_owned()],
            environment: vec!["TERM=xterm".to_owned()],
            stdin: false,
            tty: true,
            mark: "m1".to_owned(),
        };
        let config = config(&settings);
        assert_eq!(config.privileged, None);
        assert_eq!((config.attach_stdin, config.tty), (Some(false), Some(true)));
        let environment = config.env.unwrap();
        assert_eq!(environment, ["TERM=xterm", "AGENTYARD_EXEC=m1"]);
    }

    #[tokio::test]
    async fn terminal_output_that_looks_like_a_frame_is_text() {
        let output: &[u8] = &[1, 0, 0, 0, 255, 255, 255, 255, b'x'];
        let bytes = bytes_of(output, AT_ONCE);
        let read: Vec<_> = pieces(bytes, FrameDecoder::new_unframed(), None)
            .collect()
            .await;
        let read: Vec<_> = read.into_iter().map(|piece| piece.unwrap().bytes).collect();
        assert_eq!(read.concat(), output);
    }
}
