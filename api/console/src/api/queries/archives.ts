import { get } from '../client';
import type { Schemas } from '../types';

/** An archived directory of a deleted user. */
export type ArchiveItem = Schemas['ArchiveItem'];
/** A page of archives. */
export type Archives = Schemas['Archives'];

/** Reads a page of archives. */
export function readArchives(query: Record<string, unknown>, signal: AbortSignal): Promise<Archives> {
  return get<Archives>('/api/admin/archives', query, { signal });
}
