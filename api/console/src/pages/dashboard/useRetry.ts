import { useMutation, useQueryClient } from '@tanstack/react-query';

import { post } from '../../api/client';
import { Failure } from '../../api/failure';
import { type Problem, summaryQuery } from '../../api/queries/summary';
import { useToasts } from '../../components/toast-store';
import { useT } from '../../i18n';

const RETRY = '/api/admin/reconcile/retry';

/** Has the objects of a problem reconciled now: each that is named, or all of the kind when there are more. */
async function retryProblem({ kind, count, objects }: Problem): Promise<void> {
  if (count > objects.length) await post(RETRY, { reconciler: kind });
  else await Promise.all(objects.map((name) => post(RETRY, { kind, name })));
}

/** Retries the objects of a problem, and says what came of it. */
export function useRetry(problem: Problem) {
  const t = useT();
  const toasts = useToasts();
  const client = useQueryClient();
  const { count } = problem;
  return useMutation({
    mutationFn: () => retryProblem(problem),
    onSuccess: () => toasts.done(t('dashboard.retry.done', { count })),
    onError: (thrown) => toasts.fail(t('dashboard.retry.failed', { count }), Failure.from(thrown)),
    onSettled: () => client.invalidateQueries({ queryKey: summaryQuery.queryKey }),
  });
}
