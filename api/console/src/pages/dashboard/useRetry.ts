import { useMutation, useQueryClient } from '@tanstack/react-query';

import { post } from '../../api/client';
import { Failure } from '../../api/failure';
import { type Problem, summaryQuery } from '../../api/queries/summary';
import { useToasts } from '../../components/toast-store';
import { useT } from '../../i18n';

/** Has each named object of a problem reconciled now. */
async function retryObjects({ kind, objects }: Problem): Promise<void> {
  await Promise.all(objects.map((name) => post('/api/admin/reconcile/retry', { kind, name })));
}

/** Retries the objects of a problem, and says what came of it. */
export function useRetry(problem: Problem) {
  const t = useT();
  const toasts = useToasts();
  const client = useQueryClient();
  const { count } = problem;
  return useMutation({
    mutationFn: () => retryObjects(problem),
    onSuccess: () => toasts.done(t('dashboard.retry.done', { count })),
    onError: (thrown) => toasts.fail(t('dashboard.retry.failed', { count }), Failure.from(thrown)),
    onSettled: () => client.invalidateQueries({ queryKey: summaryQuery.queryKey }),
  });
}
