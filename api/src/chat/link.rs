//! The connection to the agent for one conversation, kept while the conversation is in use.

mod send;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use http::HeaderValue;
use http::header::AUTHORIZATION;
use schema::adapter::ChatFeature;
use schema::home::conversations::ConversationId;
use schema::ids::{Timestamp, Uid};
use secrecy::ExposeSecret;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::Error;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::hub::Subject;
use super::pico::{AgentFrame, LONGEST_FRAME, parse_frame};
use super::protocol::AgentState;
use super::room::Room;
use super::target::{ChatPlace, find_target, has_address};
use crate::auth::Account;
use crate::deps::Deps;
use crate::limits::{CHAT_OUTGOING, Incoming, Metered, Rate, Received};
use send::{Unsent, send_ping};

/// Longest time to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// Longest time to send a message.
const SEND: Duration = Duration::from_secs(30);
/// Time between two pings.
const PING: Duration = Duration::from_secs(25);
/// A connection without a byte for this time is given up.
const SILENT: Duration = Duration::from_secs(90);
/// Time without a connection after which the chat of a ready agent counts as unreachable.
const UNREACHABLE: Duration = Duration::from_secs(30);
/// Shortest and longest wait before the next attempt.
const BACK_OFF: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(8)];
/// Longest time between two looks at the state of an agent that is not connected, and of one that is.
const LOOK: Duration = Duration::from_secs(5);
/// Shortest time between two such looks.
const LOOK_GAP: Duration = Duration::from_millis(200);
/// Bytes that are kept for reading and for writing.
const BUFFER: usize = 4096;
/// Bytes of the head of a ping or pong.
const CONTROL: usize = 2;
/// Frames of an agent in a second, and at once; a faster agent waits.
const FRAMES: (u32, u32) = (100, 1000);
/// Bytes of frames of an agent in a second, and at once.
const BYTES: (u32, u32) = (8 * 1024 * 1024, 64 * 1024 * 1024);

/// Work for the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outgoing {
    /// Send the message of this entry.
    Message(u64),
    /// Send the text that stops the turn.
    Stop,
}

impl Outgoing {
    /// Returns the entry of its message.
    fn entry(self) -> Option<u64> {
        match self {
            Self::Message(entry) => Some(entry),
            Self::Stop => None,
        }
    }
}

/// News of a link.
#[derive(Debug)]
pub(super) enum LinkNews {
    /// It stands.
    Connected {
        /// Abilities of the agent's version.
        features: BTreeSet<ChatFeature>,
        /// Start of the agent.
        started: Option<Timestamp>,
    },
    /// The agent is another start than the one before.
    Restarted(Option<Timestamp>),
    /// It does not stand.
    Away {
        /// The agent's state.
        state: AgentState,
        /// A sentence about it.
        message: Option<String>,
    },
    /// A frame of the agent, and the memory that it takes.
    Frame(AgentFrame, Received),
    /// A frame of the agent was too long.
    TooLong,
    /// The message of this entry is with the agent, or is no longer to be sent.
    Left(u64),
    /// The message of this entry cannot be sent.
    Failed(u64, String),
    /// The message of this entry has not reached the agent.
    Unsent(Option<u64>),
}

/// The time for which the chat of an agent that is ready has not answered.
#[derive(Debug, Default)]
struct Silence {
    since: Option<Instant>,
}

impl Silence {
    /// Returns the state to report before the next attempt; `ready`: the agent can be connected to.
    fn judge(&mut self, state: AgentState, ready: bool) -> AgentState {
        if !ready {
            self.since = None;
            return state;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        match since.elapsed() >= UNREACHABLE {
            true => AgentState::Unreachable,
            false => state,
        }
    }
}

/// A frame or change of a link.
#[derive(Debug)]
pub(super) struct LinkEvent {
    /// The conversation.
    pub(super) conversation: ConversationId,
    /// The number of its link: a conversation that was closed and opened again has another.
    pub(super) link: u64,
    /// What has happened.
    pub(super) news: LinkNews,
}

/// Rates at which a user's agent may send frames, in all conversations together.
#[derive(Debug)]
pub(super) struct AgentRates {
    frames: Rate,
    bytes: Rate,
}

impl Default for AgentRates {
    fn default() -> Self {
        Self {
            frames: Rate::new(FRAMES.0, FRAMES.1),
            bytes: Rate::new(BYTES.0, BYTES.1),
        }
    }
}

impl AgentRates {
    /// Counts a frame of so many bytes; returns the time to wait before the next is read.
    fn count_frame(&mut self, bytes: usize) -> Duration {
        self.frames.take(1).max(self.bytes.take(bytes))
    }
}

/// The conversation's end of its link. Dropping it ends the link.
#[derive(Debug)]
pub(super) struct LinkHandle {
    /// Its number.
    pub(super) number: u64,
    outgoing: mpsc::Sender<Outgoing>,
    _open: DropGuard,
}

impl LinkHandle {
    /// Gives the link work; false when it has too much or has ended.
    pub(super) fn post(&self, work: Outgoing) -> bool {
        self.outgoing.try_send(work).is_ok()
    }
}

/// What all links of a user share.
#[derive(Clone)]
pub(super) struct Links {
    deps: Deps,
    account: Account,
    events: mpsc::Sender<LinkEvent>,
    rates: Arc<Mutex<AgentRates>>,
    numbers: Arc<AtomicU64>,
}

impl Links {
    /// Makes the links of a user, whose events go to `events`.
    pub(super) fn new(deps: &Deps, account: &Account, events: mpsc::Sender<LinkEvent>) -> Self {
        Self {
            deps: Arc::clone(deps),
            account: account.clone(),
            events,
            rates: Arc::default(),
            numbers: Arc::default(),
        }
    }

    /// Opens the link of a conversation.
    pub(super) fn open(&self, id: &ConversationId, room: &Arc<Room>) -> LinkHandle {
        let (outgoing, receiver) = CHAT_OUTGOING.queue();
        let ended = CancellationToken::new();
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let link = Link {
            all: self.clone(),
            id: id.clone(),
            number,
            room: Arc::downgrade(room),
            ended: ended.clone(),
        };
        self.deps.tasks.spawn(link.keep(receiver));
        LinkHandle {
            number,
            outgoing,
            _open: ended.drop_guard(),
        }
    }
}

/// The link of one conversation.
struct Link {
    all: Links,
    id: ConversationId,
    number: u64,
    room: Weak<Room>,
    /// The conversation is no longer in use.
    ended: CancellationToken,
}

type Socket = WebSocketStream<Metered<TcpStream>>;
type Reader = SplitStream<Socket>;
type Writer = SplitSink<Socket, Message>;

/// Connects to an agent. What it sends takes memory of the user's part while it is read.
async fn connect_agent(
    deps: &Deps,
    uid: &Uid,
    place: &ChatPlace,
    id: &ConversationId,
) -> Result<(Socket, Incoming), Error> {
    let incoming = Incoming::new(&deps.chats.frames, uid);
    let connecting = async {
        let stream = TcpStream::connect(place.address).await?;
        stream.set_nodelay(true)?;
        let address = format!("ws://{}{}?session_id={id}", place.address, place.path);
        let mut request = address.into_client_request()?;
        let token = format!("Bearer {}", place.token.expose_secret());
        let mut token = HeaderValue::try_from(token).map_err(|_| Error::AttackAttempt)?;
        token.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, token);
        let config = WebSocketConfig::default()
            .read_buffer_size(BUFFER)
            .write_buffer_size(BUFFER)
            .max_message_size(Some(LONGEST_FRAME))
            .max_frame_size(Some(LONGEST_FRAME));
        let stream = Metered::new(stream, incoming.clone());
        let (socket, _) = client_async_with_config(request, stream, Some(config)).await?;
        // The answer to the handshake is no message.
        drop(incoming.take_memory(None, 0));
        Ok(socket)
    };
    match timeout(CONNECT, connecting).await {
        Ok(connected) => connected.map(|socket| (socket, incoming)),
        Err(_) => Err(Error::Io(std::io::ErrorKind::TimedOut.into())),
    }
}

impl Link {
    /// Keeps the connection until the conversation is no longer in use.
    async fn keep(self, mut outgoing: mpsc::Receiver<Outgoing>) {
        let mut wait = BACK_OFF[0];
        let (deps, account) = (&self.all.deps, &self.all.account);
        let uid = &account.uid;
        let mut ticks = deps.status_ticks.clone();
        let mut silence = Silence::default();
        let mut failure = String::new();
        loop {
            ticks.borrow_and_update();
            let target = find_target(deps, uid).await;
            let (state, message, place) = match target {
                Ok(target) => (target.state, target.message, target.place),
                Err(error) => {
                    tracing::debug!(%error, "the agent of a chat cannot be looked up");
                    (AgentState::Connecting, None, None)
                }
            };
            let state = silence.judge(state, place.is_some());
            if state == AgentState::Unreachable && deps.chats.may_warn(uid, Subject::Agent) {
                let user = &account.name;
                tracing::warn!(
                    %user,
                    error = failure,
                    "the chat of an agent that is ready does not answer; `agentyard restart container/{user}` may help"
                );
            }
            if self
                .report(LinkNews::Away { state, message })
                .await
                .is_none()
            {
                return;
            }
            if let Some(place) = place {
                let connected = match has_address(deps, uid, place.address.ip()).await {
                    true => connect_agent(deps, uid, &place, &self.id).await,
                    false => Err(Error::Io(std::io::ErrorKind::AddrNotAvailable.into())),
                };
                match connected {
                    Ok(connected) => {
                        silence = Silence::default();
                        let begun = Instant::now();
                        let ended = self.run(connected, place, &mut outgoing).await;
                        // Before what was not sent: it waits until the connection stands again.
                        if ended.is_none() || self.report_away().await.is_none() {
                            return;
                        }
                        if let Some(Some(unsent)) = ended
                            && self.report(unsent).await.is_none()
                        {
                            return;
                        }
                        if begun.elapsed() > BACK_OFF[1] {
                            wait = BACK_OFF[0];
                        }
                    }
                    Err(error) => {
                        failure = error.to_string();
                        tracing::debug!(%error, "the agent's chat cannot be connected to");
                    }
                }
            }
            let waited = match state {
                AgentState::Connecting | AgentState::Unreachable => wait,
                _ => LOOK,
            };
            wait = (wait * 2).min(BACK_OFF[1]);
            let looks = async {
                sleep(LOOK_GAP).await;
                tokio::select! {
                    () = sleep(waited) => {}
                    _ = ticks.changed() => {}
                }
            };
            tokio::pin!(looks);
            loop {
                tokio::select! {
                    () = &mut looks => break,
                    message = outgoing.recv() => {
                        // It was given while the connection broke.
                        let Some(message) = message else { return };
                        let unsent = LinkNews::Unsent(message.entry());
                        if self.report(unsent).await.is_none() {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Reports to the user's task. `None` when the conversation is no longer in use.
    async fn report(&self, news: LinkNews) -> Option<()> {
        if self.ended.is_cancelled() {
            return None;
        }
        let event = LinkEvent {
            conversation: self.id.clone(),
            link: self.number,
            news,
        };
        self.all.events.send(event).await.ok()
    }

    async fn report_away(&self) -> Option<()> {
        let (state, message) = (AgentState::Connecting, None);
        self.report(LinkNews::Away { state, message }).await
    }

    /// Runs a connection to its end; returns news of the message that it could not send. `None` when the conversation is no longer in
    /// use.
    async fn run(
        &self,
        (socket, incoming): (Socket, Incoming),
        place: ChatPlace,
        outgoing: &mut mpsc::Receiver<Outgoing>,
    ) -> Option<Option<LinkNews>> {
        let started = place.started;
        self.report(LinkNews::Connected {
            features: place.features,
            started,
        })
        .await?;
        let (mut writer, mut reader) = socket.split();
        let mut unsent = None;
        // An agent that takes nothing is still read, and one that sends nothing gets messages.
        let ended = tokio::select! {
            ended = self.read_frames(&mut reader, &incoming) => ended,
            ended = self.write_messages(&mut writer, outgoing, &mut unsent) => ended,
            ended = self.watch_agent(started) => ended,
            () = incoming.wait_until_overdue() => Some(()),
            () = self.ended.cancelled() => None,
        };
        match ended {
            Some(()) => Some(unsent),
            None => {
                let _ = timeout(Duration::from_secs(1), writer.close()).await;
                None
            }
        }
    }

    /// Reports what the agent sends. `None` when the conversation is no longer in use.
    async fn read_frames(&self, reader: &mut Reader, incoming: &Incoming) -> Option<()> {
        let mut heard = Instant::now();
        loop {
            let Ok(message) = timeout_at(heard + SILENT, reader.next()).await else {
                return Some(());
            };
            heard = Instant::now();
            let length = match &message {
                Some(Ok(message)) => message.len(),
                _ => 0,
            };
            let whole = message.as_ref().and_then(|message| message.as_ref().ok());
            let memory = incoming.take_memory(whole, CONTROL);
            match message {
                // The next one is taken from the socket after this one is reported.
                Some(Ok(frame @ (Message::Text(_) | Message::Binary(_)))) => {
                    let frame = parse_frame(&self.all.account.uid, frame.into_data()).await;
                    self.report(LinkNews::Frame(frame, memory)).await?;
                }
                Some(Ok(Message::Close(_))) | None => return Some(()),
                Some(Ok(_)) => {}
                Some(Err(Error::Capacity(_))) => {
                    self.report(LinkNews::TooLong).await?;
                    return Some(());
                }
                Some(Err(_)) => return Some(()),
            }
            let wait = {
                let mut rates = self
                    .all
                    .rates
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                rates.count_frame(length)
            };
            if !wait.is_zero() {
                sleep(wait).await;
            }
        }
    }

    /// Sends messages and pings. `None` when the conversation is no longer in use.
    async fn write_messages(
        &self,
        writer: &mut Writer,
        outgoing: &mut mpsc::Receiver<Outgoing>,
        unsent: &mut Option<LinkNews>,
    ) -> Option<()> {
        let mut ping = interval(PING);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                work = outgoing.recv() => {
                    let work = work?;
                    // An unfinished frame is none for the agent.
                    *unsent = Some(LinkNews::Unsent(work.entry()));
                    let prepared = {
                        let mut preparing = pin!(self.prepare(work));
                        loop {
                            tokio::select! {
                                prepared = &mut preparing => break prepared,
                                _ = ping.tick() => if !send_ping(writer).await {
                                    return Some(());
                                }
                            }
                        }
                    };
                    let sent = match prepared {
                        Ok(prepared) => self.send_prepared(writer, prepared).await,
                        Err(unsent) => Err(unsent),
                    };
                    match (sent, work.entry()) {
                        (Err(Unsent::Broken(None)), _) => return Some(()),
                        (Err(Unsent::Broken(Some(cause))), Some(entry)) => {
                            *unsent = Some(LinkNews::Failed(entry, cause));
                            return Some(());
                        }
                        (Err(Unsent::Message(cause)), Some(entry)) => {
                            *unsent = Some(LinkNews::Failed(entry, cause.clone()));
                            self.report(LinkNews::Failed(entry, cause)).await?;
                        }
                        (Ok(()) | Err(Unsent::NotWanted), Some(entry)) => {
                            *unsent = Some(LinkNews::Left(entry));
                            self.report(LinkNews::Left(entry)).await?;
                        }
                        (_, None) => {}
                    }
                    *unsent = None;
                }
                _ = ping.tick() => if !send_ping(writer).await {
                    return Some(());
                }
            }
        }
    }

    /// Reports another start of the agent, and ends when chat is switched off. `None` when the conversation is no longer in use.
    async fn watch_agent(&self, mut started: Option<Timestamp>) -> Option<()> {
        let mut ticks = self.all.deps.status_ticks.clone();
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            look.tick().await;
            if !ticks.has_changed().unwrap_or(false) {
                continue;
            }
            ticks.borrow_and_update();
            match find_target(&self.all.deps, &self.all.account.uid).await {
                Ok(target) if target.state == AgentState::Off => return Some(()),
                Ok(target) => {
                    let seen = target.place.and_then(|place| place.started);
                    if seen.is_some() && seen != started {
                        started = seen;
                        self.report(LinkNews::Restarted(started)).await?;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "the agent of a chat cannot be looked up");
                }
            }
        }
    }
}
