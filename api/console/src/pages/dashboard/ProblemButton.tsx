import { Button } from '@mantine/core';
import type { ReactNode } from 'react';

import type { Problem } from '../../api/queries/summary';
import { LinkButton } from '../../components/LinkButton';
import { useT } from '../../i18n';
import { useRetry } from './useRetry';

/** Button that mends a problem: another attempt, or the page where it is decided. */
export function ProblemButton({ problem }: { problem: Problem }): ReactNode {
  const t = useT();
  const retry = useRetry(problem);
  const { kind, count, objects } = problem;
  if (kind === 'service') return <LinkButton to="/admin/reconcile">{t('dashboard.open')}</LinkButton>;
  if (kind === 'rollout') {
    return (
      <LinkButton to="/admin/rollouts/$id" params={{ id: objects[0] ?? '' }}>
        {t('dashboard.open')}
      </LinkButton>
    );
  }
  return (
    <Button disabled={retry.isPending} onClick={() => retry.mutate()}>
      {retry.isPending ? t('preview.working') : t('dashboard.retry', { count })}
    </Button>
  );
}
