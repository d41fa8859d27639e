import { get } from '../client';
import { Failure } from '../failure';
import type { Page, Schemas } from '../types';

// Written by hand until the API's document has them.
/** An archived directory of a deleted user. */
export interface ArchiveItem {
  /** Name of the directory, `USER@TIME`. */
  name: string;
  username: string;
  archived_at: string;
  /** Bytes; null where they were not measured. */
  size: number | null;
  /** When it is deleted; null: never by itself. */
  expires_at: string | null;
  state: string;
}

/** A page of archives. */
export interface Archives extends Page {
  items: ArchiveItem[];
}

/** Reads a page of archives; from a server that does not list them yet, the oldest ones. */
export async function readArchives(query: Record<string, unknown>, signal: AbortSignal): Promise<Archives> {
  try {
    return await get<Archives>('/api/admin/archives', query, { signal });
  } catch (thrown) {
    if (!(thrown instanceof Failure) || thrown.status !== 404) throw thrown;
    return readOldest(String(query.search ?? ''), signal);
  }
}

async function readOldest(words: string, signal: AbortSignal): Promise<Archives> {
  const path = '/api/admin/reconcile/objects/archive/local';
  const { observed } = await get<{ observed?: Schemas['ObservedArchive'] | null }>(path, {}, { signal });
  const items = (observed?.oldest ?? [])
    .filter(({ user }) => user.toLowerCase().includes(words.toLowerCase()))
    .map(({ directory, user, archived_at, removing }) => ({
      name: directory,
      username: user,
      archived_at,
      size: null,
      expires_at: null,
      state: removing ? 'removing' : 'kept',
    }));
  return { items, page: 1, page_size: items.length, total: items.length, total_pages: 1 };
}
