//! Carries out what the registry decides: questions go to executors, and answers to whoever has asked.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schema::ids::{Timestamp, Uid, UserName};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::Share;
use super::changes::{Change, Changes};
use super::frame::{self, Hello, Outcome};
use super::registry::{
    Close, ConnectionId, Devices, Effect, Event, Failure, JobId, Key, Lane, Moment, Protocol,
    Refusal, Registry, Service,
};
use crate::limits::{EXECUTOR_ANSWERS, EXECUTOR_FRAMES, Memory};

/// Longest frame that the desktop client takes, in bytes: it ends the connection over a longer one.
const DESKTOP_FRAME: usize = 1024 * 1024;
/// Longest frame that is sent to a browser, in bytes.
const BROWSER_FRAME: usize = 8 * 1024 * 1024;
/// How long jobs may still take at the end of the service. With the goodbyes that follow it is less than what requests have to end
/// (`server::Limits::shutdown`), and what is recorded of the jobs is still written (`mcp::record_calls`).
const DRAIN: Duration = Duration::from_secs(4);

/// The longest that an executor is sent, in bytes.
fn longest_frame(service: Service) -> usize {
    match service {
        Service::Browser => BROWSER_FRAME,
        Service::Computer => DESKTOP_FRAME,
    }
}

/// Who has connected, and from where.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct About {
    /// The user's name.
    pub user: UserName,
    /// Where it comes from.
    pub address: Option<IpAddr>,
    /// Which of the user's tokens it has shown.
    pub token: i64,
    /// What it calls itself in its request.
    pub user_agent: String,
    /// When it connected.
    pub since: Timestamp,
    /// Under which name, and at which port, it has found the service.
    pub host: Option<String>,
}

/// An executor that is connected.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Connected {
    /// Its connection.
    pub connection: ConnectionId,
    /// Whose it is.
    pub key: Key,
    /// Who has connected.
    pub about: Arc<About>,
    /// How it speaks.
    pub protocol: Protocol,
    /// Its name, version and platform, when it has said so.
    pub client: Option<[String; 3]>,
    /// What its user calls it, when it has said so.
    pub label: Option<String>,
    /// How many tool calls are at it.
    pub calls: usize,
    /// Number of tool calls since it connected, those at it included.
    pub calls_total: u64,
    /// How many answers came too late.
    pub late: u64,
}

/// An answer, and who gave it.
#[derive(Debug)]
pub struct Answer {
    /// The executor's connection.
    pub connection: ConnectionId,
    /// What it has made of the question.
    pub outcome: Outcome,
    /// What it takes of the memory for all of them.
    pub share: Share,
}

/// Why a question has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// What became of it.
    Failed(Failure),
    /// It is longer than so many bytes, which is all that the executor takes.
    TooLong(usize),
}

/// What a connection is told.
#[derive(Debug)]
pub(super) enum Order {
    /// To send this.
    Send(String),
    /// To ask this, under a number.
    Ask(u64, String),
}

/// What comes to a connection.
pub(super) struct Orders {
    /// What to send, one after the other.
    pub(super) frames: mpsc::Receiver<Order>,
    /// That it is to end, which waits for nothing that is being sent.
    pub(super) close: oneshot::Receiver<Close>,
}

/// Most changes of a connection whose questions are not answered.
const GOING: usize = 64;

struct Socket {
    service: Service,
    about: Arc<About>,
    hello: Option<Box<Hello>>,
    orders: mpsc::Sender<Order>,
    close: oneshot::Sender<Close>,
    changes: Arc<Changes>,
    /// Changes whose questions are not answered, by their number.
    going: BTreeMap<u64, Arc<Change>>,
}

/// What a job waits for.
#[derive(Default)]
struct Waiter {
    turn: Option<oneshot::Sender<Result<(), Refusal>>>,
    answer: Option<oneshot::Sender<Result<Answer, Failure>>>,
    /// What it asks, until that is sent.
    question: Option<String>,
    /// The change that it belongs to.
    change: Option<Arc<Change>>,
}

#[derive(Default)]
struct State {
    registry: Registry,
    numbers: u64,
    sockets: BTreeMap<ConnectionId, Socket>,
    jobs: HashMap<JobId, Waiter>,
}

struct Inner {
    state: Mutex<State>,
    begin: Instant,
    /// Something is due earlier than was thought.
    earlier: Notify,
    /// A job has left.
    left: Notify,
    news: Mutex<HashMap<Key, watch::Sender<()>>>,
    memory: Memory<Uid>,
}

/// The executors of all users. Clones share them.
#[derive(Clone)]
pub struct Hub(Arc<Inner>);

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

impl Default for Hub {
    fn default() -> Self {
        Self(Arc::new(Inner {
            state: Mutex::default(),
            begin: Instant::now(),
            earlier: Notify::new(),
            left: Notify::new(),
            news: Mutex::default(),
            memory: Memory::new(&EXECUTOR_ANSWERS),
        }))
    }
}

impl Hub {
    /// A hub whose connections have greater numbers than `first`.
    pub(crate) fn numbering_from(first: u64) -> Self {
        let hub = Self::default();
        hub.lock().numbers = first;
        hub
    }

    /// Keeps the times of jobs and executors, until `shutdown`. Then nobody new comes in, and all connections end when the jobs at
    /// them have ended, or at the end of their time: executors of the first generation do not come back by themselves, so they are
    /// the last to be sent away.
    pub async fn run(self, shutdown: CancellationToken) {
        let _ = shutdown.run_until_cancelled(self.keep_time()).await;
        self.apply(Event::Closing);
        let drained = async {
            tokio::select! {
                () = self.keep_time() => {}
                () = self.idle() => {}
            }
        };
        let _ = timeout(DRAIN, drained).await;
        let connections: Vec<_> = self.lock().sockets.keys().copied().collect();
        for connection in connections {
            self.dismiss(connection, Close::Restart);
        }
    }

    /// Until no job is at an executor any more.
    async fn idle(&self) {
        while !self.lock().registry.is_idle() {
            // One that leaves before this waits is remembered.
            self.0.left.notified().await;
        }
    }

    async fn keep_time(&self) {
        loop {
            let earlier = self.0.earlier.notified();
            let due = self.lock().registry.due_at();
            match due {
                Some(due) => tokio::select! {
                    () = earlier => {}
                    () = sleep_until(self.0.begin + due.0) => self.apply(Event::Due),
                },
                None => earlier.await,
            }
        }
    }

    /// The executors that are connected, oldest connection first.
    pub fn connected(&self) -> Vec<Connected> {
        let state = self.lock();
        let all = state.registry.presences();
        all.filter_map(|presence| state.describe(&presence))
            .collect()
    }

    /// Those of one user and service, the one that is asked first.
    pub fn of_key(&self, key: &Key) -> Vec<Connected> {
        let state = self.lock();
        let all = state.registry.of_key(key);
        all.filter_map(|presence| state.describe(&presence))
            .collect()
    }

    /// For how long new executors of one user and service are refused, because two of them keep displacing each other.
    pub fn refused_for(&self, key: &Key) -> Option<Duration> {
        let now = self.now();
        let until = self.lock().registry.refused_until(now, key)?;
        Some(until.since(now))
    }

    /// When executors of one user and service come or go.
    pub fn news(&self, key: Key) -> News {
        let mut all = self.0.news();
        let sender = all
            .entry(key.clone())
            .or_insert_with(|| watch::Sender::new(()));
        let receiver = sender.subscribe();
        drop(all);
        News {
            hub: self.clone(),
            key,
            receiver,
        }
    }

    /// Wakes those that wait for news: executors at another replica have come or gone, of a user and service, or of any.
    pub(crate) fn say_changed(&self, key: Option<&Key>) {
        let all = self.0.news();
        for (of, sender) in all.iter() {
            if key.is_none_or(|key| key == of) {
                sender.send_replace(());
            }
        }
    }

    /// Waits for room in memory for an answer of so many bytes that an executor of a user at another replica has given.
    pub(crate) async fn reserve(&self, user: &Uid, bytes: usize) -> Share {
        Share::reserve(&self.0.memory, user, bytes).await
    }

    /// Ends a connection.
    pub fn dismiss(&self, connection: ConnectionId, close: Close) {
        self.apply(Event::Dismissed { connection, close });
    }

    /// Ends all connections and calls with a token of a user that is no longer valid, or one before it.
    pub fn revoke(&self, user: &Uid, token: i64) {
        let user = user.clone();
        self.apply(Event::Revoked { user, token });
    }

    /// Waits for an executor, one of `devices`, and for the turn there. `token` is which of the user's tokens the client has shown.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn enter(
        &self,
        key: Key,
        token: i64,
        lane: Lane,
        devices: Devices,
    ) -> Result<Job, Refusal> {
        let (sender, turn) = oneshot::channel();
        let service = key.service;
        let id = {
            let mut state = self.lock();
            let id = JobId(state.number());
            let waiter = Waiter {
                turn: Some(sender),
                ..Waiter::default()
            };
            state.jobs.insert(id, waiter);
            id
        };
        let job = Job {
            hub: self.clone(),
            id,
            service,
        };
        self.apply(Event::Entered {
            job: id,
            key,
            token,
            lane,
            devices,
        });
        // The sender goes with the job, which is here.
        turn.await.unwrap_or(Err(Refusal::NotConnected))?;
        Ok(job)
    }

    /// An executor has connected: what to tell it comes through the channel.
    pub(super) fn connect(&self, key: Key, about: About) -> (ConnectionId, Orders) {
        let (orders, frames) = EXECUTOR_FRAMES.queue();
        let (close, closed) = oneshot::channel();
        let (address, token) = (about.address, about.token);
        let connection = {
            let mut state = self.lock();
            let connection = ConnectionId(state.number());
            let socket = Socket {
                service: key.service,
                about: Arc::new(about),
                hello: None,
                orders,
                close,
                changes: Arc::default(),
                going: BTreeMap::new(),
            };
            state.sockets.insert(connection, socket);
            connection
        };
        self.apply(Event::Connected {
            connection,
            key,
            address,
            token,
        });
        let orders = Orders {
            frames,
            close: closed,
        };
        (connection, orders)
    }

    pub(super) fn introduce(&self, connection: ConnectionId, hello: Box<Hello>) {
        let instance = hello.instance.clone();
        let first = match self.lock().sockets.get_mut(&connection) {
            Some(socket) if socket.hello.is_none() => {
                let welcome = frame::welcome(longest_frame(socket.service));
                let _ = socket.orders.try_send(Order::Send(welcome));
                socket.hello = Some(hello);
                true
            }
            _ => false,
        };
        let protocol = Protocol::Introduced { instance };
        self.apply(match first {
            true => Event::Introduced {
                connection,
                protocol,
            },
            // It is the same for as long as it is connected. This is as good as an answer to nothing, and counts as one.
            false => Event::Answered { connection, id: 0 },
        });
    }

    pub(super) fn answered(
        &self,
        connection: ConnectionId,
        id: u64,
        outcome: Outcome,
        share: Share,
    ) {
        let answer = Answer {
            connection,
            outcome,
            share,
        };
        self.carry_out(Event::Answered { connection, id }, Some(answer));
    }

    pub(super) fn silent(&self, connection: ConnectionId, heard: Instant) {
        let heard = Moment(heard.saturating_duration_since(self.0.begin));
        self.apply(Event::Silent { connection, heard });
    }

    pub(super) fn disconnected(&self, connection: ConnectionId) {
        self.lock().sockets.remove(&connection);
        self.apply(Event::Disconnected { connection });
    }

    pub(super) fn memory(&self) -> &Memory<Uid> {
        &self.0.memory
    }

    fn now(&self) -> Moment {
        Moment(self.0.begin.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply(&self, event: Event) {
        self.carry_out(event, None);
    }

    /// Nothing here waits: what cannot be handed over at once ends the connection.
    fn carry_out(&self, event: Event, mut answer: Option<Answer>) {
        let now = self.now();
        let mut state = self.lock();
        let before = state.registry.due_at();
        if let Event::Answered { connection, id } = event
            && let Some(socket) = state.sockets.get_mut(&connection)
        {
            socket.going.remove(&id);
        }
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for effect in state.registry.apply(now, event) {
                match effect {
                    Effect::Granted { job } => state.turn(job, Ok(())),
                    Effect::Refused { job, why } => state.turn(job, Err(why)),
                    Effect::Completed { job } => {
                        if let Some(answer) = answer.take() {
                            state.answer(job, Ok(answer));
                        }
                    }
                    Effect::Failed { job, why } => state.answer(job, Err(why)),
                    Effect::Write {
                        job,
                        connection,
                        id,
                    } => {
                        if !state.write(job, connection, id) {
                            let close = Close::Slow;
                            events.push_back(Event::Dismissed { connection, close });
                        }
                    }
                    Effect::Cancel { connection, id } => state.cancel(connection, id),
                    Effect::Close { connection, close } => state.close(connection, close),
                    Effect::Changed { key } => {
                        if let Some(sender) = self.0.news().get(&key) {
                            sender.send_replace(());
                        }
                    }
                }
            }
        }
        let due = state.registry.due_at();
        drop(state);
        if due.is_some_and(|due| before.is_none_or(|before| due < before)) {
            self.0.earlier.notify_one();
        }
    }
}

impl Inner {
    fn news(&self) -> MutexGuard<'_, HashMap<Key, watch::Sender<()>>> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What somebody hears of the executors of one user and service.
pub struct News {
    hub: Hub,
    key: Key,
    receiver: watch::Receiver<()>,
}

impl News {
    /// Waits until executors have come or gone since this was last asked for.
    pub async fn changed(&mut self) {
        // The sender is there for as long as this is.
        let _ = self.receiver.changed().await;
    }
}

impl Drop for News {
    fn drop(&mut self) {
        let mut all = self.hub.0.news();
        if all
            .get(&self.key)
            .is_some_and(|sender| sender.receiver_count() <= 1)
        {
            all.remove(&self.key);
        }
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn describe(&self, presence: &super::registry::Presence<'_>) -> Option<Connected> {
        let socket = self.sockets.get(&presence.connection)?;
        let hello = socket.hello.as_ref();
        Some(Connected {
            connection: presence.connection,
            key: presence.key.clone(),
            about: Arc::clone(&socket.about),
            protocol: presence.protocol.clone(),
            client: hello.map(|hello| {
                let client = &hello.client;
                [&client.name, &client.version, &client.platform].map(Clone::clone)
            }),
            label: hello.map(|hello| hello.label.clone()),
            calls: presence.jobs,
            calls_total: presence.admitted,
            late: presence.late,
        })
    }

    fn turn(&mut self, job: JobId, turn: Result<(), Refusal>) {
        let waiter = self.jobs.get_mut(&job);
        if let Some(sender) = waiter.and_then(|waiter| waiter.turn.take()) {
            let _ = sender.send(turn);
        }
    }

    fn answer(&mut self, job: JobId, answer: Result<Answer, Failure>) {
        let waiter = self.jobs.get_mut(&job);
        if let Some(sender) = waiter.and_then(|waiter| waiter.answer.take()) {
            let _ = sender.send(answer);
        }
    }

    /// Whether the connection takes it.
    fn write(&mut self, job: JobId, connection: ConnectionId, id: u64) -> bool {
        let Some(waiter) = self.jobs.get_mut(&job) else {
            return true;
        };
        let change = waiter.change.take();
        let Some(question) = waiter.question.take() else {
            return true;
        };
        let Some(socket) = self.sockets.get_mut(&connection) else {
            return false;
        };
        let sent = socket.orders.try_send(Order::Ask(id, question)).is_ok();
        socket
            .going
            .extend(change.filter(|_| sent).map(|it| (id, it)));
        // As many others still go on.
        if socket.going.len() > GOING {
            socket.going.pop_first();
        }
        sent
    }

    fn cancel(&mut self, connection: ConnectionId, id: u64) {
        if let Some(socket) = self.sockets.get(&connection)
            && let Some(hello) = &socket.hello
            && hello.features.iter().any(|feature| feature == "cancel")
        {
            let _ = socket.orders.try_send(Order::Send(frame::cancel(id)));
        }
    }

    fn close(&mut self, connection: ConnectionId, close: Close) {
        if let Some(socket) = self.sockets.remove(&connection) {
            let _ = socket.close.send(close);
        }
    }
}

/// A tool call at an executor. It leaves when it is dropped.
#[derive(Debug)]
pub struct Job {
    hub: Hub,
    id: JobId,
    service: Service,
}

impl Job {
    /// The executor's connection, while it is there, and its instance, if it has introduced itself.
    pub fn executor(&self) -> Option<(ConnectionId, Option<String>)> {
        let state = self.hub.lock();
        let connection = state.registry.executor_of(self.id)?;
        let hello = state.sockets.get(&connection)?.hello.as_ref();
        Some((connection, hello.map(|hello| hello.instance.clone())))
    }

    /// What is begun at the executor that may change what others see there. Nothing, once it is gone.
    pub fn changes(&self) -> Arc<Changes> {
        let state = self.hub.lock();
        let connection = state.registry.executor_of(self.id);
        let socket = connection.and_then(|connection| state.sockets.get(&connection));
        socket.map_or_else(Arc::default, |socket| Arc::clone(&socket.changes))
    }

    /// Asks the executor, and waits for the answer at most `limit` long.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn ask(
        &mut self,
        tool: &str,
        params: &RawValue,
        limit: Duration,
    ) -> Result<Answer, Ask> {
        self.ask_for(None, tool, params, limit).await
    }

    /// Asks as [`Self::ask`] does; the change goes on at least until the executor has answered, however late.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn ask_for(
        &mut self,
        change: Option<Arc<Change>>,
        tool: &str,
        params: &RawValue,
        limit: Duration,
    ) -> Result<Answer, Ask> {
        let longest = longest_frame(self.service);
        let question = frame::question(tool, params);
        if question.len() + frame::NUMBER > longest {
            return Err(Ask::TooLong(longest));
        }
        let (sender, answer) = oneshot::channel();
        if let Some(waiter) = self.hub.lock().jobs.get_mut(&self.id) {
            waiter.question = Some(question);
            waiter.change = change;
            waiter.answer = Some(sender);
        }
        let job = self.id;
        self.hub.apply(Event::Asked { job, limit });
        let answer = answer.await.unwrap_or(Err(Failure::Lost));
        answer.map_err(Ask::Failed)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.hub.lock().jobs.remove(&self.id);
        self.hub.apply(Event::Left { job: self.id });
        self.hub.0.left.notify_one();
    }
}
