import { useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { post } from '../../api/client';
import { keys } from '../../api/keys';
import type { Schemas } from '../../api/types';
import { ActionPreview } from '../../components/ActionPreview';
import { useToasts } from '../../components/toast-store';
import { useT } from '../../i18n';
import { SyncPlan } from './SyncPlan';

/** Dialog that shows what a synchronisation with the directory would change, and begins it. */
export function SyncDialog({ onClose }: { onClose: () => void }): ReactNode {
  const t = useT();
  const toasts = useToasts();
  const client = useQueryClient();
  const path = '/api/admin/auth/sync-users';
  const synchronise = async ({ mass_removal: held }: Schemas['Synced']): Promise<void> => {
    const { state } = await post<Schemas['Synced']>(path, held ? { confirm: held.digest } : {});
    toasts.done(t(state === 'converged' ? 'auth.sync.done' : 'auth.sync.requested'));
    void client.invalidateQueries({ queryKey: keys.object('directory', 'users') });
  };
  return (
    <ActionPreview<Schemas['Synced']>
      opened
      onClose={onClose}
      title={t('auth.sync.title')}
      previewKey={['sync']}
      preview={(signal) => post(path, { dry_run: true }, { signal })}
      verb={({ mass_removal: held }) => t(held ? 'auth.sync.verb.removal' : 'auth.sync')}
      act={synchronise}
    >
      {(plan) => <SyncPlan plan={plan} />}
    </ActionPreview>
  );
}
