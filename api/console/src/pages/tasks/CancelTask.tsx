import { Button } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';

import { post } from '../../api/client';
import { keys } from '../../api/keys';
import { ActionPreview } from '../../components/ActionPreview';
import { useT } from '../../i18n';

/** Button that cancels a task after it was said what that means. */
export function CancelTask({ id }: { id: string }): ReactNode {
  const t = useT();
  const client = useQueryClient();
  const [open, setOpen] = useState(false);
  const cancel = async (): Promise<void> => {
    await post('/api/admin/task/cancel', { task_id: id });
    await client.invalidateQueries({ queryKey: keys.object('task', id) });
  };
  return (
    <>
      <Button onClick={() => setOpen(true)}>{t('task.cancel')}…</Button>
      <ActionPreview
        opened={open}
        onClose={() => setOpen(false)}
        title={t('task.cancel')}
        previewKey={['cancel', id]}
        preview={() => Promise.resolve(true)}
        verb={() => t('task.cancel')}
        act={cancel}
      >
        {() => <p>{t('task.cancel.effect')}</p>}
      </ActionPreview>
    </>
  );
}
