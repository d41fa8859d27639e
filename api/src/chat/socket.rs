//! The WebSocket of one page.

use std::future::ready;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use schema::metric;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::error::Error;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_util::sync::CancellationToken;

use super::fragments::Fragments;
use super::hub::Opened;
use super::protocol::{EndCode, PageFrame, RefusalCode, ServerFrame};
use super::talk::{Cursor, PageFrameSource};
use crate::limits::{FREE, Incoming, Metered, Share};
use crate::long_work::work_on;

/// Longest frame of a page, in bytes.
const LONGEST: usize = 1024 * 1024;
/// Bytes that are kept for reading and for writing.
const BUFFER: usize = 4096;
/// Bytes of the head and mask of a ping or pong.
const CONTROL: usize = 6;
/// Time between two pings.
const PING: Duration = Duration::from_secs(25);
/// A page without a byte for this time is gone.
const SILENT: Duration = Duration::from_secs(80);
/// Longest time for a page to take a frame.
const SLOW: Duration = Duration::from_secs(20);
/// Changes within this time are sent together.
const GATHER: Duration = Duration::from_millis(40);
/// Longest time of a goodbye.
const GOODBYE: Duration = Duration::from_secs(2);

type Writer<S> = SplitSink<WebSocketStream<Metered<S>>, Message>;
type Reader<S> = SplitStream<WebSocketStream<Metered<S>>>;

/// Serves a page to its end. `io` is a connection on which the handshake is done; `dead` ends with the page's session.
pub(crate) async fn serve<S>(
    io: S,
    opened: Opened,
    resumes: Option<(String, u64)>,
    dead: impl Future<Output = ()> + Send,
    shutdown: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let _open = metric::HTTP_STREAMS.hold(&["chat"]);
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_message_size(Some(LONGEST))
        .max_frame_size(Some(LONGEST));
    let incoming = Incoming::new(&opened.chats().frames, opened.user());
    let io = Metered::new(io, incoming.clone());
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let (writer, mut reader) = socket.split();
    let mut page = Page {
        memory: opened.chats().kept.share(opened.user()),
        writer,
        opened,
        incoming,
        cursor: Cursor::new(resumes),
        heard: Instant::now(),
    };
    let end = tokio::select! {
        end = page.run(&mut reader) => end,
        () = dead => Some(EndCode::SessionEnded),
        () = shutdown.cancelled() => Some(EndCode::ServiceStopping),
    };
    let Some(end) = end else { return };
    let goodbye = page.say_goodbye(end, &mut reader);
    let _ = timeout(GOODBYE, goodbye).await;
}

struct Page<S> {
    writer: Writer<S>,
    opened: Opened,
    /// The frame that is read.
    incoming: Incoming,
    /// Memory of the frame that is sent.
    memory: Share,
    cursor: Cursor,
    heard: Instant,
}

/// What a page is to be shown next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    /// A greeting, even when it has missed nothing.
    Hello,
    /// What has changed.
    Changes,
    /// Nothing.
    Nothing,
}

/// What became of the next frame of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// There was none: the page has all.
    All,
    /// It was sent.
    Frame,
    /// The connection ends; without a code when the page is gone.
    End(Option<EndCode>),
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Page<S> {
    /// Runs to the end; `None` when the page is gone.
    async fn run(&mut self, reader: &mut Reader<S>) -> Option<EndCode> {
        let mut changes = self.opened.room.changes();
        let mut ends = self.opened.room.ends();
        let incoming = self.incoming.clone();
        let mut overdue = pin!(incoming.wait_until_overdue());
        let mut ping = interval(PING);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut due = Due::Hello;
        loop {
            // After each frame the others are looked at, too: a page that is slower than an answer grows still stops it.
            let next = tokio::select! {
                message = reader.next() => {
                    self.heard = Instant::now();
                    self.take_message(message?).await
                }
                () = ready(()), if due != Due::Nothing => {
                    let shown = self.show_next(due == Due::Hello).await;
                    due = if shown == Shown::All { Due::Nothing } else { Due::Changes };
                    if let Shown::End(end) = shown { Some(end) } else { None }
                }
                changed = changes.changed(), if due == Due::Nothing => {
                    changed.ok()?;
                    sleep(GATHER).await;
                    changes.borrow_and_update();
                    due = Due::Changes;
                    None
                }
                end = async { ends.wait_for(Option::is_some).await.map_or(None, |end| *end) } => {
                    let rest = async { while self.show_next(false).await == Shown::Frame {} };
                    let _ = timeout(SLOW, rest).await;
                    Some(end)
                }
                () = &mut overdue => Some(Some(EndCode::Slow)),
                _ = ping.tick() => match self.heard.elapsed() > SILENT {
                    true => Some(None),
                    false => self.send_message(Message::Ping(Bytes::new())).await,
                },
            };
            if let Some(end) = next {
                return end;
            }
        }
    }

    /// Sends the next frame.
    async fn show_next(&mut self, hello: bool) -> Shown {
        let cursor = &mut self.cursor;
        let room = &self.opened.room;
        let Some(frame) = room.read(|talk| talk.next_frame(cursor, hello)) else {
            // To shrink it needs nothing.
            let _ = self.memory.resize(0);
            return Shown::All;
        };
        let end = match timeout(SLOW, self.make_frame(frame)).await {
            Ok(Some(text)) => self.send_text(text).await,
            Ok(None) => Some(None),
            Err(_) => Some(Some(EndCode::Busy)),
        };
        end.map_or(Shown::Frame, Shown::End)
    }

    /// Makes a frame when the user's part has memory for it. A short one needs none.
    async fn make_frame(&mut self, frame: PageFrameSource) -> Option<String> {
        let weight = frame.weight();
        let memory = weight.saturating_sub(FREE);
        if self.memory.resize(memory).is_err() {
            self.memory.wait_for(memory).await;
        }
        let user = self.opened.user().clone();
        work_on(&user, weight, move || frame.into_json()).await
    }

    async fn send_text(&mut self, text: String) -> Option<Option<EndCode>> {
        for fragment in Fragments::default().cut(text.into(), true) {
            let end = self.send_message(fragment).await;
            if end.is_some() {
                return end;
            }
        }
        None
    }

    async fn send_message(&mut self, message: Message) -> Option<Option<EndCode>> {
        match timeout(SLOW, self.writer.send(message)).await {
            Ok(Ok(())) => None,
            Ok(Err(_)) => Some(None),
            Err(_) => Some(Some(EndCode::Slow)),
        }
    }

    async fn send_frame(&mut self, frame: &ServerFrame<'_>) -> Option<Option<EndCode>> {
        let text = serde_json::to_string(frame).ok()?;
        self.send_message(Message::text(text)).await
    }

    /// Takes a message of the page. `Some` at the end.
    async fn take_message(&mut self, message: Result<Message, Error>) -> Option<Option<EndCode>> {
        let _memory = self.incoming.take_memory(message.as_ref().ok(), CONTROL);
        let text = match message {
            Ok(Message::Text(text)) => text,
            Ok(Message::Ping(_) | Message::Pong(_)) => return None,
            Ok(Message::Binary(_)) => return self.refuse_unreadable("it is binary").await,
            Err(Error::Capacity(_)) => {
                let _ = self.refuse_unreadable("it is longer than 1 MiB").await;
                return Some(None);
            }
            Ok(_) | Err(_) => return Some(None),
        };
        let length = text.len();
        let user = self.opened.user().clone();
        let parse = move || serde_json::from_str::<PageFrame>(&text);
        let Some(parsed) = work_on(&user, length, parse).await else {
            return Some(None);
        };
        match parsed {
            Ok(PageFrame::Ping) => self.send_frame(&ServerFrame::Pong).await,
            Ok(frame) => {
                let client_id = match &frame {
                    PageFrame::Send { client_id, .. } => Some(client_id.clone()),
                    _ => None,
                };
                match self.opened.send_frame(frame).await {
                    Ok(()) => None,
                    Err((code, message)) => self.refuse_frame(client_id, code, message).await,
                }
            }
            Err(_) => {
                self.refuse_unreadable("it is no frame of /api/chat.schema.json")
                    .await
            }
        }
    }

    async fn refuse_unreadable(&mut self, cause: &str) -> Option<Option<EndCode>> {
        let message = format!("the frame cannot be read: {cause}");
        self.refuse_frame(None, RefusalCode::InvalidMessage, message)
            .await
    }

    async fn refuse_frame(
        &mut self,
        client_id: Option<String>,
        code: RefusalCode,
        message: String,
    ) -> Option<Option<EndCode>> {
        let client_id = client_id.map(|id| id.chars().take(64).collect());
        self.send_frame(&ServerFrame::Refused {
            client_id,
            code,
            message,
        })
        .await
    }

    async fn say_goodbye(&mut self, code: EndCode, reader: &mut Reader<S>) {
        let (close, message) = goodbye(code);
        let end = ServerFrame::End { code, message };
        let text = serde_json::to_string(&end).unwrap_or_default();
        let frame = CloseFrame {
            code: close.into(),
            reason: message.into(),
        };
        let said = async {
            self.writer.send(Message::text(text)).await?;
            self.writer.send(Message::Close(Some(frame))).await
        };
        if said.await.is_ok() {
            while let Some(Ok(_)) = reader.next().await {}
        }
    }
}

/// The close code of an end, and a sentence.
fn goodbye(code: EndCode) -> (u16, &'static str) {
    match code {
        EndCode::SessionEnded => (4401, "your session has ended; sign in again"),
        EndCode::Deleted => (4404, "the conversation was deleted"),
        EndCode::ServiceStopping => (1001, "the service is stopping; the page connects again"),
        EndCode::Slow => (4408, "the page reads too slowly; it connects again"),
        EndCode::Busy => (
            1013,
            "the service has no memory left for this conversation; the page connects again in a moment",
        ),
        EndCode::ChatOff => (4409, "an administrator has switched chat off"),
        EndCode::Failed => (1011, "the conversation cannot be kept; reload the page"),
    }
}

#[cfg(test)]
mod tests;
