//! One conversation with an agent: entries, the running turn, and the interpretation of the agent's frames. Does no input or output.

mod frames;
mod record;
mod turn;
mod view;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(super) use tests::frames_of_all_kinds;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use schema::adapter::ChatFeature;
use schema::ids::Timestamp;
use tokio::time::Instant;

use super::protocol::{
    AgentState, Attachment, Body, Conversation, Entry, LONGEST_TEXT, MOST_WAITING, MessageStatus,
    NoticeCode, RefusalCode, SentFile, State,
};
pub(crate) use record::Log;
use turn::Running;
pub(super) use view::Cursor;

/// Most entries that are kept in memory.
const KEPT: usize = 200;
/// Most bytes of text of the kept entries.
const KEPT_BYTES: usize = 4 * 1024 * 1024;
/// Most entries that an agent makes after one message.
const MOST_MADE: usize = 1000;
/// Most removals that are kept in memory.
const KEPT_REMOVALS: usize = 200;
/// Most ids of messages that are remembered.
const KNOWN_MESSAGES: usize = 1000;
/// A changed entry is written after this time without a further change.
const SETTLED: Duration = Duration::from_secs(1);
/// Longest title that is made of a message, in characters.
const TITLE: usize = 60;
/// The text that stops a turn.
const STOP: &str = "/stop";

/// A moment, on the clock that goes on and on the wall.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    /// For durations.
    pub(super) instant: Instant,
    /// For entries.
    pub(super) wall: Timestamp,
}

/// Work that a conversation asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    /// Write what has changed, before what follows.
    Save,
    /// Send a message to the agent.
    Deliver {
        /// Its entry.
        entry: u64,
        /// Its text, with the paths of files that are no pictures.
        text: String,
        /// Paths of its pictures in the workspace.
        pictures: Vec<String>,
    },
    /// Send the text that stops the turn.
    Stop,
    /// Fetch a file of the agent.
    Fetch {
        /// Its entry.
        entry: u64,
        /// Its place among the entry's files.
        index: usize,
        /// Its path at the agent.
        path: String,
    },
    /// Save the conversation's times, and its title if it has a new one.
    SaveMeta { titled: bool },
}

#[derive(Debug)]
struct Item {
    n: u64,
    entry: Entry,
    /// Time of the first change that is not written.
    unsaved: Option<Instant>,
    /// Time of the newest change.
    changed: Instant,
    /// The agent's id of the message.
    message: Option<String>,
    /// It stands for the answer to come.
    placeholder: bool,
    /// Its text was longer.
    cut: bool,
}

/// A conversation.
#[derive(Debug)]
pub(super) struct Talk {
    epoch: String,
    conversation: Conversation,
    conversation_n: u64,
    features: BTreeSet<ChatFeature>,
    features_n: u64,
    items: BTreeMap<u64, Item>,
    next_id: u64,
    n: u64,
    /// Changes up to this number may be of entries that are no longer in memory.
    lost_before: u64,
    older: bool,
    removals: VecDeque<(u64, u64)>,
    unsaved_removals: Vec<u64>,
    /// Lines of entries that left the memory before they were written.
    evicted: Vec<String>,
    messages: HashMap<String, u64>,
    accepted: VecDeque<(String, u64)>,
    made: usize,
    turn: Option<Running>,
    typing: usize,
    /// Answers to `/stop` that are still to come.
    stops: usize,
    agent: AgentState,
    agent_message: Option<String>,
    other: bool,
    state: State,
    state_n: u64,
    effects: Vec<Effect>,
}

impl Talk {
    /// A conversation with the entries of the newest `lines`; `earlier`: there are entries before.
    pub(super) fn load(
        epoch: String,
        conversation: Conversation,
        lines: &[String],
        earlier: bool,
        now: Now,
    ) -> Self {
        let state = State {
            agent: AgentState::Connecting,
            message: None,
            turn: None,
            typing: false,
            waiting: 0,
            other: false,
        };
        let mut talk = Self {
            epoch,
            conversation,
            conversation_n: 1,
            features: BTreeSet::new(),
            features_n: 1,
            items: BTreeMap::new(),
            next_id: 1,
            n: 1,
            lost_before: 0,
            older: earlier,
            removals: VecDeque::new(),
            unsaved_removals: Vec::new(),
            evicted: Vec::new(),
            messages: HashMap::new(),
            accepted: VecDeque::new(),
            made: 0,
            turn: None,
            typing: 0,
            stops: 0,
            agent: state.agent,
            agent_message: None,
            other: false,
            state,
            state_n: 1,
            effects: Vec::new(),
        };
        talk.read_records(lines, now);
        talk.note_interruption(now);
        talk.publish();
        talk
    }

    /// The conversation.
    pub(super) fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Takes the work that has come up.
    pub(super) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Gives the conversation another title.
    pub(super) fn rename(&mut self, title: String) {
        self.conversation.title = title;
        self.n += 1;
        self.conversation_n = self.n;
    }

    /// Sets the abilities of the agent's version.
    pub(super) fn set_features(&mut self, features: BTreeSet<ChatFeature>) {
        if self.features != features {
            self.features = features;
            self.n += 1;
            self.features_n = self.n;
        }
    }

    fn has(&self, feature: ChatFeature) -> bool {
        self.features.contains(&feature)
    }

    /// Reports that the agent takes pictures.
    pub(super) fn sends_pictures(&self) -> bool {
        self.has(ChatFeature::Pictures)
    }

    /// Shows the message of this id again, if it was accepted.
    pub(super) fn acknowledge(&mut self, client_id: &str, now: Now) -> bool {
        let known = self.accepted.iter().find(|(known, _)| known == client_id);
        let Some((_, id)) = known else {
            return false;
        };
        self.touch(*id, now);
        true
    }

    /// Reports that files of the agent are still fetched.
    pub(super) fn fetches_files(&self) -> bool {
        let mut bodies = self.items.values().map(|item| &item.entry.body);
        bodies.any(|body| matches!(body, Body::Files { .. }) && is_open(body))
    }

    /// A file of an entry.
    pub(super) fn file(&self, id: u64, index: usize) -> Option<SentFile> {
        match &self.items.get(&id)?.entry.body {
            Body::Files { files, .. } => files.get(index).cloned(),
            _ => None,
        }
    }

    /// Adds a remark of the service about what the agent sent.
    pub(super) fn remark(&mut self, code: NoticeCode, text: &str, now: Now) {
        self.made += 1;
        if self.made > MOST_MADE {
            return;
        }
        self.notice(code, text, now);
        self.publish();
    }

    /// Sets the state of the agent, and whether this conversation waits for another one.
    pub(super) fn set_agent(&mut self, agent: AgentState, message: Option<String>, other: bool) {
        self.agent = agent;
        self.agent_message = message;
        self.other = other;
        self.publish();
    }

    /// Accepts a message of the user, once for each `client_id`.
    ///
    /// # Errors
    /// Cause and sentence of the refusal.
    pub(super) fn accept(
        &mut self,
        client_id: String,
        text: String,
        attachments: Vec<Attachment>,
        now: Now,
    ) -> Result<(), (RefusalCode, String)> {
        if self.acknowledge(&client_id, now) {
            return Ok(());
        }
        if text.trim().eq_ignore_ascii_case(STOP) && attachments.is_empty() {
            self.stop(now)?;
            let body = Body::User {
                text,
                client_id: Some(client_id.clone()),
                attachments,
                status: MessageStatus::Sent,
            };
            let id = self.add(body, now);
            self.remember(client_id, id);
            return Ok(());
        }
        if text.trim().is_empty() && attachments.is_empty() {
            return Err((
                RefusalCode::Empty,
                "the message is empty; write something or attach a file".to_owned(),
            ));
        }
        let length = text.chars().count();
        if length > LONGEST_TEXT {
            return Err((
                RefusalCode::TooLong,
                format!(
                    "the message has {length} characters, at most {LONGEST_TEXT} can be sent; attach a file instead"
                ),
            ));
        }
        let joined = self.turn.as_ref().map_or(0, Running::joined);
        if self.count_waiting() + joined >= MOST_WAITING {
            return Err((
                RefusalCode::TooManyWaiting,
                format!(
                    "{MOST_WAITING} messages wait already; wait for an answer, then send it again"
                ),
            ));
        }
        self.made = 0;
        let titled = self.conversation.title.is_empty();
        if titled {
            self.rename(title_of(&text, &attachments));
        }
        self.conversation.last_used_at = now.wall;
        self.effects.push(Effect::SaveMeta { titled });
        let body = Body::User {
            text,
            client_id: Some(client_id.clone()),
            attachments,
            status: MessageStatus::Waiting,
        };
        let id = self.add(body, now);
        self.remember(client_id, id);
        self.effects.push(Effect::Save);
        self.publish();
        Ok(())
    }

    /// Gives the agent the messages that wait, as far as they may go now.
    pub(super) fn dispatch(&mut self, now: Now) {
        if self.agent != AgentState::Connected || self.other && !self.has(ChatFeature::Parallel) {
            return;
        }
        let waiting: Vec<u64> = self.with_status(MessageStatus::Waiting);
        for id in waiting {
            let joins = match &self.turn {
                Some(turn) if turn.is_stopping() || turn.joined() >= MOST_WAITING => break,
                Some(_) => true,
                None => false,
            };
            let Some((text, pictures)) = self.message_of(id) else {
                continue;
            };
            self.begin_or_join(id, now);
            self.set_status(
                id,
                match joins {
                    true => MessageStatus::Joined,
                    false => MessageStatus::Sent,
                },
                now,
            );
            // Written before it goes: after a fault it is not sent twice.
            self.effects.push(Effect::Save);
            self.effects.push(Effect::Deliver {
                entry: id,
                text,
                pictures,
            });
        }
        self.publish();
    }

    /// Records that a message did not reach the agent: it waits again.
    pub(super) fn take_back(&mut self, id: u64, now: Now) {
        if !self.is_sent(id) {
            return;
        }
        let status = match self.is_stopping() {
            true => MessageStatus::Unanswered,
            false => MessageStatus::Waiting,
        };
        if self.turn.as_mut().is_some_and(|turn| turn.forget(id)) {
            self.turn = None;
            self.typing = 0;
        }
        self.set_status(id, status, now);
        self.publish();
    }

    /// Records that a message could not be given to the agent.
    pub(super) fn fail_message(&mut self, id: u64, cause: String, now: Now) {
        self.set_status(id, MessageStatus::Failed, now);
        self.notice(NoticeCode::RefusedByAgent, cause, now);
        if self.turn.as_mut().is_some_and(|turn| turn.forget(id)) {
            self.turn = None;
            self.typing = 0;
        }
        self.publish();
    }

    /// Records the outcome of fetching a file.
    pub(super) fn set_file(&mut self, id: u64, index: usize, fetched: SentFile, now: Now) {
        if let Some(item) = self.items.get_mut(&id)
            && let Body::Files { files, .. } = &mut item.entry.body
            && let Some(file) = files.get_mut(index)
        {
            *file = fetched;
            self.touch(id, now);
        }
    }

    fn message_of(&self, id: u64) -> Option<(String, Vec<String>)> {
        let Body::User {
            text, attachments, ..
        } = &self.items.get(&id)?.entry.body
        else {
            return None;
        };
        let mut whole = text.clone();
        let files: Vec<&str> = attachments
            .iter()
            .filter(|file| !file.picture)
            .map(|file| file.path.as_str())
            .collect();
        if !files.is_empty() {
            if !whole.is_empty() {
                whole.push_str("\n\n");
            }
            whole.push_str("Attached files, relative to your workspace:");
            for path in files {
                whole.push_str("\n- ");
                whole.push_str(path);
            }
        }
        let pictures = attachments.iter().filter(|file| file.picture);
        Some((whole, pictures.map(|file| file.path.clone()).collect()))
    }

    fn with_status(&self, wanted: MessageStatus) -> Vec<u64> {
        let of_user = |item: &Item| matches!(&item.entry.body, Body::User { status, .. } if *status == wanted);
        let items = self.items.iter().filter(|(_, item)| of_user(item));
        items.map(|(id, _)| *id).collect()
    }

    /// Returns how many messages wait for the agent.
    pub(super) fn count_waiting(&self) -> usize {
        self.with_status(MessageStatus::Waiting).len()
    }

    fn set_status(&mut self, id: u64, new: MessageStatus, now: Now) {
        if let Some(item) = self.items.get_mut(&id)
            && let Body::User { status, .. } = &mut item.entry.body
        {
            *status = new;
            self.touch(id, now);
        }
    }

    fn notice(&mut self, code: NoticeCode, text: impl Into<String>, now: Now) {
        let text = text.into();
        self.add(Body::Notice { code, text }, now);
    }

    fn add(&mut self, body: Body, now: Now) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.n += 1;
        let entry = Entry {
            id,
            at: now.wall,
            body,
        };
        let item = Item {
            n: self.n,
            entry,
            unsaved: Some(now.instant),
            changed: now.instant,
            message: None,
            placeholder: false,
            cut: false,
        };
        self.items.insert(id, item);
        self.forget_old();
        id
    }

    fn touch(&mut self, id: u64, now: Now) {
        self.n += 1;
        if let Some(item) = self.items.get_mut(&id) {
            item.n = self.n;
            item.unsaved.get_or_insert(now.instant);
            item.changed = now.instant;
        }
    }

    fn remove(&mut self, id: u64) {
        let Some(item) = self.items.remove(&id) else {
            return;
        };
        if let Some(message) = item.message {
            self.messages.remove(&message);
        }
        self.n += 1;
        self.unsaved_removals.push(id);
        self.removals.push_back((self.n, id));
        while self.removals.len() > KEPT_REMOVALS {
            if let Some((n, _)) = self.removals.pop_front() {
                self.lost_before = self.lost_before.max(n);
            }
        }
    }

    /// Forgets the oldest entries that are written and at rest.
    fn forget_old(&mut self) {
        let mut bytes: usize = self.items.values().map(|item| weigh(&item.entry)).sum();
        while self.items.len() > KEPT || bytes > KEPT_BYTES {
            let crowded = self.items.len() > 2 * KEPT || bytes > 2 * KEPT_BYTES;
            let Some(first) = self.items.first_entry() else {
                return;
            };
            let rests = first.get().unsaved.is_none() && !is_open(&first.get().entry.body);
            let waits = matches!(
                &first.get().entry.body,
                Body::User {
                    status: MessageStatus::Waiting,
                    ..
                }
            );
            if waits || !rests && !crowded || self.next_id - first.key() < 3 {
                return;
            }
            let mut item = first.remove();
            if item.unsaved.is_some() && !item.placeholder {
                self.evicted.extend(record::line_of(&mut item.entry));
            }
            let evicted: usize = self.evicted.iter().map(String::len).sum();
            if evicted > KEPT_BYTES && !self.effects.contains(&Effect::Save) {
                self.effects.push(Effect::Save);
            }
            bytes = bytes.saturating_sub(weigh(&item.entry));
            if let Some(message) = item.message {
                self.messages.remove(&message);
            }
            self.lost_before = self.lost_before.max(item.n);
            self.older = true;
        }
    }

    fn remember(&mut self, client_id: String, id: u64) {
        self.accepted.push_back((client_id, id));
        if self.accepted.len() > KNOWN_MESSAGES {
            self.accepted.pop_front();
        }
    }
}

/// An entry whose text grows.
fn is_growing(body: &Body) -> bool {
    matches!(
        body,
        Body::Answer {
            streaming: true,
            ..
        } | Body::Thought {
            streaming: true,
            ..
        }
    )
}

/// An entry that may still change.
fn is_open(body: &Body) -> bool {
    match body {
        Body::User { status, .. } => *status == MessageStatus::Waiting,
        Body::Answer { streaming, .. } | Body::Thought { streaming, .. } => *streaming,
        Body::Files { files, .. } => files
            .iter()
            .any(|file| file.file.is_none() && file.error.is_none()),
        _ => false,
    }
}

fn weigh(entry: &Entry) -> usize {
    let text = match &entry.body {
        Body::User { text, .. }
        | Body::Answer { text, .. }
        | Body::Thought { text, .. }
        | Body::Failure { text, .. }
        | Body::Notice { text, .. } => text.len(),
        Body::Tools { calls } => calls
            .iter()
            .map(|call| call.arguments.len() + call.name.len())
            .sum(),
        Body::Files { files, .. } => files.len() * 200,
    };
    text + 200
}

fn title_of(text: &str, attachments: &[Attachment]) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line.or_else(|| attachments.first().map(|file| file.name.as_str()));
    let clean = line.unwrap_or_default().chars().filter(|c| !c.is_control());
    let title: String = clean.take(TITLE + 1).collect();
    match title.chars().count() > TITLE {
        true => format!(
            "{}…",
            title.chars().take(TITLE).collect::<String>().trim_end()
        ),
        false => title,
    }
}
