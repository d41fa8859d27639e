import { get, getRaw, queryText } from '../api/client';
import { Failure } from '../api/failure';
import { ownUrl } from '../prefix';
import type { Refusal } from './connection';
import type { EntriesPage } from './protocol';

const SOCKET = '/api/agent/chat/ws';
/** Entries that are asked for at once. */
const PAGE = 100;
/** Refusals that last, but not for ever. */
const LASTING = new Set(['held_elsewhere', 'too_many_streams', 'busy']);

/** Address of a conversation's socket, with the position to resume from. */
export function socketUrl(id: string, epoch: string | undefined, after: number): string {
  const resume = epoch === undefined ? {} : { epoch, after };
  const path = ownUrl(SOCKET) + queryText({ id, ...resume });
  return `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${path}`;
}

/** Asks why a connection was refused: a browser cannot read the answer to an upgrade. */
export async function explainRefusal(id: string, signal?: AbortSignal): Promise<Refusal> {
  try {
    // A session that has ended is renewed here.
    await getRaw(SOCKET, { id }, { accept: 'application/json', signal });
    return 'retry';
  } catch (thrown) {
    const { status, code } = Failure.from(thrown);
    // The answer where a WebSocket would be accepted.
    if (code === 'invalid_request' || status === 0) return 'retry';
    if (status === 404) return 'deleted';
    if (code === 'chat_off') return 'chat_off';
    if (status === 401) return 'signed_out';
    if (status === 403) return 'refused';
    return LASTING.has(code) ? { slowly: code } : 'slowly';
  }
}

/** Reads the entries before one that is there. */
export function readOlder(id: string, before: number): Promise<EntriesPage> {
  return get<EntriesPage>('/api/agent/chat/entries', { id, before, limit: PAGE });
}

/** Address of a file that the agent sent. */
export function fileUrl(id: string, file: string): string {
  return ownUrl('/api/agent/chat/file') + queryText({ id, file });
}

/** Address of a conversation as a file. */
export function exportUrl(id: string, format: 'markdown' | 'json'): string {
  return ownUrl('/api/agent/chat/export') + queryText({ id, format });
}
