import type { Schemas } from '../api/types';
import type { components } from '../generated/chat';

type Frames = components['schemas'];

/** What the service sends, which leaves no field out: the schema calls those optional that may be null. */
type Sent<T> = T extends readonly (infer E)[]
  ? Sent<E>[]
  : T extends object
    ? { [K in keyof T]-?: Sent<T[K]> }
    : T;

export type Conversation = Sent<Schemas['ChatConversation']>;
export type ChatInfo = Sent<Schemas['ChatAbilities']>;
export type ChatOverview = Sent<Schemas['ChatConversations']>;

export type Attachment = Sent<Frames['ChatAttachment']>;
export type State = Sent<Frames['ChatState']>;
export type Turn = Sent<Frames['ChatTurn']>;
export type ToolCall = Sent<Frames['ChatToolCall']>;
export type SentFile = Sent<Frames['ChatSentFile']>;
export type MessageStatus = Frames['ChatMessageStatus'];
export type FailureCode = Frames['ChatFailureCode'];
export type NoticeCode = Frames['ChatNoticeCode'];
export type RefusalCode = Frames['ChatRefusalCode'];

export type Entry = Sent<Frames['ChatEntry']>;
/** The API document leaves the entries to the schema of the frames. */
export type EntriesPage = Omit<Sent<Schemas['ChatEntries']>, 'entries'> & { entries: Entry[] };
export type AnswerEntry = Extract<Entry, { kind: 'answer' }>;
export type FailureEntry = Extract<Entry, { kind: 'failure' }>;
export type NoticeEntry = Extract<Entry, { kind: 'notice' }>;

export type ServerFrame = Sent<Frames['ChatServerFrame']>;
export type EndCode = Extract<ServerFrame, { type: 'end' }>['code'];
export type ClientFrame = Frames['ChatPageFrame'];
export type SendFrame = Extract<ClientFrame, { type: 'send' }>;

/** Most characters of a message. */
export const MOST_CHARACTERS = 100_000;
/** Most files of a message. */
export const MOST_ATTACHMENTS = 20;
/** Largest file that is sent as a picture, in bytes. */
export const MOST_PICTURE_BYTES = 20 * 1024 * 1024;
