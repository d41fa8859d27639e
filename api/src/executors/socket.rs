//! The connection of one executor.
//!
//! Reading never waits for anything else: a desktop client gives up when its pings have no answer, and what answers them is reading.

use std::pin::{Pin, pin};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use schema::ids::Uid;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::error::Error;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::Share;
use super::frame::{self, Frame};
use super::hub::{About, Hub, Order, Orders};
use super::registry::{Close, ConnectionId, Key};
use super::traffic::{Traffic, Watched};
use crate::limits::Incoming;
use crate::long_work::work_on;

/// Longest message, in bytes; Chrome sends one frame.
const LONGEST: usize = 32 * 1024 * 1024;
/// Bytes that are kept for reading and for writing, for each connection: the library's own would be 128 KiB.
const BUFFER: usize = 4096;
/// How often an executor is asked whether it is there.
const PING: Duration = Duration::from_secs(25);
/// How often it is looked at whether it has been silent for too long.
const LOOK: Duration = Duration::from_secs(5);
/// How long it may take nothing at all of what is sent to it.
const SLOW: Duration = Duration::from_secs(10);
/// Bytes of the head of a ping or pong.
const CONTROL: usize = 6;
/// How long a message may wait for room in memory. Whoever has asked has a limit of their own and hears then that there was no answer;
/// the connection is not to blame, and executors of the first generation do not come back by themselves. But nothing else is read
/// meanwhile, no ping either: after about so long the desktop client gives up by itself.
const STARVED: Duration = Duration::from_secs(30);
/// How long it may take to end.
const GOODBYE: Duration = Duration::from_secs(2);

type Reader<S> = SplitStream<WebSocketStream<Watched<S>>>;
type Writer<S> = SplitSink<WebSocketStream<Watched<S>>, Message>;

/// A text that is being parsed, long ones on another thread, for which they may have to wait: reading goes on, as it answers pings.
type Parsing = Pin<Box<dyn Future<Output = (Frame, Share)> + Send>>;

/// What was parsed; never when there is nothing to be.
async fn parsed(parsing: &mut Option<Parsing>) -> (Frame, Share) {
    let Some(text) = parsing else {
        return std::future::pending().await;
    };
    let parsed = text.await;
    *parsing = None;
    parsed
}

/// Why this side ends a connection.
enum End {
    /// The hub wants it.
    Told(Close),
    /// A message is too long.
    TooLong,
    /// It is over already.
    Over,
}

/// An executor that may be asked, whose handshake is not answered yet: whoever has the answer is sure to be there. It goes when this
/// is dropped.
pub(crate) struct Expected {
    registered: Registered,
    orders: Orders,
}

/// Executors keep displacing each other, so a newcomer is refused for this long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flapping(pub(crate) Duration);

/// An executor is about to connect.
///
/// # Errors
/// [`Flapping`]: it would displace another executor, and that happened too often.
pub(crate) fn expect(hub: Hub, key: Key, about: About) -> Result<Expected, Flapping> {
    let (user, slot) = (key.user.clone(), key.clone());
    let (connection, mut orders) = hub.connect(key, about);
    match orders.close.try_recv() {
        Ok(Close::Flapping) => {
            return Err(Flapping(hub.refused_for(&slot).unwrap_or_default()));
        }
        // The handshake is answered first: what cannot be read here is said there.
        Ok(close) => orders.close = ready(close),
        Err(_) => {}
    }
    Ok(Expected {
        registered: Registered {
            hub,
            connection,
            user,
        },
        orders,
    })
}

/// A channel that has the reason already.
fn ready(close: Close) -> oneshot::Receiver<Close> {
    let (sender, receiver) = oneshot::channel();
    let _ = sender.send(close);
    receiver
}

/// Serves an executor to its end. `io` is a connection on which the handshake is done.
pub(crate) async fn serve<S>(io: S, Expected { registered, orders }: Expected)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_message_size(Some(LONGEST))
        .max_frame_size(Some(LONGEST));
    let traffic = Traffic::new();
    let unfinished = Incoming::new(registered.hub.memory(), &registered.user);
    let io = Watched::new(io, traffic.clone(), unfinished.clone());
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let (mut writer, mut reader) = socket.split();
    let Orders { frames, close } = orders;
    let end = tokio::select! {
        biased;
        // Whoever is gone from the hub is told nothing more.
        told = close => End::Told(told.unwrap_or(Close::Slow)),
        end = registered.read(&mut reader, &unfinished) => end,
        end = write(&mut writer, frames, &traffic) => end,
        end = registered.watch(&traffic, &unfinished) => end,
    };
    drop(registered);
    let _ = timeout(GOODBYE, say_goodbye(end, &mut writer, &mut reader)).await;
}

/// The entry of the connection; it goes with it.
struct Registered {
    hub: Hub,
    connection: ConnectionId,
    user: Uid,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.hub.disconnected(self.connection);
    }
}

impl Registered {
    async fn read<S>(&self, reader: &mut Reader<S>, unfinished: &Incoming) -> End
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut parsing = None;
        let end = loop {
            let message = tokio::select! {
                biased;
                (frame, share) = parsed(&mut parsing) => {
                    self.take(frame, share);
                    continue;
                }
                message = reader.next() => message,
            };
            let Some(message) = message else {
                break End::Over;
            };
            let share = unfinished.take_memory(message.as_ref().ok(), CONTROL);
            match message {
                // With it the extension says that it is there.
                Ok(Message::Text(text)) if text.is_empty() => {}
                Ok(Message::Text(text)) => {
                    // One after the other, as they came: only what is no text overtakes a long one.
                    self.finish(&mut parsing).await;
                    let user = self.user.clone();
                    parsing = Some(Box::pin(async move {
                        let frame = work_on(&user, text.len(), move || Frame::read(&text)).await;
                        (frame.unwrap_or(Frame::Other), share)
                    }));
                }
                Ok(Message::Close(_)) => break End::Over,
                Ok(_) => {}
                Err(Error::Capacity(_)) => break End::TooLong,
                Err(_) => break End::Over,
            }
        };
        self.finish(&mut parsing).await;
        end
    }

    /// Takes what is being parsed.
    async fn finish(&self, parsing: &mut Option<Parsing>) {
        if parsing.is_some() {
            let (frame, share) = parsed(parsing).await;
            self.take(frame, share);
        }
    }

    fn take(&self, frame: Frame, share: Share) {
        match frame {
            Frame::Answer { id, outcome } => {
                self.hub.answered(self.connection, id, outcome, share);
            }
            Frame::Hello(hello) => self.hub.introduce(self.connection, hello),
            Frame::Other => {}
        }
    }

    /// Looks whether it is silent: what follows from that comes as an order. And whether its message comes to no end, or has no room.
    async fn watch(&self, traffic: &Traffic, unfinished: &Incoming) -> End {
        loop {
            sleep(LOOK).await;
            let starved = unfinished.starved();
            let starves = starved.is_some_and(|since| since.elapsed() > STARVED);
            if starves || unfinished.is_overdue() {
                return End::Told(Close::Slow);
            }
            let heard = traffic.received();
            if heard.elapsed() > PING {
                self.hub.silent(self.connection, heard);
            }
        }
    }
}

async fn write<S>(
    writer: &mut Writer<S>,
    mut frames: mpsc::Receiver<Order>,
    traffic: &Traffic,
) -> End
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut ping = interval_at(Instant::now() + PING, PING);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let message = tokio::select! {
            order = frames.recv() => match order {
                Some(Order::Send(text)) => Message::Text(text.into()),
                Some(Order::Ask(id, question)) => {
                    Message::Text(frame::numbered(id, &question).into())
                }
                // It is told to end.
                None => std::future::pending().await,
            },
            _ = ping.tick() => Message::Ping(Bytes::new()),
        };
        let mut sending = pin!(writer.send(message));
        loop {
            match timeout(SLOW, &mut sending).await {
                Ok(Ok(())) => break,
                Ok(Err(_)) => return End::Over,
                // A long message over a slow line goes on.
                Err(_) if traffic.sent().elapsed() < SLOW => {}
                Err(_) => return End::Told(Close::Slow),
            }
        }
    }
}

async fn say_goodbye<S>(end: End, writer: &mut Writer<S>, reader: &mut Reader<S>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (code, reason) = match end {
        End::Told(close) => (close.code(), close.reason()),
        End::TooLong => (CloseCode::Size.into(), "a message is too long"),
        End::Over => {
            let _ = writer.close().await;
            return;
        }
    };
    let bye = Message::Text(frame::bye(reason).into());
    let frame = CloseFrame {
        code: code.into(),
        reason: reason.into(),
    };
    let told = async {
        writer.send(bye).await?;
        writer.send(Message::Close(Some(frame))).await
    };
    if told.await.is_ok() {
        // Until the other side has said goodbye, too.
        while let Some(Ok(_)) = reader.next().await {}
    }
}
