/** Conversation of a user with the own agent. */
export interface Conversation {
  id: string;
  title: string;
  created_at: string;
  last_used_at: string;
}

/** State of the chat of this user, before a conversation is open. */
export interface ChatInfo {
  /** `off`: switched off by an administrator; `unsupported`: this version of the agent has none. */
  state: 'on' | 'off' | 'unsupported';
  pictures: boolean;
  stop: boolean;
  model_configured: boolean;
  started: boolean;
}

/** Answer of `GET /api/agent/chat`, newest used first. */
export interface ChatOverview {
  chat: ChatInfo;
  conversations: Conversation[];
  /** Conversations that are not listed. */
  left_out: number;
}

/** Answer of `GET /api/agent/chat/entries`, oldest first. */
export interface EntriesPage {
  entries: Entry[];
  older: boolean;
}

/** File of the workspace that a message names. */
export interface Attachment {
  path: string;
  name: string;
  size: number | null;
  picture: boolean;
}

/** State of the agent as the chat sees it. */
export type AgentState =
  'connected' | 'connecting' | 'starting' | 'stopped' | 'failed' | 'off' | 'unsupported';

/** Turn that runs in the conversation. */
export interface Turn {
  since: string;
  stopping: boolean;
}

/** State of the open conversation. */
export interface State {
  agent: AgentState;
  /** Sentence about a failed or stopped agent. */
  message: string | null;
  turn: Turn | null;
  /** The agent writes, or calls the model. */
  typing: boolean;
  /** Messages that are accepted and not yet taken by the agent. */
  waiting: number;
  /** Another conversation of the user has its turn first. */
  other: boolean;
}

/** Tool call of the agent; its arguments are text, cut when they are long. */
export interface ToolCall {
  name: string;
  arguments: string;
  cut: boolean;
  explanation: string | null;
}

/** File that the agent sent; `file` is its name for `/api/agent/chat/file`, null with an error. */
export interface SentFile {
  name: string;
  content_type: string;
  size: number | null;
  file: string | null;
  picture: boolean;
  error: string | null;
}

export type MessageStatus = 'waiting' | 'sent' | 'joined' | 'unanswered' | 'failed';
export type FailureCode = 'model' | 'no_model' | 'key' | 'quota' | 'timeout' | 'address' | 'agent';
export type NoticeCode =
  | 'stopped'
  | 'silent'
  | 'agent_restarted'
  | 'service_restarted'
  | 'disconnected'
  | 'refused_by_agent'
  | 'cut';

/** Id and time of an entry. */
export interface EntryBase {
  id: number;
  at: string;
}

export interface UserEntry extends EntryBase {
  kind: 'user';
  text: string;
  client_id: string | null;
  attachments: Attachment[];
  status: MessageStatus;
}

/** Answer of the agent, in Markdown. */
export interface AnswerEntry extends EntryBase {
  kind: 'answer';
  text: string;
  model: string | null;
  streaming: boolean;
  used_percent: number | null;
}

export interface ThoughtEntry extends EntryBase {
  kind: 'thought';
  text: string;
  streaming: boolean;
}

export interface ToolsEntry extends EntryBase {
  kind: 'tools';
  calls: ToolCall[];
}

export interface FilesEntry extends EntryBase {
  kind: 'files';
  files: SentFile[];
  text: string | null;
}

export interface FailureEntry extends EntryBase {
  kind: 'failure';
  code: FailureCode;
  text: string;
}

export interface NoticeEntry extends EntryBase {
  kind: 'notice';
  code: NoticeCode;
  text: string;
}

/** Part of a conversation. */
export type Entry =
  UserEntry | AnswerEntry | ThoughtEntry | ToolsEntry | FilesEntry | FailureEntry | NoticeEntry;

/** First frame of a connection. `reset`: the entries that follow replace all that the page has. */
export interface HelloFrame {
  type: 'hello';
  epoch: string;
  n: number;
  reset: boolean;
  older: boolean;
  conversation: Conversation;
  pictures: boolean;
  stop: boolean;
}

export interface EntryFrame {
  type: 'entry';
  n: number;
  entry: Entry;
}

export interface RemoveFrame {
  type: 'remove';
  n: number;
  id: number;
}

export interface StateFrame {
  type: 'state';
  n: number;
  state: State;
}

export interface ConversationFrame {
  type: 'conversation';
  n: number;
  conversation: Conversation;
}

/** A message that was not accepted, or a frame that could not be read. */
export interface RefusedFrame {
  type: 'refused';
  client_id: string | null;
  code: string;
  message: string;
}

export interface PongFrame {
  type: 'pong';
}

/** Reason for which the service closes the connection. */
export interface EndFrame {
  type: 'end';
  code: string;
  message: string;
}

/** Frame of the service. */
export type ServerFrame =
  | HelloFrame
  | EntryFrame
  | RemoveFrame
  | StateFrame
  | ConversationFrame
  | RefusedFrame
  | PongFrame
  | EndFrame;

export interface SendFrame {
  type: 'send';
  client_id: string;
  text: string;
  attachments?: { path: string; picture: boolean }[];
}

/** Frame of the page. */
export type ClientFrame = SendFrame | { type: 'stop' } | { type: 'ping' };

/** Most characters of a message. */
export const MOST_CHARACTERS = 100_000;
/** Most files of a message. */
export const MOST_ATTACHMENTS = 20;
/** Largest file that is sent as a picture, in bytes. */
export const MOST_PICTURE_BYTES = 20 * 1024 * 1024;
