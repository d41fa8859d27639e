import { useMutation, useQueryClient } from '@tanstack/react-query';

import { post } from '../../api/client';
import { Failure } from '../../api/failure';
import { keys } from '../../api/keys';
import type { Schemas } from '../../api/types';
import { useToasts } from '../../components/toast-store';
import { useT } from '../../i18n';

/** Has an object reconciled at once. */
export interface Retry {
  isPending: boolean;
  retry: () => void;
}

/** Reconciles an object now, whatever its back-off, and says that it was requested. */
export function useRetry(kind: string, name: string): Retry {
  const t = useT();
  const toasts = useToasts();
  const client = useQueryClient();
  const object = `${kind}/${name}`;
  const { mutate, isPending } = useMutation({
    mutationFn: () => post<Schemas['Retried']>('/api/admin/reconcile/retry', { kind, name }),
    onSuccess: () => toasts.done(t('act.retry.done', { name: object })),
    onError: (thrown) => toasts.fail(t('act.retry.failed', { name: object }), Failure.from(thrown)),
    onSettled: () => client.invalidateQueries({ queryKey: keys.object(kind, name) }),
  });
  return { isPending, retry: () => mutate() };
}
