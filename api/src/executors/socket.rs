//! The connection of one executor.
//!
//! Reading never waits for anything else: a desktop client gives up when its pings have no answer, and what answers them is reading.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use schema::ids::Uid;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::error::Error;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::budget::{Share, Unfinished};
use super::frame::{self, Frame};
use super::hub::{About, Hub, Order};
use super::registry::{Close, ConnectionId, Key};
use super::traffic::{Traffic, Watched};
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
/// How long a message may wait for room in memory.
const STARVED: Duration = Duration::from_secs(5);
/// How long it may take to end.
const GOODBYE: Duration = Duration::from_secs(2);

type Reader<S> = SplitStream<WebSocketStream<Watched<S>>>;
type Writer<S> = SplitSink<WebSocketStream<Watched<S>>, Message>;

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
    orders: mpsc::Receiver<Order>,
}

/// An executor is about to connect.
pub(crate) fn expect(hub: Hub, key: Key, about: About) -> Expected {
    let user = key.user.clone();
    let (connection, orders) = hub.connect(key, about);
    Expected {
        registered: Registered {
            hub,
            connection,
            user,
        },
        orders,
    }
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
    let unfinished = Unfinished::new(registered.hub.budget(), &registered.user);
    let io = Watched::new(io, traffic.clone(), unfinished.clone());
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let (mut writer, mut reader) = socket.split();
    let end = tokio::select! {
        end = registered.read(&mut reader, &unfinished) => end,
        end = write(&mut writer, orders, &traffic) => end,
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
    async fn read<S>(&self, reader: &mut Reader<S>, unfinished: &Unfinished) -> End
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        while let Some(message) = reader.next().await {
            let share = match &message {
                // It may have come between the parts of another one.
                Ok(Message::Ping(bytes) | Message::Pong(bytes)) => {
                    unfinished.without(bytes.len() + CONTROL);
                    Share::default()
                }
                _ => unfinished.whole(),
            };
            match message {
                Ok(Message::Text(text)) => {
                    let read = work_on(text.len(), move || Frame::read(&text)).await;
                    match read.unwrap_or(Frame::Other) {
                        Frame::Answer { id, outcome } => {
                            self.hub.answered(self.connection, id, outcome, share);
                        }
                        Frame::Hello(hello) => self.hub.introduce(self.connection, hello),
                        // The empty text with which the extension says that it is there, among others.
                        Frame::Other => {}
                    }
                }
                Ok(Message::Close(_)) => return End::Over,
                Ok(_) => {}
                Err(Error::Capacity(_)) => return End::TooLong,
                Err(_) => return End::Over,
            }
        }
        End::Over
    }

    /// Looks whether it is silent: what follows from that comes as an order. And whether there is no room for its message.
    async fn watch(&self, traffic: &Traffic, unfinished: &Unfinished) -> End {
        loop {
            sleep(LOOK).await;
            if (unfinished.starved()).is_some_and(|since| since.elapsed() > STARVED) {
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
    mut orders: mpsc::Receiver<Order>,
    traffic: &Traffic,
) -> End
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut ping = interval_at(Instant::now() + PING, PING);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let message = tokio::select! {
            order = orders.recv() => match order {
                Some(Order::Send(text)) => Message::Text(text.into()),
                Some(Order::Ask(id, question)) => {
                    Message::Text(frame::numbered(id, &question).into())
                }
                Some(Order::Close(close)) => return End::Told(close),
                // There was no room for saying why.
                None => return End::Told(Close::Slow),
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
