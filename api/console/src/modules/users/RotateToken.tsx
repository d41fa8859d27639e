import type { ReactNode } from 'react';

import { post } from '../../api/client';
import { ActionPreview } from '../../components/ActionPreview';
import { useToasts } from '../../components/toast-store';
import { useT } from '../../i18n';

/** Dialog that replaces a user's MCP token after it was said what that ends. */
export function RotateToken({ name, onClose }: { name: string; onClose: () => void }): ReactNode {
  const t = useT();
  const toasts = useToasts();
  const rotate = async (): Promise<void> => {
    await post('/api/admin/users/mcp-token/rotate', { username: name, wait: 0 });
    toasts.done(t('rotate.done', { name }));
  };
  return (
    <ActionPreview
      opened
      onClose={onClose}
      title={t('rotate.title', { name })}
      previewKey={['rotate', name]}
      preview={() => Promise.resolve(true)}
      verb={() => t('rotate.verb')}
      act={rotate}
    >
      {() => <p>{t('rotate.text')}</p>}
    </ActionPreview>
  );
}
