//! `agentyard exec`: a program in a user's container, with this process's input, output and terminal.

mod terminal;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use api::exec::{ClientFrame, Request, STDERR, STDOUT, ServerFrame};
use clap::Args;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use reqwest::{Method, StatusCode, Upgraded};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use self::terminal::RawTerminal;
use super::admin::escaped;
use super::server::Server;
use super::{Failure, Result, failed};

/// Time for what the server has sent before it closed the connection.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Program to run, and the user of the container.
#[derive(Debug, Args)]
pub struct ExecArgs {
    /// Pass standard input to the program
    #[arg(short = 'i', long = "stdin")]
    stdin: bool,
    /// Allocate a terminal for the program
    #[arg(short = 't', long = "tty")]
    tty: bool,
    /// User in whose container the program runs
    #[arg(value_name = "USER")]
    name: String,
    /// Program and its arguments
    #[arg(value_name = "PROGRAM", required = true, last = true)]
    program: Vec<String>,
}

type Socket = WebSocketStream<Upgraded>;

/// Runs a program; its exit code is that of this process.
///
/// # Errors
/// No server answers, the user has no running container, the connection is lost, or the program's exit code is not 0.
pub async fn exec(server: &Server, args: ExecArgs) -> Result {
    let has_terminal = io::stdin().is_terminal();
    if args.tty && args.stdin && !has_terminal {
        let text = "-t needs a terminal as standard input; leave -t out in scripts";
        return Err(Failure::Usage(text.to_owned()));
    }
    // Before the program is there: a signal from now on must not end this process with the terminal in raw mode.
    let mut signals = Signals::new().map_err(failed)?;
    let mut socket = connect(server, &args.name).await?;
    let kind = std::env::var("TERM").unwrap_or_else(|_| "xterm".to_owned());
    let request = Request {
        program: args.program,
        stdin: args.stdin,
        terminal: args.tty.then_some(kind),
        size: terminal::size().filter(|_| args.tty),
    };
    let text = serde_json::to_string(&request).map_err(failed)?;
    socket.send(Message::text(text)).await.map_err(lost)?;
    let raw = match args.tty && args.stdin {
        true => Some(RawTerminal::enter().map_err(failed)?),
        false => None,
    };
    let (writer, reader) = socket.split();
    let input = args.stdin.then(terminal::read_input);
    let ended = tokio::select! {
        biased;
        ended = show_output(reader) => ended,
        ended = send_input(writer, input, args.tty) => Err(ended),
        code = signals.wait() => Err(Failure::Program(code)),
    };
    drop(raw);
    match ended? {
        ServerFrame::Exit(0) => Ok(()),
        // As a process would end with it.
        ServerFrame::Exit(code) => Err(Failure::Program((code & 0xff) as u8)),
        ServerFrame::Failed(why) => Err(Failure::Failed(why)),
    }
}

/// Opens the WebSocket.
async fn connect(server: &Server, name: &str) -> Result<Socket> {
    let name = name.strip_prefix("container/").unwrap_or(name);
    let path = format!("/api/machine/users/{}/exec", escaped(name));
    let request = server
        .request(Method::GET, &path)
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", generate_key());
    let answer = server.open(request).await?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        let refused = server.read(answer).await;
        let unexpected = "the server did not open a connection to the program".to_owned();
        return Err(refused.err().unwrap_or(Failure::Failed(unexpected)));
    }
    let upgraded = answer.upgrade().await.map_err(failed)?;
    Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await)
}

fn lost(error: impl std::fmt::Display) -> Failure {
    let text =
        format!("the connection to the server was lost, and the server ends the program: {error}");
    Failure::Unavailable(text)
}

/// Writes the program's output, to its end.
async fn show_output(mut reader: SplitStream<Socket>) -> Result<ServerFrame> {
    loop {
        let message = match reader.next().await {
            Some(message) => message.map_err(lost)?,
            None => return Err(lost("it was closed")),
        };
        match message {
            Message::Binary(bytes) => {
                let Some((mark, piece)) = bytes.split_first() else {
                    continue;
                };
                let written = tokio::task::block_in_place(|| match *mark {
                    STDOUT => write(io::stdout().lock(), piece),
                    STDERR => write(io::stderr().lock(), piece),
                    _ => Ok(()),
                });
                written.map_err(|error| match error.kind() {
                    io::ErrorKind::BrokenPipe => Failure::PipeClosed,
                    _ => failed(format!("the output cannot be written: {error}")),
                })?;
            }
            Message::Text(text) => return serde_json::from_str(&text).map_err(lost),
            Message::Close(_) => return Err(lost("it was closed")),
            _ => {}
        }
    }
}

fn write(mut out: impl Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(bytes)?;
    out.flush()
}

/// Sends standard input and sizes of the terminal; ends when the connection is lost.
async fn send_input(
    mut writer: SplitSink<Socket, Message>,
    mut input: Option<mpsc::Receiver<Vec<u8>>>,
    tty: bool,
) -> Failure {
    let mut resized = match signal(SignalKind::window_change()) {
        Ok(resized) => Some(resized).filter(|_| tty),
        Err(error) => return failed(error),
    };
    loop {
        let message = tokio::select! {
            piece = next(&mut input) => match piece {
                Some(piece) => Message::binary(piece),
                None => {
                    input = None;
                    text(&ClientFrame::EndOfInput)
                }
            },
            () = changed(&mut resized) => match terminal::size() {
                Some((columns, rows)) => text(&ClientFrame::Resize(columns, rows)),
                None => continue,
            },
        };
        if let Err(error) = writer.send(message).await {
            // The reader may have the program's end still to read.
            sleep(LAST_WORDS).await;
            return lost(error);
        }
    }
}

fn text(frame: &ClientFrame) -> Message {
    Message::text(serde_json::to_string(frame).unwrap_or_default())
}

async fn next(input: &mut Option<mpsc::Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    match input {
        Some(input) => input.recv().await,
        None => std::future::pending().await,
    }
}

async fn changed(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Signals that end this process. In raw mode Ctrl-C is none: it is input of the program.
struct Signals([(Signal, u8); 4]);

impl Signals {
    fn new() -> io::Result<Self> {
        let of = |kind: SignalKind, number: u8| Ok::<_, io::Error>((signal(kind)?, 128 + number));
        Ok(Self([
            of(SignalKind::hangup(), 1)?,
            of(SignalKind::interrupt(), 2)?,
            of(SignalKind::quit(), 3)?,
            of(SignalKind::terminate(), 15)?,
        ]))
    }

    /// The exit code that the next signal means.
    async fn wait(&mut self) -> u8 {
        let Self([hangup, interrupt, quit, terminate]) = self;
        tokio::select! {
            _ = hangup.0.recv() => hangup.1,
            _ = interrupt.0.recv() => interrupt.1,
            _ = quit.0.recv() => quit.1,
            _ = terminate.0.recv() => terminate.1,
        }
    }
}
