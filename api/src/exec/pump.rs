//! Bytes of a program, from and to its client.

use std::pin::Pin;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::{MissedTickBehavior, interval};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::{ClientFrame, STDERR, STDOUT};
use crate::ports::{ExecControl, ExecOutput, Execution, PortError};

/// Time between two pings, by which a client that has gone is noticed while nothing is read of it.
const PING: Duration = Duration::from_secs(5);

/// Reason for which the traffic ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// The program closed its output.
    Finished,
    /// The client is not there any more.
    Gone,
    /// The service stops.
    Stopping,
    /// The engine does not pass the program's bytes on any more, and why.
    Lost(String),
}

/// Passes bytes on until either side ends.
pub(super) async fn pump<S>(socket: &mut WebSocketStream<S>, program: Execution) -> End
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let Execution {
        input,
        output,
        control,
    } = program;
    let (writer, reader) = socket.split();
    tokio::select! {
        end = pump_output(writer, output) => end,
        () = pump_input(reader, input, control.as_ref()) => End::Gone,
    }
}

async fn pump_output<S>(
    mut writer: SplitSink<&mut WebSocketStream<S>, Message>,
    mut output: ExecOutput,
) -> End
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut ping = interval(PING);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let message = tokio::select! {
            piece = output.next() => match piece {
                Some(Ok((is_error, bytes))) => {
                    let mut marked = BytesMut::with_capacity(bytes.len() + 1);
                    marked.put_u8(if is_error { STDERR } else { STDOUT });
                    marked.put(bytes);
                    Message::Binary(marked.freeze())
                }
                Some(Err(error)) => {
                    let why: &dyn std::fmt::Display = match &error {
                        PortError::EngineUnavailable(cause) | PortError::Failed(cause) => cause,
                        PortError::Unsupported(sentence) => sentence,
                    };
                    return End::Lost(format!("the program was lost: {why}"));
                }
                None => return End::Finished,
            },
            _ = ping.tick() => Message::Ping(Bytes::new()),
        };
        if writer.send(message).await.is_err() {
            return End::Gone;
        }
    }
}

/// Ends when the client has gone.
async fn pump_input<S>(
    mut reader: SplitStream<&mut WebSocketStream<S>>,
    input: Pin<Box<dyn AsyncWrite + Send>>,
    control: &dyn ExecControl,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    // `None` once the program takes no more: what the client still sends is thrown away.
    let mut input = Some(input);
    while let Some(Ok(message)) = reader.next().await {
        match message {
            Message::Binary(bytes) => {
                let Some(into) = &mut input else { continue };
                let written = async {
                    into.write_all(&bytes).await?;
                    into.flush().await
                };
                if written.await.is_err() {
                    input = None;
                }
            }
            Message::Text(text) => match serde_json::from_str(&text) {
                Ok(ClientFrame::Resize(columns, rows)) => control.resize(columns, rows).await,
                Ok(ClientFrame::EndOfInput) => {
                    if let Some(into) = &mut input {
                        let _ = into.shutdown().await;
                    }
                }
                Err(_) => return,
            },
            Message::Close(_) => return,
            _ => {}
        }
    }
}
