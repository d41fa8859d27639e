import type { MessageKey, T } from '../i18n';
import type { AnswerEntry, FailureCode, FailureEntry, NoticeCode, NoticeEntry } from './protocol';

/** Entry with which a turn ends. */
export type EndedEntry = AnswerEntry | FailureEntry | NoticeEntry;

const FAILURES: Record<string, [title: MessageKey, help: MessageKey]> = {
  model: ['chat.failure.model', 'chat.failure.model.help'],
  no_model: ['chat.failure.no_model', 'chat.failure.no_model.help'],
  key: ['chat.failure.key', 'chat.failure.key.help'],
  quota: ['chat.failure.quota', 'chat.failure.quota.help'],
  timeout: ['chat.failure.timeout', 'chat.failure.timeout.help'],
  address: ['chat.failure.address', 'chat.failure.address.help'],
} satisfies Partial<Record<FailureCode, [MessageKey, MessageKey]>>;
const NOTICES: Record<string, MessageKey> = {
  stopped: 'chat.notice.stopped',
  stop_unconfirmed: 'chat.notice.stop_unconfirmed',
  silent: 'chat.notice.silent',
  agent_restarted: 'chat.notice.agent_restarted',
  service_restarted: 'chat.notice.service_restarted',
  disconnected: 'chat.notice.disconnected',
  refused_by_agent: 'chat.notice.refused_by_agent',
  cut: 'chat.notice.cut',
} satisfies Record<NoticeCode, MessageKey>;

/** Sentence and remedy of a failure; one that the console does not know is the agent's. */
export function failureWords(code: FailureCode): [title: MessageKey, help: MessageKey] {
  return FAILURES[code] ?? ['chat.failure.agent', 'chat.failure.agent.help'];
}

/** Sentence of a notice: of one that the console does not know, the service's own. */
export function noticeWords({ code, text }: NoticeEntry, t: T): string {
  const key = NOTICES[code];
  if (key === undefined) return text;
  return code === 'refused_by_agent' && text !== '' ? `${t(key)} ${text}` : t(key);
}

/** Sentence that is read out when a turn has ended. */
export function endWords(entry: EndedEntry, t: T): string {
  if (entry.kind === 'answer') return entry.text;
  if (entry.kind === 'notice') return noticeWords(entry, t);
  const [title, help] = failureWords(entry.code);
  return `${t(title)} ${t(help)}`;
}
