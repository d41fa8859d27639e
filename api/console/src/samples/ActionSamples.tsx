import { Button } from '@mantine/core';
import { type ReactNode, useState } from 'react';

import { Failure } from '../api/failure';
import { ActionPreview } from '../components/ActionPreview';
import { Copy } from '../components/Copy';
import { useToasts } from '../components/toast-store';

/** Previews, messages, copying. */
export function ActionSamples(): ReactNode {
  const [open, setOpen] = useState<'restart' | 'delete'>();
  const toasts = useToasts();
  const close = (): void => setOpen(undefined);
  const refuse = (): Promise<void> => Promise.reject(new Failure(409, 'in_rollout', 'bob is in rollout 7'));
  return (
    <div className="card row">
      <Button onClick={() => setOpen('restart')}>Restart…</Button>
      <Button color="bad" onClick={() => setOpen('delete')}>
        Delete…
      </Button>
      <Button
        variant="filled"
        onClick={() => toasts.done('bob restarted (2.1 s)', { href: '#actions', text: 'Open' })}
      >
        Done
      </Button>
      <Button onClick={() => toasts.fail('bob was not restarted', new Failure(503, 'busy', 'busy', 3))}>
        Failed
      </Button>
      <Button disabled>Disabled</Button>
      <Copy text="agentyard get users" />
      <ActionPreview
        opened={open === 'restart'}
        onClose={close}
        title="Restart 12 agents?"
        previewKey={['restart']}
        preview={() => Promise.resolve(12)}
        verb={(count) => `Restart ${count} agents`}
        act={refuse}
      >
        {(count) => <p>{count} agents restart; 2 that are stopped stay stopped.</p>}
      </ActionPreview>
      <ActionPreview
        opened={open === 'delete'}
        onClose={close}
        title="Delete bob?"
        previewKey={['delete']}
        preview={() => Promise.resolve('bob')}
        verb={(name) => `Delete ${name}`}
        danger
        typedName="bob"
        act={() => Promise.resolve()}
      >
        {() => <p>The agent stops now; the files go to the archive for 90 days.</p>}
      </ActionPreview>
    </div>
  );
}
