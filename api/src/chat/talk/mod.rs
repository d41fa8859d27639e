//! One conversation with an agent: entries, the running turn, and the interpretation of the agent's frames. Does no input or output.

mod budget;
mod entries;
mod frames;
mod interruption;
mod messages;
mod turn;
mod view;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(super) use tests::frames_of_all_kinds;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use schema::adapter::ChatFeature;
use schema::ids::Timestamp;
use tokio::time::Instant;

use super::protocol::{AgentState, Body, Conversation, Entry, NoticeCode, State};
use super::stored::Line;
pub(super) use budget::{KEPT, KEPT_BYTES};
use turn::Running;
pub(super) use view::{Cursor, PageFrameSource};

/// Most entries that an agent makes after one message.
const MOST_MADE: usize = 1000;

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
    entry: Arc<Entry>,
    /// Memory of the entry, in bytes.
    weight: usize,
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
    /// It is given to the link, which reads it when the agent can take it.
    on_the_way: bool,
}

impl Item {
    fn new(n: u64, entry: Entry, now: Now) -> Self {
        Self {
            n,
            weight: entry.weight(),
            entry: Arc::new(entry),
            unsaved: None,
            changed: now.instant,
            message: None,
            placeholder: false,
            cut: false,
            on_the_way: false,
        }
    }

    /// Changes the content. The state that a page or a writer still has stays as it is.
    fn body_mut(&mut self) -> &mut Body {
        &mut Arc::make_mut(&mut self.entry).body
    }
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
    /// Lines to write: of entries that left the memory before, of removed ones, and those that could not be written.
    unwritten: VecDeque<Line>,
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
    /// A conversation with its newest entries; `earlier`: there are entries before.
    pub(super) fn load(
        epoch: String,
        conversation: Conversation,
        entries: Vec<Entry>,
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
            unwritten: VecDeque::new(),
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
        talk.take_entries(entries, now);
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
        self.publish_conversation();
    }

    /// Gives the conversation a new number: pages show its title and its time again.
    fn publish_conversation(&mut self) {
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

    /// Adds a remark of the service about what the agent sent.
    pub(super) fn add_remark(&mut self, code: NoticeCode, text: &str, now: Now) {
        self.made += 1;
        if self.made > MOST_MADE {
            return;
        }
        self.add_notice(code, text, now);
        self.publish();
    }

    /// Sets the state of the agent, and whether this conversation waits for another one.
    pub(super) fn set_agent(&mut self, agent: AgentState, message: Option<String>, other: bool) {
        self.agent = agent;
        self.agent_message = message;
        self.other = other;
        self.publish();
    }
}
