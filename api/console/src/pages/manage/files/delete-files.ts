import { Failure } from '../../../api/failure';
import type { Schemas } from '../../../api/types';
import { isInTrash } from './paths';

/** Outcome of a deletion of several files. */
export interface Deletion {
  /** Paths that are deleted now. */
  deleted: string[];
  /** Names of what can be restored from the trash. */
  ids: string[];
  failed: { path: string; failure: Failure }[];
}

/** Failures with the same reason. */
export interface FailedFiles {
  paths: string[];
  failure: Failure;
}

/** Puts failures with the same code together. */
export function groupFailures(failed: Deletion['failed']): FailedFiles[] {
  const groups = new Map<string, FailedFiles>();
  for (const { path, failure } of failed) {
    const group = groups.get(failure.code);
    if (group === undefined) groups.set(failure.code, { paths: [path], failure });
    else group.paths.push(path);
  }
  return [...groups.values()];
}

type Send = (path: string) => Promise<Schemas['FilesDeleted']>;

/** Deletes files one after the other. What is in the trash is refused: there it would be removed for good. */
export async function deleteFiles(paths: string[], send: Send): Promise<Deletion> {
  const deletion: Deletion = { deleted: [], ids: [], failed: [] };
  for (const path of paths) {
    try {
      if (isInTrash(path)) throw new Failure(400, 'in_trash', '');
      const { trash_id: id } = await send(path);
      deletion.deleted.push(path);
      if (typeof id === 'string') deletion.ids.push(id);
    } catch (thrown) {
      deletion.failed.push({ path, failure: Failure.from(thrown) });
    }
  }
  return deletion;
}
