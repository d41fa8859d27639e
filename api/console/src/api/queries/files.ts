import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import { get } from '../client';
import { keys } from '../keys';
import type { Schemas } from '../types';

/** Leaves out the trash, which has a page of its own. */
export function withoutTrash(files: Schemas['Files']): Schemas['Files'] {
  const entries = files.entries.filter(({ rel_path: path }) => path !== '.trash');
  const left = files.entries.length - entries.length;
  return left === 0 ? files : { ...files, entries, total: files.total - left };
}

/** A page of a folder; the agent may have changed it since it was read. */
export function folderQuery(path: string, query: Record<string, unknown> = {}) {
  return queryOptions({
    queryKey: keys.folder(path, query),
    queryFn: ({ signal }) => get<Schemas['Files']>('/api/files', { path, ...query }, { signal }),
    select: withoutTrash,
    placeholderData: keepPreviousData,
    staleTime: 0,
  });
}

/** A text file with the mark of its state. */
export function textFileQuery(path: string) {
  return queryOptions({
    queryKey: keys.textFile(path),
    queryFn: ({ signal }) => get<Schemas['TextFile']>('/api/files/edit', { path }, { signal }),
    staleTime: Infinity,
    gcTime: 0,
  });
}

/** A page of the trash. */
export function trashQuery(page: number) {
  return queryOptions({
    queryKey: keys.trash(page),
    queryFn: ({ signal }) => get<Schemas['Trash']>('/api/files/trash', { page, page_size: 50 }, { signal }),
    placeholderData: keepPreviousData,
    staleTime: 0,
  });
}
