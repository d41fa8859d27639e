import { Button } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';

import { post } from '../../../api/client';
import { ActionPreview } from '../../../components/ActionPreview';
import { useToasts } from '../../../components/toast-store';
import { useT } from '../../../i18n';

/** Button that deletes everything in the trash for ever after it was confirmed. */
export function EmptyTrash(): ReactNode {
  const t = useT();
  const client = useQueryClient();
  const toasts = useToasts();
  const [asking, setAsking] = useState(false);
  const empty = async (): Promise<void> => {
    await post('/api/files/delete', { path: '.trash', permanent: true });
    toasts.done(t('trash.none'));
    await client.invalidateQueries({ queryKey: ['files'] });
  };
  return (
    <>
      <Button color="bad" onClick={() => setAsking(true)}>
        {t('trash.empty')}…
      </Button>
      <ActionPreview
        opened={asking}
        onClose={() => setAsking(false)}
        title={t('trash.empty.title')}
        previewKey={['trash', 'all']}
        preview={() => Promise.resolve(true)}
        verb={() => t('trash.empty')}
        danger
        act={empty}
      >
        {() => <p>{t('trash.empty.text')}</p>}
      </ActionPreview>
    </>
  );
}
