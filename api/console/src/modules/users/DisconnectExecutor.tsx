import { useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { post } from '../../api/client';
import { keys } from '../../api/keys';
import type { Schemas } from '../../api/types';
import { ActionPreview } from '../../components/ActionPreview';
import { useToasts } from '../../components/toast-store';
import { useT } from '../../i18n';

interface Props {
  executor: Schemas['Executor'];
  /** What it calls itself. */
  label: string;
  onClose: () => void;
}

/** Dialog that disconnects a user's browser or desktop after it was said what that ends. */
export function DisconnectExecutor({ executor, label, onClose }: Props): ReactNode {
  const t = useT();
  const toasts = useToasts();
  const client = useQueryClient();
  const { id, username } = executor;
  const disconnect = async (): Promise<void> => {
    await post('/api/admin/executors/disconnect', { id });
    toasts.done(t('executors.disconnected'));
    void client.invalidateQueries({ queryKey: keys.reconcile });
    await client.invalidateQueries({ queryKey: keys.object('user', username) });
  };
  return (
    <ActionPreview
      opened
      onClose={onClose}
      title={t('executors.disconnect.title', { label, name: username })}
      previewKey={['disconnect', id]}
      preview={() => Promise.resolve(true)}
      verb={() => t('executors.disconnect')}
      act={disconnect}
    >
      {() => <p>{t('executors.disconnect.text')}</p>}
    </ActionPreview>
  );
}
