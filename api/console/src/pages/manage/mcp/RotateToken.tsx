import { useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { get, post } from '../../../api/client';
import { Failure } from '../../../api/failure';
import type { Schemas } from '../../../api/types';
import { ActionPreview } from '../../../components/ActionPreview';
import { useToasts } from '../../../components/toast-store';
import { useT } from '../../../i18n';

interface Props {
  opened: boolean;
  onClose: () => void;
  onRotated: () => void;
}

/** Shows what another token means before the present one is revoked. */
export function RotateToken({ opened, onClose, onRotated }: Props): ReactNode {
  const t = useT();
  const client = useQueryClient();
  const toasts = useToasts();
  const rotate = async (): Promise<void> => {
    try {
      await post('/api/mcp/token/rotate', { wait: 30 });
      toasts.done(t('mcp.rotated'));
    } catch (thrown) {
      // The token is another one; only the agent has not taken it over.
      const failure = Failure.from(thrown);
      if (failure.details.state !== 'failed') throw thrown;
      toasts.fail(t('mcp.rotated'), failure);
    }
    onRotated();
    void client.invalidateQueries({ queryKey: ['list', 'executor'] });
  };
  return (
    <ActionPreview
      opened={opened}
      onClose={onClose}
      title={t('mcp.rotate.title')}
      previewKey={['mcp-rotate']}
      preview={(signal) => get<Schemas['OwnExecutors']>('/api/user/executors', {}, { signal })}
      verb={() => t('mcp.rotate.verb')}
      danger
      act={rotate}
    >
      {({ executors }) => (
        <ul>
          <li>{t('mcp.rotate.revoked')}</li>
          <li>{t('mcp.rotate.connections', { count: executors.length })}</li>
          <li>{t('mcp.rotate.agent')}</li>
          <li>{t('mcp.rotate.elsewhere')}</li>
        </ul>
      )}
    </ActionPreview>
  );
}
