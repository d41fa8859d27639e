//! Frames between the service and a page, and their JSON Schema.

use schema::home::conversations::{ConversationId, Meta};
use schema::ids::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

pub use super::bounded::MOST_ATTACHMENTS;
use super::bounded::{Cut, First, NAME, read_name, read_optional_name};

/// Longest text of a message, in characters.
pub const LONGEST_TEXT: usize = 100_000;
/// Longest id that a page gives a message, in bytes.
pub(super) const LONGEST_CLIENT_ID: usize = 64;
/// Most messages that wait for the agent, or join a turn, in one conversation.
pub const MOST_WAITING: usize = 10;

/// A conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ChatConversation)]
pub struct Conversation {
    /// Its id.
    #[schema(value_type = String)]
    pub id: ConversationId,
    /// Its title; empty before its first message.
    pub title: String,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of its newest message.
    pub last_used_at: Timestamp,
}

impl Conversation {
    /// The conversation of this id and metadata.
    pub fn new(id: ConversationId, meta: Meta) -> Self {
        Self {
            id,
            title: meta.title,
            created_at: meta.created_at,
            last_used_at: meta.last_used_at,
        }
    }
}

/// A frame that the service sends.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = ChatServerFrame)]
pub enum ServerFrame<'a> {
    /// The first frame of a connection.
    Hello {
        /// Names the run of numbers; sent back with `after` to resume.
        epoch: &'a str,
        /// Number of the newest change.
        n: u64,
        /// The page forgets its entries: those that follow are the newest.
        reset: bool,
        /// Entries exist before the first one that follows.
        older: bool,
        /// The conversation.
        conversation: Conversation,
        /// Pictures can be sent to the agent.
        pictures: bool,
        /// A turn can be stopped.
        stop: bool,
    },
    /// A new entry, or the new state of a known one.
    Entry {
        /// Number of the change.
        n: u64,
        /// The entry.
        entry: &'a Entry,
    },
    /// An entry is gone.
    Remove {
        /// Number of the change.
        n: u64,
        /// Id of the entry.
        id: u64,
    },
    /// The state of the agent and its turn.
    State {
        /// Number of the change.
        n: u64,
        /// The state.
        state: &'a State,
    },
    /// The conversation has another title, or a new message.
    Conversation {
        /// Number of the change.
        n: u64,
        /// The conversation.
        conversation: Conversation,
    },
    /// A frame of the page was refused.
    Refused {
        /// The message that was refused.
        client_id: Option<String>,
        /// Cause, for programs.
        code: RefusalCode,
        /// Cause and remedy, a sentence.
        message: String,
    },
    /// The answer to a ping.
    Pong,
    /// The last frame of a connection.
    End {
        /// Cause, for programs.
        code: EndCode,
        /// Cause, a sentence.
        message: &'a str,
    },
}

/// Cause of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(as = ChatRefusalCode)]
pub enum RefusalCode {
    /// As many messages wait as may wait.
    TooManyWaiting,
    /// The text is too long.
    TooLong,
    /// The message has neither text nor attachment.
    Empty,
    /// Too many messages in a short time.
    TooFast,
    /// An attachment cannot be sent.
    BadAttachment,
    /// The user's directory has no space.
    QuotaExceeded,
    /// The frame cannot be read.
    InvalidMessage,
    /// No turn runs, or this agent cannot stop one.
    NotRunning,
}

/// Cause of a connection's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatEndCode)]
pub enum EndCode {
    /// The session has ended.
    SessionEnded,
    /// The conversation was deleted.
    Deleted,
    /// The service stops.
    ServiceStopping,
    /// The page reads too slowly.
    Slow,
    /// Chat was switched off.
    ChatOff,
    /// The conversation can no longer be kept.
    Failed,
}

/// The state of the agent, as this conversation sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ChatState)]
pub struct State {
    /// The agent.
    pub agent: AgentState,
    /// A sentence about it.
    pub message: Option<String>,
    /// The turn that runs in this conversation.
    pub turn: Option<Turn>,
    /// The agent says that it is typing.
    pub typing: bool,
    /// Messages that are accepted and not yet taken by the agent.
    pub waiting: usize,
    /// This conversation waits for the turn of another one.
    pub other: bool,
}

/// The agent, as seen by its chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatAgentState)]
pub enum AgentState {
    /// Connected.
    Connected,
    /// It runs; the connection is being made.
    Connecting,
    /// It runs, and its chat has not answered for 30 seconds.
    Unreachable,
    /// It starts.
    Starting,
    /// An administrator stopped it, or the account is being removed.
    Stopped,
    /// It failed.
    Failed,
    /// Chat is switched off.
    Off,
    /// Its version has no chat.
    Unsupported,
}

/// A running turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ChatTurn)]
pub struct Turn {
    /// Begin.
    pub since: Timestamp,
    /// It is being stopped.
    pub stopping: bool,
}

/// An entry of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ChatEntry)]
pub struct Entry {
    /// Its id: later entries have greater ones.
    pub id: u64,
    /// Time of its creation.
    pub at: Timestamp,
    /// Its content.
    #[serde(flatten)]
    pub body: Body,
}

/// Content of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schema(as = ChatEntryBody)]
pub enum Body {
    /// A message of the user.
    User {
        /// Its text.
        text: String,
        /// Id that the page gave it.
        #[serde(default)]
        client_id: Option<String>,
        /// Its files.
        #[serde(default)]
        attachments: Vec<Attachment>,
        /// Its way to the agent.
        status: MessageStatus,
    },
    /// An answer of the agent, in Markdown.
    Answer {
        /// Its text.
        text: String,
        /// The model that wrote it.
        #[serde(default)]
        model: Option<String>,
        /// More text may follow.
        #[serde(default)]
        streaming: bool,
        /// Use of the model's context, in percent.
        #[serde(default)]
        used_percent: Option<u32>,
    },
    /// A thought of the model.
    Thought {
        /// Its text.
        text: String,
        /// More text may follow.
        #[serde(default)]
        streaming: bool,
    },
    /// Calls of tools.
    Tools {
        /// The calls.
        calls: Vec<ToolCall>,
    },
    /// Files of the agent.
    Files {
        /// The files.
        files: Vec<SentFile>,
        /// The text beside them.
        #[serde(default)]
        text: Option<String>,
    },
    /// The agent could not answer.
    Failure {
        /// Cause, for programs.
        code: FailureCode,
        /// Message of the agent, with addresses and keys masked.
        text: String,
    },
    /// A remark of the service.
    Notice {
        /// Cause, for programs.
        code: NoticeCode,
        /// A sentence.
        text: String,
    },
}

/// A file of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChatAttachment)]
pub struct Attachment {
    /// Its path in the workspace.
    #[serde(deserialize_with = "read_name")]
    pub path: String,
    /// Its name.
    #[serde(deserialize_with = "read_name")]
    pub name: String,
    /// Its length in bytes.
    pub size: Option<u64>,
    /// It is sent to the model as a picture.
    pub picture: bool,
}

/// The way of a message to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatMessageStatus)]
pub enum MessageStatus {
    /// Not yet with the agent.
    Waiting,
    /// With the agent.
    Sent,
    /// With the agent while a turn ran: it has one answer with the message before.
    Joined,
    /// The turn was lost before an answer.
    Unanswered,
    /// The user stopped the turn.
    Stopped,
    /// The user stopped the agent before the message went to it.
    Withdrawn,
    /// The agent refused it.
    Failed,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChatToolCall)]
pub struct ToolCall {
    /// Name of the tool.
    #[serde(deserialize_with = "read_name")]
    pub name: String,
    /// Its arguments: JSON, unless they are cut.
    #[serde(deserialize_with = "read_name")]
    pub arguments: String,
    /// The agent has cut the arguments.
    pub cut: bool,
    /// The agent's words about it.
    #[serde(default, deserialize_with = "read_optional_name")]
    pub explanation: Option<String>,
}

/// A file that the agent sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChatSentFile)]
pub struct SentFile {
    /// Its name.
    #[serde(deserialize_with = "read_name")]
    pub name: String,
    /// Its type, as the service found it.
    #[serde(deserialize_with = "read_name")]
    pub content_type: String,
    /// Its length in bytes.
    pub size: Option<u64>,
    /// Its name for a download; `null` while it is fetched, and with an error.
    #[serde(default, deserialize_with = "read_optional_name")]
    pub file: Option<String>,
    /// It can be shown as a picture.
    pub picture: bool,
    /// Cause of its absence, a sentence.
    #[serde(default, deserialize_with = "read_optional_name")]
    pub error: Option<String>,
}

/// Cause of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatFailureCode)]
pub enum FailureCode {
    /// The model's provider failed.
    Model,
    /// No model is configured.
    NoModel,
    /// The provider refused the key.
    Key,
    /// The provider's quota is used up.
    Quota,
    /// The provider did not answer in time.
    Timeout,
    /// The provider cannot be reached.
    Address,
    /// The agent failed.
    Agent,
}

/// Cause of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatNoticeCode)]
pub enum NoticeCode {
    /// The user stopped the turn.
    Stopped,
    /// The user stopped the turn, and the agent did not confirm it.
    StopUnconfirmed,
    /// The agent gave no sign of life for too long.
    Silent,
    /// The agent restarted during the turn.
    AgentRestarted,
    /// The service restarted during the turn.
    ServiceRestarted,
    /// The connection to the agent broke during the turn.
    Disconnected,
    /// The agent refused the message.
    RefusedByAgent,
    /// Something was left out.
    Cut,
}

/// A frame that a page sends.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = ChatPageFrame)]
pub enum PageFrame {
    /// A message for the agent.
    Send {
        /// Id of the message, chosen by the page: one id is accepted once.
        client_id: String,
        /// Its text.
        #[serde(default)]
        text: String,
        /// Files in the workspace.
        #[serde(default)]
        attachments: Vec<SentAttachment>,
    },
    /// Stops the turn.
    Stop,
    /// Asks for a pong.
    Ping,
}

/// The fields of all frames of pages. An enum with a tag would keep a copy of each unknown field.
#[derive(Deserialize)]
struct FrameFields {
    #[serde(rename = "type")]
    kind: FrameKind,
    client_id: Option<Cut<NAME>>,
    #[serde(default)]
    text: String,
    /// One more than may be sent, so that it is refused.
    #[serde(default)]
    attachments: First<SentAttachment, { MOST_ATTACHMENTS + 1 }>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum FrameKind {
    Send,
    Stop,
    Ping,
}

impl<'de> Deserialize<'de> for PageFrame {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = FrameFields::deserialize(deserializer)?;
        Ok(match fields.kind {
            FrameKind::Send => Self::Send {
                client_id: fields
                    .client_id
                    .ok_or_else(|| D::Error::missing_field("client_id"))?
                    .0,
                text: fields.text,
                attachments: fields.attachments.0,
            },
            FrameKind::Stop => Self::Stop,
            FrameKind::Ping => Self::Ping,
        })
    }
}

/// A file of a message, as the page names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChatSentAttachment)]
pub struct SentAttachment {
    /// Its path in the workspace.
    pub path: String,
    /// Send it to the model as a picture.
    #[serde(default)]
    pub picture: bool,
}
