import { Progress } from '@mantine/core';
import type { ReactNode } from 'react';

import type { Schemas } from '../api/types';

interface Props {
  progress: Schemas['TaskProgress'];
  /** The same in words. */
  label: string;
  className?: string;
}

/** Progress of a task: done, failed and cancelled beside each other. */
export function TaskBar({ progress, label, className }: Props): ReactNode {
  const { total, done, failed, cancelled } = progress;
  const share = (count: number): number => (total === 0 ? 0 : (count / total) * 100);
  return (
    <div className={className} role="img" aria-label={label}>
      <Progress.Root aria-hidden>
        <Progress.Section value={total === 0 ? 100 : share(done)} color="var(--ay-accent)" />
        <Progress.Section value={share(failed)} color="var(--ay-bad)" />
        <Progress.Section value={share(cancelled)} color="var(--ay-off)" />
      </Progress.Root>
    </div>
  );
}
