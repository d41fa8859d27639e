//! Programs that administrators run in agents' containers, over a WebSocket of the admin socket.
//!
//! The client's first message is a [`Request`]. From then on binary messages carry bytes: input to the program, and from it
//! its output, after one byte that says which ([`STDOUT`], [`STDERR`]). Texts are JSON: [`ClientFrame`] and [`ServerFrame`]. Nothing
//! is read of either side before the other has taken what came last.

mod pump;
#[cfg(test)]
mod tests;

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use schema::audit::About;
use schema::ids::Kind;
use schema::live::ExecSettings;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use uuid::Uuid;

use self::pump::{End, pump};
use crate::auth::Account;
use crate::deps::Deps;
use crate::input::Meta;
use crate::ports::PortError;

/// Mark of a message with output.
pub const STDOUT: u8 = 1;
/// Mark of a message with errors.
pub const STDERR: u8 = 2;
/// Longest message, in bytes: of input, and the request with its arguments.
pub const LONGEST_MESSAGE: usize = 256 * 1024;

/// Bytes that are kept for reading and for writing.
const BUFFER: usize = 64 * 1024;
/// Longest time until the request.
const REQUEST: Duration = Duration::from_secs(10);
/// Longest time for the end of a program whose client has gone.
const ENDING: Duration = Duration::from_secs(15);
/// Longest time of a goodbye.
const GOODBYE: Duration = Duration::from_secs(2);
/// Longest name of a program in the audit trail, in characters.
const LONGEST_NAME: usize = 200;

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// It gets the input.
    #[serde(default)]
    pub stdin: bool,
    /// It gets a terminal, of this kind.
    #[serde(default)]
    pub terminal: Option<String>,
    /// Columns and rows of the terminal.
    #[serde(default)]
    pub size: Option<(u16, u16)>,
}

/// A text of the client after its request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientFrame {
    /// The terminal has another size, in columns and rows.
    Resize(u16, u16),
    /// The input has ended.
    EndOfInput,
}

/// A text of the service: the last message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerFrame {
    /// The program has ended with this code.
    Exit(i64),
    /// The program could not be run or was lost, for this reason.
    Failed(String),
}

/// A client of the admin socket, and the user in whose container the program runs.
pub(crate) struct Caller {
    pub(crate) deps: Deps,
    pub(crate) meta: Meta,
    pub(crate) account: Account,
}

/// Serves one program to its end. `io` is a connection on which the handshake is done.
pub(crate) async fn serve<S>(io: S, caller: Caller)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(0)
        .max_write_buffer_size(2 * LONGEST_MESSAGE)
        .max_message_size(Some(LONGEST_MESSAGE))
        .max_frame_size(Some(LONGEST_MESSAGE));
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let frame = match run(&mut socket, &caller).await {
        Ok(Some(code)) => ServerFrame::Exit(code),
        Ok(None) => return,
        Err(why) => ServerFrame::Failed(why),
    };
    let text = serde_json::to_string(&frame).unwrap_or_default();
    let goodbye = async {
        if socket.send(Message::text(text)).await.is_ok() && socket.close(None).await.is_ok() {
            while let Some(Ok(_)) = socket.next().await {}
        }
    };
    let _ = timeout(GOODBYE, goodbye).await;
}

/// Runs the program; `None` when the client has gone.
async fn run<S>(socket: &mut WebSocketStream<S>, caller: &Caller) -> Result<Option<i64>, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let Caller {
        deps,
        meta,
        account,
    } = caller;
    let request = match timeout(REQUEST, socket.next()).await {
        Ok(Some(Ok(Message::Text(text)))) => read_request(&text)?,
        _ => return Err("the first message is no request".to_owned()),
    };
    let name = shown_name(&request);
    let about = || About::object(Kind::Container, &account.name).detail(format!("program: {name}"));
    let recorded = async { meta.begin(deps).await?.commit(about()).await };
    recorded.await.map_err(|error| {
        tracing::error!(error = %crate::error::chain(&error), "a program is not run, because that cannot be recorded");
        "it cannot be recorded in the audit trail, so it was not run".to_owned()
    })?;
    let size = request.size;
    let settings = settings(request);
    let started = deps.exec.start(&account.uid, &settings).await;
    let program = match started {
        Ok(Some(program)) => program,
        failed => {
            if let Ok(tx) = meta.begin(deps).await {
                let _ = tx.commit_failed(about()).await;
            }
            return Err(match failed {
                Err(error) => describe(&error),
                Ok(_) => format!("container/{} is not running any more", account.name),
            });
        }
    };
    let control = program.control.clone();
    if let Some((columns, rows)) = size {
        control.resize(columns, rows).await;
    }
    let end = tokio::select! {
        end = pump(socket, program) => end,
        () = deps.shutdown.cancelled() => End::Stopping,
    };
    if end != End::Finished {
        tracing::info!(user = %account.name, "a program in a container is ended, because its client has gone");
        if timeout(ENDING, control.end()).await != Ok(true) {
            tracing::warn!(user = %account.name, "a program in a container may still run, though its client has gone");
        }
    }
    match end {
        End::Finished => match control.exit_code().await {
            Ok(code) => Ok(Some(code)),
            Err(error) => Err(describe(&error)),
        },
        End::Stopping => Err("the server is stopping, and the program was ended".to_owned()),
        End::Lost(why) => Err(why),
        End::Gone => Ok(None),
    }
}

fn read_request(text: &str) -> Result<Request, String> {
    let request: Request =
        serde_json::from_str(text).map_err(|error| format!("the request: {error}"))?;
    match request.program.first() {
        Some(program) if !program.is_empty() => Ok(request),
        _ => Err("the request names no program".to_owned()),
    }
}

/// The program's name as the audit trail has it: without arguments.
fn shown_name(request: &Request) -> String {
    let name = request.program.first().map_or("", String::as_str);
    let name = name.escape_debug().take(LONGEST_NAME);
    name.collect()
}

fn settings(request: Request) -> ExecSettings {
    let mut environment = Vec::new();
    let is_word = |text: &String| {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-+._".contains(c);
        (1..=64).contains(&text.len()) && text.chars().all(fits)
    };
    let tty = request.terminal.is_some();
    if let Some(terminal) = request.terminal.filter(is_word) {
        environment.push(format!("TERM={terminal}"));
    }
    ExecSettings {
        program: request.program,
        environment,
        stdin: request.stdin,
        tty,
        mark: Uuid::new_v4().simple().to_string(),
    }
}

/// A sentence for the client, with the engine's own words.
fn describe(error: &PortError) -> String {
    match error {
        PortError::EngineUnavailable(_) => "the container engine is unavailable".to_owned(),
        PortError::Unsupported(sentence) => (*sentence).to_owned(),
        PortError::Failed(cause) => cause.to_string(),
    }
}
