//! The task of one user: holds the conversations that are in use, and carries out what they ask for.

mod effects;
mod files;
mod news;
mod pages;
mod save;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use schema::home::conversations::{ConversationId, HeldFolder};
use schema::ids::Timestamp;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::audit::record_messages;
use super::link::{LinkEvent, LinkHandle, Links};
use super::protocol::{AgentState, Conversation, EndCode, PageFrame, RefusalCode};
use super::room::Room;
use super::store::{self, Loaded};
use super::talk::{Now, Talk};
use super::target::chat_of_user;
use crate::auth::Account;
use crate::deps::Deps;
use crate::error::{ApiError, Result};
use crate::limits::{CHAT_FETCHES, CHAT_FETCHES_WAITING, CHAT_LINK_EVENTS, CHAT_ROOMS};
use files::Fetched;
#[cfg(feature = "fuzzing")]
pub(super) use pages::check_message;

/// Time between two looks at what has become due.
const TICK: Duration = Duration::from_millis(500);
/// A conversation without pages and turns is closed after this time.
const IDLE: Duration = Duration::from_secs(30);
/// Time between two counts of messages in the audit trail.
const COUNT: Duration = Duration::from_secs(600);

/// Refusal of one more conversation.
const ROOMS_IN_USE: ApiError = ApiError::Busy {
    retry_after: Duration::from_secs(30),
};

/// A command for the task of a user.
pub(super) enum Command {
    /// A page opens a conversation.
    Open {
        id: ConversationId,
        reply: oneshot::Sender<Result<Arc<Room>>>,
    },
    /// A frame of a page.
    Frame {
        id: ConversationId,
        frame: PageFrame,
        reply: oneshot::Sender<Result<(), (RefusalCode, String)>>,
    },
    /// Another title.
    Rename { id: ConversationId, title: String },
    /// The conversation is to be deleted.
    Close {
        id: ConversationId,
        reply: oneshot::Sender<()>,
    },
}

/// A conversation in use.
struct Used {
    room: Arc<Room>,
    /// Its folder; absent after a failure to write that lost it.
    folder: Option<HeldFolder>,
    link: LinkHandle,
    agent: AgentState,
    message: Option<String>,
    started: Option<Timestamp>,
    meta_changed: bool,
    /// The conversation has got a title by its first message.
    titled: bool,
    idle_since: Instant,
}

/// The task of a user.
pub(super) struct Keeper {
    deps: Deps,
    account: Account,
    commands: mpsc::Receiver<Command>,
    number: u64,
    rooms: BTreeMap<ConversationId, Used>,
    links: Links,
    news: mpsc::Receiver<LinkEvent>,
    fetched: mpsc::Receiver<Fetched>,
    fetched_sender: mpsc::Sender<Fetched>,
    fetches: Arc<Semaphore>,
    fetches_waiting: Arc<Semaphore>,
    sent: VecDeque<Instant>,
    /// Messages that the audit trail does not count yet.
    uncounted: u64,
    /// Time of the newest entry in the audit trail.
    counted: Instant,
}

impl Keeper {
    pub(super) fn new(
        deps: Deps,
        account: Account,
        commands: mpsc::Receiver<Command>,
        number: u64,
    ) -> Self {
        let (events, news) = CHAT_LINK_EVENTS.queue();
        let links = Links::new(&deps, &account, events);
        let (fetched_sender, fetched) = CHAT_FETCHES.queue();
        Self {
            deps,
            account,
            commands,
            number,
            rooms: BTreeMap::new(),
            links,
            news,
            fetched,
            fetched_sender,
            fetches: CHAT_FETCHES.semaphore_of_one(),
            fetches_waiting: CHAT_FETCHES_WAITING.semaphore_of_one(),
            sent: VecDeque::new(),
            uncounted: 0,
            counted: Instant::now(),
        }
    }

    fn now(&self) -> Now {
        Now {
            instant: Instant::now(),
            wall: self.deps.clock.now(),
        }
    }

    /// Serves the user until no conversation is in use, or the service stops.
    pub(super) async fn run(mut self) {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let shutdown = self.deps.shutdown.clone();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                command = self.commands.recv() => match command {
                    Some(command) => self.obey_command(command).await,
                    None => break,
                },
                Some(event) = self.news.recv() => self.take_news(event).await,
                Some(fetched) = self.fetched.recv() => self.take_file(fetched).await,
                _ = tick.tick() => {
                    self.tick().await;
                    if self.rooms.is_empty() && self.deps.chats.leave(&self.account.uid, self.number, &self.commands) {
                        break;
                    }
                }
            }
        }
        self.finish().await;
    }

    /// Writes what is not written, and lets the pages go.
    async fn finish(&mut self) {
        let now = self.now();
        let ids: Vec<ConversationId> = self.rooms.keys().cloned().collect();
        for id in &ids {
            self.save_room(id, true, now).await;
            if let Some(used) = self.rooms.get(id) {
                used.room.end(EndCode::ServiceStopping);
            }
        }
        self.rooms.clear();
        self.count_messages().await;
    }

    async fn obey_command(&mut self, command: Command) {
        match command {
            Command::Open { id, reply } => {
                let opened = self.open_room(&id).await;
                let _ = reply.send(opened);
            }
            Command::Frame { id, frame, reply } => {
                let outcome = self.take_page_frame(&id, frame).await;
                let _ = reply.send(outcome);
            }
            Command::Rename { id, title } => {
                if let Some(used) = self.rooms.get_mut(&id) {
                    used.room.change(|talk| talk.rename(title));
                }
            }
            Command::Close { id, reply } => {
                if let Some(used) = self.rooms.remove(&id) {
                    used.room.end(EndCode::Deleted);
                }
                let _ = reply.send(());
            }
        }
    }

    async fn open_room(&mut self, id: &ConversationId) -> Result<Arc<Room>> {
        if let Some(used) = self.rooms.get(id) {
            return Ok(Arc::clone(&used.room));
        }
        if self.rooms.len() >= CHAT_ROOMS.each() {
            return Err(ROOMS_IN_USE);
        }
        let loaded = store::hold_conversation(&self.deps.files, &self.account, id).await?;
        let Loaded {
            folder,
            meta,
            entries,
            earlier,
        } = loaded;
        let epoch = uuid::Uuid::new_v4().simple().to_string();
        let conversation = Conversation::new(id.clone(), meta);
        let talk = Talk::load(epoch, conversation, entries, earlier, self.now());
        let memory = self.deps.chats.kept.share(&self.account.uid);
        let room = Room::new(talk, memory);
        if room.is_starved() {
            return Err(ROOMS_IN_USE);
        }
        let used = Used {
            link: self.links.open(id, &room),
            room,
            folder: Some(folder),
            agent: AgentState::Connecting,
            message: None,
            started: None,
            meta_changed: false,
            titled: false,
            idle_since: Instant::now(),
        };
        if let Ok((Some(chat), _)) = chat_of_user(&self.deps, &self.account.uid).await {
            used.room.change(|talk| talk.set_features(chat.features));
        }
        let room = Arc::clone(&used.room);
        self.rooms.insert(id.clone(), used);
        Ok(room)
    }

    async fn tick(&mut self) {
        let now = self.now();
        for used in self.rooms.values() {
            used.room.change(|talk| talk.tick(now));
        }
        self.settle_rooms(now).await;
        let ids: Vec<ConversationId> = self.rooms.keys().cloned().collect();
        for id in &ids {
            self.save_room(id, false, now).await;
        }
        let mut idle = Vec::new();
        for (id, used) in &mut self.rooms {
            // The pages hold the room, too.
            let has_page = Arc::strong_count(&used.room) > 1;
            let comes = matches!(
                used.agent,
                AgentState::Connected
                    | AgentState::Connecting
                    | AgentState::Unreachable
                    | AgentState::Starting
            );
            // Messages for an agent that does not come wait on the disk.
            let works = used.room.read(|talk| {
                let waits = comes && talk.count_waiting() > 0;
                talk.is_running() || waits || talk.fetches_files()
            });
            if has_page || works {
                used.idle_since = now.instant;
            } else if now.instant.duration_since(used.idle_since) >= IDLE {
                idle.push(id.clone());
            }
        }
        for id in idle {
            self.save_room(&id, true, now).await;
            self.rooms.remove(&id);
        }
        if self.rooms.is_empty() || self.counted.elapsed() >= COUNT {
            self.count_messages().await;
        }
    }

    /// Records in the audit trail how many messages the user has sent.
    async fn count_messages(&mut self) {
        self.counted = Instant::now();
        if self.uncounted > 0 && record_messages(&self.deps, &self.account, self.uncounted).await {
            self.uncounted = 0;
        }
    }
}
