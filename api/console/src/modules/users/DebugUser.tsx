import type { ReactNode } from 'react';

import { post } from '../../api/client';
import { ActionPreview } from '../../components/ActionPreview';
import { useToasts } from '../../components/toast-store';
import { useT } from '../../i18n';

/** Dialog that puts a user's agent into debug mode after it was said what that ends. */
export function DebugUser({ name, onClose }: { name: string; onClose: () => void }): ReactNode {
  const t = useT();
  const toasts = useToasts();
  const debug = async (): Promise<void> => {
    await post('/api/admin/container/debug', { username: name, wait: 0 });
    toasts.done(t('debug.requested', { name }));
  };
  return (
    <ActionPreview
      opened
      onClose={onClose}
      title={t('debug.title', { name })}
      previewKey={['debug', name]}
      preview={() => Promise.resolve(true)}
      verb={() => t('debug.verb')}
      act={debug}
    >
      {() => <p>{t('debug.text')}</p>}
    </ActionPreview>
  );
}
