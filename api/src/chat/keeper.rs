//! The task of one user: holds the conversations that are in use, and carries out what they ask for.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use schema::home::conversations::{ConversationId, HeldFolder, Meta};
use schema::home::workspace::FileError;
use schema::ids::Timestamp;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::audit::record_messages;
use super::fetch::{Wanted, fetch};
use super::link::{LinkNews, Outgoing, open_link, post};
use super::pico::message_frame;
use super::protocol::{
    AgentState, Conversation, EndCode, NoticeCode, PageFrame, RefusalCode, SentAttachment, SentFile,
};
use super::room::Room;
use super::store::{self, Changes, Loaded};
use super::talk::{Effect, Now, Talk};
use super::target::chat_of_user;
use crate::auth::Account;
use crate::deps::Deps;
use crate::error::{ApiError, Result};
use crate::quota;

/// Time between two looks at what has become due.
const TICK: Duration = Duration::from_millis(500);
/// A conversation without pages and turns is closed after this time.
const IDLE: Duration = Duration::from_secs(30);
/// Most conversations of a user in use at once.
const MOST_ROOMS: usize = 16;
/// News of links that wait.
const NEWS: usize = 64;
/// Most files that are fetched at once.
const FETCHES: usize = 2;
/// Most files that wait to be fetched, those under way included.
const FETCHES_WAITING: usize = 100;
/// Most messages of a user within [`RATE_TIME`].
const RATE: usize = 20;
const RATE_TIME: Duration = Duration::from_secs(10);
/// Time between two counts of messages in the audit trail.
const COUNT: Duration = Duration::from_secs(600);
/// Longest id that a page gives a message.
const LONGEST_CLIENT_ID: usize = 64;

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

struct Fetched {
    id: ConversationId,
    entry: u64,
    index: usize,
    file: SentFile,
}

/// A conversation in use.
struct Used {
    room: Arc<Room>,
    /// Its folder; absent after a failure to write that lost it.
    folder: Option<HeldFolder>,
    link: mpsc::Sender<Outgoing>,
    agent: AgentState,
    message: Option<String>,
    started: Option<Timestamp>,
    /// Lines that could not be written yet.
    unwritten: Vec<String>,
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
    news: mpsc::Receiver<(ConversationId, LinkNews)>,
    news_sender: mpsc::Sender<(ConversationId, LinkNews)>,
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
        let (news_sender, news) = mpsc::channel(NEWS);
        let (fetched_sender, fetched) = mpsc::channel(NEWS);
        Self {
            deps,
            account,
            commands,
            number,
            rooms: BTreeMap::new(),
            news,
            news_sender,
            fetched,
            fetched_sender,
            fetches: Arc::new(Semaphore::new(FETCHES)),
            fetches_waiting: Arc::new(Semaphore::new(FETCHES_WAITING)),
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
                    Some(command) => self.obey(command).await,
                    None => break,
                },
                Some((id, news)) = self.news.recv() => self.take_news(&id, news).await,
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
            self.save(id, true, now).await;
            if let Some(used) = self.rooms.get(id) {
                used.room.end(EndCode::ServiceStopping);
            }
        }
        self.rooms.clear();
        self.count_messages().await;
    }

    async fn obey(&mut self, command: Command) {
        match command {
            Command::Open { id, reply } => {
                let opened = self.open(&id).await;
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

    async fn open(&mut self, id: &ConversationId) -> Result<Arc<Room>> {
        if let Some(used) = self.rooms.get(id) {
            return Ok(Arc::clone(&used.room));
        }
        if self.rooms.len() >= MOST_ROOMS {
            return Err(ApiError::Busy {
                retry_after: Duration::from_secs(30),
            });
        }
        let loaded = store::hold(&self.deps.files, &self.account, id).await?;
        let Loaded {
            folder,
            meta,
            lines,
            earlier,
        } = loaded;
        let epoch = uuid::Uuid::new_v4().simple().to_string();
        let conversation = Conversation::new(id.clone(), meta);
        let talk = Talk::load(epoch, conversation, &lines, earlier, self.now());
        let used = Used {
            room: Room::new(talk),
            folder: Some(folder),
            link: open_link(&self.deps, &self.account.uid, id, &self.news_sender),
            agent: AgentState::Connecting,
            message: None,
            started: None,
            unwritten: Vec::new(),
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

    async fn take_page_frame(
        &mut self,
        id: &ConversationId,
        frame: PageFrame,
    ) -> Result<(), (RefusalCode, String)> {
        let now = self.now();
        let outcome = match frame {
            PageFrame::Ping => Ok(()),
            PageFrame::Stop => match self.rooms.get(id) {
                Some(used) => used.room.change(|talk| talk.stop(now)),
                None => Err(gone()),
            },
            PageFrame::Send {
                client_id,
                text,
                attachments,
            } => self.accept(id, client_id, text, attachments, now).await,
        };
        self.settle(now).await;
        outcome
    }

    async fn accept(
        &mut self,
        id: &ConversationId,
        client_id: String,
        text: String,
        asked: Vec<SentAttachment>,
        now: Now,
    ) -> Result<(), (RefusalCode, String)> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        if client_id.is_empty()
            || client_id.len() > LONGEST_CLIENT_ID
            || !client_id.bytes().all(plain)
        {
            let text = "client_id has 1 to 64 letters, digits and hyphens";
            return Err((RefusalCode::InvalidMessage, text.to_owned()));
        }
        if asked.len() > super::protocol::MOST_ATTACHMENTS {
            let most = super::protocol::MOST_ATTACHMENTS;
            let text =
                format!("a message has at most {most} attachments; send the rest with another one");
            return Err((RefusalCode::BadAttachment, text));
        }
        let Some(used) = self.rooms.get(id) else {
            return Err(gone());
        };
        let room = Arc::clone(&used.room);
        if room.change(|talk| talk.acknowledge(&client_id, now)) {
            return Ok(());
        }
        while self
            .sent
            .front()
            .is_some_and(|at| now.instant.duration_since(*at) > RATE_TIME)
        {
            self.sent.pop_front();
        }
        if self.sent.len() >= RATE {
            let text = format!(
                "at most {RATE} messages in {} s; wait a moment",
                RATE_TIME.as_secs()
            );
            return Err((RefusalCode::TooFast, text));
        }
        quota::Room::of(&self.deps, &self.account.uid)
            .await
            .and_then(|room| room.map_or(Ok(()), |mut room| room.take(text.len() as u64)))
            .map_err(|error| match error {
                error @ ApiError::QuotaExceeded { .. } => {
                    (RefusalCode::QuotaExceeded, error.to_string())
                }
                error => (RefusalCode::TooFast, error.to_string()),
            })?;
        let asked = asked
            .into_iter()
            .map(|file| (file.path, file.picture))
            .collect();
        let pictures = room.talk().sends_pictures();
        let looked = store::look_up(&self.deps.files, &self.account, asked, pictures).await;
        let attachments = looked.map_err(|cause| (RefusalCode::BadAttachment, cause))?;
        room.change(|talk| talk.accept(client_id, text, attachments, now))?;
        self.sent.push_back(now.instant);
        self.uncounted += 1;
        Ok(())
    }

    async fn take_news(&mut self, id: &ConversationId, news: LinkNews) {
        let now = self.now();
        let Some(used) = self.rooms.get_mut(id) else {
            return;
        };
        match news {
            LinkNews::Connected { features, started } => {
                let restarted = used.started.is_some() && started != used.started;
                used.started = started;
                (used.agent, used.message) = (AgentState::Connected, None);
                used.room.change(|talk| {
                    talk.set_features(features);
                    talk.agent_connected(restarted, now);
                });
            }
            LinkNews::Restarted(started) => {
                used.started = started;
                used.room.change(|talk| talk.agent_restarted(now));
            }
            LinkNews::Away { state, message } => {
                (used.agent, used.message) = (state, message);
                used.room.change(|talk| talk.agent_disconnected(now));
                if state == AgentState::Off {
                    self.close(id, EndCode::ChatOff).await;
                    return;
                }
            }
            LinkNews::Frame(frame) => used.room.change(|talk| talk.take_frame(frame, now)),
            LinkNews::Unsent(entry) => {
                used.room.change(|talk| match entry {
                    Some(entry) => talk.take_back(entry, now),
                    None => talk.lose_stop(),
                });
            }
            LinkNews::TooLong => used.room.change(|talk| {
                let text = "The agent sent a message that is longer than 2 MiB; it is left out.";
                talk.remark(NoticeCode::Cut, text, now);
            }),
        }
        self.settle(now).await;
    }

    /// Writes a conversation and lets it go, with its pages.
    async fn close(&mut self, id: &ConversationId, code: EndCode) {
        let now = self.now();
        self.save(id, true, now).await;
        if let Some(used) = self.rooms.remove(id) {
            used.room.end(code);
        }
    }

    async fn take_file(&mut self, fetched: Fetched) {
        let now = self.now();
        let Fetched {
            id,
            entry,
            index,
            file,
        } = fetched;
        if let Some(used) = self.rooms.get(&id) {
            used.room
                .change(|talk| talk.set_file(entry, index, file, now));
        }
        self.save(&id, true, now).await;
    }

    async fn tick(&mut self) {
        let now = self.now();
        for used in self.rooms.values() {
            used.room.change(|talk| talk.tick(now));
        }
        self.settle(now).await;
        let ids: Vec<ConversationId> = self.rooms.keys().cloned().collect();
        for id in &ids {
            self.save(id, false, now).await;
        }
        let mut idle = Vec::new();
        for (id, used) in &mut self.rooms {
            // The pages hold the room, too.
            let has_page = Arc::strong_count(&used.room) > 1;
            let talk = used.room.talk();
            let comes = matches!(
                used.agent,
                AgentState::Connected | AgentState::Connecting | AgentState::Starting
            );
            // Messages for an agent that does not come wait on the disk.
            let waits = comes && talk.count_waiting() > 0;
            let works = talk.is_running() || waits || talk.fetches_files();
            drop(talk);
            if has_page || works {
                used.idle_since = now.instant;
            } else if now.instant.duration_since(used.idle_since) >= IDLE {
                idle.push(id.clone());
            }
        }
        for id in idle {
            self.save(&id, true, now).await;
            self.rooms.remove(&id);
        }
        if self.rooms.is_empty() || self.counted.elapsed() >= COUNT {
            self.count_messages().await;
        }
    }

    /// Tells conversations of each other's turns, gives the agent what may go, and carries out what that asks for.
    async fn settle(&mut self, now: Now) {
        let ids: Vec<ConversationId> = self.rooms.keys().cloned().collect();
        for id in &ids {
            let waits = self.waits_for_another(id);
            if let Some(used) = self.rooms.get(id) {
                let (agent, message) = (used.agent, used.message.clone());
                used.room.change(|talk| {
                    talk.set_agent(agent, message, waits);
                    talk.dispatch(now);
                });
            }
            self.carry_out(id, now).await;
        }
    }

    /// Reports that the turn of another conversation comes first.
    fn waits_for_another(&self, id: &ConversationId) -> bool {
        let Some(own) = self.rooms.get(id) else {
            return false;
        };
        let own = own.room.talk().turn_so_far();
        let others = self.rooms.iter().filter(|(other, _)| *other != id);
        let mut others = others.map(|(_, used)| used.room.talk().turn_so_far());
        match own {
            None => others.any(|other| other.is_some()),
            Some((_, true)) => false,
            Some((since, false)) => {
                others.any(|other| other.is_some_and(|(begun, _)| begun < since))
            }
        }
    }

    async fn carry_out(&mut self, id: &ConversationId, now: Now) {
        let Some(used) = self.rooms.get(id) else {
            return;
        };
        let room = Arc::clone(&used.room);
        let effects = room.change(Talk::take_effects);
        let mut saved = true;
        for effect in effects {
            match effect {
                Effect::Save => saved = self.save(id, true, now).await,
                Effect::SaveMeta { titled } => {
                    if let Some(used) = self.rooms.get_mut(id) {
                        used.meta_changed = true;
                        used.titled |= titled;
                    }
                }
                Effect::Deliver {
                    entry,
                    text,
                    pictures,
                } => {
                    let outcome = match saved {
                        true => self.deliver(id, entry, &text, pictures).await,
                        false => Err("The message could not be saved, so it was not sent: the disk is full, this conversation has reached 64 MiB, or the agent keeps the service from writing. Begin a new conversation, or ask your administrator.".to_owned()),
                    };
                    if let Err(cause) = outcome {
                        room.change(|talk| talk.fail_message(entry, cause, now));
                    }
                }
                Effect::Stop => {
                    if let Some(used) = self.rooms.get(id) {
                        let text = message_frame("stop", "/stop", &[]);
                        if !post(&used.link, Outgoing { entry: None, text }) {
                            room.change(Talk::lose_stop);
                        }
                    }
                }
                Effect::Fetch { entry, index, path } => self.fetch(id, entry, index, path),
            }
        }
    }

    async fn deliver(
        &self,
        id: &ConversationId,
        entry: u64,
        text: &str,
        pictures: Vec<String>,
    ) -> Result<(), String> {
        let pictures = store::read_pictures(&self.deps.files, &self.account, pictures).await?;
        let frame = Outgoing {
            entry: Some(entry),
            text: message_frame(&entry.to_string(), text, &pictures),
        };
        let link = self.rooms.get(id).map(|used| &used.link);
        match link.is_some_and(|link| post(link, frame)) {
            true => Ok(()),
            false => Err("The agent takes no messages at the moment. Send it again.".to_owned()),
        }
    }

    fn fetch(&self, id: &ConversationId, entry: u64, index: usize, path: String) {
        let Some(used) = self.rooms.get(id) else {
            return;
        };
        let Some(mut file) = used.room.talk().file(entry, index) else {
            return;
        };
        let Ok(place) = Arc::clone(&self.fetches_waiting).try_acquire_owned() else {
            file.error = Some("the agent sent too many files at once".to_owned());
            let now = self.now();
            used.room
                .change(|talk| talk.set_file(entry, index, file, now));
            return;
        };
        let wanted = Wanted {
            id: id.clone(),
            entry,
            index,
            path,
            file,
        };
        let (deps, account) = (Arc::clone(&self.deps), self.account.clone());
        let (sender, fetches) = (self.fetched_sender.clone(), Arc::clone(&self.fetches));
        self.deps.tasks.spawn(async move {
            let _place = place;
            let Ok(_turn) = fetches.acquire_owned().await else {
                return;
            };
            let stopped = deps.shutdown.clone();
            let (id, entry, index) = (wanted.id.clone(), wanted.entry, wanted.index);
            let fetched = tokio::select! {
                () = stopped.cancelled() => return,
                file = fetch(&deps, &account, wanted) => Fetched { id, entry, index, file },
            };
            let _ = sender.send(fetched).await;
        });
    }

    /// Writes the entries that have changed: all, or those at rest. False when they could not be written.
    async fn save(&mut self, id: &ConversationId, all: bool, now: Now) -> bool {
        let Some(used) = self.rooms.get_mut(id) else {
            return false;
        };
        let lines = used.room.change(|talk| talk.take_lines(all, now));
        used.unwritten.extend(lines);
        let meta = used.meta_changed.then(|| meta_of(&used.room));
        if used.unwritten.is_empty() && meta.is_none() {
            return true;
        }
        let Some(folder) = used.folder.take() else {
            if let Some(used) = self.rooms.remove(id) {
                used.room.end(EndCode::Failed);
            }
            return false;
        };
        let changes = Changes {
            lines: used.unwritten.clone(),
            meta,
            titled: used.titled,
        };
        let (folder, written) = match store::write(&self.deps.files, folder, changes).await {
            Ok(written) => written,
            Err(error) => {
                tracing::warn!(%error, "a conversation cannot be written");
                return false;
            }
        };
        let Some(used) = self.rooms.get_mut(id) else {
            return false;
        };
        used.folder = Some(folder);
        match written {
            Ok(()) => {
                used.unwritten.clear();
                used.meta_changed = false;
                used.titled = false;
                true
            }
            Err(error) => {
                if matches!(error, FileError::TooLarge { .. }) {
                    // A new attempt would fail, too.
                    used.unwritten.clear();
                }
                if !matches!(error, FileError::Full(_)) {
                    tracing::warn!(user = %self.account.name, %error, "a conversation cannot be written");
                }
                limit(&mut used.unwritten);
                false
            }
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

/// Keeps the newest lines of those that could not be written.
fn limit(lines: &mut Vec<String>) {
    /// Most bytes of lines that wait to be written.
    const MOST: usize = 8 * 1024 * 1024;
    while lines.iter().map(String::len).sum::<usize>() > MOST {
        lines.remove(0);
    }
}

fn meta_of(room: &Room) -> Meta {
    let talk = room.talk();
    let conversation = talk.conversation();
    Meta {
        title: conversation.title.clone(),
        created_at: conversation.created_at,
        last_used_at: conversation.last_used_at,
    }
}

fn gone() -> (RefusalCode, String) {
    (
        RefusalCode::InvalidMessage,
        "the conversation is no longer open; reload the page".to_owned(),
    )
}
