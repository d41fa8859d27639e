import { Button } from '@mantine/core';
import type { ReactNode } from 'react';

import type { Problem } from '../../api/queries/summary';
import { LinkButton } from '../../components/LinkButton';
import { useT } from '../../i18n';
import { isOfUsers } from './ProblemObject';
import { useRetry } from './useRetry';

/** Button that mends a problem: another attempt, or the way to the page where it is decided. */
export function ProblemButton({ problem }: { problem: Problem }): ReactNode {
  const t = useT();
  const retry = useRetry(problem);
  const { kind, reason, count, objects } = problem;
  if (kind === 'service') return <LinkButton to="/admin/reconcile">{t('dashboard.open')}</LinkButton>;
  if (kind === 'rollout') {
    return (
      <LinkButton to="/admin/rollouts/$id" params={{ id: objects[0] ?? '' }}>
        {t('dashboard.open')}
      </LinkButton>
    );
  }
  if (count > objects.length) {
    const all = t('dashboard.show', { count });
    if (isOfUsers(kind)) {
      return (
        <LinkButton to="/admin/users" search={{ reason }}>
          {all}
        </LinkButton>
      );
    }
    return (
      <LinkButton to="/admin/reconcile/objects" search={{ reconciler: kind, not_ready: 'true' } as never}>
        {all}
      </LinkButton>
    );
  }
  return (
    <Button disabled={retry.isPending} onClick={() => retry.mutate()}>
      {retry.isPending ? t('preview.working') : t('dashboard.retry', { count })}
    </Button>
  );
}
