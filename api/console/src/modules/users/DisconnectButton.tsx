import { Button } from '@mantine/core';
import { type ReactNode, useState } from 'react';

import type { Schemas } from '../../api/types';
import { useT } from '../../i18n';
import { DisconnectExecutor } from './DisconnectExecutor';
import { executorLabel } from './executor-label';

/** Button that disconnects a browser or desktop after it was said what that ends. */
export function DisconnectButton({ executor }: { executor: Schemas['Executor'] }): ReactNode {
  const t = useT();
  const [open, setOpen] = useState(false);
  const label = executorLabel(executor);
  return (
    <>
      <Button
        size="compact-sm"
        aria-label={t('table.action', { action: t('executors.disconnect'), name: label })}
        onClick={() => setOpen(true)}
      >
        {t('executors.disconnect')}…
      </Button>
      {open && <DisconnectExecutor executor={executor} label={label} onClose={() => setOpen(false)} />}
    </>
  );
}
