import { Button } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';

import { post } from '../../../api/client';
import { Failure } from '../../../api/failure';
import type { Schemas } from '../../../api/types';
import { useToasts } from '../../../components/toast-store';
import { useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import { deleteFiles, type FailedFiles, groupFailures } from './delete-files';
import { nameOf } from './paths';

/** Actions on files; each shows its own message. */
export interface FileActions {
  /** Throws a Failure, which the caller shows at its field. */
  move: (from: string, to: string) => Promise<void>;
  makeFolder: (path: string, name: string) => Promise<void>;
  /** Moves files to the trash, and offers to bring them back. Returns those for which it has no space. */
  remove: (paths: string[]) => Promise<FailedFiles | undefined>;
  removeForEver: (paths: string[]) => Promise<void>;
}

/** Names that a message holds before it only counts. */
const NAMED = 5;
/** Status of an answer when the disk is full or the quota used up. */
const NO_SPACE = 507;

/** Returns what can be done with files. */
export function useFileActions(): FileActions {
  const t = useT();
  const client = useQueryClient();
  const toasts = useToasts();
  const refresh = (): Promise<void> => client.invalidateQueries({ queryKey: ['files'] });
  const restore = async (ids: string[]): Promise<void> => {
    // The button stays for a while after it was pressed.
    const count = ids.length;
    if (count === 0) return;
    try {
      for (const id of ids.splice(0)) await post('/api/files/restore', { id });
      toasts.done(t('files.restored', { count }));
    } catch (thrown) {
      toasts.fail(t('files.restore.failed'), Failure.from(thrown));
    }
    await refresh();
  };
  const showFailures = (groups: FailedFiles[]): void => {
    for (const { paths, failure } of groups) {
      const names = paths.slice(0, NAMED).map((path) => visibleText(nameOf(path)));
      const name = names.join(t('list.comma'));
      const more = paths.length - names.length;
      toasts.fail(t('files.delete.failed', { name, more }), failure);
    }
  };
  return {
    move: async (from, to) => {
      await post('/api/files/move', { from, to });
      await refresh();
    },
    makeFolder: async (path, name) => {
      await post('/api/files/mkdir', { path, name });
      await refresh();
    },
    remove: async (paths) => {
      const send = (path: string) => post<Schemas['FilesDeleted']>('/api/files/delete', { path });
      const { deleted, ids, failed } = await deleteFiles(paths, send);
      const groups = groupFailures(failed);
      showFailures(groups.filter(({ failure }) => failure.status !== NO_SPACE));
      if (deleted.length > 0) {
        const name = visibleText(nameOf(deleted[0] ?? ''));
        toasts.done(
          <span className="row">
            {deleted.length === 1
              ? t('files.deleted', { name })
              : t('files.deleted.many', { count: deleted.length })}
            {ids.length > 0 && (
              <Button size="compact-sm" onClick={() => void restore(ids)}>
                {t('files.bring.back')}
              </Button>
            )}
          </span>,
        );
      }
      await refresh();
      return groups.find(({ failure }) => failure.status === NO_SPACE);
    },
    removeForEver: async (paths) => {
      const send = (path: string) =>
        post<Schemas['FilesDeleted']>('/api/files/delete', { path, permanent: true });
      const { deleted, failed } = await deleteFiles(paths, send);
      showFailures(groupFailures(failed));
      if (deleted.length > 0) toasts.done(t('files.gone', { count: deleted.length }));
      await refresh();
    },
  };
}
