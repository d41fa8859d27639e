import { readDraft, storeDraft } from '../modules/drafts';
import type { Attachment, SendFrame } from './protocol';

/** Message that the service has not acknowledged yet. */
export interface Pending {
  client_id: string;
  text: string;
  attachments: Attachment[];
  at: string;
  /** Set when the service did not take it. */
  refused?: { code: string; message: string };
}

/** Makes the id by which a message is accepted once; works on plain http. */
export function makeClientId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The frame that sends a message. */
export function sendFrame({ client_id, text, attachments }: Pending): SendFrame {
  const files = attachments.map(({ path, picture }) => ({ path, picture }));
  return { type: 'send', client_id, text, ...(files.length > 0 && { attachments: files }) };
}

const nameOf = (conversation: string): string => `chat outbox ${conversation}`;

/** Reads the messages of a conversation that a reload must not lose. */
export function readOutbox(conversation: string): Pending[] {
  const stored = readDraft(nameOf(conversation));
  return Array.isArray(stored) ? (stored as Pending[]) : [];
}

/** Keeps the messages of a conversation until they are acknowledged. */
export function storeOutbox(conversation: string, pending: readonly Pending[]): void {
  storeDraft(nameOf(conversation), pending.length === 0 ? undefined : pending);
}
