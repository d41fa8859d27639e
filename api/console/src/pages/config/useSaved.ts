import { useQueryClient } from '@tanstack/react-query';

import type { ConfigSaved } from '../../api/queries/config';
import { keys } from '../../api/keys';
import { useToasts } from '../../components/toast-store';
import { useT } from '../../i18n';
import { rolloutPath } from '../../modules/rollout-link';
import type { LastTask } from '../../modules/useLastTask';
import { ownUrl } from '../../prefix';

/** Returns what is done after a save: it is said, its tasks are followed, and the settings are read again. */
export function useSaved(rollout: LastTask, purge: LastTask): (answer: ConfigSaved) => Promise<void> {
  const t = useT();
  const client = useQueryClient();
  const toasts = useToasts();
  return async (answer) => {
    const { task_id: task, purge: removed, changed, generation } = answer;
    const operation = removed?.operation;
    rollout.setTask(task ?? undefined);
    if (operation) purge.setTask(operation);
    const link = task
      ? { href: ownUrl(rolloutPath(task)), text: t('config.saved.rollout') }
      : operation
        ? { href: ownUrl(`/admin/tasks/${operation}`), text: t('bulk.show.task') }
        : undefined;
    // The progress stands at the head of the page.
    if (link) scrollTo({ top: 0 });
    toasts.done(t('config.saved', { count: changed.length, revision: String(generation) }), link);
    await client.refetchQueries({ queryKey: keys.reconcile, type: 'active' });
  };
}
